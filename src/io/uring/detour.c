/* SPDX-License-Identifier: MIT */
/* detour.c - an epoll instance for one wait.
 *
 * Two things a request IORING_OP_POLL_ADD does otherwise than poll(2), as seen on 6.18:
 *
 *     It always asks for POLLRDHUP too. Whoever waits to write to an end that has been half-closed
 *     is answered at once, again and again, although there is no room.
 *     It does not wake up for POLLPRI alone, and takes for the answer what the waker says might be
 *     there: ordinary data is announced as urgent, too.
 *
 * epoll does neither. Level-triggered, so that reading what is there takes nothing away.
 *
 * Rejected: a multishot poll, which is edge-triggered and so tells POLLRDHUP only once (not before
 * 5.13, must be cancelled when it has told what is wanted, and does nothing for POLLPRI); one epoll
 * instance for all (several operations may wait for one descriptor, and would have to share). */
#include "io/uring/detour.h"

#include <sinew/errno.h>

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The events of interest have the same bits in both interfaces. */
_Static_assert(EPOLLIN == POLLIN && EPOLLPRI == POLLPRI && EPOLLOUT == POLLOUT &&
                   EPOLLERR == POLLERR && EPOLLHUP == POLLHUP && EPOLLRDHUP == POLLRDHUP,
               "epoll and poll name their events alike");

int sni_detour_open(int fd, unsigned mask)
{
    int detour = epoll_create1(EPOLL_CLOEXEC);
    if (detour < 0)
        return -errno;
    struct epoll_event event = {.events = mask};
    int rc = epoll_ctl(detour, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
    if (rc < 0)
        goto close_detour;
    return detour;

close_detour:
    sni_detour_close(detour);
    return rc;
}

unsigned sni_detour_read(int detour)
{
    struct epoll_event event;
    return epoll_wait(detour, &event, 1, 0) == 1 ? event.events : 0;
}

void sni_detour_close(int detour)
{
    (void)close(detour);
}
