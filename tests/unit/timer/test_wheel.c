/* SPDX-License-Identifier: MIT */
/* The timer wheel (R70), one property at a time; test_wheel_model.c has them meet. Most tests use
 * ticks of 1 ns, so that a tick is its number. */
#include "harness.h"
#include "timer/wheel.h"

#include <stdlib.h>
#include <string.h>

enum { MS = 1 << 20 }; /* a millisecond as the wheel rounds it */

static struct sni_wheel wheel;
static struct sni_wheel_slots slots;
static struct sni_timer t[300];

static void begin(int64_t now_ns, int64_t tick_ns)
{
    sni_wheel_init(&wheel, &slots, now_ns, tick_ns);
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        sni_timer_init(&t[i]);
}

/* Runs at `now` and gives how many came. */
static int run(int64_t now)
{
    int n = 0;
    while (sni_wheel_pop(&wheel, now) != NULL)
        n++;
    return n;
}

static int64_t power(int exponent)
{
    return INT64_C(1) << 6 * exponent;
}

TEST(a_new_wheel_is_empty)
{
    begin(5, 1000000);
    CHECK_EQ(sni_wheel_count(&wheel), 0);
    CHECK_EQ(sni_wheel_next_ns(&wheel), INT64_MAX);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 5), NULL);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, INT64_MAX), NULL);
    CHECK(!sni_timer_is_armed(&t[0]));
}

TEST(a_timer_and_a_wheel_are_small)
{
    CHECK_LE(sizeof(struct sni_timer), 32);
    CHECK_LE(sizeof(struct sni_wheel), 7000);
}

static void count(const struct sni_timer *timer, void *arg)
{
    CHECK_PTR_EQ(timer, &t[0]);
    ++*(int *)arg;
}

/* Memory that nobody touches is not there (R2). */
TEST(a_level_of_a_wheel_is_not_touched_before_a_timer_needs_it)
{
    for (int level = 0; level < SNI_WHEEL_LEVELS; level++) {
        int found = 0;
        memset(&slots, 0x55, sizeof(slots));
        begin(0, 1);
        CHECK_EQ(run(1), 0);
        sni_wheel_each(&wheel, count, &found);
        CHECK_EQ(found, 0);
        sni_wheel_add(&wheel, &t[0], 5 * power(level));
        sni_wheel_each(&wheel, count, &found);
        CHECK_EQ(found, 1);
        const char *untouched = (const char *)&slots.lists[(level + 1) * SNI_WHEEL_SLOTS];
        for (; untouched < (const char *)(&slots + 1); untouched++)
            CHECK_EQ(*untouched, 0x55);
        CHECK_PTR_EQ(sni_wheel_pop(&wheel, 5 * power(level)), &t[0]);
    }
}

TEST(a_tick_is_rounded_up_to_a_power_of_two)
{
    static const int64_t ticks[][2] = {{1, 1},
                                       {2, 2},
                                       {3, 4},
                                       {1000, 1024},
                                       {65536, 65536},
                                       {65537, 131072},
                                       {1000000, MS},
                                       {INT64_C(1) << 62, INT64_C(1) << 62},
                                       {INT64_MAX, INT64_C(1) << 62}};
    for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
        begin(0, ticks[i][0]);
        CHECK_EQ(sni_wheel_tick_ns(&wheel), ticks[i][1]);
    }
}

TEST(a_timer_is_armed_until_it_is_popped)
{
    begin(0, 1);
    sni_wheel_add(&wheel, &t[0], 10);
    CHECK(sni_timer_is_armed(&t[0]));
    CHECK_EQ(sni_wheel_count(&wheel), 1);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 9), NULL);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 10), &t[0]);
    CHECK(!sni_timer_is_armed(&t[0]));
    CHECK_EQ(t[0].at_ns, 10);
    CHECK_EQ(sni_wheel_count(&wheel), 0);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 10), NULL);
}

TEST(a_timer_is_popped_at_the_first_boundary_of_a_tick_that_is_not_before_its_time)
{
    for (int64_t at = MS - 2; at < 3 * MS; at += MS / 7) {
        int64_t due = (at + MS - 1) / MS * MS;
        begin(0, MS);
        sni_wheel_add(&wheel, &t[0], at);
        CHECK_EQ(sni_wheel_next_ns(&wheel), due);
        CHECK_PTR_EQ(sni_wheel_pop(&wheel, due - 1), NULL);
        CHECK_PTR_EQ(sni_wheel_pop(&wheel, due), &t[0]);
    }
}

TEST(a_time_that_has_passed_is_due_at_the_next_run)
{
    static const int64_t past[] = {500, 499, 0, -1, INT64_MIN};
    for (size_t i = 0; i < sizeof(past) / sizeof(past[0]); i++) {
        begin(500, 64);
        sni_wheel_add(&wheel, &t[0], past[i]);
        CHECK_EQ(sni_wheel_next_ns(&wheel), 500);
        CHECK_PTR_EQ(sni_wheel_pop(&wheel, 500), &t[0]);
    }
}

/* Also when the tick in which it lies has not ended. */
TEST(a_time_that_has_passed_within_the_tick_is_due_at_the_next_run)
{
    begin(0, MS);
    CHECK_EQ(run(MS + 700), 0);
    sni_wheel_add(&wheel, &t[0], MS + 700);
    sni_wheel_add(&wheel, &t[1], MS + 701);
    CHECK_EQ(sni_wheel_next_ns(&wheel), MS + 700);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, MS + 700), &t[0]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, MS + 700), NULL);
    CHECK_EQ(sni_wheel_next_ns(&wheel), 2 * MS);
}

TEST(ticks_come_in_their_order_whatever_the_order_of_adding)
{
    static const int64_t at[] = {70, 5, 4096, 300000, 6, 64, 63, 65, 1 << 30, 4095};
    static const int order[] = {1, 4, 6, 5, 7, 0, 9, 2, 3, 8};
    begin(0, 1);
    for (int i = 0; i < 10; i++)
        sni_wheel_add(&wheel, &t[i], at[i]);
    for (int i = 0; i < 10; i++)
        CHECK_PTR_EQ(sni_wheel_pop(&wheel, INT64_C(1) << 31), &t[order[i]]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, INT64_C(1) << 31), NULL);
}

/* Each is added when the wheel has come nearer, so that it would be placed lower and lower. */
TEST(timers_of_one_tick_come_in_the_order_of_adding)
{
    int64_t due = 3 * power(6) + 7 * power(4) + 5 * power(2) + 20;
    int64_t when[] = {0, 2 * power(6) + 1, 3 * power(6), due - power(4), due - 100, due - 5};
    begin(0, 1);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(run(when[i]), 0);
        sni_wheel_add(&wheel, &t[i], due);
    }
    for (int i = 0; i < 6; i++)
        CHECK_PTR_EQ(sni_wheel_pop(&wheel, due), &t[i]);
}

TEST(times_of_one_tick_come_in_the_order_of_adding_not_of_time)
{
    begin(0, MS);
    sni_wheel_add(&wheel, &t[0], MS);
    sni_wheel_add(&wheel, &t[1], MS - 5);
    sni_wheel_add(&wheel, &t[2], MS - 2);
    for (int i = 0; i < 3; i++)
        CHECK_PTR_EQ(sni_wheel_pop(&wheel, MS), &t[i]);
}

TEST(boundaries_of_all_levels_are_kept)
{
    for (int64_t start = -3; start < 130; start += 11) {
        for (int k = 0; k <= 8; k++) {
            for (int64_t off = -2; off <= 2; off++) {
                int64_t at = start + power(k) + off;
                begin(start, 1);
                sni_wheel_add(&wheel, &t[0], at);
                if (at > start)
                    CHECK_PTR_EQ(sni_wheel_pop(&wheel, at - 1), NULL);
                CHECK_PTR_EQ(sni_wheel_pop(&wheel, at), &t[0]);
            }
        }
    }
}

TEST(three_hundred_ticks_in_a_row_are_popped_one_by_one)
{
    begin(-150, 1);
    for (int i = 299; i >= 0; i--)
        sni_wheel_add(&wheel, &t[i], i - 150);
    for (int i = 0; i < 300; i++) {
        CHECK_PTR_EQ(sni_wheel_pop(&wheel, i - 150), &t[i]);
        CHECK_PTR_EQ(sni_wheel_pop(&wheel, i - 150), NULL);
    }
}

TEST(deadlines_beyond_the_top_level_fire_in_their_order)
{
    begin(0, 1);
    sni_wheel_add(&wheel, &t[0], 9 * power(6) + 1);
    sni_wheel_add(&wheel, &t[1], 2 * power(6) + 5);
    sni_wheel_add(&wheel, &t[2], 2 * power(6) + 3);
    sni_wheel_add(&wheel, &t[3], INT64_MAX - 1);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 2 * power(6) + 2), NULL);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 2 * power(6) + 3), &t[2]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 9 * power(6)), &t[1]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 9 * power(6)), NULL);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, INT64_MAX), &t[0]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, INT64_MAX), &t[3]);
}

TEST(one_jump_pops_far_and_near_in_order)
{
    begin(0, 1);
    for (int i = 0; i < 100; i++)
        sni_wheel_add(&wheel, &t[i], (100 - i) * power(6) / 3);
    for (int i = 99; i >= 0; i--)
        CHECK_PTR_EQ(sni_wheel_pop(&wheel, INT64_MAX - 1), &t[i]);
    CHECK_EQ(run(INT64_MAX), 0);
}

TEST(the_end_of_time_is_never_and_is_armed)
{
    begin(0, MS);
    sni_wheel_add(&wheel, &t[0], INT64_MAX);
    sni_wheel_add(&wheel, &t[1], INT64_MAX - MS + 2); /* in the last tick: its end is not a time */
    sni_wheel_add(&wheel, &t[2], INT64_MAX - MS + 1); /* where the last tick begins */
    CHECK(sni_timer_is_armed(&t[0]));
    CHECK_EQ(sni_wheel_count(&wheel), 3);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, INT64_MAX), &t[2]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, INT64_MAX), NULL);
    CHECK_EQ(sni_wheel_next_ns(&wheel), INT64_MAX);
    CHECK_EQ(sni_wheel_count(&wheel), 2);
    CHECK(sni_wheel_remove(&wheel, &t[0]));
    CHECK(sni_wheel_remove(&wheel, &t[1]));
    CHECK_EQ(sni_wheel_count(&wheel), 0);
}

TEST(the_end_of_time_is_never_also_if_a_tick_is_a_nanosecond)
{
    begin(INT64_MIN, 1);
    sni_wheel_add(&wheel, &t[0], INT64_MAX);
    sni_wheel_add(&wheel, &t[1], INT64_MAX - 1);
    CHECK_EQ(sni_wheel_next_ns(&wheel), INT64_MAX - 1);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, INT64_MAX), &t[1]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, INT64_MAX), NULL);
}

TEST(times_may_be_negative_and_ticks_have_a_boundary_at_zero)
{
    begin(-10 * MS, MS);
    sni_wheel_add(&wheel, &t[0], 1);
    sni_wheel_add(&wheel, &t[1], 0);
    sni_wheel_add(&wheel, &t[2], -1);
    sni_wheel_add(&wheel, &t[3], -MS);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, -MS - 1), NULL);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, -1), &t[3]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, -1), NULL);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 0), &t[1]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 0), &t[2]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 0), NULL);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, MS), &t[0]);
}

TEST(a_clock_that_goes_back_is_taken_to_stand_still)
{
    begin(0, 1);
    sni_wheel_add(&wheel, &t[0], 200);
    CHECK_EQ(run(100), 0);
    CHECK_EQ(run(50), 0);
    CHECK_EQ(run(INT64_MIN), 0);
    sni_wheel_add(&wheel, &t[1], 80);
    CHECK_EQ(sni_wheel_next_ns(&wheel), 100);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 10), &t[1]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 10), NULL);
    CHECK_EQ(run(199), 0);
    CHECK_EQ(run(200), 1);
}

/* Quiet time is skipped: were it walked through, this would take years. */
TEST(quiet_time_costs_nothing)
{
    begin(INT64_MIN, 1);
    int64_t now = INT64_MIN;
    for (int i = 0; i < 100000; i++) {
        now += INT64_MAX / 100000;
        sni_wheel_add(&wheel, &t[0], now);
        CHECK_EQ(sni_wheel_next_ns(&wheel), now);
        CHECK_EQ(run(now - 1), 0);
        CHECK_EQ(run(now), 1);
    }
}

/* ---- removing ------------------------------------------------------------------------------- */

TEST(a_removed_timer_is_not_popped_and_can_be_added_again)
{
    static const int64_t at[] = {-5, 0, 1, 63, 64, 5000, 1 << 20, INT64_C(1) << 40, INT64_MAX};
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        begin(0, 1);
        sni_wheel_add(&wheel, &t[0], at[i]);
        CHECK(sni_wheel_remove(&wheel, &t[0]));
        CHECK(!sni_timer_is_armed(&t[0]));
        CHECK(!sni_wheel_remove(&wheel, &t[0]));
        CHECK_EQ(sni_wheel_count(&wheel), 0);
        CHECK_EQ(sni_wheel_next_ns(&wheel), INT64_MAX); /* nobody is woken for it */
        sni_wheel_add(&wheel, &t[0], 7);
        CHECK_EQ(sni_wheel_next_ns(&wheel), 7);
        CHECK_PTR_EQ(sni_wheel_pop(&wheel, 7), &t[0]);
        CHECK_EQ(run(INT64_MAX), 0);
    }
}

TEST(removing_what_is_not_armed_does_nothing)
{
    begin(0, 1);
    CHECK(!sni_wheel_remove(&wheel, &t[0]));
    sni_wheel_add(&wheel, &t[0], 1);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 1), &t[0]);
    CHECK(!sni_wheel_remove(&wheel, &t[0]));
    CHECK_EQ(sni_wheel_count(&wheel), 0);
}

TEST(removing_one_of_a_slot_leaves_the_others)
{
    for (int64_t at = 50; at < INT64_C(1) << 50; at *= 7) {
        for (int gone = 0; gone < 3; gone++) {
            begin(0, 1);
            for (int i = 0; i < 3; i++)
                sni_wheel_add(&wheel, &t[i], at);
            CHECK(sni_wheel_remove(&wheel, &t[gone]));
            CHECK_EQ(sni_wheel_count(&wheel), 2);
            CHECK_LE(sni_wheel_next_ns(&wheel), at);
            for (int i = 0; i < 3; i++)
                if (i != gone)
                    CHECK_PTR_EQ(sni_wheel_pop(&wheel, at), &t[i]);
            CHECK_EQ(run(at), 0);
        }
    }
}

TEST(what_is_due_already_can_still_be_removed)
{
    begin(0, 1);
    for (int i = 0; i < 4; i++)
        sni_wheel_add(&wheel, &t[i], 5 + i);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 10), &t[0]);
    CHECK(sni_timer_is_armed(&t[1]));
    CHECK(sni_wheel_remove(&wheel, &t[1]));
    CHECK(sni_wheel_remove(&wheel, &t[3]));
    CHECK_EQ(sni_wheel_count(&wheel), 1);
    CHECK_EQ(sni_wheel_next_ns(&wheel), 10);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 10), &t[2]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 10), NULL);
}

TEST(a_run_whose_rest_was_removed_ends)
{
    begin(0, 1);
    sni_wheel_add(&wheel, &t[0], 5);
    sni_wheel_add(&wheel, &t[1], 5);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 5), &t[0]);
    CHECK(sni_wheel_remove(&wheel, &t[1]));
    CHECK_EQ(sni_wheel_next_ns(&wheel), INT64_MAX);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 5), NULL);
}

/* ---- adding in a run ------------------------------------------------------------------------ */

TEST(a_timer_that_adds_itself_in_the_past_is_popped_once_in_a_run)
{
    static const int64_t again_ns[] = {-1000, 0, 1, 100};
    for (int i = 0; i < 4; i++) {
        begin(0, 1);
        sni_wheel_add(&wheel, &t[0], 10);
        for (int runs = 0; runs < 10; runs++) {
            CHECK_PTR_EQ(sni_wheel_pop(&wheel, 1000), &t[0]);
            sni_wheel_add(&wheel, &t[0], 10 + again_ns[i]);
            CHECK_PTR_EQ(sni_wheel_pop(&wheel, 1000), NULL);
            CHECK_EQ(sni_wheel_next_ns(&wheel), 1000);
        }
    }
}

TEST(what_is_added_in_a_run_comes_in_the_next_behind_what_was_due)
{
    begin(0, 1);
    sni_wheel_add(&wheel, &t[0], 10);
    sni_wheel_add(&wheel, &t[1], 20);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 30), &t[0]);
    sni_wheel_add(&wheel, &t[2], 1);
    sni_wheel_add(&wheel, &t[3], 31);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 30), &t[1]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 30), NULL);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 30), &t[2]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 30), NULL);
    CHECK_EQ(sni_wheel_next_ns(&wheel), 31);
}

TEST(a_run_that_was_left_goes_on_and_the_next_tick_joins_it)
{
    begin(0, 1);
    for (int i = 0; i < 3; i++)
        sni_wheel_add(&wheel, &t[i], 5);
    sni_wheel_add(&wheel, &t[3], 6);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 5), &t[0]);
    sni_wheel_add(&wheel, &t[0], 5);
    CHECK_EQ(sni_wheel_next_ns(&wheel), 5);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 5), &t[1]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 6), &t[2]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 6), &t[0]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 6), &t[3]);
    CHECK_PTR_EQ(sni_wheel_pop(&wheel, 6), NULL);
}

#ifdef SINEW_DEBUG
FAIL_TEST(a_timer_that_is_armed_twice_is_reported, "armed twice")
{
    begin(0, 1);
    sni_wheel_add(&wheel, &t[0], 1);
    sni_wheel_add(&wheel, &t[0], 2);
}
#endif

FAIL_TEST(a_tick_of_nothing_is_refused, "longer than nothing")
{
    begin(0, 0);
}

/* ---- when to wake --------------------------------------------------------------------------- */

TEST(the_next_time_is_exact_in_the_lowest_level)
{
    begin(64 * MS, MS);
    for (int i = 63; i > 0; i--) {
        sni_wheel_add(&wheel, &t[i], (64 + i) * (int64_t)MS - 1);
        CHECK_EQ(sni_wheel_next_ns(&wheel), (64 + i) * (int64_t)MS);
    }
}

TEST(the_next_time_is_exact_for_a_timer_that_is_alone)
{
    for (int64_t at = 1; at < INT64_MAX / 5; at = at * 5 + 1) {
        begin(0, 1);
        sni_wheel_add(&wheel, &t[0], at);
        sni_wheel_add(&wheel, &t[1], INT64_MAX);
        CHECK_EQ(sni_wheel_next_ns(&wheel), at);
        CHECK_PTR_EQ(sni_wheel_pop(&wheel, at), &t[0]);
    }
}

TEST(the_next_time_is_where_the_slot_begins_for_a_timer_in_company)
{
    begin(0, 1);
    for (int k = SNI_WHEEL_LEVELS - 1; k > 0; k--) {
        sni_wheel_add(&wheel, &t[2 * k], 3 * power(k) + 7);
        sni_wheel_add(&wheel, &t[2 * k + 1], 3 * power(k) + 5);
        CHECK_EQ(sni_wheel_next_ns(&wheel), 3 * power(k));
    }
}

TEST(a_far_timer_that_is_gone_wakes_nobody_twice)
{
    begin(0, 1);
    for (int i = 0; i < 10; i++)
        sni_wheel_add(&wheel, &t[i], (i + 1) * power(6) + 5);
    for (int i = 0; i < 8; i++)
        CHECK(sni_wheel_remove(&wheel, &t[i]));
    CHECK_LE(sni_wheel_next_ns(&wheel), 9 * power(6));
    CHECK_EQ(run(sni_wheel_next_ns(&wheel)), 0);
    CHECK_EQ(sni_wheel_next_ns(&wheel), 9 * power(6));
    CHECK_EQ(run(9 * power(6) + 4), 0);
    CHECK_EQ(sni_wheel_next_ns(&wheel), 9 * power(6) + 5);
    CHECK_EQ(run(9 * power(6) + 5), 1);
    CHECK_EQ(sni_wheel_next_ns(&wheel), 10 * power(6) + 5);
}
