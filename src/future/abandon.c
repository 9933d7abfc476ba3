/* SPDX-License-Identifier: MIT */
/* abandon.c - dropping a future whose poll never comes back.
 *
 * Who panics in a poll leaves the stack, with all the polls on it: a chain of futures from the
 * task's own down to the one that panicked, each of them POLLING for ever. What hangs on that chain
 * besides is merely suspended, and known to others: to a channel, a lock, the kernel. It would be
 * served there, and would take away what somebody else could have had; or its memory would be gone.
 *
 * So the chain is followed, by the kinds that are made of other futures, and what hangs on it is
 * dropped as always. The links of the chain themselves are closed without a word: a coroutine that
 * panicked, or awaited what did, is not entered again for its SN_FINALLY, as the body of a fiber is
 * not. A kind that is not ours and polls others by itself is left as it is: nobody can tell what it
 * was about to do.
 *
 * Rejected: to let sn_future_drop do it. That a future is POLLING is how that knows a drop from
 * within its own poll, which is a misuse. */
#include "future/own.h"

#include "base/compiler.h"
#include "future/future_priv.h"

#include <sinew/coro.h>

static void abandon_all(sn_future **items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!sn_future_finished(items[i]))
            sni_future_abandon(items[i]);
}

/* Its poll is gone; so is what it was about to do with those it polled. */
static void follow(sn_future *fut)
{
    if (fut->vt->drop == sn_coro_drop_) {
        sn_coro *co = sni_container_of(fut, sn_coro, future);
        sni_future_abandon(co->awaiting_);
    } else if (fut->vt->drop == sni_drop_members) {
        sn_fut_members_ *members = (sn_fut_members_ *)(void *)fut;
        abandon_all(members->items, members->count);
    } else if (fut->vt->drop == sni_drop_wrapped) {
        abandon_all(&((sn_fut_wrapper_ *)(void *)fut)->inner, 1);
    }
}

void sni_future_abandon(sn_future *fut)
{
    if (fut == NULL)
        return;
    switch (fut->state_) {
    case SNI_FUTURE_POLLING:
    case SNI_FUTURE_EMITTED:
        fut->state_ = SNI_FUTURE_DROPPED; /* first: what is called below may panic, too */
        follow(fut);
        return;
    case SNI_FUTURE_DONE:
    case SNI_FUTURE_DROPPED:
        return;
    default:
        (void)sn_future_drop(fut);
    }
}
