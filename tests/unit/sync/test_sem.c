/* SPDX-License-Identifier: MIT */
/* The semaphore (R90): units, order, weights, deadlines, drops; fibers, threads, coroutines. */
#include "unit/sync/guests.h"

static sn_sem sem;
static SNI_ATOMIC(int) inside;
static guest_flag has_left;
static int order[64];
static int ordered;

static void reset(uint32_t units)
{
    sem = (sn_sem)SN_SEM_INIT(units);
    sni_atomic_store(&inside, 0, seq_cst);
    sni_atomic_store(&has_left, 0, seq_cst);
    ordered = 0;
}

TEST(units_are_taken_and_given_back)
{
    reset(3);
    CHECK_EQ(sn_sem_get(&sem), 3);
    CHECK_EQ(sn_sem_acquire(&sem, 2, SN_NOWAIT), 0);
    CHECK_EQ(sn_sem_acquire(&sem, 2, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_sem_acquire(&sem, 2, sn_after(SN_US(100))), -ETIMEDOUT);
    CHECK_EQ(sn_sem_acquire(&sem, 0, SN_NOWAIT), 0);
    CHECK_EQ(sn_sem_acquire(&sem, 1, SN_NOWAIT), 0);
    CHECK_EQ(sn_sem_get(&sem), 0);
    CHECK_EQ(sn_sem_release(&sem, UINT32_MAX), 0);
    CHECK_EQ(sn_sem_acquire(&sem, UINT32_MAX, SN_NOWAIT), 0);
    CHECK_EQ(sn_sem_finish(&sem), 0);
}

/* ---- never more than there are --------------------------------------------------------------- */

enum { UNITS = 4 };

static void come_and_go(int units)
{
    int now = sni_atomic_fetch_add(&inside, units, seq_cst) + units;
    CHECK_LE(now, UNITS);
}

static int use_units(void *arg)
{
    int rounds = *(int *)arg;
    for (int i = 0; i < rounds; i++) {
        int units = 1 + i % 3;
        int rc = sn_sem_acquire(&sem, (uint32_t)units, SN_FOREVER);
        if (rc < 0)
            return rc;
        come_and_go(units);
        sn_yield();
        sni_atomic_fetch_sub(&inside, units, seq_cst);
        (void)sn_sem_release(&sem, (uint32_t)units);
    }
    return 0;
}

static void *use_units_in_thread(void *arg)
{
    CHECK_EQ(use_units(arg), 0);
    return NULL;
}

typedef struct user {
    sn_coro coro;
    int rounds, i;
    sn_sync_state state;
} user;

SN_CORO(user, self)
{
    int rc;
    SN_BEGIN(self);
    for (self->i = 0; self->i < self->rounds; self->i++) {
        SN_AWAIT_INTO(rc, sn_sem_acquire_op(&self->state, &sem, 2));
        if (rc < 0)
            SN_RETURN(rc);
        come_and_go(2);
        SN_YIELD();
        sni_atomic_fetch_sub(&inside, 2, seq_cst);
        (void)sn_sem_release(&sem, 2);
    }
    SN_RETURN(0);
    SN_END();
}

TASK_TEST(no_more_units_are_out_than_there_are)
{
    (void)arg;
    enum { EACH = 8, ROUNDS = 40 };
    int rounds = ROUNDS;
    pthread_t thread[EACH];
    sn_task *fiber[EACH];
    sn_task *coro[EACH];
    reset(UNITS);
    for (int i = 0; i < EACH; i++) {
        user frame = {.rounds = ROUNDS};
        start_thread(&thread[i], use_units_in_thread, &rounds);
        fiber[i] = sn_spawn(use_units, &rounds);
        coro[i] = sn_spawn_coro(user, &frame);
    }
    for (int i = 0; i < EACH; i++) {
        CHECK_EQ(sn_join(fiber[i], NULL), 0);
        CHECK_EQ(sn_join(coro[i], NULL), 0);
    }
    for (int i = 0; i < EACH; i++)
        join_thread(thread[i]);
    CHECK_EQ(sn_sem_get(&sem), UNITS);
    return sn_sem_finish(&sem);
}

/* ---- order ------------------------------------------------------------------------------- */

struct wish {
    int number;
    uint32_t units;
};

/* What it takes it keeps. */
static int take(void *arg)
{
    const struct wish *wish = arg;
    int rc = sn_sem_acquire(&sem, wish->units, SN_FOREVER);
    order[ordered++] = wish->number; /* one runs at a time: see below */
    return rc;
}

TASK_TEST(one_that_wants_many_is_not_overtaken_by_those_that_want_few)
{
    (void)arg;
    struct wish wish[] = {{0, 1}, {1, 5}, {2, 1}, {3, 2}};
    sn_task *task[4];
    reset(0);
    for (unsigned i = 0; i < 4; i++) {
        task[i] = sn_spawn(take, &wish[i]);
        until_guests(&sem.gate_, i + 1);
    }
    CHECK_EQ(sn_sem_release(&sem, 3), 0); /* for the first; the second wants more than is left */
    CHECK_EQ(sn_join(task[0], NULL), 0);
    CHECK_EQ(guests_at(&sem.gate_), 3);
    CHECK_EQ(sn_sem_get(&sem), 2);
    CHECK_EQ(sn_sem_acquire(&sem, 1, SN_NOWAIT), -ETIMEDOUT); /* there are, but not for us */
    CHECK_EQ(sn_sem_release(&sem, 3), 0);
    CHECK_EQ(sn_join(task[1], NULL), 0);
    CHECK_EQ(sn_sem_release(&sem, 1), 0);
    CHECK_EQ(sn_join(task[2], NULL), 0);
    CHECK_EQ(sn_sem_release(&sem, 2), 0);
    CHECK_EQ(sn_join(task[3], NULL), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(order[i], i);
    CHECK_EQ(sn_sem_get(&sem), 0);
    return sn_sem_finish(&sem);
}

static int take_one(void *arg)
{
    (void)arg;
    return sn_sem_acquire(&sem, 1, SN_FOREVER);
}

TASK_TEST(a_release_of_many_serves_all_who_want_one)
{
    (void)arg;
    sn_task *task[50];
    reset(0);
    for (int i = 0; i < 50; i++)
        task[i] = sn_spawn(take_one, NULL);
    until_guests(&sem.gate_, 50);
    CHECK_EQ(sn_sem_release(&sem, 51), 0);
    for (int i = 0; i < 50; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    CHECK_EQ(sn_sem_get(&sem), 1);
    return 0;
}

/* ---- those who leave ------------------------------------------------------------------------ */

static int want_too_much_for_a_while(void *arg)
{
    (void)arg;
    int rc = sn_sem_acquire(&sem, 10, sn_after(SN_MS(2)));
    sni_atomic_store(&has_left, 1, seq_cst);
    return rc;
}

TASK_TEST(those_behind_one_whose_time_is_up_are_served)
{
    (void)arg;
    reset(1);
    sn_task *first = sn_spawn(want_too_much_for_a_while, NULL);
    until_guest_or(&sem.gate_, &has_left);
    sn_task *second = sn_spawn(take_one, NULL);
    CHECK_EQ(sn_join(first, NULL), -ETIMEDOUT);
    CHECK_EQ(sn_join(second, NULL), 0); /* nobody releases anything */
    CHECK_EQ(sn_sem_get(&sem), 0);
    return sn_sem_finish(&sem);
}

TEST(a_dropped_operation_gives_back_the_units_that_it_was_given)
{
    sn_sync_state state[3];
    sn_future *fut[3];
    struct by_hand hand[3] = {{{0}}};
    reset(0);
    for (int i = 0; i < 3; i++) {
        fut[i] = sn_sem_acquire_op(&state[i], &sem, 2);
        CHECK(sn_poll_pending(poll_by_hand(fut[i], &hand[i])));
    }
    CHECK_EQ(sn_sem_release(&sem, 2), 0);
    CHECK_EQ(hand[0].wakes.raw_, 1);
    CHECK_EQ(sn_sem_get(&sem), 0);
    CHECK_EQ(sn_future_drop(fut[0]), 0); /* had them */
    CHECK_EQ(hand[1].wakes.raw_, 1);
    CHECK_EQ(sn_future_drop(fut[2]), 0); /* had none */
    CHECK_EQ(poll_by_hand(fut[1], &hand[1]).value, 0);
    CHECK_EQ(sn_sem_get(&sem), 0);
    CHECK_EQ(sn_sem_finish(&sem), 0);
}

static int take_impatiently(void *arg)
{
    int got = 0;
    for (int i = 0; i < *(int *)arg; i++) {
        int rc = sn_sem_acquire(&sem, 1 + (uint32_t)i % 3, sn_after(SN_US(i % 5 * 30)));
        if (rc < 0 && rc != -ETIMEDOUT)
            return rc;
        if (rc < 0)
            continue;
        sn_yield();
        (void)sn_sem_release(&sem, 1 + (uint32_t)i % 3);
        got++;
    }
    return got;
}

TASK_TEST(deadlines_and_releases_race_and_no_unit_is_lost)
{
    (void)arg;
    sn_task *task[32];
    int rounds = 40;
    reset(UNITS);
    for (int i = 0; i < 32; i++)
        task[i] = sn_spawn(take_impatiently, &rounds);
    for (int i = 0; i < 32; i++)
        CHECK_GE(sn_join(task[i], NULL), 0);
    CHECK_EQ(sn_sem_get(&sem), UNITS);
    return sn_sem_finish(&sem);
}

/* ---- misuse --------------------------------------------------------------------------------- */

MISUSE_TEST(giving_back_more_than_can_be_counted_is_an_error, -EOVERFLOW, "more than it can count")
{
    reset(UINT32_MAX);
    CHECK_EQ(sn_sem_release(&sem, 0), 0);
    return sn_sem_release(&sem, 1);
}

MISUSE_TEST(finishing_a_semaphore_that_is_waited_for_is_an_error, -EBUSY, "waited for")
{
    sn_sync_state state;
    struct by_hand hand = {{0}};
    reset(0);
    sn_future *fut = sn_sem_acquire_op(&state, &sem, 1);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    int rc = sn_sem_finish(&sem);
    CHECK_EQ(sn_future_drop(fut), 0);
    CHECK_EQ(sn_sem_finish(&sem), 0);
    return rc;
}
