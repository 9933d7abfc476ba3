/* SPDX-License-Identifier: MIT */
/* 01_hello - a coroutine: a function that stops in the middle and goes on later. */
#include <sinew/sinew.h>
#include <stdio.h>

typedef struct countdown {
    sn_coro coro; /* makes the struct a coroutine's frame */
    const char *name;
    int n;
} countdown;

SN_CORO(countdown, self)
{
    SN_BEGIN(self);
    for (; self->n > 0; self->n--) {
        printf("%s %d\n", self->name, self->n);
        SN_YIELD(); /* let the other one run */
    }
    SN_END();
}

int main(void)
{
    countdown a = {.name = "tick", .n = 3};
    countdown b = {.name = "  tock", .n = 3};
    sn_fut_join2 both;
    return sn_block_on_simple(
        sn_fut_join2_init(&both, SN_START(countdown, &a), SN_START(countdown, &b)), NULL);
}
