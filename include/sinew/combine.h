/* SPDX-License-Identifier: MIT */
/* combine.h - small futures, and futures made of futures, without heap (Level 0).
 *
 * Each kind is a struct on the caller's memory (a coroutine's frame, static storage) and an
 * `init` that fills it and gives its future, ready to be awaited:
 *
 *     SN_AWAIT_INTO(rc, sn_fut_timeout_init(&self->limit, &self->read.coro.future,
 *                                           clock, sn_clock_after(clock, SN_MS(50))));
 *
 * Keep the pointer that `init` gives if you need the future again; where it lies inside the
 * struct may change.
 *
 * A combinator owns the futures it is given until it completes: dropping or cancelling it
 * drops those that are unfinished, in the order they were given. It polls its unfinished
 * members at every wake, so it is meant for a handful; thousands are what tasks are for. */
#ifndef SINEW_COMBINE_H
#define SINEW_COMBINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/clock.h>
#include <sinew/future.h>

SN_BEGIN_DECLS

/* ---- ready, pending, yield ------------------------------------------------------------ */

/* Completes at its first poll. */
typedef struct sn_fut_ready {
    sn_future future;
    int value;
} sn_fut_ready;

/* A future that is ready with `value` at once.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `self` */
SN_API sn_future *sn_fut_ready_init(sn_fut_ready *self, int value);

/* Never completes by itself. */
typedef struct sn_fut_pending {
    sn_future future;
} sn_fut_pending;

/* A future that stays pending until it is cancelled or dropped.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `self` */
SN_API sn_future *sn_fut_pending_init(sn_fut_pending *self);

/* Completes at its second poll. */
typedef struct sn_fut_yield {
    sn_future future;
    bool given_;
} sn_fut_yield;

/* A future that gives others one turn: pending once, woken at once, then ready with 0.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `self` */
SN_API sn_future *sn_fut_yield_init(sn_fut_yield *self);

/* ---- signal --------------------------------------------------------------------------- */

/* What interrupt handlers and other threads tell a coroutine: a number that they add to and
 * that the coroutine waits for. A button and its presses, a byte received, a job that is
 * done. Zeroed or SN_SIGNAL_INIT, nothing was sent. */
typedef struct sn_signal {
    sn_future recv_;
    sn_waker_cell cell_;
    struct {
        uint32_t raw_;
    } sum_;
} sn_signal;

/* A signal to which nothing was sent, for static storage. */
#define SN_SIGNAL_INIT {SN_FUTURE_INIT(NULL), SN_WAKER_CELL_INIT, {0}}

/* Add `amount`, 1 or more, and wake the receiver. The sum is clipped to INT32_MAX.
 *
 * Suspends: no.   Threads: any, also interrupt handlers. `self` must exist until it returns.
 * Returns  0
 *          -EINVAL  `amount` is not positive (misuse) */
SN_API int sn_signal_send(sn_signal *self, int amount);

/* Wait until something was sent. One receiver at a time; ask for a new future each time.
 * Dropping it, in a lost race say, takes nothing: the sum stays for the next.
 *
 * Suspends: no.   Threads: the receiver's.
 * Returns  a future in `self`; its result is all that was sent since the last one completed */
SN_API sn_future *sn_signal_recv_op(sn_signal *self);

/* ---- join ----------------------------------------------------------------------------- */

/* Several futures that belong to one. */
typedef struct sn_fut_members_ {
    sn_future future;
    sn_future **items;
    size_t count;
} sn_fut_members_;

/* Completes when all its members have. */
typedef struct sn_fut_join {
    sn_fut_members_ members_;
    int *results_;
    int first_error_;
    bool begun_;
} sn_fut_join;

/* Wait for all of `items`. Every member runs to its end, whatever the others return. The
 * array (and `results`, one int per member in the same order, or NULL) stays in place until
 * the join ends. No members: ready with 0.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `self`; its result is 0, or the first negative result that came in */
SN_API sn_future *sn_fut_join_init(sn_fut_join *self, sn_future **items, size_t count,
                                   int *results);

/* A join of two that brings its own array; the results are in `results`. */
typedef struct sn_fut_join2 {
    sn_fut_join join;
    sn_future *items_[2];
    int results[2];
} sn_fut_join2;

/* Wait for both `a` and `b`.
 *
 * Suspends: no.   Threads: any.
 * Returns  as sn_fut_join_init */
SN_API sn_future *sn_fut_join2_init(sn_fut_join2 *self, sn_future *a, sn_future *b);

/* ---- race ----------------------------------------------------------------------------- */

/* Completes with the first of its members that does; `winner` is its index. */
typedef struct sn_fut_race {
    sn_fut_members_ members_;
    size_t winner;
} sn_fut_race;

/* Wait for the first of `items`. Members are polled in order, so an earlier one wins a tie.
 * When one is ready, those behind it are not polled any more and all the others are dropped
 * before the race completes: each was pending at its last poll, so none has consumed
 * anything. The array stays in place until the race ends.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `self`; its result is the winner's, or -EINVAL for a race of none
 *          (misuse: it could never complete) */
SN_API sn_future *sn_fut_race_init(sn_fut_race *self, sn_future **items, size_t count);

/* A race of two that brings its own array. */
typedef struct sn_fut_race2 {
    sn_fut_race race;
    sn_future *items_[2];
} sn_fut_race2;

/* Wait for the first of `a` and `b`; `self->race.winner` is 0 or 1.
 *
 * Suspends: no.   Threads: any.
 * Returns  as sn_fut_race_init */
SN_API sn_future *sn_fut_race2_init(sn_fut_race2 *self, sn_future *a, sn_future *b);

/* ---- map ------------------------------------------------------------------------------ */

/* A future that wraps another. */
typedef struct sn_fut_wrapper_ {
    sn_future future;
    sn_future *inner;
} sn_fut_wrapper_;

/* Completes with a function of another future's result. */
typedef struct sn_fut_map {
    sn_fut_wrapper_ wrapper_;
    int (*fn_)(int result, void *arg);
    void *arg_;
} sn_fut_map;

/* Pass the result of `inner` through `fn`.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `self`; its result is fn(result of inner, arg) */
SN_API sn_future *sn_fut_map_init(sn_fut_map *self, sn_future *inner,
                                  int (*fn)(int result, void *arg), void *arg);

/* ---- time ----------------------------------------------------------------------------- */

/* Completes at a point in time. */
typedef struct sn_fut_delay {
    sn_future future;
    sn_clock *clock_;
    sn_deadline until_;
} sn_fut_delay;

/* Wait until `clock` shows `until` or later.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `self`; its result is 0 */
SN_API sn_future *sn_fut_delay_init(sn_fut_delay *self, sn_clock *clock, sn_deadline until);

/* Completes with another future, or without it when the time is up. */
typedef struct sn_fut_timeout {
    sn_fut_wrapper_ wrapper_;
    sn_fut_delay limit_;
} sn_fut_timeout;

/* Wait for `inner`, but not past `until` on `clock`. `inner` is polled first: if it is ready
 * it wins, even late. When the time is up it is dropped.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `self`; its result is that of `inner`, or -ETIMEDOUT */
SN_API sn_future *sn_fut_timeout_init(sn_fut_timeout *self, sn_future *inner, sn_clock *clock,
                                      sn_deadline until);

SN_END_DECLS

#endif
