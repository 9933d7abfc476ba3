/* SPDX-License-Identifier: MIT */
/* clock.h - the one clock of the house.
 *
 * Monotonic: it never goes back, is the same for all threads, and does not run while the machine
 * sleeps. Time of day is not here, since nothing in the house may depend on it. */
#ifndef SINEW_PLAT_CLOCK_H
#define SINEW_PLAT_CLOCK_H

#include <stdint.h>

/* Nanoseconds since some moment in the past; always positive, and far from INT64_MAX.
 *
 * Costs 20 to 50 ns without a system call where the machine has a usable time stamp counter, and
 * some hundred elsewhere: read it once per turn of a loop, not per task. */
int64_t sni_plat_now_ns(void);

#endif
