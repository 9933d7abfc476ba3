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
 * Held. For an owner whom no thief disturbs, that CAS is most of what a pop costs. So it may *hold*
 * the ring: `own` is then the next link to be taken, and a pop just stores own + 1. The head says
 * that a thief is at work, which keeps thieves away. One that wants something *asks*: it has the
 * kernel put a fence into all threads, makes of `own` a head, and the ring is shared again.
 *
 *     hold       CAS steal = real - 1, as if the cell before were being copied; own = real; HELD
 *     pop        own + 1; look: if HELD, the link is the owner's. Else own - 1, and settle
 *     ask        CAS HELD to ASKED; fence in all threads; given = own; head = own, own; GIVEN
 *     settle     wait while it is ASKED; SHARED. given == own: nothing has happened. given == own
 *                + 1: the thief has seen a pop that was given up; its link is the owner's
 *     share      the owner's own way back: CAS HELD to ASKED; head = own, own; SHARED
 *
 * The owner executes the thief's fence before its look or behind it. Behind: its store of `own`
 * went before the look and so before the fence, and the thief reads it: what the owner took is not
 * in the head. Before: it does not find HELD, takes its store back, and takes nothing more before
 * it has settled: by what the thief has read, the one or the other. It waits for a thief that has
 * asked, which takes a microsecond unless that one loses its processor. To other thieves the ring
 * looks as if one were at it; so it does for some instructions of a hold, as for those of a claim.
 *
 * Wider. A ring may begin with fewer cells than there are, and double when it is full, until it
 * uses them all: a worker with few tasks then turns round in a few lines of memory. The owner makes
 * it look as if a thief were at work, as for a hold. A link whose index has the bit that the mask
 * gains goes up by the old capacity, to a cell that nobody has used; the others are in their place.
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
 *  5. Held: what the owner stores and then looks at is ordered by the fence in all threads, which
 *     also shows the thief the tail that was there before the pops (2). `held` carries the rest:
 *     the owner's release of HELD to the thief's CAS, its release of GIVEN, behind `given` and
 *     the head, to the owner who settles. The hold's CAS acquires the last completion, for 3.
 *  6. Wider: the mask is a plain word. A thief reads it between claim and completion, when the
 *     owner does not get the head; the owner's CAS acquires the last completion, and its release
 *     of the head is what the next claim acquires, or comes to others by what 5 says.
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
#include "plat/thread.h"
#include "sched/idle.h"
#include "sched/inject.h"

void sni_runq_init(struct sni_runq *q, sni_runq_cell *cells, uint32_t capacity)
{
    sni_assert(capacity >= 2 && capacity <= UINT32_C(1) << 30, "a run queue's capacity is absurd");
    sni_assert((capacity & (capacity - 1)) == 0, "a run queue's capacity is no power of two");
    /* relaxed, all: the threads that will use the queue are started, or told of it, later */
    sni_atomic_store(&q->head_, 0, relaxed);
    sni_atomic_store(&q->tail_, 0, relaxed);
    sni_atomic_store(&q->slot_, NULL, relaxed);
    sni_atomic_store(&q->own_, 0, relaxed);                 /* relaxed: as above */
    sni_atomic_store(&q->held_, SNI_RUNQ_SHARED_, relaxed); /* relaxed: as above */
    q->head_seen_ = 0;
    q->slot_uses_ = 0;
    q->cells_ = cells;
    q->mask_ = capacity - 1;
    q->most_ = capacity;
    q->alone_ = false;
}

void sni_runq_narrow(struct sni_runq *q, uint32_t capacity)
{
    sni_assert(capacity >= 2 && capacity <= q->most_ && (capacity & (capacity - 1)) == 0,
               "a run queue cannot begin with so many cells");
    q->mask_ = capacity - 1;
}

void sni_runq_set_alone(struct sni_runq *q)
{
    q->alone_ = true;
    sni_runq_hold(q);
}

/* ---- holding ---------------------------------------------------------------------------- */

void sni_runq_hold(struct sni_runq *q)
{
    /* relaxed: the owner's own word, or it is none of these */
    if (sni_atomic_load(&q->held_, relaxed) != SNI_RUNQ_SHARED_)
        return;
    uint64_t head = sni_atomic_load(&q->head_, relaxed); /* relaxed: the CAS decides */
    uint32_t real = sni_runq_real_of_(head);
    /* acquire: pairs with the completion in sni_runq_steal, see 3 and 5. relaxed: not now, then */
    if (sni_runq_steal_of_(head) != real ||
        !sni_atomic_cas(&q->head_, &head, sni_runq_pack_(real - 1, real), acquire, relaxed))
        return;
    sni_atomic_store(&q->own_, real, relaxed); /* relaxed: the next one publishes it */
    /* release: pairs with the acquire in ask() */
    sni_atomic_store(&q->held_, SNI_RUNQ_HELD_, release);
}

/* Thief: have a ring that is held be shared. */
static SNI_NEVER_INLINE void ask(struct sni_runq *q)
{
    uint32_t held = SNI_RUNQ_HELD_;
    /* acquire: pairs with the release in sni_runq_hold. relaxed: somebody else is at it */
    if (!sni_atomic_cas(&q->held_, &held, SNI_RUNQ_ASKED_, acquire, relaxed))
        return;
    (void)sni_hush_fence();
    q->given_ = sni_atomic_load(&q->own_, relaxed); /* relaxed: behind the fence, see 5 */
    /* release: as that of a pop, see 2 */
    sni_atomic_store(&q->head_, sni_runq_pack_(q->given_, q->given_), release);
    /* release: pairs with the acquires in settle() and of other thieves */
    sni_atomic_store(&q->held_, SNI_RUNQ_GIVEN_, release);
}

/* Owner: if a thief has asked, wait until it has what it wants, and share the ring. Returns a link
 * if the thief has seen a pop that the owner gave up: it has left the ring, and is the owner's. */
static struct sni_runlink *settle(struct sni_runq *q)
{
    uint32_t held;
    /* acquire: pairs with the release in ask() */
    for (unsigned round = 0; (held = sni_atomic_load(&q->held_, acquire)) == SNI_RUNQ_ASKED_;)
        sni_plat_back_off(round++);
    if (held != SNI_RUNQ_GIVEN_)
        return NULL;
    uint32_t own = sni_atomic_load(&q->own_, relaxed);      /* relaxed: ours */
    sni_atomic_store(&q->held_, SNI_RUNQ_SHARED_, relaxed); /* relaxed: the head is there */
    return q->given_ != own ? sni_runq_read_(q, own) : NULL;
}

/* Owner: hold it no longer. Returns as settle(). */
static struct sni_runlink *share(struct sni_runq *q)
{
    uint32_t held = SNI_RUNQ_HELD_;
    /* relaxed, all: nothing is read on the strength of it; own_ is the owner's */
    if (!sni_atomic_cas(&q->held_, &held, SNI_RUNQ_ASKED_, relaxed, relaxed))
        return settle(q);
    uint32_t own = sni_atomic_load(&q->own_, relaxed);
    /* release: as that of a pop, see 2 */
    sni_atomic_store(&q->head_, sni_runq_pack_(own, own), release);
    /* release: no thief finds it shared and the head of a held ring */
    sni_atomic_store(&q->held_, SNI_RUNQ_SHARED_, release);
    return NULL;
}

struct sni_runlink *sni_runq_pop(struct sni_runq *q)
{
    struct sni_runq_rest rest;
    struct sni_runlink *link = sni_runq_pop_rest(q, &rest);
    /* relaxed: HELD and SHARED are the owner's own words */
    while (link == NULL && sni_atomic_load(&q->held_, relaxed) >= SNI_RUNQ_ASKED_) {
        link = settle(q);
        q->slot_uses_ = 0;
        if (link == NULL)
            link = sni_runq_pop_rest(q, &rest);
    }
    return link;
}

/* ---- overflow --------------------------------------------------------------------------- */

/* Owner: use twice as many cells of a ring that is shared. False: there are no more, or a thief is
 * at work. */
static bool widen(struct sni_runq *q)
{
    uint32_t capacity = sni_runq_capacity_(q);
    uint64_t head = sni_atomic_load(&q->head_, relaxed); /* relaxed: the CAS decides */
    uint32_t real = sni_runq_real_of_(head);
    /* acquire: pairs with the completion in sni_runq_steal, see 6. relaxed: not now, then */
    if (capacity == q->most_ || sni_runq_steal_of_(head) != real ||
        !sni_atomic_cas(&q->head_, &head, sni_runq_pack_(real - 1, real), acquire, relaxed))
        return false;
    uint32_t tail = sni_runq_own_tail_(q);
    for (uint32_t i = real; i != tail; i++) {
        struct sni_runlink *link = sni_runq_read_(q, i);
        if ((i & capacity) != 0) /* relaxed: as in sni_runq_write_ */
            sni_atomic_store(&q->cells_[(i & q->mask_) + capacity], link, relaxed);
    }
    q->mask_ = 2 * capacity - 1;
    /* release: pairs with the acquire in claim(), see 6 */
    sni_atomic_store(&q->head_, sni_runq_pack_(real, real), release);
    return true;
}

/* Owner: join `count` cells from `from` on, which are no longer in the queue, and `last` behind
 * them to a chain. Returns its first link. */
static struct sni_runlink *chain_up(struct sni_runq *q, uint32_t from, uint32_t count,
                                    struct sni_runlink *last)
{
    struct sni_runlink *first = last;
    for (uint32_t i = count; i > 0; i--) {
        struct sni_runlink *link = sni_runq_read_(q, from + i - 1);
        link->next = first;
        first = link;
    }
    return first;
}

uint32_t sni_runq_overflow(struct sni_runq *q, struct sni_runlink *link, struct sni_inject *inject,
                           unsigned prio)
{
    struct sni_runlink *oldest = share(q);
    if (oldest != NULL)
        sni_inject_push(inject, oldest, prio);
    uint32_t moved = oldest != NULL;
    (void)widen(q);
    uint32_t half = sni_runq_capacity_(q) / 2;
    while (!sni_runq_push(q, link)) {
        /* relaxed: nothing is read on the strength of it, the CAS below decides */
        uint64_t head = sni_atomic_load(&q->head_, relaxed);
        uint32_t real = sni_runq_real_of_(head);
        if (sni_runq_steal_of_(head) != real) { /* a thief makes room, soon; do not wait for it */
            sni_inject_push(inject, link, prio);
            return moved + 1;
        }
        if (sni_runq_own_tail_(q) - real < sni_runq_capacity_(q))
            continue; /* thieves have made it, and there may be less than half left */
        /* release: as in pop, see 2. relaxed on failure: a thief was faster, look again */
        if (sni_atomic_cas(&q->head_, &head, sni_runq_pack_(real + half, real + half), release,
                           relaxed)) {
            struct sni_runlink *first = chain_up(q, real, half, link);
            sni_inject_push_chain(inject, first, link, half + 1, prio);
            return moved + half + 1;
        }
    }
    return moved;
}

/* ---- stealing --------------------------------------------------------------------------- */

/* Thief: take the older half of `q`, at most `limit`, out of the queue; its cells stay as they are
 * until complete(). Returns their number, and in *at the first one's index. */
static uint32_t claim(struct sni_runq *q, uint32_t limit, uint32_t *at)
{
    /* acquire: pairs with the release of the owner's CAS, see 2 */
    uint64_t head = sni_atomic_load(&q->head_, acquire);
    for (;;) {
        uint32_t real = sni_runq_real_of_(head);
        uint32_t steal = sni_runq_steal_of_(head);
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
        if (sni_atomic_cas(&q->head_, &head, sni_runq_pack_(steal, real + n), acquire, acquire)) {
            sni_assert(queued <= sni_runq_capacity_(q),
                       "a run queue holds more than it can: two owners?");
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
        sni_assert(sni_runq_steal_of_(head) == at, "a steal was completed by somebody else");
        uint32_t real = sni_runq_real_of_(head);
        /* release: pairs with the acquire in sni_runq_room_, see 3. relaxed: look again */
        if (sni_atomic_cas(&q->head_, &head, sni_runq_pack_(real, real), release, relaxed))
            return;
    }
}

size_t sni_runq_steal(struct sni_runq *from, struct sni_runq *into, uint32_t most,
                      struct sni_runlink **first)
{
    sni_assert_debug(from != into, "a worker steals from itself");
    /* relaxed: a guess; the head tells, or ask() */
    if (sni_atomic_load(&from->held_, relaxed) == SNI_RUNQ_HELD_ && sni_runq_len(from) > 0)
        ask(from);
    uint32_t tail = sni_runq_own_tail_(into);
    uint32_t wanted = sni_runq_len(from) / 2;
    wanted = wanted < most ? wanted : most;
    uint32_t room; /* relaxed: SHARED is the owner's own word */
    while ((room = sni_runq_room_(into, tail, wanted)) < wanted &&
           sni_atomic_load(&into->held_, relaxed) == SNI_RUNQ_SHARED_ && widen(into))
        ;
    uint32_t limit = room + 1; /* the first needs no cell */
    uint32_t at = 0;
    uint32_t n = claim(from, limit < most ? limit : most, &at);
    if (n == 0)
        return 0;
    *first = sni_runq_read_(from, at);
    for (uint32_t i = 1; i < n; i++)
        sni_runq_write_(into, tail + i - 1, sni_runq_read_(from, at + i));
    complete(from, at);
    if (n > 1) {
        /* release: pairs with the acquire of tail by the next thief, see 1 */
        sni_atomic_store(&into->tail_, tail + n - 1, release);
    }
    return n;
}

uint32_t sni_runq_len(const struct sni_runq *q)
{
    /* acquire, all: the tail read next is not older than this head, see 2. While the ring is held
     * that may fail, and too much be said, for a moment */
    uint32_t real = sni_runq_has_head_(sni_atomic_load(&q->held_, acquire))
                        ? sni_runq_real_of_(sni_atomic_load(&q->head_, acquire))
                        : sni_atomic_load(&q->own_, acquire);
    /* relaxed: nothing is read on the strength of it */
    uint32_t queued = sni_atomic_load(&q->tail_, relaxed) - real;
    return queued <= q->most_ ? queued : q->most_; /* the head may be older */
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
