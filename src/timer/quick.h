/* SPDX-License-Identifier: MIT */
/* quick.h - the time now, or some microseconds later, without asking the clock.
 *
 * For deadlines that are so and so long from now. Where the machine has a counter that the system's
 * clock is made of (plat/clock.h), reading that takes a third of the time of reading the clock,
 * and that was most of what it took to set a timer. So the counter and the clock are read together
 * now and then, as a *pair*, and in between the time is worked out from the counter:
 *
 *     never before the clock   a deadline that is made of it is not early, and nobody who reads the
 *                              clock before and after a sleep finds it too short
 *     hardly behind it         by less than SNI_QUICK_AHEAD_NS
 *     in order                 no result is before an earlier one of the same sni_quick
 *
 * It is not for deciding what is due, nor for telling the time to anybody. It is pure: counter and
 * clock are arguments. How it works and why it is right is told in quick.c. */
#ifndef SINEW_TIMER_QUICK_H
#define SINEW_TIMER_QUICK_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SNI_QUICK_WINDOW_NS = 1 << 14, /* how long a pair is good for, about                        */
    SNI_QUICK_AHEAD_NS = 14000,    /* results are less than that behind the clock               */
    SNI_QUICK_GAP_COUNTS = 2048,   /* a pair in which more passed was interrupted               */
};

/* One thread at a time. Zeroed, it wants no pairs, and has no results. */
struct sni_quick {
    uint64_t base_;   /* the counter before the clock was read, of the last pair                */
    int64_t base_ns_; /* the clock then, and what the counter may have been read too early      */
    uint64_t window_; /* counts from the base that are worked out; 0: none                      */
    uint64_t mult_;   /* ns per count, times 2^32, with its margin                              */
    int64_t last_ns_; /* the latest result                                                      */

    uint64_t after_;   /* the counter after the clock was read                                */
    int64_t clock_ns_; /* the clock                                                           */
    uint64_t rate_;    /* ns per count, times 2^32, at most; 0: to be learned from the next   */
    uint64_t span_;    /* what a window is at that rate                                       */
    int64_t told_ns_;  /* the result of the last pair                                         */
    uint32_t passes_;  /* so often no pair is wanted                                          */
    bool is_on_;
    bool has_pair_;
};

/* From now on it wants pairs. */
void sni_quick_begin(struct sni_quick *q);

/* Whether it was begun: if not, there is nothing to ask it for. */
static inline bool sni_quick_is_on(const struct sni_quick *q)
{
    return q->is_on_;
}

/* Whether the counter is worth reading: if not, sni_quick_read would give nothing. */
static inline bool sni_quick_is_known(const struct sni_quick *q)
{
    return q->window_ != 0;
}

/* The time at which the counter is `count`, in *ns. False: that is not known, ask the clock. */
static inline bool sni_quick_read(struct sni_quick *q, uint64_t count, int64_t *ns)
{
    uint64_t since = count - q->base_; /* huge if the counter went back */
    if (sni_unlikely(since >= q->window_))
        return false;
    int64_t now_ns = q->base_ns_ + (int64_t)(since * q->mult_ >> 32);
    if (sni_unlikely(now_ns < q->last_ns_)) {
        *ns = q->last_ns_;
        return true;
    }
    q->last_ns_ = now_ns;
    *ns = now_ns;
    return true;
}

/* The clock must be asked: is the counter to be read before and after that, for sni_quick_pair? If
 * not, sni_quick_plain has the result. Each call counts. */
bool sni_quick_wants_pair(struct sni_quick *q);

/* The clock says `now_ns`. Returns  that, or an earlier result that is behind it */
int64_t sni_quick_plain(const struct sni_quick *q, int64_t now_ns);

/* The same, and the counter was `before` before that, and `after` after it. */
int64_t sni_quick_pair(struct sni_quick *q, uint64_t before, int64_t now_ns, uint64_t after);

#endif
