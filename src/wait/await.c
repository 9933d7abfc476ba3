/* SPDX-License-Identifier: MIT */
/* await.c - from a claim to a waker.
 *
 * The waiter lies in the operation, and the claimer must not touch that once it is over; but the
 * claimer still has the waker to take out. So the operation is over only when `stage` says so,
 * which is the last that the claimer writes. Whose the waker is, the waiter's state says (wait.c):
 *
 *     OPEN      the poller's: it has not been made known yet, or a poll puts another waker in
 *     PARKED    the next claimer's
 *     CLAIMED   found PARKED, the claimer's: it takes the waker out, and then the stage is OVER.
 *               Found OPEN, the claimer has let go already: the poller finds out when it parks, and
 *               makes it OVER itself
 *
 *     poller    OPEN -> PARKED, and back to put another waker in, by compare and swap
 *     claimer   OPEN or PARKED -> CLAIMED, as always
 *
 * Why no wake is lost: whoever comes second sees the first, since both change the one word. A poll
 * that finds it claimed and not OVER cannot tell whose waker was taken, and wakes itself: OVER is a
 * few instructions away.
 *
 * Orders: parking releases the waker to the claimer, which acquires it with its claim; OVER gives
 * it back. So the usual wait, polled once to begin and once when it is over, costs a coroutine no
 * more than a fiber: two compare and swaps.
 *
 * Borrowing. A waker is a reference to a task, and to count one costs a wait two read-modify-writes
 * of the task's word. An operation in the record of the very task that polls it (all that stand in
 * a coroutine's frame) needs none: the record is not freed before the frame is done with, and the
 * frame is not done with an operation that is not OVER. So a claimer that finds a borrowed waker
 * wakes the task before the stage is OVER, as far as its word goes (sni_task_begin_wake); and
 * queues it afterwards, so that whoever polls it then, on another worker, finds OVER. Between the
 * two the task is ACTIVE and in no queue, so it is the claimer's: nobody polls it, and it does not
 * end. If it was ACTIVE already, it was or will be polled by somebody else, who does not get by
 * this operation before it is OVER; and the claimer has nothing to do afterwards. Who is not of the
 * task's runtime counts a reference before OVER, for the way. Wakers of others are cloned, and
 * woken when it is OVER: they may be anything.
 *
 * Rejected: waking wholly before OVER, as operations on files do (file_op.c): there the lock makes
 * a poller wait that comes in between, here it would wake itself, for as long as the kernel takes
 * to wake a worker. A waker cell (sn_waker_cell), which has a state of its own: two more
 * read-modify-writes for each wake; and a stage that the claimer exchanges, which is one more. */
#include "wait/await.h"

#include "plat/thread.h"

enum {
    WAITING,
    OVER,
};

/* It was claimed when it was parked: take the waker out, and touch it no more. */
static inline sn_waker let_go(struct sni_await *await)
{
    sn_waker waker = await->waker;
    if (sni_likely(await->is_borrowed))
        waker = sni_task_begin_wake(waker.data);
    await->waker.vt = NULL;
    await->is_borrowed = false;
    /* release: pairs with the acquires below; the last touch */
    sni_atomic_store(&await->stage, OVER, release);
    return waker;
}

static inline void wake(sn_waker *waker)
{
    if (sni_likely(waker->vt != NULL && waker->vt->wake != NULL))
        (void)waker->vt->wake(waker->data);
    else if (waker->vt != NULL)
        (void)sn_waker_wake(waker);
}

static void resume(void *who)
{
    sn_waker waker = let_go(who);
    wake(&waker);
}

/* There is none in it. */
static inline void put(struct sni_await *await, const sn_waker *waker)
{
    await->is_borrowed = sni_likely(sni_await_may_borrow(await, waker));
    if (sni_likely(await->is_borrowed)) { /* in two halves, as it was written by who polls */
        await->waker.vt = &sni_task_wakers;
        await->waker.data = waker->data;
    } else {
        await->waker = sn_waker_clone(waker);
    }
}

/* While the waker is the poller's alone. */
static void fill(struct sni_await *await, const sn_waker *waker)
{
    if (await->waker.vt != NULL && sn_waker_same(&await->waker, waker))
        return;
    sn_waker before = await->is_borrowed ? (sn_waker){0} : await->waker;
    put(await, waker);
    if (sni_unlikely(before.vt != NULL))
        sn_waker_drop(&before);
}

/* Late: whoever drops the operation waits for OVER. */
static const struct sni_exec_ops await_ops = {
    .resume = resume, .resume_last = resume, .resumes_late = true};

void sni_await_begin(struct sni_await *await, struct sni_waiter *w)
{
    sni_atomic_store(&await->stage, WAITING, relaxed); /* relaxed: nobody else knows it yet */
    sni_wait_begin_with(w, &await_ops, await);
}

void sni_await_begin_armed(struct sni_await *await, struct sni_waiter *w, sn_cx *cx)
{
    sni_await_begin(await, w);
    put(await, cx->waker);
}

bool sni_await_published(struct sni_await *await, struct sni_waiter *w)
{
    bool claimed = sni_wait_park(&w->own); /* in between: nobody resumes */
    if (claimed)
        sni_atomic_store(&await->stage, OVER, relaxed); /* relaxed: acquired by that */
    return claimed;
}

bool sni_await_poll(struct sni_await *await, struct sni_waiter *w, sn_cx *cx)
{
    /* acquire: pairs with the release in let_go */
    if (sni_likely(sni_atomic_load(&await->stage, acquire) == OVER))
        return true;
    uint32_t parked = SNI_WAIT_PARKED;
    /* acquire: as wait.c wants it of who takes the state back. relaxed on failure: claimed, and we
     * look at nothing before it is OVER */
    if (sni_unlikely(!sni_atomic_cas(&w->own, &parked, SNI_WAIT_OPEN, acquire, relaxed))) {
        (void)sn_waker_wake_by_ref(cx->waker);
        return false;
    }
    fill(await, cx->waker);
    return sni_await_published(await, w);
}

void sni_await_settle(struct sni_await *await)
{
    /* acquire: pairs with the release in let_go; it is a few instructions away */
    for (unsigned round = 0; sni_atomic_load(&await->stage, acquire) != OVER; round++)
        sni_plat_back_off(round);
}

bool sni_await_is_over(const struct sni_await *await)
{
    /* acquire: pairs with the release in let_go */
    return sni_atomic_load(&await->stage, acquire) == OVER;
}

void sni_await_forgo(struct sni_await *await)
{
    sni_atomic_store(&await->stage, OVER, relaxed); /* relaxed: the caller drops it now */
}

void sni_await_pay(struct sni_wake *wakes, unsigned n)
{
    sn_waker wakers[SNI_AWAIT_PAID];
    sni_assert(n <= SNI_AWAIT_PAID, "more wakes are owed than can be paid in one go");
    for (unsigned i = 0; i < n; i++) {
        bool is_await = wakes[i].ops == &await_ops;
        wakers[i] = is_await ? let_go(wakes[i].who) : (sn_waker){NULL, NULL};
        if (is_await)
            wakes[i] = (struct sni_wake){NULL, NULL};
    }
    for (unsigned i = 0; i < n; i++) {
        sni_wait_wake(wakes[i]);
        wake(&wakers[i]);
    }
}

void sni_await_finish(struct sni_await *await)
{
    if (sni_unlikely(!await->is_borrowed && await->waker.vt != NULL))
        sn_waker_drop(&await->waker);
}
