/* SPDX-License-Identifier: MIT */
/* task_home.c - see task_home.h. */
#include "model/task_home.h"

#include "plat/memory.h"
#include "plat/region.h"
#include "plat/thread.h"

#include <string.h>

enum {
    REGION_BYTES = 4 << 16, /* the arena's head, and a chunk for each size that is used */
};

static struct {
    struct sni_home home;
    struct home_hooks hooks;
    struct sni_mutex lock; /* of the shelf */
    struct sni_record_cache shelf;
    struct life lives[HOME_TASKS_MAX];
    unsigned tasks;
    bool gone;
    SNI_ATOMIC(uint32_t) visitors; /* who free a record right now: the home stays until they left */
    SNI_ATOMIC(uint32_t) resumed;  /* how often, the one fiber that waits */
    uint32_t suspended;            /* as often as that, or once more      */
    SNI_ATOMIC(uint32_t) to_park;  /* what the parker is asked for */
    bool has_parker;
    struct life *waited_for; /* by that one                 */
} here;

/* ---- the region of all records -------------------------------------------------------------- */

static _Alignas(4096) char memory[REGION_BYTES];
struct sni_region sni_region = {{memory}, sizeof(memory)};

int sni_plat_region(void **base, size_t *bytes)
{
    *base = memory;
    *bytes = sizeof(memory);
    return 0;
}

void sni_plat_populate(void *base, size_t bytes)
{
    (void)base; /* it is memory already */
    (void)bytes;
}

/* ---- the home's operations ------------------------------------------------------------------- */

struct life *life_of(const struct sni_task *task)
{
    return &here.lives[task->id];
}

static int new_record(struct sni_home *home, struct sni_exec *exec, size_t bytes,
                      struct sni_record **out, uint64_t *id)
{
    (void)exec;
    MODEL_CHECK(home == &here.home && !here.gone && here.tasks < HOME_TASKS_MAX);
    *id = here.tasks++;
    sni_mutex_lock(&here.lock);
    int rc = sni_record_get(&here.shelf, bytes, out);
    sni_mutex_unlock(&here.lock);
    return rc;
}

static void free_record(struct sni_home *home, struct sni_exec *exec, struct sni_record *record)
{
    struct sni_task *task = (struct sni_task *)(void *)record;
    (void)exec;
    MODEL_CHECK(home == &here.home && !here.gone);
    model_write(&life_of(task)->memory);
    /* relaxed: the end of the record's life publishes it; release below: pairs with home_is_gone */
    sni_atomic_fetch_add(&here.visitors, 1, relaxed);
    sni_mutex_lock(&here.lock);
    sni_record_put(&here.shelf, record); /* from here on the runtime can go away */
    sni_mutex_unlock(&here.lock);
    MODEL_CHECK(!here.gone);
    sni_atomic_fetch_sub(&here.visitors, 1, release); /* release: as above */
}

static void unspawned(struct sni_home *home, struct sni_exec *exec)
{
    (void)exec;
    MODEL_CHECK(home == &here.home && !here.gone);
}

static void begin_life(struct sni_task *task)
{
    /* relaxed: the record is ours */
    uint32_t born = sni_atomic_load(&task->record.generation, relaxed);
    *life_of(task) = (struct life){.task = task, .born = born};
}

static void spawned(struct sni_exec *exec, struct sni_task *task)
{
    (void)exec;
    if (here.hooks.spawned == NULL)
        model_fail("tasks are made by home_fiber and home_coroutine");
    begin_life(task);
    here.hooks.spawned(task);
}

static void ready(struct sni_task *task)
{
    MODEL_CHECK(!here.gone);
    here.hooks.ready(task);
    MODEL_CHECK(!here.gone);
}

static void ended(struct sni_exec *exec, struct sni_task *task)
{
    (void)exec;
    struct life *life = life_of(task);
    MODEL_CHECK(!here.gone);
    life->ended++;
    model_read(&life->memory);
    if (here.hooks.ended != NULL)
        here.hooks.ended(task);
}

static void leave(struct sni_task *task)
{
    (void)task;
    model_fail("nobody panics here");
}

/* Called by who is about to wait for the end, right before it says so. */
static bool take_unstarted(struct sni_task *task)
{
    MODEL_CHECK(!here.gone);
    model_read(&life_of(task)->memory);
    model_write(&life_of(task)->joiner);
    here.waited_for = life_of(task);
    return here.hooks.take_unstarted != NULL && here.hooks.take_unstarted(task);
}

static const struct sni_home_ops home_ops = {
    .new_record = new_record,
    .unspawned = unspawned,
    .free_record = free_record,
    .spawned = spawned,
    .ready = ready,
    .ended = ended,
    .leave = leave,
    .take_unstarted = take_unstarted,
};

/* ---- fibers that wait ------------------------------------------------------------------------ */

enum { IDLE, PARK, QUIT };

static void ask_parker(uint32_t what)
{
    sni_atomic_store(&here.to_park, what, release); /* release: pairs with home_parker */
    sni_plat_unpark(&here.to_park.raw_, 1);
}

void home_has_parker(void)
{
    here.has_parker = true;
}

void home_quit_parker(void)
{
    ask_parker(QUIT);
}

void home_parker(struct sni_task *fiber)
{
    struct sni_task_exec me = home_exec(NULL);
    sni_exec_set(&me.exec);
    for (;;) {
        uint32_t what;
        while ((what = sni_atomic_exchange(&here.to_park, IDLE, acquire)) == IDLE) /* as above */
            (void)sni_plat_park(&here.to_park.raw_, IDLE, INT64_MAX);
        if (what == QUIT)
            break;
        if (sni_task_parked(fiber))
            home_resume();
    }
    sni_exec_set(NULL);
}

static void suspend(struct sni_exec *exec, struct sni_waiter *waiter)
{
    (void)waiter;
    uint32_t before = here.suspended++;
    if (here.has_parker)
        ask_parker(PARK);
    else if (sni_task_parked(exec->fiber))
        home_resume();
    while (sni_atomic_load(&here.resumed, acquire) == before) /* acquire: pairs with resume */
        (void)sni_plat_park(&here.resumed.raw_, before, INT64_MAX);
}

static void resume(void *fiber)
{
    (void)fiber;
    if (here.waited_for != NULL)
        model_read(&here.waited_for->joiner); /* as who ends the task did just before */
    home_resume();
}

void home_resume(void)
{
    uint32_t before = sni_atomic_fetch_add(&here.resumed, 1, release); /* pairs with suspend */
    MODEL_CHECK(before + 1 == here.suspended);
    sni_plat_unpark(&here.resumed.raw_, 1);
}

static const struct sni_exec_ops exec_ops = {
    .suspend = suspend,
    .resume = resume,
    .resume_last = resume,
    .lent_at = offsetof(struct sni_task, lent),
    .wait_at = offsetof(struct sni_task, wait),
};

struct sni_task_exec home_exec(struct sni_task *fiber)
{
    return (struct sni_task_exec){.exec = {&exec_ops, fiber}, .home = &here.home};
}

/* ---- for models ------------------------------------------------------------------------------ */

void home_reset(const struct home_hooks *hooks)
{
    struct sni_arena *arena;
    struct sni_record_cache shelf = here.shelf;
    if (shelf.arena == NULL) { /* once: records stay on the shelf from execution to execution */
        MODEL_CHECK(sni_arena_get(&arena) == 0);
        sni_record_cache_init(&shelf, arena);
    }
    memset(&here, 0, sizeof(here));
    here.shelf = shelf;
    here.home.ops = &home_ops;
    if (hooks != NULL)
        here.hooks = *hooks;
}

void home_have_records(size_t bytes)
{
    struct sni_record *records[HOME_TASKS_MAX];
    for (int i = 0; i < HOME_TASKS_MAX; i++)
        MODEL_CHECK(sni_record_get(&here.shelf, bytes, &records[i]) == 0);
    for (int i = 0; i < HOME_TASKS_MAX; i++)
        sni_record_put(&here.shelf, records[i]);
}

static struct sni_task *make(const struct sni_spawn *what, bool handle)
{
    struct sni_task *task;
    MODEL_CHECK(sni_task_new(&here.home, NULL, what, handle, &task) == 0);
    begin_life(task);
    return task;
}

struct sni_task *home_fiber(sn_task_fn *fn, bool handle)
{
    static const sn_spawn_options opts = {.at_ = "model"};
    return make(&(struct sni_spawn){.kind = SNI_TASK_FIBER, .fn = fn, .opts = &opts}, handle);
}

struct sni_task *home_coroutine(sn_future *future, size_t bytes, bool handle)
{
    static const sn_spawn_options opts = {.at_ = "model"};
    return make(&(struct sni_spawn){.kind = SNI_TASK_CORO,
                                    .future = future,
                                    .frame = future,
                                    .frame_bytes = bytes,
                                    .opts = &opts},
                handle);
}

void home_run_to_end(struct sni_task *task, int result)
{
    struct life *life = life_of(task);
    struct sni_task_exec me = home_exec(task);
    struct sni_exec *before = sni_exec_current();
    sni_exec_set(&me.exec);
    task->acting = NULL; /* it has begun */
    model_write(&life->result);
    model_read(&life->memory);
    sni_task_end(&me.exec, task, result);
    me.exec.fiber = NULL;
    sni_exec_set(before);
}

void home_is_gone(void)
{
    while (sni_atomic_load(&here.visitors, acquire) != 0) /* acquire: pairs with free_record */
        ;
    here.gone = true;
}

void home_check_over(const struct life *life)
{
    MODEL_CHECK(life->ended == 1);
    MODEL_CHECK(life->task->record.generation.raw_ == life->born + 1);
}
