/* SPDX-License-Identifier: MIT */
/* uring.c - operations on a ring: submitted in batches, cancelled by name, reaped by anybody.
 *
 * An operation of ours is one request of the kernel, and the request's user data is the
 * operation's address. When its completion is read, the kernel has neither the operation nor its
 * buffer any more; nothing else says so, and so nothing else completes an operation that the
 * kernel has seen. A cancellation is a second request that names the first. Its own completion may
 * arrive when the operation is long gone, and the address that it carries is only compared.
 *
 * Where an operation is (`state`, a set of bits):
 *
 *     WAITS      in `backlog`: there was no room in the ring, and the kernel took nothing.
 *                Cancelling it just takes it out.
 *     (none)     in the submission ring or in the kernel; the difference is the kernel's alone,
 *                since it takes entries in their order, and so a cancellation put behind its
 *                operation finds it.
 *     POLLS      the request is a poll on behalf of the operation, see below
 *     DETOUR     the request is a poll of a detour (detour.h), whose number is in `result`
 *     RESTS      the request is a pause on behalf of the operation, see below
 *     BEGUN      a connect that the kernel has already been given once
 *
 * Cancellations for which there is no room stand in `cancels`, linked by their operations, so
 * that one that completes meanwhile leaves the list; those that were put stand in `asked`. An
 * address is not cancelled by mistake when it is used again: the cancellation's entry lies before
 * the new operation's. A cancellation that fails has mostly come too late. But the kernel does not
 * find, either, a request that it is about to try once more, because what it waits for, or an
 * error, was there when it began to wait; and the try may be in vain. So whose operation is still
 * in `asked` then asks again.
 *
 * Again. The owner never sees -EINTR or -EAGAIN, nor an -ECANCELED that nobody asked for:
 * requests are the submitting thread's, and when that one ends, the kernel ends what it can of
 * them in this way, at once or when their event comes. These are submitted again. Before a request
 * that answered -EAGAIN is (kernels differ in when they do that to a descriptor that is O_NONBLOCK;
 * 6.18 waits with every kind that we use), a poll for what it needs comes first (POLLS). To one
 * answer there is no poll: a full Unix listener says -EAGAIN to connect and "writable" to poll.
 * There a pause comes first (RESTS). A connect that is given to the kernel a second time may find
 * itself in progress (-EALREADY: poll, then ask again) or done (-EISCONN: success, if BEGUN).
 *
 * Sends poll first (POLLS), since the owner has just tried, and never wait themselves. One that
 * waited would ask for POLLRDHUP too: to an end that is half-closed and does not read, the kernel
 * tries it in vain a hundred times, and then blocks one of the few threads that it has for a ring.
 * A poll that has answered without there being room (another writer was quicker; or there is an
 * error that nobody fetches, such as a time stamp) might do so without end: a pause comes first.
 *
 * Answers of a poll. The kernel's may be none of those that were asked for (POLLRDHUP), and it does
 * not wake up for urgent data: what needs POLLPRI takes a detour from the beginning, and what was
 * answered besides the point takes one then. While no descriptor is left for it, it rests instead.
 *
 * The keeper. A POLL of a kept descriptor (a file's of ours: all that coroutines wait for, and what
 * fibers wait for without a buffer) would be a request for each wait. It goes instead to a *keeper*
 * (io/epoll/keeper.h): an epoll instance of the driver's own, in which the descriptor stays
 * registered, edge-triggered, and that remembers what it was told. Then a wait asks nothing of the
 * kernel. Such an operation is in the keeper's table, its state has none of our bits, and to cancel
 * it is to take it out. `kept` counts them. Events are taken by epoll_wait, by whoever reaps; the
 * ring is only needed to end a sleep:
 *
 *     While the owner sleeps and `kept` is not 0, the ring polls the instance (keeper_polled), by a
 *     request that ends with the first event. The owner puts it when it goes to sleep, under the
 *     lock. Who finds the owner asleep without it, and gives it the first such operation, or has
 *     read the request's completion and leaves operations behind, wakes it, and it does so anew. A
 *     request of somebody else's would be work of somebody else, who may compute for long.
 *
 * So nobody sleeps through an event: a poll is answered at once if there are events, whenever they
 * came; the kernel drops none that were not taken. Somebody awake looks for himself, at each reap,
 * unless the request is under way: then there is no event, or the flag says that the kernel has
 * work to do, or a completion is there. Under that flag one looks in any case: it is the work of
 * the thread that put the request, which may compute for long (R85), and the instance tells
 * everybody. A completion of the request while nobody waits is read and forgotten, and events
 * that nobody waits for stay in the kernel.
 *     The keeper has no reference to what is registered: a close is seen by the other end at once,
 * and needs no request that would be the work of another thread. Its instance is opened for the
 * first wait. What epoll does not take, now or ever, is an operation of the ring as any other, and
 * gives no tickets. After the driver has retired the table stays, for the newest tickets.
 *
 * Crowds. A request that waits to receive holds memory of the kernel's, a dozen lines of it, which
 * are no more at hand when their turn comes if thousands wait; a registration holds three. So from
 * CROWD operations on, or fewer among several workers (sni_driver_set_shared), files are told to
 * wait for readiness and to receive by themselves (sni_driver_is_crowded), although that is a
 * system call for each. docs/RATIONALE.md has figures.
 *
 * Flushing. submit only puts an entry. A system call is made by flush, by reap if something was
 * put, by wait (the same call that sleeps), and by submit when the ring is full or when the owner
 * sleeps already, since then nobody else would soon. What the kernel does not take (-EAGAIN,
 * -EBUSY, -ENOMEM) stays in the ring or the backlog until the next of these; wait then sleeps for a
 * millisecond at most.
 *
 * Sleeping and waking. One word:
 *
 *     AWAKE    -> ASLEEP    the owner, before it sleeps
 *     AWAKE    -> TOKEN     wake: no system call, the owner will see it
 *     ASLEEP   -> CALLED    wake: and a completion without an operation is made, by a message to
 *                           the ring or by an eventfd that the ring polls
 *     any      -> AWAKE     the owner, after it has slept, or instead of sleeping
 *
 * So of many wakes one makes a system call. A foreign reaper may read the completion that was to
 * end the sleep before its owner has fallen asleep: it looks at the word afterwards, and if that
 * is still CALLED, calls again. Then either the owner sleeps and finds a completion, or it is
 * awake and the word says so. The eventfd is cleared and its poll armed by the owner before it
 * looks at the word for the last time, for the same reason; a reaper that consumes the poll while
 * the owner is about to sleep arms it again. Orders: a wake releases what was written before it,
 * and the owner's exchange acquires it.
 *
 * Calls that came late, or were answered otherwise, lie in the ring as completions that are
 * nobody's. Before it sleeps, the owner reads those that lie in front, so that it does not take
 * them for work and return at once, for ever.
 *
 * Completing an operation whose waiter is a thread wakes the owner in the same way, from under
 * the lock: that thread may be the owner, and asleep or about to be.
 *
 * Multishot accept, if it should ever pay (docs/RATIONALE.md has the figures): a completion with
 * IORING_CQE_F_MORE leaves the operation with the kernel. It fits as an operation of the listener's
 * own (not of a frame), whose results are descriptors queued at the listener; an accept takes from
 * that queue first and waits there otherwise. ended() is the place: with F_MORE it hands over a
 * result and leaves the state; the last completion, without it, ends the operation as now. Closing
 * cancels, drains and closes.
 *
 * Rejected: a multishot poll of each descriptor in the ring instead of the keeper (it holds the
 * file: a close must first remove it, in the ring that has it, which is work of the thread that
 * submitted it, and until then the other end learns nothing; docs/RATIONALE.md has the figures); a
 * multishot poll of the keeper (a completion and task work also while the owner is awake and looks
 * anyway, and of edges, so that who read one and took not all must remember it); sleeping in
 * epoll_wait with the ring in the keeper (what was put needs a system call of its own then);
 * DEFER_TASKRUN (see ring.c); a ring for all workers (its lock would be everyone's);
 * waking by an entry in the sleeper's ring (a wake happens under another driver's lock, so two
 * could wait for each other); completing at the cancellation's own completion (the buffer is not
 * ours yet); a table from small numbers to operations instead of addresses (one more thing to
 * grow). */
#include "io/uring/uring.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "io/epoll/keeper.h"
#include "io/uring/detour.h"
#include "io/uring/prep.h"
#include "io/uring/ring.h"
#include "plat/clock.h"
#include "plat/event.h"
#include "plat/thread.h"

#include <sinew/errno.h>

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

/* What a completion is for: the low bits of its user data. */
enum {
    TAG_OP = 0,     /* an operation; the rest is its address                               */
    TAG_WAKE = 1,   /* somebody called                                                     */
    TAG_CANCEL = 2, /* a cancellation; the rest is the address of what was to be cancelled */
    TAG_KEEPER = 3, /* the keeper has events                                               */
    TAG_MASK = 3,
};
static_assert(_Alignof(struct sni_op) > TAG_MASK, "an address has no room for the tag");

/* Bits of an operation's state while we have it. */
enum {
    OURS = 4, /* always, so that no state is taken for one of op.h */
    WAITS = 8,
    POLLS = 16,
    RESTS = 32,
    BEGUN = 64,
    DETOUR = 128,
};
static_assert((int)OURS > (int)SNI_OP_PENDING, "our states begin behind the common ones");

/* The word of sleeping and waking; a wake sets the low bit. */
enum {
    AWAKE = 0,
    TOKEN = 1,
    ASLEEP = 2,
    CALLED = ASLEEP | TOKEN,
};

enum {
    REAP_MAX = 64,
    FETCH_OP = 3,       /* completions ahead of the one that is read: its operation is fetched */
    CROWD = 2048,       /* see "Crowds" */
    PAUSE_NS = 1000000, /* RESTS, and the longest sleep while the kernel takes nothing */
};

struct uring {
    struct sni_driver driver; /* first: what the house sees                                  */
    struct sni_ring ring;
    struct sni_list backlog;        /* under the lock, as all below                          */
    struct sni_list cancels;        /* operations whose cancellation is not yet put          */
    struct sni_list asked;          /* those whose cancellation was                          */
    struct __kernel_timespec pause; /* immutable: PAUSE_NS                                   */
    int event;                      /* immutable: the eventfd, or -1 if messages do it       */
    bool armed;                     /* the eventfd is being polled                           */
    bool called;                    /* this reap has read somebody's call                    */
    bool keeper_polled;             /* a poll of the keeper is put, and its completion not read */
    uint32_t kept;                  /* operations that wait in the keeper                    */
    struct sni_keeper keeper;       /* its instance is opened for the first of them          */
    struct epoll_event events[REAP_MAX]; /* of a reap of the keeper                          */
    SNI_ATOMIC(uint32_t) sleep;          /* any thread: AWAKE...                                  */
};

static struct uring *uring_of(struct sni_driver *driver)
{
    return (struct uring *)driver;
}

static struct sni_op *op_of(struct sni_list *link)
{
    return sni_container_of(link, struct sni_op, waiter.link);
}

/* ---- into the ring ---------------------------------------------------------------------- */

/* Put the request that the state asks for. False: no room. */
static bool put_op(struct uring *u, struct sni_op *op)
{
    struct io_uring_sqe *sqe = sni_ring_put(&u->ring);
    if (sqe == NULL)
        return false;
    unsigned on_behalf = op->state & (DETOUR | RESTS | POLLS);
    if ((on_behalf & DETOUR) != 0)
        io_uring_prep_poll_add(sqe, op->result, POLLIN);
    else if ((on_behalf & RESTS) != 0)
        io_uring_prep_timeout(sqe, &u->pause, 0, 0);
    else if (on_behalf != 0 || op->kind == SNI_OP_POLL)
        io_uring_prep_poll_add(sqe, op->fd, sni_uring_mask(op));
    else
        sni_uring_prep(sqe, op, (u->ring.features & SNI_URING_PATIENCE) != 0);
    io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)op | TAG_OP);
    return true;
}

/* Put a cancellation of `op`, which is in no list. False: no room. */
static bool put_cancel(struct uring *u, struct sni_op *op)
{
    struct io_uring_sqe *sqe = sni_ring_put(&u->ring);
    if (sqe == NULL)
        return false;
    io_uring_prep_cancel64(sqe, (uint64_t)(uintptr_t)op | TAG_OP, 0);
    io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)op | TAG_CANCEL);
    if ((u->ring.features & SNI_URING_CQE_SKIP) != 0)
        sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    sni_list_push_back(&u->asked, &op->waiter.link);
    return true;
}

static bool all_put(const struct uring *u)
{
    return sni_list_empty(&u->cancels) && sni_list_empty(&u->backlog);
}

/* Put what could not be put before, as far as there is room; cancellations first, because their
 * operations are in the ring. */
static void put_delayed(struct uring *u)
{
    while (!sni_list_empty(&u->cancels)) {
        struct sni_list *first = sni_list_pop_front(&u->cancels);
        if (!put_cancel(u, op_of(first))) {
            sni_list_push_front(&u->cancels, first);
            return;
        }
    }
    while (!sni_list_empty(&u->backlog)) {
        struct sni_op *op = op_of(u->backlog.next);
        if (!put_op(u, op))
            return;
        sni_list_remove(&op->waiter.link);
        op->state &= (uint8_t)~WAITS;
    }
}

/* Give the kernel everything, as far as it takes it. */
static void push_all(struct uring *u, bool events)
{
    do {
        put_delayed(u);
        if (sni_ring_push(&u->ring, events) <= 0)
            return;
        events = false;
    } while (!all_put(u) || sni_ring_publish(&u->ring) != 0);
}

/* Give `op` to the kernel, now or later. */
static void go(struct uring *u, struct sni_op *op)
{
    if (all_put(u) && put_op(u, op))
        return;
    op->state |= WAITS;
    sni_list_push_back(&u->backlog, &op->waiter.link);
}

static void uring_flush(struct sni_driver *driver)
{
    push_all(uring_of(driver), false);
}

static void uring_wake(struct sni_driver *driver)
{
    struct uring *u = uring_of(driver);
    /* release: pairs with the acquire in wait. An RMW even if there is a token already, so that
     * what this caller wrote is seen too */
    if (sni_atomic_fetch_or(&u->sleep, TOKEN, release) != ASLEEP)
        return;
    if (u->event >= 0) {
        sni_plat_event_set(u->event);
        return;
    }
    /* The kernel may be short of memory for a moment. relaxed: only whether to go on trying */
    while (sni_ring_message(&u->ring, TAG_WAKE) < 0 &&
           sni_atomic_load(&u->sleep, relaxed) == CALLED)
        sni_plat_thread_yield();
}

/* ---- the end of an operation, or its next request ------------------------------------------ */

static void leave_detour(struct sni_op *op)
{
    if ((op->state & DETOUR) != 0)
        sni_detour_close(op->result);
    op->state &= (uint8_t)~DETOUR;
}

static void complete(struct uring *u, struct sni_op *op, ptrdiff_t result)
{
    leave_detour(op);
    bool thread = op->waiter.fiber == NULL;
    sni_op_complete(op, result);
    if (thread)
        uring_wake(&u->driver);
}

/* The result for the owner of what has ended with `res`. */
static int result_of(const struct sni_op *op, int res)
{
    if (op->kind == SNI_OP_POLL) {
        unsigned always = op->events & (SNI_READABLE | SNI_WRITABLE);
        if (res >= 0)
            return (int)sni_uring_events(op, (unsigned)res);
        if ((res == -EPERM || res == -EOPNOTSUPP) && always != 0)
            return (int)always; /* what cannot be polled is always ready */
    }
    if (op->kind == SNI_OP_CONNECT && res == -EISCONN && (op->state & BEGUN) != 0)
        return 0;
    return res;
}

/* Returns the state in which `op` is on its detour, or rests because there is none now; or an error
 * that is its end. */
static int take_detour(struct sni_op *op, int state)
{
    int rc = sni_detour_open(op->fd, sni_uring_mask(op));
    if (rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -ENOSPC)
        return (state & BEGUN) | RESTS;
    if (rc < 0)
        return rc;
    op->result = rc;
    return state | DETOUR;
}

/* Does a poll for what `op` needs have to take a detour from the beginning? */
static bool needs_detour(const struct sni_op *op)
{
    return op->kind == SNI_OP_POLL ? (op->events & SNI_PRIORITY) != 0
                                   : (sni_uring_mask_of_other(op) & POLLPRI) != 0;
}

/* Give the kernel the request that these bits of the state ask for, now or later. Returns whether
 * that was the end of the operation. */
static bool begin(struct uring *u, struct sni_op *op, int state)
{
    bool polls = (state & POLLS) != 0 || (op->kind == SNI_OP_POLL && (state & RESTS) == 0);
    bool besides = (state & DETOUR) != 0; /* the poll's answer was */
    if (polls && (besides || needs_detour(op)))
        state = take_detour(op, state);
    if (state < 0) {
        complete(u, op, result_of(op, state));
        return true;
    }
    op->state = (uint8_t)(OURS | state);
    go(u, op);
    return false;
}

/* ---- the keeper ------------------------------------------------------------------------- */

static bool is_owner_asleep(struct uring *u)
{
    /* relaxed: an owner that takes the lock after us publishes what we put; one that had it before
     * us has said before that it sleeps, and the lock shows it */
    return (sni_atomic_load(&u->sleep, relaxed) & ASLEEP) != 0;
}

/* Let the ring tell of events of the keeper, if somebody waits there. False: there is no room. */
static bool poll_keeper(struct uring *u)
{
    if (u->kept == 0 || u->keeper_polled)
        return true;
    struct io_uring_sqe *sqe = sni_ring_put(&u->ring);
    if (sqe == NULL)
        return false;
    io_uring_prep_poll_add(sqe, u->keeper.fd, POLLIN);
    io_uring_sqe_set_data64(sqe, TAG_KEEPER);
    u->keeper_polled = true;
    return true;
}

/* An owner that sleeps, and will not be told of events, is to see to it. */
static inline void call_for_keeper(struct uring *u)
{
    if (sni_unlikely(is_owner_asleep(u)) && u->kept > 0 && !u->keeper_polled)
        uring_wake(&u->driver);
}

/* For a descriptor that is one: its number is not to be the instance's. Returns 0; -EAGAIN: there
 * is none, at least not now. */
static SNI_COLD int open_keeper(struct uring *u, int fd)
{
    if ((u->ring.features & SNI_URING_KEEPER) == 0 || fcntl(fd, F_GETFD) < 0)
        return -EAGAIN;
    int rc = sni_keeper_open(&u->keeper);
    if (rc < 0 && rc != -EMFILE && rc != -ENFILE && rc != -ENOMEM) {
        u->ring.features &= ~(uint32_t)SNI_URING_KEEPER; /* do not ask again */
        sni_driver_set_crowd(&u->driver, UINT32_MAX);
    }
    return rc == 0 ? 0 : -EAGAIN;
}

static unsigned reap_keeper(struct uring *u)
{
    int got = epoll_wait(u->keeper.fd, u->events, REAP_MAX, 0);
    unsigned completed = sni_keeper_process(&u->keeper, u->events, got);
    u->kept -= completed;
    return completed;
}

static uint32_t uring_forget(struct sni_driver *driver, int fd)
{
    return sni_keeper_forget(&uring_of(driver)->keeper, fd);
}

static inline void submit_to_ring(struct uring *u, struct sni_op *op)
{
    const unsigned sends = 1u << SNI_OP_SEND | 1u << SNI_OP_SENDMSG;
    op->state = OURS;
    if (begin(u, op, (sends >> op->kind & 1u) != 0 ? POLLS : 0))
        return;
    if (sni_unlikely(is_owner_asleep(u) || (op->state & WAITS) != 0))
        push_all(u, false);
}

/* Of what the keeper does not take. */
static SNI_COLD void submit_refused(struct uring *u, struct sni_op *op, int rc)
{
    if (rc == -ENOMEM)
        complete(u, op, rc);
    else
        submit_to_ring(u, op);
}

/* A POLL of a kept descriptor. */
static SNI_NEVER_INLINE void submit_to_keeper(struct uring *u, struct sni_op *op)
{
    int rc = sni_unlikely(u->keeper.fd < 0) ? open_keeper(u, op->fd) : 0;
    if (sni_likely(rc == 0))
        rc = sni_keeper_try(&u->keeper, op);
    if (sni_unlikely(rc < 0)) {
        submit_refused(u, op, rc);
        return;
    }
    if (op->state == SNI_OP_COMPLETE)
        return;
    u->kept++;
    call_for_keeper(u);
}

static void uring_submit(struct sni_driver *driver, struct sni_op *op)
{
    struct uring *u = uring_of(driver);
    if (op->kind == SNI_OP_POLL && op->kept)
        submit_to_keeper(u, op);
    else
        submit_to_ring(u, op);
}

static void uring_cancel(struct sni_driver *driver, struct sni_op *op)
{
    struct uring *u = uring_of(driver);
    if ((op->state & OURS) == 0) {
        u->kept--;
        sni_keeper_cancel(op);
    } else if ((op->state & WAITS) != 0) {
        sni_list_remove(&op->waiter.link);
        complete(u, op, -ECANCELED);
    } else if (!sni_list_empty(&u->cancels) || !put_cancel(u, op)) {
        sni_list_push_back(&u->cancels, &op->waiter.link);
        push_all(u, false);
    }
}

/* ---- out of the ring -------------------------------------------------------------------- */

static bool is_connect_under_way(const struct sni_op *op, int res)
{
    return op->kind == SNI_OP_CONNECT && (res == -EALREADY || res == -EINPROGRESS);
}

/* What is to be done next for `op`, whose request ended with `res`: bits of the state, or -1 if
 * this was its end. */
static int next_request(const struct sni_op *op, int res)
{
    const bool sends = op->kind == SNI_OP_SEND || op->kind == SNI_OP_SENDMSG;
    int begun = op->kind == SNI_OP_CONNECT ? BEGUN : 0;
    int polls = op->state & POLLS;
    if (res >= 0 && (polls != 0 || op->kind == SNI_OP_POLL) &&
        !sni_uring_mask_is_hit(op, (unsigned)res))
        return begun | polls | DETOUR;
    if (sends && (op->state & RESTS) != 0 && res == -ETIME)
        return POLLS;
    if ((op->state & (POLLS | RESTS)) != 0)
        return res >= 0 || res == -ETIME || res == -EINTR || res == -ECANCELED ? begun : -1;
    if (res == -EINTR || res == -ECANCELED)
        return begun;
    if (is_connect_under_way(op, res))
        return begun | POLLS;
    if (res == -EAGAIN)
        return op->kind == SNI_OP_CONNECT || sends ? begun | RESTS : POLLS;
    return -1;
}

/* The result of what has come to its usual end, and is in no list then; 0: see what follows. */
static inline int plain_result(const struct sni_op *op, int res)
{
    if (sni_unlikely(op->state != OURS || op->why != 0 || res <= 0))
        return 0;
    return op->kind == SNI_OP_POLL ? (int)sni_uring_events(op, (unsigned)res) : res;
}

/* A request of `op` has ended. Returns whether the operation has. */
static bool ended(struct uring *u, struct sni_op *op, int res)
{
    int plain = plain_result(op, res);
    if (sni_likely(plain != 0)) {
        complete(u, op, plain);
        return true;
    }
    sni_list_remove(&op->waiter.link); /* out of `cancels` or `asked` */
    if ((op->state & DETOUR) != 0 && res >= 0)
        res = (int)sni_detour_read(op->result);
    leave_detour(op);
    int next = next_request(op, res);
    if (next >= 0 && op->why == 0)
        return begin(u, op, next);
    complete(u, op, next >= 0 ? -ECANCELED : result_of(op, res));
    return true;
}

/* A cancellation has ended with `res`, of an operation that may be gone. */
static void asked(struct uring *u, uint64_t data, int res)
{
    if (res >= 0)
        return;
    sni_list_each(link, &u->asked) {
        if ((uint64_t)(uintptr_t)op_of(link) != (data & ~(uint64_t)TAG_MASK))
            continue;
        sni_list_remove(link);
        sni_list_push_back(&u->cancels, link);
        return;
    }
}

/* What it is the completion of: an operation, or a number that is no address. */
static inline void fetch(const struct io_uring_cqe *cqe)
{
    sni_op_prefetch((const struct sni_op *)(uintptr_t)cqe->user_data);
}

/* Read at most `most` completions. Returns how many operations ended; *read is how many
 * completions there were. */
static unsigned drain(struct uring *u, unsigned most, unsigned *read)
{
    unsigned completed = 0;
    unsigned head = sni_ring_head(&u->ring);
    unsigned ready = sni_ring_ready(&u->ring, head);
    *read = ready < most ? ready : most;
    for (unsigned i = 0; i < *read; i++) {
        const struct io_uring_cqe *cqe = sni_ring_at(&u->ring, head + i);
        uint64_t data = cqe->user_data;
        if (i + FETCH_OP < *read)
            fetch(sni_ring_at(&u->ring, head + i + FETCH_OP));
        if ((data & TAG_MASK) == TAG_OP)
            completed += ended(u, (struct sni_op *)(uintptr_t)data, cqe->res);
        else if ((data & TAG_MASK) == TAG_WAKE)
            u->called = true;
        else if ((data & TAG_MASK) == TAG_KEEPER)
            u->keeper_polled = false;
        else
            asked(u, data, cqe->res);
    }
    sni_ring_seen(&u->ring, head + *read);
    return completed;
}

static bool arm(struct uring *u)
{
    struct io_uring_sqe *sqe = sni_ring_put(&u->ring);
    if (sqe == NULL)
        return false;
    io_uring_prep_poll_add(sqe, u->event, POLLIN);
    io_uring_sqe_set_data64(sqe, TAG_WAKE);
    u->armed = true;
    return true;
}

/* A call was read, perhaps not by whom it was meant for: if the owner may still be about to fall
 * asleep, call again. */
static void pass_on_call(struct uring *u)
{
    u->called = false;
    u->armed = false;
    /* acquire: pairs with the owner's exchange; what we see as slept through is over */
    uint32_t sleep = sni_atomic_load(&u->sleep, acquire);
    if (u->event < 0) {
        if (sleep == CALLED && sni_ring_message(&u->ring, TAG_WAKE) < 0)
            u->called = true; /* not now: the next reap tries again */
    } else if (sleep == ASLEEP || sleep == CALLED) {
        u->called = !arm(u);
    }
}

static unsigned uring_reap(struct sni_driver *driver)
{
    struct uring *u = uring_of(driver);
    unsigned completed = 0;
    unsigned left = REAP_MAX;
    unsigned read;
    bool events = false;
    do {
        unsigned flags = sni_ring_flags(&u->ring);
        events = (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
        push_all(u, events);
        if (events && (sni_ring_flags(&u->ring) & IORING_SQ_TASKRUN) != 0)
            (void)sni_plat_fence_all(); /* a nudge: the work is not our own, see ring.c */
        completed += drain(u, left, &read);
        left -= read;
    } while (read > 0 && left > 0 && (sni_ring_flags(&u->ring) & IORING_SQ_CQ_OVERFLOW) != 0);
    if (u->kept > 0 && (events || !u->keeper_polled))
        completed += reap_keeper(u);
    if (u->called)
        pass_on_call(u);
    call_for_keeper(u);
    push_all(u, false); /* what goes on does not wait for the owner */
    return completed;
}

/* What was put may stay until the wait, which hands it over by the call that sleeps. Events of the
 * keeper may not: that call would return at once, say that there are some, and bring none. */
static unsigned uring_glance(struct sni_driver *driver)
{
    struct uring *u = uring_of(driver);
    unsigned flags = sni_ring_flags(&u->ring) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
    bool quiet = flags == 0 && !u->called && all_put(u) &&
                 sni_ring_ready(&u->ring, sni_ring_head(&u->ring)) == 0;
    if (!quiet)
        return uring_reap(driver);
    return u->kept > 0 && !u->keeper_polled ? reap_keeper(u) : 0;
}

/* ---- sleep ------------------------------------------------------------------------------ */

/* Read the completions in front that are no operation's. */
static void skip_calls(struct uring *u)
{
    unsigned head = sni_ring_head(&u->ring);
    unsigned ready = sni_ring_ready(&u->ring, head);
    unsigned i = 0;
    for (; i < ready; i++) {
        const struct io_uring_cqe *cqe = sni_ring_at(&u->ring, head + i);
        uint64_t tag = cqe->user_data & TAG_MASK;
        if (tag == TAG_OP || (tag == TAG_KEEPER && u->kept > 0))
            break;
        if (tag == TAG_WAKE)
            u->armed = false;
        else if (tag == TAG_KEEPER)
            u->keeper_polled = false;
        else
            asked(u, cqe->user_data, cqe->res);
    }
    if (i > 0)
        sni_ring_seen(&u->ring, head + i);
}

/* Everything that must be done under the lock before the owner sleeps. Returns for how long it
 * may, 0 if not at all; *publ is how many entries the kernel must take before. */
static int64_t prepare_sleep(struct uring *u, int64_t until_ns, unsigned *publ)
{
    sni_mutex_lock(&u->driver.lock);
    skip_calls(u);
    if (u->event >= 0 && !u->armed) {
        sni_plat_event_clear(u->event);
        (void)arm(u);
    }
    bool told = poll_keeper(u);
    put_delayed(u);
    if (!all_put(u))
        push_all(u, false);
    bool all = told && all_put(u) && (u->event < 0 || u->armed);
    *publ = sni_ring_publish(&u->ring);
    bool ready = sni_ring_ready(&u->ring, sni_ring_head(&u->ring)) != 0;
    sni_mutex_unlock(&u->driver.lock);
    /* acquire: pairs with wake; whoever has called by now need not be waited for */
    if (ready || sni_atomic_load(&u->sleep, acquire) != ASLEEP)
        return 0;
    int64_t most = all ? INT64_MAX : PAUSE_NS;
    if (until_ns == INT64_MAX)
        return most;
    int64_t now = sni_plat_now_ns();
    int64_t ns = until_ns > now ? until_ns - now : 0;
    return ns < most ? ns : most;
}

static void uring_wait(struct sni_driver *driver, int64_t until_ns)
{
    struct uring *u = uring_of(driver);
    uint32_t found = AWAKE;
    unsigned publ;
    /* relaxed, both: the exchange below acquires what a token stands for */
    (void)sni_atomic_cas(&u->sleep, &found, ASLEEP, relaxed, relaxed);
    int64_t ns = prepare_sleep(u, until_ns, &publ);
    if (ns > 0)
        sni_ring_sleep(&u->ring, publ, ns);
    else if (publ > 0)
        sni_driver_flush(driver);
    /* acquire: pairs with the release in wake */
    (void)sni_atomic_exchange(&u->sleep, AWAKE, acquire);
}

/* ---- life ------------------------------------------------------------------------------- */

/* Somebody else will wait for the ring. */
static void uring_hush(struct sni_driver *driver)
{
    (void)poll_keeper(uring_of(driver));
}

static void uring_retire(struct sni_driver *driver)
{
    struct uring *u = uring_of(driver);
    sni_ring_finish(&u->ring);
    sni_mutex_lock(&driver->lock); /* files that had their home here are being closed */
    sni_keeper_close(&u->keeper);
    sni_mutex_unlock(&driver->lock);
    if (u->event >= 0)
        sni_plat_event_close(u->event);
}

static void uring_finish(struct sni_driver *driver)
{
    /* Whoever completed the last operation may still hold the lock, which ends with us. */
    sni_mutex_lock(&driver->lock);
    sni_mutex_unlock(&driver->lock);
    sni_keeper_finish(&uring_of(driver)->keeper);
    free(uring_of(driver));
}

/* A ring can itself be waited for: it is readable while it has completions. */
static int uring_fd(const struct sni_driver *driver)
{
    return ((const struct uring *)(const void *)driver)->ring.map.ring_fd;
}

static const struct sni_driver_ops uring_ops = {
    .name = "uring",
    .native = (1u << SNI_OP_KINDS) - 1,
    .sticky = true,
    .submit = uring_submit,
    .cancel = uring_cancel,
    .forget = uring_forget,
    .flush = uring_flush,
    .reap = uring_reap,
    .glance = uring_glance,
    .wait = uring_wait,
    .wake = uring_wake,
    .fd = uring_fd,
    .hush = uring_hush,
    .retire = uring_retire,
    .finish = uring_finish,
};

int sni_uring_probe(struct sni_uring_features *out)
{
    struct sni_ring ring;
    const struct sni_uring_config small = {.entries = 2};
    int rc = sni_ring_init(&ring, &small, out);
    if (rc == 0)
        sni_ring_finish(&ring);
    return rc;
}

void sni_uring_expect(void)
{
    (void)sni_plat_fence_all_prepare(false);
}

int sni_uring_create(const struct sni_uring_config *config, struct sni_driver **out)
{
    static const struct sni_uring_config usual = {0};
    struct sni_uring_features features;
    struct uring *u = malloc(sizeof(*u));
    if (u == NULL)
        return -ENOMEM;
    *u = (struct uring){.pause = {.tv_nsec = PAUSE_NS}, .event = -1, .keeper = {.fd = -1}};
    sni_driver_init(&u->driver, &uring_ops);
    sni_list_init(&u->backlog);
    sni_list_init(&u->cancels);
    sni_list_init(&u->asked);
    int rc = sni_ring_init(&u->ring, config != NULL ? config : &usual, &features);
    if (rc < 0)
        goto free_uring;
    if ((features.bits & SNI_URING_SEND_MSG) == 0) {
        rc = sni_plat_event_open();
        if (rc < 0)
            goto finish_ring;
        u->event = rc;
    }
    if ((features.bits & SNI_URING_KEEPER) != 0)
        sni_driver_set_crowd(&u->driver, CROWD);
    *out = &u->driver;
    return 0;

finish_ring:
    sni_ring_finish(&u->ring);
free_uring:
    free(u);
    return rc;
}
