/* SPDX-License-Identifier: MIT */
/* The condition (R90): no signal is lost, deadlines, drops, moving to the mutex; fibers, threads
 * and coroutines; and what wakers do meanwhile. */
#include "unit/sync/guests.h"

#include <unistd.h>

static sn_mutex m;
static sn_cond changed;
static int ready; /* guarded by m, and so are the next */
static int served;
static int order[64];

static void reset(void)
{
    m = (sn_mutex)SN_MUTEX_INIT;
    changed = (sn_cond)SN_COND_INIT;
    ready = 0;
    served = 0;
}

static void finish(void)
{
    CHECK_EQ(sn_cond_finish(&changed), 0);
    CHECK_EQ(sn_mutex_finish(&m), 0);
}

/* Take one of what is ready. */
static int take(void *arg)
{
    int rc = sn_mutex_lock(&m, SN_FOREVER);
    while (rc == 0 && ready == 0)
        rc = sn_cond_wait(&changed, &m, SN_FOREVER);
    if (rc < 0)
        return rc;
    ready--;
    order[served++] = arg != NULL ? *(int *)arg : 0;
    return sn_mutex_unlock(&m);
}

static void make_ready(int n, int (*tell)(sn_cond *), bool held)
{
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    ready += n;
    if (held)
        CHECK_EQ(tell(&changed), 0);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    if (!held)
        CHECK_EQ(tell(&changed), 0);
}

TASK_TEST(a_signal_lets_the_one_go_on_that_has_waited_longest)
{
    (void)arg;
    sn_task *task[8];
    int numbers[8];
    reset();
    for (int i = 0; i < 8; i++) {
        numbers[i] = i;
        task[i] = sn_spawn(take, &numbers[i]);
        until_guests(&changed.gate_, (unsigned)i + 1);
    }
    for (int i = 0; i < 8; i++) {
        make_ready(1, sn_cond_signal, i % 2 == 0);
        CHECK_EQ(sn_join(task[i], NULL), 0);
        CHECK_EQ(order[i], i);
        CHECK_EQ(guests_at(&changed.gate_), 7 - (unsigned)i);
    }
    finish();
    return 0;
}

TASK_TEST(a_broadcast_lets_all_go_on)
{
    (void)arg;
    sn_task *task[50];
    for (int held = 0; held < 2; held++) {
        reset();
        for (int i = 0; i < 50; i++)
            task[i] = sn_spawn(take, NULL);
        until_guests(&changed.gate_, 50);
        make_ready(50, sn_cond_broadcast, held);
        for (int i = 0; i < 50; i++)
            CHECK_EQ(sn_join(task[i], NULL), 0);
        CHECK_EQ(served, 50);
        finish();
    }
    return 0;
}

TASK_TEST(who_is_signalled_waits_for_the_mutex_without_being_woken_first)
{
    (void)arg;
    sn_task *task[20];
    reset();
    for (int i = 0; i < 20; i++)
        task[i] = sn_spawn(take, NULL);
    until_guests(&changed.gate_, 20);
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    ready = 20;
    CHECK_EQ(sn_cond_broadcast(&changed), 0);
    CHECK_EQ(guests_at(&changed.gate_), 0);
    CHECK_EQ(guests_at(&m.gate_), 20);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    finish();
    return 0;
}

TEST(signals_that_nobody_waits_for_do_nothing)
{
    reset();
    CHECK_EQ(sn_cond_signal(&changed), 0);
    CHECK_EQ(sn_cond_broadcast(&changed), 0);
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    CHECK_EQ(sn_cond_wait(&changed, &m, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_cond_wait(&changed, &m, sn_after(SN_US(100))), -ETIMEDOUT);
    CHECK_EQ(sn_mutex_unlock(&m), 0); /* it is ours each time */
    finish();
}

/* ---- no signal is lost ---------------------------------------------------------------------- */

enum { MANY = 200, CAPACITY = 3 };

static sn_cond has_room;

static int produce(void *arg)
{
    (void)arg;
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
        while (ready == CAPACITY)
            CHECK_EQ(sn_cond_wait(&has_room, &m, SN_FOREVER), 0);
        ready++;
        CHECK_EQ(sn_mutex_unlock(&m), 0);
        CHECK_EQ(sn_cond_signal(&changed), 0);
    }
    return 0;
}

static int consume(void *arg)
{
    (void)arg;
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
        while (ready == 0)
            CHECK_EQ(sn_cond_wait(&changed, &m, SN_FOREVER), 0);
        ready--;
        served++;
        CHECK_EQ(sn_cond_signal(&has_room), 0);
        CHECK_EQ(sn_mutex_unlock(&m), 0);
    }
    return 0;
}

static void *consume_in_thread(void *arg)
{
    (void)consume(arg);
    return NULL;
}

typedef struct consumer {
    sn_coro coro;
    int i;
    sn_sync_state state;
} consumer;

SN_CORO(consumer, self)
{
    SN_BEGIN(self);
    for (self->i = 0; self->i < MANY; self->i++) {
        SN_AWAIT(sn_mutex_lock_op(&self->state, &m));
        while (ready == 0)
            SN_AWAIT(sn_cond_wait_op(&self->state, &changed, &m));
        ready--;
        served++;
        CHECK_EQ(sn_cond_signal(&has_room), 0);
        CHECK_EQ(sn_mutex_unlock(&m), 0);
    }
    SN_RETURN(0);
    SN_END();
}

/* Everybody waits for one signal each: one that is lost, and all sleep for ever. */
TASK_TEST(a_bounded_buffer_of_two_conditions_never_gets_stuck)
{
    (void)arg;
    sn_task *task[9];
    pthread_t thread[2];
    reset();
    has_room = (sn_cond)SN_COND_INIT;
    for (int i = 0; i < 5; i++)
        task[i] = sn_spawn(produce, NULL);
    task[5] = sn_spawn(consume, NULL);
    for (int i = 0; i < 2; i++) {
        consumer frame = {.i = 0};
        task[6 + i] = sn_spawn_coro(consumer, &frame);
        start_thread(&thread[i], consume_in_thread, NULL);
    }
    for (int i = 0; i < 8; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    for (int i = 0; i < 2; i++)
        join_thread(thread[i]);
    CHECK_EQ(served, 5 * MANY);
    CHECK_EQ(ready, 0);
    finish();
    return sn_cond_finish(&has_room);
}

/* ---- deadlines and drops -------------------------------------------------------------------- */

static int wait_until(void *arg)
{
    int rc = sn_mutex_lock(&m, SN_FOREVER);
    if (rc == 0)
        rc = sn_cond_wait(&changed, &m, *(sn_deadline *)arg);
    if (rc == 0)
        served++;
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    return rc;
}

TASK_TEST(a_signal_goes_past_one_whose_time_is_up)
{
    (void)arg;
    reset();
    sn_deadline soon = sn_after(SN_MS(1));
    sn_deadline never = SN_FOREVER;
    sn_task *first = sn_spawn(wait_until, &soon);
    CHECK_EQ(sn_join(first, NULL), -ETIMEDOUT);
    sn_task *second = sn_spawn(wait_until, &never);
    until_guests(&changed.gate_, 1);
    CHECK_EQ(sn_cond_signal(&changed), 0);
    CHECK_EQ(sn_join(second, NULL), 0);
    finish();
    return 0;
}

/* Signal one whose time is up after `patience_ns`, and hold the mutex until then. False: on this
 * machine its time was up before we came to signal. */
static bool signal_in_time(int64_t patience_ns)
{
    reset();
    sn_deadline soon = sn_after(patience_ns);
    sn_task *t = sn_spawn(wait_until, &soon);
    while (guests_at(&changed.gate_) != 1 && sn_now() < soon.ns)
        sn_yield();
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    CHECK_EQ(sn_cond_signal(&changed), 0);
    bool in_time = sn_now() < soon.ns;
    if (in_time)
        CHECK_EQ(guests_at(&m.gate_), 1);
    while (guests_at(&m.gate_) == 1 && served == 0 && sn_now() < soon.ns + SN_MS(3))
        CHECK_EQ(sn_sleep(SN_MS(1)), 0);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    int rc = sn_join(t, NULL);
    CHECK(rc == 0 || (rc == -ETIMEDOUT && !in_time));
    finish();
    return in_time;
}

TASK_TEST(one_that_is_signalled_in_time_has_not_timed_out_however_long_the_mutex_is_held)
{
    (void)arg;
    int64_t patience_ns = SN_MS(30);
    while (!signal_in_time(patience_ns)) {
        patience_ns *= 4;
        CHECK_LT(patience_ns, SN_S(10));
    }
    return 0;
}

static int wait_a_moment(void *arg)
{
    int signalled = 0;
    for (int i = 0; i < *(int *)arg; i++) {
        int rc = sn_mutex_lock(&m, SN_FOREVER);
        if (rc == 0)
            rc = sn_cond_wait(&changed, &m, sn_after(SN_US(i % 6 * 25)));
        CHECK(rc == 0 || rc == -ETIMEDOUT);
        signalled += rc == 0;
        CHECK_EQ(sn_mutex_unlock(&m), 0);
    }
    return signalled;
}

TASK_TEST(deadlines_and_signals_race_and_nobody_is_signalled_twice)
{
    (void)arg;
    sn_task *task[16];
    int rounds = 40;
    int signals = 0;
    int heard = 0;
    reset();
    for (int i = 0; i < 16; i++)
        task[i] = sn_spawn(wait_a_moment, &rounds);
    for (int i = 0; i < 300; i++, signals++) {
        CHECK_EQ(sn_cond_signal(&changed), 0);
        sn_yield();
    }
    for (int i = 0; i < 16; i++) {
        int rc = sn_join(task[i], NULL);
        CHECK_GE(rc, 0);
        heard += rc;
    }
    CHECK_LE(heard, signals);
    finish();
    return 0;
}

TEST(a_dropped_operation_passes_on_the_signal_that_it_was_given)
{
    for (int held = 0; held < 2; held++) {
        sn_sync_state state[3];
        sn_future *fut[3];
        struct by_hand hand[3] = {{{0}}};
        reset();
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(poll_by_hand(sn_mutex_lock_op(&state[i], &m), &hand[i]).value, 0);
            fut[i] = sn_cond_wait_op(&state[i], &changed, &m);
            CHECK(sn_poll_pending(poll_by_hand(fut[i], &hand[i])));
        }
        if (held)
            CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
        CHECK_EQ(sn_cond_signal(&changed), 0);
        CHECK_EQ(hand[0].wakes.raw_, held ? 0 : 1);
        CHECK_EQ(guests_at(&changed.gate_), 2);
        CHECK_EQ(sn_future_drop(fut[0]), 0);
        CHECK_EQ(guests_at(&changed.gate_), 1); /* it is the next one's */
        if (held)
            CHECK_EQ(sn_mutex_unlock(&m), 0);
        CHECK_EQ(hand[1].wakes.raw_, 1);
        CHECK_EQ(sn_future_drop(fut[2]), 0);
        CHECK_EQ(poll_by_hand(fut[1], &hand[1]).value, 0);
        CHECK_EQ(sn_mutex_unlock(&m), 0);
        finish();
    }
}

/* ---- who must not wait, and wakers ---------------------------------------------------------- */

typedef struct hasty {
    sn_coro coro;
    sn_sync_state state;
    int rc;
} hasty;

SN_CORO(hasty, self)
{
    SN_BEGIN(self);
    SN_AWAIT(sn_mutex_lock_op(&self->state, &m));
    struct by_hand hand = {{0}};
    sn_sync_state state;
    sn_future *next = sn_mutex_lock_op(&state, &m);
    CHECK(sn_poll_pending(poll_by_hand(next, &hand)));
    self->rc = sn_cond_wait(&changed, &m, SN_NOWAIT);
    CHECK_EQ(hand.wakes.raw_, 0); /* nobody else has had it meanwhile */
    CHECK_EQ(guests_at(&changed.gate_), 0);
    CHECK_EQ(sn_future_drop(next), 0);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    SN_RETURN(self->rc);
    SN_END();
}

TASK_TEST(a_coroutine_that_does_not_wait_for_a_condition_keeps_the_mutex)
{
    (void)arg;
    for (int fair = 0; fair < 2; fair++) {
        reset();
        m.fair_ = (uint32_t)fair;
        CHECK_EQ(sn_join(sn_spawn_coro(hasty, &(hasty){.rc = 0}), NULL), -ETIMEDOUT);
        finish();
    }
    return 0;
}

MISUSE_TEST(not_waiting_without_the_mutex_is_an_error_too, -EPERM, "does not hold its mutex")
{
    reset();
    return sn_cond_wait(&changed, &m, SN_NOWAIT);
}

/* What a waker may do while the one that wakes it is about to wait: all that does not suspend. */
static struct {
    sn_event rung;
    sn_mutex taken;
    sn_sem none;
    int times;
} bell;

static void ring_the_bell(void)
{
    CHECK_EQ(sn_event_set(&bell.rung), 0);
}

static void try_what_is_taken(void)
{
    CHECK_EQ(sn_mutex_lock(&bell.taken, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_sem_acquire(&bell.none, 1, SN_NOWAIT), -ETIMEDOUT);
}

static void ask_for_input(void)
{
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(sn_wait_fd(ends[0], SN_READABLE, SN_NOWAIT), -ETIMEDOUT);
    close(ends[0]);
    close(ends[1]);
}

static int wake_and_do(void *data)
{
    bell.times++;
    (*(void (**)(void))data)();
    return 0;
}

static int wait_for_the_bell(void *arg)
{
    (void)arg;
    return sn_event_wait(&bell.rung, SN_FOREVER);
}

/* The unlock that belongs to the wait wakes somebody, whose waker does `what`. */
static void wait_beside_a_waker(void (*what)(void))
{
    static const sn_waker_vtable vt = {.wake_by_ref = wake_and_do};
    sn_waker waker = {&vt, &what};
    sn_cx cx = {&waker};
    sn_sync_state state;
    sn_future *next = sn_mutex_lock_op(&state, &m);
    reset();
    bell.times = 0;
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    CHECK(sn_poll_pending(sn_future_poll(next, &cx)));
    CHECK_EQ(sn_cond_wait(&changed, &m, sn_after(SN_MS(20))), -ETIMEDOUT);
    CHECK_EQ(bell.times, 1);
    CHECK_EQ(guests_at(&changed.gate_), 0);
    CHECK_EQ(sn_future_drop(next), 0);
    CHECK_EQ(sn_mutex_unlock(&m), 0); /* it is ours */
    finish();
}

TASK_TEST(what_a_waker_does_without_waiting_leaves_the_wait_of_who_wakes_it_alone)
{
    (void)arg;
    bell.rung = (sn_event)SN_EVENT_INIT;
    bell.taken = (sn_mutex)SN_MUTEX_INIT;
    bell.none = (sn_sem)SN_SEM_INIT(0);
    sn_task *other = sn_spawn(wait_for_the_bell, NULL);
    until_guests(&bell.rung.gate_, 1);
    wait_beside_a_waker(ring_the_bell);
    CHECK_EQ(sn_join(other, NULL), 0);
    CHECK_EQ(sn_mutex_lock(&bell.taken, SN_FOREVER), 0);
    wait_beside_a_waker(try_what_is_taken);
    wait_beside_a_waker(ask_for_input);
    return sn_mutex_unlock(&bell.taken);
}

/* ---- misuse ---------------------------------------------------------------------------------- */

MISUSE_TEST(waiting_without_the_mutex_is_an_error, -EPERM, "does not hold its mutex")
{
    reset();
    return sn_cond_wait(&changed, &m, SN_FOREVER);
}

MISUSE_TEST(finishing_a_condition_that_is_waited_for_is_an_error, -EBUSY, "waited for")
{
    sn_sync_state state;
    struct by_hand hand = {{0}};
    reset();
    CHECK_EQ(poll_by_hand(sn_mutex_lock_op(&state, &m), &hand).value, 0);
    sn_future *fut = sn_cond_wait_op(&state, &changed, &m);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    int rc = sn_cond_finish(&changed);
    CHECK_EQ(sn_future_drop(fut), 0);
    return rc;
}
