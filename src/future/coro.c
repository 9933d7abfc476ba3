/* SPDX-License-Identifier: MIT */
/* coro.c - the part of a coroutine's life that is the same for all of them.
 *
 * A body is a switch over `resume_`. It is entered in two ways: by a poll, at the line where
 * it stopped; and once more with LEAVING, at its SN_FINALLY (or at its end, if it has none).
 * SN_RETURN takes that second way inside the same poll; a drop takes it from here.
 *
 * `value_` carries the result of an await into the body, and the body's own result from
 * SN_RETURN over SN_FINALLY to the end. The two never overlap: nothing is awaited while
 * leaving. */
#include "future/future_priv.h"

#include "base/assert.h"
#include "base/compiler.h"

#include <sinew/coro.h>

sn_future *sn_coro_start_(sn_coro *co, const sn_future_vtable *vt)
{
    return sni_coro_start(co, vt);
}

/* In place, but for where flash is small. */
static inline sn_poll poll_awaited(sn_future *fut, sn_cx *cx)
{
#ifdef __OPTIMIZE_SIZE__
    return sn_future_poll(fut, cx);
#else
    return sni_likely(fut != NULL) ? sni_future_poll(fut, cx)
                                   : sn_future_poll(fut, cx); /* which says why not */
#endif
}

/* False: still pending, the body returns. True: the result is in value_. */
bool sn_coro_awaited_(sn_coro *co, sn_cx *cx)
{
    if (sni_unlikely(co->resume_ == SN_CORO_LEAVING_)) {
        co->awaiting_ = NULL;
        (void)sni_misuse(-EINVAL, "a coroutine awaits in its SN_FINALLY part");
        return true;
    }
    sn_poll p = poll_awaited(co->awaiting_, cx);
    if (sn_poll_pending(p))
        return false;
    co->awaiting_ = NULL;
    co->value_ = p.value;
    return true;
}

/* Pending, but worth another poll at once. */
sn_poll sn_coro_yield_(sn_cx *cx)
{
    (void)sn_waker_wake_by_ref(cx->waker);
    return SN_PENDING;
}

sn_poll sn_coro_emit_(sn_coro *co, int value)
{
    co->future.state_ = SNI_FUTURE_EMITTED;
    return SN_READY(value);
}

/* True: enter the body again to leave it. False: it was leaving already. */
bool sn_coro_leave_(sn_coro *co, int value)
{
    if (sni_unlikely(co->resume_ == SN_CORO_LEAVING_)) {
        (void)sni_misuse(-EINVAL, "a coroutine returns from its SN_FINALLY part");
        return false;
    }
    co->value_ = value;
    co->resume_ = SN_CORO_LEAVING_;
    return true;
}

sn_poll sn_coro_end_(sn_coro *co)
{
    return SN_READY(co->resume_ == SN_CORO_LEAVING_ ? co->value_ : 0);
}

/* The switch found no case: leaving without an SN_FINALLY, or a place that does not exist. */
sn_poll sn_coro_default_(sn_coro *co)
{
    if (sni_likely(co->resume_ == SN_CORO_LEAVING_))
        return SN_READY(co->value_);
    return SN_READY(sni_misuse(-EINVAL, "a coroutine was resumed at a place it does not have: it "
                                        "awaits inside a switch, or its frame was overwritten"));
}

/* Innermost first, as a stack unwinds: what is awaited, then the coroutine's own clean-up. */
void sn_coro_drop_(sn_future *fut)
{
    sn_coro *co = sni_container_of(fut, sn_coro, future);
    sn_future *awaited = co->awaiting_;
    co->awaiting_ = NULL;
    (void)sn_future_drop(awaited);
    if (co->resume_ == 0)
        return; /* never begun: it has nothing of its own */
    co->resume_ = SN_CORO_LEAVING_;
    co->value_ = -ECANCELED;
    sn_cx cx = {&sni_noop};
    sn_poll p = fut->vt->poll(fut, &cx);
    sni_assert_debug(!sn_poll_pending(p), "a coroutine suspends in its SN_FINALLY part");
    (void)p;
}
