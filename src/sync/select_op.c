/* SPDX-License-Identifier: MIT */
/* select_op.c - a select that a coroutine awaits.
 *
 * The phases are those of select.c; a claim wakes the poller (await.c). Futures among the cases are
 * polled with the poller's own waker, so it may be woken by one of them while nobody has claimed
 * the select. A poll cannot tell, and a future must not be polled while somebody may claim. So it
 * claims the select itself, and if it wins begins anew; if not, the winner's case has taken place.
 * */
#include "sync/select_priv.h"

#include "wait/await.h"

#include <sinew/errno.h>

#include <assert.h>

struct select_op {
    sn_future future;
    int result;
    bool is_waiting; /* others know of it */
    uint8_t n;       /* these: as told */
    uint8_t flags;
    struct sni_select select;
    struct sni_await await;
};

static_assert(sizeof(struct select_op) <= sizeof(sn_select_state), "sn_select_state is too small");
static_assert(offsetof(struct select_op, result) == offsetof(sn_select_state, result),
              "one is the other");

/* Returns what took place, or an error; -EAGAIN: it waits */
static int begin(struct select_op *op, const sn_waker *waker)
{
    struct sni_select *s = &op->select;
    int rc = sni_select_prepare(s, (sn_case *)(void *)s->vigil.cases, op->n, op->flags);
    if (rc < 0)
        return rc;
    if (s->outside > 0) {
        rc = sni_select_look(s, waker);
        if (rc != -EAGAIN)
            return rc;
    }
    rc = sni_select_get_ready(s, INT64_MAX, true);
    if (rc < 0)
        return rc;
    sni_await_begin(&op->await, &s->vigil.waiter);
    rc = sni_select_begin(s);
    if (rc != -EAGAIN)
        return rc;
    op->is_waiting = true;
    sni_await_published(&op->await, &s->vigil.waiter);
    return -EAGAIN;
}

/* Somebody woke us, perhaps a future. Afterwards it is claimed, and the claimer has let go. */
static void recall(struct select_op *op)
{
    struct sni_wake wake = {NULL, NULL}; /* of ourselves: we run already */
    if (!sni_wait_claim_locked(&op->select.vigil.waiter, SNI_SAYS_AGAIN, &wake))
        sni_await_settle(&op->await);
}

/* It was claimed. */
static int stop(struct select_op *op)
{
    op->is_waiting = false;
    sni_select_end(&op->select, false);
    return sni_select_outcome(&op->select, sni_wait_result(&op->select.vigil.waiter));
}

static sn_poll poll_select(sn_future *fut, sn_cx *cx)
{
    struct select_op *op = sni_container_of(fut, struct select_op, future);
    bool is_recalled = op->is_waiting && op->select.has_futures;
    int rc = -EAGAIN;
    if (!op->is_waiting && sni_is_spent()) {
        (void)sn_waker_wake_by_ref(cx->waker);
        return SN_PENDING;
    }
    while (rc == -EAGAIN) {
        if (!op->is_waiting) {
            rc = begin(op, cx->waker);
            continue;
        }
        if (is_recalled)
            recall(op);
        else if (!sni_await_poll(&op->await, &op->select.vigil.waiter, cx))
            return SN_PENDING;
        is_recalled = false;
        rc = stop(op);
    }
    sni_await_finish(&op->await);
    op->result = rc;
    return SN_READY(rc);
}

static void drop_select(sn_future *fut)
{
    struct select_op *op = sni_container_of(fut, struct select_op, future);
    struct sni_select *s = &op->select;
    if (!op->is_waiting)
        return;
    sni_select_end(s, false);
    if (sni_wait_is_over(&s->vigil.waiter)) {
        sni_await_settle(&op->await);
        int said = sni_wait_result(&s->vigil.waiter);
        if (said < SNI_SAYS_TOLD && !s->vigil.cases[said % SNI_CASES_MAX].kind->is_news)
            op->result = sni_select_outcome(s, said); /* else nothing was consumed */
    }
    sni_await_finish(&op->await);
}

static const sn_future_vtable select_vtable = {
    .poll = poll_select, .drop = drop_select, .name = "select"};

sn_future *sn_select_op(sn_select_state *state, sn_case *cases, size_t n, unsigned flags)
{
    struct select_op *op = (struct select_op *)(void *)state;
    op->result = -ECANCELED;
    op->is_waiting = false;
    op->await = (struct sni_await){.stage = {0}};
    op->n = n <= SNI_CASES_MAX ? (uint8_t)n : SNI_CASES_MAX + 1;
    op->flags = flags <= UINT8_MAX ? (uint8_t)flags : UINT8_MAX;
    op->select.vigil.cases = (struct sni_case *)(void *)cases;
    op->select.nudge = NULL;
    return sn_future_init(&op->future, &select_vtable);
}

static void tell_op(const sn_future *fut, sni_place_fn *each, void *arg)
{
    const struct select_op *op = sni_container_of(fut, struct select_op, future);
    if (op->is_waiting)
        sni_select_tell(&op->select, each, arg);
}

const struct sni_wait_kind sni_select_op_waits = {.vtable = &select_vtable, .tell_op = tell_op};
