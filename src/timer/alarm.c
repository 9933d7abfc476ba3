/* SPDX-License-Identifier: MIT */
/* alarm.c - setting, clearing, ringing.
 *
 * An alarm rings under the lock, and clearing takes the lock: so when a clear returns, the ring
 * is over, and the frame that the alarm lies in may go away. Ringing claims a waiter, which queues
 * a task; that takes no lock that is held while alarms are set or cleared.
 *
 * `next_ns` is kept beside the wheel, so that a look at the time needs no lock. */
#include "timer/alarm.h"

#include "base/compiler.h"

enum {
    RINGS_AT_ONCE = 64, /* then others get the lock */
};

void sni_clockwork_init(struct sni_clockwork *cw, int64_t now_ns, int64_t tick_ns)
{
    *cw = (struct sni_clockwork){.next_ns = {INT64_MAX}};
    sni_wheel_init(&cw->wheel, now_ns, tick_ns);
}

void sni_alarm_init(struct sni_alarm *alarm, void (*ring)(struct sni_alarm *alarm))
{
    sni_timer_init(&alarm->timer);
    alarm->in = NULL;
    alarm->ring = ring;
}

void sni_clockwork_each(struct sni_clockwork *cw,
                        void (*fn)(const struct sni_timer *timer, void *arg), void *arg)
{
    sni_mutex_lock(&cw->lock);
    sni_wheel_each(&cw->wheel, fn, arg);
    sni_mutex_unlock(&cw->lock);
}

static void note_next(struct sni_clockwork *cw)
{
    /* relaxed: a hint; who acts on it takes the lock */
    sni_atomic_store(&cw->next_ns, sni_wheel_next_ns(&cw->wheel), relaxed);
}

void sni_alarm_set(struct sni_alarm *alarm, struct sni_clockwork *cw, int64_t at_ns)
{
    alarm->in = cw;
    sni_mutex_lock(&cw->lock);
    sni_wheel_add(&cw->wheel, &alarm->timer, at_ns);
    if (at_ns < sni_clockwork_next(cw))
        note_next(cw);
    sni_mutex_unlock(&cw->lock);
}

bool sni_alarm_clear(struct sni_alarm *alarm)
{
    struct sni_clockwork *cw = alarm->in;
    if (cw == NULL)
        return false;
    sni_mutex_lock(&cw->lock);
    bool was_set = sni_wheel_remove(&cw->wheel, &alarm->timer);
    if (sni_wheel_count(&cw->wheel) == 0)
        note_next(cw); /* nobody need wake up for nothing */
    sni_mutex_unlock(&cw->lock);
    return was_set;
}

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
        sni_mutex_lock(&cw->lock);
        more = ring_some(cw, now_ns, &rang);
        note_next(cw);
        sni_mutex_unlock(&cw->lock);
    }
    return rang;
}
