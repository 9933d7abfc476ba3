/* SPDX-License-Identifier: MIT */
/* Polling futures: through the vtable, through a join, to completion. */
#include "bench.h"

#include <sinew/sinew.h>

BENCH(future_poll_pending, .note = "sn_future_poll of a future that is not ready")
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    sn_fut_pending never;
    sn_future *fut = sn_fut_pending_init(&never);
    for (uint64_t i = 0; i < b->iterations; i++) {
        sn_poll p = sn_future_poll(fut, &cx);
        bench_keep(p.value);
    }
}

BENCH(future_init_and_poll_ready, .note = "initialise, poll, complete")
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    sn_fut_ready ready;
    for (uint64_t i = 0; i < b->iterations; i++) {
        sn_poll p = sn_future_poll(sn_fut_ready_init(&ready, 1), &cx);
        bench_keep(p.value);
    }
}

BENCH(future_join2_ready, .note = "join of two ready futures, initialised each time")
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    sn_fut_ready x, y;
    sn_fut_join2 both;
    for (uint64_t i = 0; i < b->iterations; i++) {
        sn_future *fut =
            sn_fut_join2_init(&both, sn_fut_ready_init(&x, 1), sn_fut_ready_init(&y, 2));
        sn_poll p = sn_future_poll(fut, &cx);
        bench_keep(p.value);
    }
}
