/* SPDX-License-Identifier: MIT */
/* The seed of a run that nobody asked to be repeatable (R40, R42 choose victims by it). */
#include "harness.h"
#include "plat/random.h"

TEST(seeds_differ_from_each_other)
{
    enum { SEEDS = 64 };
    uint64_t seeds[SEEDS];
    for (int i = 0; i < SEEDS; i++) {
        seeds[i] = sni_plat_random_seed();
        for (int k = 0; k < i; k++)
            CHECK_NE(seeds[i], seeds[k]);
    }
}

TEST(every_bit_of_a_seed_is_used)
{
    uint64_t ones = 0;
    uint64_t zeros = 0;
    for (int i = 0; i < 64; i++) {
        uint64_t seed = sni_plat_random_seed();
        ones |= seed;
        zeros |= ~seed;
    }
    CHECK_EQ(ones, UINT64_MAX);
    CHECK_EQ(zeros, UINT64_MAX);
}
