/* SPDX-License-Identifier: MIT */
/* Tasks (R20-R28): spawn, join, detach, misuse of handles, panics, both forms, both levels. */
#include "unit/task/with_runtime.h"

#include <fenv.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

static int give_back(void *arg)
{
    return (int)(intptr_t)arg;
}

static int yield_and_give_back(void *arg)
{
    for (int i = 0; i < 10; i++)
        sn_yield();
    return (int)(intptr_t)arg;
}

TASK_TEST(join_returns_what_the_task_returned)
{
    (void)arg;
    sn_task *t = sn_spawn(give_back, (void *)42);
    CHECK(t != NULL);
    sn_exit how;
    CHECK_EQ(sn_join(t, &how), 42);
    CHECK_EQ(how.kind, SN_EXIT_RETURNED);
    CHECK_EQ(sn_join(sn_spawn(yield_and_give_back, (void *)-7), NULL), -7);
    return 0;
}

TASK_TEST(a_thousand_tasks_give_a_thousand_results)
{
    (void)arg;
    enum { N = 1000 };
    static sn_task *t[N];
    for (int i = 0; i < N; i++)
        t[i] = sn_spawn(yield_and_give_back, (void *)(intptr_t)i);
    for (int i = 0; i < N; i++)
        CHECK_EQ(sn_join(t[i], NULL), i);
    return 0;
}

static atomic_int done_count;

static int count_one(void *arg)
{
    (void)arg;
    atomic_fetch_add(&done_count, 1);
    return 0;
}

static int spawn_detached_children(void *arg)
{
    int depth = (int)(intptr_t)arg;
    int error = 1;
    for (int i = 0; i < 3 && depth > 0; i++) {
        CHECK(sn_spawn(spawn_detached_children, (void *)(intptr_t)(depth - 1), .detached = true,
                       .error = &error) == NULL);
        CHECK_EQ(error, 0);
    }
    return count_one(NULL);
}

/* R23: the runtime waits for detached tasks, also for those they spawn. */
TASK_TEST(detached_tasks_run_to_their_end_although_nobody_joins_them)
{
    (void)arg;
    CHECK_EQ(sn_detach(sn_spawn(spawn_detached_children, (void *)5)), 0);
    return 0;
}

static atomic_int detached_ran;

static int count_detached(void *arg)
{
    (void)arg;
    atomic_fetch_add(&detached_ran, 1);
    return 0;
}

TASK_TEST(a_task_can_be_spawned_that_nobody_will_join)
{
    (void)arg;
    int before = atomic_load(&detached_ran), rc = -1;
    CHECK_EQ(sn_spawn_detached(count_detached, NULL), 0);
    CHECK_EQ(sn_spawn_detached(count_detached, NULL, .name = "x", .error = &rc), 0);
    CHECK_EQ(rc, 0);
    CHECK_EQ(sn_spawn_detached(NULL, NULL), -EINVAL);
    while (atomic_load(&detached_ran) < before + 2)
        sn_yield();
    CHECK_EQ(atomic_load(&detached_ran), before + 2);
    return 0;
}

typedef struct adder {
    sn_coro coro;
    int a, b;
    atomic_int *out;
} adder;

SN_CORO(adder, self)
{
    SN_BEGIN(self);
    SN_YIELD();
    if (self->out != NULL)
        atomic_store(self->out, self->a + self->b);
    SN_RETURN(self->a + self->b);
    SN_END();
}

/* The frame is named once: it may be a literal, or have effects. */
TASK_TEST(a_coroutine_is_spawned_from_a_literal)
{
    (void)arg;
    CHECK_EQ(sn_join(sn_spawn_coro(adder, (&(adder){.a = 2, .b = 3})), NULL), 5);
    adder frames[2] = {{.a = 1}, {.a = 7}};
    adder *next = frames;
    CHECK_EQ(sn_join(sn_spawn_coro(adder, next++), NULL), 1);
    CHECK_EQ(sn_join(sn_spawn_coro(adder, next++), NULL), 7);
    CHECK_PTR_EQ(next, frames + 2);
    return 0;
}

TASK_TEST(the_frame_that_a_coroutine_is_spawned_from_is_only_read)
{
    (void)arg;
    adder frame, before;
    memset(&frame, 0x5A, sizeof(frame));
    frame.a = 2;
    frame.b = 3;
    frame.out = NULL;
    memcpy(&before, &frame, sizeof(frame));
    CHECK_EQ(sn_join(sn_spawn_coro(adder, &frame), NULL), 5);
    CHECK(memcmp(&before, &frame, sizeof(frame)) == 0);
    return 0;
}

TASK_TEST(a_coroutine_can_be_spawned_that_nobody_will_join)
{
    (void)arg;
    static atomic_int sum;
    atomic_store(&sum, 0);
    CHECK_EQ(sn_spawn_coro_detached(adder, (&(adder){.a = 40, .b = 2, .out = &sum})), 0);
    while (atomic_load(&sum) == 0)
        sn_yield();
    CHECK_EQ(atomic_load(&sum), 42);
    return 0;
}

TASK_TEST(a_future_that_is_not_in_the_object_is_refused)
{
    (void)arg;
    adder frame = {.a = 1}, other;
    int rc = 0;
    sn_future *fut = SN_START(adder, &frame);
    CHECK_PTR_EQ(sn_spawn_future(fut, &other, .error = &rc), NULL);
    CHECK_EQ(rc, -EINVAL);
    return 0;
}

TEST(the_runtime_waits_for_detached_tasks_at_shutdown)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 4},
                      detached_tasks_run_to_their_end_although_nobody_joins_them_body, NULL),
             0);
    CHECK_EQ(done_count, 1 + 3 + 9 + 27 + 81 + 243);
}

/* ---- handles (R21) ---------------------------------------------------------------------- */

/* Handles that are used twice are volatile: compilers follow the others and would object. */

static atomic_uintptr_t self_handle;

static int join_oneself(void *arg)
{
    (void)arg;
    uintptr_t handle;
    while ((handle = atomic_load(&self_handle)) == 0)
        sn_yield();
    sn_task *volatile self = (sn_task *)handle;
    int rc = sn_cancel(self, NULL);
    return rc == -EDEADLK ? sn_join(self, NULL) : 1000;
}

TASK_TEST(a_handle_works_once_and_then_is_an_error)
{
    (void)arg;
    CHECK_EQ(sn_join(NULL, NULL), -EINVAL);
    CHECK_EQ(sn_detach(NULL), -EINVAL);
    CHECK_EQ(sn_cancel(NULL, NULL), -EINVAL);

    sn_task *volatile t = sn_spawn(give_back, (void *)1);
    CHECK_EQ(sn_join(t, NULL), 1);
    CHECK_EQ(sn_join(t, NULL), -ESRCH);
    CHECK_EQ(sn_detach(t), -ESRCH);
    CHECK_EQ(sn_cancel(t, NULL), -ESRCH);

    t = sn_spawn(yield_and_give_back, (void *)1);
    CHECK_EQ(sn_detach(t), 0);
    CHECK_EQ(sn_join(t, NULL), -ESRCH);
    CHECK_EQ(sn_detach(t), -ESRCH);
    CHECK_EQ(sn_cancel(t, NULL), -ESRCH);

    t = sn_spawn(yield_and_give_back, (void *)1);
    CHECK_EQ(sn_cancel(t, NULL), 1);
    CHECK_EQ(sn_join(t, NULL), -ESRCH);
    CHECK_EQ(sn_detach(t), -ESRCH);
    CHECK_EQ(sn_cancel(t, NULL), -ESRCH);
    return 0;
}

static void check_foreign(const void *p)
{
    sn_task *volatile t = (sn_task *)(uintptr_t)p;
    CHECK_EQ(sn_join(t, NULL), -ESRCH);
    CHECK_EQ(sn_detach(t), -ESRCH);
    CHECK_EQ(sn_cancel(t, NULL), -ESRCH);
}

TASK_TEST(what_is_not_a_handle_is_an_error)
{
    (void)arg;
    int local = 0;
    sn_chan *ch;
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), 1, NULL), 0);
    sn_task *t = sn_spawn(yield_and_give_back, (void *)1);

    check_foreign(&local);
    check_foreign(ch);
    check_foreign((void *)(uintptr_t)0x1234);
    check_foreign((void *)(uintptr_t)UINT64_MAX);
    check_foreign((char *)t + 1); /* near a good one, which it leaves alone */

    CHECK_EQ(sn_join(t, NULL), 1);
    CHECK_EQ(sn_chan_destroy(ch), 0);
    return 0;
}

TASK_TEST(a_stale_handle_does_not_reach_the_task_that_has_its_place)
{
    (void)arg;
    sn_task *volatile stale = sn_spawn(give_back, (void *)1);
    CHECK_EQ(sn_join(stale, NULL), 1);
    for (int i = 0; i < 1000; i++) {
        sn_task *t = sn_spawn(give_back, (void *)2);
        CHECK_EQ(sn_join(stale, NULL), -ESRCH);
        CHECK_EQ(sn_join(t, NULL), 2);
    }
    return 0;
}

TASK_TEST(a_task_that_joins_itself_gets_an_error_and_keeps_its_handle)
{
    (void)arg;
    sn_task *t = sn_spawn(join_oneself, NULL);
    atomic_store(&self_handle, (uintptr_t)t);
    CHECK_EQ(sn_join(t, NULL), -EDEADLK);
    return 0;
}

TEST(spawning_outside_a_runtime_is_a_clear_error)
{
    int error = 0;
    CHECK(sn_spawn(give_back, NULL, .error = &error) == NULL);
    CHECK_EQ(error, -EPERM);
    CHECK_EQ(sn_task_id(), 0);
    CHECK(sn_task_name() == NULL);
    CHECK(sn_task_spawned_at() == NULL);
    CHECK(!sn_cancelled());
    sn_yield(); /* another thread's turn */
}

TASK_TEST(bad_options_are_refused_with_a_reason)
{
    (void)arg;
    int error = 0;
    CHECK(sn_spawn(NULL, NULL, .error = &error) == NULL);
    CHECK_EQ(error, -EINVAL);
    CHECK(sn_spawn(give_back, NULL, .stack_bytes = 100, .error = &error) == NULL);
    CHECK_EQ(error, -EINVAL);
    CHECK(sn_spawn(give_back, NULL, .stack_bytes = (size_t)2 << 30, .error = &error) == NULL);
    CHECK_EQ(error, -EINVAL);
    CHECK(sn_spawn(give_back, &error, .copy_bytes = SN_COPY_BYTES_MAX + 1, .error = &error) ==
          NULL);
    CHECK_EQ(error, -EINVAL);
    CHECK(sn_spawn(give_back, NULL, .priority = (sn_priority)9, .error = &error) == NULL);
    CHECK_EQ(error, -EINVAL);
    CHECK_EQ(sn_join(NULL, NULL), -EINVAL); /* a forgotten check surfaces */
    return 0;
}

/* ---- arguments, names, numbers (R25) ---------------------------------------------------- */

struct point {
    int x, y;
};

static int sum_point(void *arg)
{
    struct point *p = arg;
    sn_yield();
    return p->x + p->y;
}

TASK_TEST(an_argument_can_be_copied_into_the_task)
{
    (void)arg;
    sn_task *t[10];
    for (int i = 0; i < 10; i++) {
        struct point p = {i, 100};
        t[i] = sn_spawn(sum_point, &p, .copy_bytes = sizeof(p));
        p = (struct point){-1, -1};
    }
    for (int i = 0; i < 10; i++)
        CHECK_EQ(sn_join(t[i], NULL), i + 100);
    return 0;
}

static int check_identity(void *arg)
{
    (void)arg;
    CHECK_STR_EQ(sn_task_name(), "identity");
    CHECK_STR_HAS(sn_task_spawned_at(), "test_task.c:");
    CHECK_NE(sn_task_id(), 0);
    sn_yield();
    CHECK_STR_EQ(sn_task_name(), "identity");
    return 0;
}

TASK_TEST(a_task_knows_its_name_its_number_and_where_it_was_spawned)
{
    (void)arg;
    CHECK_STR_EQ(sn_task_name(), "main");
    uint64_t mine = sn_task_id();
    CHECK_EQ(sn_join(sn_spawn(check_identity, NULL, .name = "identity"), NULL), 0);
    CHECK_EQ(sn_task_id(), mine);
    return 0;
}

/* ---- priorities (R44) --------------------------------------------------------------------- */

static char order[64];
static int order_used;

static int note_priority(void *arg)
{
    order[order_used++] = (char)(intptr_t)arg;
    return 0;
}

static int urgent_first(void *arg)
{
    (void)arg;
    sn_task *t[12];
    for (int i = 0; i < 3; i++) {
        t[i] = sn_spawn(note_priority, (void *)'l', .priority = SN_LOW);
        t[3 + i] = sn_spawn(note_priority, (void *)'n');
        t[6 + i] = sn_spawn(note_priority, (void *)'h', .priority = SN_HIGH);
        t[9 + i] = sn_spawn(note_priority, (void *)'c', .priority = SN_CRITICAL);
    }
    for (int i = 0; i < 12; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    return 0;
}

TEST(urgent_tasks_run_before_the_others_and_low_ones_last)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, urgent_first, NULL), 0);
    CHECK_EQ(strlen(order), 12);
    CHECK_STR_EQ(order + 9, "lll");
    CHECK(strchr(order, 'c') < strchr(order, 'h'));
    CHECK(strrchr(order, 'c') < strrchr(order, 'n'));
    int before_first_normal = (int)strcspn(order, "n");
    CHECK(before_first_normal >= 1 && before_first_normal <= 3); /* one of four picks */
}

static atomic_bool quiet;
static atomic_int urgent_turns;

static int never_idle(void *arg)
{
    (void)arg;
    while (!atomic_load(&quiet)) {
        atomic_fetch_add(&urgent_turns, 1);
        sn_yield();
    }
    return 0;
}

static int end_the_noise(void *arg)
{
    (void)arg;
    atomic_store(&quiet, true);
    return 0;
}

/* Critical tasks that never stop do not keep the others from running, low ones included. */
TASK_TEST(urgent_tasks_starve_nobody)
{
    (void)arg;
    sn_task *noise[8];
    for (int i = 0; i < 8; i++)
        noise[i] = sn_spawn(never_idle, NULL, .priority = SN_CRITICAL);
    CHECK_EQ(sn_join(sn_spawn(end_the_noise, NULL, .priority = SN_LOW), NULL), 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(sn_join(noise[i], NULL), 0);
    return 0;
}

/* On one thread picks can be counted: a low task waits for at most so many turns of others. */
TEST(a_low_task_gets_its_turn_within_a_bound)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true},
                      urgent_tasks_starve_nobody_body, NULL),
             0);
    CHECK_LE(atomic_load(&urgent_turns), 61 * 32);
}

/* ---- cancelling (the flag; scopes come later) -------------------------------------------- */

static int run_until_cancelled(void *arg)
{
    (void)arg;
    while (!sn_cancelled())
        sn_yield();
    return -ECANCELED;
}

TASK_TEST(a_cancelled_task_learns_of_it_and_is_joined)
{
    (void)arg;
    CHECK_EQ(sn_cancel(sn_spawn(run_until_cancelled, NULL), NULL), -ECANCELED);
    sn_task *t = sn_spawn(give_back, (void *)3);
    for (int i = 0; i < 100; i++)
        sn_yield();
    CHECK_EQ(sn_cancel(t, NULL), 3); /* R19: cancelling what has finished is a join */
    return 0;
}

/* ---- panics (R26) ------------------------------------------------------------------------ */

static volatile bool calm;

static int panic_deep_down(void *arg)
{
    volatile char frame[256];
    memset((char *)frame, 1, sizeof(frame));
    int depth = (int)(intptr_t)arg;
    if (depth == 0)
        sn_panic("the %s is empty, at depth %d", "tank", frame[3]);
    if (calm)
        return 0;
    return panic_deep_down((void *)(intptr_t)(depth - 1)) + frame[0];
}

TASK_TEST(a_panic_ends_its_task_and_nobody_else)
{
    (void)arg;
    sn_exit how;
    for (int i = 0; i < 50; i++) {
        sn_task *bad = sn_spawn(panic_deep_down, (void *)20);
        sn_task *good = sn_spawn(yield_and_give_back, (void *)8);
        CHECK_EQ(sn_join(bad, &how), -ECONNABORTED);
        CHECK_EQ(how.kind, SN_EXIT_PANICKED);
        CHECK_STR_EQ(how.message, "the tank is empty, at depth 1");
        CHECK_EQ(sn_join(good, NULL), 8);
    }
    return 0;
}

FAIL_TEST(a_panic_outside_a_task_ends_the_process, "sinew: nobody catches 7 (sn_panic:0)")
{
    sn_panic("nobody catches %d", 7);
}

/* ---- coroutine tasks (R20) ---------------------------------------------------------------- */

typedef struct ticker {
    sn_coro coro;
    int n;
    int step;
} ticker;

SN_CORO(ticker, self)
{
    SN_BEGIN(self);
    for (; self->n > 0; self->n--) {
        self->step += 2;
        SN_YIELD();
    }
    SN_RETURN(self->step);
    SN_END();
}

TASK_TEST(coroutine_tasks_are_spawned_and_joined_like_fibers)
{
    (void)arg;
    enum { N = 500 };
    static sn_task *t[N];
    for (int i = 0; i < N; i++) {
        ticker frame = {.n = i % 17};
        t[i] = sn_spawn_coro(ticker, &frame, .name = "ticker");
    }
    for (int i = 0; i < N; i++)
        CHECK_EQ(sn_join(t[i], NULL), i % 17 * 2);
    return 0;
}

static sn_signal bell;

typedef struct listener {
    sn_coro coro;
    int heard;
} listener;

SN_CORO(listener, self)
{
    int n;
    SN_BEGIN(self);
    while (self->heard < 100) {
        SN_AWAIT_INTO(n, sn_signal_recv_op(&bell));
        self->heard += n;
    }
    SN_RETURN(self->heard);
    SN_END();
}

/* R27: a wake is never lost, whoever wakes and whenever. */
TASK_TEST(a_coroutine_task_is_woken_from_other_tasks)
{
    (void)arg;
    listener frame = {.heard = 0};
    sn_task *t = sn_spawn_coro(listener, &frame);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(sn_signal_send(&bell, 1), 0);
        if (i % 7 == 0)
            sn_yield();
    }
    CHECK_EQ(sn_join(t, NULL), 100);
    return 0;
}

static int run_ready_future(void *arg)
{
    (void)arg;
    sn_fut_ready ready;
    CHECK_EQ(sn_join(sn_spawn_future(sn_fut_ready_init(&ready, 31), &ready), NULL), 31);
    sn_fut_yield yield;
    CHECK_EQ(sn_join(sn_spawn_future(sn_fut_yield_init(&yield), &yield, .name = "y"), NULL), 0);
    return 0;
}

typedef struct largest {
    sn_coro coro;
    char room[SN_FRAME_BYTES_MAX - sizeof(sn_coro)];
} largest;

SN_CORO(largest, self)
{
    SN_BEGIN(self);
    SN_YIELD();
    SN_RETURN(self->room[sizeof(self->room) - 1]);
    SN_END();
}

typedef struct too_large {
    sn_coro coro;
    char room[SN_FRAME_BYTES_MAX - sizeof(sn_coro) + 1];
} too_large;

SN_CORO(too_large, self)
{
    SN_BEGIN(self);
    SN_END();
}

TASK_TEST(a_frame_may_be_as_large_as_it_says_and_no_larger)
{
    (void)arg;
    int error = 0;
    largest fits = {.room = {0}};
    fits.room[sizeof(fits.room) - 1] = 77;
    CHECK_EQ(sn_join(sn_spawn_coro(largest, &fits), NULL), 77);
    too_large does_not;
    CHECK(sn_spawn_coro(too_large, &does_not, .error = &error) == NULL);
    CHECK_EQ(error, -EINVAL);
    return 0;
}

TASK_TEST(any_future_can_be_a_task)
{
    return run_ready_future(arg);
}

typedef struct blocker {
    sn_coro coro;
    sn_task *other;
} blocker;

SN_CORO(blocker, self)
{
    SN_BEGIN(self);
    sn_yield(); /* nothing: it gives way by SN_YIELD */
    SN_RETURN(sn_join(self->other, NULL));
    SN_END();
}

static int join_from_a_coroutine(void *arg)
{
    (void)arg;
    sn_task *never = sn_spawn(run_until_cancelled, NULL);
    blocker frame = {.other = never};
    CHECK_EQ(sn_join(sn_spawn_coro(blocker, &frame), NULL), -EDEADLK);
    CHECK_EQ(sn_cancel(never, NULL), -ECANCELED); /* the handle was still good */
    return 0;
}

#ifdef SINEW_DEBUG
FAIL_TEST(a_coroutine_that_would_block_its_worker_gets_an_error, "would block its worker")
#else
TEST(a_coroutine_that_would_block_its_worker_gets_an_error)
#endif
{
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 1}, join_from_a_coroutine, NULL), 0);
}

typedef struct waiter_coro {
    sn_coro coro;
    sn_task *other;
    sn_join_state join;
    sn_fut_yield pause;
    sn_fut_race2 race;
    bool impatient;
} waiter_coro;

SN_CORO(waiter_coro, self)
{
    int rc;
    SN_BEGIN(self);
    if (self->impatient) {
        SN_AWAIT(sn_fut_race2_init(&self->race, sn_join_op(&self->join, self->other, NULL),
                                   sn_fut_yield_init(&self->pause)));
        if (self->race.race.winner == 0)
            SN_RETURN(1000); /* it ended at once */
    }
    SN_AWAIT_INTO(rc, sn_join_op(&self->join, self->other, NULL));
    SN_RETURN(rc);
    SN_END();
}

/* R5: every suspending call has a future form; a lost race leaves the handle good. */
TASK_TEST(a_coroutine_awaits_the_end_of_a_task)
{
    (void)arg;
    enum { N = 200 };
    static sn_task *t[N];
    for (intptr_t i = 0; i < N; i++) {
        waiter_coro frame = {.impatient = i % 2 == 1};
        frame.other =
            i % 3 == 0 ? sn_spawn(give_back, (void *)i) : sn_spawn(yield_and_give_back, (void *)i);
        t[i] = sn_spawn_coro(waiter_coro, &frame);
    }
    for (int i = 0; i < N; i++) {
        int rc = sn_join(t[i], NULL);
        CHECK(rc == i || (rc == 1000 && i % 2 == 1));
    }
    return 0;
}

static int await_bad_handles(void *arg)
{
    (void)arg;
    sn_task *volatile t = sn_spawn(give_back, (void *)5);
    CHECK_EQ(sn_join(t, NULL), 5);
    waiter_coro frame = {.other = t};
    CHECK_EQ(sn_join(sn_spawn_coro(waiter_coro, &frame), NULL), -ESRCH);
    frame.other = NULL;
    CHECK_EQ(sn_join(sn_spawn_coro(waiter_coro, &frame), NULL), -EINVAL);
    sn_join_state unused;
    t = sn_spawn(give_back, (void *)5);
    CHECK_EQ(sn_future_drop(sn_join_op(&unused, t, NULL)), 0); /* never polled */
    CHECK_EQ(sn_join(t, NULL), 5);
    return 0;
}

TASK_TEST(awaiting_a_stale_handle_is_an_error)
{
    return await_bad_handles(arg);
}

typedef struct unlucky {
    sn_coro coro;
} unlucky;

SN_CORO(unlucky, self)
{
    SN_BEGIN(self);
    SN_YIELD();
    sn_panic("coroutine %d", 13);
    SN_END();
}

TASK_TEST(a_coroutine_task_may_panic_too)
{
    (void)arg;
    sn_exit how;
    for (int i = 0; i < 20; i++) {
        unlucky frame;
        CHECK_EQ(sn_join(sn_spawn_coro(unlucky, &frame), &how), -ECONNABORTED);
        CHECK_STR_EQ(how.message, "coroutine 13");
    }
    return 0;
}

/* ---- floating point control words (R50) ---------------------------------------------------- */

static int round_up(void *arg)
{
    (void)arg;
    CHECK_EQ(fegetround(), FE_TONEAREST);
    CHECK_EQ(fesetround(FE_UPWARD), 0);
    for (int i = 0; i < 10; i++) {
        sn_yield();
        CHECK_EQ(fegetround(), FE_UPWARD);
    }
    return 0; /* and does not change it back */
}

static int round_to_nearest(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(fegetround(), FE_TONEAREST);
        sn_yield();
    }
    return 0;
}

TASK_TEST(a_task_that_asks_for_it_keeps_its_own_rounding_mode)
{
    (void)arg;
    sn_task *t[8];
    for (int i = 0; i < 8; i++)
        t[i] = i % 2 == 0 ? sn_spawn(round_up, NULL, .keeps_fp = true)
                          : sn_spawn(round_to_nearest, NULL);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    CHECK_EQ(fegetround(), FE_TONEAREST);
    return 0;
}

/* ---- nesting ----------------------------------------------------------------------------- */

static int fib(void *arg)
{
    int n = (int)(intptr_t)arg;
    if (n < 2)
        return n;
    sn_task *left = sn_spawn(fib, (void *)(intptr_t)(n - 1));
    int right = fib((void *)(intptr_t)(n - 2));
    return sn_join(left, NULL) + right;
}

TASK_TEST(tasks_spawn_and_join_tasks_to_any_depth)
{
    (void)arg;
    CHECK_EQ(fib((void *)15), 610);
    return 0;
}

/* ---- ends that are easily forgotten ---------------------------------------------------------- */

typedef struct counter {
    sn_coro coro;
    bool *left;
} counter;

SN_CORO(counter, self)
{
    SN_BEGIN(self);
    SN_EMIT(7);
    SN_EMIT(8);
    SN_FINALLY();
    *self->left = true;
    SN_END();
}

TASK_TEST(a_generator_that_is_a_task_ends_with_its_first_value_and_cleans_up)
{
    (void)arg;
    bool left = false;
    CHECK_EQ(sn_join(sn_spawn_coro(counter, &(counter){.left = &left}), NULL), 7);
    CHECK(left);
    return 0;
}

static int detach_oneself(void *arg)
{
    sn_task *self;
    CHECK_EQ(sn_chan_recv(arg, (void *)&self, SN_FOREVER), 0);
    CHECK_EQ(sn_detach(self), 0);
    atomic_fetch_add(&done_count, 1);
    return 0;
}

TASK_TEST(a_task_may_detach_itself)
{
    (void)arg;
    sn_chan *ch;
    CHECK_EQ(sn_chan_create(&ch, sizeof(sn_task *), 0, NULL), 0);
    atomic_store(&done_count, 0);
    sn_task *t = sn_spawn(detach_oneself, ch);
    CHECK_EQ(sn_chan_send(ch, (void *)&t, SN_FOREVER), 0);
    while (atomic_load(&done_count) == 0)
        sn_yield();
    CHECK_EQ(sn_chan_destroy(ch), 0);
    return 0;
}

/* ---- what a coroutine that panics awaits ----------------------------------------------------- */

typedef struct bystander {
    sn_coro coro;
    sn_chan_op op;
    sn_chan *ch;
    int v;
    bool *left;
} bystander;

SN_CORO(bystander, self)
{
    SN_BEGIN(self);
    SN_AWAIT(sn_chan_recv_op(&self->op, self->ch, &self->v));
    SN_FINALLY();
    *self->left = true;
    SN_END();
}

/* Awaits, in this order: a lock, a bystander, and one that panics; a level further down each. */
typedef struct crowd {
    sn_coro coro;
    sn_sync_state lock;
    sn_mutex *m;
    bystander near;
    unlucky far;
    sn_fut_join2 inner, outer;
    bool *left;
} crowd;

SN_CORO(crowd, self)
{
    SN_BEGIN(self);
    (void)sn_fut_join2_init(&self->inner, SN_START(bystander, &self->near),
                            SN_START(unlucky, &self->far));
    SN_AWAIT(sn_fut_join2_init(&self->outer, sn_mutex_lock_op(&self->lock, self->m),
                               &self->inner.join.members_.future));
    SN_FINALLY();
    *self->left = true;
    SN_END();
}

typedef struct crowd_of_one {
    sn_coro coro;
    crowd crowd;
} crowd_of_one;

SN_CORO(crowd_of_one, self)
{
    SN_BEGIN(self);
    SN_AWAIT(SN_START(crowd, &self->crowd));
    SN_END();
}

TASK_TEST(what_a_coroutine_that_panics_awaits_is_dropped)
{
    (void)arg;
    int v = 1;
    bool near_left = false, own_left = false;
    sn_mutex m = SN_MUTEX_FAIR_INIT;
    sn_chan *ch;
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), 0, NULL), 0);
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    crowd_of_one frame = {
        .crowd = {.m = &m, .near = {.ch = ch, .left = &near_left}, .left = &own_left}};
    CHECK_EQ(sn_join(sn_spawn_coro(crowd_of_one, &frame), NULL), -ECONNABORTED);
    CHECK_EQ(sn_chan_send(ch, &v, SN_NOWAIT), -ETIMEDOUT); /* nobody is there to receive */
    CHECK(near_left);
    CHECK(!own_left);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    CHECK_EQ(sn_mutex_lock(&m, SN_NOWAIT), 0); /* nobody else was given it */
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    CHECK_EQ(sn_mutex_finish(&m), 0);
    CHECK_EQ(sn_chan_destroy(ch), 0);
    return 0;
}

/* Panics when it has received. */
typedef struct receiver {
    sn_coro coro;
    sn_chan_op op;
    sn_chan *ch;
    int v;
} receiver;

SN_CORO(receiver, self)
{
    SN_BEGIN(self);
    SN_AWAIT(sn_chan_recv_op(&self->op, self->ch, &self->v));
    sn_panic("received");
    SN_END();
}

typedef struct chooser {
    sn_coro coro;
    receiver first;
    sn_chan *a, *b;
    int v[2];
    sn_case cases[2];
    sn_select_state select;
    sn_fut_join2 both;
} chooser;

SN_CORO(chooser, self)
{
    SN_BEGIN(self);
    self->cases[0] = sn_case_recv(self->a, &self->v[0]);
    self->cases[1] = sn_case_recv(self->b, &self->v[1]);
    SN_AWAIT(sn_fut_join2_init(&self->both, SN_START(receiver, &self->first),
                               sn_select_op(&self->select, self->cases, 2, 0)));
    SN_END();
}

/* As large as that, and in its record soon. */
typedef struct filler {
    sn_coro coro;
    char bytes[sizeof(chooser) - sizeof(sn_coro)];
} filler;

SN_CORO(filler, self)
{
    SN_BEGIN(self);
    SN_END();
}

/* When it panics, the select has been served by one channel and stands at the other still. */
TASK_TEST(a_select_that_a_panic_leaves_stands_nowhere)
{
    (void)arg;
    int v = 1;
    sn_chan *ch[3];
    for (int i = 0; i < 3; i++)
        CHECK_EQ(sn_chan_create(&ch[i], sizeof(int), 0, NULL), 0);
    chooser frame = {.first = {.ch = ch[0]}, .a = ch[1], .b = ch[2]};
    sn_task *t = sn_spawn_coro(chooser, &frame);
    while (sn_chan_send(ch[1], &v, SN_NOWAIT) < 0) /* until it waits */
        sn_yield();
    CHECK_EQ(sn_chan_send(ch[0], &v, SN_NOWAIT), 0);
    CHECK_EQ(sn_join(t, NULL), -ECONNABORTED);
    filler next;
    memset(&next, 0x5A, sizeof(next));
    CHECK_EQ(sn_join(sn_spawn_coro(filler, &next), NULL), 0);
    CHECK_EQ(sn_chan_send(ch[2], &v, SN_NOWAIT), -ETIMEDOUT);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(sn_chan_destroy(ch[i]), 0);
    return 0;
}
