/* SPDX-License-Identifier: MIT */
/* Futures in a select, and awaited by fibers and plain threads (R92, R5): they stay the caller's,
 * their wakers may outlive the wait, and one that wakes itself does not keep others from running.
 * Broadcast and watch as futures (R91). */
#include "unit/sync/guests.h"

#include <sinew/sinew.h>

/* ---- sn_await --------------------------------------------------------------------------- */

static int send_9(void *arg)
{
    int v = 9;
    CHECK_EQ(sn_sleep(SN_US(300)), 0);
    return sn_chan_send(arg, &v, SN_FOREVER);
}

TASK_TEST(a_fiber_awaits_a_future)
{
    (void)arg;
    sn_chan *ch;
    sn_chan_op op;
    sn_fut_ready ready;
    int v = 0;
    CHECK_EQ(sn_await(sn_fut_ready_init(&ready, 4), SN_FOREVER), 4);
    CHECK_EQ(sn_await(sn_fut_ready_init(&ready, -EAGAIN), SN_NOWAIT), -EAGAIN);
    CHECK_EQ(sn_await(NULL, SN_FOREVER), -EINVAL);
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), 0, NULL), 0);
    sn_future *fut = sn_chan_recv_op(&op, ch, &v);
    CHECK_EQ(sn_await(fut, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_await(fut, sn_after(SN_US(200))), -ETIMEDOUT);
    CHECK(!sn_future_finished(fut));
    sn_task *t = sn_spawn(send_9, ch);
    CHECK_EQ(sn_await(fut, SN_FOREVER), 0);
    CHECK(sn_future_finished(fut));
    CHECK_EQ(v, 9);
    CHECK_EQ(sn_join(t, NULL), 0);
    CHECK_EQ(sn_chan_destroy(ch), 0);
    return 0;
}

TASK_TEST(a_fiber_awaits_what_needs_a_runtime)
{
    (void)arg;
    sn_sleep_state nap;
    sn_io_state io;
    sn_join_state join;
    sn_conn *pair[2], *conn;
    sn_listener *listener;
    sn_addr addr;
    char text[64], byte = 'x', got = 0;
    sn_chan *ch;
    CHECK_EQ(sn_await(sn_sleep_op(&nap, sn_after(SN_MS(1))), SN_FOREVER), 0);
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), 1, NULL), 0);
    CHECK_EQ(sn_await(sn_join_op(&join, sn_spawn(send_9, ch), NULL), SN_FOREVER), 0);
    CHECK_EQ(sn_chan_destroy(ch), 0);
    CHECK_EQ(sn_conn_pair(pair), 0);
    sn_future *read = sn_read_op(&io, pair[0], &got, 1);
    CHECK_EQ(sn_await(read, sn_after(SN_US(200))), -ETIMEDOUT);
    CHECK_EQ(sn_write(pair[1], &byte, 1, SN_FOREVER), 1);
    CHECK_EQ(sn_await(read, SN_FOREVER), 1);
    CHECK_EQ(got, 'x');
    CHECK_EQ(sn_close(pair[0]) | sn_close(pair[1]), 0);
    CHECK_EQ(sn_listen(&listener, "127.0.0.1:0", NULL), 0);
    CHECK_EQ(sn_listener_addr(listener, &addr), 0);
    CHECK(sn_addr_format(&addr, text, sizeof(text)) > 0);
    sn_case c = sn_case_future(sn_accept_op(&io, listener, &conn));
    CHECK_EQ(sn_select(&c, 1, 0, sn_after(SN_US(200))), -ETIMEDOUT);
    CHECK_EQ(sn_connect(&pair[0], text, SN_FOREVER), 0);
    CHECK_EQ(sn_select(&c, 1, 0, SN_FOREVER), 0);
    CHECK_EQ(c.result, 0);
    CHECK_EQ(sn_close(pair[0]) | sn_close(conn) | sn_listener_close(listener), 0);
    return 0;
}

TEST(on_a_plain_thread_what_needs_a_runtime_says_eperm)
{
    sn_sleep_state nap;
    sn_io_state io;
    CHECK_EQ(sn_await(sn_sleep_op(&nap, sn_after(SN_MS(1))), SN_FOREVER), -EPERM);
    CHECK_EQ(sn_await(sn_wait_fd_op(&io, 0, SN_WRITABLE), SN_FOREVER), -EPERM);
}

struct parcel {
    sn_signal signal;
    sn_chan *ch;
    SNI_ATOMIC(int) go;
};

static void *signal_thread(void *arg)
{
    struct parcel *p = arg;
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(sn_signal_send(&p->signal, 1), 0);
    return NULL;
}

TEST(a_plain_thread_awaits_what_another_one_signals)
{
    struct parcel p = {.signal = SN_SIGNAL_INIT};
    pthread_t thread;
    start_thread(&thread, signal_thread, &p);
    for (int sum = 0; sum < 1000;) {
        int n = sn_await(sn_signal_recv_op(&p.signal), SN_FOREVER);
        CHECK(n > 0);
        sum += n;
    }
    join_thread(thread);
}

/* ---- futures that wake themselves ------------------------------------------------------- */

typedef struct impatient {
    sn_coro coro;
    struct parcel *parcel;
} impatient;

/* Gives way until somebody says go. */
SN_CORO(impatient, self)
{
    SN_BEGIN(self);
    while (sni_atomic_load(&self->parcel->go, acquire) == 0) /* acquire: pairs with say_go */
        SN_YIELD();
    SN_RETURN(6);
    SN_END();
}

static int say_go(void *arg)
{
    struct parcel *p = arg;
    sni_atomic_store(&p->go, 1, release); /* release: pairs with impatient */
    return 0;
}

TASK_TEST(a_future_that_wakes_itself_lets_others_run)
{
    (void)arg;
    struct parcel p = {.go = {0}};
    impatient frame = {.parcel = &p};
    sn_future *fut = SN_START(impatient, &frame);
    CHECK_EQ(sn_await(fut, sn_after(SN_US(100))), -ETIMEDOUT); /* although it is never idle */
    sn_task *t = sn_spawn(say_go, &p);
    CHECK_EQ(sn_await(fut, SN_FOREVER), 6);
    CHECK_EQ(sn_join(t, NULL), 0);
    return 0;
}

/* ---- wakers that outlive the select ----------------------------------------------------- */

/* Keeps the waker of its last poll, and completes when told. */
struct keeper {
    sn_future future;
    sn_waker waker;
    bool is_ready;
    int polls;
};

static sn_poll poll_keeper(sn_future *fut, sn_cx *cx)
{
    struct keeper *k = (struct keeper *)(void *)fut;
    k->polls++;
    sn_waker_drop(&k->waker);
    if (k->is_ready)
        return SN_READY(1);
    k->waker = sn_waker_clone(cx->waker);
    return SN_PENDING;
}

static const sn_future_vtable keeper_vtable = {.poll = poll_keeper};

TEST(a_waker_that_outlives_its_select_wakes_nobody)
{
    struct keeper k = {.future = SN_FUTURE_INIT(&keeper_vtable)};
    sn_chan *ch;
    int v = 3;
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), 1, NULL), 0);
    CHECK_EQ(sn_await(&k.future, sn_after(SN_US(100))), -ETIMEDOUT);
    sn_waker old = sn_waker_clone(&k.waker);
    CHECK_EQ(sn_waker_wake_by_ref(&old), -ESRCH);
    sn_case cases[] = {sn_case_future(&k.future), sn_case_recv(ch, &v)};
    CHECK_EQ(sn_select(cases, 2, 0, sn_after(SN_US(100))), -ETIMEDOUT);
    CHECK(!sn_waker_same(&old, &k.waker));
    CHECK_EQ(sn_chan_send(ch, &v, SN_NOWAIT), 0);
    CHECK_EQ(sn_select(cases, 2, SN_SELECT_ORDERED, SN_FOREVER), 1);
    int polls = k.polls;
    CHECK_EQ(sn_waker_wake_by_ref(&k.waker), 0); /* of the look that did not wait: of nobody */
    CHECK_EQ(sn_waker_wake(&old), -ESRCH);
    CHECK_EQ(k.polls, polls);
    k.is_ready = true;
    CHECK_EQ(sn_select(cases, 2, 0, SN_FOREVER), 0);
    CHECK_EQ(cases[0].result, 1);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

/* ---- by hand: what a poll of a select does ---------------------------------------------- */

TEST(a_select_that_is_polled_polls_its_futures_and_no_value_is_lost)
{
    struct by_hand hand = {{0}};
    struct keeper k = {.future = SN_FUTURE_INIT(&keeper_vtable)};
    sn_chan *ch;
    int v = 0, sent = 8;
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), 0, NULL), 0);
    sn_case cases[] = {sn_case_future(&k.future), sn_case_recv(ch, &v)};
    sn_select_state s;
    sn_future *fut = sn_select_op(&s, cases, 2, 0);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand))); /* for nothing */
    CHECK_EQ(k.polls, 2);
    CHECK_EQ(sn_waker_wake_by_ref(&k.waker), 0);
    CHECK_EQ(sni_atomic_load(&hand.wakes, seq_cst), 1);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));

    CHECK_EQ(sn_chan_send(ch, &sent, SN_NOWAIT), 0); /* it waits, so it is served */
    k.is_ready = true;                               /* too late */
    CHECK_EQ(poll_by_hand(fut, &hand).value, 1);
    CHECK_EQ(v, 8);
    CHECK_EQ(k.polls, 3);
    CHECK_EQ(sn_chan_send(ch, &sent, SN_NOWAIT), -ETIMEDOUT); /* no trace */

    CHECK_EQ(poll_by_hand(sn_select_op(&s, cases, 2, 0), &hand).value, 0);
    CHECK_EQ(cases[0].result, 1);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

TEST(a_select_that_is_dropped_leaves_its_futures_and_news_alone)
{
    struct by_hand hand = {{0}};
    struct keeper k = {.future = SN_FUTURE_INIT(&keeper_vtable)};
    sn_broadcast *b;
    sn_subscription sub;
    int v = 0, sent = 8;
    CHECK_EQ(sn_broadcast_create(&b, sizeof(int), 2), 0);
    CHECK_EQ(sn_broadcast_subscribe(b, &sub), 0);
    sn_case cases[] = {sn_case_future(&k.future), sn_case_broadcast(&sub, &v)};
    sn_select_state s;
    sn_future *fut = sn_select_op(&s, cases, 2, 0);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    CHECK_EQ(sn_broadcast_send(b, &sent), 0);
    CHECK_EQ(sn_future_drop(fut), 0);
    CHECK_EQ(s.result, -ECANCELED);
    CHECK_EQ(sn_broadcast_recv(&sub, &v, SN_NOWAIT), 0);
    CHECK_EQ(v, 8);
    CHECK(!sn_future_finished(&k.future));
    k.is_ready = true;
    CHECK_EQ(sn_await(&k.future, SN_FOREVER), 1);
    CHECK_EQ(sn_broadcast_destroy(b), 0);
}

/* ---- news as futures -------------------------------------------------------------------- */

TEST(a_broadcast_and_a_watch_are_awaited)
{
    struct by_hand hand = {{0}};
    sn_broadcast *b;
    sn_watch *w;
    sn_subscription sub;
    sn_news_op op;
    uint64_t version = 0;
    int v = 5, sent = 8;
    CHECK_EQ(sn_broadcast_create(&b, sizeof(int), 2), 0);
    CHECK_EQ(sn_broadcast_subscribe(b, &sub), 0);
    sn_future *fut = sn_broadcast_recv_op(&op, &sub, &v);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    CHECK_EQ(sn_broadcast_send(b, &sent), 0);
    CHECK_EQ(sni_atomic_load(&hand.wakes, seq_cst), 1);
    CHECK_EQ(sn_future_drop(fut), 0); /* the value is still there */
    CHECK_EQ(op.result, -ECANCELED);
    CHECK_EQ(poll_by_hand(sn_broadcast_recv_op(&op, &sub, &v), &hand).value, 0);
    CHECK_EQ(v, 8);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(sn_broadcast_send(b, &i), 0);
    CHECK_EQ(poll_by_hand(sn_broadcast_recv_op(&op, &sub, &v), &hand).value, 3);
    CHECK_EQ(sn_broadcast_recv(&sub, &v, SN_NOWAIT), 0);
    fut = sn_broadcast_recv_op(&op, &sub, &v);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    CHECK_EQ(sn_broadcast_close(b), 0);
    CHECK_EQ(poll_by_hand(fut, &hand).value, -EPIPE);
    CHECK_EQ(op.result, -EPIPE);

    CHECK_EQ(sn_watch_create(&w, sizeof(int), &sent), 0);
    CHECK_EQ(poll_by_hand(sn_watch_recv_op(&op, w, &v, &version), &hand).value, 0);
    CHECK_EQ(version, 1);
    fut = sn_watch_recv_op(&op, w, &v, &version);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    CHECK_EQ(sn_future_drop(fut), 0);
    fut = sn_watch_recv_op(&op, w, &v, &version);
    CHECK(sn_poll_pending(poll_by_hand(fut, &hand)));
    sent = 11;
    CHECK_EQ(sn_watch_set(w, &sent), 0);
    CHECK_EQ(poll_by_hand(fut, &hand).value, 0);
    CHECK_EQ(v, 11);
    CHECK_EQ(version, 2);
    CHECK_EQ(sn_watch_destroy(w), 0);
    CHECK_EQ(sn_broadcast_destroy(b), 0);
}

typedef struct listener {
    sn_coro coro;
    sn_subscription sub;
    sn_watch *watch;
    uint64_t version;
    sn_news_op op;
    int value, sum;
} listener;

/* The sum of all that was cast, and then the last that was set. */
SN_CORO(listener, self)
{
    int rc;
    SN_BEGIN(self);
    for (;;) {
        SN_AWAIT_INTO(rc, sn_broadcast_recv_op(&self->op, &self->sub, &self->value));
        if (rc < 0)
            break;
        self->sum += self->value;
    }
    do
        SN_AWAIT_INTO(rc, sn_watch_recv_op(&self->op, self->watch, &self->value, &self->version));
    while (rc == 0);
    SN_RETURN(self->sum + self->value);
    SN_END();
}

TASK_TEST(coroutines_hear_all_news)
{
    (void)arg;
    enum { N = 8, CASTS = 200 };
    sn_broadcast *b;
    sn_watch *w;
    sn_task *t[N];
    int v = 0;
    CHECK_EQ(sn_broadcast_create(&b, sizeof(int), CASTS), 0);
    CHECK_EQ(sn_watch_create(&w, sizeof(int), &v), 0);
    for (int i = 0; i < N; i++) {
        listener frame = {.watch = w};
        CHECK_EQ(sn_broadcast_subscribe(b, &frame.sub), 0);
        t[i] = sn_spawn_coro(listener, &frame);
    }
    for (v = 1; v <= CASTS; v++) {
        CHECK_EQ(sn_broadcast_send(b, &v) | sn_watch_set(w, &v), 0);
        if (v % 7 == 0)
            sn_yield();
    }
    CHECK_EQ(sn_broadcast_close(b) | sn_watch_close(w), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(sn_join(t[i], NULL), CASTS * (CASTS + 1) / 2 + CASTS);
    CHECK_EQ(sn_broadcast_destroy(b) | sn_watch_destroy(w), 0);
    return 0;
}

/* ---- misuse ----------------------------------------------------------------------------- */

typedef struct waiting {
    sn_coro coro;
    sn_fut_pending pending;
    int rc;
} waiting;

SN_CORO(waiting, self)
{
    SN_BEGIN(self);
    self->rc = sn_await(sn_fut_pending_init(&self->pending), SN_FOREVER);
    SN_RETURN(self->rc);
    SN_END();
}

static int await_in_a_coroutine(void *arg)
{
    (void)arg;
    waiting frame = {.rc = 0};
    return sn_join(sn_spawn_coro(waiting, &frame), NULL);
}

MISUSE_TEST(a_coroutine_must_not_wait_for_a_future_here, -EDEADLK, "would block its worker")
{
    return run_with(&(sn_runtime_options){.single_threaded = true}, await_in_a_coroutine, NULL);
}
