/* SPDX-License-Identifier: MIT */
/* waker_cell.c - one waker, handed from a poller to whoever makes the event happen.
 *
 * Words: the *poller* arms and disarms, one thread at a time. *Wakers* are any number of
 * other threads or interrupt handlers.
 *
 * The state has two bits; who sets one from zero owns `waker_`:
 *
 *     0                 nobody is at the waker
 *     ARMING            the poller is writing it
 *     WAKING            a waker (or disarm) is taking it out
 *     ARMING | WAKING   a wake came while the poller was writing: the poller wakes itself
 *
 * Invariant: `waker_` is touched only by the one that moved the state away from 0, until it
 * moves it back. Nobody waits for anybody: the one who comes second leaves a bit (WAKING) or
 * wakes at once, so a handler that interrupts an arm half way returns immediately.
 *
 * Why no wake is lost: the poller arms and then reads the event's flag; the event writes the
 * flag and then wakes. The two read-modify-writes of `state_` are ordered. If the wake is
 * first, the poller's acquire makes the flag visible to its read. If the arm is first, the
 * wake finds the waker, or finds ARMING and leaves a bit. An arm that meets WAKING, when it
 * opens or when it closes, wakes its own waker: the poll is repeated, which is always right.
 *
 * Orders: taking ownership is acquire, giving it back is release, so that `waker_` passes
 * between owners. The fetch_or of a take is both: it acquires the waker that an arm released,
 * and it releases the event's flag to an arm under way. Since every change of the state is a
 * read-modify-write, a wake that finds WAKING and leaves is still passed on: a plain store of 0
 * would cut the chain and the second event's flag could stay invisible.
 *
 * Rejected: a spin lock (a handler would spin for ever on the code it interrupted); masking
 * interrupts (freestanding code cannot know how, and threads would not care). */
#include "future/waker_cell.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"

#include <sinew/future.h>

enum {
    ARMING = 1,
    WAKING = 2,
};

int sn_waker_cell_arm(sn_waker_cell *cell, const sn_waker *waker)
{
    if (sni_unlikely(waker == NULL || waker->vt == NULL))
        return sni_misuse(-EINVAL, "a waker cell was armed with an empty waker");

    uint32_t found = 0;
    /* acquire on both: pairs with the release that gave waker_ back, or with that of a take */
    if (sni_likely(sni_atomic_cas(&cell->state_, &found, ARMING, acquire, acquire))) {
        sn_waker before = {0};
        if (!sn_waker_same(&cell->waker_, waker)) {
            before = cell->waker_;
            cell->waker_ = sn_waker_clone(waker);
        }
        /* acq_rel: hands waker_ to the take; acquires the flag of a wake that came meanwhile */
        found = sni_atomic_exchange(&cell->state_, 0, acq_rel) & WAKING;
        sn_waker_drop(&before); /* outside: it may run the executor's code */
    } else if (found & ARMING) {
        return sni_misuse(-EBUSY, "a waker cell is armed by two pollers at once");
    }
    if (sni_unlikely(found != 0))
        (void)sn_waker_wake_by_ref(waker);
    return 0;
}

sn_waker sni_waker_cell_take(sn_waker_cell *cell, bool *busy)
{
    sn_waker waker = {0};
    /* acq_rel: acquires waker_ from the arm before; releases the event's flag to an arm */
    *busy = sni_atomic_fetch_or(&cell->state_, WAKING, acq_rel) != 0;
    if (*busy)
        return waker;
    waker = cell->waker_;
    cell->waker_ = (sn_waker){0};
    /* acq_rel: hands the emptied waker_ to the next arm, and passes on the flag of a wake
     * that came second and left its work to us */
    sni_atomic_exchange(&cell->state_, 0, acq_rel);
    return waker;
}

int sn_waker_cell_wake(sn_waker_cell *cell)
{
    bool busy;
    sn_waker waker = sni_waker_cell_take(cell, &busy);
    if (busy)
        return 0;
    return waker.vt != NULL ? sn_waker_wake(&waker) : -ESRCH;
}

void sn_waker_cell_disarm(sn_waker_cell *cell)
{
    bool busy;
    sn_waker waker = sni_waker_cell_take(cell, &busy);
    sn_waker_drop(&waker);
}
