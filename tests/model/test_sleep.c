/* SPDX-License-Identifier: MIT */
/* test_sleep.c - src/timer/sleep.c and alarm.c: whoever polls a sleep, with one waker or another,
 * or drops it, and whoever rings. No wake is lost, which would leave the poller parked; each
 * reference to a waker is dropped; and when the poller has left, nobody touches the operation; the
 * lock of a clockwork excludes (R43, R70, R71). */
#include "model/model.h"

#include "base/atomic.h"
#include "harness.h"
#include "sched/idle.h"
#include "timer/alarm.h"
#include "wait/wait.h"

#include <sinew/time.h>
#include <string.h>

enum { AT_NS = 10, POLLS_MAX = 8 };

static struct sni_clockwork cw;
static struct sni_wheel_slots slots;
static struct sni_exec exec;
static sn_sleep_state state;
static struct sni_parker parker;
static struct model_data before_the_ring;
static struct model_data under_lock;
static int references[POLLS_MAX]; /* to the waker of each poll        */
static uintptr_t latest;          /* the waker that was polled with last */
static SNI_ATOMIC(uint32_t) is_known;

static void *add_reference(void *data)
{
    references[(uintptr_t)data]++;
    return data;
}

static void drop_reference(void *data)
{
    references[(uintptr_t)data]--;
    MODEL_CHECK(references[(uintptr_t)data] >= 0);
}

/* Who is not the latest has gone, and wakes nobody. */
static int wake_by_ref(void *data)
{
    if ((uintptr_t)data == latest)
        sni_parker_unpark(&parker);
    return 0;
}

static const sn_waker_vtable vtable = {
    .clone = add_reference, .wake_by_ref = wake_by_ref, .drop = drop_reference};

static void reset(void)
{
    static const struct sni_exec_ops ops = {.resumes_late = false};
    sni_clockwork_init(&cw, &slots, 0, 1);
    exec = (struct sni_exec){.ops = &ops, .clockwork = &cw};
    sni_parker_init(&parker);
    before_the_ring = (struct model_data){0};
    under_lock = (struct model_data){0};
    memset(references, 0, sizeof(references));
    latest = 0;
    sni_atomic_store(&is_known, 0, relaxed);
}

/* The nth poll; each with a waker of its own, or all with the same. */
static sn_poll poll_once(int nth, bool same)
{
    MODEL_CHECK(nth < POLLS_MAX);
    latest = same ? 0 : (uintptr_t)nth;
    sn_waker waker = {.vt = &vtable, .data = (void *)latest};
    sn_cx cx = {&waker};
    return sn_future_poll(&state.future_, &cx);
}

static void leave(void)
{
    memset(&state, 0xa5, sizeof(state)); /* whoever still uses it goes astray */
}

static void poll_until_over(bool same)
{
    sni_exec_set(&exec);
    (void)sn_sleep_op(&state, sn_deadline_at_(AT_NS));
    for (int nth = 0;; nth++) {
        sn_poll p = poll_once(nth, same);
        if (!sn_poll_pending(p))
            break;
        if (nth == 0)
            sni_atomic_store(&is_known, 1, release);
        if (nth > 0 || model_choose(2) == 0)
            sni_parker_park(&parker, INT64_MAX);
    }
    model_read(&before_the_ring);
    leave();
}

static void poll_with_one_waker(void)
{
    poll_until_over(true);
}

static void poll_with_others(void)
{
    poll_until_over(false);
}

static void poll_and_drop(void)
{
    sni_exec_set(&exec);
    (void)sn_sleep_op(&state, sn_deadline_at_(AT_NS));
    if (sn_poll_pending(poll_once(0, true)))
        MODEL_CHECK(sn_future_drop(&state.future_) == 0);
    leave();
}

static void ring_when_known(void)
{
    while (sni_atomic_load(&is_known, acquire) == 0)
        model_yield();
    model_write(&before_the_ring);
    MODEL_CHECK(sni_clockwork_run(&cw, AT_NS, 1) == 1);
}

static void ring_at_any_time(void)
{
    model_write(&before_the_ring);
    (void)sni_clockwork_run(&cw, AT_NS, 1);
}

static void check_end(void)
{
    for (int i = 0; i < POLLS_MAX; i++)
        MODEL_CHECK(references[i] == 0);
    MODEL_CHECK(sni_wheel_count(&cw.wheel) == 0);
}

static const struct model one_waker = {reset, {poll_with_one_waker, ring_when_known}, check_end};
static const struct model other_wakers = {reset, {poll_with_others, ring_when_known}, check_end};
static const struct model dropped = {reset, {poll_and_drop, ring_at_any_time}, check_end};

TEST(a_sleep_that_is_polled_with_one_waker_meets_its_ring)
{
    model_holds(&one_waker, &(struct model_options){.preemptions = 3});
    model_holds(&one_waker, &(struct model_options){.preemptions = 2, .store_buffers = true});
}

TEST(a_sleep_that_is_polled_with_other_wakers_meets_its_ring)
{
    model_holds(&other_wakers, &(struct model_options){.preemptions = 3});
    model_holds(&other_wakers, &(struct model_options){.preemptions = 2, .store_buffers = true});
}

TEST(a_sleep_that_is_dropped_meets_its_ring)
{
    model_holds(&dropped, &(struct model_options){.preemptions = 4});
    model_holds(&dropped, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

TEST(sleep_planted_relaxed_ring_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_RELAXED, .function = "ring"};
    model_finds(&one_waker, &options, "race");
}

/* ---- the lock ------------------------------------------------------------------------------- */

static struct sni_alarm alarms[2];

static void touch(struct sni_alarm *alarm)
{
    (void)alarm;
    model_write(&under_lock);
}

static void reset_lock(void)
{
    reset();
    for (int i = 0; i < 2; i++)
        sni_alarm_init(&alarms[i], touch);
}

static void set_and_clear(void)
{
    struct sni_alarm *alarm = &alarms[model_self()];
    sni_alarm_set(alarm, &cw, AT_NS);
    if (sni_alarm_hold(alarm))
        model_write(&under_lock);
    sni_alarm_let_go(alarm);
    (void)sni_alarm_clear(alarm);
}

static void ring_all(void)
{
    (void)sni_clockwork_run(&cw, AT_NS, 1);
}

static void check_empty(void)
{
    MODEL_CHECK(sni_wheel_count(&cw.wheel) == 0);
    MODEL_CHECK(!sni_timer_is_armed(&alarms[0].timer) && !sni_timer_is_armed(&alarms[1].timer));
}

static const struct model locked = {
    reset_lock, {set_and_clear, set_and_clear, ring_all}, check_empty};

static const struct model two_locked = {reset_lock, {set_and_clear, ring_all}, check_empty};

TEST(a_clockwork_excludes_all_from_each_other)
{
    model_holds(&locked, &(struct model_options){.preemptions = 2});
    model_holds(&locked, &(struct model_options){.preemptions = 1, .store_buffers = true});
    model_holds(&two_locked, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

TEST(clockwork_planted_lock_in_two_steps_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_brief_try"};
    model_finds(&locked, &options, "");
}

TEST(clockwork_planted_relaxed_lock_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_RELAXED, .function = "sni_brief_try"};
    model_finds(&locked, &options, "race");
}

TEST(clockwork_planted_relaxed_unlock_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_RELAXED, .function = "sni_brief_unlock"};
    model_finds(&locked, &options, "race");
}
