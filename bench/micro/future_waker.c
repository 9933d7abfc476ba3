/* SPDX-License-Identifier: MIT */
/* Wakers: clone, wake, drop; and the cell between a poller and an event. */
#include "bench.h"

#include <sinew/sinew.h>

/* A counted waker as an executor has it: clone and drop change an atomic. */
static unsigned references, wakes;

static void *counted_clone(void *data)
{
    __atomic_fetch_add((unsigned *)data, 1, __ATOMIC_RELAXED);
    return data;
}

static int counted_wake(void *data)
{
    (void)data;
    wakes++;
    return 0;
}

static void counted_drop(void *data)
{
    __atomic_fetch_sub((unsigned *)data, 1, __ATOMIC_RELEASE);
}

static const sn_waker_vtable counted = {counted_clone, NULL, counted_wake, counted_drop};

BENCH(waker_wake_by_ref, .note = "wake, reference kept")
{
    sn_waker w = {&counted, &references};
    for (uint64_t i = 0; i < b->iterations; i++) {
        int rc = sn_waker_wake_by_ref(&w);
        bench_keep(rc);
    }
}

BENCH(waker_clone, .note = "clone of an uncounted waker, which needs no drop")
{
    sn_waker w = sn_noop_waker();
    for (uint64_t i = 0; i < b->iterations; i++) {
        sn_waker copy = sn_waker_clone(&w);
        bench_keep(copy.data);
    }
}

BENCH(waker_clone_drop, .note = "clone and drop of an uncounted waker (no-op, sn_idle)")
{
    sn_waker w = sn_noop_waker();
    for (uint64_t i = 0; i < b->iterations; i++) {
        sn_waker copy = sn_waker_clone(&w);
        sn_waker_drop(&copy);
    }
}

BENCH(waker_clone_drop_counted, .note = "the same with an atomic count: two locked operations")
{
    sn_waker w = {&counted, &references};
    for (uint64_t i = 0; i < b->iterations; i++) {
        sn_waker copy = sn_waker_clone(&w);
        sn_waker_drop(&copy);
    }
}

BENCH(waker_cell_arm_same, .note = "arm a cell that holds this waker already")
{
    sn_waker_cell cell = SN_WAKER_CELL_INIT;
    sn_waker w = {&counted, &references};
    for (uint64_t i = 0; i < b->iterations; i++) {
        int rc = sn_waker_cell_arm(&cell, &w);
        bench_keep(rc);
    }
    sn_waker_cell_disarm(&cell);
}

BENCH(waker_cell_arm_wake, .note = "arm an empty cell, then wake it")
{
    sn_waker_cell cell = SN_WAKER_CELL_INIT;
    sn_waker w = {&counted, &references};
    for (uint64_t i = 0; i < b->iterations; i++) {
        int rc = sn_waker_cell_arm(&cell, &w);
        rc |= sn_waker_cell_wake(&cell);
        bench_keep(rc);
    }
}
