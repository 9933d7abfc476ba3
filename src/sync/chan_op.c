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

enum {
    PENDING = SNI_CHAN_ASK + 1, /* not yet a result, which is 0 or negative */
};

struct chan_op {
    sn_future future;
    int result;
    bool is_send;
    bool is_waiting; /* the party was published */
    union {
        sn_chan *handle;       /* until it is waiting */
        struct sni_chan *chan; /* since then          */
    };
    struct sni_party party; /* its value: always; the rest, and what follows: since then */
    struct sni_waiter waiter;
    struct sni_await await;
};

/* It was claimed, and the claimer has let go. */
static int finish(struct chan_op *op)
{
    sni_await_finish(&op->await);
    return sni_wait_result(&op->waiter);
}

static_assert(sizeof(struct chan_op) == sizeof(sn_chan_op), "sn_chan_op is as large as need be");
static_assert(offsetof(struct chan_op, result) == offsetof(sn_chan_op, result), "one is the other");

/* Under the lock: leave a party. Returns true if it was served already. */
static bool enlist(struct chan_op *op, struct sni_chan *c, sn_cx *cx)
{
    sni_await_begin_armed(&op->await, &op->waiter, cx);
    op->party = (struct sni_party){.waiter = &op->waiter, .value = op->party.value};
    sni_list_init(&op->party.link);
    sni_list_push_back(op->is_send ? &c->senders : &c->receivers, &op->party.link);
    op->chan = c;
    op->is_waiting = true;
    sni_brief_unlock(&c->source.lock);
    return sni_await_published(&op->await, &op->waiter);
}

/* Under the lock, which is given back: what was not for the quick. As calls do, it pays for several
 * uses at once (chan_core.c); but before, since who must give way then has done nothing yet. */
static int begin_held(struct chan_op *op, struct sni_chan *c, sn_cx *cx)
{
    struct sni_wake wake = {NULL, NULL};
    void *value = op->party.value;
    if ((c->uses + 1) % SNI_CHAN_USES == 0 && sni_is_spent_by(SNI_CHAN_USES)) {
        sni_brief_unlock(&c->source.lock);
        (void)sn_waker_wake_by_ref(cx->waker);
        return PENDING;
    }
    int rc = op->is_send ? sni_chan_put(c, value, &wake) : sni_chan_take(c, value, &wake);
    if (rc == -EAGAIN)
        return rc;
    if (rc == 0)
        c->uses++;
    sni_chan_leave(c, wake);
    return rc;
}

static sn_poll said(struct chan_op *op, int rc)
{
    if (rc == PENDING)
        return SN_PENDING;
    op->result = rc;
    return SN_READY(rc);
}

/* Under the lock, which is given back; the quick way said `rc`. Not inlined, nor the next, so that
 * the quick way saves no registers for it. */
SNI_NEVER_INLINE static sn_poll begin_slowly(struct chan_op *op, struct sni_chan *c, sn_cx *cx,
                                             int rc)
{
    if (rc == SNI_CHAN_ASK)
        rc = begin_held(op, c, cx);
    if (rc == SNI_CHAN_WAIT || rc == -EAGAIN)
        rc = enlist(op, c, cx) ? finish(op) : PENDING;
    return said(op, rc);
}

SNI_NEVER_INLINE static sn_poll poll_waiting(struct chan_op *op, sn_cx *cx)
{
    return said(op, sni_await_poll(&op->await, &op->waiter, cx) ? finish(op) : PENDING);
}

static sn_poll poll_chan(sn_future *fut, sn_cx *cx)
{
    struct chan_op *op = sni_container_of(fut, struct chan_op, future);
    if (op->is_waiting)
        return poll_waiting(op, cx);
    struct sni_chan *c = sni_chan_find(op->handle);
    if (sni_unlikely(c == NULL))
        return said(op, SNI_CHAN_MISUSE());
    void *value = op->party.value;
    int rc = op->is_send ? sni_chan_send_quick(c, value) : sni_chan_recv_quick(c, value);
    if (sni_unlikely(rc != 0))
        return begin_slowly(op, c, cx, rc);
    op->result = 0;
    return SN_READY(0);
}

static void drop_chan(sn_future *fut)
{
    struct chan_op *op = sni_container_of(fut, struct chan_op, future);
    if (!op->is_waiting)
        return;
    sni_brief_lock(&op->chan->source.lock);
    bool is_claimed = sni_list_empty(&op->party.link);
    sni_list_remove(&op->party.link);
    sni_brief_unlock(&op->chan->source.lock);
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
    op->result = -ECANCELED;
    op->is_send = is_send;
    op->is_waiting = false;
    op->handle = ch;
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
