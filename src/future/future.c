/* SPDX-License-Identifier: MIT */
/* future.c - the order in which a future may be polled, cancelled and dropped.
 *
 * Kinds of futures implement three small functions and may rely on being called in a
 * sensible order; this file is why. Every call goes through the state below, so that a
 * misuse is answered here, once, and never reaches an implementation.
 *
 *     NEW        not polled yet; zero, so that a zeroed head is valid
 *     SUSPENDED  pending, or a generator between two values
 *     POLLING    its poll is on the stack right now
 *     EMITTED    set by a generator during POLLING: ready, but SUSPENDED afterwards
 *     CANCELED   cancelled by dropping: its next poll completes with -ECANCELED
 *     DONE       completed
 *     DROPPED    abandoned, or dropped after completion
 *
 * The first two are *open*: the future may be polled, cancelled and dropped.
 *
 * The state is a plain word: a future belongs to one thread at a time (rule 4). */
#include "future/future_priv.h"

#include "base/assert.h"
#include "base/compiler.h"

#include <sinew/future.h>

sn_future *sn_future_init(sn_future *fut, const sn_future_vtable *vt)
{
    fut->vt = vt;
    fut->state_ = SNI_FUTURE_NEW;
    return fut;
}

static SNI_COLD sn_poll refuse_poll(sn_future *fut)
{
    if (fut == NULL)
        return SN_READY(sni_misuse(-EINVAL, "NULL was polled: a constructor failed, or none ran"));
    switch (fut->state_) {
    case SNI_FUTURE_NEW:
    case SNI_FUTURE_SUSPENDED:
        return SN_READY(sni_misuse(-EINVAL, "a future was polled without a vtable or an sn_cx: it "
                                            "was never initialised"));
    case SNI_FUTURE_CANCELED:
        fut->state_ = SNI_FUTURE_DONE;
        return SN_READY(-ECANCELED);
    case SNI_FUTURE_POLLING:
    case SNI_FUTURE_EMITTED:
        return SN_READY(sni_misuse(-EDEADLK, "a future was polled from within its own poll: it "
                                             "awaits itself, directly or through another"));
    case SNI_FUTURE_DONE:
        return SN_READY(sni_misuse(-EALREADY, "a finished future was polled again"));
    default:
        return SN_READY(sni_misuse(-EALREADY, "a dropped future was polled"));
    }
}

static inline bool is_open(const sn_future *fut)
{
    return fut->state_ <= SNI_FUTURE_SUSPENDED;
}

sn_poll sn_future_poll(sn_future *fut, sn_cx *cx)
{
    if (sni_unlikely(fut == NULL || !is_open(fut) || fut->vt == NULL || cx == NULL))
        return refuse_poll(fut);
    return sni_future_poll(fut, cx);
}

/* Abandon `fut` for `state`, which is DROPPED or CANCELED. */
static int end_as(sn_future *fut, uint32_t state)
{
    switch (fut->state_) {
    case SNI_FUTURE_NEW:
    case SNI_FUTURE_SUSPENDED:
        if (fut->vt == NULL)
            return sni_misuse(-EINVAL, "a future without a vtable was dropped or cancelled");
        fut->state_ = state; /* first: what `drop` calls must find the future closed */
        if (fut->vt->drop != NULL)
            fut->vt->drop(fut);
        return 0;
    case SNI_FUTURE_POLLING:
    case SNI_FUTURE_EMITTED:
        return sni_misuse(-EDEADLK, "a future was dropped or cancelled from within its own poll");
    case SNI_FUTURE_DROPPED:
        return sni_misuse(-EALREADY, "a future was dropped or cancelled after it was dropped");
    default: /* completed or cancelled: it holds nothing */
        if (state == SNI_FUTURE_DROPPED)
            fut->state_ = state;
        return 0;
    }
}

int sn_future_cancel(sn_future *fut)
{
    if (fut == NULL)
        return sni_misuse(-EINVAL, "NULL was cancelled");
    if (!is_open(fut) || fut->vt == NULL || fut->vt->cancel == NULL)
        return end_as(fut, SNI_FUTURE_CANCELED);
    fut->vt->cancel(fut);
    return 0;
}

int sn_future_drop(sn_future *fut)
{
    return fut != NULL ? end_as(fut, SNI_FUTURE_DROPPED) : 0;
}

bool sn_future_finished(const sn_future *fut)
{
    return fut != NULL && fut->state_ == SNI_FUTURE_DONE;
}
