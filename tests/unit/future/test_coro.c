/* SPDX-License-Identifier: MIT */
/* Coroutines (R11): suspension in every kind of block, results, generators, clean-up, and the
 * order in which things are dropped. The compile-time half is in tests/static. */
#include "harness.h"
#include "unit/future/counting_waker.h"

#include <sinew/sinew.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what happened, as text ----------------------------------------------------------- */

static char story[1024];

static void tell(const char *what)
{
    strncat(story, what, sizeof(story) - strlen(story) - 1);
    strncat(story, " ", sizeof(story) - strlen(story) - 1);
}

static sn_poll poll_noop(sn_future *fut)
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    return sn_future_poll(fut, &cx);
}

/* A leaf that tells when it is polled and dropped, and is ready at its n-th poll. */
typedef struct leaf {
    sn_future future;
    const char *name;
    int left;
} leaf;

static sn_poll leaf_poll(sn_future *fut, sn_cx *cx)
{
    leaf *self = (leaf *)fut;
    (void)cx;
    return --self->left > 0 ? SN_PENDING : SN_READY(7);
}

static void leaf_drop(sn_future *fut)
{
    tell(((leaf *)fut)->name);
}

static const sn_future_vtable leaf_kind = {.poll = leaf_poll, .drop = leaf_drop};

static sn_future *leaf_init(leaf *self, const char *name, int polls)
{
    self->name = name;
    self->left = polls;
    return sn_future_init(&self->future, &leaf_kind);
}

/* ---- control flow --------------------------------------------------------------------- */

typedef struct blocks {
    sn_coro coro;
    int i, k;
    bool done;
} blocks;

SN_CORO(blocks, self)
{
    SN_BEGIN(self);
    for (self->i = 0; self->i < 2; self->i++) {
        tell("for");
        SN_YIELD();
        while (self->k < 2) {
            self->k++;
            if (self->k == 1) {
                tell("if");
                SN_YIELD();
            } else {
                tell("else");
                SN_YIELD();
            }
        }
        do {
            {
                tell("do");
                SN_YIELD();
            }
            if (self->i == 0)
                continue;
            self->done = true;
        } while (!self->done && self->i == 1);
    }
    if (self->done)
        SN_YIELD();
    tell("end");
    SN_END();
}

TEST(a_coroutine_suspends_inside_for_while_do_if_else_and_nested_blocks)
{
    blocks b = {.k = 0};
    sn_future *fut = SN_START(blocks, &b);
    int polls = 1;
    while (sn_poll_pending(poll_noop(fut)))
        polls++;
    CHECK_STR_EQ(story, "for if else do for do end ");
    CHECK_EQ(polls, 8);
    CHECK(sn_future_finished(fut));
}

typedef struct early {
    sn_coro coro;
    int n;
} early;

SN_CORO(early, self)
{
    SN_BEGIN(self);
    for (;; self->n++) {
        for (;;) {
            if (self->n == 3)
                SN_RETURN(self->n);
            break;
        }
        SN_YIELD();
    }
    SN_END();
}

TEST(a_coroutine_returns_its_value_from_within_loops)
{
    early e = {.n = 0};
    CHECK_EQ(sn_block_on_simple(SN_START(early, &e), NULL), 3);
}

typedef struct nothing {
    sn_coro coro;
} nothing;

SN_CORO(nothing, self)
{
    SN_BEGIN(self);
    SN_END();
}

TEST(a_coroutine_that_falls_off_its_end_returns_0)
{
    nothing n;
    memset(&n, 0x5A, sizeof(n)); /* the frame's head needs no initialisation but SN_START */
    CHECK_EQ(poll_noop(SN_START(nothing, &n)).value, 0);
}

typedef struct falls {
    sn_coro coro;
    sn_fut_ready ready;
} falls;

SN_CORO(falls, self)
{
    SN_BEGIN(self);
    SN_AWAIT(sn_fut_ready_init(&self->ready, 44));
    SN_END();
}

TEST(falling_off_the_end_after_an_await_returns_0_not_the_awaited_value)
{
    falls f;
    CHECK_EQ(poll_noop(SN_START(falls, &f)).value, 0);
}

TEST(a_yield_wakes_the_poller_itself)
{
    struct counting_waker counter;
    sn_waker waker = counting_waker_init(&counter);
    sn_cx cx = {&waker};
    early e = {.n = 2};
    CHECK(sn_poll_pending(sn_future_poll(SN_START(early, &e), &cx)));
    CHECK_EQ(counter.wakes, 1);
    CHECK_EQ(sn_future_poll(&e.coro.future, &cx).value, 3);
    CHECK_EQ(counter.refs, 1);
}

/* ---- awaiting ------------------------------------------------------------------------- */

typedef struct awaiter {
    int before_the_head; /* the head may stand anywhere */
    sn_coro coro;
    leaf a, b;
    int evaluated;
    int sum;
} awaiter;

SN_CORO(awaiter, self)
{
    int rc;
    SN_BEGIN(self);
    SN_AWAIT_INTO(rc, (self->evaluated++, leaf_init(&self->a, "a", 3)));
    self->sum += rc;
    SN_AWAIT_INTO(rc, leaf_init(&self->b, "b", 1)); /* ready at once: no suspension */
    self->sum += rc;
    SN_RETURN(self->sum);
    SN_END();
}

TEST(an_await_evaluates_its_future_once_and_gives_its_result)
{
    awaiter w = {.sum = 100};
    sn_future *fut = SN_START(awaiter, &w);
    CHECK(sn_poll_pending(poll_noop(fut)));
    CHECK(sn_poll_pending(poll_noop(fut)));
    CHECK_EQ(poll_noop(fut).value, 114);
    CHECK_EQ(w.evaluated, 1);
    CHECK_STR_EQ(story, ""); /* nothing was dropped: both completed */
}

/* A coroutine whose depth is data: each awaits the next. */
enum {
    DEPTH = 200,
};

typedef struct deep {
    sn_coro coro;
    struct deep *next;
    leaf bottom;
} deep;

SN_CORO(deep, self)
{
    int rc;
    SN_BEGIN(self);
    if (self->next != NULL)
        SN_AWAIT_INTO(rc, SN_START(deep, self->next));
    else
        SN_AWAIT_INTO(rc, leaf_init(&self->bottom, "bottom", 3));
    SN_RETURN(rc + 1);
    SN_END();
}

TEST(coroutines_await_each_other_to_any_depth)
{
    static deep chain[DEPTH];
    for (int i = 0; i + 1 < DEPTH; i++)
        chain[i].next = &chain[i + 1];
    CHECK_EQ(sn_block_on_simple(SN_START(deep, &chain[0]), NULL), 7 + DEPTH);
}

/* ---- generators ----------------------------------------------------------------------- */

typedef struct squares {
    sn_coro coro;
    sn_fut_yield pause;
    int i, upto;
    long long square; /* a value larger than the int of a poll */
} squares;

SN_CORO(squares, self)
{
    SN_BEGIN(self);
    for (self->i = 1; self->i <= self->upto; self->i++) {
        SN_AWAIT(sn_fut_yield_init(&self->pause)); /* generators may wait between values */
        self->square = (long long)self->i * self->i * 1000000007LL;
        SN_EMIT(self->i);
    }
    SN_RETURN(-1);
    SN_FINALLY();
    tell("closed");
    SN_END();
}

TEST(a_generator_gives_all_its_values_and_then_ends)
{
    squares s = {.upto = 3};
    sn_future *fut = SN_START(squares, &s);
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(sn_block_on_simple(fut, NULL), i);
        CHECK(!sn_future_finished(fut));
        CHECK_EQ(s.square, (long long)i * i * 1000000007LL);
    }
    CHECK_EQ(sn_block_on_simple(fut, NULL), -1);
    CHECK(sn_future_finished(fut));
    CHECK_STR_EQ(story, "closed ");
}

TEST(a_generator_dropped_half_way_runs_its_clean_up)
{
    squares s = {.upto = 3};
    sn_future *fut = SN_START(squares, &s);
    CHECK_EQ(sn_block_on_simple(fut, NULL), 1);
    CHECK_EQ(sn_future_drop(fut), 0);
    CHECK_STR_EQ(story, "closed ");
}

typedef struct consumer {
    sn_coro coro;
    squares from;
    int sum;
} consumer;

SN_CORO(consumer, self)
{
    int value;
    SN_BEGIN(self);
    self->from.upto = 4;
    SN_START(squares, &self->from);
    for (;;) {
        SN_AWAIT_INTO(value, &self->from.coro.future);
        if (sn_future_finished(&self->from.coro.future))
            SN_RETURN(self->sum);
        self->sum += value;
    }
    SN_END();
}

TEST(a_coroutine_consumes_a_generator_by_awaiting_it)
{
    consumer c = {.sum = 0};
    CHECK_EQ(sn_block_on_simple(SN_START(consumer, &c), NULL), 1 + 2 + 3 + 4);
}

/* ---- clean-up, drop, cancel ----------------------------------------------------------- */

typedef struct inner {
    sn_coro coro;
    leaf wait;
} inner;

SN_CORO(inner, self)
{
    SN_BEGIN(self);
    SN_AWAIT(leaf_init(&self->wait, "leaf", 1000));
    tell("not reached");
    SN_FINALLY();
    tell("inner");
    SN_END();
}

typedef struct outer {
    sn_coro coro;
    inner in;
    int result_in_finally;
} outer;

SN_CORO(outer, self)
{
    SN_BEGIN(self);
    SN_AWAIT(SN_START(inner, &self->in));
    tell("not reached");
    SN_FINALLY();
    tell("outer");
    self->result_in_finally = self->coro.value_;
    SN_END();
}

TEST(dropping_a_coroutine_drops_what_it_awaits_innermost_first)
{
    outer o = {.result_in_finally = 0};
    sn_future *fut = SN_START(outer, &o);
    CHECK(sn_poll_pending(poll_noop(fut)));
    CHECK_EQ(sn_future_drop(fut), 0);
    CHECK_STR_EQ(story, "leaf inner outer ");
    CHECK_EQ(o.result_in_finally, -ECANCELED);
}

TEST(cancelling_a_coroutine_drops_in_the_same_order_and_completes)
{
    outer o = {.result_in_finally = 0};
    sn_future *fut = SN_START(outer, &o);
    CHECK(sn_poll_pending(poll_noop(fut)));
    CHECK_EQ(sn_future_cancel(fut), 0);
    CHECK_STR_EQ(story, "leaf inner outer ");
    CHECK_EQ(poll_noop(fut).value, -ECANCELED);
    CHECK_EQ(sn_future_drop(fut), 0);
    CHECK_STR_EQ(story, "leaf inner outer ");
}

TEST(dropping_a_coroutine_that_never_began_runs_no_clean_up)
{
    outer o = {.result_in_finally = 0};
    CHECK_EQ(sn_future_drop(SN_START(outer, &o)), 0);
    CHECK_STR_EQ(story, "");
}

typedef struct tidy {
    sn_coro coro;
    bool leave_early;
} tidy;

SN_CORO(tidy, self)
{
    SN_BEGIN(self);
    SN_YIELD();
    if (self->leave_early)
        SN_RETURN(5);
    tell("late");
    SN_FINALLY();
    tell("tidied");
    SN_END();
}

TEST(the_clean_up_part_runs_once_after_a_return_and_keeps_the_result)
{
    tidy t = {.leave_early = true};
    CHECK_EQ(sn_block_on_simple(SN_START(tidy, &t), NULL), 5);
    CHECK_STR_EQ(story, "tidied ");
}

TEST(the_clean_up_part_runs_when_the_body_falls_into_it)
{
    tidy t = {.leave_early = false};
    CHECK_EQ(sn_block_on_simple(SN_START(tidy, &t), NULL), 0);
    CHECK_STR_EQ(story, "late tidied ");
}

TEST(a_frame_can_be_started_again_after_its_end_and_after_a_drop)
{
    tidy t = {.leave_early = true};
    CHECK_EQ(sn_block_on_simple(SN_START(tidy, &t), NULL), 5);
    CHECK(sn_poll_pending(poll_noop(SN_START(tidy, &t))));
    CHECK_EQ(sn_future_drop(&t.coro.future), 0);
    CHECK_EQ(sn_block_on_simple(SN_START(tidy, &t), NULL), 5);
    CHECK_STR_EQ(story, "tidied tidied tidied ");
}

/* ---- observing ------------------------------------------------------------------------ */

TEST(a_suspended_coroutine_knows_its_name_and_line)
{
    tidy t = {.leave_early = true};
    sn_future *fut = SN_START(tidy, &t);
    CHECK_EQ(t.coro.resume_, 0);
    CHECK(sn_poll_pending(poll_noop(fut)));
    CHECK_STR_EQ(fut->vt->name, "tidy");
    char path[512];
    snprintf(path, sizeof(path), "%s/tests/unit/future/test_coro.c", source_path());
    char *source = read_file(path);
    char *at = source;
    for (uint32_t line = 1; line < t.coro.resume_; line++)
        at = strchr(at, '\n') + 1;
    *strchr(at, '\n') = '\0';
    CHECK_STR_EQ(at, "    SN_YIELD();");
    free(source);
}

/* Declared in one file, defined as in another. */
typedef struct shared_coro {
    sn_coro coro;
    int n;
} shared_coro;

SN_CORO_DECLARE(shared_coro);

SN_CORO_DEFINE(shared_coro, self)
{
    SN_BEGIN(self);
    SN_YIELD();
    SN_RETURN(self->n * 2);
    SN_END();
}

TEST(a_coroutine_can_be_declared_for_other_files)
{
    shared_coro s = {.n = 21};
    CHECK_EQ(sn_block_on_simple(SN_START(shared_coro, &s), NULL), 42);
}

typedef struct by_hand {
    sn_coro coro;
    leaf a;
    int polls;
} by_hand;

SN_CORO(by_hand, self)
{
    SN_BEGIN(self);
    leaf_init(&self->a, "a", 3);
    for (;;) {
        self->polls++;
        if (!sn_poll_pending(sn_future_poll(&self->a.future, SN_CX)))
            SN_RETURN(self->polls);
        SN_YIELD();
    }
    SN_END();
}

TEST(a_coroutine_may_poll_by_hand_with_its_own_cx)
{
    by_hand h = {.polls = 0};
    CHECK_EQ(sn_block_on_simple(SN_START(by_hand, &h), NULL), 3);
}
