/* SPDX-License-Identifier: MIT */
/* sleep.c - sleeping, as a call and as a future; and intervals.
 *
 * To sleep is to wait for a claim that only the deadline makes.
 *
 * The future. Only time ends it, so it needs no waiter, at which several could meet:
 *
 *     waker   written by the poller, before the alarm is set or while it is held (sni_alarm_hold);
 *             read by the ring, which wakes it. So between the two it does not change, and a poll
 *             may compare it without a lock. Dropped by who clears the alarm before it rings
 *     stage   WAITING; RUNG is the last that the ring writes, and the operation may be gone then,
 *             although the clockwork is still locked. So a poll that finds it locks nothing
 *
 * Why no wake is lost: a poll that does not find RUNG and returns has its waker in place, which the
 * ring has yet to wake, or is about to. One that brings another waker finds the alarm set while it
 * is held, so that the ring will read the new one, or not set, so that it has rung. Dropping clears
 * the alarm, which waits for a ring that is under way.
 *
 * Orders: locking the clockwork passes the waker on to the ring. RUNG is released by the ring and
 * acquired by the poll: whatever the ring read was read before the operation is used for something
 * else.
 *
 * Rejected: a waiter and an await (wait/await.h), as all others have: twice the memory, and a
 * compare and swap for a race that the clockwork's lock has decided already. */
#include "timer/alarm.h"
#include "wait/wait.h"

#include "base/assert.h"
#include "plat/clock.h"

#include <sinew/errno.h>
#include <sinew/time.h>

#include <assert.h>

/* ---- now -------------------------------------------------------------------------------- */

int64_t sn_now(void)
{
    return sni_now_ns();
}

static int64_t add_clipped(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? INT64_MAX : 0;
    return sum;
}

/* The clock must be asked. */
static SNI_NEVER_INLINE int64_t ask_clock(struct sni_quick *quick)
{
    if (!sni_quick_wants_pair(quick))
        return sni_quick_plain(quick, sni_now_ns());
    uint64_t before = sni_plat_counter();
    int64_t now_ns = sni_now_ns();
    return sni_quick_pair(quick, before, now_ns, sni_plat_counter());
}

/* Now, or some microseconds later (quick.h). */
static inline int64_t soon_ns(void)
{
    const struct sni_exec *exec = sni_exec_current();
    if (exec == NULL || exec->clockwork == NULL)
        return sni_now_ns();
    int64_t now_ns;
    struct sni_quick *quick = &exec->clockwork->quick;
    if (sni_likely(sni_quick_is_known(quick)))
        return sni_quick_read(quick, sni_plat_counter(), &now_ns) ? now_ns : ask_clock(quick);
    return sni_quick_is_on(quick) ? ask_clock(quick) : sni_now_ns();
}

sn_deadline sn_after(int64_t ns)
{
    return sn_deadline_at_(add_clipped(sni_likely(ns > 0) ? soon_ns() : sni_now_ns(), ns));
}

/* ---- sleeping --------------------------------------------------------------------------- */

int sn_sleep_until(sn_deadline at)
{
    const struct sni_exec *exec = sni_exec_current();
    if (exec != NULL && exec->fiber == NULL)
        return sni_misuse(-EDEADLK, "a coroutine sleeps and would block its worker");
    struct sni_waiter w;
    sni_wait_begin(&w);
    int rc = sni_wait_commit(&w, at);
    return rc == -ETIMEDOUT && sni_wait_is_past(at) ? 0 : rc; /* not one of a scope around it */
}

int sn_sleep(int64_t ns)
{
    if (ns <= 0) {
        sn_yield();
        return 0;
    }
    return sn_sleep_until(sn_after(ns));
}

/* ---- the future ------------------------------------------------------------------------- */

enum {
    WAITING,
    RUNG,
};

struct sleep_op {
    sn_future future;
    struct sni_alarm alarm; /* alarm.timer.at_ns: the time, from the beginning                */
    sn_waker waker;         /* a reference from the first poll on, until it has rung          */
    SNI_ATOMIC(uint32_t) stage;
};

static_assert(sizeof(struct sleep_op) <= sizeof(sn_sleep_state), "sn_sleep_state is too small");

static void ring(struct sni_alarm *alarm)
{
    struct sleep_op *op = sni_container_of(alarm, struct sleep_op, alarm);
    sn_waker waker = op->waker;
    /* release: pairs with the acquire in poll_sleep; the last touch */
    sni_atomic_store(&op->stage, RUNG, release);
    (void)sn_waker_wake(&waker);
}

/* The first poll, with a waker that is the operation's own. */
static inline sn_poll begin(struct sleep_op *op, struct sni_clockwork *cw, sn_waker waker)
{
    op->waker = waker;
    sni_alarm_set(&op->alarm, cw, op->alarm.timer.at_ns);
    return SN_PENDING;
}

/* The same, with one that counts who has it. */
static SNI_NEVER_INLINE sn_poll begin_cloned(struct sleep_op *op, struct sni_clockwork *cw,
                                             const sn_waker *waker)
{
    return begin(op, cw, sn_waker_clone(waker));
}

static inline sn_poll poll_first(struct sleep_op *op, sn_cx *cx)
{
    const struct sni_exec *exec = sni_exec_current();
    if (sni_unlikely(exec == NULL || exec->clockwork == NULL))
        return SN_READY(-EPERM);
    const sn_waker *waker = cx->waker;
    if (waker == NULL || waker->vt == NULL || waker->vt->clone != NULL)
        return begin_cloned(op, exec->clockwork, waker);
    return begin(op, exec->clockwork, *waker);
}

/* A poll before its time: most are not for our sake, and bring the same waker. */
static SNI_NEVER_INLINE sn_poll poll_early(struct sleep_op *op, sn_cx *cx)
{
    if (sn_waker_same(&op->waker, cx->waker))
        return SN_PENDING;
    sn_waker other = sn_waker_clone(cx->waker); /* before the lock: it is another's code */
    bool is_set = sni_alarm_hold(&op->alarm);
    if (is_set) {
        sn_waker before = op->waker;
        op->waker = other;
        other = before;
    }
    sni_alarm_let_go(&op->alarm);
    sn_waker_drop(&other);
    return is_set ? SN_PENDING : SN_READY(0);
}

static sn_poll poll_sleep(sn_future *fut, sn_cx *cx)
{
    struct sleep_op *op = sni_container_of(fut, struct sleep_op, future);
    if (op->alarm.in == NULL)
        return poll_first(op, cx);
    /* acquire: pairs with the release in ring */
    return sni_atomic_load(&op->stage, acquire) == RUNG ? SN_READY(0) : poll_early(op, cx);
}

static void drop_sleep(sn_future *fut)
{
    struct sleep_op *op = sni_container_of(fut, struct sleep_op, future);
    if (!sni_alarm_clear(&op->alarm))
        return; /* the ring, which is over now, has woken the waker, or there was none */
    const sn_waker_vtable *vt = op->waker.vt; /* not emptied: nobody looks at it any more */
    if (vt != NULL && vt->drop != NULL)
        vt->drop(op->waker.data);
}

static const sn_future_vtable sleep_vtable = {
    .poll = poll_sleep, .drop = drop_sleep, .name = "sleep"};

sn_future *sn_sleep_op(sn_sleep_state *state, sn_deadline at)
{
    struct sleep_op *op = (struct sleep_op *)(void *)state;
    sni_alarm_init(&op->alarm, ring);
    op->alarm.timer.at_ns = at.ns;
    sni_atomic_store(&op->stage, WAITING, relaxed); /* relaxed: setting the alarm publishes it */
    return sn_future_init(&op->future, &sleep_vtable);
}

/* ---- intervals -------------------------------------------------------------------------- */

int sn_interval_init(sn_interval *interval, int64_t period_ns, sn_missed missed)
{
    if (period_ns <= 0 || (unsigned)missed > SN_MISSED_SKIP)
        return -EINVAL;
    *interval = (sn_interval){.next_ns_ = add_clipped(sni_now_ns(), period_ns),
                              .period_ns_ = period_ns,
                              .missed_ = missed};
    return 0;
}

int sn_interval_wait(sn_interval *interval)
{
    int rc = sn_sleep_until(sn_deadline_at_(interval->next_ns_));
    if (rc < 0)
        return rc;
    int64_t period_ns = interval->period_ns_;
    int64_t late_ns = sni_now_ns() - interval->next_ns_;
    int64_t left_out = 0;
    if (interval->missed_ == SN_MISSED_SKIP && late_ns >= period_ns)
        left_out = late_ns / period_ns;
    if (interval->missed_ == SN_MISSED_DELAY && late_ns >= period_ns)
        interval->next_ns_ += late_ns;
    interval->next_ns_ = add_clipped(interval->next_ns_, (left_out + 1) * period_ns);
    return left_out < INT32_MAX ? (int)left_out : INT32_MAX;
}
