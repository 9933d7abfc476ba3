/* SPDX-License-Identifier: MIT */
/* alarm.c - setting, clearing, ringing.
 *
 * An alarm rings under the lock, and clearing takes the lock: so when a clear returns, the ring
 * is over, and the frame that the alarm lies in may go away. Ringing claims a waiter, which queues
 * a task; that takes no lock that is held while alarms are set or cleared.
 *
 * `next_ns` is kept beside the wheel, so that a look at the time needs no lock. It may be too
 * early, when what it stands for was cleared; never too late: what is added makes it earlier by
 * itself (sni_wheel_add), and a run finds it anew.
 *
 * The lock: set by an exchange, taken back by a plain store, and nobody sleeps on it. So each
 * setting and each clearing executes one locked instruction. That is worth more than it seems: a
 * locked instruction waits until all stores before it have left the processor, and the stores of a
 * removal go to both neighbours of a timer, which with a million of them are not at hand. After a
 * plain store the processor goes on meanwhile, as far as the next lock. Who finds it locked looks
 * again, ever more rarely, and at last after short sleeps (sni_plat_back_off): it is held for some
 * instructions, or while up to RINGS_AT_ONCE alarms ring.
 *
 * Order: the exchange acquires what the store before it has released, so that the wheel and the
 * alarms in it pass from one to the next.
 *
 * The usual way through setting and clearing calls nothing, so it needs no frame; what is rare is
 * called last. Both are in their callers (alarm.h), who go on with what the alarm is for.
 *
 * Rejected: the mutex of the house, whose unlock must find out whether somebody sleeps and hence is
 * an exchange (the sleep it saves others is one that is hardly ever needed here); no locked
 * instruction at all for the worker that owns the clockwork, others asking the kernel to interrupt
 * it (membarrier): a fiber that was stolen while it waited clears its alarm from elsewhere, which
 * is common, and would take microseconds; leaving such a clear to the owner by a message: the frame
 * that the alarm lies in must not go away before, so it would wait for a worker that is busy. */
#include "timer/alarm.h"

#include "base/compiler.h"
#include "plat/thread.h"

#include <stddef.h>
#include <string.h>

enum {
    RINGS_AT_ONCE = 64, /* then others get the lock */
};

void sni_clockwork_init(struct sni_clockwork *cw, struct sni_wheel_slots *slots, int64_t now_ns,
                        int64_t tick_ns)
{
    memset(cw, 0, sizeof(*cw));
    sni_clockwork_note_next_(cw, INT64_MAX);
    sni_wheel_init(&cw->wheel, slots, now_ns, tick_ns);
}

/* ---- alarms ----------------------------------------------------------------------------- */

void sni_clockwork_each(struct sni_clockwork *cw,
                        void (*fn)(const struct sni_timer *timer, void *arg), void *arg)
{
    sni_brief_lock(&cw->lock);
    sni_wheel_each(&cw->wheel, fn, arg);
    sni_brief_unlock(&cw->lock);
}

SNI_COLD void sni_alarm_set_rare(struct sni_alarm *alarm, struct sni_clockwork *cw, int64_t at_ns)
{
    int64_t due_ns = sni_wheel_add(&cw->wheel, &alarm->timer, at_ns);
    if (due_ns < sni_clockwork_next(cw))
        sni_clockwork_note_next_(cw, due_ns);
    sni_brief_unlock(&cw->lock);
}

SNI_COLD void sni_alarm_set_later(struct sni_alarm *alarm, struct sni_clockwork *cw, int64_t at_ns)
{
    sni_brief_lock(&cw->lock);
    alarm->in = cw;
    sni_alarm_set_rare(alarm, cw, at_ns);
}

SNI_COLD bool sni_alarm_clear_later(struct sni_alarm *alarm, struct sni_clockwork *cw)
{
    sni_brief_lock(&cw->lock);
    return sni_alarm_clear_locked_(alarm, cw);
}

bool sni_alarm_hold(struct sni_alarm *alarm)
{
    sni_brief_lock(&alarm->in->lock);
    return sni_timer_is_armed(&alarm->timer);
}

void sni_alarm_let_go(struct sni_alarm *alarm)
{
    sni_brief_unlock(&alarm->in->lock);
}

/* ---- ringing ---------------------------------------------------------------------------- */

/* A part of a run, under the lock. True if there may be more. */
static bool ring_some(struct sni_clockwork *cw, int64_t now_ns, unsigned *rang)
{
    for (int i = 0; i < RINGS_AT_ONCE; i++) {
        struct sni_timer *timer = sni_wheel_pop(&cw->wheel, now_ns);
        if (timer == NULL)
            return false;
        struct sni_alarm *alarm = sni_container_of(timer, struct sni_alarm, timer);
        alarm->ring(alarm);
        ++*rang;
    }
    return true;
}

unsigned sni_clockwork_run(struct sni_clockwork *cw, int64_t now_ns, unsigned enough)
{
    unsigned rang = 0;
    bool more = true;
    while (more && rang < enough) {
        sni_brief_lock(&cw->lock);
        more = ring_some(cw, now_ns, &rang);
        sni_clockwork_note_next_(cw, sni_wheel_next_ns(&cw->wheel));
        sni_brief_unlock(&cw->lock);
    }
    return rang;
}
