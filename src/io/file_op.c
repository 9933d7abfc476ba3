/* SPDX-License-Identifier: MIT */
/* file_op.c - polling an operation on a file, and dropping it.
 *
 * A poll tries, and if that would have to wait gives a POLL to the driver of the worker that it
 * runs on; the operation may later be polled on another one. The driver completes it under its
 * lock, wake included. So a drop that has cancelled it, or found it complete, under that same lock
 * knows that nobody touches it any more.
 *
 * Awaiting (driver.c). Whose the waker is, the state of the waiter says, which changes under the
 * driver's lock:
 *
 *     OPEN      the poller's: it is just being submitted, or given another waker, or dropped
 *     PARKED    who completes it wakes
 *     CLAIMED   it is over, and the poller's again: the last that who completes it writes. release;
 *               a poll that finds it (acquire) need not take the lock
 *
 * Borrowing. A waker is a reference to a task, and to count one costs a wait two read-modify-writes
 * of the task's word. An operation in the record of the very task that polls it (all that stand in
 * a coroutine's frame) needs none: the record is not freed before the frame is done with, and the
 * frame is not done with an operation that is not over. Therefore a borrowed waker is woken first,
 * and then the operation is over. The task may be polled between the two, on another worker: it
 * finds PARKED, takes the lock, and so waits until this completion is through. Other wakers are
 * cloned, and woken when the operation is over already: they may be anything. A panic drops what
 * the frame awaits before the task ends; a frame that ends and leaves an operation behind leaves it
 * to the driver, too, which is as fatal without a waker.
 *
 * Rejected: sni_await, made for claimers without a lock of their own: a compare and swap to park,
 * and one to claim. */
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

/* ---- wakers ----------------------------------------------------------------------------- */

static inline void drop_waker(struct sni_file_op *fop)
{
    if (sni_unlikely(!fop->is_borrowed && fop->waker.vt != NULL))
        sn_waker_drop(&fop->waker);
}

/* While it is the poller's. */
static void keep_waker(struct sni_file_op *fop, const sn_waker *waker)
{
    drop_waker(fop);
    fop->is_borrowed = sni_likely(sni_await_may_borrow(fop, waker));
    fop->waker = fop->is_borrowed ? *waker : sn_waker_clone(waker);
}

/* It was completed when it was PARKED. Under the driver's lock. */
static void resume(void *who)
{
    struct sni_file_op *fop = who;
    sn_waker waker = fop->waker;
    if (sni_likely(fop->is_borrowed)) {
        (void)waker.vt->wake_by_ref(waker.data);
        /* release: pairs with the acquire in is_over; the last touch, here and below */
        sni_atomic_store(&fop->op.waiter.own, SNI_WAIT_CLAIMED, release);
        return;
    }
    fop->waker.vt = NULL;
    sni_atomic_store(&fop->op.waiter.own, SNI_WAIT_CLAIMED, release); /* release: as above */
    (void)sn_waker_wake(&waker);
}

static const struct sni_exec_ops awaits = {.resume = resume, .resume_last = resume};

/* Under the lock: it is the poller's now, or to be woken from here on; unless it is complete. */
static bool set_unless_complete(struct sni_file_op *fop, uint32_t state)
{
    if (fop->op.state == SNI_OP_COMPLETE)
        return false;
    sni_atomic_store(&fop->op.waiter.own, state, relaxed); /* relaxed: the lock orders */
    return true;
}

/* Was it completed? If not, this poller is woken then. Its driver is there: that is one of the
 * runtime that polls it. */
static SNI_NEVER_INLINE bool look_again(struct sni_file_op *fop, sn_cx *cx)
{
    struct sni_mutex *lock = &fop->op.driver->lock;
    sni_mutex_lock(lock);
    bool is_over = fop->op.state == SNI_OP_COMPLETE;
    bool is_same = !is_over && sn_waker_same(&fop->waker, cx->waker);
    if (!is_over && !is_same)
        (void)set_unless_complete(fop, SNI_WAIT_OPEN);
    sni_mutex_unlock(lock);
    if (is_over || is_same)
        return is_over;
    keep_waker(fop, cx->waker); /* perhaps code of the user's: without the lock */
    sni_mutex_lock(lock);
    is_over = !set_unless_complete(fop, SNI_WAIT_PARKED);
    sni_mutex_unlock(lock);
    return is_over;
}

static inline bool is_over(struct sni_file_op *fop, sn_cx *cx)
{
    /* acquire: pairs with the release in resume */
    return sni_likely(sni_atomic_load(&fop->op.waiter.own, acquire) == SNI_WAIT_CLAIMED) ||
           look_again(fop, cx);
}

/* ---- polling ---------------------------------------------------------------------------- */

static sn_poll end(struct sni_file_op *fop, ptrdiff_t result)
{
    if (result > INT32_MAX)
        result = INT32_MAX;
    const struct sni_file_op_kind *kind = kind_of(fop);
    int value = kind->finish != NULL ? kind->finish(fop, result) : (int)result;
    if (fop->is_using)
        sni_file_unuse(fop->file);
    fop->is_using = false;
    drop_waker(fop);
    return SN_READY(value);
}

/* Give a POLL to the driver. Returns 0; 1: it is complete already; -errno */
static inline int start_waiting(struct sni_file_op *fop, sn_cx *cx, uint32_t ticket, bool is_guess)
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
    sni_wait_begin_with(&fop->op.waiter, &awaits, fop);
    keep_waker(fop, cx->waker);
    rc = fop->is_using ? sni_file_submit(fop->file, driver, &fop->op)
                       : sni_driver_submit(driver, &fop->op);
    fop->is_waiting = rc >= 0;
    if (sni_unlikely(rc > 0)) /* relaxed: nobody else has it any more */
        sni_atomic_store(&fop->op.waiter.own, SNI_WAIT_CLAIMED, relaxed);
    return rc;
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
    if (fop->is_using)
        *ticket = sni_file_ticket(fop->file, direction(fop), dry);
    *dry = *dry && fop->op.bytes > 0;
    if (*dry)
        return -EAGAIN;
    ptrdiff_t result = kind_of(fop)->attempt(fop);
    if (fop->is_using)
        sni_file_tried(fop->file, direction(fop), result, fop->op.bytes, *ticket);
    return result;
}

/* Its poller has done much without waiting: it is polled again. */
static sn_poll give_way(sn_cx *cx)
{
    (void)sn_waker_wake_by_ref(cx->waker);
    return SN_PENDING;
}

/* Begin to use the file, if that is to be done. Returns 0, or -errno */
static inline int have_file(struct sni_file_op *fop)
{
    return fop->kinds != 0 && !fop->is_using ? use_file(fop) : 0;
}

/* An operation that is tried, and waits for nothing now. */
static SNI_NEVER_INLINE sn_poll try_and_wait(struct sni_file_op *fop, sn_cx *cx)
{
    int rc = have_file(fop);
    if (rc < 0)
        return end(fop, rc);
    for (;;) {
        if (sni_is_spent())
            return give_way(cx);
        uint32_t ticket = 0;
        bool dry = false;
        ptrdiff_t result = try(fop, &ticket, &dry);
        if (result != -EAGAIN)
            return end(fop, result);
        rc = start_waiting(fop, cx, ticket, dry);
        if (sni_likely(rc == 0))
            return SN_PENDING;
        if (rc < 0)
            return end(fop, rc);
        ptrdiff_t events = stop_waiting(fop);
        if (events < 0)
            return end(fop, events);
    }
}

/* One that only waits. It has done something without waiting only if it is over at once. */
static SNI_NEVER_INLINE sn_poll begin_wait(struct sni_file_op *fop, sn_cx *cx)
{
    int rc = have_file(fop);
    if (rc < 0)
        return end(fop, rc);
    uint32_t ticket = fop->is_using ? sni_file_proof(fop->file, fop->op.events) : 0;
    rc = start_waiting(fop, cx, ticket, true); /* the ticket is a proof, or perhaps not: a guess */
    if (sni_likely(rc == 0))
        return SN_PENDING;
    if (rc < 0)
        return end(fop, rc);
    if (sni_is_spent())
        return give_way(cx); /* that it is over, the next poll finds */
    return end(fop, stop_waiting(fop));
}

sn_poll sni_file_op_poll(sn_future *fut, sn_cx *cx)
{
    struct sni_file_op *fop = sni_container_of(fut, struct sni_file_op, future);
    bool only_waits = kind_of(fop)->attempt == NULL;
    if (!fop->is_waiting)
        return only_waits ? begin_wait(fop, cx) : try_and_wait(fop, cx);
    if (!is_over(fop, cx))
        return SN_PENDING;
    ptrdiff_t events = stop_waiting(fop);
    if (only_waits || events < 0)
        return end(fop, events);
    return try_and_wait(fop, cx);
}

void sni_file_op_drop(sn_future *fut)
{
    struct sni_file_op *fop = sni_container_of(fut, struct sni_file_op, future);
    if (fop->is_waiting) {
        sni_driver_cancel_now(&fop->op, -ECANCELED);
        (void)stop_waiting(fop);
    }
    if (fop->is_using)
        (void)end(fop, -ECANCELED);
    else
        drop_waker(fop);
}
