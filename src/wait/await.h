/* SPDX-License-Identifier: MIT */
/* await.h - a waiter that a coroutine awaits: what a future needs so that a claim wakes its poller.
 *
 *     poll, the first time:  sni_await_begin(&op->await, &op->waiter);
 *                            publish the waiter; it may be claimed from here on
 *                            sni_await_published(&op->await, &op->waiter);
 *             or cheaper:    sni_await_begin_armed(&op->await, &op->waiter, cx);
 *                            publish the waiter
 *                            if (!sni_await_published(...)) return SN_PENDING;
 *     poll:                  if (!sni_await_poll(&op->await, &op->waiter, cx)) return SN_PENDING;
 *                            sni_await_finish(&op->await); the result is there
 *     drop:                  make sure that nobody will claim; or that somebody has, and then
 *                            sni_await_settle(&op->await); sni_await_finish(&op->await);
 *
 * See await.c for why no wake is lost and when the claimer has let go. */
#ifndef SINEW_WAIT_AWAIT_H
#define SINEW_WAIT_AWAIT_H

#include "base/compiler.h"
#include "mem/arena.h"
#include "wait/wait.h"

/* The vtable of the wakers of tasks (task.c), by which they are told from others: their data is the
 * record of the task (mem/arena.h), in which a coroutine's frame lies. */
extern const sn_waker_vtable sni_task_wakers;

/* Does what lies at `at` lie in the record of the task whose waker it is? Then it may keep the
 * waker without a reference for as long as the task cannot end before it. */
static inline bool sni_await_may_borrow(const void *at, const sn_waker *waker)
{
    if (sni_unlikely(waker->vt != &sni_task_wakers))
        return false;
    const struct sni_record *task = waker->data;
    return (uintptr_t)at - (uintptr_t)task < (size_t)(task->class + 1) * SNI_RECORD_STEP;
}

/* Wake the task of such a waker, but for the queueing, if there is any to do: from here on nothing
 * that was borrowed keeps the record.
 *
 * Returns  the waker that does the rest, to be woken soon; or an empty one */
sn_waker sni_task_begin_wake(void *record);

struct sni_await {
    sn_waker waker;             /* whose it is, see await.c; empty: none  */
    SNI_ATOMIC(uint32_t) stage; /* any thread, see await.c */
    bool is_borrowed;           /* the waker: it is not ours to drop      */
};

/* No waker is in it; zeroed memory has none, either. */
static inline void sni_await_init(struct sni_await *await)
{
    await->waker = (sn_waker){NULL, NULL};
    await->is_borrowed = false;
}

/* Bind `w` to `await`; begins a new wait each time. */
void sni_await_begin(struct sni_await *await, struct sni_waiter *w);

/* The same with one that has no waker and need not be initialised; that of this poll is in it when
 * `w` becomes known. */
void sni_await_begin_armed(struct sni_await *await, struct sni_waiter *w, sn_cx *cx);

/* `w` was made known to claimers.
 *
 * Returns  true if it has been claimed already; nobody is woken then */
bool sni_await_published(struct sni_await *await, struct sni_waiter *w);

/* Has it been claimed, and has the claimer let go? If not, the poller is woken then. */
bool sni_await_poll(struct sni_await *await, struct sni_waiter *w, sn_cx *cx);

/* It has been claimed: return when the claimer has let go, in a few instructions. */
void sni_await_settle(struct sni_await *await);

/* Whether it has. If not, and that claimer is the caller, which will not come to it any more: it
 * has, and the poller is not woken. */
bool sni_await_is_over(const struct sni_await *await);
void sni_await_forgo(struct sni_await *await);

/* Pay at most SNI_AWAIT_PAID wakes that are owed together (sni_wait_claim_locked). The waker of one
 * may drop the operation of another: so first the caller lets go of all of them. */
enum { SNI_AWAIT_PAID = 17 };
void sni_await_pay(struct sni_wake *wakes, unsigned n);

/* Nobody will claim it any more, or whoever did has let go. */
void sni_await_finish(struct sni_await *await);

#endif
