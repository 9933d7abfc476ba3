/* SPDX-License-Identifier: MIT */
/* group.h - groups: tasks that are begun together and waited for together (R60).
 *
 *     int rc;
 *     SN_SCOPE(g, .result = &rc) {
 *         for (int i = 0; i < n; i++)
 *             sn_group_spawn(g, fetch, &jobs[i]);
 *     }
 *     // here all of them have ended, whatever has happened
 *
 * The block is left when the last child has ended, on every path: at its end the children are
 * waited for; whoever leaves it before, by return, break, goto or a panic, cancels them and waits
 * for them. Hence a child may use what lies on its parent's stack, if it was declared before the
 * block: what is declared in the block is gone when its last line has been executed, and the wait
 * comes after that. (A small argument can be copied instead: .copy_bytes = sizeof(job).)
 *
 * The block is a scope (cancel.h): if it is reached, by its deadline, by sn_group_cancel, with what
 * is around it, or because a child failed (SN_FAIL_FAST), then so are the children, and theirs. */
#ifndef SINEW_GROUP_H
#define SINEW_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/cancel.h>
#include <sinew/task.h>

SN_BEGIN_DECLS

/* A group: the caller's memory, which stays where it is until the group is closed. */
typedef struct sn_group {
    void *opaque_[44];
} sn_group;

/* What the failure of a child does: one that returns an error or panics. A child that was cancelled
 * and says so (-ECANCELED, -ETIMEDOUT) has not failed. */
typedef enum sn_policy {
    SN_FAIL_FAST,     /* cancels the others                                                  */
    SN_COLLECT_ALL,   /* nothing                                                             */
    SN_FIRST_SUCCESS, /* nothing; but the first that ends well cancels the others, and the group
                         has failed only if none did                                         */
} sn_policy;

/* What may be said about a group, by designated initialisers. */
typedef struct sn_group_options {
    const char *at_;  /* its place; filled in by the macros                              */
    sn_policy policy; /* default SN_FAIL_FAST                                            */
    sn_deadline
        until;    /* when it is cancelled, for -ETIMEDOUT; zeroed (SN_NOWAIT): never             */
    size_t limit; /* so many children live at a time; 0: any number                 */
    size_t results_max; /* of `results`                                                   */
    int *results;       /* where to put the children's results, in the order of their spawn;
                            those of a spawn that failed and beyond results_max are left out */
    int *result;        /* where to put the group's result when it is closed: as
                            sn_group_close. Left alone if the block was left early and no child
                            had failed                                                     */
    struct sn_group_report *report; /* where to put what became of the children, then       */
} sn_group_options;

/* What became of the children so far. */
typedef struct sn_group_report {
    uint32_t spawned;
    uint32_t ended;        /* of these: */
    uint32_t failed;       /* returned an error or panicked */
    uint32_t cancelled;    /* were cancelled and said so */
    int error;             /* the result of the first that failed, or 0 */
    int winner;            /* SN_FIRST_SUCCESS: the number of the first that ended well, or -1 */
    const char *failed_at; /* where that one was spawned */
    const char *failed_name;
    char message[128]; /* of the first panic; cut if it was longer */
} sn_group_report;

/* SN_SCOPE(g, .policy = ..., ...) { ... }: a block with a group, `sn_group *g`. `continue` goes to
 * its end; break, return and goto leave it early.
 *
 * Suspends: yes, at its end.   Threads: in a fiber; elsewhere that is misuse, the block is skipped,
 * and `*result` says -EPERM. */
#define SN_SCOPE(...) SN_SCOPE_(__VA_ARGS__, )

/* The same in two calls: sn_group_open(&group, .policy = ..., ...). Groups and scopes are closed in
 * the reverse order of their opening, by the task that opened them. A task that ends with an open
 * group ends the program.
 *
 * Suspends: no.   Threads: in a fiber.
 * Returns  0
 *          -EPERM   not in a fiber */
#define sn_group_open(...) SN_GROUP_OPEN_(__VA_ARGS__, )

/* Wait until all children have ended, those spawned meanwhile included; cancel and await those in
 * the background; call the hooks; and close the group. The wait is not cancelled: if the group is
 * reached, the children are.
 *
 * Suspends: yes, if one has not ended.   Threads: whoever opened it.
 * Returns  0
 *          the error of the first child that failed, -ECONNABORTED for a panic; under
 *          SN_FIRST_SUCCESS only if none ended well
 *          -ETIMEDOUT  the group's deadline has passed, or one around it
 *          -ECANCELED  something around the group was cancelled. (After sn_group_cancel it is 0.)
 *          -EINVAL     it is not open (misuse) */
SN_API SN_SUSPENDS int sn_group_close(sn_group *group);

/* Run `fn(arg)` as a fiber of the group: sn_group_spawn(g, fn, arg, .name = "x", ...), with the
 * options of sn_spawn, of which `background` is for groups: such a child is cancelled at the
 * group's end instead of waited for, does not count for its `limit`, and its end fails nobody if it
 * is that cancel. Children may spawn siblings.
 *
 * Suspends: only at the group's limit, until a child has ended.
 * Threads: whoever opened the group, and what is in it.
 * Returns  the number of the child, from 0: its place in `results`
 *          -ECANCELED, -ETIMEDOUT  the group is reached; or the caller is, at the limit
 *          -EAGAIN  a coroutine spawns, and the limit is reached
 *          -EPERM   outside a task of the group's runtime; or in a hook of the group, whose end it
 *                   is: nobody would wait for the child
 *          -EINVAL, -ENOMEM  as sn_spawn
 * Owns: `arg`, as sn_spawn. On an error nothing has begun. */
#define sn_group_spawn(...) SN_GROUP_SPAWN_(__VA_ARGS__, )

/* The same for a coroutine: sn_group_spawn_coro(g, type, &frame, .name = "x", ...). When it is
 * cancelled, what it awaits is dropped, and its SN_FINALLY runs.
 *
 * Suspends, Threads, Returns: as sn_group_spawn. */
#define sn_group_spawn_coro(...) SN_GROUP_SPAWN_CORO_(__VA_ARGS__, )

/* Wait until all children, without those in the background, have ended, or `until` has come. The
 * group stays open. If it is reached, so are the children, and the wait goes on; if only a block in
 * it is, in which this is called, the wait ends.
 *
 * Suspends: yes, if one has not ended.   Threads: whoever opened it.
 * Returns  as sn_group_close, so far; -EINVAL also to others, and in a hook of the group
 *          -ETIMEDOUT, -ECANCELED  also if some are alive: it was too late, or a block in the group
 *                                  is cancelled. sn_group_get_report tells */
SN_API SN_SUSPENDS int sn_group_join(sn_group *group, sn_deadline until);

/* The group that this task is a child of, for spawning siblings and for cancelling them.
 *
 * Suspends: no.   Threads: any.
 * Returns  the group; NULL: it is none's child */
SN_API sn_group *sn_group_current(void);

/* Cancel all that is in the group, until it is closed: the children, and whoever opened it.
 * `reason`, if not NULL, is for sn_cancel_reason, and must stay valid as long as the group. The
 * first cancel counts.
 *
 * Suspends: no.   Threads: any, while the group is open. */
SN_API void sn_group_cancel(sn_group *group, const char *reason);

/* Call `fn(arg)` when the children have ended and the group is closed, as sn_ensure does at the end
 * of a task. Then it takes no more children; a hook that needs tasks opens a group of its own.
 *
 * Suspends: no.   Threads: whoever opened it.
 * Returns  as sn_ensure */
SN_API SN_MUST_USE int sn_group_ensure(sn_group *group, sn_task_fn *fn, void *arg);

/* What became of the children so far.
 *
 * Suspends: no.   Threads: any, while the group is open. */
SN_API void sn_group_get_report(sn_group *group, sn_group_report *report);

/* ---- behind the macros ---------------------------------------------------------------- */

/* A loop of one round. */
#define SN_SCOPE_(g, ...)                                                                       \
    for (sn_group g##_memory_ SN_AT_END_OF_BLOCK(sn_group_leave_),                              \
         *g = sn_group_enter_(&g##_memory_, &(sn_group_options){.at_ = SN_HERE_, __VA_ARGS__}); \
         g != (void *)0; g = sn_group_end_(g))
#define SN_GROUP_OPEN_(group, ...) \
    (sn_group_open_((group), &(sn_group_options){.at_ = SN_HERE_, __VA_ARGS__}))
#define SN_GROUP_SPAWN_(group, fn, arg, ...) \
    (sn_group_spawn_((group), (fn), (arg), &(sn_spawn_options){.at_ = SN_HERE_, __VA_ARGS__}))
#define SN_GROUP_SPAWN_CORO_(group, type, frame, ...)                                  \
    (sn_group_spawn_frame_((group), &type##_coro_, _Generic((frame), type *: (frame)), \
                           offsetof(type, coro), sizeof(type),                         \
                           &(sn_spawn_options){.at_ = SN_HERE_, __VA_ARGS__}))

SN_API int sn_group_open_(sn_group *group, const sn_group_options *opts);
SN_API sn_group *sn_group_enter_(sn_group *group, const sn_group_options *opts);
SN_API SN_SUSPENDS sn_group *sn_group_end_(sn_group *group);
SN_API SN_SUSPENDS void sn_group_leave_(sn_group *group);
SN_API SN_SUSPENDS int sn_group_spawn_(sn_group *group, sn_task_fn *fn, void *arg,
                                       const sn_spawn_options *opts);
SN_API SN_SUSPENDS int sn_group_spawn_frame_(sn_group *group, const sn_future_vtable *vt,
                                             void *frame, size_t coro_at, size_t frame_bytes,
                                             const sn_spawn_options *opts);

SN_END_DECLS

#endif
