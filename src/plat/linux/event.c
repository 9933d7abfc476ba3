/* SPDX-License-Identifier: MIT */
/* event.c (linux) - see event.h: an eventfd.
 *
 * Its counter cannot overflow in practice, and if it did, a set that fails finds the descriptor
 * readable anyway, which is all it is for. */
#include "plat/event.h"

#include "base/compiler.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
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
