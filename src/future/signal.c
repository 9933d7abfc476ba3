/* SPDX-License-Identifier: MIT */
/* signal.c - what interrupt handlers and other threads tell a coroutine.
 *
 * The pattern that every leaf future follows. Poll: arm the cell, then look. Event: add, then
 * wake. waker_cell.c argues why no wake is lost between the two.
 *
 * `sum_` is added to by senders and taken, all of it, by the receiver: nothing sent is lost
 * and nothing is received twice, whether or not somebody was waiting. */
#include "future/future_priv.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"

#include <sinew/combine.h>

static void drop_recv(sn_future *fut)
{
    sn_waker_cell_disarm(&sni_container_of(fut, sn_signal, recv_)->cell_);
}

static sn_poll poll_recv(sn_future *fut, sn_cx *cx)
{
    sn_signal *self = sni_container_of(fut, sn_signal, recv_);
    (void)sn_waker_cell_arm(&self->cell_, cx->waker);
    /* acquire: pairs with the release of every send in the sum */
    uint32_t sum = sni_atomic_exchange(&self->sum_, 0, acquire);
    if (sum == 0)
        return SN_PENDING;
    drop_recv(fut);
    return SN_READY((int)sum);
}

static const sn_future_vtable recv_vtable = {
    .poll = poll_recv,
    .drop = drop_recv,
    .name = SNI_NAME("signal"),
};

sn_future *sn_signal_recv_op(sn_signal *self)
{
    return sn_future_init(&self->recv_, &recv_vtable);
}

int sn_signal_send(sn_signal *self, int amount)
{
    if (sni_unlikely(amount <= 0))
        return sni_misuse(-EINVAL, "a signal was sent an amount that is not positive");
    /* relaxed: only a first guess for the exchange below */
    uint32_t sum = sni_atomic_load(&self->sum_, relaxed);
    uint32_t next;
    do {
        next = sum + (uint32_t)amount;
        if (next > INT32_MAX)
            next = INT32_MAX;
        /* release: pairs with the acquire in poll_recv; each send is a read-modify-write, so
         * the receiver acquires from all of them */
    } while (!sni_atomic_cas(&self->sum_, &sum, next, release, relaxed));
    (void)sn_waker_cell_wake(&self->cell_);
    return 0;
}
