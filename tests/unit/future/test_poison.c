/* SPDX-License-Identifier: MIT */
/* The mistake C cannot check: a local kept across an await. With the poisoned stack it shows
 * itself at the first try, every time (R11). future.c is compiled into this test with
 * SINEW_POISON_STACK, so that all presets have it. */
#include "harness.h"

#include <sinew/sinew.h>

typedef struct forgetful {
    sn_coro coro;
    int seen;
} forgetful;

/* The address escapes, which is how the mistake gets past the compilers' own warning (which
 * tests/static shows). */
static __attribute__((noinline)) void set(volatile int *at, int value)
{
    *at = value;
}

static __attribute__((noinline)) int get(volatile int *at)
{
    return *at;
}

SN_CORO(forgetful, self)
{
    volatile int local[16];
    SN_BEGIN(self);
    set(&local[7], 42);
    SN_YIELD();
    self->seen = get(&local[7]); /* wrong: the C stack was somebody else's in the meantime */
    SN_END();
}

TEST(a_local_kept_across_an_await_reads_poison_at_the_first_try)
{
    forgetful f = {.seen = 0};
    CHECK_EQ(sn_block_on_simple(SN_START(forgetful, &f), NULL), 0);
    CHECK_EQ((uint32_t)f.seen, 0xA5A5A5A5);
}

typedef struct careful {
    sn_coro coro;
    int kept;
    int seen;
} careful;

SN_CORO(careful, self)
{
    SN_BEGIN(self);
    self->kept = 42;
    SN_YIELD();
    self->seen = self->kept;
    SN_END();
}

TEST(what_lives_in_the_frame_is_not_touched)
{
    careful c = {.seen = 0};
    CHECK_EQ(sn_block_on_simple(SN_START(careful, &c), NULL), 0);
    CHECK_EQ(c.seen, 42);
}
