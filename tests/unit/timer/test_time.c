/* SPDX-License-Identifier: MIT */
/* Sleeping, intervals, time-outs, and virtual time (R71, R85). */
#include "unit/task/with_runtime.h"

#include "base/atomic.h"
#include "plat/clock.h"

#include <pthread.h>
#include <sinew/errno.h>
#include <stdio.h>
#include <string.h>

/* ---- in real time: what holds however slow the machine is ------------------------------------ */

TASK_TEST(a_sleep_is_never_too_short)
{
    (void)arg;
    for (int i = 1; i <= 5; i++) {
        int64_t before = sn_now();
        CHECK_EQ(sn_sleep(SN_US(300) * i), 0);
        CHECK_GE(sn_now() - before, SN_US(300) * i);
    }
    sn_deadline at = sn_after(SN_MS(2));
    CHECK_EQ(sn_sleep_until(at), 0);
    CHECK_GE(sn_now(), at.ns);
    return 0;
}

TASK_TEST(a_sleep_until_the_past_returns_at_once)
{
    (void)arg;
    CHECK_EQ(sn_sleep_until(SN_NOWAIT), 0);
    CHECK_EQ(sn_sleep_until(sn_after(-SN_S(1))), 0);
    CHECK_EQ(sn_sleep(0), 0);
    CHECK_EQ(sn_sleep(-SN_S(5)), 0);
    return 0;
}

static int nap(void *arg)
{
    return sn_sleep(SN_US(100) * (int)(intptr_t)arg);
}

TASK_TEST(many_tasks_sleep_at_the_same_time)
{
    (void)arg;
    enum { N = 200 };
    sn_task *t[N];
    for (intptr_t i = 0; i < N; i++)
        CHECK((t[i] = sn_spawn(nap, (void *)(i % 50))) != NULL);
    for (int i = 0; i < N; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    return 0;
}

typedef struct napper {
    sn_coro coro;
    sn_sleep_state sleep;
    int64_t began;
    int rounds;
} napper;

SN_CORO(napper, self)
{
    SN_BEGIN(self);
    for (; self->rounds > 0; self->rounds--) {
        self->began = sn_now();
        SN_AWAIT(sn_sleep_op(&self->sleep, sn_after(SN_US(500))));
        if (sn_now() - self->began < SN_US(500))
            SN_RETURN(-EIO);
    }
    SN_END();
}

TASK_TEST(a_coroutine_sleeps_by_awaiting)
{
    (void)arg;
    sn_task *t[20];
    for (int i = 0; i < 20; i++) {
        napper frame = {.rounds = 5};
        CHECK((t[i] = sn_spawn_coro(napper, &frame)) != NULL);
    }
    for (int i = 0; i < 20; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    return 0;
}

typedef struct impatient {
    sn_coro coro;
    sn_sleep_state is_short;
    sn_sleep_state is_long;
    sn_fut_race2 race;
} impatient;

SN_CORO(impatient, self)
{
    SN_BEGIN(self);
    SN_AWAIT(sn_fut_race2_init(&self->race, sn_sleep_op(&self->is_short, sn_after(SN_MS(1))),
                               sn_sleep_op(&self->is_long, sn_after(SN_S(3600)))));
    SN_END();
}

TASK_TEST(a_sleep_that_loses_a_race_is_cleared)
{
    (void)arg;
    sn_task *t[10];
    for (int i = 0; i < 10; i++) {
        impatient frame;
        CHECK((t[i] = sn_spawn_coro(impatient, &frame)) != NULL);
    }
    for (int i = 0; i < 10; i++)
        CHECK_GE(sn_join(t[i], NULL), 0);
    return 0;
}

/* ---- a sleep's waker ------------------------------------------------------------------------ */

struct told {
    SNI_ATOMIC(int) references;
    SNI_ATOMIC(int) wakes;
};

static void *add_reference(void *data)
{
    sni_atomic_fetch_add(&((struct told *)data)->references, 1, relaxed);
    return data;
}

static void drop_reference(void *data)
{
    sni_atomic_fetch_sub(&((struct told *)data)->references, 1, relaxed);
}

static int count_wake(void *data)
{
    sni_atomic_fetch_add(&((struct told *)data)->wakes, 1, relaxed);
    return 0;
}

static const sn_waker_vtable told_vtable = {
    .clone = add_reference, .wake_by_ref = count_wake, .drop = drop_reference};

static bool pends(sn_future *fut, struct told *told)
{
    sn_waker waker = {.vt = &told_vtable, .data = told};
    return sn_poll_pending(sn_future_poll(fut, &(sn_cx){&waker}));
}

static void sleep_through(sn_future *fut, struct told *told)
{
    while (pends(fut, told))
        CHECK_EQ(sn_sleep(SN_US(100)), 0);
    CHECK_EQ(sn_sleep(SN_US(300)), 0); /* the wake comes after the end, perhaps from elsewhere */
}

TASK_TEST(a_sleep_wakes_whoever_polled_it_last_and_once)
{
    (void)arg;
    struct told first = {{0}, {0}}, last = {{0}, {0}};
    sn_sleep_state state;
    sn_future *fut = sn_sleep_op(&state, sn_after(SN_MS(3)));
    if (pends(fut, &first)) {
        CHECK_EQ(sni_atomic_load(&first.references, relaxed), 1);
        bool pended = pends(fut, &last); /* not, where the machine stood still meanwhile */
        CHECK_EQ(sni_atomic_load(&first.references, relaxed), 0);
        CHECK_EQ(sni_atomic_load(&last.references, relaxed), pended ? 1 : 0);
        CHECK_EQ(sni_atomic_load(&first.wakes, relaxed), pended ? 0 : 1);
        if (pended)
            sleep_through(fut, &last);
        CHECK_EQ(sni_atomic_load(&last.wakes, relaxed), pended ? 1 : 0);
    }
    CHECK_EQ(sni_atomic_load(&first.references, relaxed), 0);
    CHECK_EQ(sni_atomic_load(&last.references, relaxed), 0);
    return 0;
}

TASK_TEST(a_sleep_that_is_dropped_wakes_nobody_and_keeps_no_waker)
{
    (void)arg;
    struct told told = {{0}, {0}};
    sn_sleep_state state;
    sn_future *fut = sn_sleep_op(&state, sn_after(SN_S(3600)));
    CHECK_EQ(sn_future_drop(fut), 0); /* never polled */
    fut = sn_sleep_op(&state, sn_after(SN_S(3600)));
    CHECK(pends(fut, &told));
    CHECK(pends(fut, &told));
    CHECK_EQ(sni_atomic_load(&told.references, relaxed), 1);
    CHECK_EQ(sn_future_drop(fut), 0);
    CHECK_EQ(sni_atomic_load(&told.references, relaxed), 0);
    CHECK_EQ(sni_atomic_load(&told.wakes, relaxed), 0);
    return 0;
}

TASK_TEST(a_sleep_that_has_rung_is_dropped_without_a_second_drop_of_its_waker)
{
    (void)arg;
    struct told told = {{0}, {0}};
    sn_sleep_state state;
    sn_future *fut = sn_sleep_op(&state, sn_after(SN_US(200)));
    if (!pends(fut, &told))
        return 0;
    while (sni_atomic_load(&told.wakes, relaxed) == 0)
        CHECK_EQ(sn_sleep(SN_US(100)), 0);
    CHECK_EQ(sn_future_drop(fut), 0);
    CHECK_EQ(sni_atomic_load(&told.references, relaxed), 0);
    CHECK_EQ(sni_atomic_load(&told.wakes, relaxed), 1);
    return 0;
}

TEST(a_sleep_of_a_coroutine_is_small)
{
    CHECK_LE(sizeof(sn_sleep_state), sizeof(sn_future) + 8 + 7 * sizeof(void *) + 4);
}

TEST(outside_a_runtime_a_sleep_blocks_the_thread)
{
    int64_t before = sn_now();
    CHECK_EQ(sn_sleep(SN_MS(3)), 0);
    CHECK_GE(sn_now() - before, SN_MS(3));
    CHECK_GE(sni_plat_now_ns(), before);
    sn_sleep_state state;
    sn_future *fut = sn_sleep_op(&state, sn_after(SN_MS(1)));
    CHECK_EQ(sn_block_on_simple(fut, NULL), -EPERM); /* nobody would wake it */
}

/* ---- a worker that is stuck --------------------------------------------------------------- */

static SNI_ATOMIC(int) stop;

/* Burns the processor until somebody who slept on the same worker stops it. */
static int burn(void *arg)
{
    (void)arg;
    int64_t until = sni_plat_now_ns() + SN_S(10);
    while (!sni_atomic_load(&stop, acquire))
        if (sni_plat_now_ns() > until)
            return -ETIMEDOUT;
    return 0;
}

static int sleep_beside_a_burner(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5; i++) {
        sni_atomic_store(&stop, 0, release);
        sn_task *burner = sn_spawn(burn, NULL, .local = true); /* on this worker */
        CHECK_EQ(sn_sleep(SN_MS(2)), 0);                       /* whose alarm this is */
        sni_atomic_store(&stop, 1, release);
        CHECK_EQ(sn_join(burner, NULL), 0);
    }
    return 0;
}

TEST(an_alarm_rings_although_its_worker_is_stuck_in_a_long_task, .limit_s = 80)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 2}, sleep_beside_a_burner, NULL), 0);
}

/* ---- time-outs ------------------------------------------------------------------------------ */

static int until_cancelled(void *arg)
{
    int rc = 0;
    for (int i = 0; i < 100000 && !sn_cancelled(); i++) {
        rc = sn_sleep(SN_US(200));
        CHECK(rc == 0 || (rc == -ETIMEDOUT && sn_cancelled()));
    }
    return sn_cancelled() ? *(int *)arg : 1;
}

static int at_once(void *arg)
{
    return (int)(intptr_t)arg;
}

TASK_TEST(a_time_out_cancels_and_waits)
{
    (void)arg;
    CHECK_EQ(sn_timeout(until_cancelled, &(int){-EIO}, SN_MS(3)), -ETIMEDOUT);
    CHECK_EQ(sn_timeout(until_cancelled, &(int){7}, SN_MS(3)), 7);
    CHECK(!sn_cancelled());
    CHECK_EQ(sn_timeout(at_once, (void *)42, SN_S(100)), 42);
    CHECK_EQ(sn_timeout(NULL, NULL, SN_S(100)), -EINVAL);
    return 0;
}

TEST(a_time_out_outside_a_runtime_is_refused)
{
    CHECK_EQ(sn_timeout(at_once, NULL, SN_MS(1)), -EPERM);
}

/* ---- virtual time ---------------------------------------------------------------------------- */

#define VIRTUAL .single_threaded = true, .virtual_time = true

static int answers(void *arg)
{
    char byte;
    size_t got;
    while (sn_read_exact(arg, &byte, 1, &got, SN_FOREVER) == 0)
        CHECK_EQ(sn_write_all(arg, &byte, 1, NULL, SN_FOREVER), 0);
    return 0;
}

/* Data that is there already comes before any deadline. */
static int asks_in_time(void *arg)
{
    (void)arg;
    sn_conn *pair[2];
    CHECK_EQ(sn_conn_pair(pair), 0);
    sn_task *t = sn_spawn(answers, pair[1]);
    for (int i = 0; i < 100; i++) {
        char byte = 'x';
        int64_t began = sn_now();
        CHECK_EQ(sn_write_all(pair[0], &byte, 1, NULL, sn_after(SN_S(5))), 0);
        CHECK_EQ(sn_read(pair[0], &byte, 1, sn_after(SN_S(5))), 1);
        CHECK_EQ(sn_now(), began);
    }
    CHECK_EQ(sn_close(pair[0]), 0);
    CHECK_EQ(sn_join(t, NULL), 0);
    CHECK_EQ(sn_close(pair[1]), 0);
    return 0;
}

TEST(virtual_time_does_not_pass_while_there_is_data_to_read)
{
    sn_io_driver drivers[] = {SN_IO_EPOLL, SN_IO_POLL, SN_IO_URING};
    for (int i = 0; i < 3; i++) {
        sn_runtime *rt = NULL;
        int rc = sn_runtime_create(&rt, &(sn_runtime_options){VIRTUAL, .io = drivers[i]});
        if (rc < 0 && drivers[i] == SN_IO_URING)
            SKIP("io_uring is not to be had here");
        CHECK_EQ(rc, 0);
        CHECK_EQ(sn_runtime_block_on(rt, asks_in_time, NULL), 0);
        CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
        sn_runtime_destroy(rt);
    }
}

static int a_day(void *arg)
{
    (void)arg;
    int64_t began = sn_now();
    for (int i = 0; i < 24 * 60; i++) {
        CHECK_EQ(sn_sleep(SN_S(60)), 0);
        CHECK_GE(sn_now() - began, SN_S(60) * (i + 1));
    }
    CHECK_LT(sn_now() - began, SN_S(24 * 3600) + 24 * 60 * SN_US(132)); /* ticks, nothing else */
    return 0;
}

TEST(a_day_of_virtual_time_passes_in_no_time)
{
    int64_t before = sni_plat_now_ns();
    CHECK_EQ(run_with(&(sn_runtime_options){VIRTUAL}, a_day, NULL), 0);
    CHECK_LT(sni_plat_now_ns() - before, SN_S(60)); /* not a speed: a day is 86,400 s */
}

struct log {
    int n;
    char text[4000];
};

struct entry {
    struct log *log;
    int period_ms;
    int times;
};

static int log_ticks(void *arg)
{
    struct entry *e = arg;
    for (int i = 0; i < e->times; i++) {
        CHECK_EQ(sn_sleep(SN_MS(e->period_ms)), 0);
        e->log->n += snprintf(e->log->text + e->log->n, sizeof(e->log->text) - (size_t)e->log->n,
                              "%d@%lld ", e->period_ms, (long long)(sn_now() / SN_MS(1)));
    }
    return 0;
}

static int three_clocks(void *arg)
{
    struct log *log = arg;
    struct entry e[] = {{log, 700, 10}, {log, 300, 20}, {log, 1100, 6}};
    sn_task *t[3];
    for (int i = 0; i < 3; i++)
        CHECK((t[i] = sn_spawn(log_ticks, &e[i])) != NULL);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    return 0;
}

TEST(virtual_time_gives_the_same_run_every_time)
{
    static struct log first, again;
    const sn_runtime_options opts = {VIRTUAL, .timer_tick_ns = 1};
    CHECK_EQ(run_with(&opts, three_clocks, &first), 0);
    CHECK_EQ(run_with(&opts, three_clocks, &again), 0);
    CHECK_STR_EQ(first.text, again.text);
    CHECK_STR_HAS(first.text, "300@1300 300@1600 700@1700 300@1900 1100@2100 300@2200 700@2400 ");
}

TEST(virtual_time_needs_a_single_thread)
{
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.virtual_time = true}), -EINVAL);
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.timer_tick_ns = -5}), -EINVAL);
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.timer_tick_ns = SN_S(2)}), -EINVAL);
}

static int busy_ticks(void *arg)
{
    sn_missed missed = (sn_missed)(intptr_t)arg;
    static const int64_t expected[3][5] = {
        [SN_MISSED_BURST] = {100, 450, 450, 450, 500},
        [SN_MISSED_DELAY] = {100, 450, 550, 650, 750},
        [SN_MISSED_SKIP] = {100, 450, 500, 600, 700},
    };
    sn_interval iv;
    int64_t began = sn_now();
    CHECK_EQ(sn_interval_init(&iv, SN_MS(100), missed), 0);
    for (int i = 0; i < 5; i++) {
        int rc = sn_interval_wait(&iv);
        CHECK_EQ(rc, missed == SN_MISSED_SKIP && i == 1 ? 2 : 0);
        CHECK_EQ((sn_now() - began) / SN_MS(1), expected[missed][i]);
        if (i == 0)
            CHECK_EQ(sn_sleep(SN_MS(350)), 0); /* busy: ticks at 200, 300 and 400 pass */
    }
    return 0;
}

TEST(an_interval_does_not_drift_and_treats_missed_ticks_as_told)
{
    const sn_runtime_options opts = {VIRTUAL, .timer_tick_ns = 1};
    for (intptr_t missed = SN_MISSED_BURST; missed <= SN_MISSED_SKIP; missed++)
        CHECK_EQ(run_with(&opts, busy_ticks, (void *)missed), 0);
    sn_interval iv;
    CHECK_EQ(sn_interval_init(&iv, 0, SN_MISSED_SKIP), -EINVAL);
    CHECK_EQ(sn_interval_init(&iv, -1, SN_MISSED_SKIP), -EINVAL);
    CHECK_EQ(sn_interval_init(&iv, 1, (sn_missed)3), -EINVAL);
}

static int order_of_deadlines(void *arg)
{
    (void)arg;
    struct log log = {.n = 0};
    struct entry e[100];
    sn_task *t[100];
    for (int i = 0; i < 100; i++) {
        e[i] = (struct entry){&log, (i * 37) % 100 + 1, 1};
        CHECK((t[i] = sn_spawn(log_ticks, &e[i])) != NULL);
    }
    for (int i = 0; i < 100; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    const char *at = log.text;
    for (int i = 1; i <= 100; i++) {
        char expected[32];
        int n = snprintf(expected, sizeof(expected), "%d@%d ", i, 1000 + i);
        CHECK(strncmp(at, expected, (size_t)n) == 0);
        at += n;
    }
    return 0;
}

TEST(sleepers_wake_in_the_order_of_their_deadlines)
{
    const sn_runtime_options opts = {VIRTUAL, .timer_tick_ns = 1};
    CHECK_EQ(run_with(&opts, order_of_deadlines, NULL), 0);
    const sn_runtime_options seeded = {VIRTUAL, .timer_tick_ns = 1, .seed = 7};
    CHECK_EQ(run_with(&seeded, order_of_deadlines, NULL), 0);
}

/* ---- the end of a runtime -------------------------------------------------------------------- */

static int sleep_long(void *arg)
{
    (void)arg;
    return sn_sleep(SN_S(3600));
}

TEST(a_runtime_with_sleepers_can_be_shut_down, .limit_s = 20)
{
    for (int level = 0; level < 2; level++) {
        sn_runtime *rt;
        sn_runtime_options opts = {.workers = 2, .single_threaded = level == 0};
        CHECK_EQ(sn_runtime_create(&rt, &opts), 0);
        for (int i = 0; i < 10; i++)
            CHECK_PTR_EQ(sn_runtime_spawn(rt, sleep_long, NULL, .detached = true), NULL);
        CHECK_EQ(sn_runtime_shutdown(rt, sn_after(SN_MS(20))), 10);
        sn_runtime_destroy(rt);
    }
}
