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
#include "base/runlink.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sni_inject;

enum {
    SNI_RUNQ_CAPACITY = 256,   /* the default; a power of two */
    SNI_RUNQ_SLOT_BUDGET = 3,  /* tasks taken from the slot in a row before the ring has its turn */
    SNI_SCHED_LINE_BYTES = 64, /* words written by different threads stand this far apart */
};

/* One entry of a ring. */
typedef SNI_ATOMIC(struct sni_runlink *) sni_runq_cell;

/* Written by           owner                             thieves
 *   head_              pop, overflow: CAS                steal: CAS
 *   tail_              push, steal into it: store        read
 *   head_seen_, slot_uses_  plain                        never
 *   cells_, mask_      written by init, then constant
 *   *cells_            push, steal into it: store        read, between claim and completion
 *   slot_              swap, take                        sni_runq_slot_steal: exchange by NULL */
struct sni_runq {
    _Alignas(SNI_SCHED_LINE_BYTES) SNI_ATOMIC(uint64_t) head_;
    _Alignas(SNI_SCHED_LINE_BYTES) SNI_ATOMIC(uint32_t) tail_;
    uint32_t head_seen_; /* a steal index that head_ had once: never ahead of the real one */
    uint32_t slot_uses_; /* in a row */
    _Alignas(SNI_SCHED_LINE_BYTES) sni_runq_cell *cells_;
    uint32_t mask_;
    _Alignas(SNI_SCHED_LINE_BYTES) SNI_ATOMIC(struct sni_runlink *) slot_;
};

/* Make `q` an empty queue over `capacity` cells, a power of two of at least 2 (and at most 2^30).
 * The cells need no initial value and stay the caller's, who frees them when no thread uses the
 * queue any more. */
void sni_runq_init(struct sni_runq *q, sni_runq_cell *cells, uint32_t capacity);

/* Owner: append. False if the ring is full: nothing was done, see sni_runq_overflow. */
bool sni_runq_push(struct sni_runq *q, struct sni_runlink *link);

/* Owner: append to a ring that was full. Moves the older half of the ring and `link`, oldest
 * first, to the inject queue as one batch of class `prio` (enum sni_prio). If a thief is just
 * making room, or has made it, only `link` moves, or is pushed after all.
 *
 * Returns how many links went to the inject queue: 0 when it fitted, and then the caller need
 * not tell others. */
uint32_t sni_runq_overflow(struct sni_runq *q, struct sni_runlink *link, struct sni_inject *inject,
                           unsigned prio);

/* Owner: the oldest link, or NULL. Ends a row of slot uses. */
struct sni_runlink *sni_runq_pop(struct sni_runq *q);

/* Owner of `into`, a thief of `from`: move the older half of `from`, rounded up. The oldest one is
 * given in *first, to be run at once; the others are appended to `into`, as far as they fit.
 *
 * Returns how many were taken, *first included; 0 if `from` is empty or another thief is at it. */
size_t sni_runq_steal(struct sni_runq *from, struct sni_runq *into, struct sni_runlink **first);

/* Any thread: how many links the ring held at some moment during the call. Behind a seq_cst fence
 * it serves as the last look before sleeping (idle.h). */
uint32_t sni_runq_len(const struct sni_runq *q);

/* ---- the slot ------------------------------------------------------------------------- */

/* Owner: put `link` into the slot, to be run next. Returns what must go to the ring instead: the
 * link that was in there, NULL if it was empty, or `link` itself while the budget is used up. */
struct sni_runlink *sni_runq_slot_swap(struct sni_runq *q, struct sni_runlink *link);

/* Owner: take the link out of the slot, or NULL. Counts as a use. */
struct sni_runlink *sni_runq_slot_take(struct sni_runq *q);

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

#endif
