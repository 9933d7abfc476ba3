/* SPDX-License-Identifier: MIT */
/* Polls that wake their own task (R20, R27): noted beside the state word, see rule 4 of task.h. How
 * they meet the wakes of others is explored by tests/model/test_task_wake.c. */
#include "unit/task/with_runtime.h"

#include <stdatomic.h>

struct restless {
    sn_future future;
    atomic_int *polls;
    sn_waker *kept;
    bool ends; /* in the poll that wakes */
};

static sn_poll poll_restless(sn_future *fut, sn_cx *cx)
{
    struct restless *self = (struct restless *)(void *)fut;
    int before = atomic_load(self->polls);
    if (before == 0) {
        sn_waker one = sn_waker_clone(cx->waker);
        *self->kept = sn_waker_clone(cx->waker);
        CHECK_EQ(sn_waker_wake_by_ref(cx->waker), 0);
        CHECK_EQ(sn_waker_wake_by_ref(self->kept), 0);
        CHECK_EQ(sn_waker_wake(&one), 0);
    }
    atomic_store(self->polls, before + 1);
    return self->ends || before == 2 ? SN_READY(7) : SN_PENDING;
}

static const sn_future_vtable restless_vtable = {.poll = poll_restless, .name = "restless"};

/* R27. Nothing but the poll itself wakes it the first time. */
TASK_TEST(wakes_by_the_poll_itself_are_answered_by_one_more)
{
    (void)arg;
    atomic_int polls = 0;
    sn_waker kept = {0};
    struct restless r = {.polls = &polls, .kept = &kept};
    sn_task *t = sn_spawn_future(sn_future_init(&r.future, &restless_vtable), &r);
    while (atomic_load(&polls) < 2)
        sn_yield();
    for (int i = 0; i < 10; i++)
        sn_yield();
    CHECK_EQ(atomic_load(&polls), 2);
    CHECK_EQ(sn_waker_wake(&kept), 0);
    CHECK_EQ(sn_join(t, NULL), 7);
    CHECK_EQ(atomic_load(&polls), 3);
    return 0;
}

TASK_TEST(a_poll_that_wakes_its_task_and_completes_is_the_last)
{
    (void)arg;
    atomic_int polls = 0;
    sn_waker kept = {0};
    struct restless r = {.polls = &polls, .kept = &kept, .ends = true};
    sn_task *t = sn_spawn_future(sn_future_init(&r.future, &restless_vtable), &r);
    CHECK_EQ(sn_join(t, NULL), 7);
    CHECK_EQ(sn_waker_wake_by_ref(&kept), -ESRCH);
    sn_waker_drop(&kept);
    CHECK_EQ(atomic_load(&polls), 1);
    return 0;
}
