/* SPDX-License-Identifier: MIT */
/* Channels under a storm (R91): 48 fibers, 16 coroutines and 8 plain threads send and receive on
 * one channel, some with deadlines, some without waiting, some many at a time, until it is closed
 * under their hands. The law of conservation: each value was received
 * exactly once, or its sender knows that it was not sent, or it is still inside. */
#include "unit/task/with_runtime.h"

#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    FIBERS = 48,
    COROS = 16,
    THREADS = 8,
    ACTORS = FIBERS + COROS + THREADS,
    VALUES = 400, /* of one sender */
    BATCH = 5,
};

static sn_chan *ch;
static atomic_uchar sent[ACTORS * VALUES];
static atomic_uchar received[ACTORS * VALUES];
static atomic_int senders_left;

static void got(int v)
{
    CHECK(v >= 0 && v < ACTORS * VALUES);
    atomic_fetch_add(&received[v], 1);
}

static void note(int v, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -EPIPE || rc == -ECANCELED);
    if (rc == 0)
        atomic_fetch_add(&sent[v], 1);
}

static sn_deadline mood(int k)
{
    if (k % 3 == 0)
        return SN_NOWAIT;
    return k % 3 == 1 ? sn_after(SN_US(k % 50)) : SN_FOREVER;
}

static void send_all(int me)
{
    for (int i = 0; i < VALUES; i++) {
        int v = me * VALUES + i;
        if (i % 10 == 9 && i + BATCH <= VALUES) {
            int many[BATCH];
            for (int k = 0; k < BATCH; k++)
                many[k] = v + k;
            ptrdiff_t n = sn_chan_send_n(ch, many, BATCH, mood(i + me));
            for (int k = 0; k < BATCH; k++)
                note(v + k, k < n ? 0 : -ETIMEDOUT);
            i += BATCH - 1;
        } else {
            note(v, sn_chan_send(ch, &v, mood(i + me)));
        }
    }
}

static void recv_all(int me)
{
    for (int i = 0;; i++) {
        int many[BATCH] = {-1, -1, -1, -1, -1};
        ptrdiff_t rc;
        if (i % 7 == 6) {
            rc = sn_chan_recv_n(ch, many, BATCH, mood(i + me));
        } else {
            rc = sn_chan_recv(ch, many, mood(i + me));
            rc = rc == 0 ? 1 : rc;
        }
        for (ptrdiff_t k = 0; k < rc; k++)
            got(many[k]);
        if (rc == -EPIPE)
            return;
        if (rc == -ETIMEDOUT)
            sn_yield();
    }
}

static void act(int me, int closes_after)
{
    if (me % 2 == 0) {
        send_all(me);
        if (atomic_fetch_sub(&senders_left, 1) == 1 + closes_after)
            CHECK_EQ(sn_chan_close(ch), 0);
    } else {
        recv_all(me);
    }
}

static int closes_after;

static int fiber(void *arg)
{
    act((int)(intptr_t)arg, closes_after);
    return 0;
}

static void *thread(void *arg)
{
    (void)fiber(arg);
    return NULL;
}

typedef struct actor {
    sn_coro coro;
    sn_chan_op op;
    int me, i, value;
} actor;

SN_CORO(actor, self)
{
    int rc;
    SN_BEGIN(self);
    if (self->me % 2 == 0) {
        for (self->i = 0; self->i < VALUES; self->i++) {
            self->value = self->me * VALUES + self->i;
            if (self->i % 5 == 4) { /* polled once and dropped */
                if (sn_poll_pending(
                        sn_future_poll(sn_chan_send_op(&self->op, ch, &self->value), SN_CX)))
                    (void)sn_future_drop(&self->op.future_);
                note(self->value, self->op.result);
            } else {
                SN_AWAIT_INTO(rc, sn_chan_send_op(&self->op, ch, &self->value));
                note(self->value, rc);
            }
        }
        if (atomic_fetch_sub(&senders_left, 1) == 1 + closes_after)
            CHECK_EQ(sn_chan_close(ch), 0);
    } else {
        for (;;) {
            SN_AWAIT_INTO(rc, sn_chan_recv_op(&self->op, ch, &self->value));
            if (rc < 0)
                break;
            got(self->value);
            self->value = -1;
            if (sn_poll_pending(
                    sn_future_poll(sn_chan_recv_op(&self->op, ch, &self->value), SN_CX)))
                (void)sn_future_drop(&self->op.future_);
            if (self->op.result == 0)
                got(self->value);
        }
        CHECK_EQ(rc, -EPIPE);
    }
    SN_END();
}

static int storm(void *arg)
{
    (void)arg;
    sn_task *t[FIBERS + COROS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, thread, (void *)(intptr_t)(FIBERS + COROS + i)),
                 0);
    for (int i = 0; i < FIBERS; i++)
        t[i] = sn_spawn(fiber, (void *)(intptr_t)i);
    for (int i = FIBERS; i < FIBERS + COROS; i++) {
        actor frame = {.me = i};
        t[i] = sn_spawn_coro(actor, &frame);
    }
    for (int i = 0; i < FIBERS + COROS; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    return 0;
}

static void weather(size_t capacity, int closes, const sn_runtime_options *opts)
{
    memset((void *)sent, 0, sizeof(sent));
    memset((void *)received, 0, sizeof(received));
    atomic_store(&senders_left, ACTORS / 2);
    closes_after = closes;
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), capacity, NULL), 0);
    CHECK_EQ(run_with(opts, storm, NULL), 0);
    CHECK_EQ(sn_chan_len(ch), 0); /* the receivers drained it */
    CHECK_EQ(sn_chan_destroy(ch), 0);
    int through = 0;
    for (int v = 0; v < ACTORS * VALUES; v++) {
        if (sent[v] != received[v])
            FAIL("value %d: sent %d times, received %d times", v, sent[v], received[v]);
        CHECK_LE(sent[v], 1);
        through += sent[v];
    }
    CHECK_GT(through, ACTORS); /* it was a storm */
}

#define STORM(name, capacity, closes)                                              \
    TEST(name##_with_two_workers, .limit_s = 60)                                   \
    {                                                                              \
        weather(capacity, closes, &(sn_runtime_options){.workers = 2});            \
    }                                                                              \
    TEST(name##_with_four_workers, .limit_s = 60)                                  \
    {                                                                              \
        weather(capacity, closes, &(sn_runtime_options){.workers = 4});            \
    }                                                                              \
    TEST(name##_single_threaded, .limit_s = 60)                                    \
    {                                                                              \
        weather(capacity, closes, &(sn_runtime_options){.single_threaded = true}); \
    }

STORM(a_storm_over_a_rendezvous_conserves_values, 0, 0)
STORM(a_storm_over_a_channel_of_one_conserves_values, 1, 0)
STORM(a_storm_over_a_bounded_channel_conserves_values, 16, 0)
STORM(a_storm_over_an_unbounded_channel_conserves_values, SN_CHAN_UNBOUNDED, 0)
STORM(a_storm_that_is_cut_off_by_a_close_conserves_values, 3, ACTORS / 4)
STORM(a_storm_over_a_rendezvous_that_is_cut_off_conserves_values, 0, ACTORS / 4)
