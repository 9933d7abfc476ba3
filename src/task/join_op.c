/* SPDX-License-Identifier: MIT */
/* join_op.c - the end of a task as a future.
 *
 * The waiter lies in the operation, and the claimer must not touch it once the operation is
 * over; but the claimer still has the waker to take out. So the operation is over only when
 * `stage` says so, which is the last that the claimer writes:
 *
 *     WAITING    registered with the task, or not yet polled
 *     RESUMING   claimed; the claimer is about to take the waker out of the cell
 *     OVER       the claimer will not touch the operation any more
 *
 * Why no wake is lost: a poll arms the cell and then looks at the stage; the claimer sets
 * RESUMING and then takes the waker (both are read-modify-writes with a full fence between). If
 * the look finds WAITING, the waker taken later is this poll's. If it finds RESUMING, the poll
 * cannot tell whose was taken, and wakes itself: the stage is a few instructions from OVER. */
#include "task/task.h"

#include "future/waker_cell.h"

#include <assert.h>
#include <stddef.h>

enum {
    WAITING,
    RESUMING,
    OVER,
};

struct join_op {
    sn_future future;
    sn_task *handle;
    sn_exit *how;
    struct sni_task *task; /* NULL before the first poll */
    struct sni_waiter waiter;
    sn_waker_cell cell;
    SNI_ATOMIC(uint32_t) stage;
};

static_assert(sizeof(struct join_op) <= sizeof(sn_join_state), "sn_join_state is too small");

static void resume(void *who)
{
    struct join_op *op = who;
    sni_atomic_exchange(&op->stage, RESUMING, seq_cst);
    bool busy; /* an arm under way: that poll finds RESUMING or OVER */
    sn_waker waker = sni_waker_cell_take(&op->cell, &busy);
    /* release: pairs with the acquire in poll_join and drop_join; the last touch */
    sni_atomic_store(&op->stage, OVER, release);
    if (waker.vt != NULL)
        (void)sn_waker_wake(&waker);
}

static const struct sni_exec_ops join_ops = {.resume = resume, .resume_last = resume};

/* Register with the task. Returns true if it has ended, or is not to be had: *rc tells. */
static bool begin(struct join_op *op, int *rc)
{
    *rc = sni_task_claim_handle(op->handle, &op->task);
    if (*rc < 0)
        return true;
    sni_wait_begin_with(&op->waiter, &join_ops, op);
    bool watching = sni_task_watch(op->task, &op->waiter);
    if (watching && sni_wait_published(&op->waiter)) /* claimed in between: nobody resumes */
        watching = false;
    if (!watching)
        *rc = sni_task_take_result(sni_exec_current(), op->task, op->how);
    return !watching;
}

static sn_poll poll_join(sn_future *fut, sn_cx *cx)
{
    struct join_op *op = sni_container_of(fut, struct join_op, future);
    int rc;
    if (op->task == NULL && begin(op, &rc))
        return SN_READY(rc);
    (void)sn_waker_cell_arm(&op->cell, cx->waker);
    sni_atomic_fence(seq_cst); /* see the top */
    /* acquire: pairs with the release in resume */
    uint32_t stage = sni_atomic_load(&op->stage, acquire);
    if (stage == WAITING)
        return SN_PENDING;
    if (stage == RESUMING) {
        (void)sn_waker_wake_by_ref(cx->waker);
        return SN_PENDING;
    }
    sn_waker_cell_disarm(&op->cell);
    return SN_READY(sni_task_take_result(sni_exec_current(), op->task, op->how));
}

static void drop_join(sn_future *fut)
{
    struct join_op *op = sni_container_of(fut, struct join_op, future);
    if (op->task == NULL)
        return;
    if (!sni_task_unwatch(op->task)) {
        /* acquire: pairs with the release in resume; it is a few instructions away */
        while (sni_atomic_load(&op->stage, acquire) != OVER)
            sni_cpu_pause();
        sni_task_restore_handle(op->task);
    }
    sn_waker_cell_disarm(&op->cell);
}

static const sn_future_vtable join_vtable = {.poll = poll_join, .drop = drop_join, .name = "join"};

sn_future *sn_join_op(sn_join_state *state, sn_task *task, sn_exit *how)
{
    struct join_op *op = (struct join_op *)(void *)state;
    *op = (struct join_op){.handle = task, .how = how};
    return sn_future_init(&op->future, &join_vtable);
}
