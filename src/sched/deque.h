/* SPDX-License-Identifier: MIT */
/* deque.h - the run queue of one worker for fork-join work: last in, first out; stolen from the
 * other end.
 *
 * The *owner* pushes and pops at the bottom, so it works depth first, on what is warm. *Thieves*
 * take one link at a time from the top: the oldest, which in a tree of tasks is the largest piece.
 * R41 lets a runtime choose it in place of the FIFO ring. */
#ifndef SINEW_SCHED_DEQUE_H
#define SINEW_SCHED_DEQUE_H

#include "sched/runq.h"

/* Written by        owner                     thieves
 *   top_            pop of the last: CAS      steal: CAS
 *   bottom_         push, pop: store          read
 *   top_seen_       plain                     never
 *   cells_, mask_, alone_   written before the threads start, then constant
 *   *cells_         push: store               read, kept only if the CAS of top_ succeeds */
struct sni_deque {
    _Alignas(SNI_SCHED_LINE_BYTES) SNI_ATOMIC(uint64_t) top_;
    _Alignas(SNI_SCHED_LINE_BYTES) SNI_ATOMIC(uint64_t) bottom_;
    uint64_t top_seen_; /* a value that top_ had once: never ahead of the real one */
    _Alignas(SNI_SCHED_LINE_BYTES) sni_runq_cell *cells_;
    uint64_t mask_;
    bool alone_; /* there is no thief */
};

/* Make `d` an empty deque over `capacity` cells, a power of two of at least 2. The cells stay the
 * caller's. */
void sni_deque_init(struct sni_deque *d, sni_runq_cell *cells, uint32_t capacity);

/* Nobody will ever steal from it: then a pop needs no fence. Before it is used. */
static inline void sni_deque_set_alone(struct sni_deque *d)
{
    d->alone_ = true;
}

/* Owner: add at the bottom. False if full: nothing was done, see sni_deque_overflow. */
bool sni_deque_push(struct sni_deque *d, struct sni_runlink *link);

/* The same, and what the owner then loads with seq_cst it loads after it: a push and a fence in one
 * step, for one who tells others (idle.h). */
bool sni_deque_push_fenced(struct sni_deque *d, struct sni_runlink *link);

/* Owner: add to a deque that was full. Moves the older half to the inject queue as one batch of
 * class `prio` (enum sni_prio), the largest pieces of work for everybody, and pushes `link`.
 *
 * Returns how many links went to the inject queue; 0 if thieves had made room. */
uint32_t sni_deque_overflow(struct sni_deque *d, struct sni_runlink *link,
                            struct sni_inject *inject, unsigned prio);

/* Owner: the newest link, or NULL. */
struct sni_runlink *sni_deque_pop(struct sni_deque *d);

/* Any thread: the oldest link, or NULL. NULL also when another thread took that one first (then
 * *busy, if asked for, is true): try another victim, and come back. */
struct sni_runlink *sni_deque_steal(struct sni_deque *d, bool *busy);

/* Any thread: how many links it held at some moment during the call. Behind a seq_cst fence it
 * serves as the last look before sleeping (idle.h). */
uint32_t sni_deque_len(const struct sni_deque *d);

#endif
