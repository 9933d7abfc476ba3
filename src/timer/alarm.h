/* SPDX-License-Identifier: MIT */
/* alarm.h - a wheel with a lock around it, and what rings when a time has come.
 *
 * Each worker has one *clockwork*. It sets alarms in its own only, so nobody must be woken when
 * one is set; but a fiber that waited with an alarm may go on on another worker, which then
 * clears it; and while a worker is busy with a long task, another one rings its alarms (R85).
 * Hence the lock. It is nearly always free and at hand; see alarm.c. */
#ifndef SINEW_TIMER_ALARM_H
#define SINEW_TIMER_ALARM_H

#include "base/atomic.h"
#include "plat/thread.h"
#include "timer/quick.h"
#include "timer/wheel.h"

struct sni_clockwork {
    struct sni_brief lock;       /* guards the wheel, and is held while an alarm rings        */
    SNI_ATOMIC(int64_t) next_ns; /* written under the lock: before it there is nothing to do  */
    struct sni_quick quick;      /* of the thread that owns the clockwork                      */
    struct sni_wheel wheel;
};

/* Lies in the frame of whoever waits. */
struct sni_alarm {
    struct sni_timer timer;
    struct sni_clockwork *in; /* where it was set; NULL: never                                */
    /* The time has come. Under the clockwork's lock, so it must not set or clear alarms. Once it
     * says so in some way of its own, the alarm may be gone. */
    void (*ring)(struct sni_alarm *alarm);
};

/* `slots` are the wheel's, and need no initial value. */
void sni_clockwork_init(struct sni_clockwork *cw, struct sni_wheel_slots *slots, int64_t now_ns,
                        int64_t tick_ns);

/* Prepare an alarm that is not set. */
static inline void sni_alarm_init(struct sni_alarm *alarm, void (*ring)(struct sni_alarm *alarm))
{
    sni_list_init(&alarm->timer.link); /* the time is written when it is set */
    alarm->in = NULL;
    alarm->ring = ring;
}

/* Let `alarm`, which is not set, ring at `at_ns` or less than a tick later. On the thread that owns
 * the clockwork. */
static inline void sni_alarm_set(struct sni_alarm *alarm, struct sni_clockwork *cw, int64_t at_ns);

/* From the return of this on, it does not ring, and is not ringing. Any thread.
 *
 * Returns  whether it was set; false: it has rung, or was never set */
static inline bool sni_alarm_clear(struct sni_alarm *alarm);

/* For who changes what `ring` reads. From `hold` to `let_go`, some instructions later, `alarm`,
 * which was set once, does not ring. Any thread.
 *
 * Returns  whether it is set; false: it has rung, and is not ringing */
bool sni_alarm_hold(struct sni_alarm *alarm);
void sni_alarm_let_go(struct sni_alarm *alarm);

/* Ring what is due at `now_ns`, the earliest first, until `enough` or some more have rung; the rest
 * stays due. Any thread. Returns how many rang. */
unsigned sni_clockwork_run(struct sni_clockwork *cw, int64_t now_ns, unsigned enough);

/* Call `fn` for each alarm that is set, under the lock: for reports. */
void sni_clockwork_each(struct sni_clockwork *cw,
                        void (*fn)(const struct sni_timer *timer, void *arg), void *arg);

/* When to run it next; INT64_MAX: nothing is set. Any thread; exact for the owner. */
static inline int64_t sni_clockwork_next(const struct sni_clockwork *cw)
{
    return sni_atomic_load(&cw->next_ns, relaxed); /* relaxed: the lock orders what follows */
}

/* ---- what is done by the million, in its callers ------------------------------------------- */

static inline void sni_clockwork_note_next_(struct sni_clockwork *cw, int64_t next_ns)
{
    sni_atomic_store(&cw->next_ns, next_ns, relaxed); /* relaxed: a hint; who acts on it locks */
}

/* The rare halves of sni_alarm_set: somebody else holds the lock; it is locked, will be unlocked,
 * and the time has passed or is far. */
void sni_alarm_set_later(struct sni_alarm *alarm, struct sni_clockwork *cw, int64_t at_ns);
void sni_alarm_set_rare(struct sni_alarm *alarm, struct sni_clockwork *cw, int64_t at_ns);

static inline void sni_alarm_set(struct sni_alarm *alarm, struct sni_clockwork *cw, int64_t at_ns)
{
    int64_t due_ns;
    if (sni_unlikely(!sni_brief_try(&cw->lock))) {
        sni_alarm_set_later(alarm, cw, at_ns);
        return;
    }
    alarm->in = cw;
    if (sni_unlikely(!sni_wheel_add_near(&cw->wheel, &alarm->timer, at_ns, &due_ns))) {
        sni_alarm_set_rare(alarm, cw, at_ns);
        return;
    }
    /* A time to come that is noted is the beginning of a tick: what is before it is due by then */
    if (at_ns < sni_clockwork_next(cw))
        sni_clockwork_note_next_(cw, due_ns);
    sni_brief_unlock(&cw->lock);
}

/* The rare half of sni_alarm_clear: somebody else holds the lock. */
bool sni_alarm_clear_later(struct sni_alarm *alarm, struct sni_clockwork *cw);

/* With the clockwork locked; unlocks it. */
static inline bool sni_alarm_clear_locked_(struct sni_alarm *alarm, struct sni_clockwork *cw)
{
    bool was_set = sni_wheel_remove(&cw->wheel, &alarm->timer);
    if (sni_wheel_count(&cw->wheel) == 0) /* nobody need wake up for nothing */
        sni_clockwork_note_next_(cw, INT64_MAX);
    sni_brief_unlock(&cw->lock);
    return was_set;
}

static inline bool sni_alarm_clear(struct sni_alarm *alarm)
{
    struct sni_clockwork *cw = alarm->in;
    if (cw == NULL)
        return false;
    if (sni_unlikely(!sni_brief_try(&cw->lock)))
        return sni_alarm_clear_later(alarm, cw);
    return sni_alarm_clear_locked_(alarm, cw);
}

#endif
