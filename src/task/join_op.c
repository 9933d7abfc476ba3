/* SPDX-License-Identifier: MIT */
/* join_op.c - the end of a task as a future.
 *
 * The first poll uses up the handle and lets the task claim the operation's waiter when it ends;
 * await.c tells what follows. A drop takes that back, and the handle is good again. */
#include "task/task.h"

#include "wait/await.h"

#include <assert.h>
#include <stddef.h>

struct join_op {
    sn_future future;
    sn_task *handle;
    sn_exit *how;
    struct sni_task *task; /* NULL before the first poll */
    struct sni_waiter waiter;
    struct sni_await await;
};

static_assert(sizeof(struct join_op) <= sizeof(sn_join_state), "sn_join_state is too small");

/* Register with the task. Returns true if it has ended, or is not to be had: *rc tells. */
static bool begin(struct join_op *op, int *rc)
{
    *rc = sni_task_claim_handle(op->handle, &op->task);
    if (*rc < 0)
        return true;
    sni_await_begin(&op->await, &op->waiter);
    if (sni_task_watch(op->task, &op->waiter)) {
        sni_await_published(&op->await, &op->waiter);
        return false;
    }
    *rc = sni_task_take_result(sni_exec_current(), op->task, op->how);
    return true;
}

static sn_poll poll_join(sn_future *fut, sn_cx *cx)
{
    struct join_op *op = sni_container_of(fut, struct join_op, future);
    int rc;
    if (op->task == NULL && begin(op, &rc))
        return SN_READY(rc);
    if (!sni_await_poll(&op->await, &op->waiter, cx))
        return SN_PENDING;
    sni_await_finish(&op->await);
    return SN_READY(sni_task_take_result(sni_exec_current(), op->task, op->how));
}

static void drop_join(sn_future *fut)
{
    struct join_op *op = sni_container_of(fut, struct join_op, future);
    if (op->task == NULL)
        return;
    if (!sni_task_unwatch(op->task)) {
        sni_await_settle(&op->await);
        sni_task_restore_handle(op->task);
    }
    sni_await_finish(&op->await);
}

static const sn_future_vtable join_vtable = {.poll = poll_join, .drop = drop_join, .name = "join"};

sn_future *sn_join_op(sn_join_state *state, sn_task *task, sn_exit *how)
{
    struct join_op *op = (struct join_op *)(void *)state;
    *op = (struct join_op){.handle = task, .how = how};
    return sn_future_init(&op->future, &join_vtable);
}

static void tell_op(const sn_future *fut, sni_place_fn *each, void *arg)
{
    const struct join_op *op = sni_container_of(fut, struct join_op, future);
    struct sni_place place = {"join", op->task, (uintptr_t)op->task, SNI_TIE_OWNER, NULL};
    if (op->task != NULL)
        each(&place, arg);
}

const struct sni_wait_kind sni_join_op_waits = {.vtable = &join_vtable, .tell_op = tell_op};
