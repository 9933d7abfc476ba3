/* SPDX-License-Identifier: MIT */
/* wait.h - the one suspension protocol.
 *
 * Everything that waits in Sinew waits like this, be it a fiber or a plain thread:
 *
 *     struct sni_waiter w;
 *     sni_wait_begin(&w);                    // binds to this fiber or thread
 *     lock; push w.link somewhere; unlock;   // publish: from here on w can be claimed
 *     rc = sni_wait_commit(&w, until);       // sleep until somebody claims it
 *     // here w is linked nowhere any more: the claimer or we ourselves took it out
 *
 * and whoever ends the wait does
 *
 *     if (sni_wait_claim(w, result)) ...     // at most one claimer wins
 *
 * Claims are raced by wakers, deadlines and cancellations; the state word decides. The loser
 * does nothing. A waiter lives in its waiter's own frame, so waiting allocates nothing; after
 * a successful claim the claimer must not touch it: its owner may have gone on.
 *
 * See wait.c for the states and why no wake is lost. */
#ifndef SINEW_WAIT_WAIT_H
#define SINEW_WAIT_WAIT_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/list.h"
#include "wait/current.h"

#include <sinew/clock.h>

/* What waits do so that they can be cancelled: 2, all. 1 leaves out the look for a cancel when they
 * are parked (sni_task_parked), 0 also the bit of a shield, which outlives them. That is
 * for measuring what these cost (tools/cancel_cost), never for use: who is cancelled would not
 * notice. */
#ifndef SNI_WAIT_CANCELS
#define SNI_WAIT_CANCELS 2
#endif

/* The state of a wait, see wait.c. */
typedef SNI_ATOMIC(uint32_t) sni_wait_word;

enum {
    SNI_WAIT_OPEN = 0,    /* bound, perhaps published; its owner still runs                      */
    SNI_WAIT_PARKED = 1,  /* its owner sleeps                                                    */
    SNI_WAIT_CLAIMED = 2, /* over, or none has begun; the result stands above all bits            */
    SNI_WAIT_STATE = 3,   /* the bits of these three                                             */
    SNI_WAIT_HELD = 4,    /* not to be cancelled while OPEN; PARKED, that is to call `interrupt`  */
    SNI_WAIT_SHIELDED =
        8,                /* nor any other of this fiber, until that is taken back                */
    SNI_WAIT_PINNED = 16, /* somebody calls `interrupt` just now: the owner must not go on       */
    SNI_WAIT_ROUSED = 32, /* claimed, and its claimer is at `resume`: likewise                   */
    SNI_WAIT_BITS = 6,
};

struct sni_waiter {
    sni_wait_word own;              /* the state, unless it is in the fiber: sni_wait_word_of   */
    uint32_t wait_at;               /* immutable after begin: of `ops`, or 0                  */
    const struct sni_exec_ops *ops; /* immutable after begin; NULL: the waiter is a thread     */
    void *fiber;                    /* immutable after begin                                  */
    struct sni_list link;           /* the primitive's, under its lock                        */

    /* What to do when the wait is to end before its time: NULL claims it with the reason. An
     * operation that the kernel has is cancelled instead, and claimed when it is over. Set
     * after begin, before it is published. */
    void (*interrupt)(struct sni_waiter *w, int why);
};

/* Bind `w` to the running fiber, or to this thread if there is none. */
void sni_wait_begin(struct sni_waiter *w);

/* The same for who has asked for sni_exec_current already. */
static inline void sni_wait_begin_on(struct sni_waiter *w, struct sni_exec *exec);

/* Sleep until `w` is claimed, or interrupted because `until` has passed.
 *
 * Returns  the result given by the claimer; -ETIMEDOUT, in which case the caller unlinks w;
 *          -ENOTSUP  a fiber's executor keeps no time, and the wait is over as for -ETIMEDOUT */
int sni_wait_commit(struct sni_waiter *w, sn_deadline until);

/* The same for who has just begun `w` on `exec`. */
static inline int sni_wait_commit_on(struct sni_waiter *w, struct sni_exec *exec,
                                     sn_deadline until);

/* Begin and commit for who counts nanoseconds: a fiber, of an executor with a place for the state
 * of its waits, that waits for ever. It is left right here: each function between the switch and
 * whoever waits is a return that the processor predicts wrongly, because others have returned
 * meanwhile. The begin leaves w->link alone.
 *
 * Returns  where the state is; and what sni_wait_commit does */
static inline sni_wait_word *sni_wait_begin_near(struct sni_waiter *w, const struct sni_exec *exec);
static inline int sni_wait_commit_near(struct sni_waiter *w, struct sni_exec *exec,
                                       const sni_wait_word *word);

/* Where that fiber puts what it lends. */
static inline struct sni_lent **sni_wait_lent_near(const struct sni_exec *exec)
{
    return (struct sni_lent **)(void *)((char *)exec->fiber + exec->ops->lent_at);
}

/* Cancelling. A fiber that keeps the state of its waits in a place that outlives its frames
 * (sni_exec_ops.wait_at) can be cancelled by anybody who knows that place: its wait, if there is
 * one, ends with `why`, which is -ECANCELED or -ETIMEDOUT. Whoever asks for it remembers that
 * first, and the executor looks after it has parked the fiber, so that neither misses the other
 * (sni_task_parked).
 *
 * Returns  true if the fiber must be resumed by the caller */
bool sni_wait_cancel(sni_wait_word *word, struct sni_lent *const *lent, int why);

/* Nobody resumes the fiber any more: who ends its wait from now on leaves it at that, who cancels
 * leaves it alone, and who is just resuming it by sni_wait_claim_afar has done so. For who abandons
 * a fiber that sleeps, while nobody cancels it. */
void sni_wait_abandon(sni_wait_word *word);

/* Whether `until` has passed: what a wait that ended with -ETIMEDOUT asks if it must know whether
 * that was its own deadline, or one of a scope around it. */
static inline bool sni_wait_is_past(sn_deadline until);
bool sni_wait_is_past_now(int64_t until_ns); /* asks the clock */

/* After begin: not to be cancelled before the owner sleeps, and then by w->interrupt alone; what
 * was lent has w. For waits that end only when somebody else has let go, like the kernel. */
static inline void sni_wait_hold(struct sni_waiter *w);

/* From now on, or no longer, the waits of the running fiber are not cancelled. Nothing happens to a
 * thread, nor to a fiber that cannot be cancelled anyway.
 *
 * Returns  how it was before */
bool sni_wait_shield(bool on);

/* The same for who knows where the fiber keeps its state. A waker may run on a fiber that has begun
 * to wait (sync/gate.c): that wait is as it was, and what has come of it is kept. */
static inline bool sni_wait_is_claimed_(uint32_t state);

static inline bool sni_wait_shield_at(sni_wait_word *word, bool on)
{
    /* relaxed, both: of what is over or has not begun, nobody else writes what counts */
    uint32_t before = sni_atomic_load(word, relaxed);
    uint32_t after = on ? before | SNI_WAIT_SHIELDED : before & ~(uint32_t)SNI_WAIT_SHIELDED;
    if (sni_likely(sni_wait_is_claimed_(before)))
        sni_atomic_store(word, after, relaxed); /* relaxed: as above */
    else if (on) /* begun, perhaps never to be committed; relaxed, both: a flag of the owner's */
        sni_atomic_fetch_or(word, SNI_WAIT_SHIELDED, relaxed);
    else
        sni_atomic_fetch_and(word, ~(uint32_t)SNI_WAIT_SHIELDED, relaxed);
    return (before & SNI_WAIT_SHIELDED) != 0;
}

/* Between begin and commit, and with NULL after it: what the owner of `w`, if it is a fiber, has
 * lent for as long as it waits. */
static inline void sni_wait_lend(const struct sni_waiter *w, struct sni_lent *lent);

/* End the wait of `w`, whose memory the caller keeps alive, before its time: `why` is -ETIMEDOUT
 * or -ECANCELED. */
void sni_wait_interrupt(struct sni_waiter *w, int why);

/* End the wait of `w` with `result` (from -2^25 to 2^25 - 1), and make its owner go on. The caller
 * holds something that keeps the owner's executor until this returns: it runs on it; or it holds a
 * lock that is taken before the owner is given up, to take back what it has lent.
 *
 * Returns  true if this call won; false if it was claimed before */
bool sni_wait_claim(struct sni_waiter *w, int result);

/* The same, but the owner need not hurry: it goes on behind what is runnable already. For the
 * end of a task, say: whoever joins many finds more of them ended. */
bool sni_wait_claim_last(struct sni_waiter *w, int result);

/* The same for who holds no such thing, because the owner of `w` is a fiber elsewhere: it goes on,
 * or is given up, when this is over. It must commit by sni_wait_commit. */
bool sni_wait_claim_afar(struct sni_waiter *w, int result);

/* A wake that is owed; zeroed: none. */
struct sni_wake {
    const struct sni_exec_ops *ops;
    void *who; /* for ops->resume; without ops: the word that a thread is parked on */
};

/* The same as sni_wait_claim, for who holds the lock that guards what `w` is linked in. A fiber is
 * made runnable at once: whoever takes back what an abandoned one has lent takes the lock too, so
 * the fiber is not gone before that. What may take long, or be code of the user's (a thread, a
 * waker), is left in *wake, zeroed before, for sni_wait_wake after the unlock. */
static inline bool sni_wait_claim_locked(struct sni_waiter *w, int result, struct sni_wake *wake);
void sni_wait_wake_slow(struct sni_wake wake);

/* As sni_wait_claim, for who has seen that it is no thread (w->ops is set); and if it holds a lock
 * that must not be held for long, that w->ops->resumes_late is not set. */
static inline bool sni_wait_claim_quick(struct sni_waiter *w, int result);

/* By value, so that a wake that nobody owes is never in memory. */
static inline void sni_wait_wake(struct sni_wake wake)
{
    if (sni_unlikely(wake.who != NULL))
        sni_wait_wake_slow(wake);
}

/* What the claimer said, of a waiter that is over. */
static inline int sni_wait_result(const struct sni_waiter *w);

/* Whether `w` has been claimed. What the claimer wrote before is visible then. */
bool sni_wait_is_over(const struct sni_waiter *w);

/* Where the state of `w` is: in the fiber, if it has a place for it. */
static inline sni_wait_word *sni_wait_word_of(const struct sni_waiter *w)
{
    if (w->wait_at == 0)
        return (sni_wait_word *)(uintptr_t)&w->own;
    return (sni_wait_word *)(void *)((char *)w->fiber + w->wait_at);
}

/* A fiber begins to wait: OPEN, and SHIELDED if it was. */
static inline void sni_wait_open_(sni_wait_word *word)
{
    /* relaxed, both: nobody else knows of this wait yet */
    uint32_t before = SNI_WAIT_CANCELS > 0 ? sni_atomic_load(word, relaxed) : 0;
    sni_atomic_store(word, before & SNI_WAIT_SHIELDED, relaxed); /* relaxed: as above */
}

static inline void sni_wait_begin_on(struct sni_waiter *w, struct sni_exec *exec)
{
    w->fiber = exec != NULL ? exec->fiber : NULL;
    w->ops = w->fiber != NULL ? exec->ops : NULL;
    w->wait_at = w->fiber != NULL ? (uint32_t)exec->ops->wait_at : 0;
    w->interrupt = NULL;
    sni_list_init(&w->link);
    if (w->wait_at == 0) {
        sni_atomic_store(&w->own, SNI_WAIT_OPEN, relaxed); /* relaxed: nobody else knows it yet */
        return;
    }
    sni_wait_word *word = sni_wait_word_of(w);
    sni_wait_open_(word);
}

static inline void sni_wait_hold(struct sni_waiter *w)
{
    if (w->wait_at == 0)
        return; /* nobody can cancel it */
    sni_wait_word *word = sni_wait_word_of(w);
    /* relaxed, both: not published. Who has cancelled it since the begin is forgotten: that the
     * task is to end is remembered elsewhere, and found when it has parked */
    uint32_t before = sni_atomic_load(word, relaxed);
    sni_atomic_store(word, (before & SNI_WAIT_SHIELDED) | SNI_WAIT_HELD, relaxed);
}

static inline bool sni_wait_is_past(sn_deadline until)
{
    return until.ns <= 0 || (until.ns != SN_FOREVER.ns && sni_wait_is_past_now(until.ns));
}

static inline bool sni_wait_is_claimed_(uint32_t state)
{
    return (state & SNI_WAIT_STATE) == SNI_WAIT_CLAIMED;
}

static inline int sni_wait_result_of_(uint32_t state)
{
    return (int32_t)state >> SNI_WAIT_BITS;
}

static inline int sni_wait_result(const struct sni_waiter *w)
{
    /* acquire: pairs with the release in sni_wait_claim */
    uint32_t state = sni_atomic_load(sni_wait_word_of(w), acquire);
    sni_assert(sni_wait_is_claimed_(state), "the result of a wait that is not over");
    return sni_wait_result_of_(state);
}

/* What follows `found` when it is claimed. */
static inline uint32_t sni_wait_claimed_with_(uint32_t found, int result)
{
    uint32_t kept = found & (SNI_WAIT_SHIELDED | SNI_WAIT_PINNED); /* ROUSED is never found */
    sni_assert_debug(sni_wait_result_of_((uint32_t)result << SNI_WAIT_BITS) == result,
                     "a result that a wait has no room for");
    return ((uint32_t)result << SNI_WAIT_BITS) | kept | SNI_WAIT_CLAIMED;
}

/* False: it is over already. Else it is claimed, and *found is what it was before. */
static inline bool sni_wait_take_(sni_wait_word *word, int result, uint32_t *found)
{
    /* relaxed: only a first guess for the exchange below */
    *found = sni_atomic_load(word, relaxed);
    do {
        if (sni_unlikely(sni_wait_is_claimed_(*found)))
            return false;
        /* acq_rel: releases what led to the claim; acquires the registers of a parked fiber */
    } while (sni_unlikely(
        !sni_atomic_cas(word, found, sni_wait_claimed_with_(*found, result), acq_rel, relaxed)));
    return true;
}

static inline bool sni_wait_claim_quick(struct sni_waiter *w, int result)
{
    /* Read first: once the claim has won, the waiter may be gone. */
    const struct sni_exec_ops *ops = w->ops;
    void *fiber = w->fiber;
    uint32_t found;
    bool is_won = sni_likely(sni_wait_take_(sni_wait_word_of(w), result, &found));
    if (sni_likely(is_won && (found & SNI_WAIT_STATE) == SNI_WAIT_PARKED))
        ops->resume(fiber);
    return is_won;
}

static inline bool sni_wait_claim_locked(struct sni_waiter *w, int result, struct sni_wake *wake)
{
    sni_assert_debug(wake->who == NULL, "a wake that is owed is forgotten");
    /* Read first: once the claim has won, the waiter may be gone. */
    const struct sni_exec_ops *ops = w->ops;
    void *fiber = w->fiber;
    uint32_t found;
    if (sni_unlikely(!sni_wait_take_(sni_wait_word_of(w), result, &found)))
        return false;
    if (sni_unlikely((found & SNI_WAIT_STATE) != SNI_WAIT_PARKED))
        return true;
    if (sni_likely(ops != NULL && !ops->resumes_late))
        ops->resume(fiber);
    else
        *wake = (struct sni_wake){ops, ops == NULL ? (void *)&w->own.raw_ : fiber};
    return true;
}

static inline bool sni_wait_park(sni_wait_word *word)
{
    /* acquire: pairs with claim, here and below; OPEN, with or without other bits, or over */
    uint32_t found = sni_atomic_load(word, acquire);
    do {
        if (sni_wait_is_claimed_(found))
            return true;
        /* seq_cst: releases the saved registers to the claimer, and what was lent to who cancels;
         * and see "Orders" in wait.c */
    } while (
        sni_unlikely(!sni_atomic_cas(word, &found, found + SNI_WAIT_PARKED, seq_cst, acquire)));
    return false;
}

static inline void sni_wait_lend(const struct sni_waiter *w, struct sni_lent *lent)
{
    if (w->fiber != NULL && w->ops->lent_at != 0)
        *(struct sni_lent **)(void *)((char *)w->fiber + w->ops->lent_at) = lent;
}

static inline sni_wait_word *sni_wait_begin_near(struct sni_waiter *w, const struct sni_exec *exec)
{
    w->fiber = exec->fiber;
    w->ops = exec->ops;
    w->wait_at = (uint32_t)exec->ops->wait_at;
    w->interrupt = NULL;
    sni_wait_word *word = (sni_wait_word *)(void *)((char *)exec->fiber + exec->ops->wait_at);
    sni_wait_open_(word);
    return word;
}

static inline int sni_wait_commit_near(struct sni_waiter *w, struct sni_exec *exec,
                                       const sni_wait_word *word)
{
    exec->ops->suspend(exec, w); /* claimed meanwhile: it comes back at once */
    /* acquire: pairs with the release in sni_wait_claim */
    uint32_t state = sni_atomic_load(word, acquire);
    sni_assert(sni_wait_is_claimed_(state), "a fiber was resumed although nobody ended its wait");
    return sni_wait_result_of_(state);
}

/* The result of a fiber's wait that is over, when nobody touches its frame any more. */
int sni_wait_settled(const struct sni_waiter *w);

static inline int sni_wait_commit_on(struct sni_waiter *w, struct sni_exec *exec, sn_deadline until)
{
    if (sni_unlikely(until.ns != SN_FOREVER.ns || w->wait_at == 0))
        return sni_wait_commit(w, until);
    const sni_wait_word *word = sni_wait_word_of(w);
    /* acquire, twice: pairs with the release in sni_wait_claim */
    if (sni_likely(!sni_wait_is_claimed_(sni_atomic_load(word, acquire))))
        exec->ops->suspend(exec, w);
    uint32_t state = sni_atomic_load(word, acquire);
    if (sni_unlikely((state & (SNI_WAIT_PINNED | SNI_WAIT_ROUSED | SNI_WAIT_STATE)) !=
                     SNI_WAIT_CLAIMED))
        return sni_wait_settled(w);
    return sni_wait_result_of_(state);
}

/* Give other threads a turn. */
void sni_wait_yield_thread(void);

/* Bind `w` to neither fiber nor thread: `ops->resume(who)` is called when it is claimed after
 * sni_wait_published. For operations that a coroutine awaits. */
static inline void sni_wait_begin_with(struct sni_waiter *w, const struct sni_exec_ops *ops,
                                       void *who)
{
    sni_assert_debug(ops->wait_at == 0, "somebody else waits with the state of a fiber");
    sni_atomic_store(&w->own, SNI_WAIT_OPEN, relaxed); /* relaxed: nobody else knows `w` yet */
    w->fiber = who;
    w->ops = ops;
    w->wait_at = 0;
    w->interrupt = NULL;
    sni_list_init(&w->link);
}

/* For executors: the fiber of `w` is saved and may be resumed from now on.
 *
 * Returns  true if it was claimed meanwhile: the executor must resume it itself */
bool sni_wait_published(struct sni_waiter *w);

/* The same for who knows where the state is. */
static inline bool sni_wait_park(sni_wait_word *word);

#endif
