/* SPDX-License-Identifier: MIT */
/* timeout.c - a function that may run for so long and no longer.
 *
 * The caller waits for the end of the task in any case: the task may use what lies on the caller's
 * stack. So the deadline does not end that wait, it cancels the task. The alarm holds the task by
 * its handle, which is used up only after the alarm has been cleared. */
#include "task/task.h"

#include "timer/alarm.h"

#include <sinew/errno.h>
#include <sinew/time.h>

struct timeout {
    struct sni_alarm alarm;
    struct sni_task *task;
    bool is_up; /* written under the clockwork's lock, read after the alarm was cleared */
};

static void ring(struct sni_alarm *alarm)
{
    struct timeout *t = sni_container_of(alarm, struct timeout, alarm);
    t->is_up = true;
    sni_task_cancel(t->task);
}

int sn_timeout(sn_task_fn *fn, void *arg, int64_t ns)
{
    int rc;
    sn_task *handle = sn_spawn(fn, arg, .error = &rc);
    if (handle == NULL)
        return rc;
    struct timeout t = {.task = sni_task_of_handle(handle)};
    struct sni_exec *exec = sni_exec_current();
    sni_alarm_init(&t.alarm, ring);
    if (exec->clockwork != NULL)
        sni_alarm_set(&t.alarm, exec->clockwork, sn_after(ns).ns);
    rc = sni_task_wait(handle);
    (void)sni_alarm_clear(&t.alarm);
    if (rc == -ECANCELED)
        return sn_cancel(handle, NULL);
    if (rc < 0)
        return rc; /* a coroutine, which may not wait here */
    rc = sn_join(handle, NULL);
    return t.is_up ? -ETIMEDOUT : rc;
}
