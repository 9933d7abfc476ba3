/* SPDX-License-Identifier: MIT */
/* A searcher beside a worker whose tasks are very short (R43): it hushes that worker, with or
 * without the kernel's help nothing is lost, and what is not short is taken from it. */
#include "harness.h"
#include "plat/cpu.h"
#include "refuse_call.h"
#include "unit/sched/counted.h"

#include <sinew/sinew.h>

#include <errno.h>
#include <sys/syscall.h>

enum { BATCH = 200, ROUNDS_MAX = 4000000, MEETINGS = 300 };

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* Tasks that do nothing, in batches, until `counter` is `wanted`. Returns what it is. */
static uint64_t hurry(enum sni_probe_counter counter, uint64_t wanted, int rounds)
{
    for (int round = 0; round < rounds && counted(counter) < wanted; round++) {
        sn_task *tasks[BATCH];
        for (int i = 0; i < BATCH; i++) {
            tasks[i] = sn_spawn(nothing, NULL);
            CHECK(tasks[i] != NULL);
        }
        for (int i = 0; i < BATCH; i++)
            CHECK_EQ(sn_join(tasks[i], NULL), 0);
    }
    return counted(counter);
}

static void run_with(unsigned workers, sn_task_fn *fn, const sn_hooks *hooks)
{
    sn_runtime *rt;
    sn_runtime_options options = {.workers = workers};
    if (hooks != NULL)
        options.hooks = *hooks;
    CHECK_EQ(sn_runtime_create(&rt, &options), 0);
    CHECK_EQ(sn_runtime_block_on(rt, fn, NULL), 0);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    sn_runtime_destroy(rt);
}

static void run_with_two(sn_task_fn *fn, const sn_hooks *hooks)
{
    run_with(2, fn, hooks);
}

#if !SNI_THREAD_SANITIZED && !SNI_ADDRESS_SANITIZED /* with these, tasks are not short */

static int be_hushed(void *arg)
{
    (void)arg;
    for (uint64_t hushes = 1; hushes <= 3; hushes++) {
        CHECK_GE(hurry(SNI_PROBE_hushes, hushes, ROUNDS_MAX), hushes);
        CHECK_EQ(sn_sleep(SN_MS(1)), 0); /* that ends it */
    }
    return 0;
}

TEST(hurry_a_worker_with_short_tasks_is_hushed, .limit_s = 120)
{
    if (sni_plat_fence_all_prepare(false) != 0 || sni_plat_cpu_count() < 2)
        SKIP("no fence in all threads here, or one processor");
    run_with_two(be_hushed, NULL);
}

static int be_watched(void *arg)
{
    (void)arg;
    return hurry(SNI_PROBE_naps, 10, ROUNDS_MAX) >= 10 ? 0 : -1;
}

TEST(hurry_who_watches_short_tasks_burns_no_processor, .limit_s = 120)
{
    if (sni_plat_cpu_count() < 2)
        SKIP("one processor");
    run_with_two(be_watched, NULL);
}

/* New tasks that end at once, for many times as long as the patience of who watches lasts at first:
 * none of them is taken. */
static int be_spared(void *arg)
{
    (void)arg;
    CHECK_GE(hurry(SNI_PROBE_naps, 10, ROUNDS_MAX), 10);
    uint64_t tastes = counted(SNI_PROBE_tastes);
    CHECK_GE(hurry(SNI_PROBE_naps, 100, ROUNDS_MAX), 100);
    return (int)(counted(SNI_PROBE_tastes) - tastes);
}

TEST(hurry_who_watches_new_tasks_takes_none_of_them, .limit_s = 120)
{
    if (sni_plat_cpu_count() < 2)
        SKIP("one processor");
    run_with_two(be_spared, NULL);
}

enum { YIELDERS = 100, YIELDS_MAX = 300000 };

static uint64_t stolen_before;
static SNI_ATOMIC(uint32_t) shared_out;

typedef struct yielder {
    sn_coro coro;
    int left;
} yielder;

SN_CORO(yielder, self)
{
    SN_BEGIN(self);
    for (; self->left > 0 && sni_atomic_load(&shared_out, relaxed) == 0; self->left--) {
        if (self->left % 64 == 0 && counted(SNI_PROBE_tasks_stolen) >= stolen_before + YIELDERS / 3)
            sni_atomic_store(&shared_out, 1, relaxed);
        SN_YIELD();
    }
    SN_END();
}

/* Tasks that give way all the time, to many others: their queue moves as fast as that of tasks that
 * end at once, and who watches those goes on watching; but there is work for two. */
static int yield_among_many(void *arg)
{
    (void)arg;
    sn_task *tasks[YIELDERS];
    CHECK(hurry(SNI_PROBE_naps, 10, ROUNDS_MAX) >= 10);
    stolen_before = counted(SNI_PROBE_tasks_stolen);
    sni_atomic_store(&shared_out, 0, relaxed);
    for (int i = 0; i < YIELDERS; i++)
        tasks[i] = sn_spawn_coro(yielder, &(yielder){.left = YIELDS_MAX});
    for (int i = 0; i < YIELDERS; i++)
        CHECK_EQ(sn_join(tasks[i], NULL), 0);
    return sni_atomic_load(&shared_out, relaxed) == 1 ? 0 : -1;
}

TEST(hurry_tasks_that_yield_for_long_are_shared_out, .limit_s = 120)
{
    if (sni_plat_cpu_count() < 2)
        SKIP("one processor");
    run_with_two(yield_among_many, NULL);
}

enum { SLEEPERS = 20000, FIRST_SLEEPS = 4 * SLEEPERS, SLEEPS = 40 * SLEEPERS };

static SNI_ATOMIC(uint32_t) slept;
static uint64_t hushes_of_first, hushes_of_all;

typedef struct sleeper {
    sn_coro coro;
    sn_sleep_state nap;
} sleeper;

SN_CORO(sleeper, self)
{
    SN_BEGIN(self);
    while (sni_atomic_load(&slept, relaxed) < SLEEPS) {
        SN_AWAIT(sn_sleep_op(&self->nap, sn_after(SN_US(1))));
        uint32_t n = sni_atomic_fetch_add(&slept, 1, relaxed) + 1;
        if (n == FIRST_SLEEPS)
            hushes_of_first = counted(SNI_PROBE_hushes);
        if (n == SLEEPS)
            hushes_of_all = counted(SNI_PROBE_hushes);
    }
    SN_END();
}

/* More sleepers than two workers can wake in time. Each worker has always some of its own to wake,
 * when it has run those that it woke before, and need not care what the other does. */
static int oversleep(void *arg)
{
    (void)arg;
    static sn_task *tasks[SLEEPERS];
    sleeper frame;
    sni_atomic_store(&slept, 0, relaxed);
    for (int i = 0; i < SLEEPERS; i++)
        tasks[i] = sn_spawn_coro(sleeper, &frame);
    for (int i = 0; i < SLEEPERS; i++)
        CHECK_EQ(sn_join(tasks[i], NULL), 0);
    CHECK_LT(hushes_of_all - hushes_of_first, 40); /* it was some 200 */
    return 0;
}

TEST(hurry_who_has_sleepers_to_wake_does_not_watch_others, .limit_s = 120)
{
    run_with_two(oversleep, NULL);
}

enum { WAITS = 200 };

static SNI_ATOMIC(uint32_t) hurries_on, waited;

static int hurry_until_waited(void *arg)
{
    (void)arg;
    while (sni_atomic_load(&waited, relaxed) == 0) {
        sni_atomic_store(&hurries_on, sni_worker_current()->index, relaxed);
        (void)hurry(SNI_PROBE_hushes, UINT64_MAX, 10);
    }
    return 0;
}

static int sleep_a_little(void *arg)
{
    (void)arg;
    return sn_sleep(SN_US(50));
}

/* Waits for the other worker as a searcher would, with a sleeper of its own that is due before the
 * patience is at an end. Returns how often that sleeper was not woken. */
static int outwait_with_sleeper(void *arg)
{
    (void)arg;
    sn_task *sleeping[WAITS];
    int in_vain = 0;
    while (sni_atomic_load(&hurries_on, relaxed) == sni_worker_current()->index)
        sni_cpu_pause(); /* so the other worker takes it */
    for (int i = 0; i < WAITS; i++) {
        sleeping[i] = sn_spawn(sleep_a_little, NULL, .local = true);
        sn_yield(); /* it sleeps now */
        in_vain += sni_worker_let_hurry(sni_worker_current(), false);
    }
    sni_atomic_store(&waited, 1, relaxed);
    for (int i = 0; i < WAITS; i++)
        CHECK_EQ(sn_join(sleeping[i], NULL), 0);
    return in_vain;
}

static int outwait(void *arg)
{
    (void)arg;
    sni_atomic_store(&hurries_on, sni_worker_current()->index, relaxed);
    sni_atomic_store(&waited, 0, relaxed);
    sn_task *waits = sn_spawn(outwait_with_sleeper, NULL, .local = true);
    sn_task *hurries = sn_spawn(hurry_until_waited, NULL);
    CHECK_EQ(sn_join(waits, NULL), 0);
    return sn_join(hurries, NULL);
}

TEST(hurry_who_waits_for_others_wakes_its_own_sleepers, .limit_s = 120)
{
    run_with_two(outwait, NULL);
}

#endif

/* ---- what is not short is taken by the one who stayed --------------------------------------- */

static SNI_ATOMIC(uint32_t) met;

static int meet(void *arg)
{
    (void)arg;
    sni_atomic_store(&met, 1, release); /* release: to the one who waits */
    return 0;
}

/* A task that another worker must run, since this one does not go on before. */
static void have_met(void)
{
    sni_atomic_store(&met, 0, relaxed); /* relaxed: the spawn publishes it */
    sn_task *other = sn_spawn(meet, NULL);
    sn_task *next = sn_spawn(nothing, NULL);    /* so that the first is not in the slot */
    while (sni_atomic_load(&met, acquire) == 0) /* acquire: pairs with the store in meet */
        sni_cpu_pause();
    CHECK_EQ(sn_join(other, NULL), 0);
    CHECK_EQ(sn_join(next, NULL), 0);
}

/* Short tasks before each. */
static int hurry_and_meet(void *arg)
{
    (void)arg;
    for (int i = 0; i < MEETINGS; i++) {
        (void)hurry(SNI_PROBE_hushes, UINT64_MAX, 10);
        have_met();
    }
    return 0;
}

TEST(hurry_a_hushed_worker_that_gets_stuck_is_helped, .limit_s = 60)
{
    run_with_two(hurry_and_meet, NULL);
}

TEST(hurry_without_a_fence_in_all_threads_nobody_is_hushed, .limit_s = 60)
{
    refuse_call(SYS_membarrier, ENOSYS);
    run_with_two(hurry_and_meet, NULL);
}

static void forbid(unsigned worker, void *arg)
{
    (void)arg;
    (void)worker;
    refuse_call(SYS_membarrier, EPERM);
}

TEST(hurry_a_fence_in_all_threads_that_is_forbidden_later_loses_nothing, .limit_s = 60)
{
    run_with_two(hurry_and_meet, &(sn_hooks){.thread_started = forbid});
}

/* ---- who watches one worker does not forget another ----------------------------------------- */

static SNI_ATOMIC(uint32_t) have_all_met;

static int hurry_until_met(void *arg)
{
    (void)arg;
    while (sni_atomic_load(&have_all_met, relaxed) == 0)
        (void)hurry(SNI_PROBE_hushes, UINT64_MAX, 10);
    return 0;
}

static int meet_beside_hurry(void *arg)
{
    (void)arg;
    sni_atomic_store(&have_all_met, 0, relaxed);
    sn_task *hurries = sn_spawn(hurry_until_met, NULL);
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(sn_sleep(SN_MS(2)), 0); /* so that the third begins to watch */
        have_met();
    }
    sni_atomic_store(&have_all_met, 1, relaxed);
    return sn_join(hurries, NULL);
}

/* Forgotten, each would last until the kernel takes the processor from the hurried one for once. */
TEST(hurry_a_worker_that_gets_stuck_beside_a_hurried_one_is_helped, .limit_s = 20)
{
    run_with(3, meet_beside_hurry, NULL);
}

/* ---- who has little to do is not hurried ----------------------------------------------------- */

enum { RARE = 2000, RARE_PAUSES = 60 };

/* A task now and then, as soon as the other begins to search again: a few moves in hardly any time
 * are no hurry, and to be taken for it would make each of these wait. */
static int meet_now_and_then(void *arg)
{
    (void)arg;
    for (int i = 0; i < RARE; i++) {
        have_met();
        sni_cpu_pauses(RARE_PAUSES);
    }
    return (int)(counted(SNI_PROBE_hushes) + counted(SNI_PROBE_naps));
}

TEST(hurry_a_worker_with_little_to_do_is_not_watched, .limit_s = 60)
{
    run_with_two(meet_now_and_then, NULL);
}
