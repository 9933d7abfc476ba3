/* SPDX-License-Identifier: MIT */
/* Coroutines: resume through the future's vtable, await, start to end, nesting. */
#include "bench.h"

#include <sinew/sinew.h>

typedef struct spinner {
    sn_coro coro;
    uint64_t turns;
} spinner;

SN_CORO(spinner, self)
{
    SN_BEGIN(self);
    for (;;) {
        self->turns++;
        SN_YIELD();
    }
    SN_END();
}

BENCH(coro_yield, .note = "resume, run to the next SN_YIELD, wake a no-op waker")
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    spinner s = {.turns = 0};
    sn_future *fut = SN_START(spinner, &s);
    for (uint64_t i = 0; i < b->iterations; i++) {
        sn_poll p = sn_future_poll(fut, &cx);
        bench_keep(p.value);
    }
    bench_keep(s.turns);
}

typedef struct generator {
    sn_coro coro;
    int n;
} generator;

SN_CORO(generator, self)
{
    SN_BEGIN(self);
    for (;;) {
        self->n = (self->n + 1) & 0xFFFF;
        SN_EMIT(self->n);
    }
    SN_END();
}

BENCH(coro_resume, .note = "resume through the future's vtable, run to the next SN_EMIT")
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    generator g = {.n = 0};
    sn_future *fut = SN_START(generator, &g);
    for (uint64_t i = 0; i < b->iterations; i++) {
        sn_poll p = sn_future_poll(fut, &cx);
        bench_keep(p.value);
    }
}

typedef struct adder {
    sn_coro coro;
    sn_fut_ready operand;
    int sum;
} adder;

SN_CORO(adder, self)
{
    int value;
    SN_BEGIN(self);
    SN_AWAIT_INTO(value, sn_fut_ready_init(&self->operand, 3));
    SN_RETURN(self->sum + value);
    SN_END();
}

BENCH(coro_start_await_end, .note = "a whole life: start, await a ready future, return")
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    adder a;
    for (uint64_t i = 0; i < b->iterations; i++) {
        a.sum = (int)(i & 0xFF);
        sn_poll p = sn_future_poll(SN_START(adder, &a), &cx);
        bench_keep(p.value);
    }
}

enum {
    DEPTH = 8,
};

typedef struct nest {
    sn_coro coro;
    struct nest *inner;
    spinner bottom;
} nest;

SN_CORO(nest, self)
{
    SN_BEGIN(self);
    if (self->inner != NULL)
        SN_AWAIT(SN_START(nest, self->inner));
    else
        SN_AWAIT(SN_START(spinner, &self->bottom));
    SN_END();
}

BENCH(coro_resume_8_deep, .note = "resume a chain of 8 coroutines, all awaiting the last")
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    nest n[DEPTH] = {{.inner = NULL}};
    for (int i = 0; i + 1 < DEPTH; i++)
        n[i].inner = &n[i + 1];
    sn_future *fut = SN_START(nest, &n[0]);
    for (uint64_t i = 0; i < b->iterations; i++) {
        sn_poll p = sn_future_poll(fut, &cx);
        bench_keep(p.value);
    }
}
