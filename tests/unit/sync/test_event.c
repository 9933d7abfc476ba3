/* SPDX-License-Identifier: MIT */
/* Events (R90), for all and for one. */
#include "unit/sync/guests.h"

#include <sched.h>

static sn_event event;
static SNI_ATOMIC(int) passed;
static int gift; /* written before the event is set, read after */

static void reset(bool one)
{
    event = one ? (sn_event)SN_EVENT_ONE_INIT : (sn_event)SN_EVENT_INIT;
    sni_atomic_store(&passed, 0, seq_cst);
    gift = 0;
}

TEST(an_event_for_all_stays_set_until_it_is_reset)
{
    reset(false);
    CHECK(!sn_event_get(&event));
    CHECK_EQ(sn_event_wait(&event, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_event_set(&event), 0);
    CHECK_EQ(sn_event_set(&event), 0);
    CHECK(sn_event_get(&event));
    CHECK_EQ(sn_event_wait(&event, SN_NOWAIT), 0);
    CHECK_EQ(sn_event_wait(&event, SN_FOREVER), 0);
    CHECK_EQ(sn_event_reset(&event), 0);
    CHECK(!sn_event_get(&event));
    CHECK_EQ(sn_event_wait(&event, sn_after(SN_US(100))), -ETIMEDOUT);
    CHECK_EQ(sn_event_finish(&event), 0);
}

TEST(an_event_for_one_lets_one_pass_each_time)
{
    reset(true);
    CHECK_EQ(sn_event_wait(&event, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_event_set(&event), 0);
    CHECK_EQ(sn_event_set(&event), 0); /* once is as good as twice */
    CHECK(sn_event_get(&event));
    CHECK_EQ(sn_event_wait(&event, SN_NOWAIT), 0);
    CHECK_EQ(sn_event_wait(&event, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_event_set(&event), 0);
    CHECK_EQ(sn_event_reset(&event), 0);
    CHECK_EQ(sn_event_wait(&event, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_event_finish(&event), 0);
}

static int wait_for_it(void *arg)
{
    (void)arg;
    int rc = sn_event_wait(&event, SN_FOREVER);
    CHECK_EQ(gift, 7);
    sni_atomic_fetch_add(&passed, 1, seq_cst);
    return rc;
}

static void *wait_in_thread(void *arg)
{
    CHECK_EQ(wait_for_it(arg), 0);
    return NULL;
}

typedef struct waiting {
    sn_coro coro;
    sn_sync_state state;
} waiting;

SN_CORO(waiting, self)
{
    int rc;
    SN_BEGIN(self);
    SN_AWAIT_INTO(rc, sn_event_wait_op(&self->state, &event));
    CHECK_EQ(gift, 7);
    sni_atomic_fetch_add(&passed, 1, seq_cst);
    SN_RETURN(rc);
    SN_END();
}

static void wait_by_all_kinds(bool one)
{
    enum { EACH = 12 };
    pthread_t thread[EACH];
    sn_task *fiber[EACH];
    sn_task *coro[EACH];
    reset(one);
    for (int i = 0; i < EACH; i++) {
        waiting frame = {0};
        start_thread(&thread[i], wait_in_thread, NULL);
        fiber[i] = sn_spawn(wait_for_it, NULL);
        coro[i] = sn_spawn_coro(waiting, &frame);
    }
    until_guests(&event.gate_, 3 * EACH);
    gift = 7;
    for (int i = 0; i < (one ? 3 * EACH : 1); i++) {
        CHECK_EQ(sn_event_set(&event), 0);
        if (one) {
            CHECK_EQ(guests_at(&event.gate_), 3u * EACH - 1 - (unsigned)i);
            CHECK(!sn_event_get(&event));
        }
    }
    for (int i = 0; i < EACH; i++) {
        CHECK_EQ(sn_join(fiber[i], NULL), 0);
        CHECK_EQ(sn_join(coro[i], NULL), 0);
        join_thread(thread[i]);
    }
    CHECK_EQ(sni_atomic_load(&passed, seq_cst), 3 * EACH);
    CHECK_EQ(sn_event_get(&event), !one);
    CHECK_EQ(sn_event_finish(&event), 0);
}

TASK_TEST(an_event_for_all_lets_all_pass_that_wait)
{
    (void)arg;
    wait_by_all_kinds(false);
    return 0;
}

TASK_TEST(an_event_for_one_lets_them_pass_one_by_one)
{
    (void)arg;
    wait_by_all_kinds(true);
    return 0;
}

TEST(a_dropped_operation_passes_on_an_event_for_one)
{
    sn_sync_state state[2];
    sn_future *fut[2];
    struct by_hand hand[2] = {{{0}}};
    reset(true);
    for (int i = 0; i < 2; i++) {
        fut[i] = sn_event_wait_op(&state[i], &event);
        CHECK(sn_poll_pending(poll_by_hand(fut[i], &hand[i])));
    }
    CHECK_EQ(sn_event_set(&event), 0);
    CHECK_EQ(sn_future_drop(fut[0]), 0);
    CHECK_EQ(poll_by_hand(fut[1], &hand[1]).value, 0);
    fut[0] = sn_event_wait_op(&state[0], &event);
    CHECK(sn_poll_pending(poll_by_hand(fut[0], &hand[0])));
    CHECK_EQ(sn_event_set(&event), 0);
    CHECK_EQ(sn_future_drop(fut[0]), 0);
    CHECK(sn_event_get(&event)); /* nobody else is there: it is kept for who comes */
    CHECK_EQ(sn_event_finish(&event), 0);
}

/* ---- more than the setter can remember ------------------------------------------------------- */

enum { MANY = 3 * SNI_GATE_WAKES_MAX + 1 };

static int woken[MANY]; /* in this order */
static int woken_n;

/* A waker may use the event itself: it is not locked. */
static int note_and_reset(void *data)
{
    CHECK_LT(woken_n, MANY);
    woken[woken_n++] = *(int *)data;
    return sn_event_reset(&event);
}

TEST(many_coroutines_are_woken_in_order_with_the_event_unlocked)
{
    static const sn_waker_vtable vt = {.wake_by_ref = note_and_reset};
    sn_sync_state state[MANY];
    sn_future *fut[MANY];
    int numbers[MANY];
    reset(false);
    woken_n = 0;
    for (int i = 0; i < MANY; i++) {
        numbers[i] = i;
        sn_waker waker = {&vt, &numbers[i]};
        sn_cx cx = {&waker};
        fut[i] = sn_event_wait_op(&state[i], &event);
        CHECK(sn_poll_pending(sn_future_poll(fut[i], &cx)));
    }
    CHECK_EQ(sn_future_drop(fut[MANY / 2]), 0);
    CHECK_EQ(sn_event_set(&event), 0);
    CHECK_EQ(woken_n, MANY - 1);
    for (int i = 0, k = 0; i < MANY; i++) {
        if (i == MANY / 2)
            continue;
        CHECK_EQ(woken[k++], i);
        struct by_hand hand = {{0}};
        CHECK_EQ(poll_by_hand(fut[i], &hand).value, 0);
    }
    CHECK_EQ(sn_event_finish(&event), 0);
}

TEST(many_threads_are_woken)
{
    pthread_t thread[MANY];
    reset(false);
    for (int i = 0; i < MANY; i++)
        start_thread(&thread[i], wait_in_thread, NULL);
    while (guests_at(&event.gate_) < MANY)
        sched_yield();
    gift = 7;
    CHECK_EQ(sn_event_set(&event), 0);
    for (int i = 0; i < MANY; i++)
        join_thread(thread[i]);
    CHECK_EQ(sni_atomic_load(&passed, seq_cst), MANY);
    CHECK_EQ(sn_event_finish(&event), 0);
}

/* ---- an event that ends with the wait ------------------------------------------------------- */

static int set_once(void *arg)
{
    return sn_event_set(*(sn_event **)arg);
}

/* What is reported as used after its end, by a sanitizer, if a set touches it too late. */
static int wait_and_forget(void *arg)
{
    for (int i = 0; i < *(int *)arg; i++) {
        sn_event local = SN_EVENT_INIT;
        sn_event *pointer = &local;
        sn_task *t = sn_spawn(set_once, &pointer);
        CHECK_EQ(sn_event_wait(&local, SN_FOREVER), 0);
        local = (sn_event)SN_EVENT_ONE_INIT; /* ours alone from here on */
        CHECK_EQ(sn_event_set(&local), 0);
        CHECK_EQ(sn_event_wait(&local, SN_NOWAIT), 0);
        CHECK_EQ(sn_join(t, NULL), 0);
        CHECK(!sn_event_get(&local));
    }
    return 0;
}

TASK_TEST(an_event_is_not_touched_any_more_when_the_wait_returns)
{
    (void)arg;
    int rounds = 100;
    sn_task *task[8];
    for (int i = 0; i < 8; i++)
        task[i] = sn_spawn(wait_and_forget, &rounds);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    return 0;
}

MISUSE_TEST(finishing_an_event_that_is_waited_for_is_an_error, -EBUSY, "waited for")
{
    sn_sync_state state;
    struct by_hand hand = {{0}};
    reset(false);
    sn_future *fut = sn_event_wait_op(&state, &event);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    int rc = sn_event_finish(&event);
    CHECK_EQ(sn_future_drop(fut), 0);
    return rc;
}
