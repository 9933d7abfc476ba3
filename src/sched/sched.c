/* SPDX-License-Identifier: MIT */
/* sched.c - the life of a scheduler: its workers, its records, and when all is over.
 *
 * How many tasks are alive is not kept in one number, which all workers would fight over: each
 * worker counts what it spawned and what ended on it. To know that nothing is alive, the ends
 * are summed first and the spawns after. An end is counted (release) after the spawn that it
 * belongs to, so who sees the end (acquire) also sees the spawn; if the sum of the ends, read
 * first, equals the sum of the spawns, read later, then between the two readings nothing was
 * alive. Otherwise the difference is a moment's number. */
#include "sched/sched.h"

#include "fiber/sanitize.h"
#include "plat/clock.h"
#include "plat/cpu.h"
#include "plat/fault.h"
#include "plat/random.h"

#include <sinew/errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    IDS_AT_ONCE = 1024, /* task numbers that a worker takes at once        */
    CELLS_FIRST = 16,   /* of a worker's ring; the others when they are needed */
};

/* ---- records and numbers ---------------------------------------------------------------- */

static uint64_t next_id(struct sni_worker *w)
{
    if (sni_unlikely(w->id_next == w->id_end)) {
        /* relaxed: only uniqueness counts */
        w->id_next = sni_atomic_fetch_add(&w->sched->ids, IDS_AT_ONCE, relaxed);
        w->id_end = w->id_next + IDS_AT_ONCE;
    }
    return w->id_next++;
}

/* By a thread outside, or a worker of another runtime. */
static SNI_NEVER_INLINE int new_record_outside(struct sni_sched *sched, size_t bytes,
                                               struct sni_record **out, uint64_t *id)
{
    int rc = sni_record_get_uncached(sched->arena, bytes, out);
    if (rc == 0) {
        /* relaxed: the task's queueing publishes it */
        sni_atomic_fetch_add(&sched->spawned, 1, relaxed);
        *id = sni_atomic_fetch_add(&sched->ids, 1, relaxed); /* relaxed: only uniqueness */
    }
    return rc;
}

static int new_record(struct sni_home *home, struct sni_exec *exec, size_t bytes,
                      struct sni_record **out, uint64_t *id)
{
    struct sni_sched *sched = (struct sni_sched *)(void *)home;
    struct sni_worker *w = sni_worker_of(exec);
    if (sni_unlikely(w == NULL || w->sched != sched))
        return new_record_outside(sched, bytes, out, id);
    *id = next_id(w);
    int rc = sni_record_get(&w->records, bytes, out);
    if (sni_likely(rc == 0)) {
        /* relaxed: only this thread writes; the task's queueing publishes it */
        uint64_t before = sni_atomic_load(&w->spawned, relaxed);
        sni_atomic_store(&w->spawned, before + 1, relaxed);
    }
    return rc;
}

/* The arena is everybody's; and once the record's life has ended, nothing keeps its runtime. */
static void free_record(struct sni_home *home, struct sni_exec *exec, struct sni_record *record)
{
    (void)home;
    struct sni_worker *w = sni_worker_of(exec);
    if (sni_likely(w != NULL))
        sni_record_put(&w->records, record);
    else
        sni_record_give(record);
}

/* Where new_record has counted it. Who looked meanwhile took it for one that is alive: on a worker,
 * its task is so anyway; from outside, whoever waits for the end of all looks again. */
static void unspawned(struct sni_home *home, struct sni_exec *exec)
{
    struct sni_sched *sched = (struct sni_sched *)(void *)home;
    struct sni_worker *w = sni_worker_of(exec);
    if (w != NULL && w->sched == sched) {
        /* relaxed: only this thread writes, and the task has never run */
        uint64_t before = sni_atomic_load(&w->spawned, relaxed);
        sni_atomic_store(&w->spawned, before - 1, relaxed);
        return;
    }
    /* relaxed: the fence is between this and the look at end_wanted, as of who waits; see below */
    sni_atomic_fetch_sub(&sched->spawned, 1, relaxed);
    sni_atomic_fence(seq_cst);
    sni_sched_look_at_end(sched);
    if (sched->config.single_threaded)
        sni_world_wake(&sched->workers[0]);
}

/* ---- the end of tasks ------------------------------------------------------------------- */

uint64_t sni_sched_alive(const struct sni_sched *sched)
{
    uint64_t ended = 0;
    for (unsigned i = 0; i < sched->workers_n; i++)
        /* acquire: pairs with the release in task_ended */
        ended += sni_atomic_load(&sched->workers[i].ended, acquire);
    /* relaxed: what must be seen was acquired above */
    uint64_t spawned = sni_atomic_load(&sched->spawned, relaxed);
    for (unsigned i = 0; i < sched->workers_n; i++)
        spawned += sni_atomic_load(&sched->workers[i].spawned, relaxed); /* relaxed: as above */
    return spawned - ended;
}

/* Whoever waits for the end of all tasks counts itself in end_wanted, fences, and looks at the
 * counts. A worker counts an end, and looks at end_wanted: at once, which mostly sees it; and
 * behind the fence with which it goes to sleep, which it does when nothing is left to do. So
 * the last worker to fall asleep sees the waiter, or the waiter saw all its counts: without a
 * fence at every task's end. */
static SNI_COLD void tell_end(struct sni_sched *sched)
{
    if (sni_sched_alive(sched) != 0)
        return;
    /* release: pairs with the acquire in sni_sched_wait_all */
    sni_atomic_fetch_add(&sched->end_word, 1, release);
    sni_plat_unpark(&sched->end_word.raw_, INT32_MAX);
}

void sni_sched_look_at_end(struct sni_sched *sched)
{
    /* relaxed: see above */
    if (sni_unlikely(sni_atomic_load(&sched->end_wanted, relaxed) != 0))
        tell_end(sched);
}

static inline void count_end(struct sni_worker *w, const struct sni_task *task)
{
    /* relaxed, release: pairs with the acquire in sni_sched_alive */
    uint64_t before = sni_atomic_load(&w->ended, relaxed);
    sni_atomic_store(&w->ended, before + 1, release);
    if (sni_unlikely(task == w->until))
        sni_atomic_fetch_or(&w->detour, SNI_DETOUR_RETURN, relaxed); /* relaxed: our own */
    sni_sched_look_at_end(w->sched);
}

static SNI_NEVER_INLINE void tell_and_count_end(struct sni_worker *w, const struct sni_task *task)
{
    const sn_hooks *hooks = &w->sched->config.hooks;
    hooks->task_ended(task->id, task->name, task->at, hooks->arg);
    count_end(w, task);
}

static void task_ended(struct sni_exec *exec, struct sni_task *task)
{
    struct sni_worker *w = sni_worker_of(exec);
    sni_assert(w != NULL, "a task ended outside its runtime");
    if (sni_likely(w->sched->config.hooks.task_ended == NULL))
        count_end(w, task);
    else
        tell_and_count_end(w, task);
}

static bool is_stuck(const struct sni_sched *sched)
{
    return sni_atomic_load(&sched->stuck, acquire) != 0; /* acquire: pairs with set_stuck */
}

void sni_sched_set_stuck(struct sni_sched *sched)
{
    sni_atomic_store(&sched->stuck, 1, release); /* release: what led to it, to who waits */
    /* release: pairs with the acquire in sni_sched_wait_all */
    sni_atomic_fetch_add(&sched->end_word, 1, release);
    sni_plat_unpark(&sched->end_word.raw_, INT32_MAX);
}

uint64_t sni_sched_turns(const struct sni_sched *sched)
{
    uint64_t turns = 0;
    for (unsigned i = 0; i < sched->workers_n; i++)
        turns += sni_probe_get(&sched->workers[i].probe, SNI_PROBE_switches) +
                 sni_probe_get(&sched->workers[i].probe, SNI_PROBE_polls) +
                 sni_atomic_load(&sched->workers[i].ended, relaxed); /* relaxed: they sleep */
    return turns;
}

/* Whoever wants to know that all are asleep is told by the last worker to fall asleep, which counts
 * the threads that wait. One more does now, so let a worker look again. */
static void ask_again(struct sni_sched *sched)
{
    int index = sched->config.all_asleep != NULL ? sni_idle_submit(&sched->idle) : -1;
    if (index >= 0)
        sni_world_wake(&sched->workers[index]);
}

/* A single-threaded scheduler: its tasks run only if we run them, or another thread does. Those
 * that wait for somebody outside are looked after every millisecond. */
static int drive_all(struct sni_sched *sched, sn_deadline until)
{
    if (until.ns == SN_FOREVER.ns) {
        sni_atomic_fetch_add(&sched->forever, 1, seq_cst);
        ask_again(sched);
        sni_mutex_lock(&sched->driver); /* another thread may drive it; then we go on */
        sni_atomic_fetch_sub(&sched->forever, 1, seq_cst);
        if (!is_stuck(sched))
            sni_worker_run(&sched->workers[0], SNI_DRIVE_UNTIL, NULL);
        sni_mutex_unlock(&sched->driver);
        return sni_sched_alive(sched) != 0 ? -EDEADLK : 0;
    }
    for (;;) {
        if (sni_sched_alive(sched) == 0)
            return 0;
        int64_t now = sni_plat_now_ns();
        if (now >= until.ns)
            return -ETIMEDOUT;
        int rc = sni_sched_turn(sched, until);
        if (rc == 0 && sched->config.virtual_time &&
            sni_clockwork_next(&sched->workers[0].clockwork) != INT64_MAX)
            continue; /* it passes in the next turn */
        int64_t nap_until = now + SN_MS(1) < until.ns ? now + SN_MS(1) : until.ns;
        uint32_t nobody_wakes = 0;
        (void)sni_plat_park(&nobody_wakes, 0, nap_until);
    }
}

int sni_sched_wait_all(struct sni_sched *sched, sn_deadline until)
{
    if (sched->config.single_threaded)
        return drive_all(sched, until);
    int rc = 0;
    const bool is_forever = until.ns == SN_FOREVER.ns;
    sni_atomic_fetch_add(&sched->end_wanted, 1, seq_cst);
    if (is_forever) {
        sni_atomic_fetch_add(&sched->forever, 1, seq_cst);
        ask_again(sched);
    }
    for (;;) {
        /* acquire: pairs with tell_end */
        uint32_t word = sni_atomic_load(&sched->end_word, acquire);
        sni_atomic_fence(seq_cst); /* pairs with the fence in sni_idle_sleep */
        if (sni_sched_alive(sched) == 0)
            break;
        if (is_stuck(sched)) {
            rc = -EDEADLK;
            break;
        }
        rc = sni_plat_park(&sched->end_word.raw_, word, until.ns);
        if (rc == -ETIMEDOUT)
            break;
    }
    if (is_forever)
        sni_atomic_fetch_sub(&sched->forever, 1, seq_cst);
    sni_atomic_fetch_sub(&sched->end_wanted, 1, seq_cst);
    return sni_sched_alive(sched) == 0 ? 0 : rc;
}

/* ---- spawning and driving --------------------------------------------------------------- */

static void tell_spawn(struct sni_sched *sched, const struct sni_task *task)
{
    const sn_hooks *hooks = &sched->config.hooks;
    if (sni_unlikely(hooks->task_spawned != NULL))
        hooks->task_spawned(task->id, task->name, task->at, hooks->arg);
}

static SNI_NEVER_INLINE void tell_and_push(struct sni_worker *w, struct sni_task *task)
{
    tell_spawn(w->sched, task);
    sni_worker_push_back(w, task);
}

static void task_spawned(struct sni_exec *exec, struct sni_task *task)
{
    struct sni_worker *w = (struct sni_worker *)(void *)exec;
    task->worker = (uint16_t)w->index;
    sni_probe_count(&w->probe, SNI_PROBE_spawns);
    if (sni_likely(w->sched->config.hooks.task_spawned == NULL))
        sni_worker_push_back(w, task);
    else
        tell_and_push(w, task);
}

static int spawn(struct sni_sched *sched, const struct sni_spawn *what, bool has_handle,
                 sn_task **handle)
{
    struct sni_task *task;
    int rc = sni_task_new(&sched->home, sni_exec_current(), what, has_handle, &task);
    if (rc < 0)
        return rc;
    if (has_handle)
        *handle = sni_task_handle(task); /* before it can run, end and be gone */
    tell_spawn(sched, task);
    sni_atomic_store(&sched->stuck, 0, relaxed); /* relaxed: the push publishes it */
    sni_sched_push(sched, task);
    return 0;
}

/* Who spawns has counted itself before it looks whether the scheduler is open; who closes it looks
 * for spawners afterwards. So one of them sees the other. Not for visitors: wakes go on. */
int sni_sched_spawn(struct sni_sched *sched, const struct sni_spawn *what, bool has_handle,
                    sn_task **handle)
{
    sni_atomic_fetch_add(&sched->spawners, 1, seq_cst);
    bool is_open = sni_atomic_load(&sched->life, seq_cst) == SNI_SCHED_OPEN;
    int rc = is_open ? spawn(sched, what, has_handle, handle) : -EPERM;
    sni_atomic_fetch_sub(&sched->spawners, 1, release); /* release: to await_spawners */
    return rc;
}

static void await_spawners(struct sni_sched *sched)
{
    while (sni_atomic_load(&sched->spawners, seq_cst) != 0) /* seq_cst: see above */
        sni_plat_thread_yield();
}

void sni_sched_await_callers(struct sni_sched *sched)
{
    while (sni_atomic_load(&sched->callers, acquire) != 0) /* acquire: pairs with their release */
        sni_plat_thread_yield();
}

bool sni_sched_close(struct sni_sched *sched)
{
    uint32_t open = SNI_SCHED_OPEN;
    /* relaxed on failure: it was another's */
    if (!sni_atomic_cas(&sched->life, &open, SNI_SCHED_CLOSED, seq_cst, relaxed))
        return false;
    await_spawners(sched);
    return true;
}

int sni_sched_drive(struct sni_sched *sched, sn_task *handle)
{
    if (!sni_mutex_trylock(&sched->driver))
        return -EBUSY;
    struct sni_record *record = sni_arena_find((uint64_t)(uintptr_t)handle);
    sni_worker_run(&sched->workers[0], SNI_DRIVE_UNTIL, (struct sni_task *)(void *)record);
    sni_mutex_unlock(&sched->driver);
    return 0;
}

static const struct sni_home_ops home_ops = {
    .new_record = new_record,
    .unspawned = unspawned,
    .free_record = free_record,
    .spawned = task_spawned,
    .ready = sni_worker_ready,
    .ended = task_ended,
    .leave = sni_worker_leave,
    .take_unstarted = sni_worker_take_unstarted,
};

/* ---- beginning and end ------------------------------------------------------------------ */

static void worker_thread(void *arg)
{
    struct sni_worker *w = arg;
    struct sni_fault_thread fault = {0};
    if (w->sched->config.pin)
        (void)sni_plat_thread_pin(sni_plat_cpu_nth((int)w->index));
    (void)sni_plat_fault_thread_init(&fault);
    const sn_hooks *hooks = &w->sched->config.hooks;
    if (hooks->thread_started != NULL)
        hooks->thread_started(w->index, hooks->arg);
    sni_worker_run(w, SNI_DRIVE_THREAD, NULL);
    if (hooks->thread_stops != NULL)
        hooks->thread_stops(w->index, hooks->arg);
    sni_plat_fault_thread_finish(&fault);
}

static void worker_init(struct sni_worker *w, struct sni_sched *sched, unsigned index)
{
    w->exec.exec.ops = &sni_worker_exec_ops;
    w->exec.home = &sched->home;
    w->sched = sched;
    w->index = index;
    w->plain = !sched->config.lifo && !sched->config.seeded;
    w->lifo = sched->config.lifo && !sched->config.seeded;
    w->wakes = !sched->config.no_steal && sched->workers_n > 1;
    sni_hush_init(&w->hush, w->wakes);
    w->fair_at = SNI_FAIR_TICK;
    sni_record_cache_init(&w->records, sched->arena);
    sni_stack_cache_init(&w->stacks, &sched->stacks);
    sni_rand_init(&w->rand, sched->config.seed + index);
    uint32_t capacity = sched->config.queue_capacity;
    sni_runq_cell *cells = sched->cells + (size_t)index * capacity;
    sni_runq_init(&w->runq, cells, capacity);
    sni_runq_narrow(&w->runq, capacity < CELLS_FIRST ? capacity : CELLS_FIRST);
    if (!w->wakes)
        sni_runq_set_alone(&w->runq);
    sni_deque_init(&w->deque, cells, capacity); /* one of the two is used */
    if (!w->wakes)
        sni_deque_set_alone(&w->deque);
    sni_inject_init(&w->inbox);
    sni_parker_init(&w->parker);
    sni_world_init(w);
}

static int start_threads(struct sni_sched *sched)
{
    for (; sched->started < sched->workers_n; sched->started++) {
        struct sni_worker *w = &sched->workers[sched->started];
        int rc = sni_plat_thread_start(&w->thread, worker_thread, w, sched->config.name, 0);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void free_memory(struct sni_sched *sched)
{
    free(sched->workers);
    free(sched->marks);
    sched->workers = NULL;
    sni_stack_pool_finish(&sched->stacks);
}

static size_t whole_lines(size_t bytes)
{
    return (bytes + SNI_SCHED_LINE_BYTES - 1) / SNI_SCHED_LINE_BYTES * SNI_SCHED_LINE_BYTES;
}

/* The workers, their queues, their wheels' slots, the lists of their victims, and the table of
 * marks. What is touched at once stands together, and then what few runtimes touch all of. */
static int get_memory(struct sni_sched *sched)
{
    const size_t n = sched->workers_n;
    const size_t workers_bytes = n * sizeof(struct sni_worker);
    const size_t victims_bytes = whole_lines(n * n * sizeof(uint16_t));
    const size_t cells_bytes =
        whole_lines(n * sched->config.queue_capacity * sizeof(sni_runq_cell));
    const size_t slots_bytes = n * sizeof(struct sni_wheel_slots);
    char *block = aligned_alloc(SNI_SCHED_LINE_BYTES,
                                workers_bytes + victims_bytes + cells_bytes + slots_bytes);
    const bool measures = sched->config.measure_stacks;
    if (measures)
        sched->marks = malloc(sizeof(*sched->marks));
    sched->workers = (struct sni_worker *)(void *)block;
    if (block == NULL || (measures && sched->marks == NULL)) {
        free_memory(sched);
        return -ENOMEM;
    }
    sched->victims = (uint16_t *)(void *)(block + workers_bytes);
    sched->cells = (sni_runq_cell *)(void *)((char *)sched->victims + victims_bytes);
    sched->slots = (struct sni_wheel_slots *)(void *)((char *)sched->cells + cells_bytes);
    memset(block, 0, workers_bytes);
    if (measures)
        sni_highwater_init(sched->marks);
    return 0;
}

static int know_victims(struct sni_sched *sched)
{
    unsigned n = sched->workers_n;
    int *nodes = malloc(n * sizeof(*nodes));
    if (nodes == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        nodes[i] = sched->config.pin ? sni_plat_cpu_node(sni_plat_cpu_nth((int)i)) : -1;
    for (unsigned i = 0; i < n; i++) {
        sched->workers[i].victims = sched->victims + (size_t)i * n;
        sched->workers[i].near_n = sni_victims_sort(sched->workers[i].victims, nodes, n, i);
    }
    free(nodes);
    return 0;
}

int sni_sched_init(struct sni_sched *sched, const struct sni_sched_config *config)
{
    *sched = (struct sni_sched){.home = {&home_ops}, .config = *config};
    sched->workers_n = config->single_threaded ? 1 : config->workers;
    /* Under valgrind a window would be some instructions long, and not twice the same. */
    sched->sees_crowds = !sni_valgrind_active();
    sched->has_counter = !config->virtual_time && !sni_valgrind_active() && sni_plat_has_counter();
    sni_atomic_store(&sched->ids, 1, relaxed);       /* relaxed: nobody else is here yet */
    sni_atomic_store(&sched->event_fd, -1, relaxed); /* relaxed: as above               */
    bool can_hush = sched->workers_n > 1 && sni_plat_fence_all_prepare(false) == 0;
    sni_atomic_store(&sched->can_hush, can_hush, relaxed); /* relaxed: as above         */
    int rc = sni_arena_get(&sched->arena);
    if (rc < 0)
        return rc;
    struct sni_stack_config stacks = {.default_bytes = config->stack_bytes};
    rc = sni_stack_pool_init(&sched->stacks, &stacks);
    if (rc < 0)
        return rc;
    sni_inject_init(&sched->inject);
    sni_inject_init(&sched->urgent);
    sni_idle_init(&sched->idle, sched->workers_n);
    rc = get_memory(sched);
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < sched->workers_n; i++)
        worker_init(&sched->workers[i], sched, i);
    rc = know_victims(sched);
    if (rc == 0 && !config->single_threaded)
        rc = start_threads(sched);
    if (rc < 0)
        sni_sched_finish(sched);
    return rc;
}

void sni_sched_stop(struct sni_sched *sched)
{
    const bool has_threads = !sched->config.single_threaded;
    /* seq_cst: before the bits, which a thread that begins to drive right now sets anew */
    sni_atomic_store(&sched->life, SNI_SCHED_STOPPING, seq_cst);
    for (unsigned i = 0; i < (has_threads ? sched->started : 1); i++) {
        sni_atomic_fetch_or(&sched->workers[i].detour, SNI_DETOUR_RETURN, seq_cst);
        sni_world_wake(&sched->workers[i]);
    }
    for (unsigned i = 0; i < sched->started; i++)
        (void)sni_plat_thread_join(&sched->workers[i].thread);
    sched->started = 0;
    if (!has_threads) {
        sni_mutex_lock(&sched->driver);
        sni_mutex_unlock(&sched->driver);
    }
    await_spawners(sched);
    /* seq_cst: see sni_sched_push. Those that come later queue nothing */
    while (sni_atomic_load(&sched->visitors, seq_cst) != 0)
        sni_plat_thread_yield();
}

void sni_sched_finish(struct sni_sched *sched)
{
    if (sched->workers == NULL)
        return;
    sni_sched_stop(sched);
    for (unsigned i = 0; i < sched->workers_n; i++)
        sni_world_finish(&sched->workers[i]);
    for (unsigned i = 0; i < sched->workers_n; i++) {
        sni_record_cache_finish(&sched->workers[i].records);
        sni_stack_cache_finish(&sched->workers[i].stacks);
        sni_lottery_finish(&sched->workers[i].lottery);
    }
    sni_embed_finish(sched);
    free_memory(sched);
}
