/* SPDX-License-Identifier: MIT */
/* Storms: many tasks, several workers, threads outside, everything at once (R27, R40, R43). They
 * look for lost wakes (a hang, cut by the time limit), for results that are not right, and,
 * under the sanitizers, for races and misused memory. */
#include "harness.h"
#include "stress/gate.h"

#include <pthread.h>
#include <sinew/sinew.h>
#include <stdatomic.h>
#include <stdint.h>

static int run_with(const sn_runtime_options *opts, sn_task_fn *fn, void *arg)
{
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, opts), 0);
    int rc = sn_runtime_block_on(rt, fn, arg);
    sn_runtime_destroy(rt);
    return rc;
}

static const sn_runtime_options kinds[] = {
    {.workers = 4},
    {.workers = 4, .lifo = true},
    {.workers = 3, .no_steal = true},
    {.workers = 2, .pin = true},
    {.single_threaded = true},
};

#define FOR_EACH_KIND(opts)                                                                       \
    for (const sn_runtime_options *opts = kinds; opts < kinds + sizeof(kinds) / sizeof(kinds[0]); \
         opts++)

/* ---- spawn storm ------------------------------------------------------------------------- */

static int leaf(void *arg)
{
    if ((intptr_t)arg % 3 == 0)
        sn_yield();
    return 1;
}

static int branch(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    if (depth == 0)
        return leaf(arg);
    sn_task *t[4];
    for (int i = 0; i < 4; i++)
        t[i] = sn_spawn(branch, (void *)(depth - 1), .stack_bytes = i == 3 ? 16 << 10 : 0);
    int sum = 0;
    for (int i = 0; i < 4; i++)
        sum += sn_join(t[(i + depth) % 4], NULL);
    return sum;
}

TEST(a_storm_of_spawns_and_joins_adds_up, .limit_s = 60)
{
    FOR_EACH_KIND(opts)
    CHECK_EQ(run_with(opts, branch, (void *)6), 4096);
}

/* ---- wake storm from threads outside ------------------------------------------------------ */

enum {
    SLEEPERS = 64,
    ROUNDS = 200,
    THREADS = 3,
};

static struct gate gate;
static atomic_bool stop;
static atomic_int passes;

static int pass_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        gate_pass(&gate);
        atomic_fetch_add(&passes, 1);
    }
    return 0;
}

static void *let_through(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop))
        gate_let(&gate, 3);
    return NULL;
}

static int sleep_and_be_woken(void *arg)
{
    (void)arg;
    sn_task *t[SLEEPERS];
    for (int i = 0; i < SLEEPERS; i++)
        t[i] = sn_spawn(pass_often, NULL, .local = i % 8 == 0);
    for (int i = 0; i < SLEEPERS; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    return 0;
}

TEST(threads_outside_wake_tasks_and_none_is_forgotten, .limit_s = 60)
{
    FOR_EACH_KIND(opts)
    {
        gate_init(&gate);
        atomic_store(&stop, false);
        atomic_store(&passes, 0);
        pthread_t thread[THREADS];
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_create(&thread[i], NULL, let_through, NULL), 0);
        CHECK_EQ(run_with(opts, sleep_and_be_woken, NULL), 0);
        atomic_store(&stop, true);
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_join(thread[i], NULL), 0);
        CHECK_EQ(passes, SLEEPERS * ROUNDS);
    }
}

/* ---- coroutines woken from everywhere ------------------------------------------------------ */

static sn_signal bells[16];

typedef struct ringer {
    sn_coro coro;
    int i, sum;
    int bell;
} ringer;

SN_CORO(ringer, self)
{
    int n;
    SN_BEGIN(self);
    while (self->sum < 3000) {
        SN_AWAIT_INTO(n, sn_signal_recv_op(&bells[self->bell]));
        self->sum += n;
    }
    SN_RETURN(self->sum);
    SN_END();
}

static void *ring_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++)
        for (int k = 0; k < 16; k++)
            CHECK_EQ(sn_signal_send(&bells[k], 1), 0);
    return NULL;
}

static int listen(void *arg)
{
    (void)arg;
    sn_task *t[16];
    for (int i = 0; i < 16; i++) {
        ringer frame = {.bell = i};
        t[i] = sn_spawn_coro(ringer, &frame);
    }
    for (int i = 0; i < 16; i++)
        CHECK_EQ(sn_join(t[i], NULL), 3000);
    return 0;
}

TEST(coroutine_tasks_lose_no_wake_from_threads_outside, .limit_s = 60)
{
    FOR_EACH_KIND(opts)
    {
        pthread_t thread[THREADS];
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_create(&thread[i], NULL, ring_all, NULL), 0);
        CHECK_EQ(run_with(opts, listen, NULL), 0);
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_join(thread[i], NULL), 0);
    }
}

/* ---- life and death ----------------------------------------------------------------------- */

static int spawn_and_forget(void *arg)
{
    (void)arg;
    for (int i = 0; i < 50; i++)
        CHECK_EQ(sn_detach(sn_spawn(leaf, (void *)(intptr_t)i)), 0);
    return 0;
}

TEST(runtimes_come_and_go_with_tasks_still_running, .limit_s = 60)
{
    for (int i = 0; i < 60; i++)
        FOR_EACH_KIND(opts)
    CHECK_EQ(run_with(opts, spawn_and_forget, NULL), 0);
}

static int pass_once(void *arg)
{
    (void)arg;
    gate_pass(&gate);
    return 0;
}

static void *let_one_through(void *arg)
{
    (void)arg;
    while (gate_waiting(&gate) == 0)
        ;
    gate_let(&gate, 1);
    return NULL;
}

static void *burn(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop))
        ;
    return NULL;
}

enum {
    BURNERS = 6,
};

/* The thread that woke the last task is still inside the runtime when that one is destroyed. It
 * must lose its processor in the middle for that, so the processors are kept busy. */
TEST(a_runtime_is_not_freed_under_a_thread_that_just_woke_its_last_task, .limit_s = 60)
{
    pthread_t burner[BURNERS];
    for (int i = 0; i < BURNERS; i++)
        CHECK_EQ(pthread_create(&burner[i], NULL, burn, NULL), 0);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        gate_init(&gate);
        CHECK_EQ(pthread_create(&thread, NULL, let_one_through, NULL), 0);
        CHECK_EQ(run_with(&kinds[i % 5], pass_once, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < BURNERS; i++)
        CHECK_EQ(pthread_join(burner[i], NULL), 0);
}

static void *block_on_often(void *arg)
{
    for (int i = 0; i < 200; i++)
        CHECK_EQ(sn_runtime_block_on(arg, branch, (void *)2), 16);
    return NULL;
}

TEST(several_threads_block_on_one_runtime, .limit_s = 60)
{
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, block_on_often, rt), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    sn_runtime_destroy(rt);
}

/* ---- migration (R25): who am I, read twice around a move ---------------------------------- */

static atomic_int moves;

static int move_around(void *arg)
{
    uint64_t id = sn_task_id();
    uint64_t thread = sni_plat_thread_id();
    for (int i = 0; i < 500; i++) {
        sn_yield();
        if (sn_task_id() != id)
            FAIL("task %d became another one when it moved", (int)(intptr_t)arg);
        uint64_t now = sni_plat_thread_id();
        moves += now != thread;
        thread = now;
    }
    return 0;
}

static int move_many(void *arg)
{
    (void)arg;
    sn_task *t[40];
    for (int i = 0; i < 40; i++)
        t[i] = sn_spawn(move_around, (void *)(intptr_t)i);
    for (int i = 0; i < 40; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    return 0;
}

/* Under link-time optimisation this is where a thread pointer kept in a register would show. */
TEST(a_fiber_that_moves_between_threads_stays_itself, .limit_s = 60)
{
    while (atomic_load(&moves) < 100)
        CHECK_EQ(run_with(&(sn_runtime_options){.workers = 4}, move_many, NULL), 0);
}
