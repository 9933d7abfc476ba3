/* SPDX-License-Identifier: MIT */
/* case_deadline.c - a point in time as a case of a select.
 *
 * A fiber or a thread that waits has a deadline anyway: the case makes it earlier, and takes place
 * when it comes. A coroutine has none, and sets an alarm, which is cleared before the case goes
 * away; a ring that is under way is over then (alarm.c). */
#include "timer/alarm.h"
#include "wait/case.h"

#include <sinew/clock.h>
#include <sinew/select.h>

#include <assert.h>

struct watch {
    struct sni_alarm alarm;
    struct sni_case *of;
    struct sni_vigil *vigil;
};

static_assert(sizeof(struct watch) <= sizeof(((struct sni_case *)0)->room), "it has room");

static struct watch *watch_of(struct sni_case *c)
{
    return (struct watch *)(void *)c->room;
}

static bool look(struct sni_case *c, const sn_waker *waker, int *result)
{
    (void)waker;
    *result = 0;
    return c->more <= 0 || c->more <= sni_now_ns();
}

static void ring(struct sni_alarm *alarm)
{
    struct watch *watch = sni_container_of(alarm, struct watch, alarm);
    sni_case_tell(watch->of, watch->vigil, 0);
}

static int prepare(struct sni_case *c, struct sni_vigil *vigil)
{
    (void)vigil;
    sni_alarm_init(&watch_of(c)->alarm, ring);
    return 0;
}

static void begin(struct sni_case *c, struct sni_vigil *vigil)
{
    if (!vigil->is_awaited) {
        if (c->more <= vigil->until_ns) {
            vigil->until_ns = c->more;
            vigil->timer = (int16_t)c->index;
        }
        return;
    }
    const struct sni_exec *exec = sni_exec_current();
    if (exec == NULL || exec->clockwork == NULL) {
        sni_case_tell(c, vigil, -EPERM);
        return;
    }
    struct watch *watch = watch_of(c);
    watch->of = c;
    watch->vigil = vigil;
    sni_alarm_set(&watch->alarm, exec->clockwork, c->more);
}

static void end(struct sni_case *c, bool abandoned)
{
    (void)abandoned;
    (void)sni_alarm_clear(&watch_of(c)->alarm);
}

static const struct sni_outside outside = {
    .look = look, .prepare = prepare, .begin = begin, .end = end};
static const struct sni_case_kind kind = {.outside = &outside, .name = "deadline"};

sn_case sn_case_deadline(sn_deadline at)
{
    bool never = at.ns == SN_FOREVER.ns;
    return (sn_case){
        .kind_ = &kind, .at_ = never ? NULL : (void *)(uintptr_t)&kind, .more_ = at.ns};
}
