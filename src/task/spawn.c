/* SPDX-License-Identifier: MIT */
/* spawn.c - how a task is made.
 *
 * Nearly all spawns are of one kind: a fiber, of which nothing but its function, argument and place
 * is said. `make` and `spawn` are written for all kinds and put into their callers, so that for
 * this one the compiler leaves out what the others need: a spawn is a third shorter. */
#include "task/local.h"
#include "task/scope.h"
#include "task/state.h"
#include "task/task.h"

#include "base/assert.h"
#include "future/future_priv.h"

#include <sinew/coro.h>
#include <sinew/errno.h>
#include <assert.h>
#include <stddef.h>
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

static SNI_COLD int check_options(const sn_spawn_options *opts, const void *arg)
{
    if (opts->stack_bytes != 0 &&
        (opts->stack_bytes < (4u << 10) || opts->stack_bytes > ((size_t)1 << 30)))
        return -EINVAL;
    if ((unsigned)opts->priority > SN_CRITICAL)
        return -EINVAL;
    if (opts->copy_bytes > SN_COPY_BYTES_MAX || (opts->copy_bytes > 0 && arg == NULL))
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
static inline void fill_tail(struct sni_task *task, const struct sni_spawn *what)
{
    void *tail = task + 1;
    if (what->is_member)
        tail = sni_member_of(task) + 1;
    if (what->kind == SNI_TASK_CORO) {
        memcpy(tail, what->frame, what->frame_bytes);
        ptrdiff_t offset = (char *)what->future - (char *)what->frame;
        task->future = (sn_future *)(void *)((char *)tail + offset);
        /* In the copy: to read what was just written in smaller pieces, a copy has to wait. */
        if (what->starts != NULL)
            (void)sni_coro_start(sni_container_of(task->future, sn_coro, future), what->starts);
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

static SNI_ALWAYS_INLINE int make(struct sni_home *home, struct sni_exec *exec,
                                  const struct sni_spawn *what, bool handle, struct sni_task **out)
{
    bool plain = sni_likely(is_plain(what->opts));
    int rc = check(what);
#ifdef SINEW_DEBUG
    sni_exec_set_place(place_of);
#endif
    if (rc == 0 && !plain)
        rc = check_options(what->opts, what->arg);
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

int sni_task_new(struct sni_home *home, struct sni_exec *exec, const struct sni_spawn *what,
                 bool handle, struct sni_task **out)
{
    return make(home, exec, what, handle, out);
}

int sni_task_new_child(struct sni_home *home, struct sni_exec *exec, sn_task_fn *fn, void *arg,
                       const sn_spawn_options *opts, struct sni_task **out)
{
    return make(home, exec,
                &(struct sni_spawn){
                    .kind = SNI_TASK_FIBER, .fn = fn, .arg = arg, .opts = opts, .is_member = true},
                false, out);
}

/* ---- spawning -------------------------------------------------------------------------- */

static SNI_ALWAYS_INLINE sn_task *spawn(const struct sni_spawn *what)
{
    struct sni_exec *exec = sni_exec_current();
    struct sni_home *home = exec != NULL ? ((struct sni_task_exec *)(void *)exec)->home : NULL;
    struct sni_task *task = NULL;
    int rc = home != NULL ? make(home, exec, what, !what->opts->detached, &task) : -EPERM;
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
static int spawn_detached(const struct sni_spawn *what)
{
    int rc;
    sn_spawn_options opts = *what->opts;
    struct sni_spawn detached = *what;
    opts.detached = true;
    opts.error = &rc;
    detached.opts = &opts;
    (void)spawn(&detached);
    if (what->opts->error != NULL)
        *what->opts->error = rc;
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
                              .future = &coro->future,
                              .starts = vt,
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
