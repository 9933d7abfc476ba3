/* SPDX-License-Identifier: MIT */
/* inject.c - the queue of everybody: four linked lists behind one lock.
 *
 * It is the slow way by design: workers live on their own rings, and come here every 61st tick,
 * when they run dry, or when they overflow; then they take a batch. So a lock is enough, if it is
 * short: a batch is linked in O(1), taken out in O(n) with n bounded by the caller, and whether
 * there is anything is answered without it. The lock is a mutex on which a waiter sleeps, not a
 * spin lock: on a virtual machine the holder may be off the processor for milliseconds.
 *
 * Length. Written under the lock, read by anybody, relaxed. A reader that must not miss a push (a
 * worker before it sleeps) and the pusher (before it looks for sleepers) both have a seq_cst fence
 * in between, see idle.c: one of the two sees the other.
 *
 * Priorities (R44). Strict priority starves, so each class below the top has turns of its own: in
 * picks 1 mod 4 high, 7 mod 16 normal, 31 mod 32 low goes first. The turns never coincide, so a
 * class that has work waits for at most its period, whatever the others do. All other picks, and
 * a turn whose class has no work, go to the most urgent class there is. A clock-free table like
 * this has no state but the count and can be checked by trying all its cases; ageing each task
 * would need a time per task and a search per pick.
 *
 * Rejected: a lock-free list with many consumers (needs reclamation, or a second lock for the
 * consumers; and taking a batch is not one operation). */
#include "sched/inject.h"

#include "base/assert.h"
#include "base/compiler.h"

/* Whose turn it is; critical work needs none. */
static enum sni_prio turn_of(uint32_t tick)
{
    if (tick % SNI_PRIO_HIGH_TURN == 1)
        return SNI_PRIO_HIGH;
    if (tick % SNI_PRIO_NORMAL_TURN == 7)
        return SNI_PRIO_NORMAL;
    if (tick % SNI_PRIO_LOW_TURN == 31)
        return SNI_PRIO_LOW;
    return SNI_PRIO_CRITICAL;
}

enum sni_prio sni_prio_pick(uint32_t tick, unsigned waiting)
{
    if (waiting == 0)
        return SNI_PRIO_COUNT;
    enum sni_prio turn = turn_of(tick);
    if (waiting & 1u << turn)
        return turn;
    return (enum sni_prio)__builtin_ctz(waiting);
}

void sni_inject_init(struct sni_inject *q)
{
    *q = (struct sni_inject){0};
}

/* Under the lock. */
static void set_length(struct sni_inject *q, size_t length)
{
    /* relaxed: a hint to readers without the lock, who fence if they must not miss it */
    sni_atomic_store(&q->length_, length, relaxed);
}

void sni_inject_push(struct sni_inject *q, struct sni_runlink *link, unsigned prio)
{
    sni_inject_push_chain(q, link, link, 1, prio);
}

void sni_inject_push_chain(struct sni_inject *q, struct sni_runlink *first,
                           struct sni_runlink *last, size_t count, unsigned prio)
{
    sni_assert(prio < SNI_PRIO_COUNT, "a task has no priority class of the four");
    sni_assert_debug(first != NULL && last != NULL && count > 0, "an empty chain is injected");
    last->next = NULL;
    sni_mutex_lock(&q->lock_);
    if (q->waiting_ & 1u << prio)
        q->lists_[prio].last->next = first;
    else
        q->lists_[prio].first = first;
    q->lists_[prio].last = last;
    q->waiting_ |= 1u << prio;
    set_length(q, sni_inject_len(q) + count);
    sni_mutex_unlock(&q->lock_);
}

/* Under the lock; there is one. */
static struct sni_runlink *take(struct sni_inject *q)
{
    enum sni_prio prio = sni_prio_pick(q->tick_++, q->waiting_);
    sni_assert(prio < SNI_PRIO_COUNT, "the inject queue's length and its lists differ");
    struct sni_runlink *link = q->lists_[prio].first;
    q->lists_[prio].first = link->next;
    if (link->next == NULL)
        q->waiting_ &= ~(1u << prio);
    link->next = NULL;
    return link;
}

struct sni_runlink *sni_inject_pop(struct sni_inject *q)
{
    struct sni_runlink *link = NULL;
    (void)sni_inject_pop_chain(q, 1, &link);
    return link;
}

/* Under the lock: the next `count` links, one by one as their classes come. */
static struct sni_runlink *take_mixed(struct sni_inject *q, size_t count)
{
    struct sni_runlink *chain = NULL;
    struct sni_runlink **end = &chain;
    for (size_t i = 0; i < count; i++) {
        *end = take(q);
        end = &(*end)->next;
    }
    return chain;
}

/* Under the lock, when only one class waits: the chain is cut, not rebuilt. */
static struct sni_runlink *take_uniform(struct sni_inject *q, size_t count)
{
    unsigned prio = (unsigned)__builtin_ctz(q->waiting_);
    struct sni_runlink *first = q->lists_[prio].first;
    struct sni_runlink *last = first;
    for (size_t i = 1; i < count; i++)
        last = last->next;
    q->tick_ += (uint32_t)count;
    q->lists_[prio].first = last->next;
    if (last->next == NULL)
        q->waiting_ = 0;
    last->next = NULL;
    return first;
}

size_t sni_inject_pop_chain(struct sni_inject *q, size_t limit, struct sni_runlink **chain)
{
    *chain = NULL;
    if (sni_inject_len(q) == 0 || limit == 0)
        return 0;
    sni_mutex_lock(&q->lock_);
    size_t length = sni_inject_len(q);
    size_t count = limit < length ? limit : length;
    if (count > 0) {
        bool uniform = (q->waiting_ & (q->waiting_ - 1)) == 0;
        *chain = uniform ? take_uniform(q, count) : take_mixed(q, count);
        set_length(q, length - count);
    }
    sni_mutex_unlock(&q->lock_);
    return count;
}
