/* SPDX-License-Identifier: MIT */
/* What is done once (R90): losers that wait, failures, drops, misuse. */
#include "unit/sync/guests.h"

static sn_once once;
static int done; /* how often; whoever is at it writes */
static int fail_times;

static void reset(int fails)
{
    once = (sn_once)SN_ONCE_INIT;
    done = 0;
    fail_times = fails;
}

static int do_it(void *arg)
{
    (void)arg;
    sn_yield();
    if (fail_times > 0) {
        fail_times--;
        return -EIO;
    }
    done++;
    return 5;
}

static int need_it(void *arg)
{
    (void)arg;
    int rc = sn_once_run(&once, do_it, NULL, SN_FOREVER);
    if (rc == 0)
        CHECK_EQ(done, 1);
    return rc;
}

static void *need_it_in_thread(void *arg)
{
    CHECK_EQ(need_it(arg), 0);
    return NULL;
}

typedef struct needing {
    sn_coro coro;
    sn_sync_state state;
} needing;

SN_CORO(needing, self)
{
    int rc;
    SN_BEGIN(self);
    SN_AWAIT_INTO(rc, sn_once_begin_op(&self->state, &once));
    if (rc == 1) {
        SN_YIELD();
        done++;
        CHECK_EQ(sn_once_end(&once, 0), 0);
    }
    CHECK_EQ(done, 1);
    SN_RETURN(0);
    SN_END();
}

TASK_TEST(it_is_done_once_and_the_others_wait_until_it_is)
{
    (void)arg;
    enum { EACH = 8 };
    pthread_t thread[EACH];
    sn_task *fiber[EACH];
    sn_task *coro[EACH];
    reset(0);
    for (int i = 0; i < EACH; i++) {
        needing frame = {0};
        start_thread(&thread[i], need_it_in_thread, NULL);
        fiber[i] = sn_spawn(need_it, NULL);
        coro[i] = sn_spawn_coro(needing, &frame);
    }
    for (int i = 0; i < EACH; i++) {
        CHECK_EQ(sn_join(fiber[i], NULL), 0);
        CHECK_EQ(sn_join(coro[i], NULL), 0);
    }
    for (int i = 0; i < EACH; i++)
        join_thread(thread[i]);
    CHECK_EQ(done, 1);
    CHECK_EQ(sn_once_begin(&once, SN_NOWAIT), 0);
    return sn_once_finish(&once);
}

TASK_TEST(if_it_fails_the_next_one_tries)
{
    (void)arg;
    sn_task *task[8];
    int failed = 0;
    reset(3);
    for (int i = 0; i < 8; i++)
        task[i] = sn_spawn(need_it, NULL);
    for (int i = 0; i < 8; i++) {
        int rc = sn_join(task[i], NULL);
        CHECK(rc == 0 || rc == -EIO);
        failed += rc == -EIO;
    }
    CHECK_EQ(failed, 3);
    CHECK_EQ(done, 1);
    return sn_once_finish(&once);
}

TASK_TEST(a_loser_waits_until_its_deadline)
{
    (void)arg;
    reset(0);
    CHECK_EQ(sn_once_begin(&once, SN_FOREVER), 1);
    CHECK_EQ(sn_once_begin(&once, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_once_run(&once, do_it, NULL, sn_after(SN_MS(1))), -ETIMEDOUT);
    sn_task *t = sn_spawn(need_it, NULL);
    until_guests(&once.gate_, 1);
    done = 1;
    CHECK_EQ(sn_once_end(&once, 0), 0);
    CHECK_EQ(sn_join(t, NULL), 0);
    return sn_once_finish(&once);
}

TEST(a_dropped_operation_leaves_it_to_the_next)
{
    sn_sync_state state[2];
    sn_future *fut[2];
    struct by_hand hand[2] = {{{0}}};
    reset(0);
    CHECK_EQ(sn_once_begin(&once, SN_FOREVER), 1);
    for (int i = 0; i < 2; i++) {
        fut[i] = sn_once_begin_op(&state[i], &once);
        CHECK(sn_poll_pending(poll_by_hand(fut[i], &hand[i])));
    }
    CHECK_EQ(sn_once_end(&once, -EIO), 0);
    CHECK_EQ(hand[0].wakes.raw_, 1);
    CHECK_EQ(sn_future_drop(fut[0]), 0);
    CHECK_EQ(poll_by_hand(fut[1], &hand[1]).value, 1);
    CHECK_EQ(sn_once_end(&once, 0), 0);
    CHECK_EQ(sn_once_begin(&once, SN_NOWAIT), 0);
}

static int call_for_itself(void *arg)
{
    return sn_once_run(&once, do_it, arg, SN_FOREVER);
}

MISUSE_TEST(what_is_done_once_and_calls_for_itself_is_an_error, -EDEADLK, "waits for itself")
{
    reset(0);
    return sn_once_run(&once, call_for_itself, NULL, SN_FOREVER);
}

MISUSE_TEST(ending_what_one_has_not_begun_is_an_error, -EPERM, "had not begun it")
{
    reset(0);
    return sn_once_end(&once, 0);
}

MISUSE_TEST(finishing_what_somebody_is_at_is_an_error, -EBUSY, "in use, or waited for")
{
    reset(0);
    CHECK_EQ(sn_once_begin(&once, SN_FOREVER), 1);
    return sn_once_finish(&once);
}
