/* SPDX-License-Identifier: MIT */
/* Barriers and latches (R90): generations, those who do not wait to the end, misuse. */
#include "unit/sync/guests.h"

enum { PARTIES = 6, ROUNDS = 30 };

static sn_barrier barrier;
static int at[PARTIES]; /* in which round each is */
static SNI_ATOMIC(int) lasts;

static void reset(uint32_t parties)
{
    barrier = (sn_barrier)SN_BARRIER_INIT(parties);
    sni_atomic_store(&lasts, 0, seq_cst);
}

static int go_round(void *arg)
{
    int me = *(int *)arg;
    for (int round = 1; round <= ROUNDS; round++) {
        at[me] = round;
        int rc = sn_barrier_wait(&barrier, SN_FOREVER);
        if (rc < 0)
            return rc;
        if (rc == 1)
            sni_atomic_fetch_add(&lasts, 1, seq_cst);
        for (int i = 0; i < PARTIES; i++)
            CHECK_EQ(at[i], round); /* nobody is behind, and nobody ahead before the next */
        rc = sn_barrier_wait(&barrier, SN_FOREVER);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void *go_round_in_thread(void *arg)
{
    CHECK_EQ(go_round(arg), 0);
    return NULL;
}

typedef struct rounds {
    sn_coro coro;
    int me, round;
    sn_sync_state state;
} rounds;

SN_CORO(rounds, self)
{
    int rc;
    SN_BEGIN(self);
    for (self->round = 1; self->round <= ROUNDS; self->round++) {
        at[self->me] = self->round;
        SN_AWAIT_INTO(rc, sn_barrier_wait_op(&self->state, &barrier));
        if (rc == 1)
            sni_atomic_fetch_add(&lasts, 1, seq_cst);
        for (int i = 0; i < PARTIES; i++)
            CHECK_EQ(at[i], self->round);
        SN_AWAIT(sn_barrier_wait_op(&self->state, &barrier));
    }
    SN_RETURN(0);
    SN_END();
}

TASK_TEST(nobody_passes_a_barrier_before_all_have_come)
{
    (void)arg;
    sn_task *task[4];
    pthread_t thread[2];
    int numbers[PARTIES];
    reset(PARTIES);
    for (int i = 0; i < PARTIES; i++) {
        rounds frame = {.me = i};
        numbers[i] = i;
        if (i < 2)
            task[i] = sn_spawn(go_round, &numbers[i]);
        else if (i < 4)
            task[i] = sn_spawn_coro(rounds, &frame);
        else
            start_thread(&thread[i - 4], go_round_in_thread, &numbers[i]);
    }
    for (int i = 0; i < 4; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    for (int i = 0; i < 2; i++)
        join_thread(thread[i]);
    CHECK_EQ(sni_atomic_load(&lasts, seq_cst), ROUNDS); /* one of each round */
    return sn_barrier_finish(&barrier);
}

static int come(void *arg)
{
    (void)arg;
    return sn_barrier_wait(&barrier, SN_FOREVER);
}

TASK_TEST(many_pass_a_barrier_at_once)
{
    (void)arg;
    enum { MANY = 50 };
    sn_task *task[MANY];
    int last = 0;
    reset(MANY);
    for (int i = 0; i < MANY; i++)
        task[i] = sn_spawn(come, NULL);
    for (int i = 0; i < MANY; i++) {
        int rc = sn_join(task[i], NULL);
        CHECK_GE(rc, 0);
        last += rc;
    }
    CHECK_EQ(last, 1);
    return sn_barrier_finish(&barrier);
}

TEST(one_whose_time_is_up_has_not_come)
{
    sn_sync_state state;
    struct by_hand hand = {{0}};
    reset(2);
    CHECK_EQ(sn_barrier_wait(&barrier, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_barrier_wait(&barrier, sn_after(SN_US(100))), -ETIMEDOUT);
    CHECK_EQ(sn_barrier_wait(&barrier, sn_after(SN_US(100))), -ETIMEDOUT);
    sn_future *fut = sn_barrier_wait_op(&state, &barrier);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    CHECK_EQ(sn_future_drop(fut), 0);
    fut = sn_barrier_wait_op(&state, &barrier);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    CHECK_EQ(sn_barrier_wait(&barrier, SN_NOWAIT), 1);
    CHECK_EQ(poll_by_hand(fut, &hand).value, 0);
    CHECK_EQ(sn_barrier_finish(&barrier), 0);
}

TEST(a_barrier_for_one_is_always_open)
{
    for (uint32_t parties = 0; parties < 2; parties++) {
        reset(parties);
        CHECK_EQ(sn_barrier_wait(&barrier, SN_NOWAIT), 1);
        CHECK_EQ(sn_barrier_wait(&barrier, SN_FOREVER), 1);
    }
}

/* As many successes as the barrier opened times parties: those whose time was up count for none. */
static int come_impatiently(void *arg)
{
    int passed = 0;
    for (int i = 0; i < *(int *)arg; i++) {
        int rc = sn_barrier_wait(&barrier, sn_after(SN_US(i % 5 * 30)));
        CHECK(rc >= 0 || rc == -ETIMEDOUT);
        passed += rc >= 0;
        if (rc == 1)
            sni_atomic_fetch_add(&lasts, 1, seq_cst);
    }
    return passed;
}

TASK_TEST(deadlines_and_the_last_to_come_race_and_all_or_none_of_a_generation_pass)
{
    (void)arg;
    enum { TASKS = 48 };
    sn_task *task[TASKS];
    int tries = 40;
    int passed = 0;
    reset(20); /* more than are let go at once */
    for (int i = 0; i < TASKS; i++)
        task[i] = sn_spawn(come_impatiently, &tries);
    for (int i = 0; i < TASKS; i++) {
        int rc = sn_join(task[i], NULL);
        CHECK_GE(rc, 0);
        passed += rc;
    }
    CHECK_EQ(passed, 20 * sni_atomic_load(&lasts, seq_cst));
    CHECK_EQ(barrier.gate_.word_.raw_, 0);
    return sn_barrier_finish(&barrier);
}

MISUSE_TEST(finishing_a_barrier_that_is_waited_for_is_an_error, -EBUSY, "waited for")
{
    sn_sync_state state;
    struct by_hand hand = {{0}};
    reset(2);
    sn_future *fut = sn_barrier_wait_op(&state, &barrier);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    int rc = sn_barrier_finish(&barrier);
    CHECK_EQ(sn_future_drop(fut), 0);
    return rc;
}

/* ---- latches -------------------------------------------------------------------------------- */

TEST(a_latch_opens_when_as_many_have_arrived)
{
    sn_latch latch = SN_LATCH_INIT(3);
    CHECK_EQ(sn_latch_wait(&latch, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_latch_arrive(&latch, 2), 0);
    CHECK_EQ(sn_latch_wait(&latch, sn_after(SN_US(100))), -ETIMEDOUT);
    CHECK_EQ(sn_latch_arrive(&latch, 1), 0);
    CHECK_EQ(sn_latch_wait(&latch, SN_NOWAIT), 0);
    CHECK_EQ(sn_latch_wait(&latch, SN_FOREVER), 0);
    CHECK_EQ(sn_latch_finish(&latch), 0);
}

static int gifts[8];

struct arrival {
    sn_latch *latch;
    int *gift;
};

static int arrive(void *arg)
{
    const struct arrival *a = arg;
    *a->gift = 1;
    return sn_latch_arrive(a->latch, 1);
}

static int wait_for_latch(void *arg)
{
    int rc = sn_latch_wait(arg, SN_FOREVER);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(gifts[i], 1);
    return rc;
}

static void *wait_in_thread(void *arg)
{
    CHECK_EQ(wait_for_latch(arg), 0);
    return NULL;
}

typedef struct latched {
    sn_coro coro;
    sn_latch *latch;
    sn_sync_state state;
} latched;

SN_CORO(latched, self)
{
    int rc;
    SN_BEGIN(self);
    SN_AWAIT_INTO(rc, sn_latch_wait_op(&self->state, self->latch));
    SN_RETURN(rc);
    SN_END();
}

TASK_TEST(all_who_wait_for_a_latch_see_what_those_who_arrived_have_written)
{
    (void)arg;
    sn_latch latch = SN_LATCH_INIT(8);
    sn_task *waiter[2];
    struct arrival arrivals[8];
    sn_task *task[8];
    pthread_t thread;
    latched frame = {.latch = &latch};
    for (int i = 0; i < 8; i++)
        gifts[i] = 0;
    waiter[0] = sn_spawn(wait_for_latch, &latch);
    waiter[1] = sn_spawn_coro(latched, &frame);
    start_thread(&thread, wait_in_thread, &latch);
    until_guests(&latch.gate_, 3);
    for (int i = 0; i < 8; i++) {
        arrivals[i] = (struct arrival){&latch, &gifts[i]};
        task[i] = sn_spawn(arrive, &arrivals[i]);
    }
    for (int i = 0; i < 8; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    CHECK_EQ(sn_join(waiter[0], NULL), 0);
    CHECK_EQ(sn_join(waiter[1], NULL), 0);
    join_thread(thread);
    return sn_latch_finish(&latch);
}

MISUSE_TEST(arriving_at_a_latch_that_is_open_is_an_error, -ERANGE, "more have arrived")
{
    sn_latch latch = SN_LATCH_INIT(1);
    return sn_latch_arrive(&latch, 2);
}
