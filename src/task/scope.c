/* SPDX-License-Identifier: MIT */
/* scope.c - who is reached by a cancel, and how nobody is missed or told too late.
 *
 * The scopes of a fiber are a list on its stack, the innermost first; `why` of each says whether it
 * is reached. One that is entered inside a reached one is so from the start, unless it is a shield.
 * So `why` is never taken back, a cancel walks from its scope inwards until it meets a shield or
 * what is reached already, and the innermost one tells what the fiber's waits do: that is kept in
 * the fiber's state word as DOOMED and EXPIRED, where whoever parks it looks (sni_task_parked).
 *
 * The list, and what is in its scopes, is guarded by LOCKED, a bit of the same word, because who
 * cancels holds nothing but the record: the fiber may not have begun, or be at its end. SCOPED says
 * that there is a list, which is kept in the fiber's stack, since all fields of the record are
 * taken. Those who lock it are the fiber itself, to enter and to leave, and who cancels. The latter
 * sets DOOMED, looks whether the fiber waits, and ends that wait, all before it unlocks. So what
 * ends is a wait in a reached scope: the fiber could not have left it. Nor could a runtime that
 * abandons its tasks, coroutines as well, have gone: it locks each of them, too.
 *
 * Whoever has parked a fiber and finds it doomed does the same, for a cancel may have come between
 * the fiber's own look and its wait; but by then others may have resumed the fiber, and it may have
 * left the scope, or ended, or its record may be another task's. Hence it takes lock and reference
 * in one step, of a task that is alive, and looks again. Whose it is then does not matter: that
 * task is doomed, and so is its wait.
 *
 * A group is reached with its scope. Its members are listed under the lock of the group, each with
 * a reference, and told one after another when no lock is held any more: a tree of tasks may be
 * deep, and the caller's stack is small.
 *
 * A fiber that runs another task inline *acts as* that one (task.h), and who cancels the fiber does
 * not mean the task. Its waits are shielded meanwhile. If the task enters a scope, that is a shield
 * as well, and what shielded the waits is taken away until it is left, so that the scope can be
 * cancelled.
 *
 * Locks: clockwork (a deadline rings), then LOCKED, then a group's, or a driver's, or a run
 * queue's. Nobody sets or clears an alarm under LOCKED.
 *
 * Rejected: one lock for a whole tree of tasks (every end of a task of a server would take it);
 * telling only the fiber, which then cancels its members (they would live on for as long as it
 * computes, or is shielded). */
#include "task/scope.h"

#include "task/state.h"

#include "base/assert.h"
#include "plat/thread.h"

#include <sinew/errno.h>
#include <assert.h>

static_assert(SNI_TASK_DOOMED == DOOMED, "one bit has one name in two files");

/* ---- the lock --------------------------------------------------------------------------- */

/* Lock `task`, which the caller holds or is. Returns its state with LOCKED. */
static uint64_t lock(struct sni_task *task)
{
    for (unsigned round = 0;; round++) {
        /* relaxed: a guess; acquire: pairs with unlock */
        uint64_t state = sni_atomic_load(&task->state, relaxed);
        if (!(state & LOCKED) &&
            sni_atomic_cas(&task->state, &state, state | LOCKED, acquire, relaxed))
            return state | LOCKED;
        if (state & LOCKED)
            sni_plat_back_off(round);
    }
}

/* Unlock; `now` are the bits SCOPED, DOOMED and EXPIRED as they are to be, `before` as they are: no
 * other changes them while LOCKED is set. */
static void unlock_with(struct sni_task *task, uint64_t before, uint64_t now)
{
    const uint64_t guarded = SCOPED | DOOMED | EXPIRED;
    /* release: pairs with lock. A sum, as each bit is known */
    sni_atomic_fetch_add(&task->state, (now & guarded) - (before & guarded) - LOCKED, release);
}

static void unlock(struct sni_task *task)
{
    sni_atomic_fetch_sub(&task->state, LOCKED, release); /* release: pairs with lock */
}

static uint64_t doom_bits(int why)
{
    return why == 0 ? 0 : why == -ETIMEDOUT ? DOOMED | EXPIRED : DOOMED;
}

static int why_of_bits(uint64_t state)
{
    if (!(state & DOOMED))
        return 0;
    return state & EXPIRED ? -ETIMEDOUT : -ECANCELED;
}

/* Why the task as a whole is reached; it is locked, or runs here. */
static int why_of_task(struct sni_task *task, uint64_t state)
{
    if (!(state & CANCELED))
        return 0;
    return task->is_member && sni_member_of(task)->why != 0 ? sni_member_of(task)->why : -ECANCELED;
}

static struct sni_scope *innermost(const struct sni_task *task, uint64_t state)
{
    return state & SCOPED ? task->stack->scopes : NULL;
}

/* ---- entering and leaving --------------------------------------------------------------- */

static void ring(struct sni_alarm *alarm)
{
    sni_scope_cancel(sni_container_of(alarm, struct sni_scope, alarm), -ETIMEDOUT, NULL);
}

int sni_scope_enter(struct sni_scope *scope, enum sni_scope_kind kind, sn_deadline until)
{
    struct sni_exec *exec = sni_exec_current();
    struct sni_task *fiber = exec != NULL ? exec->fiber : NULL;
    if (fiber == NULL || exec->ops->wait_at == 0 || fiber->stack == NULL)
        return -EPERM;
    uint64_t state = lock(fiber);
    struct sni_scope *outer = innermost(fiber, state);
    struct sni_inline *outer_role = outer != NULL ? outer->role : NULL;
    scope->outer = outer;
    scope->inner = NULL;
    scope->fiber = fiber;
    scope->role = fiber->acting;
    scope->catcher = NULL;
    scope->reason = NULL;
    scope->is_source = false;
    scope->is_shield = kind == SNI_SCOPE_SHIELD || scope->role != outer_role;
    int around = outer != NULL ? outer->why : why_of_task(fiber, state);
    scope->why = scope->is_shield ? 0 : around;
    if (outer != NULL)
        outer->inner = scope;
    fiber->stack->scopes = scope;
    scope->was_shielded = sni_wait_shield_at(&fiber->wait, false);
    if (scope->why != 0 && scope->group != NULL)
        sni_group_reach(scope->group, scope->why, NULL); /* it has no members yet */
    unlock_with(fiber, state, SCOPED | doom_bits(scope->why));
    scope->until_ns = until.ns;
    sni_alarm_init(&scope->alarm, ring);
    if (until.ns != SN_FOREVER.ns && exec->clockwork != NULL)
        sni_alarm_set(&scope->alarm, exec->clockwork, until.ns);
    return 0;
}

void sni_scope_leave(struct sni_scope *scope)
{
    struct sni_task *fiber = scope->fiber;
    (void)sni_alarm_clear(&scope->alarm);
    uint64_t state = lock(fiber);
    sni_assert(innermost(fiber, state) == scope, "a scope is left that is not the innermost one of "
                                                 "its task: they are left in the reverse order");
    struct sni_scope *outer = scope->outer;
    if (outer != NULL)
        outer->inner = NULL;
    fiber->stack->scopes = outer;
    (void)sni_wait_shield_at(&fiber->wait, scope->was_shielded);
    int why = outer != NULL ? outer->why : why_of_task(fiber, state);
    unlock_with(fiber, state, (outer != NULL ? SCOPED : 0) | doom_bits(why));
}

struct sni_scope *sni_scope_innermost(void)
{
    struct sni_exec *exec = sni_exec_current();
    struct sni_task *fiber = exec != NULL ? exec->fiber : NULL;
    if (fiber == NULL)
        return NULL;
    /* relaxed: the fiber itself sets and clears SCOPED, and changes the list */
    struct sni_scope *scope = innermost(fiber, sni_atomic_load(&fiber->state, relaxed));
    return scope != NULL && scope->role == fiber->acting ? scope : NULL;
}

int sni_scope_why(struct sni_exec *exec)
{
    struct sni_task *fiber = exec != NULL ? exec->fiber : NULL;
    if (fiber == NULL || (fiber->acting != NULL && sni_scope_innermost() == NULL)) {
        const struct sni_task *task = sni_task_running(exec);
        return task != NULL && sni_task_is_canceled(task) ? -ECANCELED : 0;
    }
    return why_of_bits(sni_atomic_load(&fiber->state, relaxed)); /* relaxed: a flag */
}

struct sni_scope *sni_scope_unwind(void)
{
    struct sni_scope *s = sni_scope_innermost();
    for (; s != NULL && s->catcher == NULL; s = sni_scope_innermost()) {
        if (s->group != NULL)
            sni_group_unwind(s);
        else
            sni_scope_leave(s);
    }
    return s;
}

const struct sni_catcher *sni_scope_catcher(void)
{
    const struct sni_scope *s = sni_scope_innermost();
    while (s != NULL && s->catcher == NULL)
        s = s->outer;
    return s != NULL ? s->catcher : NULL;
}

/* ---- looking around --------------------------------------------------------------------- */

/* What reaches `task` as a whole, if it is in a group. */
static struct sni_scope *around_task(struct sni_task *task)
{
    return task->is_member ? sni_group_scope(sni_member_of(task)->group) : NULL;
}

/* The scope in which the running task is, its own or that of its group. All that are around the
 * caller stay as long as it is in them, and in one another. */
static struct sni_scope *first_around(void)
{
    struct sni_task *task = sni_task_running(sni_exec_current());
    struct sni_scope *scope = sni_scope_innermost();
    return scope != NULL || task == NULL ? scope : around_task(task);
}

/* What reaches `scope` from outside. */
static struct sni_scope *next_around(struct sni_scope *scope)
{
    if (scope->is_shield)
        return NULL;
    return scope->outer != NULL ? scope->outer : around_task(scope->fiber);
}

const char *sni_scope_reason(void)
{
    for (struct sni_scope *s = first_around(); s != NULL; s = next_around(s)) {
        lock(s->fiber);
        bool is_source = s->is_source;
        const char *reason = s->reason;
        unlock(s->fiber);
        if (is_source)
            return reason;
    }
    return NULL;
}

int64_t sni_scope_until_ns(void)
{
    int64_t until_ns = INT64_MAX;
    for (struct sni_scope *s = first_around(); s != NULL; s = next_around(s))
        until_ns = s->until_ns < until_ns ? s->until_ns : until_ns;
    return until_ns;
}

bool sni_scope_is_bounded(void)
{
    return sni_scope_why(sni_exec_current()) != 0 || sni_scope_until_ns() != INT64_MAX;
}

/* ---- reaching --------------------------------------------------------------------------- */

/* The innermost scope of the fiber, which is locked, is reached: end its wait. */
static void doom(struct sni_task *fiber, int why)
{
    /* seq_cst: between the bit and the look at the wait, as the parking is between the wait and the
     * look at the bit */
    sni_atomic_fetch_or(&fiber->state, doom_bits(why), seq_cst);
    if (sni_wait_cancel(&fiber->wait, &fiber->lent, why))
        sni_task_home(fiber)->ops->ready(fiber);
}

/* Reach `from` and what is in it; the fiber is locked. */
static void reach(struct sni_task *fiber, struct sni_scope *from, int why,
                  struct sni_tellings *tellings)
{
    for (struct sni_scope *s = from; s != NULL; s = s->inner) {
        if (s->why != 0 || (s != from && s->is_shield))
            return;
        s->why = why;
        if (s->group != NULL)
            sni_group_reach(s->group, why, tellings);
    }
    doom(fiber, why);
}

/* Reach the scopes of a fiber, which is locked, from outside. */
static void reach_all(struct sni_task *fiber, uint64_t state, int why,
                      struct sni_tellings *tellings)
{
    struct sni_scope *s = innermost(fiber, state);
    while (s != NULL && s->outer != NULL)
        s = s->outer;
    if (s == NULL)
        doom(fiber, why);
    else if (!s->is_shield)
        reach(fiber, s, why, tellings);
}

/* One task is reached; those that are reached with it are added to the list. */
static void tell(struct sni_task *task, int why, struct sni_tellings *tellings)
{
    uint64_t state = lock(task);
    if (task->kind == SNI_TASK_CORO) {
        /* seq_cst: as below */
        sni_atomic_fetch_or(&task->state, CANCELED, seq_cst);
        sni_task_wake_locked(task); /* if it has ended, that does nothing */
    } else if (!(state & COMPLETE)) {
        if (task->is_member && sni_member_of(task)->why == 0)
            sni_member_of(task)->why = why;
        /* seq_cst: for who asks sn_cancelled; the order of what counts is in `doom` */
        sni_atomic_fetch_or(&task->state, CANCELED, seq_cst);
        reach_all(task, state, why, tellings);
    }
    unlock(task);
}

/* Tell all, and those who are added meanwhile. */
static void tell_all(struct sni_tellings *tellings, int why)
{
    while (tellings->first != NULL) {
        struct sni_task *task = tellings->first;
        tellings->first = sni_member_of(task)->next_told;
        tell(task, why, tellings);
        sni_task_unref(sni_exec_current(), task);
    }
}

void sni_scope_tell_later(struct sni_tellings *tellings, struct sni_task *task)
{
    sni_atomic_fetch_add(&task->state, REF, relaxed); /* relaxed: made from one that is held */
    sni_member_of(task)->next_told = tellings->first;
    tellings->first = task;
}

void sni_scope_cancel_task(struct sni_task *task, int why)
{
    struct sni_tellings tellings = {NULL};
    tell(task, why, &tellings);
    tell_all(&tellings, why);
}

void sni_scope_cancel(struct sni_scope *scope, int why, const char *reason)
{
    struct sni_tellings tellings = {NULL};
    lock(scope->fiber);
    if (scope->why == 0) {
        scope->is_source = true;
        scope->reason = reason;
        reach(scope->fiber, scope, why, &tellings);
    }
    unlock(scope->fiber);
    tell_all(&tellings, why);
}

/* ---- being abandoned -------------------------------------------------------------------- */

void sni_scope_abandon(struct sni_task *task)
{
    lock(task);
    if (task->kind == SNI_TASK_FIBER)
        sni_wait_abandon(&task->wait);
    else /* it seems to be queued; relaxed: nothing is published with it */
        sni_atomic_fetch_or(&task->state, ACTIVE, relaxed);
    unlock(task);
}

uint64_t sni_scope_complete(struct sni_task *task)
{
    lock(task);
    /* acq_rel: as in sni_task_end */
    uint64_t before = sni_atomic_fetch_or(&task->state, COMPLETE, acq_rel);
    unlock(task);
    return before;
}

/* ---- parking ---------------------------------------------------------------------------- */

/* Lock a task that is perhaps none any more. */
static bool lock_if_alive(struct sni_task *task)
{
    for (unsigned round = 0;; round++) {
        uint64_t state = sni_atomic_load(&task->state, relaxed); /* relaxed: a guess */
        if (!(state & DOOMED) || (state & COMPLETE) || (state & REFS) == 0)
            return false;
        /* acquire: pairs with unlock */
        if (!(state & LOCKED) &&
            sni_atomic_cas(&task->state, &state, (state | LOCKED) + REF, acquire, relaxed))
            return true;
        if (state & LOCKED)
            sni_plat_back_off(round);
    }
}

SNI_COLD void sni_task_parked_in_doom(struct sni_task *task)
{
    if (!lock_if_alive(task))
        return;
    /* relaxed: nobody changes the bits while it is locked */
    int why = why_of_bits(sni_atomic_load(&task->state, relaxed));
    if (why != 0 && task->kind == SNI_TASK_FIBER && sni_wait_cancel(&task->wait, &task->lent, why))
        sni_task_home(task)->ops->ready(task);
    unlock(task);
    sni_task_unref(sni_exec_current(), task);
}
