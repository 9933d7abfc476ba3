/* SPDX-License-Identifier: MIT */
/* Futures (R10): the life of one, seen by an implementation that counts its calls. */
#include "harness.h"

#include <sinew/combine.h>
#include <sinew/future.h>

struct probe {
    sn_future future;
    int polls, cancels, drops;
    int ready_at; /* the poll that completes */
};

static sn_poll probe_poll(sn_future *fut, sn_cx *cx)
{
    struct probe *self = (struct probe *)fut;
    (void)cx;
    return ++self->polls >= self->ready_at ? SN_READY(self->polls) : SN_PENDING;
}

static void probe_cancel(sn_future *fut)
{
    struct probe *self = (struct probe *)fut;
    self->cancels++;
    self->ready_at = 0; /* finish soon */
}

static void probe_drop(sn_future *fut)
{
    ((struct probe *)fut)->drops++;
}

static const sn_future_vtable simple_kind = {.poll = probe_poll, .drop = probe_drop};
static const sn_future_vtable cancel_kind = {probe_poll, probe_cancel, probe_drop, "probe"};

static sn_poll poll_it(struct probe *p)
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    return sn_future_poll(&p->future, &cx);
}

TEST(a_future_is_pending_until_it_is_ready_with_its_value)
{
    struct probe p = {.future = SN_FUTURE_INIT(&simple_kind), .ready_at = 3};
    CHECK(sn_poll_pending(poll_it(&p)));
    CHECK(!sn_future_finished(&p.future));
    CHECK(sn_poll_pending(poll_it(&p)));
    sn_poll last = poll_it(&p);
    CHECK(!sn_poll_pending(last));
    CHECK_EQ(last.value, 3);
    CHECK(sn_future_finished(&p.future));
}

TEST(every_result_but_the_reserved_one_is_ready)
{
    int values[] = {0, 1, INT32_MAX, -1, -ECANCELED, INT32_MIN + 1};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        CHECK(!sn_poll_pending(SN_READY(values[i])));
        CHECK_EQ(SN_READY(values[i]).value, values[i]);
    }
    CHECK(sn_poll_pending(SN_PENDING));
}

TEST(dropping_an_unfinished_future_releases_it_once)
{
    struct probe p = {.future = SN_FUTURE_INIT(&simple_kind), .ready_at = 9};
    CHECK(sn_poll_pending(poll_it(&p)));
    CHECK_EQ(sn_future_drop(&p.future), 0);
    CHECK_EQ(p.drops, 1);
    CHECK(!sn_future_finished(&p.future));
}

TEST(dropping_a_finished_future_or_null_does_nothing)
{
    struct probe p = {.future = SN_FUTURE_INIT(&simple_kind), .ready_at = 1};
    CHECK_EQ(poll_it(&p).value, 1);
    CHECK_EQ(sn_future_drop(&p.future), 0);
    CHECK_EQ(p.drops, 0);
    CHECK_EQ(sn_future_drop(NULL), 0);
}

TEST(cancelling_without_a_cancel_function_drops_and_completes_with_ecanceled)
{
    struct probe p = {.future = SN_FUTURE_INIT(&simple_kind), .ready_at = 9};
    CHECK(sn_poll_pending(poll_it(&p)));
    CHECK_EQ(sn_future_cancel(&p.future), 0);
    CHECK_EQ(p.drops, 1);
    CHECK(!sn_future_finished(&p.future)); /* whoever awaits it learns by polling */
    CHECK_EQ(poll_it(&p).value, -ECANCELED);
    CHECK_EQ(p.polls, 1);
    CHECK(sn_future_finished(&p.future));
    CHECK_EQ(sn_future_drop(&p.future), 0);
    CHECK_EQ(p.drops, 1);
}

TEST(cancelling_with_a_cancel_function_lets_the_future_finish)
{
    struct probe p = {.future = SN_FUTURE_INIT(&cancel_kind), .ready_at = 9};
    CHECK(sn_poll_pending(poll_it(&p)));
    CHECK_EQ(sn_future_cancel(&p.future), 0);
    CHECK_EQ(p.cancels, 1);
    CHECK_EQ(p.drops, 0);
    CHECK_EQ(poll_it(&p).value, 2);
}

TEST(cancelling_again_or_after_completion_does_nothing)
{
    struct probe p = {.future = SN_FUTURE_INIT(&simple_kind), .ready_at = 9};
    CHECK_EQ(sn_future_cancel(&p.future), 0);
    CHECK_EQ(sn_future_cancel(&p.future), 0);
    CHECK_EQ(p.drops, 1);
    struct probe done = {.future = SN_FUTURE_INIT(&simple_kind), .ready_at = 1};
    CHECK_EQ(poll_it(&done).value, 1);
    CHECK_EQ(sn_future_cancel(&done.future), 0);
    CHECK_EQ(done.drops, 0);
    CHECK(sn_future_finished(&done.future));
}

TEST(a_cancelled_future_that_is_dropped_is_released_once)
{
    struct probe p = {.future = SN_FUTURE_INIT(&simple_kind), .ready_at = 9};
    CHECK_EQ(sn_future_cancel(&p.future), 0);
    CHECK_EQ(sn_future_drop(&p.future), 0);
    CHECK_EQ(p.drops, 1);
}

TEST(a_future_may_be_initialised_again_after_its_end)
{
    struct probe p = {.ready_at = 1};
    for (int i = 1; i <= 3; i++) {
        CHECK_PTR_EQ(sn_future_init(&p.future, &simple_kind), &p.future);
        CHECK_EQ(poll_it(&p).value, i);
    }
}

TEST(sn_future_finished_says_no_to_null_and_new_futures)
{
    struct probe p = {.future = SN_FUTURE_INIT(&simple_kind)};
    CHECK(!sn_future_finished(NULL));
    CHECK(!sn_future_finished(&p.future));
}
