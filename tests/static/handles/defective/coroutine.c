/* SPDX-License-Identifier: MIT */
/* The handle of a coroutine task is forgotten on an early return. */
#include <sinew/sinew.h>

typedef struct adder {
    sn_coro coro;
    int a, b;
} adder;

SN_CORO(adder, self)
{
    SN_BEGIN(self);
    SN_YIELD();
    SN_RETURN(self->a + self->b);
    SN_END();
}

int defect(int a)
{
    adder frame = {.a = a, .b = 1};
    sn_task *t = sn_spawn_coro(adder, &frame);
    if (a == 0)
        return 0; /* gcc: malloc-leak; clang: leak */
    return sn_join(t, NULL);
}
