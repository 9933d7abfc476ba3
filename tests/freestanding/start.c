/* SPDX-License-Identifier: MIT */
/* start.c - the smallest program without a C library that uses each part of Level 0.
 *
 * It is linked, not run: what counts is that nothing is missing. */
#include <sinew/level0.h>

typedef struct pauses {
    sn_coro coro;
    int count;
    sn_fut_yield pause;
} pauses;

SN_CORO(pauses, self)
{
    SN_BEGIN(self);
    for (; self->count > 0; self->count--)
        SN_AWAIT(sn_fut_yield_init(&self->pause));
    SN_RETURN(7);
    SN_END();
}

volatile int start_result;
void _start(void);

void _start(void)
{
    static sn_idle idle = SN_IDLE_INIT(NULL, NULL);
    static pauses one = {.count = 1};
    static pauses two = {.count = 2};
    static sn_fut_join2 both;
    sn_future *all = sn_fut_join2_init(&both, SN_START(pauses, &one), SN_START(pauses, &two));
    start_result = sn_block_on_simple(all, &idle);
}
