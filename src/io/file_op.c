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

static enum sni_direction direction(const struct sni_file_op *fop)
{
    return (fop->events & SNI_READABLE) != 0 ? SNI_IN : SNI_OUT;
}

/* Use the file, and find the driver to wait with. */
static int begin(struct sni_file_op *fop)
{
    if (fop->kinds == 0)
        return 0;
    int rc = sni_file_use(fop->handle, fop->kinds, &fop->file);
    if (rc == 0)
        fop->fd = fop->file->fd;
    return rc;
}

static sn_poll end(struct sni_file_op *fop, ptrdiff_t result)
{
    if (result > INT32_MAX)
        result = INT32_MAX;
    int value = fop->kind->finish != NULL ? fop->kind->finish(fop, result) : (int)result;
    if (fop->file != NULL)
        sni_file_unuse(fop->file);
    fop->file = NULL;
    sni_await_finish(&fop->await);
    return SN_READY(value);
}

/* Give a POLL to the driver. */
static int start_waiting(struct sni_file_op *fop, uint32_t ticket, bool is_guess)
{
    struct sni_exec *exec = sni_exec_current();
    struct sni_driver *driver = NULL;
    if (exec == NULL || exec->ops->driver == NULL)
        return -EPERM;
    int rc = exec->ops->driver(exec, &driver);
    if (rc < 0)
        return rc;
    fop->op = (struct sni_op){.fd = fop->fd,
                              .kind = SNI_OP_POLL,
                              .kept = fop->file != NULL,
                              .events = fop->events,
                              .is_guess = is_guess,
                              .flags = ticket};
    sni_await_begin(&fop->await, &fop->op.waiter);
    if (fop->file != NULL)
        rc = sni_file_submit(fop->file, driver, &fop->op);
    else
        sni_driver_submit(driver, &fop->op);
    if (rc < 0)
        return rc;
    fop->is_waiting = true;
    sni_await_published(&fop->await, &fop->op.waiter);
    return 0;
}

/* The driver is done with it. */
static ptrdiff_t stop_waiting(struct sni_file_op *fop)
{
    fop->is_waiting = false;
    if (fop->file != NULL) {
        sni_file_unlink(fop->file, &fop->op);
        sni_file_note_ready(fop->file, direction(fop), fop->op.flags);
    }
    ptrdiff_t told = fop->op.result;
    return told < 0 ? told : sni_events_told(told, fop->events);
}

/* Returns the result, or -EAGAIN and the ticket to wait with. Only who wants bytes may take it for
 * granted that there are none (*dry). */
static ptrdiff_t try(struct sni_file_op *fop, uint32_t *ticket, bool *dry)
{
    if (fop->kind->attempt == NULL) {
        *ticket = fop->file != NULL ? sni_file_proof(fop->file, fop->events) : 0;
        *dry = true; /* or perhaps not: a guess */
        return -EAGAIN;
    }
    if (fop->file != NULL)
        *ticket = sni_file_ticket(fop->file, direction(fop), dry);
    *dry = *dry && fop->bytes > 0;
    if (*dry)
        return -EAGAIN;
    ptrdiff_t result = fop->kind->attempt(fop);
    if (fop->file != NULL)
        sni_file_tried(fop->file, direction(fop), result, fop->bytes, *ticket);
    return result;
}

static sn_poll poll_op(sn_future *fut, sn_cx *cx)
{
    struct sni_file_op *fop = sni_container_of(fut, struct sni_file_op, future);
    if (fop->file == NULL && !fop->is_waiting) {
        int rc = begin(fop);
        if (rc < 0)
            return end(fop, rc);
    }
    for (;;) {
        if (fop->is_waiting) {
            if (!sni_await_poll(&fop->await, cx))
                return SN_PENDING;
            ptrdiff_t events = stop_waiting(fop);
            if (events < 0 || fop->kind->attempt == NULL)
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
        int rc = start_waiting(fop, ticket, dry);
        if (rc < 0)
            return end(fop, rc);
    }
}

static void drop_op(sn_future *fut)
{
    struct sni_file_op *fop = sni_container_of(fut, struct sni_file_op, future);
    if (fop->is_waiting) {
        sni_driver_cancel_now(&fop->op, -ECANCELED);
        (void)stop_waiting(fop);
    }
    if (fop->file != NULL) {
        (void)end(fop, -ECANCELED);
    } else {
        sni_await_finish(&fop->await);
    }
}

static const sn_future_vtable op_vtable = {.poll = poll_op, .drop = drop_op, .name = "io"};

struct sni_file_op *sni_file_op_init(sn_io_state *state, const struct sni_file_op_kind *kind,
                                     uint64_t handle, uint32_t kinds, unsigned events)
{
    struct sni_file_op *fop = (struct sni_file_op *)(void *)state;
    *fop = (struct sni_file_op){
        .kind = kind, .handle = handle, .kinds = kinds, .events = (uint8_t)events, .fd = -1};
    (void)sn_future_init(&fop->future, &op_vtable);
    return fop;
}
