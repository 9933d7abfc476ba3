/* SPDX-License-Identifier: MIT */
/* delay.c - waiting for a point in time, on a clock that the caller supplies.
 *
 * Time only arrives through the clock: each poll reads it, and a poll that is too early asks
 * it for a wake. Nothing is taken back when a future ends first; a wake too many is free. */
#include "future/future_priv.h"
#include "future/own.h"

#include "base/compiler.h"

#include <sinew/combine.h>

sn_deadline sn_clock_after(sn_clock *clock, int64_t after_ns)
{
    int64_t at;
    if (__builtin_add_overflow(clock->now(clock), after_ns, &at))
        at = INT64_MAX;
    return sn_deadline_at_(at);
}

static sn_poll poll_delay(sn_future *fut, sn_cx *cx)
{
    sn_fut_delay *self = sni_container_of(fut, sn_fut_delay, future);
    if (self->clock_->now(self->clock_) >= self->until_.ns)
        return SN_READY(0);
    if (self->clock_->arm != NULL)
        self->clock_->arm(self->clock_, self->until_, cx->waker);
    return SN_PENDING;
}

static const sn_future_vtable delay_vtable = {.poll = poll_delay, .name = SNI_NAME("delay")};

sn_future *sn_fut_delay_init(sn_fut_delay *self, sn_clock *clock, sn_deadline until)
{
    self->clock_ = clock;
    self->until_ = until;
    return sn_future_init(&self->future, &delay_vtable);
}

static sn_poll poll_timeout(sn_future *fut, sn_cx *cx)
{
    sn_fut_timeout *self = sni_container_of(fut, sn_fut_timeout, wrapper_.future);
    sn_poll p = sn_future_poll(self->wrapper_.inner, cx);
    if (!sn_poll_pending(p) || sn_poll_pending(sn_future_poll(&self->limit_.future, cx)))
        return p;
    (void)sn_future_drop(self->wrapper_.inner);
    return SN_READY(-ETIMEDOUT);
}

static const sn_future_vtable timeout_vtable = {
    .poll = poll_timeout,
    .drop = sni_drop_wrapped,
    .name = SNI_NAME("timeout"),
};

sn_future *sn_fut_timeout_init(sn_fut_timeout *self, sn_future *inner, sn_clock *clock,
                               sn_deadline until)
{
    self->wrapper_.inner = inner;
    sn_fut_delay_init(&self->limit_, clock, until);
    return sn_future_init(&self->wrapper_.future, &timeout_vtable);
}
