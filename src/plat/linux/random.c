/* SPDX-License-Identifier: MIT */
/* random.c (linux) - getrandom, or what differs from run to run; see random.h.
 *
 * A sandbox may forbid the call, and early at boot it would wait: a seed is not worth either. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "plat/random.h"

#include "base/rand.h"
#include "plat/clock.h"
#include "plat/thread.h"

#include <sys/random.h>

uint64_t sni_plat_random_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == (ssize_t)sizeof(seed))
        return seed;
    /* The address has the randomness of the stack's place, the thread tells callers apart. */
    seed = (uint64_t)(uintptr_t)&seed ^ sni_rand_mix(sni_plat_thread_id());
    return sni_rand_mix(seed ^ (uint64_t)sni_plat_now_ns());
}
