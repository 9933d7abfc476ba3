/* SPDX-License-Identifier: MIT */
/* The signal: what handlers and threads tell a coroutine. */
#include "harness.h"
#include "unit/future/counting_waker.h"

#include <pthread.h>
#include <sinew/sinew.h>

static sn_signal s = SN_SIGNAL_INIT;

TEST(a_signal_sent_before_the_first_poll_is_ready_at_once)
{
    struct counting_waker counter;
    sn_waker waker = counting_waker_init(&counter);
    sn_cx cx = {&waker};
    CHECK_EQ(sn_signal_send(&s, 3), 0);
    CHECK_EQ(sn_future_poll(sn_signal_recv_op(&s), &cx).value, 3);
    CHECK_EQ(counter.refs, 1); /* a finished future keeps no waker */
}

TEST(a_signal_wakes_its_receiver_once_and_adds_up)
{
    struct counting_waker counter;
    sn_waker waker = counting_waker_init(&counter);
    sn_cx cx = {&waker};
    sn_future *fut = sn_signal_recv_op(&s);
    CHECK(sn_poll_pending(sn_future_poll(fut, &cx)));
    CHECK_EQ(counter.refs, 2);
    CHECK_EQ(sn_signal_send(&s, 5), 0);
    CHECK_EQ(sn_signal_send(&s, 6), 0);
    CHECK_EQ(counter.wakes, 1);
    CHECK_EQ(sn_future_poll(fut, &cx).value, 11);
    CHECK_EQ(counter.refs, 1);
    CHECK(sn_poll_pending(sn_future_poll(sn_signal_recv_op(&s), &cx)));
    sn_waker_cell_disarm(&s.cell_);
}

TEST(a_dropped_receiver_takes_nothing)
{
    struct counting_waker counter;
    sn_waker waker = counting_waker_init(&counter);
    sn_cx cx = {&waker};
    sn_future *fut = sn_signal_recv_op(&s);
    CHECK(sn_poll_pending(sn_future_poll(fut, &cx)));
    CHECK_EQ(sn_signal_send(&s, 4), 0);
    CHECK_EQ(sn_future_drop(fut), 0);
    CHECK_EQ(counter.refs, 1);
    CHECK_EQ(sn_future_poll(sn_signal_recv_op(&s), &cx).value, 4);
}

TEST(a_signal_follows_its_receiver_to_another_waker)
{
    struct counting_waker a, b;
    sn_waker wa = counting_waker_init(&a), wb = counting_waker_init(&b);
    sn_future *fut = sn_signal_recv_op(&s);
    CHECK(sn_poll_pending(sn_future_poll(fut, &(sn_cx){&wa})));
    CHECK(sn_poll_pending(sn_future_poll(fut, &(sn_cx){&wb})));
    CHECK_EQ(sn_signal_send(&s, 1), 0);
    CHECK_EQ(a.wakes, 0);
    CHECK_EQ(b.wakes, 1);
    CHECK_EQ(sn_future_poll(fut, &(sn_cx){&wb}).value, 1);
    CHECK_EQ(a.refs + b.refs, 2);
}

TEST(a_sum_too_large_for_an_int_is_clipped)
{
    sn_waker noop = sn_noop_waker();
    CHECK_EQ(sn_signal_send(&s, INT32_MAX), 0);
    CHECK_EQ(sn_signal_send(&s, INT32_MAX), 0);
    CHECK_EQ(sn_signal_send(&s, 1), 0);
    CHECK_EQ(sn_future_poll(sn_signal_recv_op(&s), &(sn_cx){&noop}).value, INT32_MAX);
}

/* ---- conservation: what several threads send is received, exactly ---------------------- */

enum {
    SENDERS = 3,
    SENDS = 20000,
};

static void *send_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < SENDS; i++)
        CHECK_EQ(sn_signal_send(&s, 1 + i % 3), 0);
    return NULL;
}

typedef struct receiver {
    sn_coro coro;
    int total, expected;
} receiver;

SN_CORO(receiver, self)
{
    int amount;
    SN_BEGIN(self);
    while (self->total < self->expected) {
        SN_AWAIT_INTO(amount, sn_signal_recv_op(&s));
        CHECK_GT(amount, 0);
        self->total += amount;
    }
    SN_RETURN(self->total);
    SN_END();
}

TEST(nothing_sent_by_several_threads_is_lost_or_received_twice)
{
    pthread_t thread[SENDERS];
    receiver r = {.total = 0};
    int one = 0;
    for (int i = 0; i < SENDS; i++)
        one += 1 + i % 3;
    r.expected = SENDERS * one;
    for (int i = 0; i < SENDERS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, send_many, NULL), 0);
    static sn_idle idle = SN_IDLE_INIT(NULL, NULL); /* polls only after a wake */
    CHECK_EQ(sn_block_on_simple(SN_START(receiver, &r), &idle), r.expected);
    for (int i = 0; i < SENDERS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    CHECK_EQ(s.sum_.raw_, 0);
}
