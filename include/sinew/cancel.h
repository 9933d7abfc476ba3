/* SPDX-License-Identifier: MIT */
/* cancel.h - being cancelled: deadlines around blocks, shields, and hooks for the end (R61-R63).
 *
 *     SN_DEADLINE(sn_after(SN_MS(50))) {
 *         rc = ask(server, &answer);          // any wait in here, however deep, ends in time
 *     }
 *
 * A block under SN_DEADLINE, SN_SHIELD or SN_SCOPE (group.h) is a *scope*. Scopes nest, in each
 * other and in the task, and each can be *reached*: by its deadline, by a cancel, or with what is
 * around it. From then on, and until it is left, every call in it that waits ends at once with
 *
 *     -ETIMEDOUT   a deadline has passed
 *     -ECANCELED   somebody cancelled it
 *
 * having done nothing, while calls that need not wait take place. What lies around the scope is not
 * touched: after the block all is as before. So an inner deadline never outlasts an outer one, and
 * whoever set a deadline is the one to see what came of it.
 *
 * A cancelled task cleans up like one that failed: it gives back what it holds and returns. What
 * must wait for that, such as a farewell to the peer, is done under SN_SHIELD. */
#ifndef SINEW_CANCEL_H
#define SINEW_CANCEL_H

#include <stdbool.h>

#include <sinew/annotate.h>
#include <sinew/clock.h>
#include <sinew/task.h>

SN_BEGIN_DECLS

/* A scope's memory; the macros declare it. */
typedef struct sn_scope {
    void *opaque_[16];
} sn_scope;

/* What may be said about such a block, by designated initialisers. */
typedef struct sn_scope_options {
    const char *at_; /* filled in by the macros, as are the next two                         */
    sn_deadline until_;
    bool is_shield_;
    bool *expired; /* where to put, at the end, whether the block's own deadline passed        */
} sn_scope_options;

/* SN_DEADLINE(at, .expired = &late) { ... }: waits in the block end with -ETIMEDOUT when `at` has
 * come, those of tasks that are spawned into scopes in it, too. One that has passed is fine. The
 * block may be left in any way.
 *
 * Suspends: no.   Threads: in a fiber; elsewhere that is misuse, and the block has no deadline. */
#define SN_DEADLINE(...) SN_DEADLINE_(__VA_ARGS__, )

/* SN_SHIELD(at, .expired = &late) { ... }: what is around the block does not reach it, be it
 * cancelled before or meanwhile; `at` does, and SN_FOREVER never. For cleaning up. Shields nest. A
 * shield without end makes its task impossible to cancel: give it a deadline if others are waited
 * for.
 *
 * Suspends: no.   Threads: as SN_DEADLINE. */
#define SN_SHIELD(...) SN_SHIELD_(__VA_ARGS__, )

/* Why the waits of this task end, if they do: the text that was given with the cancel.
 *
 * Suspends: no.   Threads: any.
 * Returns  the text; "a deadline has passed" or "cancelled" if none was given; NULL: they do not */
SN_API const char *sn_cancel_reason(void);

/* The earliest deadline of the scopes around the caller that reaches it.
 *
 * Suspends: no.   Threads: any.
 * Returns  the point in time; SN_FOREVER: there is none */
SN_API sn_deadline sn_scope_deadline(void);

/* Call `fn(arg)` when this task ends: after its function has returned, whether it was cancelled or
 * not, and after a panic. The last one that was given is called first, and one that is given
 * meanwhile is called, too. Hooks of a fiber may wait, and are shielded. A hook that returns an
 * error or panics is told of on stderr, and the others are called all the same. They are not called
 * if a shutdown that does not wait abandons the task.
 *
 * Suspends: no.   Threads: inside a task.
 * Returns  0
 *          -EPERM   outside a task
 *          -EINVAL  no function
 *          -ENOMEM  no memory: it will not be called */
SN_API SN_MUST_USE int sn_ensure(sn_task_fn *fn, void *arg);

/* SN_DEFER(fn, arg): call the function when this block is left, by whatever way but a panic or
 * longjmp. Several are called in the reverse order. `arg` is evaluated now. */
#define SN_DEFER(fn, arg)                                                              \
    const sn_defer_ SN_NAME_(sn_defer_at_, __LINE__) SN_AT_END_OF_BLOCK(sn_defer_run_) \
        SN_UNUSED = {(fn), (arg)}

/* ---- behind the macros ---------------------------------------------------------------- */

typedef struct sn_defer_ {
    void (*fn)(void *arg);
    void *arg;
} sn_defer_;

static inline void sn_defer_run_(const sn_defer_ *d)
{
    d->fn(d->arg);
}

#define SN_NAME__(a, b) a##b
#define SN_NAME_(a, b)  SN_NAME__(a, b)

#define SN_DEADLINE_(at, ...) \
    SN_IN_SCOPE_(SN_NAME_(sn_scope_, __LINE__), .at_ = SN_HERE_, .until_ = (at), __VA_ARGS__)
#define SN_SHIELD_(at, ...)                                                      \
    SN_IN_SCOPE_(SN_NAME_(sn_scope_, __LINE__), .at_ = SN_HERE_, .until_ = (at), \
                 .is_shield_ = true, __VA_ARGS__)

/* A loop of one round: what leaves it early leaves the scope, too. */
#define SN_IN_SCOPE_(name, ...)                                                           \
    for (sn_scope name SN_AT_END_OF_BLOCK(sn_scope_leave_),                               \
         *SN_NAME_(name, _in) = sn_scope_enter_(&name, &(sn_scope_options){__VA_ARGS__}); \
         SN_NAME_(name, _in) != (void *)0; SN_NAME_(name, _in) = (void *)0)

SN_API sn_scope *sn_scope_enter_(sn_scope *scope, const sn_scope_options *opts);
SN_API void sn_scope_leave_(sn_scope *scope);

SN_END_DECLS

#endif
