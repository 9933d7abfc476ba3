/* SPDX-License-Identifier: MIT */
/* task.h - a task as the house sees it: one record, whatever it runs.
 *
 * The state word, and who may touch what under which bit:
 *
 *     bits 63..32  the record's generation: a compare and swap with a stale handle fails
 *     bits 31..10  references: one of the scheduler until the end, one of the handle, one
 *                  for each waker. The last one frees the record
 *     HANDLE       somebody may still join. Cleared once, by whoever uses the handle up
 *     WAITED       `joiner` is set. Set by the one who cleared HANDLE
 *     COMPLETE     the task has ended: `result`, PANICKED, `panic_text` are final
 *     CANCELED     somebody asked it to end
 *     ACTIVE       coroutines: in a run queue, or a worker polls it, or somebody looks at it
 *     WOKEN        coroutines, with ACTIVE: woken since it is, and not polled since that
 *     ORPHANED     its runtime is gone; `home_` is the home of orphans
 *     PANICKED     it ended, or is about to end, by sn_panic; `panic_text` says why
 *     LOCKED       somebody looks at its scopes or changes them (scope.c), and the next two; or
 *                  wakes it from outside its runtime, which does not go away meanwhile
 *     SCOPED       fibers: it is in scopes, which `stack->scopes` lists
 *     DOOMED       fibers (the bit of WOKEN): its waits are to end now, because it is cancelled or
 *                  the innermost scope is
 *     EXPIRED      fibers (the bit of ACTIVE): with DOOMED; it is a deadline that ends them
 *
 * Rules
 *   1. Only read-modify-writes; every change of a bit is in one of the functions of task.c or, for
 *      the last four, scope.c. Its first value is stored in spawn.c.
 *   2. `joiner` is written by the one who cleared HANDLE, before it sets WAITED (release); read
 *      by the one who sets COMPLETE, if it finds WAITED (acquire). One of the two finds the
 *      other: both bits are set in the same word.
 *   3. `result` is written by the task before COMPLETE (release), read after it (acquire).
 *   4. A wake sets ACTIVE, and whoever does that queues the task; one that finds it ACTIVE sets
 *      WOKEN. A poll clears WOKEN before it begins, if it is set: what woke it by then, it sees.
 *      After it, if nothing has happened, it clears ACTIVE; if WOKEN is set again, it queues the
 *      task again and leaves the word alone. So a wake is never lost, a task is in one queue at
 *      most, and one thread polls it at a time. The usual wait is two read-modify-writes: the
 *      wake's, and the one after the poll. A wake is one even if it changes nothing: so the poll
 *      that clears the bit acquires what was written before any of the wakes.
 *      A wake by the poll itself (a yield, a budget that is used up) needs none of this: the word
 *      says ACTIVE and goes on saying it, and the thread that is told is the one that looks, when
 *      the poll is over. So it is noted with the executor, and the task is queued again. What the
 *      poll wrote goes to the next one by way of the queue, as when it finds WOKEN.
 *   5. A fiber is resumed by its waiter's claim alone (wait.h): it is neither ACTIVE nor WOKEN,
 *      and has no wakers. */
#ifndef SINEW_TASK_TASK_H
#define SINEW_TASK_TASK_H

#include "base/atomic.h"
#include "base/runlink.h"
#include "fiber/context.h"
#include "fiber/stack.h"
#include "mem/arena.h"
#include "wait/place.h"
#include "wait/wait.h"

#include <setjmp.h>
#include <sinew/task.h>

#define SNI_TASK_DOOMED UINT64_C(16) /* of the state word; the other bits are in state.h */

enum sni_task_kind {
    SNI_TASK_FIBER,
    SNI_TASK_CORO,
};

struct sni_task {
    /* The first line of memory: all that a poll, a wake, and the join of a task that has ended
     * look at. */
    struct sni_record record;   /* arena.h                                                  */
    SNI_ATOMIC(uint64_t) state; /* any thread, see above                                    */
    struct sni_runlink link;    /* whoever queues it                                        */
    union {
        sn_task_fn *fn;            /* fiber, until it begins                                */
        struct sni_inline *acting; /* fiber, after it has begun: whom it runs inline        */
        sn_future *future;         /* coroutine; immutable, points into this record          */
    };
    SNI_ATOMIC(struct sni_home *) home_; /* where it runs, see sni_task_home                */
    struct sni_local_value *locals;      /* the task itself; see local.c                    */
    SNI_ATOMIC(int) result; /* rule 3; atomic, since a stale handle may look at it          */
    uint16_t worker;        /* local: immutable, the worker it stays on                     */
    uint8_t kind;           /* immutable                                                    */
    uint8_t priority : 2;   /* immutable: sn_priority                                       */
    uint8_t special : 1;    /* immutable: local, or of another than normal priority         */
    uint8_t local : 1;      /* immutable                                                    */
    uint8_t keeps_fp : 1;   /* immutable                                                    */
    uint8_t is_member : 1;  /* immutable: of a group; a struct sni_member follows the record  */
    uint8_t unused : 2;     /* 0                                                            */

    /* The second: what fibers need, and what people ask for. */
    struct sni_context context; /* fiber: its executor, while it does not run               */
    struct sni_stack *stack;    /* fiber: its executor; NULL before it begins               */
    union {
        void *arg;             /* until it begins                                           */
        struct sni_lent *lent; /* fiber that has begun: itself; see wait/current.h          */
        char *panic_text;      /* after PANICKED                                            */
    };
    struct sni_waiter *joiner; /* rule 2                                                    */
    const char *at;            /* immutable: where it was spawned                           */
    const char *name;          /* immutable                                                 */
    uint64_t id;               /* immutable                                                 */
    uint32_t stack_bytes;      /* immutable; in units of SNI_STACK_UNIT                     */
    sni_wait_word wait;        /* fiber: the state of its wait, see wait/wait.c             */
};

enum {
    SNI_STACK_UNIT = 1024,
};

/* A fiber that would wait for a task that has not begun may run it itself, on its own stack:
 * the two wait for each other anyway. Then the fiber *acts as* that task. Lies on the fiber's
 * stack; a panic of the task comes back to `out`. */
struct sni_inline {
    struct sni_task *task;
    struct sni_inline *outer; /* whom it acted as before, or NULL */
    jmp_buf out;
};

/* What a task knows of the runtime it belongs to: also the door for another scheduler. */
struct sni_home {
    const struct sni_home_ops *ops;
};

struct sni_home_ops {
    /* A new record of `bytes`, and a number for it. `exec` is the calling thread's, or NULL. */
    int (*new_record)(struct sni_home *home, struct sni_exec *exec, size_t bytes,
                      struct sni_record **out, uint64_t *id);

    /* What new_record gave was not made into a task after all, and counts no more; it is freed like
     * any other. `exec` is that of the same call. */
    void (*unspawned)(struct sni_home *home, struct sni_exec *exec);

    /* The last reference is gone. Any thread; `exec` is the calling thread's, or NULL. */
    void (*free_record)(struct sni_home *home, struct sni_exec *exec, struct sni_record *record);

    /* The task is new: queue it. On a thread of the runtime. */
    void (*spawned)(struct sni_exec *exec, struct sni_task *task);

    /* The task is runnable: queue it. Any thread. */
    void (*ready)(struct sni_task *task);

    /* The task ends; its stack is still in use. On the thread that runs it. */
    void (*ended)(struct sni_exec *exec, struct sni_task *task);

    /* The running task has panicked: end it (-ECONNABORTED) and leave it for good. Does not
     * return. */
    void (*leave)(struct sni_task *task);

    /* Somebody is about to wait for `task`, which it alone may join: take it out of the queue
     * if it has not begun, is at hand, and may be run on the present stack. */
    bool (*take_unstarted)(struct sni_task *task);
};

/* Where `task` runs: the same all its life. An atomic, because a report walks over all records
 * of the process and asks each whose it is, also those that other runtimes are just making. */
static inline struct sni_home *sni_task_home(const struct sni_task *task)
{
    /* relaxed: whoever holds the task got it with its home */
    return sni_atomic_load(&task->home_, relaxed);
}

/* What to spawn. */
struct sni_spawn {
    enum sni_task_kind kind;
    sn_task_fn *fn;
    void *arg;
    sn_future *future;              /* coroutine: inside `frame` */
    const sn_future_vtable *starts; /* its kind, if it is to be started, in the task; or NULL */
    void *frame;
    size_t frame_bytes;
    const sn_spawn_options *opts;
    bool is_member; /* of a group, which fills in the struct sni_member (scope.h) */
};

/* A coroutine that is not started yet, as the macros give it. */
struct sni_spawn sni_spawn_of_frame(const sn_future_vtable *vt, void *frame, size_t coro_at,
                                    size_t frame_bytes, const sn_spawn_options *opts);

/* Call the hooks that the running task was given by sn_ensure (ensure.c). */
void sni_hooks_run(struct sni_task *task);

/* In what follows `exec` is that of the calling thread, or NULL: read once and passed along,
 * because reading it may be a call. It is good until the next suspension.
 *
 * A new task of `home`, not queued yet. With `handle`, somebody will join it.
 *
 * Returns  0, -ENOMEM, -EINVAL */
int sni_task_new(struct sni_home *home, struct sni_exec *exec, const struct sni_spawn *what,
                 bool handle, struct sni_task **out);

/* The same for a fiber that is a member of a group, and has no handle. */
int sni_task_new_child(struct sni_home *home, struct sni_exec *exec, sn_task_fn *fn, void *arg,
                       const sn_spawn_options *opts, struct sni_task **out);

/* A task without a handle is not to be queued after all: it never was. It must not be touched
 * afterwards. */
void sni_task_unspawn(struct sni_exec *exec, struct sni_task *task);

/* The handle of a task that has one. */
static inline sn_task *sni_task_handle(struct sni_task *task)
{
    return (sn_task *)(uintptr_t)sni_record_handle(&task->record);
}

/* The task ended: publish the result, wake the joiner, and give up the scheduler's reference. It
 * must not be touched afterwards. */
void sni_task_end(struct sni_exec *exec, struct sni_task *task, int result);

/* The task has panicked because of `text` (malloc'ed, now the task's; or NULL). */
void sni_task_panic(struct sni_task *task, char *text);

/* Give up a reference; the last one frees the record. */
void sni_task_unref(struct sni_exec *exec, struct sni_task *task);

/* For the future form of a join (join_op.c). Use the handle up; then let `w` be claimed at the
 * task's end (false: it has ended); or take that back and make the handle good again (false: it
 * has ended, and the claim comes); and at last the result, giving up the handle's reference. */
int sni_task_claim_handle(sn_task *handle, struct sni_task **out);
bool sni_task_watch(struct sni_task *task, struct sni_waiter *w);
bool sni_task_unwatch(struct sni_task *task);
void sni_task_restore_handle(struct sni_task *task); /* of a task that has ended */
int sni_task_take_result(struct sni_exec *exec, struct sni_task *task, sn_exit *how);

/* The task of a handle that the caller owns and has not used up. */
struct sni_task *sni_task_of_handle(sn_task *handle);

/* Whoever runs a task calls this on its stack, or in its poll, when its function has returned and
 * before sni_task_end: it may wait, and go on on another thread. */
static inline void sni_task_finish_up(struct sni_task *task)
{
    if (sni_unlikely(task->locals != NULL))
        sni_hooks_run(task);
}

/* A coroutine task, which is LOCKED by the caller, is to be polled. */
void sni_task_wake_locked(struct sni_task *task);

/* For executors, instead of sni_wait_published: the fiber of `task`, which waits, is saved and may
 * be resumed from now on.
 *
 * Returns  true if its wait is over: the executor must resume it itself */
static inline bool sni_task_parked(struct sni_task *task);

/* It was found to be doomed when it had been parked: its wait, if it is the same one, ends. */
void sni_task_parked_in_doom(struct sni_task *task);

static inline bool sni_task_parked(struct sni_task *task)
{
    if (sni_unlikely(sni_wait_park(&task->wait)))
        return true;
    /* From here on others may resume it, and it may even end: then this is another task's word.
     * seq_cst: see scope.c */
    if (SNI_WAIT_CANCELS > 1 &&
        sni_unlikely(sni_atomic_load(&task->state, seq_cst) & SNI_TASK_DOOMED))
        sni_task_parked_in_doom(task);
    return false;
}

/* Whether the task of a handle, which the caller owns, has ended.
 *
 * Returns  0; -EAGAIN: not yet; -ESRCH, -EDEADLK as sn_join */
int sni_task_look(sn_task *handle);

/* Wait for the end of a task without using up its handle, which the caller owns.
 *
 * Returns  0; -ECANCELED, -ETIMEDOUT; -EDEADLK (misuse) as sn_join */
int sni_task_wait(sn_task *handle);

/* An executor of tasks; derives from sni_exec. */
struct sni_task_exec {
    struct sni_exec exec;     /* exec.fiber is the running fiber's task       */
    struct sni_task *polling; /* the coroutine task that is polled, or NULL   */
    struct sni_home *home;    /* immutable: where spawns go                   */
    bool again;               /* `polling` was woken by this thread meanwhile */
};

/* Poll a coroutine task that was taken from a queue. `exec` is the calling thread's.
 *
 * Returns  true if it must be queued again; false if it waits or has ended */
bool sni_task_poll(struct sni_task_exec *exec, struct sni_task *task);

/* The task that runs on `exec`, or NULL. A coroutine's poll counts. */
static inline struct sni_task *sni_task_running(struct sni_exec *exec)
{
    if (exec == NULL)
        return NULL;
    struct sni_task *fiber = exec->fiber;
    if (fiber == NULL)
        return ((struct sni_task_exec *)(void *)exec)->polling;
    return fiber->acting != NULL ? fiber->acting->task : fiber;
}

/* Take a reference to a task of `home`, whose runtime has stopped, found by walking over the
 * records. False: it is another's; or it was just being freed, and now is. */
bool sni_task_hold(struct sni_task *task, const struct sni_home *home);

/* The runtime of `task`, which the caller holds, has stopped and will be freed: the task never
 * runs again. If it has not ended, whoever joins it learns -ECANCELED. What is left of it,
 * because somebody still has a waker or is just reading the result, goes on without the runtime.
 * Gives up the caller's reference. */
void sni_task_abandon(struct sni_task *task);

/* For reports, about tasks of a runtime that runs. Take a reference to what may be a task, found by
 * walking over the records. False: there is none, or it is just being freed. */
bool sni_task_find(struct sni_task *task);

/* Make sure that the task, which the caller has a reference to and which waits, does not go on
 * before sni_task_let_go: the caller takes the place of the executor that has just saved it.
 * Whoever ends the wait meanwhile leaves it to the caller to resume the task, as it would to that
 * executor; so nobody has to know of this, and it costs nobody anything. Its frames may be read,
 * and are to be left as they are. One inspector at a time. False: it does not wait now. */
bool sni_task_seize(struct sni_task *task);
void sni_task_let_go(struct sni_task *task);

/* Of a task that is seized: nobody has ended its wait so far. */
bool sni_task_is_still(const struct sni_task *task);

/* Who waits for the end of the task, which is seized or never runs; or NULL. */
struct sni_waiter *sni_task_joiner(const struct sni_task *task);

/* How joins wait. */
extern const struct sni_wait_kind sni_join_waits;
extern const struct sni_wait_kind sni_join_op_waits;
extern const struct sni_wait_kind sni_group_waits;

/* Questions about the state word: has it ended, may it still be joined, was it asked to end, did it
 * panic. */
bool sni_task_is_complete(const struct sni_task *task);
bool sni_task_has_handle(const struct sni_task *task);
bool sni_task_is_canceled(const struct sni_task *task);
bool sni_task_has_panicked(const struct sni_task *task);

#endif
