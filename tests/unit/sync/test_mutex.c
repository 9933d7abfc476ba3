/* SPDX-License-Identifier: MIT */
/* The mutex (R90): one at a time, few overtakings, hand-over, deadlines, misuse; fibers, threads
 * and coroutines on one. */
#include "unit/sync/guests.h"

static sn_mutex m;
static int counter; /* guarded by m */
static int order[64];
static int ordered;

static void reset(bool fair)
{
    m = fair ? (sn_mutex)SN_MUTEX_FAIR_INIT : (sn_mutex)SN_MUTEX_INIT;
    counter = 0;
    ordered = 0;
}

/* ---- one at a time ------------------------------------------------------------------------ */

static int add_slowly(void *arg)
{
    for (int i = 0; i < *(int *)arg; i++) {
        int rc = sn_mutex_lock(&m, SN_FOREVER);
        if (rc < 0)
            return rc;
        int before = counter;
        if (i % 3 == 0)
            sn_yield();
        counter = before + 1;
        rc = sn_mutex_unlock(&m);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void add_by_tasks(int tasks, int rounds)
{
    sn_task *task[64];
    for (int i = 0; i < tasks; i++)
        task[i] = sn_spawn(add_slowly, &rounds);
    for (int i = 0; i < tasks; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    CHECK_EQ(counter, tasks * rounds);
    CHECK_EQ(sn_mutex_finish(&m), 0);
}

TASK_TEST(a_mutex_lets_one_in_at_a_time)
{
    (void)arg;
    reset(false);
    add_by_tasks(64, 50);
    return 0;
}

TASK_TEST(a_fair_mutex_lets_one_in_at_a_time)
{
    (void)arg;
    reset(true);
    add_by_tasks(64, 50);
    return 0;
}

/* ---- order -------------------------------------------------------------------------------- */

static int lock_and_note(void *arg)
{
    int rc = sn_mutex_lock(&m, SN_FOREVER);
    order[ordered++] = *(int *)arg;
    return rc < 0 ? rc : sn_mutex_unlock(&m);
}

static void queue_up(sn_task **task, int *numbers, int n)
{
    for (int i = 0; i < n; i++) {
        numbers[i] = i;
        task[i] = sn_spawn(lock_and_note, &numbers[i]);
        until_guests(&m.gate_, (unsigned)i + 1);
    }
}

TASK_TEST(a_fair_mutex_is_handed_over_in_order_of_arrival)
{
    (void)arg;
    sn_task *task[16];
    int numbers[16];
    reset(true);
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    queue_up(task, numbers, 16);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    CHECK_EQ(sn_mutex_lock(&m, SN_NOWAIT), -ETIMEDOUT); /* it is the next one's already */
    for (int i = 0; i < 16; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    for (int i = 0; i < 16; i++)
        CHECK_EQ(order[i], i);
    return 0;
}

static int wait_once(void *arg)
{
    int rc = sn_mutex_lock(&m, SN_FOREVER);
    *(int *)arg = counter;
    return rc < 0 ? rc : sn_mutex_unlock(&m);
}

/* Whoever holds the mutex lets go of it and takes it again at once, as long as it can. */
TASK_TEST(one_that_waits_is_overtaken_a_few_times_only)
{
    (void)arg;
    int overtaken = -1;
    reset(false);
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    sn_task *t = sn_spawn(wait_once, &overtaken);
    until_guests(&m.gate_, 1);
    while (overtaken < 0) {
        counter++;
        CHECK_LT(counter, 10);
        CHECK_EQ(sn_mutex_unlock(&m), 0);
        if (sn_mutex_lock(&m, SN_NOWAIT) < 0)
            CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
        else if (overtaken < 0)        /* it was not there in between */
            until_guests(&m.gate_, 1); /* it has tried, and lost */
    }
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    CHECK_LE(overtaken, 5);
    return sn_join(t, NULL);
}

/* ---- deadlines ---------------------------------------------------------------------------- */

TASK_TEST(a_locked_mutex_is_not_to_be_had_without_waiting)
{
    (void)arg;
    reset(false);
    CHECK_EQ(sn_mutex_lock(&m, SN_NOWAIT), 0);
    CHECK_EQ(sn_mutex_lock(&m, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_mutex_lock(&m, sn_after(SN_MS(1))), -ETIMEDOUT); /* its own, but not for ever */
    CHECK_EQ(guests_at(&m.gate_), 0);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    return sn_mutex_finish(&m);
}

static int lock_for_a_ms(void *arg)
{
    (void)arg;
    return sn_mutex_lock(&m, sn_after(SN_MS(1)));
}

TASK_TEST(one_whose_time_is_up_leaves_no_trace)
{
    (void)arg;
    int numbers[2];
    sn_task *task[2];
    reset(true);
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    sn_task *first = sn_spawn(lock_for_a_ms, NULL);
    CHECK_EQ(sn_join(first, NULL), -ETIMEDOUT);
    CHECK_EQ(guests_at(&m.gate_), 0);
    queue_up(task, numbers, 2);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    CHECK_EQ(sn_join(task[0], NULL), 0);
    CHECK_EQ(sn_join(task[1], NULL), 0);
    return sn_mutex_finish(&m);
}

static int try_for_a_while(void *arg)
{
    int got = 0;
    for (int i = 0; i < *(int *)arg; i++) {
        int rc = sn_mutex_lock(&m, sn_after(SN_US(i % 7 * 20)));
        if (rc == -ETIMEDOUT)
            continue;
        if (rc < 0)
            return rc;
        int before = counter;
        sn_yield();
        counter = before + 1;
        got++;
        CHECK_EQ(sn_mutex_unlock(&m), 0);
    }
    return got;
}

/* Claims and deadlines meet at all times: no lock is lost, none is held twice. */
TASK_TEST(deadlines_and_unlocks_race_and_nothing_is_lost)
{
    (void)arg;
    sn_task *task[32];
    int rounds = 40;
    for (int fair = 0; fair < 2; fair++) {
        int got = 0;
        reset(fair);
        for (int i = 0; i < 32; i++)
            task[i] = sn_spawn(try_for_a_while, &rounds);
        for (int i = 0; i < 32; i++) {
            int rc = sn_join(task[i], NULL);
            CHECK_GE(rc, 0);
            got += rc;
        }
        CHECK_EQ(counter, got);
        CHECK_EQ(sn_mutex_finish(&m), 0);
    }
    return 0;
}

/* ---- coroutines --------------------------------------------------------------------------- */

typedef struct adder {
    sn_coro coro;
    int rounds, i, before;
    sn_sync_state lock;
} adder;

SN_CORO(adder, self)
{
    int rc;
    SN_BEGIN(self);
    for (self->i = 0; self->i < self->rounds; self->i++) {
        SN_AWAIT_INTO(rc, sn_mutex_lock_op(&self->lock, &m));
        if (rc < 0)
            SN_RETURN(rc);
        self->before = counter;
        if (self->i % 3 == 0)
            SN_YIELD();
        counter = self->before + 1;
        rc = sn_mutex_unlock(&m);
        if (rc < 0)
            SN_RETURN(rc);
    }
    SN_RETURN(0);
    SN_END();
}

static void *add_in_thread(void *arg)
{
    CHECK_EQ(add_slowly(arg), 0);
    return NULL;
}

TASK_TEST(fibers_threads_and_coroutines_share_a_mutex)
{
    (void)arg;
    enum { EACH = 8, ROUNDS = 60 };
    int rounds = ROUNDS;
    pthread_t thread[EACH];
    sn_task *fiber[EACH];
    sn_task *coro[EACH];
    for (int fair = 0; fair < 2; fair++) {
        reset(fair);
        for (int i = 0; i < EACH; i++) {
            adder frame = {.rounds = ROUNDS};
            start_thread(&thread[i], add_in_thread, &rounds);
            fiber[i] = sn_spawn(add_slowly, &rounds);
            coro[i] = sn_spawn_coro(adder, &frame);
        }
        for (int i = 0; i < EACH; i++) {
            CHECK_EQ(sn_join(fiber[i], NULL), 0);
            CHECK_EQ(sn_join(coro[i], NULL), 0);
        }
        for (int i = 0; i < EACH; i++)
            join_thread(thread[i]);
        CHECK_EQ(counter, 3 * EACH * ROUNDS);
        CHECK_EQ(sn_mutex_finish(&m), 0);
    }
    return 0;
}

TEST(an_operation_that_waits_is_woken_when_the_mutex_is_handed_over)
{
    sn_sync_state state;
    struct by_hand hand = {{0}};
    reset(true);
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    sn_future *fut = sn_mutex_lock_op(&state, &m);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    CHECK_EQ(guests_at(&m.gate_), 1);
    CHECK_EQ(hand.wakes.raw_, 0);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    CHECK_EQ(hand.wakes.raw_, 1);
    CHECK_EQ(sn_mutex_lock(&m, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(poll_by_hand(fut, &hand).value, 0);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    CHECK_EQ(sn_mutex_finish(&m), 0);
}

TEST(a_dropped_operation_passes_on_the_mutex_that_it_was_given)
{
    for (int fair = 0; fair < 2; fair++) {
        sn_sync_state state[3];
        sn_future *fut[3];
        struct by_hand hand[3] = {{{0}}};
        reset(fair);
        CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
        for (int i = 0; i < 3; i++) {
            fut[i] = sn_mutex_lock_op(&state[i], &m);
            CHECK(sn_poll_pending(poll_by_hand(fut[i], &hand[i])));
        }
        CHECK_EQ(sn_future_drop(fut[1]), 0); /* still queued */
        CHECK_EQ(guests_at(&m.gate_), 2);
        CHECK_EQ(sn_mutex_unlock(&m), 0);
        CHECK_EQ(hand[0].wakes.raw_, 1);
        CHECK_EQ(sn_future_drop(fut[0]), 0); /* owns it, or was told to try */
        CHECK_EQ(hand[2].wakes.raw_, 1);
        CHECK_EQ(poll_by_hand(fut[2], &hand[2]).value, 0);
        CHECK_EQ(sn_mutex_unlock(&m), 0);
        CHECK_EQ(sn_mutex_finish(&m), 0);
    }
}

TEST(an_operation_that_was_never_polled_may_be_dropped)
{
    sn_sync_state state;
    reset(false);
    CHECK_EQ(sn_future_drop(sn_mutex_lock_op(&state, &m)), 0);
    CHECK_EQ(sn_mutex_finish(&m), 0);
}

/* ---- an abandoned task --------------------------------------------------------------------- */

static int wait_for_ever(void *arg)
{
    (void)arg;
    return sn_mutex_lock(&m, SN_FOREVER);
}

static int leave_one_behind(void *arg)
{
    int rc = sn_spawn_detached(wait_for_ever, arg);
    until_guests(&m.gate_, 1);
    return rc;
}

TEST(a_task_that_is_abandoned_while_it_waits_is_taken_out_of_the_queue)
{
    sn_runtime *rt = NULL;
    reset(true);
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
    CHECK_EQ(sn_runtime_block_on(rt, leave_one_behind, NULL), 0);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_NOWAIT), 1); /* one is left */
    sn_runtime_destroy(rt);
    CHECK_EQ(guests_at(&m.gate_), 0);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    CHECK_EQ(sn_mutex_lock(&m, SN_NOWAIT), 0);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
}

/* ---- misuse -------------------------------------------------------------------------------- */

MISUSE_TEST(unlocking_what_is_free_is_an_error, -EPERM, "by somebody who does not hold it")
{
    reset(false);
    return sn_mutex_unlock(&m);
}

static void *lock_in_thread(void *arg)
{
    CHECK_EQ(sn_mutex_lock(arg, SN_FOREVER), 0);
    return NULL;
}

MISUSE_TEST(unlocking_for_somebody_else_is_an_error, -EPERM, "by somebody who does not hold it")
{
    pthread_t thread;
    reset(false);
    start_thread(&thread, lock_in_thread, &m);
    join_thread(thread);
    return sn_mutex_unlock(&m);
}

MISUSE_TEST(locking_for_ever_what_one_holds_is_an_error, -EDEADLK, "by who holds it")
{
    reset(false);
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    return sn_mutex_lock(&m, SN_FOREVER);
}

MISUSE_TEST(finishing_what_is_locked_is_an_error, -EBUSY, "in use, or waited for")
{
    reset(false);
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    return sn_mutex_finish(&m);
}

typedef struct blocker {
    sn_coro coro;
} blocker;

SN_CORO(blocker, self)
{
    SN_BEGIN(self);
    SN_RETURN(sn_mutex_lock(&m, SN_FOREVER));
    SN_END();
}

static int block_in_coroutine(void *arg)
{
    (void)arg;
    blocker frame = {0};
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    return sn_join(sn_spawn_coro(blocker, &frame), NULL);
}

MISUSE_TEST(a_coroutine_that_would_block_its_worker_is_an_error, -EDEADLK, "await the op")
{
    reset(false);
    return run_with(&(sn_runtime_options){.single_threaded = true}, block_in_coroutine, NULL);
}
