/* SPDX-License-Identifier: MIT */
/* Whose turn it is: nobody is starved by tasks that stay on their worker (R40, R44), the world is
 * looked at after any number of turns (R85), tasks stay where they are if nobody may steal (R47),
 * and in a pause nobody runs (R160). */
#include "unit/task/with_runtime.h"

#include "runtime/runtime.h"
#include "sched/sched.h"

#include <pthread.h>
#include <sinew/errno.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_bool over;

static int take_turns(void *arg)
{
    (void)arg;
    while (!atomic_load(&over))
        sn_yield();
    return 0;
}

static int end_turns(void *arg)
{
    (void)arg;
    atomic_store(&over, true);
    return 0;
}

/* ---- local tasks ----------------------------------------------------------------------------- */

/* Two of them always fill the inbox of their worker; a low task is in the queue of all. */
TASK_TEST(local_tasks_that_give_way_to_each_other_starve_nobody)
{
    (void)arg;
    atomic_store(&over, false);
    sn_task *local[8];
    for (int i = 0; i < 8; i++)
        local[i] = sn_spawn(take_turns, NULL, .local = true);
    CHECK_EQ(sn_join(sn_spawn(end_turns, NULL, .priority = SN_LOW), NULL), 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(sn_join(local[i], NULL), 0);
    return 0;
}

/* ---- many turns ------------------------------------------------------------------------------ */

static int sleep_and_end(void *arg)
{
    CHECK_EQ(sn_sleep(SN_MS(1)), 0);
    return end_turns(arg);
}

/* As after two thousand million turns without a timer: the next one still rings. */
static int skip_turns(void *arg)
{
    struct sni_worker *w = sni_worker_current();
    atomic_store(&over, false);
    sn_task *busy = sn_spawn(take_turns, NULL);
    for (uint32_t part = 0; part < 4; part++) {
        for (int i = 0; i < 200; i++) /* the worker has its chances to keep up */
            sn_yield();
        w->tick += 0x30000000u;
    }
    sn_task *sleeper = sn_spawn(sleep_and_end, arg);
    CHECK_EQ(sn_join(busy, NULL), 0);
    return sn_join(sleeper, NULL);
}

TEST(a_timer_rings_on_a_worker_that_was_busy_for_ever)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, skip_turns, NULL), 0);
}

/* ---- no stealing (R47) ----------------------------------------------------------------------- */

enum { SPAWNED = 100 };

static atomic_int ran_here, ran_elsewhere;

static int note_where(void *spawner)
{
    atomic_fetch_add(sni_worker_current() == spawner ? &ran_here : &ran_elsewhere, 1);
    return 0;
}

/* Whose worker has no work again and again, and looks for some. */
static int come_and_go(void *arg)
{
    (void)arg;
    while (!atomic_load(&over))
        (void)sn_sleep(SN_US(50));
    return 0;
}

/* Leave tasks lying about for as long as *arg nanoseconds, or until one of them is taken. */
static int spawn_and_compute(void *arg)
{
    sn_task *tasks[SPAWNED];
    for (int i = 0; i < SPAWNED; i++)
        tasks[i] = sn_spawn(note_where, sni_worker_current());
    int64_t end = sn_now() + *(int64_t *)arg;
    while (atomic_load(&ran_elsewhere) == 0 && sn_now() < end)
        ;
    for (int i = 0; i < SPAWNED; i++)
        CHECK_EQ(sn_join(tasks[i], NULL), 0);
    return 0;
}

static void leave_tasks_lying_about(const sn_runtime_options *opts, int64_t ns)
{
    sn_runtime *rt;
    atomic_store(&over, false);
    atomic_store(&ran_here, 0);
    atomic_store(&ran_elsewhere, 0);
    CHECK_EQ(sn_runtime_create(&rt, opts), 0);
    for (int i = 0; i < 6; i++)
        CHECK(sn_runtime_spawn(rt, come_and_go, NULL, .detached = true) == NULL);
    CHECK_EQ(sn_runtime_block_on(rt, spawn_and_compute, &ns), 0);
    atomic_store(&over, true);
    sn_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&ran_here) + atomic_load(&ran_elsewhere), SPAWNED);
}

TEST(tasks_are_taken_from_a_worker_that_computes_unless_nobody_may_steal, .limit_s = 60)
{
    for (int lifo = 0; lifo < 2; lifo++) {
        sn_runtime_options opts = {.workers = 3, .lifo = lifo == 1};
        leave_tasks_lying_about(&opts, SN_S(20));
        CHECK_GT(atomic_load(&ran_elsewhere), 0);
        opts.no_steal = true;
        leave_tasks_lying_about(&opts, SN_MS(30));
        CHECK_EQ(atomic_load(&ran_elsewhere), 0);
    }
}

/* ---- pauses ---------------------------------------------------------------------------------- */

static atomic_long turns;
static atomic_int pauses;

static int count_turns(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        atomic_fetch_add(&turns, 1);
        if (atomic_load(&turns) % 50 == 0)
            (void)sn_sleep(SN_US(20)); /* so that workers fall asleep and wake up, too */
        else
            sn_yield();
    }
    return 0;
}

static void *pause_often(void *arg)
{
    struct sni_sched *sched = arg;
    for (int i = 0; i < 300; i++) {
        if (sni_sched_pause(sched) < 0)
            continue;
        long before = atomic_load(&turns);
        usleep(100);
        CHECK_EQ(atomic_load(&turns), before);
        sni_sched_resume(sched);
        atomic_fetch_add(&pauses, 1);
    }
    return NULL;
}

TEST(in_a_pause_nobody_runs_whoever_else_wants_one, .limit_s = 100)
{
    sn_runtime *rt;
    pthread_t threads[2];
    atomic_store(&over, false);
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 3}), 0);
    for (int i = 0; i < 4; i++)
        CHECK(sn_runtime_spawn(rt, count_turns, NULL, .detached = true) == NULL);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, pause_often, sni_runtime_sched(rt)), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    atomic_store(&over, true);
    sn_runtime_destroy(rt);
    CHECK_GT(atomic_load(&pauses), 0);
}
