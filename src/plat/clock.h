/* SPDX-License-Identifier: MIT */
/* clock.h - the one clock of the house.
 *
 * Monotonic: it never goes back, is the same for all threads, and does not run while the machine
 * sleeps. Time of day is not here, since nothing in the house may depend on it. */
#ifndef SINEW_PLAT_CLOCK_H
#define SINEW_PLAT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds since some moment in the past; always positive, and far from INT64_MAX.
 *
 * Costs 20 to 50 ns without a system call where the machine has a usable time stamp counter, and
 * some hundred elsewhere: read it once per turn of a loop, not per task. */
int64_t sni_plat_now_ns(void);

/* Whether the clock is made of a counter that this thread may read by itself: one that runs at a
 * constant rate, is the same on all processors, and is what the kernel works the clock out from at
 * this moment. Reads a file: ask once, keep. Without one, all that follows is meaningless. */
bool sni_plat_has_counter(void);

/* That counter. Costs some ten ns; may be read before instructions that stand in front of it. */
static inline uint64_t sni_plat_counter(void)
{
#if defined(__x86_64__) && defined(__LP64__)
    uint32_t low;
    uint32_t high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
#else
    return 0; /* nobody has written it for this kind of machine yet */
#endif
}

#endif
