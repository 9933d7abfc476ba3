/* SPDX-License-Identifier: MIT */
/* The lock for one who writes or many who read (R90): who excludes whom, fairness both ways,
 * downgrading, deadlines, drops, misuse. */
#include "unit/sync/guests.h"

static sn_rwlock lock;
static int value[2]; /* written together */
static SNI_ATOMIC(int) readers, most, done;
static guest_flag has_left;

static void reset(void)
{
    lock = (sn_rwlock)SN_RWLOCK_INIT;
    value[0] = value[1] = 0;
    sni_atomic_store(&readers, 0, seq_cst);
    sni_atomic_store(&most, 0, seq_cst);
    sni_atomic_store(&done, 0, seq_cst);
    sni_atomic_store(&has_left, 0, seq_cst);
}

TEST(readers_share_and_writers_do_not)
{
    reset();
    CHECK_EQ(sn_rwlock_lock_shared(&lock, SN_NOWAIT), 0);
    CHECK_EQ(sn_rwlock_lock_shared(&lock, SN_NOWAIT), 0);
    CHECK_EQ(sn_rwlock_lock(&lock, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_rwlock_unlock_shared(&lock), 0);
    CHECK_EQ(sn_rwlock_lock(&lock, sn_after(SN_US(100))), -ETIMEDOUT);
    CHECK_EQ(sn_rwlock_unlock_shared(&lock), 0);
    CHECK_EQ(sn_rwlock_lock(&lock, SN_NOWAIT), 0);
    CHECK_EQ(sn_rwlock_lock_shared(&lock, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_rwlock_lock(&lock, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_rwlock_downgrade(&lock), 0);
    CHECK_EQ(sn_rwlock_lock_shared(&lock, SN_NOWAIT), 0);
    CHECK_EQ(sn_rwlock_lock(&lock, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_rwlock_unlock_shared(&lock), 0);
    CHECK_EQ(sn_rwlock_unlock_shared(&lock), 0);
    CHECK_EQ(sn_rwlock_finish(&lock), 0);
}

/* ---- all kinds at once ---------------------------------------------------------------------- */

static void look(void)
{
    CHECK_EQ(value[0], value[1]);
}

static int read_and_write(void *arg)
{
    for (int i = 0; i < *(int *)arg; i++) {
        if (i % 4 == 0) {
            CHECK_EQ(sn_rwlock_lock(&lock, SN_FOREVER), 0);
            value[0]++;
            sn_yield();
            value[1]++;
            if (i % 8 == 0) {
                CHECK_EQ(sn_rwlock_unlock(&lock), 0);
                continue;
            }
            CHECK_EQ(sn_rwlock_downgrade(&lock), 0);
        } else {
            CHECK_EQ(sn_rwlock_lock_shared(&lock, SN_FOREVER), 0);
        }
        look();
        sn_yield();
        look();
        CHECK_EQ(sn_rwlock_unlock_shared(&lock), 0);
    }
    return 0;
}

static void *read_and_write_in_thread(void *arg)
{
    (void)read_and_write(arg);
    return NULL;
}

typedef struct user {
    sn_coro coro;
    int rounds, i;
    sn_sync_state state;
} user;

SN_CORO(user, self)
{
    SN_BEGIN(self);
    for (self->i = 0; self->i < self->rounds; self->i++) {
        if (self->i % 4 == 0) {
            SN_AWAIT(sn_rwlock_lock_op(&self->state, &lock));
            value[0]++;
            SN_YIELD();
            value[1]++;
            CHECK_EQ(sn_rwlock_unlock(&lock), 0);
        } else {
            SN_AWAIT(sn_rwlock_lock_shared_op(&self->state, &lock));
            look();
            SN_YIELD();
            look();
            CHECK_EQ(sn_rwlock_unlock_shared(&lock), 0);
        }
    }
    SN_RETURN(0);
    SN_END();
}

TASK_TEST(nobody_reads_what_is_half_written)
{
    (void)arg;
    enum { EACH = 8, ROUNDS = 40 };
    int rounds = ROUNDS;
    pthread_t thread[EACH];
    sn_task *fiber[EACH];
    sn_task *coro[EACH];
    reset();
    for (int i = 0; i < EACH; i++) {
        user frame = {.rounds = ROUNDS};
        start_thread(&thread[i], read_and_write_in_thread, &rounds);
        fiber[i] = sn_spawn(read_and_write, &rounds);
        coro[i] = sn_spawn_coro(user, &frame);
    }
    for (int i = 0; i < EACH; i++) {
        CHECK_EQ(sn_join(fiber[i], NULL), 0);
        CHECK_EQ(sn_join(coro[i], NULL), 0);
    }
    for (int i = 0; i < EACH; i++)
        join_thread(thread[i]);
    CHECK_EQ(value[0], 3 * EACH * ROUNDS / 4);
    return sn_rwlock_finish(&lock);
}

/* ---- fairness, both ways --------------------------------------------------------------------- */

static int write_once(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_rwlock_lock(&lock, SN_FOREVER), 0);
    sni_atomic_fetch_add(&done, 1, seq_cst);
    return sn_rwlock_unlock(&lock);
}

static int read_once(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_rwlock_lock_shared(&lock, SN_FOREVER), 0);
    int now = sni_atomic_fetch_add(&readers, 1, seq_cst) + 1;
    int seen = sni_atomic_load(&most, seq_cst);
    while (now > seen && !sni_atomic_cas(&most, &seen, now, seq_cst, seq_cst)) {
    }
    while (sni_atomic_load(&readers, seq_cst) < 3) /* they are all in at the same time */
        sn_yield();
    return sn_rwlock_unlock_shared(&lock);
}

TASK_TEST(readers_that_come_later_do_not_overtake_a_writer)
{
    (void)arg;
    reset();
    CHECK_EQ(sn_rwlock_lock_shared(&lock, SN_FOREVER), 0);
    sn_task *writer = sn_spawn(write_once, NULL);
    until_guests(&lock.gate_, 1);
    CHECK_EQ(sn_rwlock_lock_shared(&lock, SN_NOWAIT), -ETIMEDOUT);
    sn_task *reader[3];
    for (unsigned i = 0; i < 3; i++) {
        reader[i] = sn_spawn(read_once, NULL);
        until_guests(&lock.gate_, 2 + i);
    }
    CHECK_EQ(sn_rwlock_unlock_shared(&lock), 0);
    CHECK_EQ(sn_join(writer, NULL), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(sn_join(reader[i], NULL), 0);
    return sn_rwlock_finish(&lock);
}

TASK_TEST(writers_that_come_later_do_not_overtake_readers_which_go_in_together)
{
    (void)arg;
    sn_task *task[6];
    reset();
    CHECK_EQ(sn_rwlock_lock(&lock, SN_FOREVER), 0);
    for (unsigned i = 0; i < 6; i++) {
        task[i] = sn_spawn(i < 3 ? read_once : write_once, NULL);
        until_guests(&lock.gate_, i + 1);
    }
    CHECK_EQ(sn_rwlock_unlock(&lock), 0);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    CHECK_EQ(sni_atomic_load(&most, seq_cst), 3);
    CHECK_EQ(sni_atomic_load(&done, seq_cst), 3);
    return sn_rwlock_finish(&lock);
}

TASK_TEST(who_downgrades_lets_readers_in_and_no_writer)
{
    (void)arg;
    sn_task *task[4];
    reset();
    CHECK_EQ(sn_rwlock_lock(&lock, SN_FOREVER), 0);
    for (unsigned i = 0; i < 4; i++) {
        task[i] = sn_spawn(i < 3 ? read_once : write_once, NULL);
        until_guests(&lock.gate_, i + 1);
    }
    CHECK_EQ(sn_rwlock_downgrade(&lock), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    CHECK_EQ(sni_atomic_load(&done, seq_cst), 0); /* we still read */
    CHECK_EQ(sn_rwlock_unlock_shared(&lock), 0);
    CHECK_EQ(sn_join(task[3], NULL), 0);
    return sn_rwlock_finish(&lock);
}

/* ---- those who leave ---------------------------------------------------------------------- */

static int want_to_write_for_a_while(void *arg)
{
    (void)arg;
    int rc = sn_rwlock_lock(&lock, sn_after(SN_MS(2)));
    sni_atomic_store(&has_left, 1, seq_cst);
    return rc;
}

static int read_alone(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_rwlock_lock_shared(&lock, SN_FOREVER), 0);
    return sn_rwlock_unlock_shared(&lock);
}

TASK_TEST(readers_behind_a_writer_whose_time_is_up_go_in)
{
    (void)arg;
    reset();
    CHECK_EQ(sn_rwlock_lock_shared(&lock, SN_FOREVER), 0);
    sn_task *writer = sn_spawn(want_to_write_for_a_while, NULL);
    until_guest_or(&lock.gate_, &has_left);
    sn_task *reader = sn_spawn(read_alone, NULL);
    CHECK_EQ(sn_join(writer, NULL), -ETIMEDOUT);
    CHECK_EQ(sn_join(reader, NULL), 0); /* while we read */
    CHECK_EQ(sn_rwlock_unlock_shared(&lock), 0);
    return sn_rwlock_finish(&lock);
}

TEST(a_dropped_operation_gives_up_the_lock_that_it_was_given)
{
    sn_sync_state state[3];
    sn_future *fut[3];
    struct by_hand hand[3] = {{{0}}};
    reset();
    CHECK_EQ(sn_rwlock_lock(&lock, SN_FOREVER), 0);
    fut[0] = sn_rwlock_lock_op(&state[0], &lock);
    fut[1] = sn_rwlock_lock_shared_op(&state[1], &lock);
    fut[2] = sn_rwlock_lock_op(&state[2], &lock);
    for (int i = 0; i < 3; i++)
        CHECK(sn_poll_pending(poll_by_hand(fut[i], &hand[i])));
    CHECK_EQ(sn_rwlock_unlock(&lock), 0);
    CHECK_EQ(hand[0].wakes.raw_ + 2 * hand[1].wakes.raw_, 1);
    CHECK_EQ(sn_future_drop(fut[0]), 0);
    CHECK_EQ(hand[1].wakes.raw_ + 2 * hand[2].wakes.raw_, 1);
    CHECK_EQ(sn_future_drop(fut[1]), 0);
    CHECK_EQ(hand[2].wakes.raw_, 1);
    CHECK_EQ(poll_by_hand(fut[2], &hand[2]).value, 0);
    CHECK_EQ(sn_rwlock_unlock(&lock), 0);
    CHECK_EQ(sn_rwlock_finish(&lock), 0);
}

static int use_impatiently(void *arg)
{
    for (int i = 0; i < *(int *)arg; i++) {
        sn_deadline until = sn_after(SN_US(i % 5 * 30));
        int rc = i % 3 == 0 ? sn_rwlock_lock(&lock, until) : sn_rwlock_lock_shared(&lock, until);
        CHECK(rc == 0 || rc == -ETIMEDOUT);
        if (rc < 0)
            continue;
        if (i % 3 == 0)
            value[0]++;
        sn_yield();
        if (i % 3 == 0)
            value[1]++;
        look();
        CHECK_EQ(i % 3 == 0 ? sn_rwlock_unlock(&lock) : sn_rwlock_unlock_shared(&lock), 0);
    }
    return 0;
}

TASK_TEST(deadlines_race_with_readers_and_writers_and_no_lock_is_lost)
{
    (void)arg;
    sn_task *task[32];
    int rounds = 40;
    reset();
    for (int i = 0; i < 32; i++)
        task[i] = sn_spawn(use_impatiently, &rounds);
    for (int i = 0; i < 32; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    return sn_rwlock_finish(&lock);
}

/* ---- misuse ------------------------------------------------------------------------------- */

MISUSE_TEST(unlocking_what_nobody_writes_under_is_an_error, -EPERM, "does not write under it")
{
    reset();
    CHECK_EQ(sn_rwlock_lock_shared(&lock, SN_FOREVER), 0);
    return sn_rwlock_unlock(&lock);
}

MISUSE_TEST(unlocking_what_nobody_reads_under_is_an_error, -EPERM, "nobody reads under")
{
    reset();
    CHECK_EQ(sn_rwlock_lock(&lock, SN_FOREVER), 0);
    return sn_rwlock_unlock_shared(&lock);
}

MISUSE_TEST(reading_for_ever_where_one_writes_is_an_error, -EDEADLK, "by who writes under it")
{
    reset();
    CHECK_EQ(sn_rwlock_lock(&lock, SN_FOREVER), 0);
    return sn_rwlock_lock_shared(&lock, SN_FOREVER);
}

MISUSE_TEST(finishing_a_lock_under_which_one_reads_is_an_error, -EBUSY, "in use, or waited for")
{
    reset();
    CHECK_EQ(sn_rwlock_lock_shared(&lock, SN_FOREVER), 0);
    return sn_rwlock_finish(&lock);
}
