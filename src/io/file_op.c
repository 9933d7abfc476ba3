/* SPDX-License-Identifier: MIT */
/* file_op.c - polling an operation on a file, and dropping it.
 *
 * A poll tries, and if that would have to wait gives a POLL to the driver of the worker that it
 * runs on; the operation may later be polled on another one. The driver completes it under its
 * lock, claim and wake included. So a drop that has cancelled it, or found it complete, under that
 * same lock knows that nobody touches it any more. */
#include "io/file_op.h"

#include "io/file_priv.h"

#include <sinew/errno.h>

#include <assert.h>

static_assert(sizeof(struct sni_file_op) <= sizeof(sn_io_state), "sn_io_state is too small");
static_assert(sizeof(struct sni_op) <= 128, "an operation is two lines of memory");

static const struct sni_file_op_kind *kind_of(const struct sni_file_op *fop)
{
    return (const struct sni_file_op_kind *)(const void *)fop->future.vt; /* its first member */
}

static enum sni_direction direction(const struct sni_file_op *fop)
{
    return (fop->op.events & SNI_READABLE) != 0 ? SNI_IN : SNI_OUT;
}

static int use_file(struct sni_file_op *fop)
{
    struct sni_file *file;
    int rc = sni_file_use(fop->handle, fop->kinds, &file);
    if (rc < 0)
        return rc;
    fop->file = file;
    fop->is_using = true;
    fop->op.fd = file->fd;
    return 0;
}

static sn_poll end(struct sni_file_op *fop, ptrdiff_t result)
{
    if (result > INT32_MAX)
        result = INT32_MAX;
    const struct sni_file_op_kind *kind = kind_of(fop);
    int value = kind->finish != NULL ? kind->finish(fop, result) : (int)result;
    if (fop->is_using)
        sni_file_unuse(fop->file);
    fop->is_using = false;
    sni_await_finish(&fop->await);
    return SN_READY(value);
}

/* Give a POLL to the driver. Returns 0; 1: it is complete already; -errno */
static int start_waiting(struct sni_file_op *fop, sn_cx *cx, uint32_t ticket, bool is_guess)
{
    struct sni_exec *exec = sni_exec_current();
    struct sni_driver *driver = NULL;
    if (exec == NULL || exec->ops->driver == NULL)
        return -EPERM;
    int rc = exec->ops->driver(exec, &driver);
    if (rc < 0)
        return rc;
    fop->op.kept = fop->is_using;
    fop->op.is_guess = is_guess;
    fop->op.flags = ticket;
    sni_await_begin_armed(&fop->await, &fop->op.waiter, cx);
    if (fop->is_using)
        rc = sni_file_submit(fop->file, driver, &fop->op);
    else
        sni_driver_submit(driver, &fop->op);
    if (rc < 0)
        return rc;
    fop->is_waiting = true;
    return sni_await_published(&fop->await, &fop->op.waiter) ? 1 : 0;
}

/* The driver is done with it. */
static ptrdiff_t stop_waiting(struct sni_file_op *fop)
{
    fop->is_waiting = false;
    if (fop->is_using) {
        sni_file_unlink(fop->file, &fop->op);
        sni_file_note_ready(fop->file, direction(fop), fop->op.flags);
    }
    int told = fop->op.result;
    return told < 0 ? told : sni_events_told(told, fop->op.events);
}

/* Returns the result, or -EAGAIN and the ticket to wait with. Only who wants bytes may take it for
 * granted that there are none (*dry). */
static ptrdiff_t try(struct sni_file_op *fop, uint32_t *ticket, bool *dry)
{
    const struct sni_file_op_kind *kind = kind_of(fop);
    if (kind->attempt == NULL) {
        *ticket = fop->is_using ? sni_file_proof(fop->file, fop->op.events) : 0;
        *dry = true; /* or perhaps not: a guess */
        return -EAGAIN;
    }
    if (fop->is_using)
        *ticket = sni_file_ticket(fop->file, direction(fop), dry);
    *dry = *dry && fop->op.bytes > 0;
    if (*dry)
        return -EAGAIN;
    ptrdiff_t result = kind->attempt(fop);
    if (fop->is_using)
        sni_file_tried(fop->file, direction(fop), result, fop->op.bytes, *ticket);
    return result;
}

sn_poll sni_file_op_poll(sn_future *fut, sn_cx *cx)
{
    struct sni_file_op *fop = sni_container_of(fut, struct sni_file_op, future);
    if (fop->kinds != 0 && !fop->is_using) {
        int rc = use_file(fop);
        if (rc < 0)
            return end(fop, rc);
    }
    for (;;) {
        if (fop->is_waiting) {
            if (!sni_await_poll(&fop->await, &fop->op.waiter, cx))
                return SN_PENDING;
            ptrdiff_t events = stop_waiting(fop);
            if (events < 0 || kind_of(fop)->attempt == NULL)
                return end(fop, events);
        }
        if (sni_is_spent()) {
            (void)sn_waker_wake_by_ref(cx->waker);
            return SN_PENDING;
        }
        uint32_t ticket = 0;
        bool dry = false;
        ptrdiff_t result = try(fop, &ticket, &dry);
        if (result != -EAGAIN)
            return end(fop, result);
        int rc = start_waiting(fop, cx, ticket, dry);
        if (rc == 0)
            return SN_PENDING;
        if (rc < 0)
            return end(fop, rc);
    }
}

void sni_file_op_drop(sn_future *fut)
{
    struct sni_file_op *fop = sni_container_of(fut, struct sni_file_op, future);
    if (fop->is_waiting) {
        sni_driver_cancel_now(&fop->op, -ECANCELED);
        (void)stop_waiting(fop);
    }
    if (fop->is_using) {
        (void)end(fop, -ECANCELED);
    } else {
        sni_await_finish(&fop->await);
    }
}

struct sni_file_op *sni_file_op_init(sn_io_state *state, const struct sni_file_op_kind *kind,
                                     uint64_t handle, uint32_t kinds, unsigned events)
{
    struct sni_file_op *fop = (struct sni_file_op *)(void *)state;
    (void)sn_future_init(&fop->future, &kind->vt);
    fop->handle = handle;
    fop->kinds = (uint8_t)kinds;
    fop->is_using = false;
    fop->is_waiting = false;
    fop->await = (struct sni_await){.stage = {0}};
    sni_op_init_move(&fop->op, SNI_OP_POLL, NULL, 0);
    fop->op.events = (uint8_t)events;
    return fop;
}
