/* SPDX-License-Identifier: MIT */
/* leaf.c - the three futures that wait for nothing: ready, pending, yield.
 *
 * They are the smallest examples of the contract in future.h, and what tests and other
 * combinators are built from. */
#include "future/future_priv.h"

#include "base/compiler.h"

#include <sinew/combine.h>
#include <sinew/coro.h>

static sn_poll poll_ready(sn_future *fut, sn_cx *cx)
{
    (void)cx;
    return SN_READY(sni_container_of(fut, sn_fut_ready, future)->value);
}

static const sn_future_vtable ready_vtable = {.poll = poll_ready, .name = SNI_NAME("ready")};

sn_future *sn_fut_ready_init(sn_fut_ready *self, int value)
{
    self->value = value;
    return sn_future_init(&self->future, &ready_vtable);
}

static sn_poll poll_pending(sn_future *fut, sn_cx *cx)
{
    (void)fut;
    (void)cx;
    return SN_PENDING;
}

static const sn_future_vtable pending_vtable = {.poll = poll_pending, .name = SNI_NAME("pending")};

sn_future *sn_fut_pending_init(sn_fut_pending *self)
{
    return sn_future_init(&self->future, &pending_vtable);
}

static sn_poll poll_yield(sn_future *fut, sn_cx *cx)
{
    sn_fut_yield *self = sni_container_of(fut, sn_fut_yield, future);
    if (self->given_)
        return SN_READY(0);
    self->given_ = true;
    return sn_coro_yield_(cx);
}

static const sn_future_vtable yield_vtable = {.poll = poll_yield, .name = SNI_NAME("yield")};

sn_future *sn_fut_yield_init(sn_fut_yield *self)
{
    self->given_ = false;
    return sn_future_init(&self->future, &yield_vtable);
}
