/* SPDX-License-Identifier: MIT */
/* future.h - futures, wakers, and the loop that needs no runtime (Level 0).
 *
 * Words
 *   future  something that will complete. Whoever wants it to, polls it.
 *   poll    one attempt: it completes (ready, with an int) or is pending.
 *   waker   what a pending future keeps, to say "poll me again".
 *   cx      what a poll is given; today that is the waker.
 *
 * Rules
 *   1. A poll that returns SN_PENDING has seen to it that the waker of that very
 *      poll will be woken when another attempt is worth while.
 *   2. A future that completed holds nothing: neither waker clones nor memory.
 *   3. An unfinished future that nobody will poll again is dropped, once.
 *   4. A future is polled, cancelled and dropped by one thread at a time. Wakers may
 *      be used from any thread and from interrupt handlers.
 *   5. Memory is the caller's. A future does not move between its first poll and its end.
 *
 * Misuse has a defined outcome. A release build of the library returns the error named in
 * the contract and touches nothing; a debug build stops with a sentence (assert.h).
 *
 * Everything here is freestanding C11: no heap, no operating system, no libc. */
#ifndef SINEW_FUTURE_H
#define SINEW_FUTURE_H

#include <stdbool.h>
#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/errno.h>

SN_BEGIN_DECLS

/* ---- poll --------------------------------------------------------------------------- */

/* The outcome of a poll: pending, or ready with a result. The result is an int like every
 * other result of Sinew (0 or positive, else a negative errno); whatever is larger lies in
 * the future's own struct. A struct of its own, so that no pending poll is mistaken for a
 * value: ask sn_poll_pending() first, then read `value`. */
typedef struct sn_poll {
    int value;
} sn_poll;

/* What a poll returns. INT32_MIN is no errno and no size, and marks "not yet". */
#define SN_READY(v) (sn_poll_make_(v))
#define SN_PENDING  (sn_poll_make_(INT32_MIN))

static inline sn_poll sn_poll_make_(int value)
{
    sn_poll p;
    p.value = value;
    return p;
}

/* Tells whether `p` is pending, so that there is no value yet. */
static inline bool sn_poll_pending(sn_poll p)
{
    return p.value == INT32_MIN;
}

/* ---- wakers --------------------------------------------------------------------------- */

/* How a waker acts on its `data`. Only `wake_by_ref` is required.
 *
 * clone        takes another reference and returns the new waker's data; NULL: data is copied
 * wake         wakes and gives up the reference; NULL: wake_by_ref, then drop
 * wake_by_ref  wakes, keeps the reference; 0, or -ESRCH where nobody waits any more
 * drop         gives up the reference; NULL: nothing to do
 *
 * All four may be called from any thread, and on targets without threads from interrupt
 * handlers, unless the executor that made the waker says otherwise. */
typedef struct sn_waker_vtable {
    void *(*clone)(void *data);
    int (*wake)(void *data);
    int (*wake_by_ref)(void *data);
    void (*drop)(void *data);
} sn_waker_vtable;

/* One reference to whoever polls. Zeroed, it is empty; waking or dropping empties it. */
typedef struct sn_waker {
    const sn_waker_vtable *vt;
    void *data;
} sn_waker;

/* What a poll is given. `waker` is borrowed for the length of the poll: clone to keep. */
typedef struct sn_cx {
    const sn_waker *waker;
} sn_cx;

/* A waker that wakes nobody, for loops that poll anyway.
 *
 * Suspends: no.   Threads: any, also interrupt handlers.
 * Returns  the waker; it needs no drop */
SN_API sn_waker sn_noop_waker(void);

/* Another reference to whoever `waker` wakes.
 *
 * Suspends: no.   Threads: any, also interrupt handlers.
 * Returns  the new waker; an empty one where `waker` is empty or NULL (misuse)
 * Owns: the caller must wake or drop what it gets. */
SN_API SN_MUST_USE sn_waker sn_waker_clone(const sn_waker *waker);

/* Wake, and give up the reference: `waker` is empty afterwards.
 *
 * Suspends: no.   Threads: any, also interrupt handlers.
 * Returns  0        whoever waits will poll again
 *          -ESRCH   nobody waits any more: what was polled has completed (not a misuse:
 *                   a late wake is an ordinary race)
 *          -EINVAL  `waker` is NULL or empty, it was woken or dropped before (misuse) */
SN_API int sn_waker_wake(sn_waker *waker);

/* Wake, and keep the reference.
 *
 * Suspends: no.   Threads: any, also interrupt handlers.
 * Returns  as sn_waker_wake */
SN_API int sn_waker_wake_by_ref(const sn_waker *waker);

/* Give up the reference without waking. NULL and empty wakers are fine.
 *
 * Suspends: no.   Threads: any, also interrupt handlers. */
SN_API void sn_waker_drop(sn_waker *waker);

/* Tells whether both wake the same poller, so that a clone can be saved.
 *
 * Suspends: no.   Threads: any.
 * Returns  true only if waking one is as good as waking the other */
SN_API bool sn_waker_same(const sn_waker *a, const sn_waker *b);

/* ---- waker cell ----------------------------------------------------------------------- */

/* A place for one waker, shared by one poller and whoever makes the event happen (another
 * thread, an interrupt handler, several of them). Lock-free: a handler that interrupts the
 * poller in the middle of arming neither spins nor loses its wake.
 *
 * The pattern of a leaf future, in this order:
 *     poll:   sn_waker_cell_arm(&cell, cx->waker);  then look at the event's flag
 *     event:  set the flag;                         then sn_waker_cell_wake(&cell)
 * Zeroed or SN_WAKER_CELL_INIT, a cell is empty. */
typedef struct sn_waker_cell {
    sn_waker waker_;
    struct {
        uint32_t raw_;
    } state_;
} sn_waker_cell;

/* An empty cell, for static storage. */
#define SN_WAKER_CELL_INIT {{0, 0}, {0}}

/* Keep a clone of `waker` in place of the one before. If a wake runs at the same time, the
 * new waker is woken.
 *
 * Suspends: no.   Threads: the poller's, one at a time.
 * Returns  0
 *          -EINVAL  `waker` is NULL or empty (misuse); the cell keeps what it had
 *          -EBUSY   another thread is arming the same cell (misuse); nothing was kept */
SN_API int sn_waker_cell_arm(sn_waker_cell *cell, const sn_waker *waker);

/* Wake whoever armed the cell last, once; the cell is empty afterwards. What the caller
 * wrote before is visible to the poll that follows.
 *
 * Suspends: no.   Threads: any, also interrupt handlers.
 * Returns  0        woken, or an arm under way will wake
 *          -ESRCH   the cell was empty, or its waker's poller is gone */
SN_API int sn_waker_cell_wake(sn_waker_cell *cell);

/* Drop the waker in the cell: the future that armed it is dropped or done.
 *
 * Suspends: no.   Threads: the poller's. */
SN_API void sn_waker_cell_disarm(sn_waker_cell *cell);

/* ---- futures -------------------------------------------------------------------------- */

typedef struct sn_future sn_future;

/* What a kind of future can do. Only `poll` is required. The library calls these through
 * sn_future_poll and its sisters, which check the order of calls; do not call them directly.
 *
 * poll    one attempt, see the rules above
 * cancel  asks an unfinished future to complete soon; it is still polled to its end. NULL:
 *         the future is dropped and its next poll completes with -ECANCELED
 * drop    releases what an unfinished future holds; it is not polled again. NULL: nothing
 * name    for people, may be NULL */
typedef struct sn_future_vtable {
    sn_poll (*poll)(sn_future *self, sn_cx *cx);
    void (*cancel)(sn_future *self);
    void (*drop)(sn_future *self);
    const char *name;
} sn_future_vtable;

/* The head of every future: embed it in a struct with what the future needs. */
struct sn_future {
    const sn_future_vtable *vt;
    uint32_t state_;
};

/* A future of the kind `vtable`, for initialisers. */
#define SN_FUTURE_INIT(vtable) {(vtable), 0}

/* Make `fut` a new future of the kind `vt`.
 *
 * Suspends: no.   Threads: the owner's.
 * Returns  `fut`, so that constructors can pass it on */
SN_API sn_future *sn_future_init(sn_future *fut, const sn_future_vtable *vt);

/* Attempt to complete `fut`.
 *
 * Suspends: no.   Threads: one at a time.
 * Returns  SN_PENDING            not yet; cx->waker will be woken
 *          SN_READY(v)           done with result v
 *          SN_READY(-EINVAL)     `fut`, its vtable or `cx` is NULL (misuse)
 *          SN_READY(-EALREADY)   it has completed or was dropped before (misuse)
 *          SN_READY(-EDEADLK)    it is being polled: re-entered from its own poll (misuse)
 *          SN_READY(-ECANCELED)  it was cancelled */
SN_API SN_MUST_USE sn_poll sn_future_poll(sn_future *fut, sn_cx *cx);

/* Ask `fut` to complete soon, normally with -ECANCELED; go on polling until it does.
 * Cancelling again, or cancelling what has completed, does nothing.
 *
 * Suspends: no.   Threads: one at a time.
 * Returns  0
 *          -EINVAL    `fut` or its vtable is NULL (misuse)
 *          -EALREADY  it was dropped (misuse)
 *          -EDEADLK   called from its own poll (misuse) */
SN_API int sn_future_cancel(sn_future *fut);

/* Abandon `fut`: it releases what it holds and is never polled again. Dropping NULL or a
 * future that has completed is fine, so that clean-up needs no condition.
 *
 * Suspends: no.   Threads: one at a time.
 * Returns  0
 *          -EINVAL    its vtable is NULL (misuse)
 *          -EALREADY  it was dropped before (misuse)
 *          -EDEADLK   called from its own poll (misuse) */
SN_API int sn_future_drop(sn_future *fut);

/* Tells whether `fut` has completed: there is nothing left to poll.
 *
 * Suspends: no.   Threads: the owner's.
 * Returns  true after a ready poll (for a generator: after its last) */
SN_API bool sn_future_finished(const sn_future *fut);

/* ---- running a future without a runtime ----------------------------------------------- */

/* How a thread (or the whole machine) waits while a future is pending.
 *
 * wait    called while nothing is to be done; returns after a wake, or earlier. It must look
 *         at sn_idle_woken() and sleep in one step (interrupts masked around WFI, a futex,
 *         a condition variable). NULL: the library spins until the wake.
 * notify  called by a wake, from any thread or interrupt handler, to end `wait`. NULL where
 *         the interrupt that wakes also ends the wait.
 *
 * It must outlive every waker cloned while it was in use: static storage on firmware. */
typedef struct sn_idle sn_idle;
struct sn_idle {
    void (*wait)(sn_idle *idle);
    void (*notify)(sn_idle *idle);
    struct {
        uint32_t raw_;
    } word_;
};

/* An sn_idle with the two hooks. */
#define SN_IDLE_INIT(wait_fn, notify_fn) {(wait_fn), (notify_fn), {0}}

/* Tells a wait hook whether a wake has come since the last poll.
 *
 * Suspends: no.   Threads: any, also interrupt handlers.
 * Returns  true if `wait` must not sleep */
SN_API bool sn_idle_woken(const sn_idle *idle);

/* Poll `fut` on this thread until it completes. With `idle`, polls only after wakes;
 * with NULL, polls without end and wakes are not needed.
 *
 * Suspends: blocks the calling thread.   Threads: any; one caller per `idle`.
 * Returns  the future's result
 *          -EBUSY  `idle` is in use by another call (misuse); `fut` was not polled
 *          and the errors of sn_future_poll */
SN_API SN_MUST_USE int sn_block_on_simple(sn_future *fut, sn_idle *idle);

SN_END_DECLS

#endif
