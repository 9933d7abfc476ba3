/* SPDX-License-Identifier: MIT */
/* wait.c - the state of a waiter, and how a claim meets a sleeper.
 *
 *     OPEN      bound, perhaps published; its owner still runs
 *     PARKED    its owner sleeps: a fiber whose registers are saved, a thread in the kernel
 *     CLAIMED   over; the upper bits are the result
 *
 *     owner      OPEN -> PARKED   by compare and swap, after it is saved / before it sleeps
 *     claimer    OPEN or PARKED -> CLAIMED, by compare and swap; it wins once
 *
 * Whoever moves second acts. A claimer that finds PARKED resumes the owner. An owner that
 * finds CLAIMED does not sleep (a thread), or is made runnable by its executor (a fiber, which
 * has left its stack by then). So exactly one of the two resumes the fiber, once, and never
 * before its registers are saved.
 *
 * After its compare and swap the claimer touches the waiter no more, except that it may wake
 * a thread by the *address* of the state: the thread may have gone on (a time-out lost the
 * race) and its frame may be reused, in which case somebody sees a spurious wake, which all
 * users of the kernel's futex allow for.
 *
 * Cancelling. Claimers find a waiter in some list, whose lock keeps it alive. Who cancels has found
 * the task only, and not what it waits at; and a frame may be gone at any time. So the state of a
 * fiber's wait is not in the frame but in the fiber's record, whose memory stays one for ever. A
 * canceller claims there like anybody else. That it may meet another wait than it has looked at
 * does no harm, as all of them are to end, until the fiber has left the scope that was cancelled,
 * which it cannot while a canceller is at work (task/scope.c); and between waits it finds CLAIMED.
 * A wait that is not to be claimed but to be asked to end is HELD. Until its owner sleeps there is
 * nobody to ask, and it is left alone; whoever parks it looks again. Once it is PARKED it is
 * *pinned*, and its `interrupt` called: its owner, once claimed, does not go on before the
 * canceller has let go, so its frame is there meanwhile.
 *
 * Giving up. A runtime may stop while its fibers sleep, and be freed; between a claim and the end
 * of its `resume` it must not. Mostly the claimer runs on that very runtime, or holds the lock of
 * what the fiber waits at, which is taken to take back what it has lent. The end of a task holds
 * nothing that who joins from elsewhere could wait for. So it claims *afar*: what was PARKED is
 * ROUSED until `resume` has returned, and neither does the owner go on before that, nor is it given
 * up. A bit of its own, since who cancels the join may have pinned it at the same time.
 *
 * Rejected: a word that says where the waiter is, taken out by its owner after each wait (one more
 * read-modify-write for all waits, for the sake of those that are cancelled).
 *
 * Orders: claiming releases what the claimer wrote before; the owner acquires it when it finds
 * CLAIMED. Parking releases the owner's saved registers to the claimer that will resume it. Parking
 * and cancelling are sequentially consistent with whatever says that the task is cancelled: one of
 * the two sees the other. */
#include "wait/wait.h"

#include "base/assert.h"
#include "plat/thread.h"

#include <sinew/errno.h>

/* Looks before a thread goes to sleep: about a microsecond, less than sleeping costs. */
#ifndef SNI_WAIT_SPINS
#define SNI_WAIT_SPINS 200
#endif

void sni_wait_begin(struct sni_waiter *w)
{
    sni_wait_begin_on(w, sni_exec_current());
}

bool sni_wait_is_over(const struct sni_waiter *w)
{
    /* acquire: pairs with the release in sni_wait_claim */
    return sni_wait_is_claimed_(sni_atomic_load(sni_wait_word_of(w), acquire));
}

bool sni_wait_published(struct sni_waiter *w)
{
    return sni_wait_park(sni_wait_word_of(w));
}

/* ---- cancelling ------------------------------------------------------------------------- */

bool sni_wait_shield(bool on)
{
    struct sni_exec *exec = sni_exec_current();
    if (exec == NULL || exec->fiber == NULL || exec->ops->wait_at == 0)
        return true;
    sni_wait_word *word = (sni_wait_word *)(void *)((char *)exec->fiber + exec->ops->wait_at);
    return sni_wait_shield_at(word, on);
}

/* Pinned: its frame is there. */
static void interrupt_pinned(sni_wait_word *word, struct sni_lent *const *lent, int why)
{
    struct sni_waiter *w = (*lent)->waiter;
    w->interrupt(w, why);
    /* release: pairs with the acquire of the owner that waits for it */
    sni_atomic_fetch_and(word, ~(uint32_t)SNI_WAIT_PINNED, release);
}

bool sni_wait_cancel(sni_wait_word *word, struct sni_lent *const *lent, int why)
{
    const uint32_t untouchable = SNI_WAIT_SHIELDED | SNI_WAIT_PINNED;
    uint32_t found = sni_atomic_load(word, seq_cst); /* seq_cst: see "Orders" */
    for (;;) {
        if (sni_wait_is_claimed_(found) || (found & untouchable) != 0)
            return false;
        bool is_held = (found & SNI_WAIT_HELD) != 0;
        if (is_held && (found & SNI_WAIT_STATE) == SNI_WAIT_OPEN)
            return false; /* who parks it looks again */
        uint32_t next = is_held ? found | SNI_WAIT_PINNED : sni_wait_claimed_with_(found, why);
        /* acq_rel: as in claim; acquires what was lent. relaxed on failure: look again */
        if (!sni_atomic_cas(word, &found, next, acq_rel, relaxed))
            continue;
        if (!is_held)
            return (found & SNI_WAIT_STATE) == SNI_WAIT_PARKED;
        interrupt_pinned(word, lent, why);
        return false;
    }
}

/* Wait until none of the bits is set. Returns the state. */
static SNI_ALWAYS_INLINE uint32_t await_claimer(sni_wait_word *word, uint32_t bits)
{
    /* acquire: pairs with the release in sni_wait_claim, interrupt_pinned and claim_afar */
    uint32_t state = sni_atomic_load(word, acquire);
    for (unsigned round = 0; sni_unlikely((state & bits) != 0); round++) {
        sni_plat_back_off(round);
        state = sni_atomic_load(word, acquire); /* acquire: as above */
    }
    return state;
}

void sni_wait_abandon(sni_wait_word *word)
{
    uint32_t found = sni_atomic_load(word, relaxed); /* relaxed: the loop decides */
    uint32_t next;
    do {
        if (sni_wait_is_claimed_(found)) {
            await_claimer(word, SNI_WAIT_ROUSED);
            return;
        }
        next = (found & ~(uint32_t)SNI_WAIT_STATE) | SNI_WAIT_OPEN | SNI_WAIT_SHIELDED;
        /* acquire: pairs with the parking, for what was lent */
    } while (!sni_atomic_cas(word, &found, next, acquire, relaxed));
}

int sni_wait_settled(const struct sni_waiter *w)
{
    uint32_t state = await_claimer(sni_wait_word_of(w), SNI_WAIT_PINNED | SNI_WAIT_ROUSED);
    sni_assert(sni_wait_is_claimed_(state), "a fiber was resumed although nobody ended its wait");
    return sni_wait_result_of_(state);
}

/* ---- waiting ---------------------------------------------------------------------------- */

bool sni_wait_is_past_now(int64_t until_ns)
{
    return until_ns <= sni_now_ns();
}

static int wait_as_fiber(struct sni_waiter *w, sn_deadline until)
{
    struct sni_exec *exec = sni_exec_current();
    int why = 0;
    if (sni_wait_is_past(until))
        why = -ETIMEDOUT;
    else if (until.ns != SN_FOREVER.ns && w->ops->suspend_until == NULL)
        why = -ENOTSUP;
    if (why != 0)
        sni_wait_interrupt(w, why);
    if (sni_wait_is_over(w))
        return sni_wait_settled(w);
    if (until.ns == SN_FOREVER.ns || why != 0)
        w->ops->suspend(exec, w);
    else
        w->ops->suspend_until(exec, w, until.ns);
    return sni_wait_settled(w);
}

static int wait_as_thread(struct sni_waiter *w, sn_deadline until)
{
    uint32_t state;
    for (int i = 0; i < SNI_WAIT_SPINS; i++) {
        /* acquire: pairs with the release in sni_wait_claim, here and below */
        state = sni_atomic_load(&w->own, acquire);
        if (sni_wait_is_claimed_(state))
            return sni_wait_result_of_(state);
        sni_cpu_pause();
    }
    if (sni_wait_published(w))
        return sni_wait_result_of_(sni_atomic_load(&w->own, acquire)); /* claimed: acquired above */
    for (;;) {
        int rc = sni_plat_park(&w->own.raw_, SNI_WAIT_PARKED, until.ns);
        state = sni_atomic_load(&w->own, acquire); /* acquire: as above */
        if (sni_wait_is_claimed_(state))
            return sni_wait_result_of_(state);
        if (rc == -ETIMEDOUT) {
            sni_wait_interrupt(w, -ETIMEDOUT); /* the deadline is one of the claimers */
            until = SN_FOREVER;
        }
    }
}

int sni_wait_commit(struct sni_waiter *w, sn_deadline until)
{
    if (w->fiber == NULL)
        return wait_as_thread(w, until);
    return wait_as_fiber(w, until);
}

void sni_wait_interrupt(struct sni_waiter *w, int why)
{
    if (w->interrupt != NULL)
        w->interrupt(w, why);
    else
        (void)sni_wait_claim(w, why);
}

void sni_wait_yield_thread(void)
{
    sni_plat_thread_yield();
}

static SNI_ALWAYS_INLINE bool claim(struct sni_waiter *w, int result, bool is_last)
{
    /* Read first: once the claim has won, the waiter may be gone. */
    const struct sni_exec_ops *ops = w->ops;
    void *fiber = w->fiber;
    uint32_t found;
    if (!sni_wait_take_(sni_wait_word_of(w), result, &found))
        return false;
    if ((found & SNI_WAIT_STATE) != SNI_WAIT_PARKED)
        return true;
    if (ops == NULL)
        sni_plat_unpark(&w->own.raw_, 1); /* the address alone */
    else if (is_last)
        ops->resume_last(fiber);
    else
        ops->resume(fiber);
    return true;
}

bool sni_wait_claim(struct sni_waiter *w, int result)
{
    return claim(w, result, false);
}

bool sni_wait_claim_last(struct sni_waiter *w, int result)
{
    return claim(w, result, true);
}

bool sni_wait_claim_afar(struct sni_waiter *w, int result)
{
    sni_assert_debug(w->wait_at != 0, "who is claimed from afar has no record to tell it in");
    /* Read first: once the claim has won and `resume` is over, the waiter may be gone. */
    const struct sni_exec_ops *ops = w->ops;
    void *fiber = w->fiber;
    sni_wait_word *word = sni_wait_word_of(w);
    uint32_t found = sni_atomic_load(word, relaxed); /* relaxed: a first guess */
    uint32_t next;
    do {
        if (sni_wait_is_claimed_(found))
            return false;
        next = sni_wait_claimed_with_(found, result);
        if ((found & SNI_WAIT_STATE) == SNI_WAIT_PARKED)
            next |= SNI_WAIT_ROUSED;
        /* acq_rel: as in claim; relaxed on failure: look again */
    } while (!sni_atomic_cas(word, &found, next, acq_rel, relaxed));
    if ((next & SNI_WAIT_ROUSED) == 0)
        return true;
    ops->resume_last(fiber);
    /* release: pairs with the acquire of the owner, or of who gives it up */
    sni_atomic_fetch_and(word, ~(uint32_t)SNI_WAIT_ROUSED, release);
    return true;
}

void sni_wait_wake_slow(struct sni_wake wake)
{
    if (wake.ops != NULL)
        wake.ops->resume(wake.who);
    else
        sni_plat_unpark(wake.who, 1);
}
