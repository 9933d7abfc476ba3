/* SPDX-License-Identifier: MIT */
/* quick.c - pairs of counter and clock, and how fast the one runs by the other.
 *
 * A *pair* is a reading of the clock between two of the counter, so the clock was that at some
 * count from `before` to `after`. One in which many counts passed was interrupted, and is not
 * used.
 *
 *     to be learned   rate_ 0: the first pair is kept until one comes that is at least LEARN_NS
 *                     later. Ns by counts, as few as these can have been (from `after` of the first
 *                     to `before` of the second), are the *rate*. If it comes too late, it is the
 *                     first: the machine may have been suspended, when counters run on, clocks not
 *     known           each pair is a *base*: for a *window* of counts behind its `before`, the time
 *                     is the clock of the base, plus counts times the rate and a margin. The first
 *                     call behind the window takes the next pair
 *     doubted         a pair that does not agree with the one before it, or is from so long after
 *                     it that it would tell nothing, is the first of a new beginning
 *
 * Why it is never early. Where there is a counter for us, the kernel makes its clock of it: what
 * the clock says grows with the counter, at a slope that the kernel sets, and turns to keep in
 * step with the time of others. By frequency alone that is 500 ppm at most. But an offset that it
 * is told to make up for is added to that, which is some per cent at first; and its tick may be
 * set from 9000 to 11000 us, by which chrony slews up to a twelfth. So slopes lie within 0.8995
 * and 1.1005 of the nominal one, and may change at any moment. The rate is at least the mean slope
 * while it was learned, so no slope is more than 1.2235 of it; the margin is a quarter. The clock
 * of a base was read at a count not before `before`; hence at each later count the clock says no
 * more than what we work out. Nothing is assumed about the counter's own steadiness: if it jumps,
 * because the machine was moved or stopped, the clock jumps with it; if it goes back, or the
 * kernel starts its clock anew from it after a suspend, the difference is huge, and the clock is
 * asked. If the kernel finds later that the counter is no good, and takes something else, nobody
 * tells us; then a pair that does not agree does, and until it comes a result is as wrong as the
 * counter.
 *
 * A processor may read the counter before what stands in front of it is done: our `before`s are
 * then earlier, which is safe; an `after` too, by some ten counts of the million that a rate is
 * learned from; and the count that a result is worked out from by as much as a load may take that
 * has missed all caches, so EARLY_NS are added to each.
 *
 * Why it is hardly late. At the end of a window that is a quarter of it, 4.1 us, and 7.1 us if the
 * kernel went from its fastest slope to its slowest; and EARLY_NS; and the time from `before`
 * until the clock was read, 2048 counts at most. What is made of it is rounded up to a tick of the
 * wheel.
 *
 * Why it is in order. Behind a window the clock is asked, and may say less than the last result.
 * So no result is less than last_ns_: the time stands still for some microseconds. That cannot add
 * up, since a base is the clock's. If it would be more than that, the clock itself went back (a
 * process that was frozen and brought to another machine), and the last result counts for nothing.
 *
 * Who asks rarely would only pay for the counter. So if a base was of no use to anybody, the next
 * calls (PASSES) ask the clock alone, and then it is tried again; the same while the rate is being
 * learned, or a pair was interrupted.
 *
 * Rejected: a base that lasts a millisecond, and a margin for 500 ppm (early under chrony; a pair
 * each 16 us costs nothing that can be measured); a new base wherever a worker reads the clock
 * anyway (each look at the world would read the counter, timers or not); a rate that is learned
 * for the process (a variable shared by all, for a millisecond's work); the frequency that
 * processor or hypervisor tell (the kernel trusts it only sometimes, and it is not the clock's
 * slope); a fence before the counter is read (it waits for the memory that timers lie in). */
#include "timer/quick.h"

#include <assert.h>

enum {
    LEARN_NS = 1 << 20,
    LEARN_NS_MAX = 1 << 23,
    AGE_NS_MAX = 1 << 30, /* between two pairs that tell something about each other */
    EARLY_NS = 1000,
    PASSES = 63,
};

/* Ns per count, times 2^32: counters of 16 GHz to 500 MHz. */
static const uint64_t rate_min = UINT64_C(1) << 28;
static const uint64_t rate_max = UINT64_C(1) << 33;

static_assert(SNI_QUICK_AHEAD_NS > SNI_QUICK_WINDOW_NS / 2 + EARLY_NS, "the bound is one");

void sni_quick_begin(struct sni_quick *q)
{
    *q = (struct sni_quick){.is_on_ = true};
}

bool sni_quick_wants_pair(struct sni_quick *q)
{
    if (!q->is_on_)
        return false;
    if (q->passes_ > 0) {
        q->passes_--;
        return false;
    }
    if (q->window_ != 0 && q->last_ns_ == q->told_ns_) { /* nobody used it */
        q->window_ = 0;
        q->passes_ = PASSES - 1;
        return false;
    }
    return true;
}

int64_t sni_quick_plain(const struct sni_quick *q, int64_t now_ns)
{
    int64_t ahead_ns = q->last_ns_ - now_ns;
    return ahead_ns > 0 && ahead_ns < SNI_QUICK_AHEAD_NS ? q->last_ns_ : now_ns;
}

/* No pair is wanted for a while, and nothing is worked out. */
static void pass(struct sni_quick *q)
{
    q->window_ = 0;
    q->passes_ = PASSES;
}

static void keep_pair(struct sni_quick *q, uint64_t before, int64_t now_ns, uint64_t after)
{
    q->base_ = before;
    q->after_ = after;
    q->clock_ns_ = now_ns;
    q->base_ns_ = now_ns + EARLY_NS;
    q->has_pair_ = true;
}

/* The pair is the first of a new beginning. */
static void begin_anew(struct sni_quick *q, uint64_t before, int64_t now_ns, uint64_t after)
{
    keep_pair(q, before, now_ns, after);
    q->rate_ = 0;
    pass(q);
}

/* From a pair that is `ns` behind the one that is kept, and by `counts` at least. */
static bool learn(struct sni_quick *q, int64_t ns, uint64_t counts)
{
    uint64_t rate = ((uint64_t)ns << 32) / counts + 1;
    if (ns > LEARN_NS_MAX || rate < rate_min || rate > rate_max)
        return false;
    q->rate_ = rate;
    q->mult_ = rate + rate / 4;
    q->span_ = ((uint64_t)SNI_QUICK_WINDOW_NS << 32) / rate;
    return true;
}

/* Whether `ns` can have passed while `least` to `most` counts did. */
static bool agrees(const struct sni_quick *q, int64_t ns, uint64_t least, uint64_t most)
{
    if (most / 2 / (AGE_NS_MAX / SNI_QUICK_WINDOW_NS) > q->span_)
        return false; /* too many, and the products below would not fit */
    uint64_t least_ns = least * q->rate_ >> 32;
    uint64_t most_ns = most * q->rate_ >> 32;
    return (uint64_t)ns >= least_ns - least_ns / 4 && (uint64_t)ns <= most_ns + most_ns / 4 + 1;
}

int64_t sni_quick_pair(struct sni_quick *q, uint64_t before, int64_t now_ns, uint64_t after)
{
    int64_t told_ns = sni_quick_plain(q, now_ns);
    q->told_ns_ = told_ns;
    q->last_ns_ = told_ns;
    if (after - before > SNI_QUICK_GAP_COUNTS) {
        pass(q);
        return told_ns;
    }
    int64_t ns = now_ns - q->clock_ns_;
    uint64_t least = before - q->after_; /* counts since the pair that is kept */
    uint64_t most = after - q->base_;
    if (!q->has_pair_ || ns < 0 || ns > AGE_NS_MAX || least == 0 || least > most) {
        begin_anew(q, before, now_ns, after);
        return told_ns;
    }
    if (q->rate_ == 0 && ns < LEARN_NS) {
        pass(q);
        return told_ns;
    }
    if (q->rate_ == 0 ? !learn(q, ns, least) : !agrees(q, ns, least, most)) {
        begin_anew(q, before, now_ns, after);
        return told_ns;
    }
    keep_pair(q, before, now_ns, after);
    q->window_ = q->span_;
    return told_ns;
}
