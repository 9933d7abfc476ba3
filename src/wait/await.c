/* SPDX-License-Identifier: MIT */
/* await.c - from a claim to a waker.
 *
 * The waiter lies in the operation, and the claimer must not touch that once it is over; but the
 * claimer still has the waker to take out. So the operation is over only when `stage` says so,
 * which is the last that the claimer writes:
 *
 *     WAITING    not claimed
 *     RESUMING   claimed; the claimer is about to take the waker out of the cell
 *     OVER       the claimer will not touch the operation any more
 *
 * Why no wake is lost: a poll arms the cell and then looks at the stage; the claimer sets
 * RESUMING and then takes the waker (both are read-modify-writes with a full fence between). If
 * the look finds WAITING, the waker taken later is this poll's. If it finds RESUMING, the poll
 * cannot tell whose was taken, and wakes itself: the stage is a few instructions from OVER.
 *
 * Before the waiter is parked nobody resumes, and after OVER nobody does any more: then the cell is
 * the poller's alone, and filled and cleared without ceremony. The parking releases the filled cell
 * to the claimer, which acquires it with its claim; OVER gives it back. So the usual wait, polled
 * once to begin and once when it is over, never arms. A waiter can even be parked before it is
 * known to anybody, since there is no stack to be saved: then it is the publishing, under some
 * lock, that releases the cell. */
#include "wait/await.h"

#include "future/waker_cell.h"

enum {
    WAITING,
    RESUMING,
    OVER,
};

static void resume(void *who)
{
    struct sni_await *await = who;
    sni_atomic_exchange(&await->stage, RESUMING, seq_cst);
    bool busy; /* an arm under way: that poll finds RESUMING or OVER */
    sn_waker waker = sni_waker_cell_take(&await->cell, &busy);
    /* release: pairs with the acquires below; the last touch */
    sni_atomic_store(&await->stage, OVER, release);
    if (waker.vt != NULL)
        (void)sn_waker_wake(&waker);
}

/* Arm and disarm, while the cell is the poller's alone. Here and not beside the cell, which small
 * devices have too. */
static void fill(sn_waker_cell *cell, const sn_waker *waker)
{
    if (cell->waker_.vt != NULL && sn_waker_same(&cell->waker_, waker))
        return;
    sn_waker before = cell->waker_;
    cell->waker_ = sn_waker_clone(waker);
    sn_waker_drop(&before);
}

static void clear(sn_waker_cell *cell)
{
    if (cell->waker_.vt != NULL)
        sn_waker_drop(&cell->waker_);
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
    fill(&await->cell, cx->waker);
}

void sni_await_begin_parked(struct sni_await *await, struct sni_waiter *w, sn_cx *cx)
{
    sni_await_begin_armed(await, w, cx);
    sni_atomic_store(&w->own, SNI_WAIT_PARKED, relaxed); /* relaxed: publishing it releases */
}

bool sni_await_published(struct sni_await *await, struct sni_waiter *w)
{
    bool claimed = sni_wait_published(w); /* in between: nobody resumes */
    if (claimed)
        sni_atomic_store(&await->stage, OVER, relaxed); /* relaxed: acquired by that */
    return claimed;
}

bool sni_await_poll(struct sni_await *await, sn_cx *cx)
{
    /* acquire, twice: pairs with the release in resume */
    if (sni_likely(sni_atomic_load(&await->stage, acquire) == OVER))
        return true;
    (void)sn_waker_cell_arm(&await->cell, cx->waker);
    sni_atomic_fence(seq_cst); /* see the top */
    uint32_t stage = sni_atomic_load(&await->stage, acquire);
    if (stage == RESUMING)
        (void)sn_waker_wake_by_ref(cx->waker);
    return stage == OVER;
}

void sni_await_settle(struct sni_await *await)
{
    /* acquire: pairs with the release in resume; it is a few instructions away */
    while (sni_atomic_load(&await->stage, acquire) != OVER)
        sni_cpu_pause();
}

void sni_await_finish(struct sni_await *await)
{
    clear(&await->cell);
}
