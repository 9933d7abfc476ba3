/* SPDX-License-Identifier: MIT */
/* Wakers that do more than to wake (R92): those who wait at one object are served together, and the
 * waker of one of them may drop the operations of the others, which have been served but not yet
 * told. Nobody waits for itself then. */
#include "harness.h"

#include <sinew/sinew.h>

enum { CROWD = 40 }; /* more than are remembered in one go */

static struct {
    sn_event event;
    sn_chan *ch;
    sn_watch *watch;
    union {
        sn_sync_state sync;
        sn_chan_op chan;
        sn_news_op news;
    } op[CROWD];
    sn_future *futures[CROWD];
    uint64_t versions[CROWD];
    int values[CROWD];
    int wakes;
    int n;
} all;

/* Whoever is woken first drops all others, the last one first. */
static int drop_others(void *data)
{
    int me = (int)(intptr_t)data;
    if (all.wakes++ > 0)
        return 0;
    for (int i = all.n - 1; i >= 0; i--)
        if (i != me)
            CHECK_EQ(sn_future_drop(all.futures[i]), 0);
    return 0;
}

static const sn_waker_vtable vtable = {.wake_by_ref = drop_others};

static void wait_all(sn_future *(*begin)(int i), int n)
{
    all.n = n;
    all.wakes = 0;
    for (int i = 0; i < n; i++) {
        sn_waker waker = {&vtable, (void *)(intptr_t)i};
        sn_cx cx = {&waker};
        all.futures[i] = begin(i);
        CHECK(sn_poll_pending(sn_future_poll(all.futures[i], &cx)));
    }
}

/* One was told, and is ready; all others are gone, some of them perhaps on their way to be told. */
static void check_one(int result)
{
    sn_waker nobody = sn_noop_waker();
    sn_cx cx = {&nobody};
    sn_poll p = sn_future_poll(all.futures[0], &cx);
    CHECK(!sn_poll_pending(p));
    CHECK_EQ(p.value, result);
    CHECK_GE(all.wakes, 1);
}

static sn_future *wait_for_event(int i)
{
    return sn_event_wait_op(&all.op[i].sync, &all.event);
}

TEST(a_waker_drops_those_who_were_served_with_it_at_a_gate)
{
    for (int n = 2; n <= CROWD; n++) {
        all.event = (sn_event)SN_EVENT_INIT;
        wait_all(wait_for_event, n);
        CHECK_EQ(sn_event_set(&all.event), 0);
        check_one(0);
        CHECK_EQ(sn_event_finish(&all.event), 0);
    }
}

static sn_future *receive(int i)
{
    return sn_chan_recv_op(&all.op[i].chan, all.ch, &all.values[i]);
}

TEST(a_waker_drops_those_who_were_refused_with_it_at_a_channel)
{
    for (int n = 2; n <= CROWD; n++) {
        CHECK_EQ(sn_chan_create(&all.ch, sizeof(int), 0, NULL), 0);
        wait_all(receive, n);
        CHECK_EQ(sn_chan_close(all.ch), 0);
        check_one(-EPIPE);
        CHECK_EQ(sn_chan_destroy(all.ch), 0);
    }
}

static sn_future *watch(int i)
{
    all.versions[i] = 1;
    return sn_watch_recv_op(&all.op[i].news, all.watch, &all.values[i], &all.versions[i]);
}

TEST(a_waker_drops_those_who_were_told_with_it_of_a_version)
{
    for (int n = 2; n <= CROWD; n++) {
        int value = 1;
        CHECK_EQ(sn_watch_create(&all.watch, sizeof(int), &value), 0);
        wait_all(watch, n);
        CHECK_EQ(sn_watch_set(all.watch, &value), 0);
        check_one(0);
        CHECK_EQ(sn_watch_destroy(all.watch), 0);
    }
}
