/* SPDX-License-Identifier: MIT */
/* event.c (linux) - see event.h: an eventfd; and an epoll instance with a timerfd in it.
 *
 * Its counter cannot overflow in practice, and if it did, a set that fails finds the descriptor
 * readable anyway, which is all it is for. */
#include "plat/event.h"

#include "base/compiler.h"

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

SNI_NEVER_INLINE int sni_plat_event_open(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return fd >= 0 ? fd : -errno;
}

void sni_plat_event_set(int fd)
{
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof(one));
    (void)written;
}

void sni_plat_event_clear(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof(count));
    (void)got;
}

void sni_plat_event_close(int fd)
{
    (void)close(fd);
}

SNI_NEVER_INLINE int sni_plat_gather_open(struct sni_gather *gather)
{
    gather->fd = epoll_create1(EPOLL_CLOEXEC);
    if (gather->fd < 0)
        return -errno;
    gather->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int rc = gather->timer < 0 ? -errno : sni_plat_gather_add(gather, gather->timer);
    if (rc < 0)
        sni_plat_gather_close(gather);
    return rc;
}

SNI_NEVER_INLINE int sni_plat_gather_add(struct sni_gather *gather, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(gather->fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

void sni_plat_gather_alarm(struct sni_gather *gather, int64_t at_ns)
{
    struct itimerspec at = {.it_value = {0, 0}}; /* disarmed, and not readable any more */
    if (at_ns != INT64_MAX) {
        at_ns = at_ns > 0 ? at_ns : 1;
        at.it_value = (struct timespec){at_ns / 1000000000, at_ns % 1000000000};
    }
    (void)timerfd_settime(gather->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void sni_plat_gather_close(struct sni_gather *gather)
{
    if (gather->timer >= 0)
        (void)close(gather->timer);
    (void)close(gather->fd);
}
