/* SPDX-License-Identifier: MIT */
/* api.c - the public face of tasks: yield, panic, and questions about oneself.
 *
 * sn_spawn is in spawn.c; sn_join and its sisters are in task.c, beside the state word that they
 * change. */
#include "task/ensure.h"
#include "task/local.h"
#include "task/scope.h"
#include "task/task.h"

#include "base/assert.h"
#include "future/own.h"

#include <sinew/coro.h>
#include <sinew/errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static struct sni_task *current(void)
{
    return sni_task_running(sni_exec_current());
}

/* ---- oneself --------------------------------------------------------------------------- */

void sn_yield(void)
{
    struct sni_exec *exec = sni_exec_current();
    if (sni_likely(exec != NULL && exec->fiber != NULL)) {
        if (exec->ops->give_way != NULL)
            exec->ops->give_way(exec);
    } else if (sni_task_running(exec) == NULL) { /* a coroutine gives way by SN_YIELD */
        sni_wait_yield_thread();
    }
}

static char *format_text(const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (text != NULL)
        (void)vsnprintf(text, (size_t)length + 1, fmt, args);
    return text;
}

void sn_panic(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = format_text(fmt, args);
    va_end(args);
    struct sni_task *task = current();
    if (task == NULL) {
        sn_assert_failed(text != NULL ? text : "a panic outside a task", "sn_panic", 0);
    }
    if (task->kind == SNI_TASK_CORO)
        sni_future_abandon(task->future);
    const struct sni_catcher *catcher = sni_scope_catcher();
    sni_local_undo(task, catcher != NULL ? catcher->guard : NULL);
    sni_panic_unwind(task, text);
    sni_task_panic(task, text); /* now: waits are over, and use the same place */
    sni_task_home(task)->ops->leave(task);
    abort(); /* leave does not return */
}

uint64_t sn_task_id(void)
{
    struct sni_task *task = current();
    return task != NULL ? task->id : 0;
}

const char *sn_task_name(void)
{
    struct sni_task *task = current();
    return task != NULL ? task->name : NULL;
}

const char *sn_task_spawned_at(void)
{
    struct sni_task *task = current();
    return task != NULL ? task->at : NULL;
}

bool sn_cancelled(void)
{
    return sni_scope_why(sni_exec_current()) != 0;
}
