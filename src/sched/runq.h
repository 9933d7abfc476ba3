/* SPDX-License-Identifier: MIT */
/* runq.h - the run queue of one worker: a FIFO ring that others may steal from, and a LIFO slot.
 *
 * The *owner* is the worker whose queue it is; exactly one thread at a time. A *thief* is any
 * other worker. What a queue holds are links that tasks embed; it never looks behind them. The
 * protocol, with its memory order, is told in runq.c.
 *
 * What the owner of a worker does (R40):
 *
 *     wake:   link = sni_runq_slot_swap(q, link);           the one it displaced, if any,
 *             if (link != NULL && !sni_runq_push(q, link))  goes to the ring, or, when the ring
 *                 sni_runq_overflow(q, link, inject, prio); is full, with half of it to all
 *     next:   link = sni_runq_slot_take(q); if (link == NULL) link = sni_runq_pop(q); */
#ifndef SINEW_SCHED_RUNQ_H
#define SINEW_SCHED_RUNQ_H

#include "base/atomic.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/runlink.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sni_inject;

enum {
    SNI_RUNQ_CAPACITY = 1024,  /* the default; a power of two */
    SNI_RUNQ_SLOT_BUDGET = 3,  /* tasks taken from the slot in a row before the ring has its turn */
    SNI_SCHED_LINE_BYTES = 64, /* words written by different threads stand this far apart */
};

/* One entry of a ring. */
typedef SNI_ATOMIC(struct sni_runlink *) sni_runq_cell;

/* Values of `held_`. */
enum {
    SNI_RUNQ_SHARED_,
    SNI_RUNQ_HELD_,  /* by the owner, who pops without asking anybody: own_ counts, and not head_ */
    SNI_RUNQ_ASKED_, /* by a thief, to share: head_ will be made of own_      */
    SNI_RUNQ_GIVEN_, /* it has been; the owner has yet to see what was given  */
};

/* Written by           owner                             thieves
 *   head_              pop, hold: CAS; share: store      steal: CAS; ask: store
 *   tail_              push, steal into it: store        read
 *   own_               pop of a ring that is held: store read
 *   head_seen_, slot_uses_  plain                        never
 *   held_              hold, share                       ask
 *   given_             read, when it was asked           ask: plain
 *   cells_, most_, alone_   written before the threads start, then constant
 *   mask_              widen: plain                      read, between claim and completion
 *   *cells_            push, steal into it: store        read, between claim and completion
 *   slot_              swap, take                        sni_runq_slot_steal: exchange by NULL */
struct sni_runq {
    _Alignas(SNI_SCHED_LINE_BYTES) SNI_ATOMIC(uint64_t) head_;
    _Alignas(SNI_SCHED_LINE_BYTES) SNI_ATOMIC(uint32_t) tail_;
    SNI_ATOMIC(uint32_t) own_; /* the next link to be taken, while the ring is held */
    uint32_t head_seen_;       /* a steal index that head_ had once: never ahead of the real one */
    uint32_t slot_uses_;       /* in a row */
    _Alignas(SNI_SCHED_LINE_BYTES) sni_runq_cell *cells_;
    uint32_t mask_; /* capacity, less one */
    uint32_t most_; /* what the capacity may grow to */
    SNI_ATOMIC(uint32_t) held_;
    uint32_t given_; /* what own_ was to the last thief that asked */
    bool alone_;     /* there is no thief */
    _Alignas(SNI_SCHED_LINE_BYTES) SNI_ATOMIC(struct sni_runlink *) slot_;
};

/* Make `q` an empty queue over `capacity` cells, a power of two of at least 2 (and at most 2^30).
 * The cells need no initial value and stay the caller's, who frees them when no thread uses the
 * queue any more. */
void sni_runq_init(struct sni_runq *q, sni_runq_cell *cells, uint32_t capacity);

/* Begin with the first `capacity` cells, a power of two of at least 2; those behind them are not
 * touched before they are needed. Before any use. */
void sni_runq_narrow(struct sni_runq *q, uint32_t capacity);

/* There will be no thief: the owner's operations need not defend themselves. Before any use. */
void sni_runq_set_alone(struct sni_runq *q);

/* Owner: from now on pops are plain stores, until a thief comes, who has to have the kernel put a
 * fence into all threads: for one who is left alone for long. Not if sni_plat_fence_all was
 * refused, unless there is no thief. Does nothing if one is just at it. */
void sni_runq_hold(struct sni_runq *q);

/* Owner: does it? */
static inline bool sni_runq_is_held(const struct sni_runq *q)
{
    /* relaxed: the owner's own, or a thief has asked, which the next pop finds out */
    return sni_atomic_load(&q->held_, relaxed) == SNI_RUNQ_HELD_;
}

/* Owner: append. False if the ring is full as it is: nothing was done, see sni_runq_overflow. */
static inline bool sni_runq_push(struct sni_runq *q, struct sni_runlink *link);

/* The same, and what the owner then loads with seq_cst it loads after it: a push and a fence in one
 * step, for one who tells others (idle.h). */
static inline bool sni_runq_push_fenced(struct sni_runq *q, struct sni_runlink *link);

/* Owner: append to a ring that was full. If it does not use all its cells yet, it comes to use
 * twice as many, unless a thief is just at work. Else the older half of the ring and `link` move,
 * oldest first, to the inject queue as one batch of class `prio` (enum sni_prio). If a thief is
 * just making room, or has made it, only `link` moves, or is pushed after all.
 *
 * Returns how many links went to the inject queue: 0 when it fitted, and then the caller need
 * not tell others. */
uint32_t sni_runq_overflow(struct sni_runq *q, struct sni_runlink *link, struct sni_inject *inject,
                           unsigned prio);

/* Owner: the oldest link, or NULL. Ends a row of slot uses. */
struct sni_runlink *sni_runq_pop(struct sni_runq *q);

/* What was left in the ring behind a link that was popped. */
struct sni_runq_rest {
    uint32_t n;
    uint32_t from_; /* index */
};

/* The same, and what is left; and the nth of these, from 0 to n - 1. If there are thieves, it may
 * be somebody else's by now: a record that was a task's when it was queued. NULL may also say that
 * a thief has asked to share the ring: sni_runq_pop knows, and this one calls nothing. */
static inline struct sni_runlink *sni_runq_pop_rest(struct sni_runq *q, struct sni_runq_rest *rest);
static inline struct sni_runlink *sni_runq_peek(const struct sni_runq *q,
                                                const struct sni_runq_rest *rest, uint32_t nth);

/* Owner of `into`, a thief of `from`: move the older half of `from`, rounded up, `most` at most.
 * The oldest one is given in *first, to be run at once; the others are appended to `into`, as far
 * as they fit. If `from` is held, its owner is asked to share it.
 *
 * Returns how many were taken, *first included; 0 if `from` is empty or another thief is at it. */
size_t sni_runq_steal(struct sni_runq *from, struct sni_runq *into, uint32_t most,
                      struct sni_runlink **first);

/* Any thread: how many links the ring held at some moment during the call. Behind a seq_cst fence
 * it serves as the last look before sleeping (idle.h). */
uint32_t sni_runq_len(const struct sni_runq *q);

/* Does the head count, or own_? */
static inline bool sni_runq_has_head_(uint32_t held)
{
    return held == SNI_RUNQ_SHARED_ || held == SNI_RUNQ_GIVEN_;
}

/* Any thread: a number that grows with each push, pop and steal. */
static inline uint32_t sni_runq_moves(const struct sni_runq *q)
{
    /* relaxed, all: only how much it has grown counts */
    uint32_t taken = sni_runq_has_head_(sni_atomic_load(&q->held_, relaxed))
                         ? (uint32_t)sni_atomic_load(&q->head_, relaxed)
                         : sni_atomic_load(&q->own_, relaxed);
    return sni_atomic_load(&q->tail_, relaxed) + taken; /* relaxed: as above */
}

/* ---- the slot ------------------------------------------------------------------------- */

/* Owner: put `link` into the slot, to be run next. Returns what must go to the ring instead: the
 * link that was in there, NULL if it was empty, or `link` itself while the budget is used up. */
static inline struct sni_runlink *sni_runq_slot_swap(struct sni_runq *q, struct sni_runlink *link);

/* Owner: take the link out of the slot, or NULL. Counts as a use. */
static inline struct sni_runlink *sni_runq_slot_take(struct sni_runq *q);

/* Thief, on its last pass over the victims: take the link out of the slot, or NULL. */
struct sni_runlink *sni_runq_slot_steal(struct sni_runq *q);

/* Any thread: whether the slot held a link. */
bool sni_runq_slot_full(const struct sni_runq *q);

/* Owner: a task came from elsewhere than the slot, so a new row of uses begins. sni_runq_pop does
 * this itself. */
static inline void sni_runq_slot_reset(struct sni_runq *q)
{
    q->slot_uses_ = 0;
}

/* ---- the owner's operations: on the path of every switch. Orders: see runq.c -------------- */

static inline uint64_t sni_runq_pack_(uint32_t steal, uint32_t real)
{
    return (uint64_t)steal << 32 | real;
}

static inline uint32_t sni_runq_steal_of_(uint64_t head)
{
    return (uint32_t)(head >> 32);
}

static inline uint32_t sni_runq_real_of_(uint64_t head)
{
    return (uint32_t)head;
}

static inline uint32_t sni_runq_capacity_(const struct sni_runq *q)
{
    return q->mask_ + 1;
}

static inline struct sni_runlink *sni_runq_read_(const struct sni_runq *q, uint32_t index)
{
    /* relaxed: the tail's release and acquire carry it, see 1 and 4 */
    return sni_atomic_load(&q->cells_[index & q->mask_], relaxed);
}

static inline void sni_runq_write_(struct sni_runq *q, uint32_t index, struct sni_runlink *link)
{
    /* relaxed: the store of the tail that follows is the release, see 1 and 3 */
    sni_atomic_store(&q->cells_[index & q->mask_], link, relaxed);
}

/* The owner's own index; nobody else writes it. */
static inline uint32_t sni_runq_own_tail_(const struct sni_runq *q)
{
    /* relaxed: reads what this thread stored */
    return sni_atomic_load(&q->tail_, relaxed);
}

/* Owner: how many cells are free. Looks at the thieves' line only if the memory of it says none. */
static inline uint32_t sni_runq_room_(struct sni_runq *q, uint32_t tail, uint32_t wanted)
{
    uint32_t used = tail - q->head_seen_;
    if (sni_unlikely(sni_runq_capacity_(q) - used < wanted)) {
        /* acquire: pairs with the completion in sni_runq_steal, see 3. relaxed, both: ours. While
         * it is GIVEN the link at own_ may be the owner's yet, and must stay where it is */
        q->head_seen_ = sni_atomic_load(&q->held_, relaxed) == SNI_RUNQ_SHARED_
                            ? sni_runq_steal_of_(sni_atomic_load(&q->head_, acquire))
                            : sni_atomic_load(&q->own_, relaxed);
        used = tail - q->head_seen_;
        sni_assert(used <= sni_runq_capacity_(q),
                   "a run queue holds more than it can: two owners?");
    }
    return sni_runq_capacity_(q) - used;
}

/* Write the link where `tail`, the owner's, points; to be published. False: there is no room. */
static SNI_ALWAYS_INLINE bool sni_runq_place_(struct sni_runq *q, uint32_t tail,
                                              struct sni_runlink *link)
{
    sni_assert_debug(link != NULL, "NULL is pushed to a run queue");
    if (sni_unlikely(tail - q->head_seen_ > q->mask_) && sni_runq_room_(q, tail, 1) == 0)
        return false;
    sni_runq_write_(q, tail, link);
    return true;
}

static inline bool sni_runq_push(struct sni_runq *q, struct sni_runlink *link)
{
    uint32_t tail = sni_runq_own_tail_(q);
    if (sni_unlikely(!sni_runq_place_(q, tail, link)))
        return false;
    /* release: pairs with the acquire of tail in sni_runq_steal, see 1 */
    sni_atomic_store(&q->tail_, tail + 1, release);
    return true;
}

static inline bool sni_runq_push_fenced(struct sni_runq *q, struct sni_runlink *link)
{
    uint32_t tail = sni_runq_own_tail_(q);
    if (sni_unlikely(!sni_runq_place_(q, tail, link)))
        return false;
    /* seq_cst: as above, and before the look at who sleeps, see idle.c */
    sni_atomic_store(&q->tail_, tail + 1, seq_cst);
    return true;
}

static SNI_ALWAYS_INLINE struct sni_runlink *sni_runq_pop_held_(struct sni_runq *q,
                                                                struct sni_runq_rest *rest)
{
    /* relaxed, all: the owner's own; and see 5 */
    uint32_t own = sni_atomic_load(&q->own_, relaxed);
    uint32_t queued = sni_runq_own_tail_(q) - own;
    if (queued == 0)
        return NULL;
    sni_atomic_store(&q->own_, own + 1, relaxed); /* relaxed: as above */
    sni_atomic_half_fence();                      /* the other half is in ask() */
    if (sni_unlikely(!sni_runq_is_held(q))) {
        sni_atomic_store(&q->own_, own, relaxed); /* relaxed: as above */
        return NULL;
    }
    q->slot_uses_ = 0;
    *rest = (struct sni_runq_rest){queued - 1, own + 1};
    return sni_runq_read_(q, own);
}

static inline struct sni_runlink *sni_runq_peek(const struct sni_runq *q,
                                                const struct sni_runq_rest *rest, uint32_t nth)
{
    return sni_runq_read_(q, rest->from_ + nth);
}

static SNI_ALWAYS_INLINE struct sni_runlink *sni_runq_pop_among_(struct sni_runq *q,
                                                                 struct sni_runq_rest *rest)
{
    uint32_t tail = sni_runq_own_tail_(q);
    /* relaxed: the owner reads nothing that thieves wrote on the strength of it, see 4 */
    uint64_t head = sni_atomic_load(&q->head_, relaxed);
    for (;;) {
        uint32_t real = sni_runq_real_of_(head);
        uint32_t steal = sni_runq_steal_of_(head);
        if (real == tail)
            return NULL;
        uint64_t next = sni_runq_pack_(steal == real ? real + 1 : steal, real + 1);
        struct sni_runlink *link = sni_runq_read_(q, real); /* early: nothing overtakes the CAS */
        /* release: a thief that sees this head sees the tail too, see 2. relaxed on failure:
         * a thief was faster, and the loop looks again */
        if (sni_likely(sni_atomic_cas(&q->head_, &head, next, release, relaxed))) {
            if (q->slot_uses_ != 0)
                q->slot_uses_ = 0;
            *rest = (struct sni_runq_rest){tail - real - 1, real + 1};
            return link;
        }
    }
}

static SNI_ALWAYS_INLINE struct sni_runlink *sni_runq_pop_rest(struct sni_runq *q,
                                                               struct sni_runq_rest *rest)
{
    rest->n = 0;
    /* relaxed: SHARED and HELD are the owner's own words, the others sni_runq_pop acquires */
    uint32_t held = sni_atomic_load(&q->held_, relaxed);
    if (held == SNI_RUNQ_HELD_)
        return sni_runq_pop_held_(q, rest);
    return sni_likely(held == SNI_RUNQ_SHARED_) ? sni_runq_pop_among_(q, rest) : NULL;
}

static inline struct sni_runlink *sni_runq_slot_swap(struct sni_runq *q, struct sni_runlink *link)
{
    sni_assert_debug(link != NULL, "NULL is put into the slot of a run queue");
    if (q->slot_uses_ >= SNI_RUNQ_SLOT_BUDGET)
        return link;
    /* relaxed: only whether it is empty is used, and only the owner fills it */
    if (sni_atomic_load(&q->slot_, relaxed) == NULL) {
        /* release: pairs with the acquire in sni_runq_slot_steal */
        sni_atomic_store(&q->slot_, link, release);
        return NULL;
    }
    /* release: as above; what comes out the owner has put in itself */
    return sni_atomic_exchange(&q->slot_, link, release);
}

static inline struct sni_runlink *sni_runq_slot_take(struct sni_runq *q)
{
    /* relaxed, both: the owner takes what it has put in itself */
    if (sni_atomic_load(&q->slot_, relaxed) == NULL)
        return NULL;
    if (q->alone_) {
        /* relaxed: as above, both */
        struct sni_runlink *link = sni_atomic_load(&q->slot_, relaxed);
        sni_atomic_store(&q->slot_, NULL, relaxed); /* relaxed: as above */
        q->slot_uses_++;
        return link;
    }
    /* relaxed: as above */
    struct sni_runlink *link = sni_atomic_exchange(&q->slot_, NULL, relaxed);
    if (link != NULL)
        q->slot_uses_++;
    return link;
}

#endif
