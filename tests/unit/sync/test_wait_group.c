/* SPDX-License-Identifier: MIT */
/* Wait groups (R90). */
#include "unit/sync/guests.h"

TEST(a_group_of_nothing_is_done)
{
    sn_wait_group group = SN_WAIT_GROUP_INIT;
    CHECK_EQ(sn_wait_group_wait(&group, SN_NOWAIT), 0);
    CHECK_EQ(sn_wait_group_add(&group, 2), 0);
    CHECK_EQ(sn_wait_group_wait(&group, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_wait_group_done(&group), 0);
    CHECK_EQ(sn_wait_group_wait(&group, sn_after(SN_US(100))), -ETIMEDOUT);
    CHECK_EQ(sn_wait_group_done(&group), 0);
    CHECK_EQ(sn_wait_group_wait(&group, SN_FOREVER), 0);
    CHECK_EQ(sn_wait_group_add(&group, UINT32_MAX), 0);
    CHECK_EQ(sn_wait_group_wait(&group, SN_NOWAIT), -ETIMEDOUT);
}

struct work {
    sn_wait_group *group;
    int *sum; /* each its own place */
};

static int work(void *arg)
{
    const struct work *w = arg;
    sn_yield();
    *w->sum = 1;
    return sn_wait_group_done(w->group);
}

static void *work_in_thread(void *arg)
{
    CHECK_EQ(work(arg), 0);
    return NULL;
}

/* The group, and what was written, is a variable of who waits, and reused at once. */
TASK_TEST(who_waits_for_a_group_sees_what_all_have_done)
{
    (void)arg;
    enum { TASKS = 30, THREADS = 4 };
    for (int round = 0; round < 5; round++) {
        sn_wait_group group = SN_WAIT_GROUP_INIT;
        pthread_t thread[THREADS];
        int sum[TASKS + THREADS] = {0};
        CHECK_EQ(sn_wait_group_add(&group, TASKS + THREADS), 0);
        struct work w[TASKS + THREADS];
        for (int i = 0; i < TASKS + THREADS; i++) {
            w[i] = (struct work){&group, &sum[i]};
            if (i < TASKS)
                CHECK_EQ(sn_spawn_detached(work, &w[i]), 0);
            else
                start_thread(&thread[i - TASKS], work_in_thread, &w[i]);
        }
        CHECK_EQ(sn_wait_group_wait(&group, SN_FOREVER), 0);
        for (int i = 0; i < TASKS + THREADS; i++)
            CHECK_EQ(sum[i], 1);
        CHECK_EQ(sn_wait_group_finish(&group), 0);
        group = (sn_wait_group){{{UINT64_MAX}, NULL}}; /* nobody looks there any more */
        for (int i = 0; i < THREADS; i++)
            join_thread(thread[i]);
        CHECK_EQ(group.gate_.word_.raw_, UINT64_MAX);
    }
    return 0;
}

static int wait_for_group(void *arg)
{
    return sn_wait_group_wait(arg, SN_FOREVER);
}

static void *wait_in_thread(void *arg)
{
    CHECK_EQ(wait_for_group(arg), 0);
    return NULL;
}

typedef struct waiting {
    sn_coro coro;
    sn_wait_group *group;
    sn_sync_state state;
} waiting;

SN_CORO(waiting, self)
{
    int rc;
    SN_BEGIN(self);
    SN_AWAIT_INTO(rc, sn_wait_group_wait_op(&self->state, self->group));
    SN_RETURN(rc);
    SN_END();
}

TASK_TEST(all_who_wait_for_a_group_go_on_when_it_is_done)
{
    (void)arg;
    enum { EACH = 12 };
    sn_wait_group group = SN_WAIT_GROUP_INIT;
    pthread_t thread[EACH];
    sn_task *fiber[EACH];
    sn_task *coro[EACH];
    CHECK_EQ(sn_wait_group_add(&group, 1), 0);
    for (int i = 0; i < EACH; i++) {
        waiting frame = {.group = &group};
        start_thread(&thread[i], wait_in_thread, &group);
        fiber[i] = sn_spawn(wait_for_group, &group);
        coro[i] = sn_spawn_coro(waiting, &frame);
    }
    until_guests(&group.gate_, 3 * EACH);
    CHECK_EQ(sn_wait_group_add(&group, 1), 0); /* while they wait */
    CHECK_EQ(sn_wait_group_done(&group), 0);
    CHECK_EQ(guests_at(&group.gate_), 3 * EACH);
    CHECK_EQ(sn_wait_group_done(&group), 0);
    for (int i = 0; i < EACH; i++) {
        CHECK_EQ(sn_join(fiber[i], NULL), 0);
        CHECK_EQ(sn_join(coro[i], NULL), 0);
        join_thread(thread[i]);
    }
    return sn_wait_group_finish(&group);
}

MISUSE_TEST(doing_more_than_was_begun_is_an_error, -ERANGE, "more was done than")
{
    sn_wait_group group = SN_WAIT_GROUP_INIT;
    return sn_wait_group_done(&group);
}

MISUSE_TEST(beginning_more_than_can_be_counted_is_an_error, -EOVERFLOW, "more than it can count")
{
    sn_wait_group group = SN_WAIT_GROUP_INIT;
    CHECK_EQ(sn_wait_group_add(&group, UINT32_MAX), 0);
    return sn_wait_group_add(&group, 1);
}

MISUSE_TEST(finishing_a_group_that_is_not_done_is_an_error, -EBUSY, "in use, or waited for")
{
    sn_wait_group group = SN_WAIT_GROUP_INIT;
    CHECK_EQ(sn_wait_group_add(&group, 1), 0);
    return sn_wait_group_finish(&group);
}
