/* SPDX-License-Identifier: MIT */
/* inject.h - the queue that belongs to all workers: what foreign threads submit and what overflows.
 *
 * Four lists, one per priority class, behind one short lock; unbounded, because links are embedded
 * in the tasks. Which list is next is told by sni_prio_pick, a pure function, so that the bound on
 * starvation (R44) can be read off it and tested. */
#ifndef SINEW_SCHED_INJECT_H
#define SINEW_SCHED_INJECT_H

#include "plat/thread.h"
#include "sched/runq.h"

enum sni_prio {
    SNI_PRIO_CRITICAL,
    SNI_PRIO_HIGH,
    SNI_PRIO_NORMAL,
    SNI_PRIO_LOW,
    SNI_PRIO_COUNT,
};

/* A class that has work is served at least once in so many picks. Critical work is served in all
 * picks that are not another's turn: in at least 21 of 32. */
enum {
    SNI_PRIO_HIGH_TURN = 4,
    SNI_PRIO_NORMAL_TURN = 16,
    SNI_PRIO_LOW_TURN = 32,
};

/* Which class is served by pick number `tick`, given which classes have work (bit 1 << class):
 * the one whose turn it is, else the most urgent. Pure. SNI_PRIO_COUNT if `waiting` is 0. */
enum sni_prio sni_prio_pick(uint32_t tick, unsigned waiting);

/* length_ is written under the lock and read by anybody; all else is touched under the lock. */
struct sni_inject {
    _Alignas(SNI_SCHED_LINE_BYTES) SNI_ATOMIC(size_t) length_;
    _Alignas(SNI_SCHED_LINE_BYTES) struct sni_mutex lock_;
    uint32_t tick_;    /* picks so far */
    unsigned waiting_; /* bit per class: its list is not empty */
    struct {
        struct sni_runlink *first;
        struct sni_runlink *last;
    } lists_[SNI_PRIO_COUNT];
};

/* Zeroed is empty too; it needs no finish. */
void sni_inject_init(struct sni_inject *q);

/* Any thread: append one link. */
void sni_inject_push(struct sni_inject *q, struct sni_runlink *link, unsigned prio);

/* Any thread: append the chain first..last of `count` links, joined by `next`. O(1). */
void sni_inject_push_chain(struct sni_inject *q, struct sni_runlink *first,
                           struct sni_runlink *last, size_t count, unsigned prio);

/* Any thread: the next link by sni_prio_pick, or NULL. Takes no lock when it looks empty. */
struct sni_runlink *sni_inject_pop(struct sni_inject *q);

/* Any thread: up to `limit` links, in the order in which sni_inject_pop would give them, as a chain
 * that ends in NULL. Returns their number. */
size_t sni_inject_pop_chain(struct sni_inject *q, size_t limit, struct sni_runlink **chain);

/* Any thread: how many links it held a moment ago. One relaxed load. Behind a seq_cst fence it
 * serves as the last look before sleeping (idle.h). */
static inline size_t sni_inject_len(const struct sni_inject *q)
{
    /* relaxed: a hint; who needs to be sure fences, and the links come through the lock */
    return sni_atomic_load(&q->length_, relaxed);
}

#endif
