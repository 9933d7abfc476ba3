/* SPDX-License-Identifier: MIT */
/* Are channels linearizable? (R91) A few threads and fibers make a few calls on one channel, and
 * note when each began and ended by a common counter; linear.c looks for an order. */
#include "unit/sync/linear.h"
#include "unit/task/with_runtime.h"

#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    ACTORS = 4,
    CALLS = 4, /* of each */
    CALLS_MAX = ACTORS * CALLS,
};

/* ---- the checker checked -------------------------------------------------------------------- */

#define SENT(v, from, to)     {LINEAR_SEND, true, v, 0, from, to, 0}
#define CLOSED(from, to)      {LINEAR_CLOSE, false, 0, 0, from, to, 0}
#define RECEIVED(v, from, to) {LINEAR_RECV, true, v, 0, from, to, 0}

TEST(the_checker_accepts_what_a_queue_can_do)
{
    struct linear_history in_order = {
        {SENT(1, 1, 2), SENT(2, 3, 4), RECEIVED(1, 5, 6), RECEIVED(2, 7, 8)}, 4, LINEAR_CHAN, 2};
    CHECK(is_linearizable(&in_order));
    struct linear_history overlapping = {
        {SENT(1, 1, 6), SENT(2, 2, 7), RECEIVED(2, 3, 8), RECEIVED(1, 4, 9)}, 4, LINEAR_CHAN, 1};
    CHECK(is_linearizable(&overlapping));
    struct linear_history meeting = {{SENT(1, 1, 4), RECEIVED(1, 2, 3)}, 2, LINEAR_CHAN, 0};
    CHECK(is_linearizable(&meeting));
}

TEST(the_checker_refuses_what_no_queue_can_do)
{
    struct linear_history swapped = {
        {SENT(1, 1, 2), SENT(2, 3, 4), RECEIVED(2, 5, 6), RECEIVED(1, 7, 8)}, 4, LINEAR_CHAN, 2};
    CHECK(!is_linearizable(&swapped));
    struct linear_history overfull = {{SENT(1, 1, 2), SENT(2, 3, 4)}, 2, LINEAR_CHAN, 1};
    CHECK(!is_linearizable(&overfull));
    struct linear_history twice = {
        {SENT(1, 1, 2), RECEIVED(1, 3, 4), RECEIVED(1, 5, 6)}, 3, LINEAR_CHAN, 2};
    CHECK(!is_linearizable(&twice));
    struct linear_history early = {{RECEIVED(1, 1, 2), SENT(1, 3, 4)}, 2, LINEAR_CHAN, 2};
    CHECK(!is_linearizable(&early));
    struct linear_history missed = {
        {SENT(1, 1, 2), {LINEAR_RECV, false, 0, -ETIMEDOUT, 3, 4, 0}}, 2, LINEAR_CHAN, 2};
    CHECK(!is_linearizable(&missed));
    struct linear_history drained = {
        {SENT(1, 1, 2), CLOSED(3, 4), {LINEAR_RECV, true, 0, -EPIPE, 5, 6, 0}}, 3, LINEAR_CHAN, 2};
    CHECK(!is_linearizable(&drained));
    struct linear_history apart = {{SENT(1, 1, 2), RECEIVED(1, 3, 4)}, 2, LINEAR_CHAN, 0};
    CHECK(!is_linearizable(&apart)); /* a rendezvous whose two did not meet */
}

/* ---- histories ------------------------------------------------------------------------------ */

static sn_chan *ch;
static atomic_uint_fast64_t ticks;
static atomic_int at_the_start;
static struct linear_call book[ACTORS][CALLS];
static uint64_t seed;

static uint64_t next_number(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void make_call(struct linear_call *c, int value, uint64_t lot)
{
    c->is_patient = lot % 3 == 0;
    c->what = lot / 3 % 41 == 0 ? LINEAR_CLOSE : lot / 3 % 2 == 0 ? LINEAR_SEND : LINEAR_RECV;
    c->value = value;
    sn_deadline until = c->is_patient ? sn_after(SN_US(lot / 64 % 50 + 1)) : SN_NOWAIT;
    c->began = atomic_fetch_add(&ticks, 1);
    if (c->what == LINEAR_SEND)
        c->rc = sn_chan_send(ch, &c->value, until);
    else if (c->what == LINEAR_RECV)
        c->rc = sn_chan_recv(ch, &c->value, until);
    else
        c->rc = sn_chan_close(ch);
    c->ended = atomic_fetch_add(&ticks, 1);
}

static int act(void *arg)
{
    int me = (int)(intptr_t)arg;
    uint64_t lots = seed * ACTORS + (uint64_t)me;
    (void)next_number(&lots);
    atomic_fetch_add(&at_the_start, 1);
    for (int i = 0; atomic_load(&at_the_start) < ACTORS && i < 1000; i++)
        sn_yield(); /* so that they begin at about the same time */
    for (int i = 0; i < CALLS; i++)
        make_call(&book[me][i], me * CALLS + i, next_number(&lots));
    return 0;
}

static void *act_as_thread(void *arg)
{
    CHECK_EQ(act(arg), 0);
    return NULL;
}

/* Two fibers and two threads. */
static int record(void *arg)
{
    (void)arg;
    pthread_t thread[2];
    sn_task *t[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, act_as_thread, (void *)(intptr_t)(2 + i)), 0);
    for (int i = 0; i < 2; i++)
        t[i] = sn_spawn(act, (void *)(intptr_t)i);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    return 0;
}

static void check_histories(size_t capacity, int rounds)
{
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
    seed = test_seed();
    for (int i = 0; i < rounds; i++, seed++) {
        struct linear_history h = {.n = CALLS_MAX, .kind = LINEAR_CHAN, .size = (int)capacity};
        CHECK_EQ(sn_chan_create(&ch, sizeof(int), capacity, NULL), 0);
        atomic_store(&at_the_start, 0);
        CHECK_EQ(sn_runtime_block_on(rt, record, NULL), 0);
        CHECK_EQ(sn_chan_destroy(ch), 0);
        memcpy(h.calls, book, sizeof(book));
        if (!is_linearizable(&h)) {
            linear_print(&h);
            FAIL("history %d is not linearizable, for a capacity of %zu", i, capacity);
        }
    }
    sn_runtime_destroy(rt);
}

TEST(what_happens_on_a_rendezvous_is_linearizable, .limit_s = 60)
{
    check_histories(0, 300);
}

TEST(what_happens_on_a_channel_of_one_is_linearizable, .limit_s = 60)
{
    check_histories(1, 300);
}

TEST(what_happens_on_a_channel_of_three_is_linearizable, .limit_s = 60)
{
    check_histories(3, 300);
}
