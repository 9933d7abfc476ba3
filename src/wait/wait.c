/* SPDX-License-Identifier: MIT */
/* wait.c - the state of a waiter, and how a claim meets a sleeper.
 *
 *     OPEN      bound, perhaps published; its owner still runs
 *     PARKED    its owner sleeps: a fiber whose registers are saved, a thread in the kernel
 *     CLAIMED   over; the upper 30 bits are the result
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
 * Orders: claiming releases what the claimer wrote before; the owner acquires it when it finds
 * CLAIMED. Parking releases the owner's saved registers to the claimer that will resume it. */
#include "wait/wait.h"

#include "plat/thread.h"

#include <sinew/errno.h>

enum {
    OPEN, /* zero, as sni_wait_begin_on has it */
    PARKED,
    CLAIMED,
    STATE_BITS = 2,
    STATE_MASK = 3,
};

/* Looks before a thread goes to sleep: about a microsecond, less than sleeping costs. */
#ifndef SNI_WAIT_SPINS
#define SNI_WAIT_SPINS 200
#endif

static uint32_t claimed_with(int result)
{
    return ((uint32_t)result << STATE_BITS) | CLAIMED;
}

static int result_of(uint32_t state)
{
    return (int32_t)state >> STATE_BITS;
}

void sni_wait_begin(struct sni_waiter *w)
{
    sni_wait_begin_on(w, sni_exec_current());
}

void sni_wait_begin_with(struct sni_waiter *w, const struct sni_exec_ops *ops, void *who)
{
    sni_atomic_store(&w->state, OPEN, relaxed); /* relaxed: nobody else knows `w` yet */
    w->fiber = who;
    w->ops = ops;
    w->interrupt = NULL;
    sni_list_init(&w->link);
}

static bool is_claimed(uint32_t state)
{
    return (state & STATE_MASK) == CLAIMED;
}

bool sni_wait_is_over(const struct sni_waiter *w)
{
    /* acquire: pairs with the release in sni_wait_claim */
    return is_claimed(sni_atomic_load(&w->state, acquire));
}

int sni_wait_result(const struct sni_waiter *w)
{
    /* acquire: pairs with the release in sni_wait_claim */
    uint32_t state = sni_atomic_load(&w->state, acquire);
    sni_assert(is_claimed(state), "the result of a wait that is not over");
    return result_of(state);
}

bool sni_wait_published(struct sni_waiter *w)
{
    uint32_t found = OPEN;
    /* release: the saved registers, to the claimer; acquire on failure: pairs with claim */
    return !sni_atomic_cas(&w->state, &found, PARKED, release, acquire);
}

/* The deadline has passed before anybody slept. */
static bool is_past(sn_deadline until)
{
    return until.ns <= 0 || (until.ns != SN_FOREVER.ns && until.ns <= sni_now_ns());
}

static int wait_as_fiber(struct sni_waiter *w, sn_deadline until)
{
    struct sni_exec *exec = sni_exec_current();
    int why = 0;
    if (is_past(until))
        why = -ETIMEDOUT;
    else if (until.ns != SN_FOREVER.ns && w->ops->suspend_until == NULL)
        why = -ENOTSUP;
    if (why != 0)
        sni_wait_interrupt(w, why);
    /* acquire: pairs with the release in sni_wait_claim */
    uint32_t state = sni_atomic_load(&w->state, acquire);
    if (is_claimed(state))
        return result_of(state);
    if (until.ns == SN_FOREVER.ns || why != 0)
        w->ops->suspend(exec, w);
    else
        w->ops->suspend_until(exec, w, until.ns);
    /* acquire: pairs with the release in sni_wait_claim */
    state = sni_atomic_load(&w->state, acquire);
    sni_assert(is_claimed(state), "a fiber was resumed although nobody ended its wait");
    return result_of(state);
}

static int wait_as_thread(struct sni_waiter *w, sn_deadline until)
{
    uint32_t state;
    for (int i = 0; i < SNI_WAIT_SPINS; i++) {
        /* acquire: pairs with the release in sni_wait_claim, here and below */
        state = sni_atomic_load(&w->state, acquire);
        if (is_claimed(state))
            return result_of(state);
        sni_cpu_pause();
    }
    if (sni_wait_published(w))
        return result_of(sni_atomic_load(&w->state, acquire)); /* claimed: acquired above */
    for (;;) {
        int rc = sni_plat_park(&w->state.raw_, PARKED, until.ns);
        state = sni_atomic_load(&w->state, acquire); /* acquire: as above */
        if (is_claimed(state))
            return result_of(state);
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

enum hurry {
    SOON,
    LAST,
    QUIETLY,
};

/* What is left to do after a claim that won is put into `wake`, if that may be done later. */
static bool claim(struct sni_waiter *w, int result, enum hurry hurry, struct sni_wake *wake)
{
    /* Read first: once the claim has won, the waiter may be gone. */
    const struct sni_exec_ops *ops = w->ops;
    void *fiber = w->fiber;
    uint32_t *address = &w->state.raw_;
    /* relaxed: only a first guess for the exchange below */
    uint32_t found = sni_atomic_load(&w->state, relaxed);
    do {
        if (is_claimed(found))
            return false;
        /* acq_rel: releases what led to the claim; acquires the registers of a parked fiber */
    } while (!sni_atomic_cas(&w->state, &found, claimed_with(result), acq_rel, relaxed));
    if (found != PARKED)
        return true;
    if (hurry == QUIETLY && (fiber == NULL || ops->resumes_late))
        *wake = (struct sni_wake){fiber == NULL ? NULL : ops, fiber == NULL ? address : fiber};
    else if (fiber == NULL)
        sni_plat_unpark(address, 1);
    else if (hurry == LAST)
        ops->resume_last(fiber);
    else
        ops->resume(fiber);
    return true;
}

bool sni_wait_claim(struct sni_waiter *w, int result)
{
    return claim(w, result, SOON, NULL);
}

bool sni_wait_claim_last(struct sni_waiter *w, int result)
{
    return claim(w, result, LAST, NULL);
}

bool sni_wait_claim_locked(struct sni_waiter *w, int result, struct sni_wake *wake)
{
    sni_assert_debug(wake->who == NULL, "a wake that is owed is forgotten");
    return claim(w, result, QUIETLY, wake);
}

void sni_wait_wake_slow(const struct sni_wake *wake)
{
    if (wake->ops != NULL)
        wake->ops->resume(wake->who);
    else
        sni_plat_unpark(wake->who, 1);
}
