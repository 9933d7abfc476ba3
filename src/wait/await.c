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
 * Rejected: a waker cell (sn_waker_cell), which has a state of its own: two more read-modify-writes
 * for each wake; and a stage that the claimer exchanges, which is one more. */
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
    await->waker.vt = NULL;
    /* release: pairs with the acquires below; the last touch */
    sni_atomic_store(&await->stage, OVER, release);
    return waker;
}

static void resume(void *who)
{
    sn_waker waker = let_go(who);
    if (waker.vt != NULL)
        (void)sn_waker_wake(&waker);
}

/* While the waker is the poller's alone. */
static void fill(struct sni_await *await, const sn_waker *waker)
{
    if (await->waker.vt != NULL && sn_waker_same(&await->waker, waker))
        return;
    sn_waker before = await->waker;
    await->waker = sn_waker_clone(waker);
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
    fill(await, cx->waker);
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
        if (wakers[i].vt != NULL)
            (void)sn_waker_wake(&wakers[i]);
    }
}

void sni_await_finish(struct sni_await *await)
{
    if (await->waker.vt != NULL)
        sn_waker_drop(&await->waker);
}
