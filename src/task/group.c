/* SPDX-License-Identifier: MIT */
/* group.c - groups of tasks: counted while they live, awaited by whoever opened the group.
 *
 * A group lies in the frame of the fiber that opened it, its *owner*, and begins with its scope.
 * Its members are in a list, under its lock; each leaves the list at its end, so a group that lives
 * long, such as a server's, is as large as what is alive in it. What is to be known of members that
 * have ended is written down as they end: results, the first error.
 *
 * The owner goes on when it has found, under the lock, that nobody is left. The last member changes
 * the count and unlocks, and touches the group no more. So the group is gone only after that.
 *
 * The owner's wait at the end is shielded: if the group is reached, so are its members, and the
 * wait ends with them. A wait for a free place, at the limit, is a wait like others.
 *
 * A member that fails cancels the scope before it leaves the list: while it is a member, the group
 * is there.
 *
 * Tasks that a shutdown abandons leave the list, and nothing else: the owner is abandoned, too. */
#include "task/scope.h"

#include "task/ensure.h"
#include "task/state.h"

#include "base/assert.h"
#include "plat/thread.h"
#include "wait/place.h"

#include <sinew/errno.h>
#include <sinew/group.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct sni_group {
    struct sni_scope scope;
    struct sni_brief lock;   /* guards what follows, if nothing else is said                */
    uint32_t live;           /* members that are waited for, and places that are taken        */
    uint32_t background;     /* the others                                                  */
    int why;                 /* as scope.why, for who spawns                                */
    struct sni_list members; /* of sni_member.link                                          */
    struct sni_list joiners; /* of sni_waiter.link: until live is 0                         */
    struct sni_list queue;   /* until live is below the limit                               */
    size_t limit;            /* immutable; 0: none                                          */
    size_t results_max;      /* immutable                                                   */
    int *results;            /* immutable; what it points to is written by members           */
    int *result;             /* immutable                                                   */
    sn_group_report *report; /* immutable                                                   */
    struct sni_hook *hooks;  /* the owner's                                                 */
    const char *failed_at;
    const char *failed_name;
    char *panic_text; /* of the first panic */
    uint32_t spawned;
    uint32_t ended;
    uint32_t failed;
    uint32_t cancelled;
    int error;
    int winner;
    sn_policy policy;    /* immutable */
    bool was_own_cancel; /* it is reached because of that */
    bool is_open;        /* the owner's; false from when its hooks are called */
};

static_assert(sizeof(struct sni_group) <= sizeof(sn_group), "sn_group is too small");

static struct sni_group *group_of(sn_group *group)
{
    return (struct sni_group *)(void *)group;
}

struct sni_scope *sni_group_scope(struct sni_group *group)
{
    return &group->scope;
}

/* ---- waiting ---------------------------------------------------------------------------- */

/* Claim the first of `list` that is still to be had. */
static bool wake_one(struct sni_list *list)
{
    while (!sni_list_empty(list)) {
        struct sni_list *first = list->next;
        sni_list_remove(first);
        struct sni_wake wake = {NULL, NULL};
        bool won =
            sni_wait_claim_locked(sni_container_of(first, struct sni_waiter, link), 0, &wake);
        sni_assert_debug(wake.who == NULL, "somebody waits for a group who is no fiber");
        if (won)
            return true;
    }
    return false;
}

static SNI_NEVER_INLINE void wake_all(struct sni_list *list)
{
    while (wake_one(list)) {
    }
}

/* One less is alive; the group is locked. */
static inline void count_down(struct sni_group *g)
{
    g->live--;
    if (g->live == 0)
        wake_all(&g->joiners);
    if (sni_unlikely(g->limit != 0) && g->live < g->limit)
        (void)wake_one(&g->queue);
}

struct group_wait {
    struct sni_waiter waiter;
    struct sni_lent lent; /* to be recognised */
    struct sni_group *group;
    bool is_join; /* else it waits for a place */
};

/* Nothing is lent: the group is gone with its owner, whose tasks are abandoned together. */
static void take_back(struct sni_lent *lent)
{
    (void)lent;
}

/* Wait in `list` until somebody claims it; the group is locked, before and after. */
static int wait_in(struct sni_group *g, struct sni_list *list, sn_deadline until)
{
    struct group_wait wait = {
        .lent = {take_back, &wait.waiter}, .group = g, .is_join = list == &g->joiners};
    struct sni_waiter *w = &wait.waiter;
    sni_wait_begin(w);
    sni_list_push_back(list, &w->link);
    sni_wait_lend(w, &wait.lent);
    sni_brief_unlock(&g->lock);
    int rc = sni_wait_commit(w, until);
    sni_wait_lend(w, NULL);
    sni_brief_lock(&g->lock);
    if (rc < 0)
        sni_list_remove(&w->link);
    return rc;
}

/* Who waits for the end of a group waits for each of its members. One of them is told, the oldest;
 * when that one has ended, the next is. */
static void tell_place(const struct sni_lent *lent, sni_place_fn *each, void *arg)
{
    const struct group_wait *wait = sni_container_of(lent, const struct group_wait, lent);
    struct sni_group *g = wait->group;
    struct sni_place place = {
        .what = "group", .object = g, .tie = SNI_TIE_MEMORY, .link = &wait->waiter.link};
    if (sni_brief_try(&g->lock)) {
        if (wait->is_join && !sni_list_empty(&g->members)) {
            struct sni_member *first = sni_container_of(g->members.next, struct sni_member, link);
            place.owner = (uintptr_t)((struct sni_task *)(void *)first - 1);
            place.tie = SNI_TIE_OWNER;
        }
        sni_brief_unlock(&g->lock);
    }
    each(&place, arg);
}

const struct sni_wait_kind sni_group_waits = {.take_back = take_back, .tell = tell_place};

/* By the owner: until all members that count are gone. The wait is shielded. Returns how many are
 * left in the background: that, too, is believed only under the lock. */
static uint32_t wait_for_members(struct sni_group *g, const uint32_t *count)
{
    struct sni_task *fiber = g->scope.fiber;
    bool was_shielded = sni_wait_shield_at(&fiber->wait, true);
    sni_brief_lock(&g->lock);
    while (*count > 0)
        (void)wait_in(g, &g->joiners, SN_FOREVER);
    uint32_t left = g->background;
    sni_brief_unlock(&g->lock);
    (void)sni_wait_shield_at(&fiber->wait, was_shielded);
    return left;
}

/* ---- opening and closing ---------------------------------------------------------------- */

int sn_group_open_(sn_group *group, const sn_group_options *opts)
{
    struct sni_group *g = group_of(group);
    *g = (struct sni_group){
        .limit = opts->limit,
        .results = opts->results,
        .results_max = opts->results != NULL ? opts->results_max : 0,
        .result = opts->result,
        .report = opts->report,
        .winner = -1,
        .policy = opts->policy,
    };
    g->scope.group = g;
    sni_list_init(&g->members);
    sni_list_init(&g->joiners);
    sni_list_init(&g->queue);
    sn_deadline until = opts->until.ns != 0 ? opts->until : SN_FOREVER;
    int rc = sni_scope_enter(&g->scope, SNI_SCOPE_OPEN, until);
    g->is_open = rc == 0;
    if (rc < 0 && g->result != NULL)
        *g->result = rc;
    return rc;
}

/* What the group has come to; its owner asks, and nobody else is there, or it is locked. */
static int result_of(const struct sni_group *g)
{
    if (g->winner >= 0)
        return 0;
    if (g->error < 0)
        return g->error;
    return g->was_own_cancel ? 0 : g->why;
}

/* The group is locked, or nobody else is there. */
static void tell(const struct sni_group *g, sn_group_report *report)
{
    *report = (sn_group_report){
        .spawned = g->spawned,
        .ended = g->ended,
        .failed = g->failed,
        .cancelled = g->cancelled,
        .error = g->error,
        .winner = g->winner,
        .failed_at = g->failed_at,
        .failed_name = g->failed_name,
    };
    if (g->panic_text != NULL)
        strncat(report->message, g->panic_text, sizeof(report->message) - 1);
}

static int close_group(struct sni_group *g, bool early)
{
    if (early)
        sni_scope_cancel(&g->scope, -ECANCELED, "its scope was left");
    /* nobody is left but the owner and those in the background, who cannot spawn for long */
    if (wait_for_members(g, &g->live) > 0) {
        sni_scope_cancel(&g->scope, -ECANCELED, "its scope has ended");
        (void)wait_for_members(g, &g->background);
        (void)wait_for_members(g, &g->live);
    }
    g->is_open = false; /* before the hooks: nobody would wait for what they spawn */
    sni_hooks_call(&g->hooks);
    sni_scope_leave(&g->scope);
    if (g->report != NULL)
        tell(g, g->report);
    free(g->panic_text);
    int rc = result_of(g);
    if (g->result != NULL && (!early || g->error < 0))
        *g->result = rc;
    return rc;
}

int sn_group_close(sn_group *group)
{
    struct sni_group *g = group_of(group);
    if (!g->is_open)
        return sni_misuse(-EINVAL, "a group is closed that is not open");
    return close_group(g, false);
}

sn_group *sn_group_enter_(sn_group *group, const sn_group_options *opts)
{
    int rc = sn_group_open_(group, opts);
    if (rc == 0)
        return group;
    (void)sni_misuse(rc, "a scope with tasks that is not in a fiber");
    return NULL;
}

sn_group *sn_group_end_(sn_group *group)
{
    (void)close_group(group_of(group), false);
    return NULL;
}

void sn_group_leave_(sn_group *group)
{
    if (group_of(group)->is_open)
        (void)close_group(group_of(group), true);
}

void sni_group_unwind(struct sni_scope *scope)
{
    (void)close_group(scope->group, true);
}

int sn_group_join(sn_group *group, sn_deadline until)
{
    struct sni_group *g = group_of(group);
    struct sni_exec *exec = sni_exec_current();
    if (!g->is_open || exec == NULL || exec->fiber != g->scope.fiber)
        return sni_misuse(-EINVAL, "a group is joined by another than who has opened it");
    struct sni_task *fiber = g->scope.fiber;
    bool was_shielded = sni_wait_shield_at(&fiber->wait, false);
    int rc = 0;
    sni_brief_lock(&g->lock);
    while (rc == 0 && g->live > 0) {
        rc = wait_in(g, &g->joiners, until);
        if (rc < 0 && g->why != 0 && !sni_wait_is_past(until)) {
            (void)sni_wait_shield_at(&fiber->wait, true); /* members have been told to end */
            rc = 0;
        }
    }
    if (rc == 0)
        rc = result_of(g);
    sni_brief_unlock(&g->lock);
    (void)sni_wait_shield_at(&fiber->wait, was_shielded);
    return rc;
}

sn_group *sn_group_current(void)
{
    struct sni_task *task = sni_task_running(sni_exec_current());
    bool is_member = task != NULL && task->is_member;
    return is_member ? (sn_group *)(void *)sni_member_of(task)->group : NULL;
}

void sn_group_cancel(sn_group *group, const char *reason)
{
    sni_scope_cancel(&group_of(group)->scope, -ECANCELED, reason);
}

int sn_group_ensure(sn_group *group, sn_task_fn *fn, void *arg)
{
    return sni_hook_add(&group_of(group)->hooks, fn, arg);
}

void sn_group_get_report(sn_group *group, sn_group_report *report)
{
    struct sni_group *g = group_of(group);
    sni_brief_lock(&g->lock);
    tell(g, report);
    sni_brief_unlock(&g->lock);
}

void sni_group_reach(struct sni_group *g, int why, struct sni_tellings *tellings)
{
    sni_brief_lock(&g->lock);
    g->why = why;
    g->was_own_cancel = why == -ECANCELED && g->scope.is_source; /* its fiber is locked */
    for (struct sni_list *l = g->members.next; l != &g->members; l = l->next) {
        struct sni_member *member = sni_container_of(l, struct sni_member, link);
        sni_scope_tell_later(tellings, (struct sni_task *)(void *)member - 1);
    }
    while (wake_one(&g->queue)) { /* who waits for a place learns that there will be none */
    }
    sni_brief_unlock(&g->lock);
}

/* ---- ends ------------------------------------------------------------------------------- */

/* Whether a member that is reached has done what was asked. */
static bool was_cancelled(const struct sni_group *g, int result)
{
    return g->why != 0 && (result == -ECANCELED || result == -ETIMEDOUT);
}

/* Something failed with `error`; the group is locked. Returns whether that cancels it. */
static SNI_COLD bool note_failure(struct sni_group *g, int error, const char *at, const char *name)
{
    g->failed++;
    if (g->error == 0) {
        g->error = error;
        g->failed_at = at;
        g->failed_name = name;
    }
    return g->policy == SN_FAIL_FAST && g->why == 0;
}

/* Write down how a member ended; the group is locked. Returns why that cancels it, or NULL. */
static const char *note_end(struct sni_group *g, struct sni_task *task, int result)
{
    uint32_t index = sni_member_of(task)->index;
    if (index < g->results_max)
        g->results[index] = result;
    g->ended++;
    if (was_cancelled(g, result)) {
        g->cancelled++;
        return NULL;
    }
    if (result < 0) {
        bool cancels = note_failure(g, result, task->at, task->name);
        return cancels ? "another task of the group failed" : NULL;
    }
    if (g->policy != SN_FIRST_SUCCESS || g->winner >= 0)
        return NULL;
    g->winner = (int)index;
    return "another task of the group was the first";
}

/* The text of a panic is the group's from now on. */
static SNI_COLD void note_panic(struct sni_group *g, struct sni_task *task)
{
    if (g->panic_text != NULL)
        return;
    g->panic_text = task->panic_text;
    task->panic_text = NULL;
}

/* The group is locked, before and after. */
static SNI_NEVER_INLINE void cancel_for(struct sni_group *g, const char *reason)
{
    sni_brief_unlock(&g->lock);
    sni_scope_cancel(&g->scope, -ECANCELED, reason);
    sni_brief_lock(&g->lock);
}

void sni_group_ended(struct sni_task *task, int result)
{
    struct sni_member *member = sni_member_of(task);
    struct sni_group *g = member->group;
    sni_brief_lock(&g->lock);
    if (sni_unlikely(sni_task_has_panicked(task)))
        note_panic(g, task);
    const char *reason = note_end(g, task, result);
    if (sni_unlikely(reason != NULL))
        cancel_for(g, reason);
    sni_list_remove(&member->link);
    if (sni_likely(!member->is_background)) {
        count_down(g);
    } else if (--g->background == 0) {
        wake_all(&g->joiners);
    }
    sni_brief_unlock(&g->lock);
}

/* The group is there: its owner's stack goes with the runtime, when all have been abandoned. */
void sni_group_abandoned(struct sni_task *task)
{
    struct sni_member *member = sni_member_of(task);
    sni_brief_lock(&member->group->lock);
    sni_list_remove(&member->link);
    sni_brief_unlock(&member->group->lock);
}

/* ---- spawning --------------------------------------------------------------------------- */

/* Take a place, at the limit when one is free. */
static int take_place(struct sni_group *g, bool may_wait)
{
    int rc = 0;
    sni_brief_lock(&g->lock);
    while (rc == 0 && g->why == 0 && g->live >= g->limit)
        rc = may_wait ? wait_in(g, &g->queue, SN_FOREVER) : -EAGAIN;
    if (rc == 0)
        rc = g->why;
    if (rc == 0)
        g->live++;
    else if (g->live < g->limit)
        (void)wake_one(&g->queue); /* perhaps that was for us */
    sni_brief_unlock(&g->lock);
    return rc;
}

/* The spawn has failed, after a place was taken or before. */
static int fail_spawn(struct sni_group *g, const sn_spawn_options *opts, bool has_place, int rc)
{
    sni_brief_lock(&g->lock);
    bool cancels = note_failure(g, rc, opts->at_, opts->name);
    sni_brief_unlock(&g->lock);
    if (cancels)
        sni_scope_cancel(&g->scope, -ECANCELED, "a task of the group could not be spawned");
    sni_brief_lock(&g->lock);
    if (has_place)
        count_down(g);
    sni_brief_unlock(&g->lock);
    return rc;
}

/* Make the new task a member. Returns its number; or why not: the group has been reached. */
static int join_group(struct sni_group *g, struct sni_task *task, bool is_background,
                      bool has_place)
{
    struct sni_member *member = sni_member_of(task);
    member->group = g;
    member->why = 0;
    member->is_background = is_background;
    sni_list_init(&member->link);
    sni_brief_lock(&g->lock);
    int rc = g->why;
    if (rc == 0) {
        sni_list_push_back(&g->members, &member->link);
        rc = (int)(g->spawned & INT32_MAX);
        member->index = g->spawned++;
        if (is_background)
            g->background++;
        else if (!has_place)
            g->live++;
    } else if (has_place) {
        count_down(g);
    }
    sni_brief_unlock(&g->lock);
    return rc;
}

static SNI_ALWAYS_INLINE int spawn(struct sni_group *g, const struct sni_spawn *what)
{
    const sn_spawn_options *opts = what->opts;
    struct sni_exec *exec = sni_exec_current();
    struct sni_home *home = exec != NULL ? ((struct sni_task_exec *)(void *)exec)->home : NULL;
    if (home == NULL || home != sni_task_home(g->scope.fiber) || !g->is_open)
        return -EPERM;
    if (opts->detached)
        return -EINVAL;
    bool has_place = g->limit != 0 && !opts->background;
    int rc = has_place ? take_place(g, exec->fiber != NULL) : 0;
    if (rc < 0)
        return rc;
    exec = sni_exec_current(); /* perhaps another than before */
    struct sni_task *task;
    if (what->kind == SNI_TASK_FIBER)
        rc = sni_task_new_child(home, exec, what->fn, what->arg, opts, &task);
    else
        rc = sni_task_new(home, exec, what, false, &task);
    if (rc < 0)
        return fail_spawn(g, opts, has_place, rc);
    rc = join_group(g, task, opts->background, has_place);
    if (rc < 0)
        sni_task_unspawn(exec, task);
    else
        home->ops->spawned(exec, task);
    return rc;
}

static SNI_ALWAYS_INLINE int spawn_and_tell(sn_group *group, const struct sni_spawn *what)
{
    int rc = spawn(group_of(group), what);
    if (what->opts->error != NULL)
        *what->opts->error = rc < 0 ? rc : 0;
    return rc;
}

int sn_group_spawn_(sn_group *group, sn_task_fn *fn, void *arg, const sn_spawn_options *opts)
{
    return spawn_and_tell(
        group, &(struct sni_spawn){.kind = SNI_TASK_FIBER, .fn = fn, .arg = arg, .opts = opts});
}

int sn_group_spawn_frame_(sn_group *group, const sn_future_vtable *vt, void *frame, size_t coro_at,
                          size_t frame_bytes, const sn_spawn_options *opts)
{
    struct sni_spawn what = sni_spawn_of_frame(vt, frame, coro_at, frame_bytes, opts);
    what.is_member = true;
    return spawn_and_tell(group, &what);
}
