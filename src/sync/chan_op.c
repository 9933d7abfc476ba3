/* SPDX-License-Identifier: MIT */
/* chan_op.c - sending and receiving as futures.
 *
 * The first poll does what the call does; if it must wait, it leaves a party in the channel, whose
 * waiter wakes the poller when it is claimed (await.c). Only counterparts and closes claim it, all
 * under the lock, and they unlink it first. So a drop takes the lock and looks: still linked, and
 * after the unlinking nobody will claim it; not linked, and it has been claimed, with a result
 * that is kept for whoever asks. */
#include "sync/chan.h"

#include "wait/await.h"

#include <sinew/errno.h>

#include <assert.h>

struct chan_op {
    sn_future future;
    int result;
    bool is_send;
    bool is_waiting; /* the party was published */
    sn_chan *handle;
    struct sni_chan *chan;
    struct sni_party party;
    struct sni_waiter waiter;
    struct sni_await await;
};

static_assert(sizeof(struct chan_op) <= sizeof(sn_chan_op), "sn_chan_op is too small");
static_assert(offsetof(struct chan_op, result) == offsetof(sn_chan_op, result), "one is the other");

/* Returns true if it need not wait: `result` tells. */
static bool begin(struct chan_op *op)
{
    struct sni_wake wake = {NULL, NULL};
    struct sni_chan *c = op->chan = sni_chan_find(op->handle);
    if (c == NULL) {
        op->result = SNI_CHAN_MISUSE();
        return true;
    }
    sni_mutex_lock(&c->source.lock);
    int rc = op->is_send ? sni_chan_put(c, op->party.value, &wake)
                         : sni_chan_take(c, op->party.value, &wake);
    if (rc != -EAGAIN) {
        sni_chan_leave(c, &wake);
        op->result = rc;
        return true;
    }
    sni_await_begin(&op->await, &op->waiter);
    op->party.waiter = &op->waiter;
    sni_list_init(&op->party.link);
    sni_list_push_back(op->is_send ? &c->senders : &c->receivers, &op->party.link);
    op->is_waiting = true;
    sni_mutex_unlock(&c->source.lock);
    sni_await_published(&op->await, &op->waiter);
    return false;
}

static sn_poll poll_chan(sn_future *fut, sn_cx *cx)
{
    struct chan_op *op = sni_container_of(fut, struct chan_op, future);
    if (!op->is_waiting && sni_is_spent()) {
        (void)sn_waker_wake_by_ref(cx->waker);
        return SN_PENDING;
    }
    if (!op->is_waiting && begin(op))
        return SN_READY(op->result);
    if (!sni_await_poll(&op->await, cx))
        return SN_PENDING;
    sni_await_finish(&op->await);
    op->result = sni_wait_result(&op->waiter);
    return SN_READY(op->result);
}

static void drop_chan(sn_future *fut)
{
    struct chan_op *op = sni_container_of(fut, struct chan_op, future);
    if (!op->is_waiting)
        return;
    sni_mutex_lock(&op->chan->source.lock);
    bool is_claimed = sni_list_empty(&op->party.link);
    sni_list_remove(&op->party.link);
    sni_mutex_unlock(&op->chan->source.lock);
    if (is_claimed) {
        sni_await_settle(&op->await);
        op->result = sni_wait_result(&op->waiter);
    }
    sni_await_finish(&op->await);
}

static const sn_future_vtable chan_vtable = {.poll = poll_chan, .drop = drop_chan, .name = "chan"};

static sn_future *make(sn_chan_op *state, sn_chan *ch, void *value, bool is_send)
{
    struct chan_op *op = (struct chan_op *)(void *)state;
    *op = (struct chan_op){.result = -ECANCELED, .is_send = is_send, .handle = ch};
    op->party.value = value;
    return sn_future_init(&op->future, &chan_vtable);
}

sn_future *sn_chan_send_op(sn_chan_op *op, sn_chan *ch, const void *value)
{
    return make(op, ch, (void *)(uintptr_t)value, true);
}

sn_future *sn_chan_recv_op(sn_chan_op *op, sn_chan *ch, void *value)
{
    return make(op, ch, value, false);
}

static void tell_op(const sn_future *fut, sni_place_fn *each, void *arg)
{
    const struct chan_op *op = sni_container_of(fut, struct chan_op, future);
    if (!op->is_waiting)
        return;
    struct sni_place place = sni_source_place(&op->chan->source, op->is_send ? "send" : "recv");
    each(&place, arg);
}

const struct sni_wait_kind sni_chan_op_waits = {.vtable = &chan_vtable, .tell_op = tell_op};
