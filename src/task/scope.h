/* SPDX-License-Identifier: MIT */
/* scope.h - scopes: what a fiber is in while it may be cancelled together with others.
 *
 * A scope lies on its fiber's stack, inside the one it was entered in, and is left before that.
 * Once it is *reached*, by a cancel, by its deadline or from outside, every wait in it ends with
 * the reason: -ETIMEDOUT if that was a deadline, else -ECANCELED. It stays so until it is left.
 * A *shield* is a scope that is not reached from outside.
 *
 * A scope may have a *group*, whose *members* are tasks: they are reached with it. A member that is
 * reached is reached as a whole, with all the scopes that it is in, up to its shields. */
#ifndef SINEW_TASK_SCOPE_H
#define SINEW_TASK_SCOPE_H

#include "base/list.h"
#include "task/task.h"
#include "timer/alarm.h"

struct sni_group;

enum sni_scope_kind {
    SNI_SCOPE_OPEN,   /* reached with what is around it */
    SNI_SCOPE_SHIELD, /* not */
};

/* Where a panic goes on. */
struct sni_catcher {
    jmp_buf out;
    const struct sni_guard *guard; /* the innermost around it; or NULL */
};

struct sni_scope {
    struct sni_scope *outer; /* around it, in the same fiber; guarded by the fiber's lock, as all
                                that is not said to be something else                        */
    struct sni_scope *inner; /* in it                                                        */
    struct sni_task *fiber;  /* immutable: whose it is                                       */
    struct sni_inline *role; /* immutable: whom the fiber acted as when it was entered       */
    struct sni_group *group; /* immutable: whose members are reached with it; or NULL        */
    int64_t until_ns;        /* immutable: its deadline; INT64_MAX: none                     */
    struct sni_alarm alarm;  /* set if it has one                                            */
    struct sni_catcher *catcher; /* the fiber's own: where a panic in it goes on; or NULL    */
    const char *reason;          /* given with the cancel, or NULL                               */
    int why;                     /* 0: not reached; else what waits in it end with               */
    bool is_shield;              /* immutable: not reached from outside                          */
    bool was_shielded;           /* the fiber's own: its waits were shielded before              */
    bool is_source;              /* it was cancelled itself, or its own deadline has passed      */
};

/* What a task knows as a member of a group; lies behind its record. */
struct sni_member {
    struct sni_group *group;    /* immutable                                                 */
    struct sni_list link;       /* in the group, under its lock                              */
    struct sni_task *next_told; /* whoever tells the members that they are reached           */
    int why;                    /* under the task's lock: 0, or why it is reached            */
    uint32_t index;             /* immutable: the how manieth it is                          */
    bool is_background;         /* immutable                                                 */
};

static inline struct sni_member *sni_member_of(struct sni_task *task)
{
    return (struct sni_member *)(void *)(task + 1);
}

/* Tasks that are to be told, each with a reference. */
struct sni_tellings {
    struct sni_task *first;
};

/* Enter a scope, whose `group` the caller has filled in, with a deadline; SN_FOREVER: none.
 *
 * Returns  0
 *          -EPERM   not in a fiber of a runtime */
int sni_scope_enter(struct sni_scope *scope, enum sni_scope_kind kind, sn_deadline until);

/* Leave the innermost scope of the running fiber, which is this one. */
void sni_scope_leave(struct sni_scope *scope);

/* The innermost scope of the running task, or NULL. */
struct sni_scope *sni_scope_innermost(void);

/* Reach `scope`, which the caller knows to be there, because of `why`. Any thread. */
void sni_scope_cancel(struct sni_scope *scope, int why, const char *reason);

/* Reach `task`, which the caller holds, as a whole. Any thread. */
void sni_scope_cancel_task(struct sni_task *task, int why);

/* For tasks that are abandoned. When the first returns, whoever was cancelling it has done so, and
 * others do not make it go on any more; after the second, which says that it has ended, nobody
 * looks at its frames for that. In between it is not locked.
 *
 * Returns  the state before */
void sni_scope_abandon(struct sni_task *task);
uint64_t sni_scope_complete(struct sni_task *task);

/* For groups: `task`, which the caller holds, is to be told, soon. */
void sni_scope_tell_later(struct sni_tellings *tellings, struct sni_task *task);

/* For scopes: reach all members of `group`, whose lock is taken for it. */
void sni_group_reach(struct sni_group *group, int why, struct sni_tellings *tellings);

/* For tasks: a member has ended with `result`; it is a member no more. */
void sni_group_ended(struct sni_task *task, int result);

/* For tasks: a member is abandoned, and is not to be reached any more. */
void sni_group_abandoned(struct sni_task *task);

/* For scopes: the one of a group. */
struct sni_scope *sni_group_scope(struct sni_group *group);

/* For tasks that panic: leave all scopes of the running task, cancelling what is in them, up to one
 * that has a catcher.
 *
 * Returns  that one, or NULL */
struct sni_scope *sni_scope_unwind(void);

/* The catcher of that one, or NULL. */
const struct sni_catcher *sni_scope_catcher(void);

/* For sni_scope_unwind: leave a scope that has a group. */
void sni_group_unwind(struct sni_scope *scope);

/* Whether the waits of the running task are to end, and why: 0, -ECANCELED, -ETIMEDOUT. */
int sni_scope_why(struct sni_exec *exec);

/* Whether they are to end, or there is a deadline at which they will be. */
bool sni_scope_is_bounded(void);

/* The text that was given with that; NULL: none. And the earliest deadline around it. */
const char *sni_scope_reason(void);
int64_t sni_scope_until_ns(void);

#endif
