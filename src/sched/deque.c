/* SPDX-License-Identifier: MIT */
/* deque.c - Chase and Lev's deque, with the orders of C11 and a bound instead of growth.
 *
 * Indices count up in 64 bits and never wrap in practice; an index masked is a cell. The queue is
 * [top, bottom). The owner moves bottom, by plain stores. Top only grows, by compare and swap: a
 * link taken at the top is the one whose CAS moved top over it.
 *
 *     push    if bottom - top < capacity: write the cell; bottom + 1
 *     pop     bottom - 1, then read top. More than one link there: the newest is the owner's.
 *             Exactly one: thieves may want the same, a CAS of top decides. None: bottom back
 *     steal   read top; fence; read bottom; if top < bottom: read the cell; CAS top + 1
 *
 * Why the owner may take the newest without a CAS: it has first lowered bottom. A thief that takes
 * index b - 1 has read bottom >= b, the value before, and top == b - 1. The owner's store of bottom
 * and its read of top are seq_cst, and so are the thief's fence and all that moves top. So either
 * the fence comes before the owner's read in their order, and then that sees at least what the
 * thief had read there, b - 1: the owner finds exactly one link and must win the CAS; or the fence
 * comes later, behind the store too, and the thief reads the lowered bottom and leaves that link
 * alone. Without that order the store of bottom may linger in the owner's store buffer while it
 * reads top, and both take the last link. tests/model plants that mistake and finds it. (On x86-64
 * a seq_cst store is one exchange: 0.6 ns less than a store and a fence behind it.)
 *
 * Orders.
 *  1. A link's contents reach the thief: the push stores bottom with release, the thief loads it
 *     with acquire. pop's stores of bottom publish nothing new, but a thief may read one of them
 *     and then take older links: so they are releases too, which costs nothing where it matters.
 *  2. A cell is read before the CAS, for afterwards the owner might reuse it. If the owner did so
 *     in between, top has moved on and the CAS fails. The CAS is seq_cst, as is pop's, and the
 *     owner's load of top in push acquires it: the cell was read before it is written.
 *
 * Bounded, because a growing ring must keep its old cells as long as a thief may read them, which
 * means until the end or a reclamation scheme; and because fork-join work is as deep as its tree
 * is high, not as its nodes are many, so that 1024 cells are hardly ever used up. When they are,
 * the older half, which are the largest pieces, goes to the inject queue for everybody. Its links
 * are taken one by one as a thief would: half a CAS per push in the worst case, instead of a
 * second protocol for moving top by more than one (which pop, taking without a CAS, forbids).
 *
 * Rejected: stealing half (the same reason); the fence-free variants that let a task be taken
 * twice (ours may not). */
#include "sched/deque.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "sched/inject.h"

static inline sni_runq_cell *cell_at(const struct sni_deque *d, uint64_t index)
{
    return &d->cells_[index & d->mask_];
}

/* The owner's own index; nobody else writes it. */
static inline uint64_t own_bottom(const struct sni_deque *d)
{
    /* relaxed: reads what this thread stored */
    return sni_atomic_load(&d->bottom_, relaxed);
}

static inline void set_bottom(struct sni_deque *d, uint64_t bottom)
{
    /* release: pairs with the acquire of bottom in sni_deque_steal, see 1 */
    sni_atomic_store(&d->bottom_, bottom, release);
}

void sni_deque_init(struct sni_deque *d, sni_runq_cell *cells, uint32_t capacity)
{
    sni_assert(capacity >= 2 && capacity <= UINT32_C(1) << 30, "a deque's capacity is absurd");
    sni_assert((capacity & (capacity - 1)) == 0, "a deque's capacity is no power of two");
    /* relaxed, both: the threads that will use the deque are started, or told of it, later */
    sni_atomic_store(&d->top_, 0, relaxed);
    sni_atomic_store(&d->bottom_, 0, relaxed);
    d->top_seen_ = 0;
    d->cells_ = cells;
    d->mask_ = capacity - 1;
    d->alone_ = false;
}

/* Write the link at `bottom`, the owner's; to be published. False: there is no room. */
static inline bool place(struct sni_deque *d, uint64_t bottom, struct sni_runlink *link)
{
    sni_assert_debug(link != NULL, "NULL is pushed to a deque");
    if (sni_unlikely(bottom - d->top_seen_ > d->mask_)) {
        /* acquire: pairs with the CAS in sni_deque_steal, see 2 */
        d->top_seen_ = sni_atomic_load(&d->top_, acquire);
        if (bottom - d->top_seen_ > d->mask_)
            return false;
    }
    /* relaxed: the store of bottom is the release, see 1 */
    sni_atomic_store(cell_at(d, bottom), link, relaxed);
    return true;
}

bool sni_deque_push(struct sni_deque *d, struct sni_runlink *link)
{
    uint64_t bottom = own_bottom(d);
    if (sni_unlikely(!place(d, bottom, link)))
        return false;
    set_bottom(d, bottom + 1);
    return true;
}

bool sni_deque_push_fenced(struct sni_deque *d, struct sni_runlink *link)
{
    uint64_t bottom = own_bottom(d);
    if (sni_unlikely(!place(d, bottom, link)))
        return false;
    /* seq_cst: as in set_bottom, and before the look at who sleeps, see idle.c */
    sni_atomic_store(&d->bottom_, bottom + 1, seq_cst);
    return true;
}

uint32_t sni_deque_overflow(struct sni_deque *d, struct sni_runlink *link,
                            struct sni_inject *inject, unsigned prio)
{
    if (sni_deque_push(d, link))
        return 0;
    uint32_t half = (uint32_t)(d->mask_ + 1) / 2;
    uint32_t count = 0;
    struct sni_runlink *first = NULL;
    struct sni_runlink *last = NULL;
    for (uint32_t tries = 0; tries < half; tries++) { /* a try that fails, a thief has made good */
        struct sni_runlink *old = sni_deque_steal(d, NULL);
        if (old == NULL)
            continue;
        if (last == NULL)
            first = old;
        else
            last->next = old;
        last = old;
        count++;
    }
    bool pushed = sni_deque_push(d, link);
    sni_assert(pushed, "a deque is full after half of it was taken: two owners?");
    if (count > 0)
        sni_inject_push_chain(inject, first, last, count, prio);
    return count;
}

/* Owner: the one link left, at `index`, against thieves; bottom is lowered already. */
static struct sni_runlink *pop_last(struct sni_deque *d, uint64_t index)
{
    uint64_t top = index;
    /* relaxed on failure: a thief took it, which is all there is to know */
    bool won = sni_atomic_cas(&d->top_, &top, index + 1, seq_cst, relaxed);
    set_bottom(d, index + 1);
    /* relaxed: the owner wrote it */
    return won ? sni_atomic_load(cell_at(d, index), relaxed) : NULL;
}

struct sni_runlink *sni_deque_pop(struct sni_deque *d)
{
    uint64_t bottom = own_bottom(d);
    /* relaxed: top only grows, so what looks empty is */
    if (bottom == sni_atomic_load(&d->top_, relaxed))
        return NULL;
    uint64_t index = bottom - 1;
    if (d->alone_) {
        set_bottom(d, index);
        return sni_atomic_load(cell_at(d, index), relaxed); /* relaxed: as below */
    }
    /* seq_cst, both: who lowers bottom looks; pairs with the fence in sni_deque_steal */
    sni_atomic_store(&d->bottom_, index, seq_cst);
    uint64_t top = sni_atomic_load(&d->top_, seq_cst);
    int64_t older = (int64_t)(index - top);
    if (sni_likely(older > 0)) {
        /* relaxed: the owner wrote it */
        return sni_atomic_load(cell_at(d, index), relaxed);
    }
    if (older == 0)
        return pop_last(d, index);
    set_bottom(d, bottom);
    return NULL;
}

struct sni_runlink *sni_deque_steal(struct sni_deque *d, bool *busy)
{
    if (busy != NULL)
        *busy = false;
    /* acquire: the bottom read next is not older than this top */
    uint64_t top = sni_atomic_load(&d->top_, acquire);
    sni_atomic_fence(seq_cst); /* pairs with the seq_cst of sni_deque_pop */
    /* acquire: pairs with the release in set_bottom, see 1 */
    uint64_t bottom = sni_atomic_load(&d->bottom_, acquire);
    if ((int64_t)(bottom - top) <= 0)
        return NULL;
    /* relaxed: worth nothing unless the CAS succeeds, see 2 */
    struct sni_runlink *link = sni_atomic_load(cell_at(d, top), relaxed);
    /* relaxed on failure: somebody else took it, which is all there is to know */
    if (sni_atomic_cas(&d->top_, &top, top + 1, seq_cst, relaxed))
        return link;
    if (busy != NULL)
        *busy = true;
    return NULL;
}

uint32_t sni_deque_len(const struct sni_deque *d)
{
    /* acquire: the bottom read next is not older than this top */
    uint64_t top = sni_atomic_load(&d->top_, acquire);
    /* relaxed: nothing is read on the strength of it */
    int64_t queued = (int64_t)(sni_atomic_load(&d->bottom_, relaxed) - top);
    if (queued < 0)
        return 0; /* the owner looks whether the last one is there */
    uint64_t most = d->mask_ + 1;
    return (uint64_t)queued <= most ? (uint32_t)queued : (uint32_t)most;
}
