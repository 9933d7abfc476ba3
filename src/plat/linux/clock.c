/* SPDX-License-Identifier: MIT */
/* clock.c (linux) - CLOCK_MONOTONIC; see clock.h.
 *
 * Not the COARSE twin, whose 4 ms steps are too wide for deadlines; not CLOCK_BOOTTIME, which
 * futexes do not know. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "plat/clock.h"

#include <time.h>

int64_t sni_plat_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail: the clock exists, `now` is ours */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
