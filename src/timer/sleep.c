/* SPDX-License-Identifier: MIT */
/* sleep.c - sleeping, as a call and as a future; and intervals.
 *
 * To sleep is to wait for a claim that only the deadline makes.
 *
 * The future's alarm claims its waiter, under the lock of its clockwork. The end clears the alarm,
 * which waits for a ring that is under way; so the ring never touches an operation that is gone. */
#include "timer/alarm.h"
#include "wait/await.h"

#include "base/assert.h"

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

sn_deadline sn_after(int64_t ns)
{
    return sn_deadline_at_(add_clipped(sni_now_ns(), ns));
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

struct sleep_op {
    sn_future future;
    struct sni_alarm alarm;
    struct sni_waiter waiter;
    struct sni_await await;
    int64_t at_ns;
};

static_assert(sizeof(struct sleep_op) <= sizeof(sn_sleep_state), "sn_sleep_state is too small");

static void ring(struct sni_alarm *alarm)
{
    struct sleep_op *op = sni_container_of(alarm, struct sleep_op, alarm);
    (void)sni_wait_claim(&op->waiter, 0);
}

static sn_poll poll_sleep(sn_future *fut, sn_cx *cx)
{
    struct sleep_op *op = sni_container_of(fut, struct sleep_op, future);
    if (op->alarm.in == NULL) {
        const struct sni_exec *exec = sni_exec_current();
        if (exec == NULL || exec->clockwork == NULL)
            return SN_READY(-EPERM);
        sni_await_begin_parked(&op->await, &op->waiter, cx);
        sni_alarm_set(&op->alarm, exec->clockwork, op->at_ns);
        return SN_PENDING;
    }
    if (!sni_await_poll(&op->await, &op->waiter, cx))
        return SN_PENDING;
    (void)sni_alarm_clear(&op->alarm);
    sni_await_finish(&op->await);
    return SN_READY(0);
}

static void drop_sleep(sn_future *fut)
{
    struct sleep_op *op = sni_container_of(fut, struct sleep_op, future);
    (void)sni_alarm_clear(&op->alarm); /* a ring, with its claim, is over now */
    sni_await_finish(&op->await);
}

static const sn_future_vtable sleep_vtable = {
    .poll = poll_sleep, .drop = drop_sleep, .name = "sleep"};

sn_future *sn_sleep_op(sn_sleep_state *state, sn_deadline at)
{
    struct sleep_op *op = (struct sleep_op *)(void *)state;
    *op = (struct sleep_op){.at_ns = at.ns};
    sni_alarm_init(&op->alarm, ring);
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
