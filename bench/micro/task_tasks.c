/* SPDX-License-Identifier: MIT */
/* Tasks: spawn and join, yield, fork-join trees: workloads W1, W2, W6 and W7 of the yardstick.
 *
 * Each body runs inside a runtime that is made before the clock starts. The suffix _1w is one
 * worker thread, _2w two. Fork-join trees run in the LIFO discipline, which is made for them. */
#include "with_runtime.h"

#include <stdint.h>
#include <stdlib.h>

enum {
    BATCH = 1000,
};

static void one_worker_lifo(struct bench *b)
{
    make(b, 1, true);
}

static void two_workers_lifo(struct bench *b)
{
    make(b, 2, true);
}

/* ---- W1 spawn_join ------------------------------------------------------------------------ */

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int spawn_join_fibers(void *arg)
{
    struct bench *b = arg;
    static sn_task *t[BATCH];
    int rc = 0;
    for (uint64_t i = 0; i < b->iterations; i++) {
        for (int k = 0; k < BATCH; k++)
            t[k] = sn_spawn(nothing, NULL);
        for (int k = 0; k < BATCH; k++)
            rc |= sn_join(t[k], NULL);
    }
    return rc;
}

BENCH(w1_spawn_join_fiber_1w, .ops = BATCH, .setup = one_worker, .teardown = finish,
      .note = "spawn 1000 empty fibers, join them")
{
    inside(b, spawn_join_fibers);
}

BENCH(w1_spawn_join_fiber_2w, .ops = BATCH, .setup = two_workers, .teardown = finish,
      .unpinned = true, .note = "the same, two workers")
{
    inside(b, spawn_join_fibers);
}

typedef struct empty {
    sn_coro coro;
} empty;

SN_CORO(empty, self)
{
    SN_BEGIN(self);
    SN_END();
}

static int spawn_join_coros(void *arg)
{
    struct bench *b = arg;
    static sn_task *t[BATCH];
    int rc = 0;
    for (uint64_t i = 0; i < b->iterations; i++) {
        for (int k = 0; k < BATCH; k++) {
            empty frame;
            t[k] = sn_spawn_coro(empty, &frame);
        }
        for (int k = 0; k < BATCH; k++)
            rc |= sn_join(t[k], NULL);
    }
    return rc;
}

BENCH(w1_spawn_join_coro_1w, .ops = BATCH, .setup = one_worker, .teardown = finish,
      .note = "spawn 1000 empty coroutine tasks, join them")
{
    inside(b, spawn_join_coros);
}

BENCH(w1_spawn_join_coro_2w, .ops = BATCH, .setup = two_workers, .teardown = finish,
      .unpinned = true, .note = "the same, two workers")
{
    inside(b, spawn_join_coros);
}

/* ---- W2 yield ------------------------------------------------------------------------------ */

static uint64_t turns;

static int yielder(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < turns; i++)
        sn_yield();
    return 0;
}

static int yield_with(uint64_t each, int tasks)
{
    static sn_task *t[BATCH];
    int rc = 0;
    turns = each;
    for (int k = 0; k < tasks; k++)
        t[k] = sn_spawn(yielder, NULL);
    for (int k = 0; k < tasks; k++)
        rc |= sn_join(t[k], NULL);
    return rc;
}

static int yield_2(void *arg)
{
    struct bench *b = arg;
    return yield_with(b->iterations, 2);
}

static int yield_1000(void *arg)
{
    struct bench *b = arg;
    return yield_with(b->iterations, BATCH);
}

static int yield_once(void *arg)
{
    (void)arg;
    return yield_with(1, BATCH);
}

/* The yardstick's 4000 turns of each make the first touch of a stack 0.1 %; a sample is shorter. */
static void one_worker_with_stacks(struct bench *b)
{
    one_worker(b);
    inside(b, yield_once);
}

BENCH(w2_yield_2_fibers, .ops = 2, .setup = one_worker, .teardown = finish,
      .note = "two fibers give way to each other")
{
    inside(b, yield_2);
}

BENCH(w2_yield_1000_fibers, .ops = BATCH, .setup = one_worker_with_stacks, .teardown = finish,
      .note = "a thousand fibers give way in turn")
{
    inside(b, yield_1000);
}

typedef struct spinner {
    sn_coro coro;
    uint64_t left;
} spinner;

SN_CORO(spinner, self)
{
    SN_BEGIN(self);
    for (; self->left > 0; self->left--)
        SN_YIELD();
    SN_END();
}

static int poll_coros(void *arg)
{
    struct bench *b = arg;
    spinner frame = {.left = b->iterations};
    sn_task *t[2] = {sn_spawn_coro(spinner, &frame), sn_spawn_coro(spinner, &frame)};
    return sn_join(t[0], NULL) | sn_join(t[1], NULL);
}

BENCH(w2_yield_2_coros, .ops = 2, .setup = one_worker, .teardown = finish,
      .note = "poll of a coroutine task through the scheduler")
{
    inside(b, poll_coros);
}

/* ---- W6 skynet, W7 fib ---------------------------------------------------------------------- */

struct sky {
    int64_t first;
    int64_t leaves;
    int64_t sum;
};

static int sky(void *arg)
{
    struct sky *s = arg;
    if (s->leaves == 1) {
        s->sum = s->first;
        return 0;
    }
    struct sky child[10];
    sn_task *t[10];
    for (int i = 0; i < 10; i++) {
        child[i] = (struct sky){s->first + i * (s->leaves / 10), s->leaves / 10, 0};
        t[i] = sn_spawn(sky, &child[i]);
    }
    int rc = 0;
    for (int i = 0; i < 10; i++) {
        rc |= sn_join(t[i], NULL);
        s->sum += child[i].sum;
    }
    return rc;
}

enum {
    LEAVES = 100000,
};

static int skynet(void *arg)
{
    struct bench *b = arg;
    for (uint64_t i = 0; i < b->iterations; i++) {
        struct sky root = {0, LEAVES, 0};
        if (sky(&root) != 0 || root.sum != (int64_t)LEAVES * (LEAVES - 1) / 2)
            return 1;
    }
    return 0;
}

BENCH(w6_skynet_1w, .ops = LEAVES, .setup = one_worker_lifo, .teardown = finish,
      .note = "tree of tasks, fan-out 10, 10^5 leaves; per leaf")
{
    inside(b, skynet);
}

BENCH(w6_skynet_2w, .ops = LEAVES, .setup = two_workers_lifo, .teardown = finish, .unpinned = true,
      .note = "the same, two workers")
{
    inside(b, skynet);
}

static int fib(void *arg)
{
    int n = (int)(intptr_t)arg;
    if (n < 2)
        return n;
    sn_task *left = sn_spawn(fib, (void *)(intptr_t)(n - 1));
    int right = fib((void *)(intptr_t)(n - 2));
    return sn_join(left, NULL) + right;
}

enum {
    FIB_N = 22,
    FIB_SPAWNS = 28656, /* fib(23) - 1 */
    FIB_VALUE = 17711,
};

static int fibs(void *arg)
{
    struct bench *b = arg;
    for (uint64_t i = 0; i < b->iterations; i++)
        if (fib((void *)(intptr_t)FIB_N) != FIB_VALUE)
            return 1;
    return 0;
}

BENCH(w7_fib_1w, .ops = FIB_SPAWNS, .setup = one_worker_lifo, .teardown = finish,
      .note = "fib(22) with a task per call; per spawn")
{
    inside(b, fibs);
}

BENCH(w7_fib_2w, .ops = FIB_SPAWNS, .setup = two_workers_lifo, .teardown = finish, .unpinned = true,
      .note = "the same, two workers")
{
    inside(b, fibs);
}
