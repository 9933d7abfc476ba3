/* SPDX-License-Identifier: MIT */
/* Bad input: each misuse is an error in release builds and a sentence in debug builds.
 *
 * MISUSE_TEST(name, code, sentence) { return what the misused call returned; } */
#include "harness.h"
#include "unit/future/counting_waker.h"

#include <sinew/sinew.h>

#ifdef SINEW_DEBUG
#define MISUSE_CASE(name, code, sentence) \
    FAIL_TEST(name, sentence)             \
    {                                     \
        (void)misuse_##name();            \
    }
#else
#define MISUSE_CASE(name, code, sentence)  \
    TEST(name)                             \
    {                                      \
        CHECK_EQ(misuse_##name(), (code)); \
    }
#endif
#define MISUSE_TEST(name, code, sentence) \
    static int misuse_##name(void);       \
    MISUSE_CASE(name, code, sentence)     \
    static int misuse_##name(void)

static int poll_value(sn_future *fut)
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    return sn_future_poll(fut, &cx).value;
}

/* ---- futures -------------------------------------------------------------------------- */

MISUSE_TEST(polling_null_is_an_error, -EINVAL, "NULL was polled")
{
    return poll_value(NULL);
}

MISUSE_TEST(polling_a_null_vtable_is_an_error, -EINVAL, "without a vtable or an sn_cx")
{
    sn_future fut = SN_FUTURE_INIT(NULL);
    return poll_value(&fut);
}

MISUSE_TEST(polling_without_a_cx_is_an_error, -EINVAL, "without a vtable or an sn_cx")
{
    sn_fut_ready ready;
    return sn_future_poll(sn_fut_ready_init(&ready, 0), NULL).value;
}

MISUSE_TEST(yielding_without_a_waker_is_an_error, SN_PENDING.value, "an empty waker was used")
{
    sn_fut_yield yield;
    sn_cx cx = {NULL};
    return sn_future_poll(sn_fut_yield_init(&yield), &cx).value;
}

MISUSE_TEST(polling_a_finished_future_is_an_error, -EALREADY, "a finished future was polled again")
{
    sn_fut_ready ready;
    CHECK_EQ(poll_value(sn_fut_ready_init(&ready, 5)), 5);
    return poll_value(&ready.future);
}

MISUSE_TEST(polling_a_dropped_future_is_an_error, -EALREADY, "a dropped future was polled")
{
    sn_fut_ready ready;
    CHECK_EQ(sn_future_drop(sn_fut_ready_init(&ready, 5)), 0);
    return poll_value(&ready.future);
}

MISUSE_TEST(dropping_twice_is_an_error, -EALREADY, "after it was dropped")
{
    sn_fut_pending pending;
    CHECK_EQ(sn_future_drop(sn_fut_pending_init(&pending)), 0);
    return sn_future_drop(&pending.future);
}

MISUSE_TEST(dropping_a_finished_future_twice_is_an_error, -EALREADY, "after it was dropped")
{
    sn_fut_ready ready;
    CHECK_EQ(poll_value(sn_fut_ready_init(&ready, 5)), 5);
    CHECK_EQ(sn_future_drop(&ready.future), 0);
    return sn_future_drop(&ready.future);
}

MISUSE_TEST(cancelling_after_the_drop_is_an_error, -EALREADY, "after it was dropped")
{
    sn_fut_pending pending;
    CHECK_EQ(sn_future_drop(sn_fut_pending_init(&pending)), 0);
    return sn_future_cancel(&pending.future);
}

MISUSE_TEST(cancelling_null_is_an_error, -EINVAL, "NULL was cancelled")
{
    return sn_future_cancel(NULL);
}

MISUSE_TEST(dropping_a_null_vtable_is_an_error, -EINVAL, "without a vtable was dropped")
{
    sn_future fut = SN_FUTURE_INIT(NULL);
    return sn_future_drop(&fut);
}

MISUSE_TEST(joining_a_finished_future_is_an_error, -EALREADY, "a finished future was polled again")
{
    sn_fut_ready done, other;
    sn_fut_join2 join;
    CHECK_EQ(poll_value(sn_fut_ready_init(&done, 5)), 5);
    return poll_value(sn_fut_join2_init(&join, &done.future, sn_fut_ready_init(&other, 1)));
}

MISUSE_TEST(a_race_of_none_is_an_error, -EINVAL, "a race of no futures")
{
    sn_fut_race race;
    return poll_value(sn_fut_race_init(&race, NULL, 0));
}

/* ---- re-entry ------------------------------------------------------------------------- */

enum reentry {
    BY_POLL,
    BY_CANCEL,
    BY_DROP,
};

typedef struct narcissus {
    sn_coro coro;
    enum reentry how;
} narcissus;

SN_CORO(narcissus, self)
{
    SN_BEGIN(self);
    if (self->how == BY_CANCEL)
        SN_RETURN(sn_future_cancel(&self->coro.future));
    if (self->how == BY_DROP)
        SN_RETURN(sn_future_drop(&self->coro.future));
    SN_RETURN(sn_future_poll(&self->coro.future, SN_CX).value);
    SN_END();
}

static int reenter(enum reentry how)
{
    narcissus n = {.how = how};
    return poll_value(SN_START(narcissus, &n));
}

MISUSE_TEST(a_coroutine_polled_from_its_own_poll_is_an_error, -EDEADLK, "within its own poll")
{
    return reenter(BY_POLL);
}

MISUSE_TEST(a_coroutine_cancelled_from_its_own_poll_is_an_error, -EDEADLK, "within its own poll")
{
    return reenter(BY_CANCEL);
}

MISUSE_TEST(a_coroutine_dropped_from_its_own_poll_is_an_error, -EDEADLK, "within its own poll")
{
    return reenter(BY_DROP);
}

typedef struct ouroboros {
    sn_coro coro;
} ouroboros;

SN_CORO(ouroboros, self)
{
    int rc;
    SN_BEGIN(self);
    SN_AWAIT_INTO(rc, &self->coro.future);
    SN_RETURN(rc);
    SN_END();
}

MISUSE_TEST(a_coroutine_that_awaits_itself_is_an_error, -EDEADLK, "awaits itself")
{
    ouroboros o;
    return poll_value(SN_START(ouroboros, &o));
}

/* ---- coroutines ----------------------------------------------------------------------- */

typedef struct awaits_null {
    sn_coro coro;
} awaits_null;

SN_CORO(awaits_null, self)
{
    int rc;
    SN_BEGIN(self);
    SN_AWAIT_INTO(rc, NULL);
    SN_RETURN(rc);
    SN_END();
}

MISUSE_TEST(awaiting_null_is_an_error, -EINVAL, "NULL was polled")
{
    awaits_null a;
    return poll_value(SN_START(awaits_null, &a));
}

typedef struct short_lived {
    sn_coro coro;
} short_lived;

SN_CORO(short_lived, self)
{
    SN_BEGIN(self);
    SN_RETURN(6);
    SN_END();
}

MISUSE_TEST(a_coroutine_polled_after_its_end_is_an_error, -EALREADY, "finished future was polled")
{
    short_lived s;
    CHECK_EQ(poll_value(SN_START(short_lived, &s)), 6);
    return poll_value(&s.coro.future);
}

typedef struct overwritten {
    sn_coro coro;
} overwritten;

SN_CORO(overwritten, self)
{
    SN_BEGIN(self);
    SN_YIELD();
    SN_END();
}

MISUSE_TEST(a_resume_point_that_does_not_exist_is_an_error, -EINVAL, "a place it does not have")
{
    overwritten o;
    sn_future *fut = SN_START(overwritten, &o);
    CHECK_EQ(poll_value(fut), SN_PENDING.value);
    o.coro.resume_ = 1;
    return poll_value(fut);
}

typedef struct late_await {
    sn_coro coro;
    sn_fut_yield pause;
    int seen;
} late_await;

SN_CORO(late_await, self)
{
    SN_BEGIN(self);
    SN_RETURN(-7);
    SN_FINALLY();
    SN_AWAIT(sn_fut_yield_init(&self->pause));
    self->seen = self->pause.given_;
    SN_END();
}

MISUSE_TEST(an_await_in_the_finally_part_is_an_error, -7, "awaits in its SN_FINALLY part")
{
    late_await l = {.seen = 9};
    int rc = poll_value(SN_START(late_await, &l));
    CHECK_EQ(l.seen, 0); /* not even polled */
    return rc;
}

typedef struct late_return {
    sn_coro coro;
} late_return;

SN_CORO(late_return, self)
{
    SN_BEGIN(self);
    SN_RETURN(-7);
    SN_FINALLY();
    SN_RETURN(3);
    SN_END();
}

MISUSE_TEST(a_return_in_the_finally_part_is_an_error, -7, "returns from its SN_FINALLY part")
{
    late_return l;
    return poll_value(SN_START(late_return, &l));
}

/* ---- wakers --------------------------------------------------------------------------- */

MISUSE_TEST(waking_an_empty_waker_is_an_error, -EINVAL, "an empty waker was used")
{
    sn_waker empty = {0};
    return sn_waker_wake(&empty);
}

MISUSE_TEST(waking_a_waker_twice_is_an_error, -EINVAL, "an empty waker was used")
{
    struct counting_waker counter;
    sn_waker w = counting_waker_init(&counter);
    CHECK_EQ(sn_waker_wake(&w), 0);
    int rc = sn_waker_wake(&w);
    CHECK_EQ(counter.wakes, 1);
    return rc;
}

MISUSE_TEST(waking_null_by_ref_is_an_error, -EINVAL, "an empty waker was used")
{
    return sn_waker_wake_by_ref(NULL);
}

MISUSE_TEST(cloning_an_empty_waker_is_an_error, 0, "an empty waker was used")
{
    sn_waker copy = sn_waker_clone(NULL);
    return copy.vt == NULL ? 0 : 1;
}

MISUSE_TEST(arming_a_cell_with_an_empty_waker_is_an_error, -EINVAL, "armed with an empty waker")
{
    sn_waker_cell cell = SN_WAKER_CELL_INIT;
    sn_waker empty = {0};
    return sn_waker_cell_arm(&cell, &empty);
}

MISUSE_TEST(sending_a_signal_nothing_is_an_error, -EINVAL, "an amount that is not positive")
{
    sn_signal s = SN_SIGNAL_INIT;
    int rc = sn_signal_send(&s, 0);
    CHECK_EQ(s.sum_.raw_, 0);
    return rc;
}

/* ---- sn_block_on_simple --------------------------------------------------------------- */

static sn_idle shared_idle = SN_IDLE_INIT(NULL, NULL);

typedef struct nested {
    sn_coro coro;
    sn_fut_ready ready;
} nested;

SN_CORO(nested, self)
{
    SN_BEGIN(self);
    SN_RETURN(sn_block_on_simple(sn_fut_ready_init(&self->ready, 1), &shared_idle));
    SN_END();
}

MISUSE_TEST(one_idle_for_two_calls_is_an_error, -EBUSY, "two calls of sn_block_on_simple")
{
    nested n;
    return sn_block_on_simple(SN_START(nested, &n), &shared_idle);
}
