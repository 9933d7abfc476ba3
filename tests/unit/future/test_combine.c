/* SPDX-License-Identifier: MIT */
/* Combinators (R13): join, race, map, ready, pending, yield, delay, timeout; no heap. */
#include "harness.h"
#include "unit/future/counting_waker.h"

#include <sinew/combine.h>

/* A source with one item in it. `take` is a future that takes the item when it is polled at
 * its time; it counts what it took and whether it was dropped. */
typedef struct take {
    sn_future future;
    int *source;
    int polls_left;
    int polls;
    int drops;
    int *order; /* where to note in which order takes were dropped */
    int dropped_as;
} take;

static sn_poll take_poll(sn_future *fut, sn_cx *cx)
{
    take *self = (take *)fut;
    (void)cx;
    self->polls++;
    if (--self->polls_left > 0)
        return SN_PENDING;
    (*self->source)--;
    return SN_READY(self->polls);
}

static void take_drop(sn_future *fut)
{
    take *self = (take *)fut;
    self->drops++;
    if (self->order != NULL)
        self->dropped_as = ++*self->order;
}

static const sn_future_vtable take_kind = {.poll = take_poll, .drop = take_drop};

static sn_future *take_init(take *self, int *source, int polls)
{
    *self = (take){.source = source, .polls_left = polls};
    return sn_future_init(&self->future, &take_kind);
}

static sn_poll poll_noop(sn_future *fut)
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    return sn_future_poll(fut, &cx);
}

static int run(sn_future *fut)
{
    return sn_block_on_simple(fut, NULL);
}

/* ---- ready, pending, yield ------------------------------------------------------------ */

TEST(ready_is_ready_with_its_value)
{
    sn_fut_ready r;
    CHECK_EQ(poll_noop(sn_fut_ready_init(&r, -12)).value, -12);
}

TEST(pending_never_completes_until_it_is_cancelled)
{
    sn_fut_pending p;
    sn_future *fut = sn_fut_pending_init(&p);
    for (int i = 0; i < 10; i++)
        CHECK(sn_poll_pending(poll_noop(fut)));
    CHECK_EQ(sn_future_cancel(fut), 0);
    CHECK_EQ(poll_noop(fut).value, -ECANCELED);
}

TEST(yield_is_pending_once_and_wakes)
{
    struct counting_waker counter;
    sn_waker waker = counting_waker_init(&counter);
    sn_cx cx = {&waker};
    sn_fut_yield y;
    sn_future *fut = sn_fut_yield_init(&y);
    CHECK(sn_poll_pending(sn_future_poll(fut, &cx)));
    CHECK_EQ(counter.wakes, 1);
    CHECK_EQ(sn_future_poll(fut, &cx).value, 0);
    CHECK_EQ(counter.refs, 1);
}

/* ---- join ----------------------------------------------------------------------------- */

TEST(join_waits_for_all_and_polls_none_too_often)
{
    int source = 0;
    take t[3];
    sn_future *items[3] = {take_init(&t[0], &source, 1), take_init(&t[1], &source, 4),
                           take_init(&t[2], &source, 2)};
    int results[3] = {0};
    sn_fut_join join;
    CHECK_EQ(run(sn_fut_join_init(&join, items, 3, results)), 0);
    CHECK_EQ(source, -3);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(results[i], t[i].polls);
        CHECK_EQ(t[i].drops, 0);
    }
    CHECK_EQ(t[1].polls, 4);
}

TEST(join_reports_the_first_error_that_came_in_and_still_waits_for_the_rest)
{
    int source = 0;
    sn_fut_ready good, bad;
    take slow;
    sn_future *items[3] = {sn_fut_ready_init(&good, 5), take_init(&slow, &source, 6),
                           sn_fut_ready_init(&bad, -EBUSY)};
    int results[3] = {0};
    sn_fut_join join;
    CHECK_EQ(run(sn_fut_join_init(&join, items, 3, results)), -EBUSY);
    CHECK_EQ(slow.polls, 6);
    CHECK_EQ(results[0], 5);
    CHECK_EQ(results[2], -EBUSY);
}

static int negate(int result, void *arg)
{
    (void)arg;
    return -result;
}

TEST(join_reports_the_error_that_came_first_not_the_one_that_stands_first)
{
    int source = 0;
    take late, early;
    sn_fut_map late_error, early_error;
    sn_fut_join2 join;
    sn_fut_map_init(&late_error, take_init(&late, &source, 4), negate, NULL);
    sn_fut_map_init(&early_error, take_init(&early, &source, 2), negate, NULL);
    CHECK_EQ(
        run(sn_fut_join2_init(&join, &late_error.wrapper_.future, &early_error.wrapper_.future)),
        -2);
    CHECK_EQ(join.results[0], -4);
    CHECK_EQ(join.results[1], -2);
}

TEST(join_of_none_is_ready_at_once)
{
    sn_fut_join join;
    CHECK_EQ(poll_noop(sn_fut_join_init(&join, NULL, 0, NULL)).value, 0);
}

TEST(join_works_without_a_results_array)
{
    sn_fut_ready a, b;
    sn_future *items[2] = {sn_fut_ready_init(&a, 1), sn_fut_ready_init(&b, 2)};
    sn_fut_join join;
    CHECK_EQ(poll_noop(sn_fut_join_init(&join, items, 2, NULL)).value, 0);
}

TEST(join2_brings_its_own_results)
{
    sn_fut_ready a, b;
    sn_fut_join2 join;
    CHECK_EQ(run(sn_fut_join2_init(&join, sn_fut_ready_init(&a, 1), sn_fut_ready_init(&b, 2))), 0);
    CHECK_EQ(join.results[0], 1);
    CHECK_EQ(join.results[1], 2);
}

TEST(a_dropped_join_drops_its_unfinished_members_in_order)
{
    int source = 0, order = 0;
    take t[3];
    sn_future *items[3];
    for (int i = 0; i < 3; i++) {
        items[i] = take_init(&t[i], &source, i == 1 ? 1 : 9);
        t[i].order = &order;
    }
    sn_fut_join join;
    sn_future *fut = sn_fut_join_init(&join, items, 3, NULL);
    CHECK(sn_poll_pending(poll_noop(fut)));
    CHECK_EQ(sn_future_drop(fut), 0);
    CHECK_EQ(t[0].dropped_as, 1);
    CHECK_EQ(t[1].drops, 0); /* it had completed, and is left as it is */
    CHECK(sn_future_finished(&t[1].future));
    CHECK_EQ(t[2].dropped_as, 2);
}

TEST(a_cancelled_join_completes_with_ecanceled)
{
    sn_fut_pending a, b;
    sn_fut_join2 join;
    sn_future *fut = sn_fut_join2_init(&join, sn_fut_pending_init(&a), sn_fut_pending_init(&b));
    CHECK(sn_poll_pending(poll_noop(fut)));
    CHECK_EQ(sn_future_cancel(fut), 0);
    CHECK_EQ(poll_noop(fut).value, -ECANCELED);
}

/* ---- race ----------------------------------------------------------------------------- */

TEST(race_takes_the_first_and_the_losers_have_taken_nothing)
{
    for (int fast = 0; fast < 3; fast++) {
        int source = 10;
        take t[3];
        sn_future *items[3];
        for (int i = 0; i < 3; i++)
            items[i] = take_init(&t[i], &source, i == fast ? 2 : 3);
        sn_fut_race race;
        CHECK_EQ(run(sn_fut_race_init(&race, items, 3)), 2);
        CHECK_EQ(race.winner, fast);
        CHECK_EQ(source, 9); /* one item was taken, not two, although two were nearly there */
        for (int i = 0; i < 3; i++)
            CHECK_EQ(t[i].drops, i == fast ? 0 : 1);
    }
}

TEST(race_prefers_the_earlier_of_two_that_are_ready_together)
{
    int source = 10;
    take t[2];
    sn_fut_race2 race;
    CHECK_EQ(
        run(sn_fut_race2_init(&race, take_init(&t[0], &source, 2), take_init(&t[1], &source, 2))),
        2);
    CHECK_EQ(race.race.winner, 0);
    CHECK_EQ(t[1].polls, 1); /* not polled any more in the pass that decided */
    CHECK_EQ(t[1].drops, 1);
    CHECK_EQ(source, 9);
}

TEST(a_race_may_be_won_by_an_error)
{
    sn_fut_pending never;
    sn_fut_ready bad;
    sn_fut_race2 race;
    CHECK_EQ(
        run(sn_fut_race2_init(&race, sn_fut_pending_init(&never), sn_fut_ready_init(&bad, -EBUSY))),
        -EBUSY);
    CHECK_EQ(race.race.winner, 1);
}

TEST(a_dropped_race_drops_all_its_members)
{
    int source = 10;
    take t[2];
    sn_fut_race2 race;
    sn_future *fut =
        sn_fut_race2_init(&race, take_init(&t[0], &source, 5), take_init(&t[1], &source, 5));
    CHECK(sn_poll_pending(poll_noop(fut)));
    CHECK_EQ(sn_future_drop(fut), 0);
    CHECK_EQ(t[0].drops + t[1].drops, 2);
    CHECK_EQ(source, 10);
}

/* ---- map ------------------------------------------------------------------------------ */

static int add(int result, void *arg)
{
    return result + *(int *)arg;
}

TEST(map_passes_the_result_through_its_function)
{
    int source = 0, ten = 10;
    take t;
    sn_fut_map map;
    CHECK_EQ(run(sn_fut_map_init(&map, take_init(&t, &source, 3), add, &ten)), 13);
}

TEST(a_dropped_map_drops_its_inner_future)
{
    int source = 0, ten = 10;
    take t;
    sn_fut_map map;
    sn_future *fut = sn_fut_map_init(&map, take_init(&t, &source, 3), add, &ten);
    CHECK(sn_poll_pending(poll_noop(fut)));
    CHECK_EQ(sn_future_drop(fut), 0);
    CHECK_EQ(t.drops, 1);
}

/* ---- time ----------------------------------------------------------------------------- */

struct hand_clock {
    sn_clock clock;
    int64_t now;
    int armed;
    int64_t armed_for;
};

static int64_t hand_now(sn_clock *clock)
{
    return ((struct hand_clock *)clock)->now;
}

static void hand_arm(sn_clock *clock, sn_deadline at, const sn_waker *waker)
{
    struct hand_clock *self = (struct hand_clock *)clock;
    CHECK(waker->vt != NULL);
    self->armed++;
    self->armed_for = at.ns;
}

TEST(a_delay_completes_when_the_clock_says_so)
{
    struct hand_clock c = {.clock = {hand_now, hand_arm}, .now = 1000};
    sn_fut_delay delay;
    sn_future *fut = sn_fut_delay_init(&delay, &c.clock, sn_clock_after(&c.clock, 50));
    CHECK(sn_poll_pending(poll_noop(fut)));
    CHECK_EQ(c.armed, 1);
    CHECK_EQ(c.armed_for, 1050);
    c.now = 1049;
    CHECK(sn_poll_pending(poll_noop(fut)));
    c.now = 1050;
    CHECK_EQ(poll_noop(fut).value, 0);
}

TEST(a_delay_into_the_past_is_ready_at_once_and_one_for_ever_never)
{
    struct hand_clock c = {.clock = {hand_now, hand_arm}, .now = 1000};
    sn_fut_delay delay;
    CHECK_EQ(poll_noop(sn_fut_delay_init(&delay, &c.clock, SN_NOWAIT)).value, 0);
    CHECK_EQ(poll_noop(sn_fut_delay_init(&delay, &c.clock, sn_clock_after(&c.clock, -5))).value, 0);
    sn_fut_delay_init(&delay, &c.clock, SN_FOREVER);
    c.now = INT64_MAX - 1;
    CHECK(sn_poll_pending(poll_noop(&delay.future)));
}

TEST(a_clock_without_arm_is_only_read)
{
    struct hand_clock c = {.clock = {hand_now, NULL}, .now = 0};
    sn_fut_delay delay;
    sn_future *fut = sn_fut_delay_init(&delay, &c.clock, sn_clock_after(&c.clock, SN_MS(1)));
    CHECK(sn_poll_pending(poll_noop(fut)));
    c.now = 1000000;
    CHECK_EQ(poll_noop(fut).value, 0);
}

TEST(deadlines_far_away_are_clipped_not_wrapped)
{
    struct hand_clock c = {.clock = {hand_now, NULL}, .now = INT64_MAX - 10};
    CHECK_EQ(sn_clock_after(&c.clock, 9).ns, INT64_MAX - 1);
    CHECK_EQ(sn_clock_after(&c.clock, 11).ns, INT64_MAX);
    CHECK_EQ(sn_clock_after(&c.clock, INT64_MAX).ns, INT64_MAX);
    CHECK_EQ(SN_FOREVER.ns, INT64_MAX);
}

TEST(units_of_time_are_nanoseconds)
{
    CHECK_EQ(SN_NS(7), 7);
    CHECK_EQ(SN_US(7), 7000);
    CHECK_EQ(SN_MS(7), 7000000);
    CHECK_EQ(SN_S(7), 7000000000);
    CHECK_EQ(SN_S(3600) * 24 * 365, INT64_C(31536000000000000));
}

/* A take with ten nanoseconds of time, on a clock that stands at 0. */
struct limited_take {
    struct hand_clock clock;
    int source;
    take take;
    sn_fut_timeout limit;
};

static sn_future *limited_take_init(struct limited_take *l, int polls)
{
    l->clock = (struct hand_clock){.clock = {hand_now, hand_arm}};
    l->source = 1;
    return sn_fut_timeout_init(&l->limit, take_init(&l->take, &l->source, polls), &l->clock.clock,
                               sn_clock_after(&l->clock.clock, 10));
}

TEST(a_timeout_drops_its_future_when_the_time_is_up)
{
    struct limited_take l;
    sn_future *fut = limited_take_init(&l, 5);
    CHECK(sn_poll_pending(poll_noop(fut)));
    l.clock.now = 10;
    CHECK_EQ(poll_noop(fut).value, -ETIMEDOUT);
    CHECK_EQ(l.take.drops, 1);
    CHECK_EQ(l.source, 1);
}

TEST(a_timeout_lets_a_future_win_that_is_ready_even_late)
{
    struct limited_take l;
    sn_future *fut = limited_take_init(&l, 2);
    CHECK(sn_poll_pending(poll_noop(fut)));
    l.clock.now = 99;
    CHECK_EQ(poll_noop(fut).value, 2);
    CHECK_EQ(l.take.drops, 0);
    CHECK_EQ(l.source, 0);
}

TEST(a_dropped_timeout_drops_its_future)
{
    struct limited_take l;
    sn_future *fut = limited_take_init(&l, 5);
    CHECK(sn_poll_pending(poll_noop(fut)));
    CHECK_EQ(sn_future_drop(fut), 0);
    CHECK_EQ(l.take.drops, 1);
}
