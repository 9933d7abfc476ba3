/* SPDX-License-Identifier: MIT */
/* task.c - the life of a task: joined, detached, woken, ended. How it is made is in spawn.c.
 *
 * Everything that changes the state word is here; task.h has the table of who may do what.
 * Two facts carry most of the arguments below. First, `joiner` and COMPLETE meet in one word:
 * whoever of joiner and task comes second sees the first. Second, a record's memory stays a
 * record for ever (arena.h) and the word holds its generation, so an operation with a stale
 * handle fails at its compare and swap, whatever has become of the record. */
#include "task/local.h"
#include "task/scope.h"
#include "task/state.h"
#include "task/task.h"

#include "base/assert.h"
#include "future/future_priv.h"
#include "plat/thread.h"
#include "wait/await.h"

#include <sinew/errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- references ------------------------------------------------------------------------ */

static void free_task(struct sni_exec *exec, struct sni_task *task)
{
    /* relaxed: the last reference is gone, so all is visible and nothing changes */
    if (sni_unlikely(sni_atomic_load(&task->state, relaxed) & PANICKED))
        free(task->panic_text);
    struct sni_home *home = sni_task_home(task);
    home->ops->free_record(home, exec, &task->record);
}

void sni_task_unref(struct sni_exec *exec, struct sni_task *task)
{
    /* acq_rel: all use of the record happens before it is freed */
    uint64_t before = sni_atomic_fetch_sub(&task->state, REF, acq_rel);
    sni_assert_debug((before & REFS) != 0, "a task has lost more references than it had");
    if ((before & REFS) == REF)
        free_task(exec, task);
}

/* Who walks over the records may have found it: then that one frees it. */
void sni_task_unspawn(struct sni_exec *exec, struct sni_task *task)
{
    struct sni_home *home = sni_task_home(task);
    sni_local_drop_all(task);
    home->ops->unspawned(home, exec);
    /* It has ended: so nobody takes it for one that is ACTIVE. acq_rel: as in sni_task_end */
    uint64_t before = sni_atomic_fetch_sub(&task->state, REF - COMPLETE, acq_rel);
    if ((before & REFS) == REF)
        free_task(exec, task);
}

bool sni_task_is_complete(const struct sni_task *task)
{
    /* acquire: pairs with sni_task_end */
    return (sni_atomic_load(&task->state, acquire) & COMPLETE) != 0;
}

bool sni_task_has_handle(const struct sni_task *task)
{
    /* relaxed: for reports only */
    return (sni_atomic_load(&task->state, relaxed) & HANDLE) != 0;
}

bool sni_task_is_canceled(const struct sni_task *task)
{
    /* relaxed: a flag, nothing is published with it */
    return (sni_atomic_load(&task->state, relaxed) & CANCELED) != 0;
}

bool sni_task_has_panicked(const struct sni_task *task)
{
    /* relaxed: the task itself asks, or who has acquired its end */
    return (sni_atomic_load(&task->state, relaxed) & PANICKED) != 0;
}

void sni_task_panic(struct sni_task *task, char *text)
{
    task->panic_text = text;
    /* relaxed: published with COMPLETE */
    sni_atomic_fetch_or(&task->state, PANICKED, relaxed);
}

/* ---- ending ---------------------------------------------------------------------------- */

/* The end of `task` is told to who waits for it. One that waits in the same runtime goes on there,
 * or is given up together with the task; that of another may be stopping just now (wait.c). */
static void tell_end(const struct sni_task *task)
{
    struct sni_waiter *w = task->joiner;
    if (sni_likely(w->wait_at == 0 || sni_task_home(w->fiber) == sni_task_home(task)))
        (void)sni_wait_claim_last(w, 0);
    else
        (void)sni_wait_claim_afar(w, 0);
}

/* And give up `refs`. */
static inline void end_task(struct sni_exec *exec, struct sni_task *task, int result, uint64_t refs)
{
    if (sni_unlikely(task->locals != NULL))
        sni_local_drop_all(task);
    sni_atomic_store(&task->result, result, relaxed); /* relaxed: released by the next */
    sni_task_home(task)->ops->ended(exec, task);
    if (sni_unlikely(task->is_member))
        sni_group_ended(task, result);
    /* One step sets COMPLETE and gives up the references. A joiner that waits has one, too, until
     * it is claimed. acq_rel: releases the result and all use of the record; acquires `joiner`
     * from the one who set WAITED, and everything before the record is freed */
    uint64_t before = sni_atomic_fetch_sub(&task->state, refs - COMPLETE, acq_rel);
    sni_assert(!(before & (COMPLETE | SCOPED)), "a task ended twice, or in an open group or scope");
    if (before & WAITED)
        tell_end(task);
    else if ((before & REFS) == refs)
        free_task(exec, task);
}

void sni_task_end(struct sni_exec *exec, struct sni_task *task, int result)
{
    end_task(exec, task, result, REF);
}

/* ---- using up a handle ----------------------------------------------------------------- */

struct sni_task *sni_task_of_handle(sn_task *handle)
{
    return (struct sni_task *)(void *)sni_arena_find((uint64_t)(uintptr_t)handle);
}

/* Clear HANDLE of `task`, which is what `handle` names, or NULL; with `also`, set that bit in the
 * same step. The caller then owns the handle's reference. `waits` tells that it will wait for the
 * end. */
static int use_up(struct sni_exec *exec, sn_task *handle, struct sni_task *task, uint64_t also,
                  bool waits)
{
    uint64_t word = (uint64_t)(uintptr_t)handle;
    if (sni_unlikely(task == NULL))
        return handle == NULL ? -EINVAL : -ESRCH;
    if (task == sni_task_running(exec))
        return -EDEADLK;
    if (sni_unlikely(waits && exec != NULL && exec->fiber == NULL) && !sni_task_is_complete(task))
        return sni_misuse(-EDEADLK, "a coroutine waits for a task and would block its worker");
    /* relaxed: the compare and swap below decides */
    uint64_t state = sni_atomic_load(&task->state, relaxed);
    do {
        if ((state >> 32 & 0xFFFF) != word >> 48 || !(state & HANDLE))
            return -ESRCH;
        /* acquire: pairs with sni_task_end, if it has completed; seq_cst: see sni_task_cancel */
    } while (!sni_atomic_cas(&task->state, &state, (state & ~HANDLE) | also, seq_cst, relaxed));
    return 0;
}

/* Run a task that has not begun on the stack of the fiber that would wait for it; in the end, give
 * up `refs`. Returns its result. */
static int run_inline(struct sni_task *task, uint64_t refs)
{
    struct sni_task *fiber = sni_exec_current()->fiber;
    struct sni_inline frame; /* its buffer is left as it is: 200 bytes to be written for nothing */
    frame.task = task;
    frame.outer = fiber->acting;
    fiber->acting = &frame;
    /* Who cancels the fiber does not mean the task. */
    const bool was_shielded = sni_wait_shield_at(&fiber->wait, true);
    volatile int result = -ECONNABORTED; /* if it panics */
    if (_setjmp(frame.out) == 0) {
        result = task->fn(task->arg);
        sni_task_finish_up(task);
    }
    end_task(sni_exec_current(), task, result, refs);
    (void)sni_wait_shield_at(&fiber->wait, was_shielded);
    fiber->acting = frame.outer;
    return result;
}

bool sni_task_watch(struct sni_task *task, struct sni_waiter *w)
{
    task->joiner = w;
    /* acquire: pairs with sni_task_end */
    uint64_t state = sni_atomic_load(&task->state, acquire);
    do {
        if (state & COMPLETE)
            return false;
        /* release: `joiner`, to sni_task_end; acquire on failure: its result */
    } while (!sni_atomic_cas(&task->state, &state, state | WAITED, release, acquire));
    return true;
}

bool sni_task_unwatch(struct sni_task *task)
{
    /* relaxed: the compare and swap decides */
    uint64_t state = sni_atomic_load(&task->state, relaxed);
    do {
        if (state & COMPLETE)
            return false;
        /* relaxed: nothing is published; acquire on failure: pairs with sni_task_end */
    } while (!sni_atomic_cas(&task->state, &state, (state & ~WAITED) | HANDLE, acquire, acquire));
    return true;
}

void sni_task_restore_handle(struct sni_task *task)
{
    /* relaxed: the caller owns the handle's reference and hands it back to the handle */
    sni_atomic_fetch_or(&task->state, HANDLE, relaxed);
}

/* Whether the waits of the running fiber are to end before their time, or at a deadline. While it
 * ran the task itself, nobody could tell it. */
static bool is_bounded(const struct sni_task *fiber)
{
    /* relaxed: the fiber's own bit, and a flag */
    uint64_t state = sni_atomic_load(&fiber->state, relaxed);
    return sni_unlikely((state & (SCOPED | DOOMED)) != 0 || fiber->is_member) &&
           sni_scope_is_bounded();
}

/* Whether the running fiber got the task out of its queue, to run it itself. Only a fiber of the
 * same runtime asks: for anybody else the home may be gone by now, with the task's end. */
static bool take_unstarted(struct sni_task *task)
{
    struct sni_exec *exec = sni_exec_current();
    if (exec == NULL || exec->fiber == NULL || is_bounded(exec->fiber))
        return false;
    struct sni_home *home = ((struct sni_task_exec *)(void *)exec)->home;
    return home == sni_task_home(task) && home->ops->take_unstarted(task);
}

/* Wait until the task, whose handle we used up, has completed. */
struct join {
    struct sni_waiter waiter;
    struct sni_lent lent;
    struct sni_task *task;
};

/* Whose wait for an end is cancelled is told so, unless the end comes: then that tells it. */
static void stop_waiting(struct sni_waiter *w, int why)
{
    if (sni_task_unwatch(sni_container_of(w, struct join, waiter)->task))
        (void)sni_wait_claim(w, why);
}

/* Who waits never goes on, and its frame is not to be looked at when the task ends. Then nobody has
 * the handle any more. If the task has ended, what was left of it was ours. */
static void take_back_join(struct sni_lent *lent)
{
    struct sni_task *task = sni_container_of(lent, struct join, lent)->task;
    if (sni_wait_is_over(lent->waiter) && sni_wait_result(lent->waiter) < 0)
        return; /* it was cancelled, and the handle is the task's again */
    if (sni_task_unwatch(task))
        return;
    for (unsigned round = 0; !sni_wait_is_over(lent->waiter); round++)
        sni_plat_back_off(round); /* whoever ends it is about to: it needs both */
    sni_task_unref(NULL, task);
}

/* The caller has cleared HANDLE, which is set again if it learns -ECANCELED: its wait was
 * cancelled, and the task has not ended. */
static int wait_for_end(struct sni_task *task)
{
    struct join j = {.lent = {take_back_join, &j.waiter}, .task = task};
    sni_wait_begin(&j.waiter);
    sni_wait_hold(&j.waiter);
    j.waiter.interrupt = stop_waiting;
    if (!sni_task_watch(task, &j.waiter))
        return 0;
    sni_wait_lend(&j.waiter, &j.lent);
    int rc = sni_wait_commit(&j.waiter, SN_FOREVER);
    sni_wait_lend(&j.waiter, NULL);
    return rc;
}

int sni_task_take_result(struct sni_exec *exec, struct sni_task *task, sn_exit *how)
{
    int result = sni_atomic_load(&task->result, relaxed); /* relaxed: acquired with COMPLETE */
    /* relaxed: as above */
    bool panicked = (sni_atomic_load(&task->state, relaxed) & PANICKED) != 0;
    if (how != NULL) {
        /* relaxed: as above */
        bool cancelled = (sni_atomic_load(&task->state, relaxed) & CANCELED) != 0;
        how->kind = cancelled && result == -ECANCELED ? SN_EXIT_CANCELED : SN_EXIT_RETURNED;
        how->message[0] = '\0';
        if (panicked)
            how->kind = SN_EXIT_PANICKED;
        if (panicked && task->panic_text != NULL)
            strncat(how->message, task->panic_text, sizeof(how->message) - 1);
    }
    sni_task_unref(exec, task);
    return panicked ? -ECONNABORTED : result;
}

/* The task has ended already, and only its result is asked for: one step uses up the handle and
 * gives up its reference. The result is read before, since afterwards the record may be gone;
 * that it was this task's is known when the step succeeds. False: not that simple. */
static bool join_ended(struct sni_exec *exec, uint64_t word, struct sni_task *task, int *result)
{
    /* acquire: pairs with sni_task_end */
    uint64_t state = sni_atomic_load(&task->state, acquire);
    if ((state & (COMPLETE | HANDLE)) != (COMPLETE | HANDLE) ||
        (state >> 32 & 0xFFFF) != word >> 48)
        return false;
    *result = sni_atomic_load(&task->result, relaxed); /* relaxed: acquired with COMPLETE */
    /* acq_rel: all use of the record happens before it is freed */
    if (!sni_atomic_cas(&task->state, &state, state - REF - HANDLE, acq_rel, relaxed))
        return false;
    if ((state & REFS) == REF)
        free_task(exec, task);
    return true;
}

/* ---- cancelling ------------------------------------------------------------------------ */

/* Who waits here goes on when the task is gone. */
static int cancel_and_wait_for(struct sni_task *task)
{
    bool was_shielded = sni_wait_shield(true);
    sni_scope_cancel_task(task, -ECANCELED);
    int rc = wait_for_end(task);
    (void)sni_wait_shield(was_shielded);
    return rc;
}

/* ---- joining --------------------------------------------------------------------------- */

/* Not inline: those that have ended are joined without its frame. */
static SNI_NEVER_INLINE int join_any(sn_task *handle, struct sni_task *task, uint64_t also,
                                     sn_exit *how)
{
    struct sni_exec *exec = sni_exec_current();
    int rc = use_up(exec, handle, task, also, true);
    if (rc < 0)
        return rc;
    /* acquire: pairs with sni_task_end */
    if (!(sni_atomic_load(&task->state, acquire) & COMPLETE)) {
        if (also == 0 && take_unstarted(task)) {
            if (how == NULL)
                return run_inline(task, 2 * REF); /* the scheduler's, and ours */
            (void)run_inline(task, REF);
        } else {
            rc = also == 0 ? wait_for_end(task) : cancel_and_wait_for(task);
        }
        if (sni_unlikely(rc < 0)) {
            if (how != NULL)
                *how = (sn_exit){.kind = SN_EXIT_NONE};
            return rc;
        }
        exec = sni_exec_current(); /* perhaps another than before */
    }
    return sni_task_take_result(exec, task, how);
}

int sni_task_look(sn_task *handle)
{
    uint64_t word = (uint64_t)(uintptr_t)handle;
    struct sni_task *task = (struct sni_task *)(void *)sni_arena_find(word);
    if (task == NULL)
        return -ESRCH;
    if (task == sni_task_running(sni_exec_current()))
        return -EDEADLK;
    /* acquire: pairs with sni_task_end */
    uint64_t state = sni_atomic_load(&task->state, acquire);
    if ((state >> 32 & 0xFFFF) != word >> 48 || !(state & HANDLE))
        return -ESRCH;
    return (state & COMPLETE) != 0 ? 0 : -EAGAIN;
}

int sni_task_wait(sn_task *handle)
{
    struct sni_task *task = sni_task_of_handle(handle);
    int rc = use_up(sni_exec_current(), handle, task, 0, true);
    if (rc < 0)
        return rc;
    if (!sni_task_is_complete(task))
        rc = wait_for_end(task);
    if (rc == 0)
        sni_task_restore_handle(task);
    return rc;
}

int sni_task_claim_handle(sn_task *handle, struct sni_task **out)
{
    struct sni_task *task = sni_task_of_handle(handle);
    int rc = use_up(sni_exec_current(), handle, task, 0, false);
    if (rc == 0)
        *out = task;
    return rc;
}

int sn_join(sn_task *handle, sn_exit *how)
{
    struct sni_task *task = sni_task_of_handle(handle);
    int result;
    if (task != NULL && how == NULL &&
        join_ended(sni_exec_current(), (uint64_t)(uintptr_t)handle, task, &result))
        return result;
    return join_any(handle, task, 0, how);
}

int sn_cancel(sn_task *handle, sn_exit *how)
{
    return join_any(handle, sni_task_of_handle(handle), CANCELED, how);
}

int sn_detach(sn_task *handle)
{
    struct sni_exec *exec = sni_exec_current();
    struct sni_task *task = sni_task_of_handle(handle);
    int rc = use_up(NULL, handle, task, 0, false); /* whoever it is: also itself */
    if (rc == 0)
        sni_task_unref(exec, task);
    return rc;
}

/* ---- coroutine tasks ------------------------------------------------------------------- */

static void *waker_clone(void *data)
{
    struct sni_task *task = data;
    /* relaxed: a reference is made from one that is held */
    sni_atomic_fetch_add(&task->state, REF, relaxed);
    return task;
}

/* What follows `state` when the task is woken. */
static inline uint64_t woken_from(uint64_t state)
{
    return state | ((state & ACTIVE) != 0 ? WOKEN : ACTIVE);
}

/* The home is there: it is the caller's, or LOCKED is set, which is taken before it goes. Returns
 * 0; QUEUE, and the task is the caller's to queue; or -ESRCH. */
enum { QUEUE = 1 };
static inline int rouse(struct sni_task *task)
{
    uint64_t state = sni_atomic_load(&task->state, relaxed); /* relaxed: the loop decides */
    do {
        if (sni_unlikely(state & COMPLETE))
            return -ESRCH;
        /* acq_rel: releases what the event wrote to the next poll; acquires the frame, for it.
         * Even if nothing changes, see rule 4 */
    } while (
        sni_unlikely(!sni_atomic_cas(&task->state, &state, woken_from(state), acq_rel, relaxed)));
    return sni_likely(!(state & ACTIVE)) ? QUEUE : 0;
}

static inline int wake_at_home(struct sni_task *task)
{
    int rc = rouse(task);
    if (sni_unlikely(rc != QUEUE))
        return rc;
    sni_task_home(task)->ops->ready(task);
    return 0;
}

/* Nothing keeps the home: the waker keeps the record alone. Whoever gives the task up locks it, and
 * leaves it ACTIVE (sni_scope_abandon). So who is to queue it locks it in the step that says so. */
static int wake_from_afar(struct sni_task *task)
{
    for (unsigned round = 0;; round++) {
        uint64_t state = sni_atomic_load(&task->state, relaxed); /* relaxed: a guess */
        bool queues = (state & ACTIVE) == 0;
        if (state & COMPLETE)
            return -ESRCH;
        if (queues && (state & LOCKED)) {
            sni_plat_back_off(round);
            continue;
        }
        uint64_t next = woken_from(state) | (queues ? LOCKED : 0);
        /* acq_rel: as above, and as the lock of scope.c */
        if (!sni_atomic_cas(&task->state, &state, next, acq_rel, relaxed))
            continue;
        if (queues) {
            sni_task_home(task)->ops->ready(task);
            sni_atomic_fetch_sub(&task->state, LOCKED, release); /* release: pairs with the lock */
        }
        return 0;
    }
}

static inline bool is_at_home(const struct sni_exec *exec, const struct sni_task *task)
{
    return exec != NULL &&
           ((const struct sni_task_exec *)(const void *)exec)->home == sni_task_home(task);
}

/* By its own poll: nobody but this thread polls it or queues it until that is over, see rule 4. */
static inline int wake_in_poll(struct sni_task_exec *exec, const struct sni_task *task)
{
    /* relaxed: this thread completes it, if anybody does */
    if (sni_unlikely(sni_atomic_load(&task->state, relaxed) & COMPLETE))
        return -ESRCH;
    exec->again = true;
    return 0;
}

static inline int wake(struct sni_exec *current, struct sni_task *task)
{
    struct sni_task_exec *exec = (struct sni_task_exec *)(void *)current;
    if (sni_unlikely(exec == NULL))
        return wake_from_afar(task);
    if (exec->polling == task)
        return wake_in_poll(exec, task);
    return sni_likely(exec->home == sni_task_home(task)) ? wake_at_home(task)
                                                         : wake_from_afar(task);
}

static int waker_wake_by_ref(void *data)
{
    return wake(sni_exec_current(), data);
}

void sni_task_wake_locked(struct sni_task *task)
{
    (void)wake_at_home(task);
}

static void waker_drop(void *data)
{
    sni_task_unref(sni_exec_current(), data);
}

static int waker_wake(void *data)
{
    struct sni_exec *exec = sni_exec_current();
    int rc = wake(exec, data);
    sni_task_unref(exec, data); /* not before: it may be what keeps the record */
    return rc;
}

const sn_waker_vtable sni_task_wakers = {
    .clone = waker_clone,
    .wake = waker_wake,
    .wake_by_ref = waker_wake_by_ref,
    .drop = waker_drop,
};

static int queue(void *data)
{
    struct sni_task *task = data;
    sni_task_home(task)->ops->ready(task);
    return 0;
}

static const sn_waker_vtable queues = {.wake = queue};

sn_waker sni_task_begin_wake(void *record)
{
    struct sni_task *task = record;
    if (sni_unlikely(!is_at_home(sni_exec_current(), task)))
        return (sn_waker){&sni_task_wakers, waker_clone(task)};
    return (sn_waker){rouse(task) == QUEUE ? &queues : NULL, task};
}

/* Nobody polls the task any more, nor looks at it. False: it was woken meanwhile, and is to be
 * queued again by the caller. */
static bool rests(struct sni_task *task)
{
    uint64_t state = sni_atomic_load(&task->state, relaxed); /* relaxed: the loop decides */
    do {
        /* relaxed: what the wake wrote, the next poll acquires; the frame goes with the queue */
        if (sni_unlikely(state & WOKEN))
            return false;
        /* release: the frame, to the next poller, by way of who wakes it */
    } while (
        sni_unlikely(!sni_atomic_cas(&task->state, &state, state & ~ACTIVE, release, relaxed)));
    return true;
}

/* It was woken again since it was queued, or cancelled: learn what led to that. */
static SNI_NEVER_INLINE void learn(struct sni_task *task)
{
    /* acquire: pairs with the wakes since, and with who cancelled it */
    uint64_t state = sni_atomic_fetch_and(&task->state, ~WOKEN, acquire);
    /* What was so before: who cancels it from here on makes it polled again. */
    if (state & CANCELED)
        (void)sn_future_cancel(task->future);
}

/* Not inline, as the one before: a poll that waits or yields needs less of a frame. */
static SNI_NEVER_INLINE void end_polled(struct sni_exec *exec, struct sni_task *task, int result)
{
    if (sni_unlikely(task->future->state_ == SNI_FUTURE_SUSPENDED))
        (void)sn_future_drop(task->future); /* a generator, which is not asked again */
    sni_task_finish_up(task);
    end_task(exec, task, result, REF);
}

bool sni_task_poll(struct sni_task_exec *exec, struct sni_task *task)
{
    /* relaxed: the queue has brought what was written before the wake that made it ACTIVE, and the
     * frame; if there was more, learn() acquires it */
    uint64_t state = sni_atomic_load(&task->state, relaxed);
    sni_assert_debug(state & ACTIVE, "a task is polled that is not queued");
    exec->polling = task;
    exec->again = false;
    if (sni_unlikely(state & (WOKEN | CANCELED)))
        learn(task);
    sn_waker waker = {&sni_task_wakers, task};
    sn_cx cx = {&waker};
    sn_poll p = sni_future_poll(task->future, &cx);
    bool again = false;
    if (sni_unlikely(!sn_poll_pending(p)))
        end_polled(&exec->exec, task, p.value);
    else
        again = exec->again || !rests(task);
    exec->polling = NULL;
    return again;
}

/* ---- tasks that outlive their runtime ------------------------------------------------------ */

static void free_orphan(struct sni_home *home, struct sni_exec *exec, struct sni_record *record)
{
    (void)home;
    (void)exec;
    sni_record_give(record);
}

static void ignore(struct sni_task *task)
{
    (void)task;
}

/* Where nothing runs and nothing is spawned; records are still freed. */
static const struct sni_home_ops orphan_ops = {.free_record = free_orphan, .ready = ignore};
static const struct sni_home orphanage = {&orphan_ops};

/* End a task that its workers have left lying. */
static void end_abandoned(struct sni_task *task)
{
    sni_scope_abandon(task);
    if (sni_unlikely(task->is_member))
        sni_group_abandoned(task);
    if (task->kind == SNI_TASK_CORO)
        (void)sn_future_drop(task->future);
    else if (task->stack != NULL && task->lent != NULL)
        task->lent->take_back(task->lent);
    if (task->kind == SNI_TASK_FIBER && task->stack != NULL)
        sni_context_finish(&task->context); /* its stack is there as long as the runtime */
    sni_local_drop_all(task);
    sni_atomic_store(&task->result, -ECANCELED, relaxed); /* relaxed: released by the next */
    if (sni_scope_complete(task) & WAITED)
        tell_end(task);
}

bool sni_task_hold(struct sni_task *task, const struct sni_home *home)
{
    if (sni_task_home(task) != home)
        return false;
    /* relaxed: the record is one of a runtime that has stopped, see below for those that end */
    uint64_t generation = sni_atomic_load(&task->record.generation, relaxed);
    uint64_t state = sni_atomic_load(&task->state, relaxed); /* relaxed: the loop decides */
    do {
        if (state >> 32 == generation && (state & REFS) == 0) {
            /* Somebody gives up the last reference right now, and uses the runtime for it.
             * acquire: pairs with the end of the record's life */
            for (unsigned round = 0;
                 sni_atomic_load(&task->record.generation, acquire) == generation; round++)
                sni_plat_back_off(round);
            return false;
        }
        if (state >> 32 != generation)
            return false;
        /* acquire: pairs with the release of whoever changed it last */
    } while (!sni_atomic_cas(&task->state, &state, state + REF, acquire, relaxed));
    /* What was ours once may have become another's between the two, which says so only now. */
    if (sni_task_home(task) == home)
        return true;
    sni_task_unref(NULL, task);
    return false;
}

/* ---- being looked at ------------------------------------------------------------------------ */

bool sni_task_find(struct sni_task *task)
{
    /* acquire: what made the record a task; the compare and swap says whether it is one */
    uint64_t generation = sni_atomic_load(&task->record.generation, acquire);
    uint64_t state = sni_atomic_load(&task->state, relaxed); /* relaxed: the loop decides */
    do {
        if (generation % 2 == 0 || state >> 32 != generation || (state & REFS) == 0)
            return false;
        /* acquire: pairs with the release in sni_task_new */
    } while (!sni_atomic_cas(&task->state, &state, state + REF, acquire, relaxed));
    return true;
}

bool sni_task_seize(struct sni_task *task)
{
    if (task->kind == SNI_TASK_FIBER) {
        uint32_t found = sni_atomic_load(&task->wait, relaxed); /* relaxed: a guess */
        uint32_t open = found & ~(uint32_t)SNI_WAIT_STATE;
        /* acquire: pairs with the parking, for the frames of the fiber */
        return (found & SNI_WAIT_STATE) == SNI_WAIT_PARKED && (found & SNI_WAIT_PINNED) == 0 &&
               sni_atomic_cas(&task->wait, &found, open, acquire, relaxed);
    }
    uint64_t state = sni_atomic_load(&task->state, relaxed); /* relaxed: a guess */
    do {
        if (state & (ACTIVE | COMPLETE))
            return false;
        /* acquire: pairs with the end of the last poll, for the frame */
    } while (!sni_atomic_cas(&task->state, &state, state | ACTIVE, acquire, relaxed));
    return true;
}

bool sni_task_is_still(const struct sni_task *task)
{
    if (task->kind == SNI_TASK_FIBER) /* acquire: after what was read about it */
        return !sni_wait_is_claimed_(sni_atomic_load(&task->wait, acquire));
    return !(sni_atomic_load(&task->state, acquire) & WOKEN); /* acquire: as above */
}

void sni_task_let_go(struct sni_task *task)
{
    bool is_over = task->kind == SNI_TASK_FIBER ? sni_task_parked(task) : !rests(task);
    if (is_over)
        sni_task_home(task)->ops->ready(task);
}

struct sni_waiter *sni_task_joiner(const struct sni_task *task)
{
    /* acquire: pairs with the release in sni_task_watch */
    uint64_t state = sni_atomic_load(&task->state, acquire);
    return (state & (WAITED | COMPLETE)) == WAITED ? task->joiner : NULL;
}

static void tell_join(const struct sni_lent *lent, sni_place_fn *each, void *arg)
{
    const struct sni_task *task = sni_container_of(lent, struct join, lent)->task;
    struct sni_place place = {"join", task, (uintptr_t)task, SNI_TIE_OWNER, NULL};
    each(&place, arg);
}

const struct sni_wait_kind sni_join_waits = {.take_back = take_back_join, .tell = tell_join};

/* ---- the end of the runtime ------------------------------------------------------------------ */

void sni_task_abandon(struct sni_task *task)
{
    bool alive = !sni_task_is_complete(task);
    if (alive)
        end_abandoned(task);
    /* acq_rel: whoever uses the handle up at the same time wins or loses here */
    uint64_t before = sni_atomic_fetch_and(&task->state, ~HANDLE, acq_rel);
    if (alive)
        sni_task_unref(NULL, task); /* the scheduler's */
    if (before & HANDLE)
        sni_task_unref(NULL, task); /* the handle's */
    /* We hold a reference, so whoever gives up the last one does it after the bit is set, and
     * reads the new home: its read-modify-write comes after ours. */
    struct sni_home *home = (struct sni_home *)(uintptr_t)&orphanage;
    sni_atomic_store(&task->home_, home, relaxed); /* relaxed: published by the bit */
    /* acq_rel: pairs with the fetch_sub in sni_task_unref */
    sni_atomic_fetch_or(&task->state, ORPHANED, acq_rel);
    sni_task_unref(NULL, task);
}
