/* SPDX-License-Identifier: MIT */
/* clock.h - points in time, and the clock that a caller supplies.
 *
 * Level 0 has no clock of its own: a microcontroller counts ticks, a browser
 * has performance.now(), a test moves time by hand. Whoever owns the time
 * gives an sn_clock to the futures that need one. */
#ifndef SINEW_CLOCK_H
#define SINEW_CLOCK_H

#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/future.h>

SN_BEGIN_DECLS

/* Durations are int64_t nanoseconds; these name the unit at the call. */
#define SN_NS(n) ((int64_t)(n))
#define SN_US(n) ((int64_t)(n) * INT64_C(1000))
#define SN_MS(n) ((int64_t)(n) * INT64_C(1000000))
#define SN_S(n)  ((int64_t)(n) * INT64_C(1000000000))

/* An absolute point on some monotonic clock; not a duration. */
typedef struct sn_deadline {
    int64_t ns;
} sn_deadline;

/* The two ends of the line: already past, and never. */
#define SN_NOWAIT  (sn_deadline_at_(0))
#define SN_FOREVER (sn_deadline_at_(INT64_MAX))

static inline sn_deadline sn_deadline_at_(int64_t ns)
{
    sn_deadline at;
    at.ns = ns;
    return at;
}

/* A source of time. Embed it in a struct of your own that holds what it needs.
 *
 * now  reads the time in nanoseconds; it never goes backwards.
 * arm  asks to be woken at or after `at`: keep a clone of `waker` (a waker cell does) and
 *      wake it then, or wake early and often. The caller does not disarm. NULL only where
 *      somebody polls all the time anyway, as sn_block_on_simple does without an sn_idle. */
typedef struct sn_clock sn_clock;
struct sn_clock {
    int64_t (*now)(sn_clock *clock);
    void (*arm)(sn_clock *clock, sn_deadline at, const sn_waker *waker);
};

/* The deadline `after_ns` from now on `clock`, clipped to SN_FOREVER.
 *
 * Suspends: no.   Threads: as the clock's `now`.
 * Returns  the point in time; a negative `after_ns` gives the past */
SN_API sn_deadline sn_clock_after(sn_clock *clock, int64_t after_ns);

SN_END_DECLS

#endif
