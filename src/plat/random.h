/* SPDX-License-Identifier: MIT */
/* random.h - a number nobody could foresee, to begin from.
 *
 * The generator itself is pure and lives in base/rand.h; this is where its seed comes from when
 * nobody asks for a repeatable run. */
#ifndef SINEW_PLAT_RANDOM_H
#define SINEW_PLAT_RANDOM_H

#include <stdint.h>

/* From the system's generator, which is not waited for: early at boot, or where it is forbidden,
 * from the clock and an address instead. Good for choosing victims, not for keys. Never fails.
 * A system call. */
uint64_t sni_plat_random_seed(void);

#endif
