/* SPDX-License-Identifier: MIT */
/* poll.c - operations in a list, asked for by poll(2) each time anew.
 *
 * The kernel remembers nothing, so there is nothing to forget, and a descriptor that is closed
 * and used anew is no concern of ours. Each wait costs in proportion to what is pending; that is
 * the price, and why this is the last resort of a runtime and the first choice of a thread that
 * waits for one thing.
 *
 * Sleeping. The owner writes the descriptors of all operations into `set`, under the lock, says
 * that it is `asleep`, unlocks and sleeps on the set, which nobody touches meanwhile. Whoever
 * changes the list while it is asleep rings the bell: an operation more must be slept on, and one
 * less must not be, for a descriptor that is slept on is not really closed. That the bell is rung
 * between the unlocking and the sleep is the bell's business: then there is no sleep.
 *
 * Memory. `set` has room for all that is pending, or `spare` has: room is made in submit, where a
 * failure can be told, but in a second array, as the first may be slept on. The next wait trades.
 *
 * Reaping asks anew, with no time to wait: by `set`, or while the owner sleeps on that by pieces
 * of a small array, so that anybody can do it. But when the owner has just woken and the list is
 * still as it was, the answers are in `set` already (`fresh`): so waiting and reaping cost one
 * system call, not two. An answer that is older than it could be does no harm: level-triggered,
 * the worst is a try in vain.
 *
 * Fairness: the list is in the order of submission, what is ready leaves it, and what is submitted
 * again goes to its end. So a bound on a reap starves nobody.
 *
 * poll(2) refuses more entries than there may be descriptors (several operations may share one).
 * Then reaping still works, by pieces, and waiting becomes a nap of a millisecond.
 *
 * The end. Who completes an operation of a thread holds the lock while the thread goes on, and the
 * lock may be on that thread's stack. So finishing takes the lock once more. */
#include "io/poll/poll.h"

#include "base/assert.h"
#include "plat/clock.h"

#include <sinew/errno.h>

#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum {
    PIECE = 64,     /* entries of one poll(2) when reaping        */
    REAP_MAX = 256, /* completions of one reap                    */
    NAP_NS = 1000000,
};

static struct sni_poll *poll_of(struct sni_driver *driver)
{
    return sni_container_of(driver, struct sni_poll, driver);
}

static struct sni_op *op_of(struct sni_list *link)
{
    return sni_container_of(link, struct sni_op, waiter.link);
}

static void complete(struct sni_poll *p, struct sni_op *op, ptrdiff_t result)
{
    if (!sni_list_empty(&op->waiter.link)) {
        sni_list_remove(&op->waiter.link);
        p->count--;
        p->same = false;
    }
    bool ring = p->asleep || op->waiter.fiber == NULL;
    sni_op_complete(op, result);
    if (ring)
        sni_bell_ring(&p->bell);
}

/* ---- what the kernel calls it ------------------------------------------------------------ */

static short wanted(const struct sni_op *op)
{
    return (short)(((op->events & SNI_READABLE) != 0 ? POLLIN : 0) |
                   ((op->events & SNI_WRITABLE) != 0 ? POLLOUT : 0) |
                   ((op->events & SNI_PRIORITY) != 0 ? POLLPRI : 0));
}

/* The result of `op`, or 0: not ready. */
static ptrdiff_t result_of(const struct sni_op *op, short there)
{
    if ((there & POLLNVAL) != 0)
        return -EBADF;
    if ((there & (POLLERR | POLLHUP)) != 0)
        return op->events;
    return op->events & (((there & POLLIN) != 0 ? SNI_READABLE : 0) |
                         ((there & POLLOUT) != 0 ? SNI_WRITABLE : 0) |
                         ((there & POLLPRI) != 0 ? SNI_PRIORITY : 0));
}

/* ---- submit, cancel ---------------------------------------------------------------------- */

/* Room for one operation more. */
static int make_room(struct sni_poll *p)
{
    unsigned need = 1 + p->count + 1;
    unsigned room = p->spare != NULL ? p->spare_room : p->room;
    if (need <= room)
        return 0;
    struct pollfd *larger = malloc(2 * room * sizeof(*larger));
    if (larger == NULL)
        return -ENOMEM;
    free(p->spare);
    p->spare = larger;
    p->spare_room = 2 * room;
    return 0;
}

static void poll_submit(struct sni_driver *driver, struct sni_op *op)
{
    struct sni_poll *p = poll_of(driver);
    int rc = op->fd >= 0 ? make_room(p) : -EBADF; /* poll(2) would pass over a negative one */
    if (rc == 0 && !p->alone)
        rc = sni_bell_open(&p->bell);
    if (rc < 0) {
        complete(p, op, rc);
        return;
    }
    sni_list_push_back(&p->ops, &op->waiter.link);
    p->count++;
    p->same = false;
    if (p->asleep)
        sni_bell_ring(&p->bell);
}

static void poll_cancel(struct sni_driver *driver, struct sni_op *op)
{
    complete(poll_of(driver), op, -ECANCELED);
}

/* ---- reap -------------------------------------------------------------------------------- */

/* Trade for the larger array, if there is one. */
static void trade(struct sni_poll *p)
{
    if (p->spare == NULL)
        return;
    if (p->set != p->inline_)
        free(p->set);
    p->set = p->spare;
    p->room = p->spare_room;
    p->spare = NULL;
}

/* Write down what to ask for. Returns the number of entries. */
static unsigned fill(struct sni_poll *p)
{
    trade(p);
    unsigned n = 0;
    /* A bell without a descriptor is passed over by poll(2). */
    p->set[n++] = (struct pollfd){.fd = p->bell.fd, .events = POLLIN};
    sni_list_each(link, &p->ops) {
        struct sni_op *op = op_of(link);
        p->set[n++] = (struct pollfd){.fd = op->fd, .events = wanted(op)};
    }
    sni_assert(n <= p->room, "more operations than there is room for");
    p->same = true;
    p->fresh = false;
    return n;
}

/* The answers are in `set`. */
static unsigned reap_set(struct sni_poll *p)
{
    unsigned n = 0;
    const struct pollfd *answer = &p->set[1];
    struct sni_list *next;
    for (struct sni_list *link = p->ops.next; link != &p->ops && n < REAP_MAX; link = next) {
        next = link->next;
        ptrdiff_t result = result_of(op_of(link), answer++->revents);
        if (result == 0)
            continue;
        complete(p, op_of(link), result);
        n++;
    }
    p->fresh = false;
    return n;
}

/* Ask for the operations from *link on, as many as a piece holds, and complete what is ready. */
static unsigned reap_piece(struct sni_poll *p, struct sni_list **link)
{
    struct pollfd piece[PIECE];
    struct sni_op *ops[PIECE];
    unsigned asked = 0;
    for (; *link != &p->ops && asked < PIECE; *link = (*link)->next) {
        struct sni_op *op = op_of(*link);
        ops[asked] = op;
        piece[asked++] = (struct pollfd){.fd = op->fd, .events = wanted(op)};
    }
    if (poll(piece, asked, 0) <= 0)
        return 0; /* nothing; or an error that may be over when asked again */
    unsigned n = 0;
    for (unsigned i = 0; i < asked; i++) {
        ptrdiff_t result = result_of(ops[i], piece[i].revents);
        if (result == 0)
            continue;
        complete(p, ops[i], result);
        n++;
    }
    return n;
}

static unsigned poll_reap(struct sni_driver *driver)
{
    struct sni_poll *p = poll_of(driver);
    if (p->fresh && p->same)
        return reap_set(p);
    if (!p->asleep) {
        unsigned asked = fill(p);
        if (poll(p->set + 1, asked - 1, 0) >= 0)
            return reap_set(p);
    }
    unsigned n = 0;
    struct sni_list *link = p->ops.next;
    while (link != &p->ops && n + PIECE <= REAP_MAX)
        n += reap_piece(p, &link);
    return n;
}

/* ---- wait, wake -------------------------------------------------------------------------- */

/* Sleep on the set. True if it has answers for all. */
static bool sleep_on(struct sni_poll *p, unsigned n, int64_t until_ns)
{
    const int64_t second_ns = 1000000000;
    struct timespec left;
    const struct timespec *limit = NULL;
    if (until_ns != INT64_MAX) {
        int64_t now_ns = sni_plat_now_ns();
        if (until_ns <= now_ns)
            return false;
        int64_t ns = until_ns - now_ns;
        left = (struct timespec){.tv_sec = ns / second_ns, .tv_nsec = ns % second_ns};
        limit = &left;
    }
    int rc = ppoll(p->set, n, limit, NULL);
    if (rc >= 0)
        return true;
    p->set[0].revents = 0;
    if (errno != EINTR) {
        const struct timespec nap = {.tv_nsec = NAP_NS};
        (void)ppoll(p->set, 1, &nap, NULL);
    }
    return false;
}

static void poll_wait(struct sni_driver *driver, int64_t until_ns)
{
    struct sni_poll *p = poll_of(driver);
    sni_mutex_lock(&driver->lock);
    unsigned n = fill(p);
    bool on_word = p->bell.fd < 0 && !p->alone;
    p->asleep = true;
    sni_mutex_unlock(&driver->lock);

    bool answered = false;
    if (on_word) { /* no operation yet, else there were a descriptor */
        sni_bell_sleep(&p->bell, until_ns);
    } else if (p->alone) {
        answered = sleep_on(p, n, until_ns);
    } else if (sni_bell_begin(&p->bell)) {
        answered = sleep_on(p, n, until_ns);
        sni_bell_end(&p->bell, (p->set[0].revents & POLLIN) != 0);
    }

    sni_mutex_lock(&driver->lock);
    p->asleep = false;
    p->fresh = answered;
    sni_mutex_unlock(&driver->lock);
}

static void poll_wake(struct sni_driver *driver)
{
    struct sni_poll *p = poll_of(driver);
    sni_assert_debug(!p->alone, "somebody wakes a thread that was to be alone with its driver");
    sni_bell_ring(&p->bell);
}

static void poll_finish(struct sni_driver *driver)
{
    struct sni_poll *p = poll_of(driver);
    sni_mutex_lock(&driver->lock); /* see "The end" */
    sni_mutex_unlock(&driver->lock);
    sni_bell_finish(&p->bell);
    free(p->spare);
    if (p->set != p->inline_)
        free(p->set);
    if (p->on_heap)
        free(p);
}

static const struct sni_driver_ops poll_ops = {
    .name = "poll",
    .native = 1u << SNI_OP_POLL,
    .sticky = false,
    .submit = poll_submit,
    .cancel = poll_cancel,
    .reap = poll_reap,
    .wait = poll_wait,
    .wake = poll_wake,
    .finish = poll_finish,
};

void sni_poll_init(struct sni_poll *poll, enum sni_poll_reach reach)
{
    *poll = (struct sni_poll){
        .alone = reach == SNI_POLL_ALONE, .set = poll->inline_, .room = 1 + SNI_POLL_INLINE};
    sni_driver_init(&poll->driver, &poll_ops);
    sni_bell_init(&poll->bell);
    sni_list_init(&poll->ops);
}

int sni_poll_create(struct sni_driver **driver)
{
    struct sni_poll *p = malloc(sizeof(*p));
    if (p == NULL)
        return -ENOMEM;
    sni_poll_init(p, SNI_POLL_SHARED);
    p->on_heap = true;
    int rc = sni_bell_open(&p->bell);
    if (rc < 0)
        goto free_driver;
    *driver = &p->driver;
    return 0;

free_driver:
    free(p);
    return rc;
}
