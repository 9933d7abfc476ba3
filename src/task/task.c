/* SPDX-License-Identifier: MIT */
/* task.c - the life of a task: made, joined, detached, woken, ended.
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
#include "wait/await.h"

#include <sinew/errno.h>
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct sni_task) <= 192, "a task is small");
static_assert(offsetof(struct sni_task, context) == 64, "what is hot is in one line");
static_assert(sizeof(struct sni_task) + sizeof(struct sni_member) + SN_FRAME_BYTES_MAX <=
                  SNI_RECORD_BYTES_MAX,
              "frames fit");

/* ---- making ---------------------------------------------------------------------------- */

/* Most spawns say nothing but where they are, and perhaps a name. */
static inline bool is_plain(const sn_spawn_options *opts)
{
    size_t unusual = opts->stack_bytes | opts->copy_bytes | (size_t)opts->priority |
                     (size_t)opts->local | (size_t)opts->keeps_fp;
    return unusual == 0;
}

static int check_options(const struct sni_spawn *what)
{
    const sn_spawn_options *opts = what->opts;
    if (opts->stack_bytes != 0 &&
        (opts->stack_bytes < (4u << 10) || opts->stack_bytes > ((size_t)1 << 30)))
        return -EINVAL;
    if ((unsigned)opts->priority > SN_CRITICAL)
        return -EINVAL;
    if (opts->copy_bytes > SN_COPY_BYTES_MAX || (opts->copy_bytes > 0 && what->arg == NULL))
        return -EINVAL;
    return 0;
}

static inline int check(const struct sni_spawn *what)
{
    if (what->kind == SNI_TASK_FIBER)
        return what->fn != NULL ? 0 : -EINVAL;
    size_t offset = (size_t)((char *)what->future - (char *)what->frame);
    bool is_inside = what->frame_bytes <= SN_FRAME_BYTES_MAX && offset < what->frame_bytes;
    return is_inside ? 0 : -EINVAL; /* else the future does not lie in what is copied */
}

/* The bytes behind the task: what it is as a member; then a coroutine's frame, or a fiber's copied
 * argument. */
static void fill_tail(struct sni_task *task, const struct sni_spawn *what)
{
    void *tail = task + 1;
    if (what->is_member)
        tail = sni_member_of(task) + 1;
    if (what->kind == SNI_TASK_CORO) {
        memcpy(tail, what->frame, what->frame_bytes);
        ptrdiff_t offset = (char *)what->future - (char *)what->frame;
        task->future = (sn_future *)(void *)((char *)tail + offset);
        return;
    }
    task->fn = what->fn;
    task->arg = what->arg;
    if (what->opts->copy_bytes > 0)
        task->arg = memcpy(tail, what->arg, what->opts->copy_bytes);
}

/* A plain task of that kind. */
static inline void fill_in(struct sni_task *task, const struct sni_spawn *what, uint64_t id)
{
    task->locals = NULL;
    task->worker = 0;
    task->kind = (uint8_t)what->kind;
    task->priority = SN_NORMAL;
    task->special = 0;
    task->local = 0;
    task->keeps_fp = 0;
    task->is_member = what->is_member;
    task->unused = 0;
    task->stack = NULL;
    task->at = what->opts->at_;
    task->name = what->opts->name;
    task->id = id;
    task->stack_bytes = 0;
    sni_atomic_store(&task->wait, SNI_WAIT_CLAIMED,
                     relaxed); /* none; relaxed: it is not known yet */
}

/* What makes it another than a plain one. */
static void fill_in_options(struct sni_task *task, const sn_spawn_options *opts)
{
    task->priority = (unsigned)opts->priority & 3u;
    task->special = opts->local || opts->priority != SN_NORMAL;
    task->local = opts->local;
    task->keeps_fp = opts->keeps_fp;
    task->stack_bytes = (uint32_t)((opts->stack_bytes + SNI_STACK_UNIT - 1) / SNI_STACK_UNIT);
}

#ifdef SINEW_DEBUG
/* Where a task was spawned, if it lives: it may have ended with what it is asked for. */
static const char *place_of(uintptr_t who)
{
    const struct sni_record *record = sni_arena_at(who);
    return record != NULL ? ((const struct sni_task *)(const void *)record)->at : NULL;
}
#endif

int sni_task_new(struct sni_home *home, struct sni_exec *exec, const struct sni_spawn *what,
                 bool handle, struct sni_task **out)
{
    bool plain = sni_likely(is_plain(what->opts));
    int rc = check(what);
#ifdef SINEW_DEBUG
    sni_exec_set_place(place_of);
#endif
    if (rc == 0 && !plain)
        rc = check_options(what);
    if (rc < 0)
        return rc;
    struct sni_record *record;
    uint64_t id;
    size_t bytes = sizeof(struct sni_task) + what->frame_bytes + what->opts->copy_bytes;
    if (what->is_member)
        bytes += sizeof(struct sni_member);
    rc = home->ops->new_record(home, exec, bytes, &record, &id);
    if (rc < 0)
        return rc;
    struct sni_task *task = (struct sni_task *)(void *)record;
    fill_in(task, what, id);
    if (!plain)
        fill_in_options(task, what->opts);
    sni_atomic_store(&task->home_, home, relaxed); /* relaxed: queueing publishes the task */
    fill_tail(task, what);
    const struct sni_task *parent = sni_task_running(exec);
    if (sni_unlikely(parent != NULL && parent->locals != NULL)) {
        rc = sni_local_inherit(task, parent);
        if (rc < 0) {
            home->ops->unspawned(home, exec);
            home->ops->free_record(home, exec, record); /* its state says nothing: nobody has it */
            return rc;
        }
    }
    /* relaxed: queueing publishes the task, with everything above */
    uint64_t generation = sni_atomic_load(&record->generation, relaxed);
    uint64_t bits = handle ? HANDLE | 2 * REF : REF;
    if (what->kind == SNI_TASK_CORO)
        bits |= ACTIVE;
    /* release: to an inspector, which finds the task by its record (sni_task_find) */
    sni_atomic_store(&task->state, generation << 32 | bits, release);
    *out = task;
    return 0;
}

sn_task *sni_task_handle(struct sni_task *task)
{
    return (sn_task *)(uintptr_t)sni_record_handle(&task->record);
}

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

void sni_task_end(struct sni_exec *exec, struct sni_task *task, int result)
{
    if (sni_unlikely(task->locals != NULL))
        sni_local_drop_all(task);
    sni_atomic_store(&task->result, result, relaxed); /* relaxed: released by the next */
    sni_task_home(task)->ops->ended(exec, task);
    if (sni_unlikely(task->is_member))
        sni_group_ended(task, result);
    /* One step sets COMPLETE and gives up the reference. A joiner that waits has one, too, until
     * it is claimed. acq_rel: releases the result and all use of the record; acquires `joiner`
     * from the one who set WAITED, and everything before the record is freed */
    uint64_t before = sni_atomic_fetch_sub(&task->state, REF - COMPLETE, acq_rel);
    sni_assert(!(before & (COMPLETE | SCOPED)), "a task ended twice, or in an open group or scope");
    if (before & WAITED)
        (void)sni_wait_claim_last(task->joiner, 0);
    else if ((before & REFS) == REF)
        free_task(exec, task);
}

/* ---- using up a handle ----------------------------------------------------------------- */

/* Clear HANDLE of the task that `handle` names; with `also`, set that bit in the same step.
 * The caller then owns the handle's reference. `waits` tells that it will wait for the end. */
static int use_up(struct sni_exec *exec, sn_task *handle, uint64_t also, bool waits,
                  struct sni_task **out)
{
    if (handle == NULL)
        return -EINVAL;
    uint64_t word = (uint64_t)(uintptr_t)handle;
    struct sni_task *task = (struct sni_task *)(void *)sni_arena_find(word);
    if (task == NULL)
        return -ESRCH;
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
    *out = task;
    return 0;
}

/* Run a task that has not begun on the stack of the fiber that would wait for it. */
static void run_inline(struct sni_task *task)
{
    struct sni_task *fiber = sni_exec_current()->fiber;
    struct sni_inline frame = {.task = task, .outer = fiber->acting};
    fiber->acting = &frame;
    /* Who cancels the fiber does not mean the task. */
    const bool was_shielded = sni_wait_shield_at(&fiber->wait, true);
    volatile int result = -ECONNABORTED; /* if it panics */
    if (_setjmp(frame.out) == 0) {
        result = task->fn(task->arg);
        sni_task_finish_up(task);
    }
    sni_task_end(sni_exec_current(), task, result);
    (void)sni_wait_shield_at(&fiber->wait, was_shielded);
    fiber->acting = frame.outer;
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
    while (!sni_wait_is_over(lent->waiter)) /* whoever ends it is about to: it needs both */
        sni_cpu_pause();
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

static int run_or_wait_for(struct sni_task *task)
{
    if (!take_unstarted(task))
        return wait_for_end(task);
    run_inline(task);
    return 0;
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
static bool join_ended(struct sni_exec *exec, sn_task *handle, int *result)
{
    uint64_t word = (uint64_t)(uintptr_t)handle;
    struct sni_task *task = (struct sni_task *)(void *)sni_arena_find(word);
    if (task == NULL)
        return false;
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

static int join(sn_task *handle, uint64_t also, sn_exit *how)
{
    struct sni_exec *exec = sni_exec_current();
    int result;
    if (how == NULL && join_ended(exec, handle, &result))
        return result;
    struct sni_task *task;
    int rc = use_up(exec, handle, also, true, &task);
    if (rc < 0)
        return rc;
    /* acquire: pairs with sni_task_end */
    if (!(sni_atomic_load(&task->state, acquire) & COMPLETE)) {
        rc = also == 0 ? run_or_wait_for(task) : cancel_and_wait_for(task);
        if (sni_unlikely(rc < 0)) {
            if (how != NULL)
                *how = (sn_exit){.kind = SN_EXIT_NONE};
            return rc;
        }
        exec = sni_exec_current(); /* perhaps another than before */
    }
    return sni_task_take_result(exec, task, how);
}

struct sni_task *sni_task_of_handle(sn_task *handle)
{
    return (struct sni_task *)(void *)sni_arena_find((uint64_t)(uintptr_t)handle);
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
    struct sni_task *task;
    int rc = use_up(sni_exec_current(), handle, 0, true, &task);
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
    return use_up(sni_exec_current(), handle, 0, false, out);
}

int sn_join(sn_task *handle, sn_exit *how)
{
    return join(handle, 0, how);
}

int sn_cancel(sn_task *handle, sn_exit *how)
{
    return join(handle, CANCELED, how);
}

int sn_detach(sn_task *handle)
{
    struct sni_exec *exec = sni_exec_current();
    struct sni_task *task;
    int rc = use_up(NULL, handle, 0, false, &task); /* whoever it is: also itself */
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

static int waker_wake_by_ref(void *data)
{
    struct sni_task *task = data;
    uint64_t state = sni_atomic_load(&task->state, relaxed); /* relaxed: the loop decides */
    do {
        if (sni_unlikely(state & COMPLETE))
            return -ESRCH;
        /* acq_rel: releases what the event wrote to the next poll; acquires the frame, for it.
         * Even if nothing changes, see rule 4 */
    } while (
        sni_unlikely(!sni_atomic_cas(&task->state, &state, woken_from(state), acq_rel, relaxed)));
    if (sni_likely(!(state & ACTIVE)))
        sni_task_home(task)->ops->ready(task);
    return 0;
}

void sni_task_wake(struct sni_task *task)
{
    (void)waker_wake_by_ref(task);
}

static void waker_drop(void *data)
{
    sni_task_unref(sni_exec_current(), data);
}

static int waker_wake(void *data)
{
    int rc = waker_wake_by_ref(data);
    waker_drop(data); /* not before: it may be what keeps the record */
    return rc;
}

const sn_waker_vtable sni_task_wakers = {
    .clone = waker_clone,
    .wake = waker_wake,
    .wake_by_ref = waker_wake_by_ref,
    .drop = waker_drop,
};

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

bool sni_task_poll(struct sni_exec *exec, struct sni_task *task)
{
    /* acquire: pairs with the wake that made it ACTIVE */
    uint64_t state = sni_atomic_load(&task->state, acquire);
    if (sni_unlikely(state & WOKEN)) /* acquire: pairs with the wakes since */
        state = sni_atomic_fetch_and(&task->state, ~WOKEN, acquire);
    sni_assert_debug(state & ACTIVE, "a task is polled that is not queued");
    sn_waker waker = {&sni_task_wakers, task};
    sn_cx cx = {&waker};
    /* What was so before: who cancels it from here on makes it polled again. */
    if (sni_unlikely(state & CANCELED))
        (void)sn_future_cancel(task->future);
    sn_poll p = sn_future_poll(task->future, &cx);
    if (!sn_poll_pending(p)) {
        if (sni_unlikely(task->future->state_ == SNI_FUTURE_SUSPENDED))
            (void)sn_future_drop(task->future); /* a generator, which is not asked again */
        sni_task_finish_up(task);
        sni_task_end(exec, task, p.value);
        return false;
    }
    return !rests(task);
}

/* ---- tasks that outlive their runtime ------------------------------------------------------ */

static void free_orphan(struct sni_home *home, struct sni_exec *exec, struct sni_record *record)
{
    (void)home;
    (void)exec;
    struct sni_record_cache cache;
    struct sni_arena *arena;
    int rc = sni_arena_get(&arena);
    sni_assert(rc == 0, "the region of all records is gone");
    sni_record_cache_init(&cache, arena);
    sni_record_put(&cache, record);
    sni_record_cache_finish(&cache);
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
    sni_local_drop_all(task);
    sni_atomic_store(&task->result, -ECANCELED, relaxed); /* relaxed: released by the next */
    if (sni_scope_complete(task) & WAITED)
        (void)sni_wait_claim(task->joiner, 0);
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
            while (sni_atomic_load(&task->record.generation, acquire) == generation)
                sni_cpu_pause();
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
    struct sni_place place = {"join", task, (uintptr_t)task, SNI_TIE_OWNER};
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
