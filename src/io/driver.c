/* SPDX-License-Identifier: MIT */
/* driver.c - what all drivers have in common: the lock, the counting, the rules of an end.
 *
 * `state` of an operation is written under its driver's lock. Whoever wants to cancel holds
 * something that keeps the operation's memory (the wheel's lock, the file's lock, or it is the
 * owner itself), takes the driver's lock and looks at the state: complete is complete.
 *
 * Awaited operations are a coroutine's (file_op.c). A fiber's wait is claimed by a compare and
 * swap, because it may be cancelled, and parks itself. Of a coroutine there is nothing to be saved,
 * and only its operation's completion ends the wait. So the lock is enough: who submits parks the
 * waiter before it unlocks, unless the operation is complete by then, and who completes it later
 * finds it parked. One that is completed while it is being submitted wakes nobody. */
#include "io/driver.h"

#include "base/assert.h"
#include "plat/socket.h"

#include <sinew/errno.h>

#include <string.h>
#include <sys/socket.h>

/* Of an operation that is awaited. */
static inline void end_await(struct sni_waiter *w)
{
    /* relaxed: under the lock */
    if (sni_likely(sni_atomic_load(&w->own, relaxed) == SNI_WAIT_PARKED))
        w->ops->resume(w->fiber);
}

void sni_op_complete(struct sni_op *op, ptrdiff_t result)
{
    sni_assert_debug(op->state != SNI_OP_COMPLETE, "an operation was completed twice");
    struct sni_driver *driver = op->driver;
    op->result = result == -ECANCELED && op->why != 0 ? op->why : (int)result;
    op->state = SNI_OP_COMPLETE;
    /* relaxed: a number for others to look at; the lock orders */
    uint32_t pending = sni_atomic_load(&driver->pending, relaxed);
    sni_atomic_store(&driver->pending, pending - 1, relaxed); /* relaxed: as above */
    sni_list_remove(&op->pending);
    if (sni_likely(!op->is_stray))
        sni_chain_remove(&op->on_file);
    if (sni_likely(op->waiter.wait_at != 0))
        (void)sni_wait_claim_quick(&op->waiter, 0);
    else if (sni_likely(op->is_awaited))
        end_await(&op->waiter);
    else
        (void)sni_wait_claim(&op->waiter, 0); /* a thread */
}

void sni_driver_init(struct sni_driver *driver, const struct sni_driver_ops *ops)
{
    *driver = (struct sni_driver){.ops = ops, .holders = {1}, .crowd = {UINT32_MAX}};
    sni_list_init(&driver->all);
}

bool sni_driver_submit_locked(struct sni_driver *driver, struct sni_op *op)
{
    sni_assert_debug(op->kind == SNI_OP_POLL || (driver->ops->native & 1u << op->kind) != 0,
                     "a driver was given an operation that it cannot do");
    sni_list_init(&op->pending);
    op->driver = driver;
    op->why = 0;
    op->state = SNI_OP_PENDING;
    /* relaxed, both: as in sni_op_complete */
    uint32_t pending = sni_atomic_load(&driver->pending, relaxed);
    sni_atomic_store(&driver->pending, pending + 1, relaxed);
    sni_list_push_back(&driver->all, &op->pending);
    driver->ops->submit(driver, op);
    bool is_complete = op->state == SNI_OP_COMPLETE;
    if (op->is_awaited && !is_complete) /* relaxed: the unlock releases it */
        sni_atomic_store(&op->waiter.own, SNI_WAIT_PARKED, relaxed);
    return is_complete;
}

bool sni_driver_submit(struct sni_driver *driver, struct sni_op *op)
{
    if (!op->is_stray)
        sni_chain_init(&op->on_file);
    sni_mutex_lock(&driver->lock);
    bool is_complete = sni_driver_submit_locked(driver, op);
    sni_mutex_unlock(&driver->lock);
    return is_complete;
}

enum {
    SPINS = 64,       /* before the processor is given to others                        */
    SHARED_PART = 16, /* so much smaller is a crowd where several workers share the work */
};

/* Reap once, under the lock, for somebody who can do nothing else until the kernel has let go of an
 * operation. Mostly it has done so already. If not, it may need this very processor for it: for the
 * thread that submitted the operation, or for one of its own. */
static void reap_once_more(struct sni_driver *driver, unsigned *spins)
{
    if (driver->ops->reap(driver) != 0)
        *spins = 0;
    else if (++*spins < SPINS)
        sni_cpu_pause();
    else
        sni_plat_thread_yield();
}

static void cancel_locked(struct sni_op *op, int why)
{
    if (op->state == SNI_OP_COMPLETE || op->why != 0)
        return;
    op->why = why;
    op->driver->ops->cancel(op->driver, op);
}

void sni_driver_cancel(struct sni_op *op, int why)
{
    struct sni_driver *driver = op->driver;
    sni_mutex_lock(&driver->lock);
    cancel_locked(op, why);
    if (driver->ops->flush != NULL)
        driver->ops->flush(driver);
    sni_mutex_unlock(&driver->lock);
}

void sni_driver_cancel_chain(struct sni_driver *driver, struct sni_chain *const *chain, int why)
{
    sni_mutex_lock(&driver->lock);
    bool any = *chain != NULL; /* if not, the driver may have retired */
    struct sni_chain *next;
    for (struct sni_chain *link = *chain; link != NULL; link = next) {
        next = link->next;
        cancel_locked(sni_container_of(link, struct sni_op, on_file), why);
    }
    if (any && driver->ops->flush != NULL)
        driver->ops->flush(driver);
    sni_mutex_unlock(&driver->lock);
}

static void cancel_and_reap(struct sni_op *op, int why)
{
    struct sni_driver *driver = op->driver;
    cancel_locked(op, why);
    unsigned spins = 0;
    while (op->state != SNI_OP_COMPLETE)
        reap_once_more(driver, &spins);
}

void sni_driver_cancel_now(struct sni_op *op, int why)
{
    struct sni_driver *driver = op->driver;
    sni_mutex_lock(&driver->lock);
    if (op->is_awaited) /* its owner need not be told; relaxed: under the lock */
        sni_atomic_store(&op->waiter.own, SNI_WAIT_OPEN, relaxed);
    cancel_and_reap(op, why);
    sni_mutex_unlock(&driver->lock);
}

/* Close the descriptors that came with a message. */
static void close_received(struct msghdr *msg)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            sni_plat_close(fd);
        }
    }
}

/* Nobody takes the result of `op`, which is complete: what it has made is given back. */
static void dispose(struct sni_op *op)
{
    if (op->result < 0)
        return;
    if (op->kind == SNI_OP_ACCEPT)
        sni_plat_close(op->result);
    else if (op->kind == SNI_OP_RECVMSG)
        close_received(op->msg);
}

static void resume_nobody(void *fiber)
{
    (void)fiber;
}

void sni_driver_take_back(struct sni_op *op)
{
    static const struct sni_exec_ops nobody = {.resume = resume_nobody,
                                               .resume_last = resume_nobody};
    struct sni_driver *driver = op->driver;
    sni_mutex_lock(&driver->lock);
    op->waiter.ops = &nobody; /* only we could claim it, under the lock */
    cancel_and_reap(op, -ECANCELED);
    sni_mutex_unlock(&driver->lock);
    dispose(op); /* it came too late, or its owner was woken and has not run since */
}

uint32_t sni_driver_forget(struct sni_driver *driver, int fd)
{
    if (driver->ops->forget == NULL)
        return 0;
    sni_mutex_lock(&driver->lock);
    uint32_t newest = driver->ops->forget(driver, fd);
    sni_mutex_unlock(&driver->lock);
    return newest;
}

void sni_driver_flush(struct sni_driver *driver)
{
    if (driver->ops->flush == NULL)
        return;
    sni_mutex_lock(&driver->lock);
    driver->ops->flush(driver);
    sni_mutex_unlock(&driver->lock);
}

void sni_driver_cancel_all(struct sni_driver *driver)
{
    sni_mutex_lock(&driver->lock);
    unsigned spins = 0;
    while (!sni_list_empty(&driver->all)) {
        struct sni_list *first = driver->all.next;
        cancel_locked(sni_container_of(first, struct sni_op, pending), -ECANCELED);
        if (driver->all.next == first)
            reap_once_more(driver, &spins); /* the kernel has it still */
    }
    sni_mutex_unlock(&driver->lock);
}

static unsigned reap_and_unlock(struct sni_driver *driver)
{
    unsigned n = driver->ops->reap(driver);
    sni_mutex_unlock(&driver->lock);
    return n;
}

unsigned sni_driver_reap(struct sni_driver *driver)
{
    return sni_mutex_trylock(&driver->lock) ? reap_and_unlock(driver) : 0;
}

unsigned sni_driver_glance(struct sni_driver *driver)
{
    if (driver->ops->glance == NULL)
        return sni_driver_reap(driver);
    if (!sni_mutex_trylock(&driver->lock))
        return 0;
    unsigned n = driver->ops->glance(driver);
    sni_mutex_unlock(&driver->lock);
    return n;
}

unsigned sni_driver_reap_patiently(struct sni_driver *driver)
{
    sni_mutex_lock(&driver->lock);
    return reap_and_unlock(driver);
}

void sni_driver_wait(struct sni_driver *driver, int64_t until_ns)
{
    driver->ops->wait(driver, until_ns);
}

void sni_driver_wake(struct sni_driver *driver)
{
    driver->ops->wake(driver);
}

void sni_driver_finish(struct sni_driver *driver)
{
    if (driver == NULL)
        return;
    sni_assert_debug(sni_driver_pending(driver) == 0, "a driver ends while operations wait in it");
    sni_mutex_lock(&driver->lock);
    driver->retired = true;
    sni_mutex_unlock(&driver->lock);
    if (driver->ops->retire != NULL)
        driver->ops->retire(driver);
    sni_driver_release(driver);
}

void sni_driver_hold(struct sni_driver *driver)
{
    sni_atomic_fetch_add(&driver->holders, 1, relaxed); /* relaxed: the caller has it anyway */
}

void sni_driver_release(struct sni_driver *driver)
{
    /* acq_rel: all use of the driver happens before its end */
    if (sni_atomic_fetch_sub(&driver->holders, 1, acq_rel) == 1)
        driver->ops->finish(driver);
}

bool sni_driver_is_retired(struct sni_driver *driver)
{
    sni_mutex_lock(&driver->lock);
    bool retired = driver->retired;
    sni_mutex_unlock(&driver->lock);
    return retired;
}

uint32_t sni_driver_pending(const struct sni_driver *driver)
{
    return sni_atomic_load(&driver->pending, relaxed); /* relaxed: a moment's number */
}

void sni_driver_set_crowd(struct sni_driver *driver, uint32_t crowd)
{
    sni_atomic_store(&driver->crowd, crowd, relaxed); /* relaxed: for a choice of two right ways */
}

void sni_driver_set_shared(struct sni_driver *driver)
{
    uint32_t crowd = sni_atomic_load(&driver->crowd, relaxed); /* relaxed: as above */
    if (crowd != UINT32_MAX)
        sni_driver_set_crowd(driver, crowd / SHARED_PART);
}

bool sni_driver_is_crowded(const struct sni_driver *driver)
{
    /* relaxed: as above */
    return sni_driver_pending(driver) >= sni_atomic_load(&driver->crowd, relaxed);
}

int sni_driver_fd(const struct sni_driver *driver)
{
    return driver->ops->fd != NULL ? driver->ops->fd(driver) : -1;
}

void sni_driver_hush(struct sni_driver *driver)
{
    if (driver->ops->hush == NULL)
        return;
    sni_mutex_lock(&driver->lock);
    driver->ops->hush(driver);
    sni_mutex_unlock(&driver->lock);
}
