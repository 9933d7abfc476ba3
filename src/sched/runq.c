/* SPDX-License-Identifier: MIT */
/* runq.c - a FIFO ring with one owner, from which thieves take half, and a slot for the newest.
 *
 * Words. Indices count up for ever and wrap at 2^32; an index masked is a cell. `tail` is the next
 * cell the owner writes. `head` is two indices in one word that changes only by compare and swap:
 *
 *     real    the next link to be taken, by whom ever
 *     steal   the oldest cell that a thief may still be reading; steal <= real <= tail
 *
 *         steal        real              tail
 *           | being      | queued          |  free ...
 *           | copied     |                 |
 *
 * steal == real: no thief is at work. At most one is: the others go to another victim.
 *
 * Invariant: tail - steal <= capacity, and a cell in [steal, tail) is not written.
 *
 *     pop        CAS real + 1, and steal with it when no thief is at work
 *     steal      claim: CAS real + n, steal stays. Copy the n cells. Completion: CAS steal = real,
 *                which the owner may have moved on by pops meanwhile
 *     push       if tail - steal < capacity: write the cell, tail + 1
 *     overflow   if full by the head it has just read: CAS both by half of the capacity; the cells
 *                in between are the owner's alone
 *
 * Each link leaves [real, tail) by one successful CAS of the one head word, so it is taken once.
 *
 * Orders.
 *  1. A link's contents reach whoever takes it: the push stores tail with release, a thief loads
 *     tail with acquire. What a thief appends to its own ring is stored likewise.
 *  2. A thief must not combine a new head with an old tail (real > tail would look like a huge
 *     queue). It loads head first, with acquire, and the owner's CAS of head is a release: the
 *     tail that was there before the pop is then visible. A new tail with an old head is harmless,
 *     for the claim's CAS fails.
 *  3. A cell is not overwritten while it is read: the completion is a release, and the owner's
 *     load of head in push acquires it. The owner's pops in between are read-modify-writes, which
 *     keep the release sequence going. `head_seen_` is such an acquired value, kept: while it
 *     leaves room, a push need not touch the line that thieves write.
 *  4. The owner reads the cells it wrote itself, or as a thief; no order is needed.
 *
 * A thief that sleeps between its load and its CAS while exactly 2^32 links pass would be fooled:
 * that is some twenty seconds of nothing but pops, and then the number must be met exactly.
 *
 * The slot holds the link that is to be run next, usually one that the running task has just woken:
 * its data is warm. Only the owner fills it, so an empty slot is filled by a plain store; it is
 * emptied by exchange, because a thief does so too. Two tasks that wake each other would starve
 * the ring, so after SNI_RUNQ_SLOT_BUDGET uses in a row the slot refuses until the ring had a turn.
 *
 * Rejected: a lock per ring (a thief stopped by the kernel would stop the owner); CAS by the owner
 * on each push (the inject queue is where producers meet); Chase-Lev (takes one at a time, from
 * the end that the owner does not use: LIFO, which is unfair; it is there as deque.c). */
#include "sched/runq.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "sched/inject.h"

static inline uint64_t pack(uint32_t steal, uint32_t real)
{
    return (uint64_t)steal << 32 | real;
}

static inline uint32_t steal_of(uint64_t head)
{
    return (uint32_t)(head >> 32);
}

static inline uint32_t real_of(uint64_t head)
{
    return (uint32_t)head;
}

static inline uint32_t capacity_of(const struct sni_runq *q)
{
    return q->mask_ + 1;
}

static inline struct sni_runlink *cell_read(const struct sni_runq *q, uint32_t index)
{
    /* relaxed: the tail's release and acquire carry it, see 1 and 4 */
    return sni_atomic_load(&q->cells_[index & q->mask_], relaxed);
}

static inline void cell_write(struct sni_runq *q, uint32_t index, struct sni_runlink *link)
{
    /* relaxed: the store of the tail that follows is the release, see 1 and 3 */
    sni_atomic_store(&q->cells_[index & q->mask_], link, relaxed);
}

/* The owner's own index; nobody else writes it. */
static inline uint32_t own_tail(const struct sni_runq *q)
{
    /* relaxed: reads what this thread stored */
    return sni_atomic_load(&q->tail_, relaxed);
}

void sni_runq_init(struct sni_runq *q, sni_runq_cell *cells, uint32_t capacity)
{
    sni_assert(capacity >= 2 && capacity <= UINT32_C(1) << 30, "a run queue's capacity is absurd");
    sni_assert((capacity & (capacity - 1)) == 0, "a run queue's capacity is no power of two");
    /* relaxed, all: the threads that will use the queue are started, or told of it, later */
    sni_atomic_store(&q->head_, 0, relaxed);
    sni_atomic_store(&q->tail_, 0, relaxed);
    sni_atomic_store(&q->slot_, NULL, relaxed);
    q->head_seen_ = 0;
    q->slot_uses_ = 0;
    q->cells_ = cells;
    q->mask_ = capacity - 1;
}

/* Owner: how many cells are free. Looks at the thieves' line only if the memory of it says none. */
static inline uint32_t room(struct sni_runq *q, uint32_t tail, uint32_t wanted)
{
    uint32_t used = tail - q->head_seen_;
    if (sni_unlikely(capacity_of(q) - used < wanted)) {
        /* acquire: pairs with the completion in sni_runq_steal, see 3 */
        q->head_seen_ = steal_of(sni_atomic_load(&q->head_, acquire));
        used = tail - q->head_seen_;
        sni_assert(used <= capacity_of(q), "a run queue holds more than it can: two owners?");
    }
    return capacity_of(q) - used;
}

bool sni_runq_push(struct sni_runq *q, struct sni_runlink *link)
{
    sni_assert_debug(link != NULL, "NULL is pushed to a run queue");
    uint32_t tail = own_tail(q);
    if (sni_unlikely(room(q, tail, 1) == 0))
        return false;
    cell_write(q, tail, link);
    /* release: pairs with the acquire of tail in sni_runq_steal, see 1 */
    sni_atomic_store(&q->tail_, tail + 1, release);
    return true;
}

/* Owner: join `count` cells from `from` on, which are no longer in the queue, and `last` behind
 * them to a chain. Returns its first link. */
static struct sni_runlink *chain_up(struct sni_runq *q, uint32_t from, uint32_t count,
                                    struct sni_runlink *last)
{
    struct sni_runlink *first = last;
    for (uint32_t i = count; i > 0; i--) {
        struct sni_runlink *link = cell_read(q, from + i - 1);
        link->next = first;
        first = link;
    }
    return first;
}

uint32_t sni_runq_overflow(struct sni_runq *q, struct sni_runlink *link, struct sni_inject *inject,
                           unsigned prio)
{
    uint32_t half = capacity_of(q) / 2;
    while (!sni_runq_push(q, link)) {
        /* relaxed: nothing is read on the strength of it, the CAS below decides */
        uint64_t head = sni_atomic_load(&q->head_, relaxed);
        uint32_t real = real_of(head);
        if (steal_of(head) != real) { /* a thief makes room, soon; do not wait for it */
            sni_inject_push(inject, link, prio);
            return 1;
        }
        if (own_tail(q) - real < capacity_of(q))
            continue; /* thieves have made it, and there may be less than half left */
        /* release: as in pop, see 2. relaxed on failure: a thief was faster, look again */
        if (sni_atomic_cas(&q->head_, &head, pack(real + half, real + half), release, relaxed)) {
            struct sni_runlink *first = chain_up(q, real, half, link);
            sni_inject_push_chain(inject, first, link, half + 1, prio);
            return half + 1;
        }
    }
    return 0;
}

struct sni_runlink *sni_runq_pop(struct sni_runq *q)
{
    uint32_t tail = own_tail(q);
    /* relaxed: the owner reads nothing that thieves wrote on the strength of it, see 4 */
    uint64_t head = sni_atomic_load(&q->head_, relaxed);
    for (;;) {
        uint32_t real = real_of(head);
        uint32_t steal = steal_of(head);
        if (real == tail)
            return NULL;
        uint64_t next = pack(steal == real ? real + 1 : steal, real + 1);
        struct sni_runlink *link = cell_read(q, real); /* early: nothing overtakes the CAS */
        /* release: a thief that sees this head sees the tail too, see 2. relaxed on failure:
         * a thief was faster, and the loop looks again */
        if (sni_likely(sni_atomic_cas(&q->head_, &head, next, release, relaxed))) {
            if (q->slot_uses_ != 0)
                q->slot_uses_ = 0;
            return link;
        }
    }
}

/* Thief: take the older half of `q`, at most `limit`, out of the queue; its cells stay as they are
 * until complete(). Returns their number, and in *at the first one's index. */
static uint32_t claim(struct sni_runq *q, uint32_t limit, uint32_t *at)
{
    /* acquire: pairs with the release of the owner's CAS, see 2 */
    uint64_t head = sni_atomic_load(&q->head_, acquire);
    for (;;) {
        uint32_t real = real_of(head);
        uint32_t steal = steal_of(head);
        if (steal != real)
            return 0;
        /* acquire: pairs with the push's release, see 1 */
        uint32_t queued = sni_atomic_load(&q->tail_, acquire) - real;
        uint32_t n = queued - queued / 2;
        n = n < limit ? n : limit;
        if (n == 0)
            return 0;
        /* acquire on failure: the new head, see 2. On success it would not be needed: the cells
         * came with the tail, and nothing is published before the completion */
        if (sni_atomic_cas(&q->head_, &head, pack(steal, real + n), acquire, acquire)) {
            sni_assert(queued <= capacity_of(q), "a run queue holds more than it can: two owners?");
            *at = real;
            return n;
        }
    }
}

/* Thief: the claimed cells have been read, the owner may write them again. */
static void complete(struct sni_runq *q, uint32_t at)
{
    /* relaxed: only this thief moves `steal`, the CAS finds what else has moved */
    uint64_t head = sni_atomic_load(&q->head_, relaxed);
    for (;;) {
        sni_assert(steal_of(head) == at, "a steal was completed by somebody else");
        uint32_t real = real_of(head);
        /* release: pairs with the acquire in room(), see 3. relaxed on failure: look again */
        if (sni_atomic_cas(&q->head_, &head, pack(real, real), release, relaxed))
            return;
    }
}

size_t sni_runq_steal(struct sni_runq *from, struct sni_runq *into, struct sni_runlink **first)
{
    sni_assert_debug(from != into, "a worker steals from itself");
    uint32_t tail = own_tail(into);
    uint32_t half = capacity_of(from) / 2;
    uint32_t limit = room(into, tail, half) + 1; /* the first needs no cell */
    uint32_t at = 0;
    uint32_t n = claim(from, limit, &at);
    if (n == 0)
        return 0;
    *first = cell_read(from, at);
    for (uint32_t i = 1; i < n; i++)
        cell_write(into, tail + i - 1, cell_read(from, at + i));
    complete(from, at);
    if (n > 1) {
        /* release: pairs with the acquire of tail by the next thief, see 1 */
        sni_atomic_store(&into->tail_, tail + n - 1, release);
    }
    return n;
}

uint32_t sni_runq_len(const struct sni_runq *q)
{
    /* acquire: the tail read next is not older than this head, see 2 */
    uint32_t real = real_of(sni_atomic_load(&q->head_, acquire));
    /* relaxed: nothing is read on the strength of it */
    uint32_t queued = sni_atomic_load(&q->tail_, relaxed) - real;
    return queued <= capacity_of(q) ? queued : capacity_of(q); /* the head may be older */
}

struct sni_runlink *sni_runq_slot_swap(struct sni_runq *q, struct sni_runlink *link)
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

struct sni_runlink *sni_runq_slot_take(struct sni_runq *q)
{
    /* relaxed, both: the owner takes what it has put in itself */
    if (sni_atomic_load(&q->slot_, relaxed) == NULL)
        return NULL;
    struct sni_runlink *link = sni_atomic_exchange(&q->slot_, NULL, relaxed);
    if (link != NULL)
        q->slot_uses_++;
    return link;
}

struct sni_runlink *sni_runq_slot_steal(struct sni_runq *q)
{
    /* relaxed: saves the owner's line when there is nothing to take */
    if (sni_atomic_load(&q->slot_, relaxed) == NULL)
        return NULL;
    /* acquire: pairs with the release in sni_runq_slot_swap */
    return sni_atomic_exchange(&q->slot_, NULL, acquire);
}

bool sni_runq_slot_full(const struct sni_runq *q)
{
    /* relaxed: a hint; who takes it synchronises */
    return sni_atomic_load(&q->slot_, relaxed) != NULL;
}
