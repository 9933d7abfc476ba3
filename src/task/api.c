/* SPDX-License-Identifier: MIT */
/* api.c - the public face of tasks: spawn, yield, panic, and questions about oneself.
 *
 * sn_join and its sisters are in task.c, beside the state word that they change. */
#include "task/ensure.h"
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

/* ---- spawning -------------------------------------------------------------------------- */

static sn_task *spawn(const struct sni_spawn *what)
{
    struct sni_exec *exec = sni_exec_current();
    struct sni_home *home = exec != NULL ? ((struct sni_task_exec *)(void *)exec)->home : NULL;
    struct sni_task *task = NULL;
    int rc = home != NULL ? sni_task_new(home, exec, what, !what->opts->detached, &task) : -EPERM;
    if (what->opts->error != NULL)
        *what->opts->error = rc;
    if (rc < 0)
        return NULL;
    sn_task *handle = what->opts->detached ? NULL : sni_task_handle(task);
    home->ops->spawned(exec, task);
    return handle;
}

sn_task *sn_spawn_(sn_task_fn *fn, void *arg, const sn_spawn_options *opts)
{
    return spawn(&(struct sni_spawn){.kind = SNI_TASK_FIBER, .fn = fn, .arg = arg, .opts = opts});
}

/* Spawn without a handle. Returns 0, or why not. */
static int spawn_detached(struct sni_spawn *what)
{
    int rc;
    int *error = what->opts->error;
    sn_spawn_options opts = *what->opts;
    opts.detached = true;
    opts.error = &rc;
    what->opts = &opts;
    (void)spawn(what);
    if (error != NULL)
        *error = rc;
    return rc;
}

int sn_spawn_detached_(sn_task_fn *fn, void *arg, const sn_spawn_options *opts)
{
    return spawn_detached(
        &(struct sni_spawn){.kind = SNI_TASK_FIBER, .fn = fn, .arg = arg, .opts = opts});
}

struct sni_spawn sni_spawn_of_frame(const sn_future_vtable *vt, void *frame, size_t coro_at,
                                    size_t frame_bytes, const sn_spawn_options *opts)
{
    sn_coro *coro = (sn_coro *)(void *)((char *)frame + coro_at);
    return (struct sni_spawn){.kind = SNI_TASK_CORO,
                              .future = sn_coro_start_(coro, vt),
                              .frame = frame,
                              .frame_bytes = frame_bytes,
                              .opts = opts};
}

sn_task *sn_spawn_frame_(const sn_future_vtable *vt, void *frame, size_t coro_at,
                         size_t frame_bytes, const sn_spawn_options *opts)
{
    struct sni_spawn what = sni_spawn_of_frame(vt, frame, coro_at, frame_bytes, opts);
    return spawn(&what);
}

int sn_spawn_frame_detached_(const sn_future_vtable *vt, void *frame, size_t coro_at,
                             size_t frame_bytes, const sn_spawn_options *opts)
{
    struct sni_spawn what = sni_spawn_of_frame(vt, frame, coro_at, frame_bytes, opts);
    return spawn_detached(&what);
}

sn_task *sn_spawn_coro_(sn_future *fut, void *frame, size_t frame_bytes,
                        const sn_spawn_options *opts)
{
    return spawn(&(struct sni_spawn){.kind = SNI_TASK_CORO,
                                     .future = fut,
                                     .frame = frame,
                                     .frame_bytes = frame_bytes,
                                     .opts = opts});
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
