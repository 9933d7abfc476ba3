/* SPDX-License-Identifier: MIT */
/* news_op.c - a case that is told to look again, as a future of its own.
 *
 * A poll attempts it under the lock of its source, and if that must wait leaves the case's party in
 * the line. Who serves the party only claims; the poll that follows attempts again. So a drop, at
 * whatever time, has consumed nothing: it takes the lock to leave the line, and waits for a claimer
 * that is just at it. */
#include "sync/news_op.h"

#include "base/assert.h"
#include "wait/await.h"

#include <sinew/errno.h>

#include <assert.h>
#include <string.h>

struct news_op {
    sn_future future;
    int result;
    bool is_waiting; /* the party was published */
    struct sni_case c;
    struct sni_waiter waiter;
    struct sni_await await;
};

static_assert(sizeof(struct news_op) <= sizeof(sn_news_op), "sn_news_op is too small");
static_assert(offsetof(struct news_op, result) == offsetof(sn_news_op, result), "one is the other");

/* Returns false if it waits; else `result` tells. */
static bool attempt(struct news_op *op)
{
    struct sni_case *c = &op->c;
    struct sni_wake wake = {NULL, NULL}; /* nobody waits for who receives */
    c->source = c->at != NULL ? c->kind->find(c) : NULL;
    if (c->source == NULL) {
        op->result = sni_misuse(-EBADF, "a broadcast or a watch is used that is gone, or was none");
        return true;
    }
    sni_brief_lock(&c->source->lock);
    int rc = c->kind->attempt(c, &wake);
    if (rc == -EAGAIN) {
        sni_await_begin(&op->await, &op->waiter);
        c->party = (struct sni_party){.waiter = &op->waiter};
        sni_list_init(&c->party.link);
        sni_list_push_back(c->kind->line(c), &c->party.link);
        op->is_waiting = true;
    }
    sni_brief_unlock(&c->source->lock);
    if (rc == -EAGAIN) {
        sni_await_published(&op->await, &op->waiter);
        return false;
    }
    op->result = rc;
    return true;
}

static sn_poll poll_news(sn_future *fut, sn_cx *cx)
{
    struct news_op *op = sni_container_of(fut, struct news_op, future);
    if (!op->is_waiting && sni_is_spent()) { /* it has not looked yet */
        (void)sn_waker_wake_by_ref(cx->waker);
        return SN_PENDING;
    }
    for (;;) {
        if (!op->is_waiting && attempt(op)) {
            sni_await_finish(&op->await);
            return SN_READY(op->result);
        }
        if (!sni_await_poll(&op->await, &op->waiter, cx))
            return SN_PENDING;
        op->is_waiting = false;
    }
}

static void drop_news(sn_future *fut)
{
    struct news_op *op = sni_container_of(fut, struct news_op, future);
    if (!op->is_waiting)
        return;
    sni_brief_lock(&op->c.source->lock);
    bool is_claimed = sni_list_empty(&op->c.party.link);
    sni_list_remove(&op->c.party.link);
    sni_brief_unlock(&op->c.source->lock);
    if (is_claimed)
        sni_await_settle(&op->await);
    sni_await_finish(&op->await);
}

static const sn_future_vtable news_vtable = {.poll = poll_news, .drop = drop_news, .name = "news"};

sn_future *sni_news_op(sn_news_op *state, const sn_case *c)
{
    struct news_op *op = (struct news_op *)(void *)state;
    op->result = -ECANCELED;
    op->is_waiting = false;
    memcpy(&op->c, c, sizeof(op->c));
    op->await = (struct sni_await){.stage = {0}};
    return sn_future_init(&op->future, &news_vtable);
}

static void tell_op(const sn_future *fut, sni_place_fn *each, void *arg)
{
    const struct news_op *op = sni_container_of(fut, struct news_op, future);
    if (!op->is_waiting)
        return;
    struct sni_place place = sni_source_place(op->c.source, op->c.kind->name);
    each(&place, arg);
}

const struct sni_wait_kind sni_news_op_waits = {.vtable = &news_vtable, .tell_op = tell_op};
