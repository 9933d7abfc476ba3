/* SPDX-License-Identifier: MIT */
/* task.h - tasks: spawn, join, detach, cancel, yield.
 *
 * A task is a function that runs on its own stack (a *fiber*: it may wait at any depth of
 * calls) or a coroutine of coro.h (no stack, one small record). Both are spawned, joined and
 * scheduled alike, and both run on any worker of their runtime.
 *
 *     static int work(void *arg) { ...; return 0; }
 *
 *     sn_task *t = sn_spawn(work, &job, .name = "worker");
 *     ...
 *     int rc = sn_join(t, NULL);
 *
 * A handle is used up by exactly one of sn_join, sn_detach and sn_cancel. Afterwards it is
 * stale: using it again is an error, never a crash. A handle that nobody used up is listed,
 * with the place of its spawn, when the runtime shuts down. */
#ifndef SINEW_TASK_H
#define SINEW_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/coro.h>
#include <sinew/errno.h>

SN_BEGIN_DECLS

/* A handle. Not a pointer to look through: it is checked before every use. */
typedef struct sn_task sn_task;

/* What a fiber runs. Its result is what sn_join returns: 0 or positive, else an error. */
typedef int sn_task_fn(void *arg);

/* How urgent a task is. Urgent ones run first, but never all the time: of four picks one goes
 * to the others, and low ones get a turn too (R44). */
typedef enum sn_priority {
    SN_NORMAL,
    SN_LOW,
    SN_HIGH,
    SN_CRITICAL,
} sn_priority;

/* What may be said about a task when it is spawned, by designated initialisers. */
typedef struct sn_spawn_options {
    const char *at_;      /* the spawn's place; filled in by the macros                         */
    const char *name;     /* for people; must stay valid while the task lives                   */
    size_t stack_bytes;   /* a fiber's stack, 4 KiB to 1 GiB; 0: the runtime's default          */
    size_t copy_bytes;    /* so many bytes at `arg` are copied into the task, which gets the
                           copy: the caller's may go away. At most SN_COPY_BYTES_MAX          */
    sn_priority priority; /* default SN_NORMAL                                                */
    bool local;           /* stays on the worker that spawned it                                */
    bool keeps_fp;        /* a fiber's rounding mode and other floating point control words are
                           its own; costs some 10 ns per suspension. Otherwise what a task
                           changes, it must change back before it waits or ends              */
    bool background;      /* of a group: cancelled at its end instead of waited for (group.h)  */
    bool detached;        /* no handle: sn_spawn gives NULL, also if it worked; see `error`     */
    int *error;           /* where to put 0 or the reason why sn_spawn gave NULL                */
} sn_spawn_options;

/* The largest argument, and the largest coroutine frame or future, that a spawn copies. */
#define SN_COPY_BYTES_MAX  2048
#define SN_FRAME_BYTES_MAX 3840

/* How a task ended. */
typedef enum sn_exit_kind {
    SN_EXIT_RETURNED,
    SN_EXIT_PANICKED,
    SN_EXIT_CANCELED, /* it returned -ECANCELED after it had been asked to end */
    SN_EXIT_NONE,     /* it has not: the join was cancelled                    */
} sn_exit_kind;

/* What sn_join tells beyond the result. */
typedef struct sn_exit {
    sn_exit_kind kind;
    char message[128]; /* of a panic; cut if it was longer */
} sn_exit;

/* Run `fn(arg)` as a fiber: sn_spawn(fn, arg, .name = "x", ...). It gets its stack when it
 * begins; if there is none to be had, it ends with -ENOMEM.
 *
 * Suspends: no.   Threads: only inside a runtime.
 * Returns  a handle that must be used up; NULL on failure, with the reason in `.error`:
 *          -EPERM   called outside a runtime
 *          -EINVAL  no function, or a size or priority out of range
 *          -ENOMEM  no memory for the record
 * Owns: `arg` stays the caller's and must live as long as the task uses it (`copy_bytes`). */
#define sn_spawn(...) SN_SPAWN_(__VA_ARGS__, )

/* Run `fn(arg)` as a fiber that nobody will join: sn_spawn_detached(fn, arg, .name = "x", ...).
 *
 * Suspends: no.   Threads: only inside a runtime.
 * Returns  0, or why not, as sn_spawn's `.error`
 * Owns: as sn_spawn. */
#define sn_spawn_detached(...) SN_SPAWN_DETACHED_(__VA_ARGS__, )

/* Run a coroutine as a task of its own: sn_spawn_coro(type, &frame, .name = "x", ...). The
 * frame, filled in but not started, of at most SN_FRAME_BYTES_MAX, is copied into the task, and
 * stays as it is. (This is a macro: a frame written in place, with a comma in it, wants parentheses
 * around it.) One that emits ends with the first value, and its SN_FINALLY runs.
 *
 * Suspends: no.   Threads: only inside a runtime.
 * Returns  as sn_spawn; its result is the coroutine's */
#define sn_spawn_coro(...) SN_SPAWN_CORO_(__VA_ARGS__, )

/* The same for one that nobody will join: sn_spawn_coro_detached(type, &frame, ...).
 *
 * Suspends: no.   Threads: only inside a runtime.
 * Returns  0, or why not, as sn_spawn's `.error` */
#define sn_spawn_coro_detached(...) SN_SPAWN_CORO_DETACHED_(__VA_ARGS__, )

/* Run any future as a task: sn_spawn_future(fut, &object, .name = "x", ...), where `fut` lies in
 * `object`. The object is copied into the task before the first poll, so it must not hold
 * pointers into itself (sn_fut_join2 does), nor be larger than SN_FRAME_BYTES_MAX.
 *
 * Suspends: no.   Threads: only inside a runtime.
 * Returns  as sn_spawn; its result is the future's */
#define sn_spawn_future(...) SN_SPAWN_FUTURE_(__VA_ARGS__, )

/* Wait until `task` has ended, and use up its handle. `how`, if not NULL, learns how.
 *
 * In a runtime with the option `lifo`, a fiber that joins a task that has not begun may run it
 * itself, on its own stack. It does not if it is cancelled already, or is in a block with a
 * deadline; but a cancel that comes while it does is noticed when the task has ended.
 *
 * Suspends: yes, if the task has not ended.   Threads: any, also outside a runtime: blocks.
 * Returns  the task's result
 *          -EINVAL     `task` is NULL: a spawn failed
 *          -ESRCH      not a handle, or used up before (misuse)
 *          -EDEADLK    a task joins itself, or a coroutine would block its worker and must
 *                      await sn_join_op instead (misuse); the handle is still good
 *          -ECONNABORTED  the task panicked; `how` has the message
 *          -ECANCELED  a shutdown that did not wait abandoned the task; or the caller, a fiber, was
 *                      itself cancelled (cancel.h) before the task had ended: `how` says
 *                      SN_EXIT_NONE, and the handle is still good
 *          -ETIMEDOUT  likewise, by the deadline of a block around the caller */
SN_API SN_SUSPENDS int sn_join(sn_task *task, sn_exit *how) SN_USES_UP(1);

/* The memory of a join that a coroutine awaits. */
typedef struct sn_join_state {
    sn_future future_;
    void *opaque_[14];
} sn_join_state;

/* sn_join as a future: SN_AWAIT_INTO(rc, sn_join_op(&self->join, task, NULL)). The handle is
 * used up by the first poll. Dropped before the task has ended, the handle is good again.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `op`; its result is as sn_join's */
SN_API sn_future *sn_join_op(sn_join_state *op, sn_task *task, sn_exit *how);

/* Let `task` run on its own, and use up its handle. The runtime still waits for it when it
 * shuts down. A task may detach itself.
 *
 * Suspends: no.   Threads: any.
 * Returns  0; -EINVAL, -ESRCH as sn_join */
SN_API int sn_detach(sn_task *task) SN_USES_UP(1);

/* Ask `task` to end soon, wait until it has, and use up its handle. From now on its sn_cancelled()
 * is true, and a call of it that waits, now or later, ends with -ECANCELED, having done nothing;
 * one that need not wait takes place, and so does what it does in a shield (cancel.h). The tasks of
 * its groups are cancelled with it. What it holds, it gives back on its way out. A coroutine is
 * cancelled like any future: what it awaits is dropped, and its SN_FINALLY runs. A task that never
 * waits and never asks is waited for. This wait is not itself cancelled: when it returns, the task
 * is gone.
 *
 * Suspends: as sn_join.   Threads: any.
 * Returns  as sn_join */
SN_API SN_SUSPENDS int sn_cancel(sn_task *task, sn_exit *how) SN_USES_UP(1);

/* Tells whether calls that wait fail here and now: somebody asked this task to end, or the
 * innermost scope that it is in is cancelled or out of time (cancel.h). For loops that do not wait.
 *
 * Suspends: no.   Threads: any.
 * Returns  false outside a task, and in a shield */
SN_API bool sn_cancelled(void);

/* Let other tasks run. From a plain thread: let other threads run. A coroutine gives way by
 * SN_YIELD; here it does nothing.
 *
 * Suspends: yes, for a turn.   Threads: any. */
SN_API SN_SUSPENDS void sn_yield(void);

/* End this task, and only it: whoever joins it learns the message. Outside a task it ends the
 * process, as a failed assertion does. What else a coroutine awaits is dropped; the SN_FINALLY of
 * the one that panics, and of those that await it, does not run.
 *
 * Suspends: does not return.   Threads: any. */
SN_NORETURN SN_API void sn_panic(const char *fmt, ...) SN_PRINTF(1, 2);

/* The number of this task: unique in the process, 0 outside a task.
 *
 * Suspends: no.   Threads: any.
 * Returns  the number */
SN_API uint64_t sn_task_id(void);

/* The name this task was spawned with.
 *
 * Suspends: no.   Threads: any.
 * Returns  the name; NULL without one or outside a task */
SN_API const char *sn_task_name(void);

/* Where this task was spawned, "file.c:42".
 *
 * Suspends: no.   Threads: any.
 * Returns  the place; NULL outside a task */
SN_API const char *sn_task_spawned_at(void);

/* ---- behind the macros ---------------------------------------------------------------- */

#define SN_TEXT__(x) #x
#define SN_TEXT_(x)  SN_TEXT__(x)
#define SN_HERE_     __FILE__ ":" SN_TEXT_(__LINE__)

#define SN_SPAWN_(fn, arg, ...) \
    (sn_spawn_((fn), (arg), &(sn_spawn_options){.at_ = SN_HERE_, __VA_ARGS__}))
#define SN_SPAWN_DETACHED_(fn, arg, ...) \
    (sn_spawn_detached_((fn), (arg), &(sn_spawn_options){.at_ = SN_HERE_, __VA_ARGS__}))
#define SN_SPAWN_CORO_(type, frame, ...)                                                      \
    (sn_spawn_frame_(&type##_coro_, _Generic((frame), type *: (frame)), offsetof(type, coro), \
                     sizeof(type), &(sn_spawn_options){.at_ = SN_HERE_, __VA_ARGS__}))
#define SN_SPAWN_CORO_DETACHED_(type, frame, ...)                                \
    (sn_spawn_frame_detached_(&type##_coro_, _Generic((frame), type *: (frame)), \
                              offsetof(type, coro), sizeof(type),                \
                              &(sn_spawn_options){.at_ = SN_HERE_, __VA_ARGS__}))

#define SN_SPAWN_FUTURE_(fut, object, ...)              \
    (sn_spawn_coro_((fut), (object), sizeof(*(object)), \
                    &(sn_spawn_options){.at_ = SN_HERE_, __VA_ARGS__}))

/* What returns a handle says who uses it up. */
#define SN_GIVES_TASK_ SN_USED_UP_BY(sn_join) SN_USED_UP_BY(sn_detach) SN_USED_UP_BY(sn_cancel)

SN_API SN_MUST_USE sn_task *sn_spawn_(sn_task_fn *fn, void *arg,
                                      const sn_spawn_options *opts) SN_GIVES_TASK_;
SN_API int sn_spawn_detached_(sn_task_fn *fn, void *arg, const sn_spawn_options *opts);
SN_API SN_MUST_USE sn_task *sn_spawn_frame_(const sn_future_vtable *vt, void *frame, size_t coro_at,
                                            size_t frame_bytes,
                                            const sn_spawn_options *opts) SN_GIVES_TASK_;
SN_API int sn_spawn_frame_detached_(const sn_future_vtable *vt, void *frame, size_t coro_at,
                                    size_t frame_bytes, const sn_spawn_options *opts);
SN_API SN_MUST_USE sn_task *sn_spawn_coro_(sn_future *fut, void *frame, size_t frame_bytes,
                                           const sn_spawn_options *opts) SN_GIVES_TASK_;

SN_END_DECLS

#endif
