/* SPDX-License-Identifier: MIT */
/* rand.h - numbers that look random and can be had again.
 *
 * A counter that advances by an odd constant, and a mixer that makes each of its values look
 * unlike its neighbours (the scheme known as splitmix64). State is one word, a step is an
 * addition and two multiplications, every seed is as good as any other, and after 2^64 numbers
 * it begins anew. The seed is mixed first, so that workers seeded n, n+1, n+2 share nothing.
 *
 * Pure: the same seed gives the same numbers on every machine, which is what makes a seeded run
 * repeatable. Not for secrets: one number betrays all that follow.
 *
 * Rejected: the xoshiro family (four words of state buy a period nobody here can use up), and
 * rand() (global, locked, poor). */
#ifndef SINEW_BASE_RAND_H
#define SINEW_BASE_RAND_H

#include "base/assert.h"

#include <stdint.h>

/* Owned by one thread at a time. */
struct sni_rand {
    uint64_t state;
};

static inline uint64_t sni_rand_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline void sni_rand_init(struct sni_rand *r, uint64_t seed)
{
    /* The constant is there because the mixer maps 0 to itself. */
    r->state = sni_rand_mix(seed ^ UINT64_C(0x5851f42d4c957f2d));
}

static inline uint64_t sni_rand_next64(struct sni_rand *r)
{
    r->state += UINT64_C(0x9e3779b97f4a7c15); /* 2^64 by the golden ratio, and odd */
    return sni_rand_mix(r->state);
}

/* One of 0 .. n-1, each exactly as likely; n is not 0.
 *
 * The upper half of a 32 by 32 bit product falls into n buckets whose sizes differ by one; a draw
 * in the lowest (2^32 mod n) of a bucket is thrown away, which makes them even. The division is
 * reached with a probability of n / 2^32, so nearly never. */
static inline uint32_t sni_rand_below(struct sni_rand *r, uint32_t n)
{
    sni_assert_debug(n != 0, "a random number below 0 was asked for");
    uint64_t product = (sni_rand_next64(r) >> 32) * n;
    if (sni_unlikely((uint32_t)product < n)) {
        uint32_t reject_below = n == 0 ? 0 : (uint32_t)-n % n; /* 2^32 mod n */
        while ((uint32_t)product < reject_below)
            product = (sni_rand_next64(r) >> 32) * n;
    }
    return (uint32_t)(product >> 32);
}

#endif
