/* SPDX-License-Identifier: MIT */
/* clock.c (linux) - CLOCK_MONOTONIC; see clock.h.
 *
 * Not the COARSE twin, whose 4 ms steps are too wide for deadlines; not CLOCK_BOOTTIME, which
 * futexes do not know.
 *
 * The counter is the time stamp counter of x86-64. That it is constant the processor says; that it
 * is the same everywhere it does not. The kernel finds that out, watches it, and takes another
 * clock source if it is not so: so we ask what it has taken. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "plat/clock.h"

#include "base/compiler.h"
#include "plat/linux/text_priv.h"

#include <string.h>
#include <time.h>

#if defined(__x86_64__) && defined(__LP64__)
#include <cpuid.h>
#endif

int64_t sni_plat_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail: the clock exists, `now` is ours */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#if defined(__x86_64__) && defined(__LP64__)
enum {
    EDX_INVARIANT_TSC = 1 << 8,
    NAME_BYTES = 64,
};

static bool is_invariant(void)
{
    unsigned eax;
    unsigned ebx;
    unsigned ecx;
    unsigned edx;
    return __get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) != 0 && (edx & EDX_INVARIANT_TSC) != 0;
}

SNI_NEVER_INLINE bool sni_plat_has_counter(void) /* it looks at errno, see thread.c */
{
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    char name[NAME_BYTES];
    return is_invariant() && sni_text_read(path, name, sizeof(name)) == 0 &&
           strcmp(name, "tsc\n") == 0;
}
#else
bool sni_plat_has_counter(void)
{
    return false;
}
#endif
