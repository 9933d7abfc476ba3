/* SPDX-License-Identifier: MIT */
/* time.h - sleeping, deadlines, and doing something again and again (R71).
 *
 * Durations are int64_t nanoseconds: SN_MS(50). Deadlines are points in time: sn_after(SN_MS(50)).
 * A call that can wait takes a deadline as its last argument; SN_FOREVER and SN_NOWAIT are two.
 *
 * Inside a runtime on virtual time (sn_runtime_options.virtual_time) all of these use its clock,
 * which stands still while any task can run and then jumps to the next deadline. */
#ifndef SINEW_TIME_H
#define SINEW_TIME_H

#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/clock.h>
#include <sinew/future.h>
#include <sinew/task.h>

SN_BEGIN_DECLS

/* The time now: nanoseconds since some moment in the past, never going back.
 *
 * Suspends: no.   Threads: any.
 * Returns  the time */
SN_API int64_t sn_now(void);

/* The deadline `ns` from now, clipped to SN_FOREVER. In a task it may be some microseconds later,
 * never earlier, since the clock is not asked each time; of two that a task makes with the same
 * `ns` and without a wait in between, the second is not before the first.
 *
 * Suspends: no.   Threads: any.
 * Returns  the point in time; a negative `ns` gives one in the past */
SN_API sn_deadline sn_after(int64_t ns);

/* Sleep for `ns`, at least; 0 or less gives others a turn.
 *
 * Suspends: yes.   Threads: any; outside a runtime it blocks the thread.
 * Returns  0
 *          -ECANCELED  the task was cancelled, and slept no longer
 *          -ETIMEDOUT  the same, by the deadline of a block around it (cancel.h)
 *          -EDEADLK    a coroutine would block its worker and must await sn_sleep_op (misuse) */
SN_API SN_SUSPENDS int sn_sleep(int64_t ns);

/* Sleep until `at`, at least; SN_FOREVER: until the program ends.
 *
 * Suspends: yes.   Threads: any; outside a runtime it blocks the thread.
 * Returns  as sn_sleep */
SN_API SN_SUSPENDS int sn_sleep_until(sn_deadline at);

/* The memory of a sleep that a coroutine awaits. */
typedef struct sn_sleep_state {
    sn_future future_;
    int64_t at_ns_;
    void *opaque_[7];
} sn_sleep_state;

/* sn_sleep_until as a future: SN_AWAIT(sn_sleep_op(&self->nap, sn_after(SN_MS(5)))). It is set by
 * the first poll, and dropping it clears it: before the runtime in which it was polled is gone.
 *
 * Suspends: no.   Threads: any; is polled inside a runtime.
 * Returns  the future in `state`; its result is 0, or
 *          -EPERM  polled outside a runtime: nobody would wake it */
SN_API sn_future *sn_sleep_op(sn_sleep_state *state, sn_deadline at);

/* What an interval does about ticks that have passed while its owner was busy. */
typedef enum sn_missed {
    SN_MISSED_BURST, /* every tick is given, late ones at once: counts stay right          */
    SN_MISSED_DELAY, /* the next tick comes a period after the late one                    */
    SN_MISSED_SKIP,  /* ticks that were missed are left out; the others keep their times   */
} sn_missed;

/* Ticks at fixed times: start + n * period, without drift. */
typedef struct sn_interval {
    int64_t next_ns_;
    int64_t period_ns_;
    sn_missed missed_;
} sn_interval;

/* Begin an interval; its first tick comes a period from now.
 *
 * Suspends: no.   Threads: any; an interval has one owner.
 * Returns  0
 *          -EINVAL  the period is not positive, or `missed` is none of the three */
SN_API SN_MUST_USE int sn_interval_init(sn_interval *interval, int64_t period_ns, sn_missed missed);

/* Sleep until the next tick.
 *
 * Suspends: yes.   Threads: the interval's owner.
 * Returns  how many ticks have passed meanwhile and are left out (SN_MISSED_SKIP), else 0;
 *          or as sn_sleep */
SN_API SN_SUSPENDS SN_MUST_USE int sn_interval_wait(sn_interval *interval);

/* Call `fn(arg)`, for `ns` at most: then each wait in it ends with -ETIMEDOUT, as under SN_DEADLINE
 * (cancel.h), and it is to return.
 *
 * Suspends: as the function does.   Threads: in a fiber.
 * Returns  the function's result; but
 *          -ETIMEDOUT  the time was up, and it has failed
 *          -EPERM      outside a runtime; nothing was called
 *          -EDEADLK    in a coroutine (misuse)
 *          -EINVAL     no function */
SN_API SN_SUSPENDS int sn_timeout(sn_task_fn *fn, void *arg, int64_t ns);

SN_END_DECLS

#endif
