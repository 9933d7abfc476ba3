/* SPDX-License-Identifier: MIT */
/* case_join.c - the end of a task as a case of a select.
 *
 * While the select waits it has the handle, as a join has, and the task claims a relay when it
 * ends. Then the handle is good again, whatever has taken place. A task that stands in several
 * cases is watched by the first of them. */
#include "task/task.h"

#include "wait/case.h"

#include <sinew/errno.h>
#include <sinew/select.h>

#include <assert.h>

struct watch {
    struct sni_relay relay; /* without a vigil: not watched */
    struct sni_waiter waiter;
};

static_assert(sizeof(struct watch) <= sizeof(((struct sni_case *)0)->room), "it has room");

static struct watch *watch_of(struct sni_case *c)
{
    return (struct watch *)(void *)c->room;
}

static bool look(struct sni_case *c, const sn_waker *waker, int *result)
{
    (void)waker;
    *result = sni_task_look(c->at);
    return *result != -EAGAIN;
}

static int prepare(struct sni_case *c, struct sni_vigil *vigil)
{
    (void)vigil;
    watch_of(c)->relay.vigil = NULL;
    return 0;
}

static bool is_twin(const struct sni_case *c, const struct sni_vigil *vigil)
{
    for (const struct sni_case *other = vigil->cases; other < c; other++)
        if (other->kind == c->kind && other->at == c->at)
            return true;
    return false;
}

static void begin(struct sni_case *c, struct sni_vigil *vigil)
{
    struct watch *watch = watch_of(c);
    struct sni_task *task;
    if (is_twin(c, vigil))
        return;
    int rc = sni_task_claim_handle(c->at, &task);
    if (rc < 0) {
        sni_case_tell(c, vigil, rc);
        return;
    }
    sni_relay_begin(&watch->relay, &watch->waiter, c, vigil);
    c->result = 0;
    if (sni_task_watch(task, &watch->waiter)) {
        sni_relay_published(&watch->relay, &watch->waiter);
        return;
    }
    watch->relay.vigil = NULL;
    sni_task_restore_handle(task);
    sni_case_tell(c, vigil, 0);
}

static void end(struct sni_case *c, bool abandoned)
{
    struct watch *watch = watch_of(c);
    if (watch->relay.vigil == NULL)
        return;
    struct sni_task *task = sni_task_of_handle(c->at); /* we have it, so it is the same */
    if (sni_task_unwatch(task))
        return;
    sni_relay_settle(&watch->relay);
    if (abandoned)
        sni_task_unref(NULL, task); /* nobody will join it */
    else
        sni_task_restore_handle(task);
}

static const struct sni_outside outside = {
    .look = look, .prepare = prepare, .begin = begin, .end = end};

static const void *owner(const struct sni_case *c)
{
    return sni_task_of_handle(c->at);
}

static const struct sni_case_kind kind = {.outside = &outside, .name = "join", .owner = owner};

sn_case sn_case_join(sn_task *task)
{
    return (sn_case){.kind_ = &kind, .at_ = task};
}
