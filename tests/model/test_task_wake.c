/* SPDX-License-Identifier: MIT */
/* test_task_wake.c - src/task/task.c, all interleavings (R20, R43, R61): a coroutine task between
 * those who poll it, wake it, join it, cancel it and drop its wakers. Rule 4 of task.h: a wake is
 * never lost, which would be a deadlock here; the task is in one queue at most; one thread polls it
 * at a time, and each poll sees what the one before left.
 *
 * The queue is one word. Whoever queues the task must find it empty. */
#include "model/model.h"
#include "model/task_home.h"

#include "base/atomic.h"
#include "harness.h"
#include "wait/await.h"

#include <sinew/errno.h>
#include <sinew/future.h>

enum { EMPTY, FULL, OVER };

static struct sni_task *task;
static sn_task *handle;
static SNI_ATOMIC(uint32_t) queue;
static SNI_ATOMIC(uint32_t) events; /* that have happened */
static unsigned events_wanted;      /* by the coroutine, before it ends; each has a waker */
static sn_waker wakers[2];
static struct model_data gift;  /* written before the one event, where there is one */
static struct model_data frame; /* of the coroutine */
static bool frame_in_use;
static bool setting_up;
static unsigned polls;
static unsigned polls_for_nothing; /* that may come before an event: 1 if it begins queued */
static unsigned yields_left;       /* polls that are to wake the task themselves */
static int joined;

/* ---- the coroutine --------------------------------------------------------------------------- */

static sn_poll poll_events(sn_future *fut, sn_cx *cx)
{
    (void)fut;
    if (setting_up) {
        for (unsigned i = 0; i < events_wanted; i++)
            wakers[i] = sn_waker_clone(cx->waker);
        return SN_PENDING;
    }
    MODEL_CHECK(!frame_in_use);
    frame_in_use = true;
    model_write(&frame);
    bool woken = ++polls > polls_for_nothing;
    if (woken && events_wanted == 1)
        model_read(&gift);
    /* relaxed: the wake brings the order, which is what the gift checks */
    bool all = sni_atomic_load(&events, relaxed) == events_wanted;
    MODEL_CHECK(all || !woken || events_wanted > 1);
    if (yields_left > 0) { /* perhaps after all events: then nobody else wakes it */
        yields_left--;
        polls_for_nothing++;
        MODEL_CHECK(sn_waker_wake_by_ref(cx->waker) == 0);
        all = false;
    }
    frame_in_use = false;
    return all ? SN_READY(HOME_RESULT) : SN_PENDING;
}

static const sn_future_vtable vtable = {.poll = poll_events, .name = "events"};

static void put_into_queue(struct sni_task *t)
{
    MODEL_CHECK(t == task);
    model_read(&life_of(t)->memory);
    uint32_t before = sni_atomic_exchange(&queue, FULL, acq_rel); /* acq_rel: as a queue would */
    MODEL_CHECK(before == EMPTY);
    sni_plat_unpark(&queue.raw_, 1);
}

static void close_queue(struct sni_task *t)
{
    MODEL_CHECK(t == task);
    uint32_t before = sni_atomic_exchange(&queue, OVER, acq_rel); /* as above */
    MODEL_CHECK(before == EMPTY);
    sni_plat_unpark(&queue.raw_, INT32_MAX);
}

static void reset(bool has_handle, bool queued)
{
    sn_future future;
    home_reset(&(struct home_hooks){.ready = put_into_queue, .ended = close_queue});
    (void)sn_future_init(&future, &vtable);
    task = home_coroutine(&future, sizeof(future), has_handle);
    handle = has_handle ? sni_task_handle(task) : NULL;
    sni_atomic_store(&queue, EMPTY, relaxed); /* relaxed, both: nobody is there yet */
    sni_atomic_store(&events, 0, relaxed);
    gift = (struct model_data){0};
    frame = (struct model_data){0};
    frame_in_use = false;
    polls = 0;
    joined = 0;
    setting_up = true;
    struct sni_task_exec me = home_exec(NULL);
    MODEL_CHECK(!sni_task_poll(&me, task)); /* the first poll, which leaves its wakers */
    setting_up = false;
    polls_for_nothing = queued;
    yields_left = 0;
    if (queued)
        MODEL_CHECK(sn_waker_wake_by_ref(&wakers[0]) == 0);
}

static void reset_waiting(void)
{
    reset(false, false);
}

static void reset_queued(void)
{
    reset(false, true);
}

static void reset_yielding(void)
{
    reset(false, true);
    yields_left = 1;
}

static void reset_queued_with_handle(void)
{
    reset(true, true);
}

/* One that waits for nothing, for ever, and has just been spawned. */
static sn_poll poll_endless(sn_future *fut, sn_cx *cx)
{
    (void)fut, (void)cx;
    MODEL_CHECK(!frame_in_use);
    frame_in_use = true;
    model_write(&frame);
    frame_in_use = false;
    return SN_PENDING;
}

static const sn_future_vtable endless = {.poll = poll_endless, .name = "endless"};

static void reset_endless(void)
{
    sn_future future;
    home_reset(&(struct home_hooks){.ready = put_into_queue, .ended = close_queue});
    (void)sn_future_init(&future, &endless);
    task = home_coroutine(&future, sizeof(future), true);
    handle = sni_task_handle(task);
    frame = (struct model_data){0};
    frame_in_use = false;
    joined = 0;
    sni_atomic_store(&queue, FULL, relaxed); /* relaxed: nobody is there yet */
}

/* One that waits for a claim, by an operation in its frame that borrows its waker (await.c). */
struct awaiting {
    sn_future future;
    struct sni_await await;
    struct sni_waiter waiter;
};
static struct awaiting *awaiting;

static sn_poll poll_await(sn_future *fut, sn_cx *cx)
{
    struct awaiting *op = (struct awaiting *)(void *)fut;
    if (setting_up) {
        wakers[0] = sn_waker_clone(cx->waker);
        sni_await_begin_armed(&op->await, &op->waiter, cx);
        MODEL_CHECK(op->await.is_borrowed);
        MODEL_CHECK(!sni_await_published(&op->await, &op->waiter));
        awaiting = op;
        return SN_PENDING;
    }
    MODEL_CHECK(!frame_in_use);
    frame_in_use = true;
    model_write(&frame);
    bool is_over = sni_await_poll(&op->await, &op->waiter, cx);
    frame_in_use = false;
    if (!is_over) {
        model_yield(); /* it wakes itself until the claimer has let go */
        return SN_PENDING;
    }
    sni_await_finish(&op->await);
    model_read(&gift);
    return SN_READY(HOME_RESULT);
}

static const sn_future_vtable await_vtable = {.poll = poll_await, .name = "await"};

static void reset_borrowing(void)
{
    struct awaiting op = {.await = {.is_borrowed = false}};
    home_reset(&(struct home_hooks){.ready = put_into_queue, .ended = close_queue});
    (void)sn_future_init(&op.future, &await_vtable);
    task = home_coroutine(&op.future, sizeof(op), false);
    sni_atomic_store(&queue, EMPTY, relaxed); /* relaxed: nobody is there yet */
    gift = (struct model_data){0};
    frame = (struct model_data){0};
    frame_in_use = false;
    joined = 0;
    setting_up = true;
    struct sni_task_exec me = home_exec(NULL);
    MODEL_CHECK(!sni_task_poll(&me, task));
    setting_up = false;
}

/* ---- threads --------------------------------------------------------------------------------- */

static void worker(void)
{
    struct sni_task_exec me = home_exec(NULL);
    sni_exec_set(&me.exec);
    for (;;) {
        uint32_t found = FULL;
        /* acquire: pairs with put_into_queue; relaxed: a failure tells nothing */
        if (sni_atomic_cas(&queue, &found, EMPTY, acquire, relaxed)) {
            if (sni_task_poll(&me, task))
                put_into_queue(task);
        } else if (found == OVER) {
            break;
        } else {
            (void)sni_plat_park(&queue.raw_, EMPTY, INT64_MAX);
        }
    }
    sni_exec_set(NULL);
}

static void happen(sn_waker *waker)
{
    if (events_wanted == 1)
        model_write(&gift);
    sni_atomic_fetch_add(&events, 1, relaxed); /* relaxed: see poll_events */
    model_read(&life_of(task)->memory);
    int rc = sn_waker_wake(waker);
    MODEL_CHECK(rc == 0 || rc == -ESRCH);
}

static void first_event(void)
{
    happen(&wakers[0]);
}

/* By somebody of the same runtime. */
static void inside_event(void)
{
    struct sni_task_exec me = home_exec(NULL);
    sni_exec_set(&me.exec);
    happen(&wakers[0]);
    sni_exec_set(NULL);
}

/* The task may end, and its record be freed, as soon as the claimer has let go. */
static void claim_from_outside(void)
{
    model_write(&gift);
    MODEL_CHECK(sni_wait_claim(&awaiting->waiter, 0));
}

static void claim_from_inside(void)
{
    struct sni_task_exec me = home_exec(NULL);
    sni_exec_set(&me.exec);
    claim_from_outside();
    sni_exec_set(NULL);
}

/* Wakes it for nothing, and drops what it kept the record by. */
static void bystander(void)
{
    int rc = sn_waker_wake(&wakers[0]);
    MODEL_CHECK(rc == 0 || rc == -ESRCH);
}

static void second_event(void)
{
    happen(&wakers[1]);
}

static void joiner(void)
{
    joined = sn_join(handle, NULL);
}

static void canceller(void)
{
    joined = sn_cancel(handle, NULL);
}

static void detacher(void)
{
    joined = sn_detach(handle) == 0 ? HOME_RESULT : 0;
}

static void check_over(void)
{
    home_check_over(life_of(task));
    MODEL_CHECK(queue.raw_ == OVER);
    MODEL_CHECK(polls >= 1 && polls <= polls_for_nothing + events_wanted);
}

static void check_joined(void)
{
    check_over();
    MODEL_CHECK(joined == HOME_RESULT);
}

static void check_cancelled(void)
{
    home_check_over(life_of(task));
    MODEL_CHECK(queue.raw_ == OVER);
    MODEL_CHECK(joined == -ECANCELED);
}

/* ---- models ---------------------------------------------------------------------------------- */

static const struct model one_event = {reset_queued, {worker, worker, first_event}, check_over};
static const struct model one_inside = {reset_queued, {worker, worker, inside_event}, check_over};
static const struct model two_sides = {
    reset_queued, {worker, inside_event, second_event}, check_over};
static const struct model waiting = {reset_waiting, {worker, worker, first_event}, check_over};
static const struct model two_events = {
    reset_queued, {worker, first_event, second_event}, check_over};
static const struct model two_events_two_workers = {
    reset_waiting, {worker, worker, first_event, second_event}, check_over};

TEST(task_a_wake_before_during_or_after_a_poll_is_not_lost, .limit_s = 60)
{
    events_wanted = 1;
    model_holds(&one_event, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&one_event, &(struct model_options){.store_buffers = true, .random = 20000});
    model_holds(&one_inside, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&one_inside, &(struct model_options){.store_buffers = true, .random = 20000});
    model_holds(&waiting, &(struct model_options){.preemptions = 3});
}

TEST(task_a_poll_that_wakes_its_task_is_followed_by_another, .limit_s = 60)
{
    static const struct model yield = {reset_yielding, {worker, worker, first_event}, check_over};
    static const struct model yield_inside = {
        reset_yielding, {worker, worker, inside_event}, check_over};
    static const struct model yield_two = {
        reset_yielding, {worker, inside_event, second_event}, check_over};
    events_wanted = 1;
    model_holds(&yield, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&yield, &(struct model_options){.store_buffers = true, .random = 20000});
    model_holds(&yield_inside, &(struct model_options){.preemptions = 3, .random = 20000});
    events_wanted = 2;
    model_holds(&yield_two, &(struct model_options){.preemptions = 3, .random = 20000});
}

TEST(task_two_wakes_queue_it_once, .limit_s = 60)
{
    events_wanted = 2;
    model_holds(&two_events, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&two_events, &(struct model_options){.store_buffers = true, .random = 20000});
    model_holds(&two_sides, &(struct model_options){.preemptions = 3, .random = 20000});
}

TEST(task_two_workers_never_poll_it_at_once, .limit_s = 60)
{
    events_wanted = 2;
    model_holds(&two_events_two_workers, &(struct model_options){.random = 50000});
    model_holds(&two_events_two_workers,
                &(struct model_options){.preemptions = 1, .store_buffers = true, .random = 50000});
}

TEST(task_a_coroutine_is_joined_while_its_waker_is_still_used, .limit_s = 60)
{
    static const struct model join = {
        reset_queued_with_handle, {worker, joiner, first_event}, check_joined};
    static const struct model detach = {
        reset_queued_with_handle, {worker, detacher, first_event}, check_joined};
    events_wanted = 1;
    model_holds(&join, &(struct model_options){.random = 20000});
    model_holds(&join, &(struct model_options){.preemptions = 1, .store_buffers = true});
    model_holds(&detach, &(struct model_options){.preemptions = 3, .random = 20000});
}

TEST(task_a_coroutine_is_cancelled_before_during_or_after_a_poll, .limit_s = 60)
{
    static const struct model one = {reset_endless, {worker, canceller}, check_cancelled};
    static const struct model two = {reset_endless, {worker, worker, canceller}, check_cancelled};
    model_holds(&one, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&one, &(struct model_options){.store_buffers = true, .random = 20000});
    model_holds(&two, &(struct model_options){.preemptions = 2, .random = 20000});
}

static void check_ended(void)
{
    home_check_over(life_of(task));
    MODEL_CHECK(queue.raw_ == OVER);
}

static const struct model borrowed_inside = {
    reset_borrowing, {worker, claim_from_inside, bystander}, check_ended};
static const struct model borrowed_outside = {
    reset_borrowing, {worker, claim_from_outside, bystander}, check_ended};
static const struct model borrowed_two_workers = {
    reset_borrowing, {worker, worker, claim_from_inside, bystander}, check_ended};

TEST(task_may_end_as_soon_as_who_claims_with_its_borrowed_waker_has_let_go, .limit_s = 60)
{
    model_holds(&borrowed_inside, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&borrowed_inside, &(struct model_options){.store_buffers = true, .random = 20000});
    model_holds(&borrowed_outside, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&borrowed_outside, &(struct model_options){.store_buffers = true, .random = 20000});
    model_holds(&borrowed_two_workers, &(struct model_options){.random = 50000});
}

/* ---- planted mistakes ------------------------------------------------------------------------ */

static void finds(const struct model *model, unsigned events_then, enum model_plant plant,
                  const char *function, const char *words)
{
    events_wanted = events_then;
    model_finds(model, &(struct model_options){.plant = plant, .function = function}, words);
}

TEST(task_planted_wake_without_read_modify_write_is_found)
{
    finds(&one_event, 1, MODEL_PLANT_SPLIT_RMW, "wake_from_afar", "");
    finds(&one_inside, 1, MODEL_PLANT_SPLIT_RMW, "rouse", "");
}

TEST(task_planted_end_of_a_poll_that_overlooks_a_wake_is_found)
{
    finds(&one_event, 1, MODEL_PLANT_SPLIT_RMW, "rests", "");
}

TEST(task_planted_begin_of_a_poll_that_overlooks_a_wake_is_found)
{
    finds(&one_event, 1, MODEL_PLANT_SPLIT_RMW, "learn", "");
}

TEST(task_planted_poll_that_acquires_no_wake_is_found)
{
    finds(&one_event, 1, MODEL_PLANT_RELAXED, "learn", "a race");
}

TEST(task_planted_wake_that_releases_nothing_is_found)
{
    finds(&one_event, 1, MODEL_PLANT_RELAXED, "wake_from_afar", "a race");
    finds(&one_inside, 1, MODEL_PLANT_RELAXED, "rouse", "a race");
}

TEST(task_planted_poll_that_releases_no_frame_is_found)
{
    finds(&two_events_two_workers, 2, MODEL_PLANT_RELAXED, "rests", "a race");
}

TEST(task_planted_drop_of_a_waker_without_read_modify_write_is_found)
{
    finds(&one_event, 1, MODEL_PLANT_SPLIT_RMW, "sni_task_unref", "");
}
