/* SPDX-License-Identifier: MIT */
/* Wakers (R10): references are counted, defaults fill in, use after the end is noticed. */
#include "harness.h"
#include "unit/future/counting_waker.h"

#include <sinew/future.h>

TEST(waker_clone_and_drop_keep_the_count)
{
    struct counting_waker counter;
    sn_waker w = counting_waker_init(&counter);
    sn_waker copy = sn_waker_clone(&w);
    CHECK_EQ(counter.refs, 2);
    CHECK(sn_waker_same(&w, &copy));
    sn_waker_drop(&copy);
    CHECK_EQ(counter.refs, 1);
    CHECK(copy.vt == NULL);
    sn_waker_drop(&w);
    CHECK_EQ(counter.refs, 0);
    CHECK_EQ(counter.wakes, 0);
}

TEST(waker_wake_gives_up_its_reference_and_wake_by_ref_does_not)
{
    struct counting_waker counter;
    sn_waker w = counting_waker_init(&counter);
    CHECK_EQ(sn_waker_wake_by_ref(&w), 0);
    CHECK_EQ(counter.refs, 1);
    CHECK_EQ(sn_waker_wake(&w), 0);
    CHECK_EQ(counter.wakes, 2);
    CHECK_EQ(counter.refs, 0);
    CHECK(w.vt == NULL);
}

TEST(waker_drop_accepts_null_and_empty_wakers)
{
    sn_waker empty = {0};
    sn_waker_drop(NULL);
    sn_waker_drop(&empty);
    sn_waker_drop(&empty);
}

TEST(waker_drop_is_harmless_after_wake)
{
    struct counting_waker counter;
    sn_waker w = counting_waker_init(&counter);
    CHECK_EQ(sn_waker_wake(&w), 0);
    sn_waker_drop(&w);
    CHECK_EQ(counter.refs, 0);
}

static int wakes_seen;

static int note_wake(void *data)
{
    wakes_seen += *(int *)data;
    return 0;
}

static int note_wake_and_finish(void *data)
{
    wakes_seen += 100 * *(int *)data;
    return 0;
}

TEST(a_vtable_needs_no_more_than_wake_by_ref)
{
    static const sn_waker_vtable minimal = {.wake_by_ref = note_wake};
    int one = 1;
    sn_waker w = {&minimal, &one};
    sn_waker copy = sn_waker_clone(&w);
    CHECK_PTR_EQ(copy.data, &one);
    CHECK_EQ(sn_waker_wake(&copy), 0);
    sn_waker_drop(&w);
    CHECK_EQ(wakes_seen, 1);
}

TEST(a_vtable_with_its_own_wake_is_asked_for_it)
{
    static const sn_waker_vtable both = {.wake = note_wake_and_finish, .wake_by_ref = note_wake};
    int one = 1;
    sn_waker w = {&both, &one};
    CHECK_EQ(sn_waker_wake_by_ref(&w), 0);
    CHECK_EQ(sn_waker_wake(&w), 0);
    CHECK_EQ(wakes_seen, 101);
}

TEST(noop_waker_can_be_cloned_woken_and_dropped_for_ever)
{
    sn_waker noop = sn_noop_waker();
    for (int i = 0; i < 3; i++) {
        sn_waker copy = sn_waker_clone(&noop);
        CHECK(sn_waker_same(&copy, &noop));
        CHECK_EQ(sn_waker_wake_by_ref(&copy), 0);
        CHECK_EQ(sn_waker_wake(&copy), 0);
    }
    sn_waker_drop(&noop);
}

TEST(wakers_of_different_pollers_are_not_the_same)
{
    struct counting_waker a, b;
    sn_waker wa = counting_waker_init(&a);
    sn_waker wb = counting_waker_init(&b);
    CHECK(!sn_waker_same(&wa, &wb));
    sn_waker noop = sn_noop_waker();
    CHECK(!sn_waker_same(&wa, &noop));
}
