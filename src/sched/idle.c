/* SPDX-License-Identifier: MIT */
/* idle.c - who sleeps, who searches, who wakes whom.
 *
 * Words. A worker *searches* while it has no work of its own and looks into everybody's queues. It
 * *sleeps* from sni_idle_sleep until it is woken, whether it really parks or not. *Look* is to look
 * at all queues, and to go on as described if there is work in one.
 *
 * Invariant: work queued and a worker asleep => a worker is searching, or being woken to search,
 * or about to look.
 *
 * State. One word holds two counts, of the searching and of the sleeping. A bit map tells which
 * workers sleep; whoever clears a bit has that worker to wake, alone.
 *
 *     submit   push; fence; look: while nobody searches and somebody sleeps, count one of the
 *              sleepers as searching (one CAS); clear a bit, and unpark that worker; or, if there
 *              is no bit left, count back and try again
 *     sleep    set the bit; count as sleeping and no more as searching (one RMW); fence; if nobody
 *              searches now, look: if there is work, do not park
 *     woken    nothing, if the bit is gone: a waker has counted us. Else count as searching, clear
 *              the bit; if a waker was faster with the bit, count back
 *     end      count as searching no more; fence; if nobody searches now, look: if there is work,
 *              submit
 *
 * Why no wake-up is lost. A submitter that wakes nobody has read the state behind its fence, and
 * read either a searcher or no sleeper.
 *  1. A searcher: the last one to stop does so by a later RMW, followed by a fence and a look. The
 *     two fences are ordered as the read and the RMW are, so the look sees the push.
 *  2. No sleeper: every worker that sleeps later counts itself by a later RMW, and the look behind
 *     that fence sees the push; unless another searches by then, which is case 1. So a sleeper
 *     looks whether it has searched or not: if it was refused to search, the searcher it was
 *     refused for may have found work and be gone before the push.
 *  3. The searcher may be a waker's promise that it counts back, because it finds no bit. Then it
 *     reads the state anew and wakes a sleeper if nobody searches, on behalf of all who relied on
 *     it; or finds nobody asleep, which is case 2 for them too.
 *
 * A worker that pushes to its own queue has no fence: the push is a seq_cst store (of `tail` or
 * `bottom`), and the state is read by a seq_cst load, which takes the fence's place above. If it
 * comes before the fence of one who leaves, so does the store, and the look behind that fence sees
 * it; if it comes later, it sees the RMW that went before that fence. On x86-64 the store is an
 * exchange, which takes 0.6 ns less than a store and a fence.
 *
 * Hush. A worker beside a searcher that stays has nobody to wake, so it need not ask each time: the
 * searcher says so in the worker's own memory, and the worker's pushes are plain stores. When the
 * searcher is about to go it takes that back, has the kernel put a fence into all threads, and
 * looks as it would have done anyway.
 *
 *     hushed push   push; look: if hushed, done; else submit, with its fence
 *     end           hush no more (RMW); fence in all threads; search on; sleep or end as above
 *
 * The pusher executes that fence before its look or behind it. Before: it reads that it is hushed
 * no more, or that another searcher hushes it, whose end is still to come; and in the first case
 * submits. Behind: the push went before the look, so it went before the fence, and the search sees
 * it. So a push of which nobody was told is seen by a search that begins later, made by somebody
 * who is counted as searching from before the push until then: case 1.
 *
 * The counts and the bits are two things, changed one after the other: a bit is set before its
 * worker is counted as sleeping, and cleared after one is no more counted. So a waker that has
 * counted on somebody finds a bit, but for one case: that sleeper leaves by itself, has counted too
 * and was faster with the bit. The count of sleepers is then one too low, perhaps below zero (hence
 * the bias), until the waker counts back. It is too low also while a waker has taken the bit of a
 * worker that has not counted itself yet. Nobody concludes anything from it: in both cases the
 * state counts a searcher, the waker's promise or the worker chosen, as long as it is wrong.
 *
 * Nobody waits: when a waker counts back and tries again, somebody else has come a step further.
 *
 * Rarely (R43): a waker's CAS needs that nobody searches, so of many submitters one wakes; a woken
 * worker counts as searching from the moment the waker decides; and when it finds work it wakes the
 * next only if it was the last searcher and there is more. So a burst wakes workers one after
 * another, each by one system call, made by the one who has just been woken.
 *
 * Rejected: waking on each push (storms of parks); direct hand-off (loses locality); the sleepers
 * as a stack of indices in the state word (leaving by a deadline means leaving from the middle); a
 * lock (a holder off the processor would hold up the submitters); the count of sleepers as a right
 * to a bit, taken before it (a sleeper whose deadline passes would wait for a waker to choose); no
 * fence in submit, for which the one who leaves has the kernel put one into all threads (membarrier
 * on Linux): a spawn among two workers took 5 ns less, of 65; but each end of a search and each
 * sleep would take 0.6 us more, 1.6 if another processor is busy, and interrupt all that are.
 *
 * Parker. EMPTY, TOKEN, or PARKED: the owner sleeps or is about to, on exactly that value. Unpark
 * exchanges by TOKEN and makes a system call only if it found PARKED; park turns EMPTY to PARKED
 * by a CAS that a token makes fail. So no token is lost, and a second unpark finds TOKEN and is
 * free. All are RMWs: what each unparker wrote is visible to whoever consumes the token. */
#include "sched/idle.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "plat/clock.h"
#include "plat/thread.h"

#include <sinew/errno.h>

#include <assert.h>

enum {
    ONE_SLEEPING = SNI_IDLE_ONE_SLEEPING_,
    ONE_SEARCHING = SNI_IDLE_ONE_SEARCHING_,
    NOBODY = SNI_IDLE_NOBODY_,
    SLEEPING_MASK = ONE_SEARCHING - 1,
    STORE_NS = 1000000, /* longer than any store takes */
};
static_assert((int)SNI_WORKERS_MAX < (int)NOBODY, "the counts need room on both sides");
static_assert((int)SNI_WORKERS_MAX + (int)NOBODY < (int)ONE_SEARCHING, "sleeping may not overflow");

/* What changes when a sleeper is counted as searching, and back. */
static const uint32_t woken = (uint32_t)ONE_SEARCHING - ONE_SLEEPING;

static inline uint32_t searching_in(uint32_t state)
{
    return state >> 16;
}

static inline int32_t sleeping_in(uint32_t state)
{
    return (int32_t)(state & SLEEPING_MASK) - NOBODY;
}

static inline uint64_t bit_of(unsigned worker)
{
    return UINT64_C(1) << worker % 64;
}

void sni_idle_init(struct sni_idle *idle, unsigned workers)
{
    sni_assert(workers >= 1 && workers <= SNI_WORKERS_MAX, "the number of workers is absurd");
    *idle = (struct sni_idle){.state_ = {NOBODY}, .workers_ = workers};
}

/* Clear the worker's bit. True if it was set: the worker is ours to wake. */
static bool take_bit(struct sni_idle *idle, unsigned worker)
{
    /* relaxed: that it is an RMW decides whose it is; the parker's token carries the rest */
    uint64_t before = sni_atomic_fetch_and(&idle->asleep_[worker / 64], ~bit_of(worker), relaxed);
    return (before & bit_of(worker)) != 0;
}

/* Take some sleeper's bit; lower numbers first, so that what is not needed sleeps long. Returns its
 * number, or -1: none was seen. */
static int choose(struct sni_idle *idle)
{
    for (unsigned word = 0; word * 64 < idle->workers_; word++) {
        /* relaxed: the acquire with which it was counted on has made the bit visible */
        uint64_t bits = sni_atomic_load(&idle->asleep_[word], relaxed);
        for (; bits != 0; bits &= bits - 1) {
            unsigned worker = word * 64 + (unsigned)__builtin_ctzll(bits);
            if (take_bit(idle, worker))
                return (int)worker;
        }
    }
    return -1;
}

int sni_idle_choose(struct sni_idle *idle)
{
    /* relaxed: behind the push, as what the caller has read */
    uint32_t state = sni_atomic_load(&idle->state_, relaxed);
    while (sni_idle_lacks_searcher_(state)) {
        /* acquire: pairs with the release in sni_idle_sleep, so that choose() sees the bit.
         * relaxed on failure: look again */
        if (!sni_atomic_cas(&idle->state_, &state, state + woken, acquire, relaxed))
            continue;
        int worker = choose(idle);
        if (worker >= 0)
            return worker;
        /* relaxed: counts back, case 3; nothing is published */
        state = sni_atomic_fetch_sub(&idle->state_, woken, relaxed) - woken;
    }
    return -1;
}

bool sni_idle_begin_search(struct sni_idle *idle, unsigned me)
{
    sni_assert_debug(me < idle->workers_, "a worker that is not of this runtime searches");
    (void)me;
    /* relaxed: a bound on the crowd; what matters is told when the search ends */
    uint32_t state = sni_atomic_load(&idle->state_, relaxed);
    for (;;) {
        uint32_t searching = searching_in(state);
        if (searching > 0 && 2 * searching >= idle->workers_)
            return false;
        uint32_t next = state + ONE_SEARCHING;
        /* relaxed, both: a submitter that sees this count relies on the fence at the end */
        if (sni_atomic_cas(&idle->state_, &state, next, relaxed, relaxed))
            return true;
    }
}

/* Add `change` to the state, then fence. True if nobody searches any more. */
static bool leave(struct sni_idle *idle, uint32_t change)
{
    /* release: pairs with the acquire in sni_idle_submit, and shows it the bit */
    uint32_t state = sni_atomic_fetch_add(&idle->state_, change, release) + change;
    sni_atomic_fence(seq_cst); /* between the count and the look; pairs with that of submit */
    return searching_in(state) == 0;
}

bool sni_idle_end_search(struct sni_idle *idle, unsigned me)
{
    sni_assert_debug(me < idle->workers_, "a worker that is not of this runtime searches");
    sni_assert_debug(sni_idle_searching(idle) > 0, "a search ends that has not begun");
    (void)me;
    return leave(idle, (uint32_t)-ONE_SEARCHING);
}

bool sni_idle_sleep(struct sni_idle *idle, unsigned me, bool searching)
{
    sni_assert_debug(me < idle->workers_, "a worker that is not of this runtime sleeps");
    /* relaxed: the release in leave() publishes it before the count */
    uint64_t before = sni_atomic_fetch_or(&idle->asleep_[me / 64], bit_of(me), relaxed);
    sni_assert((before & bit_of(me)) == 0, "a worker goes to sleep twice");
    return leave(idle, (uint32_t)ONE_SLEEPING - (searching ? (uint32_t)ONE_SEARCHING : 0u));
}

void sni_idle_woken(struct sni_idle *idle, unsigned me)
{
    /* relaxed: only this worker sets the bit, and who cleared it had counted before. What that one
     * wrote comes with the token, or through the queues */
    if ((sni_atomic_load(&idle->asleep_[me / 64], relaxed) & bit_of(me)) == 0)
        return;
    /* relaxed, both: as in begin_search. First the count, for a submitter that finds us counted as
     * asleep and not the bit would have to wait for us */
    sni_atomic_fetch_add(&idle->state_, woken, relaxed);
    if (!take_bit(idle, me))
        sni_atomic_fetch_sub(&idle->state_, woken, relaxed);
}

/* ---- hush ----------------------------------------------------------------------------- */

void sni_hush_init(struct sni_hush *hush, bool others)
{
    /* relaxed: others learn of it later. One that nobody takes back, if there are none */
    sni_atomic_store(&hush->by_, others ? 0 : 1, relaxed);
}

void sni_hush_begin(struct sni_hush *hush)
{
    /* relaxed: who reads it early or late does nothing wrong */
    sni_atomic_fetch_add(&hush->by_, 1, relaxed);
}

void sni_hush_end(struct sni_hush *hush)
{
    /* relaxed: the fence in all threads follows */
    uint32_t before = sni_atomic_fetch_sub(&hush->by_, 1, relaxed);
    sni_assert_debug(before > 0, "a hush ends that has not begun");
    (void)before;
}

bool sni_hush_fence(void)
{
    if (sni_likely(sni_plat_fence_all() == 0))
        return true;
    /* A store becomes visible by itself in less time than this. */
    uint32_t nobody_wakes = 0;
    (void)sni_plat_park(&nobody_wakes, 0, sni_plat_now_ns() + STORE_NS);
    return false;
}

/* ---- what others want to know ----------------------------------------------------------- */

bool sni_idle_is_asleep(const struct sni_idle *idle, unsigned worker)
{
    /* relaxed: a moment's answer */
    return (sni_atomic_load(&idle->asleep_[worker / 64], relaxed) & bit_of(worker)) != 0;
}

unsigned sni_idle_searching(const struct sni_idle *idle)
{
    /* relaxed: statistics */
    return searching_in(sni_atomic_load(&idle->state_, relaxed));
}

unsigned sni_idle_sleeping(const struct sni_idle *idle)
{
    /* relaxed: statistics */
    int32_t sleeping = sleeping_in(sni_atomic_load(&idle->state_, relaxed));
    return sleeping > 0 ? (unsigned)sleeping : 0;
}

/* ---- parker --------------------------------------------------------------------------- */

enum {
    EMPTY = 0,
    TOKEN = 1,
    PARKED = 2,
};

void sni_parker_init(struct sni_parker *p)
{
    /* relaxed: others learn of the parker later */
    sni_atomic_store(&p->word, EMPTY, relaxed);
}

bool sni_parker_begin(struct sni_parker *p)
{
    uint32_t found = EMPTY;
    /* release: what the owner prepared for whoever must wake it, pairs with notify. relaxed on
     * failure: what was found, a token, is consumed by end() */
    if (sni_likely(sni_atomic_cas(&p->word, &found, PARKED, release, relaxed)))
        return true;
    sni_assert(found == TOKEN, "a parker has two owners");
    bool token = sni_parker_end(p);
    sni_assert(token, "a token was consumed by somebody else");
    return false;
}

bool sni_parker_end(struct sni_parker *p)
{
    /* acquire: pairs with the release in notify. An RMW, so that no token is overwritten */
    return sni_atomic_exchange(&p->word, EMPTY, acquire) == TOKEN;
}

bool sni_parker_notify(struct sni_parker *p)
{
    /* release: pairs with the acquire in end. An RMW even if there is a token already, so that
     * what this caller wrote is seen by whoever consumes it. acquire: pairs with begin */
    return sni_atomic_exchange(&p->word, TOKEN, acq_rel) == PARKED;
}

bool sni_parker_park(struct sni_parker *p, int64_t until_ns)
{
    if (!sni_parker_begin(p))
        return true;
    for (;;) {
        int rc = sni_plat_park(&p->word.raw_, PARKED, until_ns);
        /* relaxed: end() acquires */
        if (rc == -ETIMEDOUT || sni_atomic_load(&p->word, relaxed) == TOKEN)
            return sni_parker_end(p);
    }
}

void sni_parker_unpark(struct sni_parker *p)
{
    if (sni_parker_notify(p))
        sni_parker_wake(p);
}

void sni_parker_wake(struct sni_parker *p)
{
    sni_plat_unpark(&p->word.raw_, 1);
}
