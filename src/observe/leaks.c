/* SPDX-License-Identifier: MIT */
/* leaks.c - sn_leaks: tasks that nobody can wake any more.
 *
 * Words: a *candidate* is a task that waits, without a deadline or a descriptor, at something that
 * is known. *Live* is all other memory: static variables, the heap, the stacks of threads and of
 * all tasks that are no candidates, what lies in channels. A candidate is live after all if one is
 * that could wake it:
 *
 *   - somebody has its handle, or a pointer into its record, and might cancel it;
 *   - it waits at a channel, a broadcast or a watch, and somebody has a handle of that;
 *   - it waits for a task, or for a lock that one holds, and that task is live; a lock whose holder
 *     has ended without unlocking makes nobody live;
 *   - it waits at something that lies on the stack of a task, and that task is live, or somebody
 *     has a pointer into that stack;
 *   - it waits at something that lies anywhere else: there may be ways to get at it that no word of
 *     memory shows.
 *
 * "Somebody has" means that the word is found in live memory. Then its stack and its record become
 * live, and so on, until nothing changes. The candidates that are left wait for ever: what could
 * wake them is known to them alone. That is what a tracing collector would say, but for the heap:
 * blocks have no known bounds here, so all of it counts as live.
 *
 * It must not move meanwhile. All other workers stand still (pause.c), so that what their tasks
 * know is on their stacks; threads that wait for the runtime have put their registers on theirs
 * (SNI_SPILL_REGISTERS). What other threads have in registers cannot be seen: then there is no
 * answer. So a task is never listed that could be woken; but a stale word may keep one from being
 * listed. */
#include "observe/search.h"
#include "plat/memory.h"
#include "runtime/deadlock.h"
#include "runtime/runtime.h"

#include <sinew/errno.h>
#include <stdio.h>
#include <string.h>

enum { FORGET_BYTES = 6 << 10 };

struct fate {
    struct sni_span stack; /* sorted by this in leaks.stacks: of the node's fiber            */
    size_t node;
    bool is_candidate;
    bool is_live;
    bool is_known;   /* a handle that is still good, or a pointer into its record, was found */
    bool is_pointed; /* a pointer into its stack was                                         */
};

/* What candidates wait at, by its record. */
struct thing {
    uintptr_t record;
    bool is_known;
};

struct leaks {
    struct sni_snapshot snap;
    struct sni_search search;
    struct fate *fates;  /* one for each node, in the same order                               */
    struct fate *stacks; /* copies of those that have one, by address; `node` leads back       */
    size_t stacks_n;
    struct thing *things;
    size_t things_n;
    size_t bytes; /* of all three, which are one mapping */
    struct sni_span arena;
    bool only_handles; /* pointers are the house's own here */
    unsigned joining;  /* threads that wait for a task      */
    int rc;
};

/* ---- what is found ------------------------------------------------------------------------------
 * */

static struct thing *find_thing(const struct leaks *l, uintptr_t record)
{
    size_t lo = 0, hi = l->things_n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->things[mid].record == record)
            return &l->things[mid];
        if (l->things[mid].record < record)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* The fate of the task on whose stack `address` lies, or NULL. */
static struct fate *find_stack(const struct leaks *l, uintptr_t address)
{
    size_t lo = 0, hi = l->stacks_n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (address < l->stacks[mid].stack.from)
            hi = mid;
        else if (address >= l->stacks[mid].stack.to)
            lo = mid + 1;
        else
            return &l->fates[l->stacks[mid].node];
    }
    return NULL;
}

static struct fate *fate_of(const struct leaks *l, uintptr_t task)
{
    const struct sni_node *node = sni_snapshot_find(&l->snap, task);
    return node != NULL ? &l->fates[node - l->snap.nodes] : NULL;
}

static void found_record(struct leaks *l, struct sni_record *record, bool by_handle)
{
    struct thing *thing = find_thing(l, (uintptr_t)record);
    if (thing != NULL)
        thing->is_known = true;
    struct fate *fate = fate_of(l, (uintptr_t)record);
    if (fate != NULL && (!by_handle || sni_task_has_handle((struct sni_task *)(void *)record)))
        fate->is_known = true;
}

static void found_word(uintptr_t word, void *arg)
{
    struct leaks *l = arg;
    uintptr_t address = word & UINT64_C(0xFFFFFFFFFFFF);
    if (address >= l->arena.from && address < l->arena.to) {
        bool by_handle = address != word;
        struct sni_record *record = sni_arena_around(address);
        if (record != NULL && (by_handle ? sni_record_handle(record) == word : !l->only_handles))
            found_record(l, record, by_handle);
        return;
    }
    struct fate *fate = l->only_handles ? NULL : find_stack(l, word);
    if (fate != NULL)
        fate->is_pointed = true;
}

/* ---- where it is looked for ---------------------------------------------------------------------
 * */

static uintptr_t end_of(const struct sni_record *record)
{
    size_t class = record->class % SNI_RECORD_CLASSES;
    return (uintptr_t)record + (class + 1) * SNI_RECORD_STEP;
}

/* What a live task has: what was copied for it, its argument, its stack. */
static void look_at_task(struct leaks *l, const struct sni_task *task)
{
    const struct sni_exec *exec = sni_exec_current();
    sni_search_span(&l->search, (uintptr_t)(task + 1), end_of(&task->record));
    if (task->kind != SNI_TASK_FIBER)
        return;
    if (task->stack == NULL) /* it has not begun */
        sni_search_span(&l->search, (uintptr_t)&task->arg, (uintptr_t)(&task->arg + 1));
    else if (exec != NULL && exec->fiber == task)
        sni_search_span(&l->search, l->search.from_sp, (uintptr_t)task->stack->hi);
    else
        sni_search_span(&l->search, (uintptr_t)task->context.sp, (uintptr_t)task->stack->hi);
}

static void look_at_root(struct sni_record *record, void *arg)
{
    struct leaks *l = arg;
    struct sni_task *task = (struct sni_task *)(void *)record;
    if (!sni_task_find(task))
        return;
    const struct fate *fate = fate_of(l, (uintptr_t)task);
    const bool is_ours = sni_task_home(task) == &l->snap.sched->home;
    if (!sni_task_is_complete(task) && (fate == NULL || !fate->is_candidate)) {
        if (is_ours)
            look_at_task(l, task);
        else
            sni_search_span(&l->search, (uintptr_t)(task + 1), end_of(record));
    }
    sni_task_unref(sni_exec_current(), task);
}

static void look_at_other(struct sni_record *record, void *arg)
{
    struct leaks *l = arg;
    /* acquire: pairs with the beginning of its life */
    if (sni_atomic_load(&record->generation, acquire) % 2 == 1)
        sni_search_span(&l->search, (uintptr_t)(record + 1), end_of(record));
}

static void look_at_loops(struct leaks *l)
{
    const struct sni_sched *sched = l->snap.sched;
    const struct sni_worker *me = sni_worker_current();
    for (unsigned i = 0; i < sched->workers_n; i++) {
        const struct sni_worker *w = &sched->workers[i];
        uintptr_t from = sni_atomic_load(&w->idle_sp, relaxed); /* relaxed: see sni_world_sleep */
        if (from == 0)
            from = (uintptr_t)w->loop_stack->lo;
        if (w == me)
            from = w->exec.exec.fiber != NULL ? (uintptr_t)w->loop.sp : l->search.from_sp;
        sni_search_span(&l->search, from, (uintptr_t)w->loop_stack->hi);
    }
}

static void skip(uintptr_t from, uintptr_t to, void *arg)
{
    struct leaks *l = arg;
    if (l->rc == 0)
        l->rc = sni_search_skip(&l->search, from, to);
}

/* A stack that is mapped by itself; and who counts as a thread that waits. */
static void note_task(struct sni_record *record, void *arg)
{
    struct leaks *l = arg;
    struct sni_task *task = (struct sni_task *)(void *)record;
    if (!sni_task_find(task))
        return;
    if (sni_task_home(task) == &l->snap.sched->home) {
        const struct sni_stack *stack = task->kind == SNI_TASK_FIBER ? task->stack : NULL;
        if (stack != NULL && stack->slab == NULL)
            skip((uintptr_t)stack->lo, (uintptr_t)stack->hi, l);
        const struct sni_waiter *joiner = sni_task_joiner(task);
        l->joining += joiner != NULL && joiner->ops == NULL;
    }
    sni_task_unref(sni_exec_current(), task);
}

/* A lock names its holder by its address, which wakes nobody. */
static void skip_locks(struct leaks *l)
{
    for (size_t i = 0; i < l->snap.places_n; i++) {
        const struct sni_place *place = &l->snap.places[i];
        uintptr_t word = (uintptr_t)place->object;
        if (place->tie == SNI_TIE_OWNER && strcmp(place->what, "join") != 0)
            skip(word, word + sizeof(uint64_t), l);
    }
}

/* Everything of our own that would be found. */
static void skip_own(struct leaks *l)
{
    struct sni_sched *sched = l->snap.sched;
    const struct sni_snapshot *snap = &l->snap;
    skip(l->arena.from, l->arena.to, l);
    skip((uintptr_t)sched, (uintptr_t)(sched + 1), l);
    skip((uintptr_t)sched->workers, (uintptr_t)(sched->workers + sched->workers_n), l);
    size_t cells = (size_t)sched->workers_n * sched->config.queue_capacity;
    skip((uintptr_t)sched->cells, (uintptr_t)(sched->cells + cells), l);
    skip((uintptr_t)snap->nodes, (uintptr_t)(snap->nodes + snap->room), l);
    skip((uintptr_t)snap->places, (uintptr_t)(snap->places + snap->places_room), l);
    skip((uintptr_t)snap->alarms, (uintptr_t)(snap->alarms + snap->alarms_room), l);
    skip((uintptr_t)l->fates, (uintptr_t)l->fates + l->bytes, l);
    sni_stack_pool_each(&sched->stacks, skip, l);
    sni_arena_each(sched->arena, note_task, l);
}

/* ---- who is live
 * --------------------------------------------------------------------------------- */

static bool is_place_live(const struct leaks *l, const struct sni_place *place)
{
    uintptr_t object = (uintptr_t)place->object & UINT64_C(0xFFFFFFFFFFFF);
    const struct thing *thing;
    const struct fate *fate;
    struct sni_record *record;
    switch (place->tie) {
    case SNI_TIE_HANDLE:
        record = sni_arena_around(object);
        thing = record != NULL ? find_thing(l, (uintptr_t)record) : NULL;
        return thing == NULL || thing->is_known;
    case SNI_TIE_OWNER:
        if (place->owner < l->arena.from || place->owner >= l->arena.to)
            return true; /* a thread, or some coroutine */
        fate = fate_of(l, place->owner);
        if (fate != NULL)
            return fate->is_live;
        return sni_arena_at(place->owner) != NULL; /* else it has ended, and holds the lock */
    case SNI_TIE_MEMORY:
        fate = find_stack(l, object);
        if (fate != NULL)
            return fate->is_live || fate->is_pointed;
        record = sni_arena_around(object);
        fate = record != NULL ? fate_of(l, (uintptr_t)record) : NULL;
        return fate == NULL || fate->is_live || fate->is_known;
    default:
        return true;
    }
}

static bool is_live(const struct leaks *l, size_t i)
{
    const struct sni_node *node = &l->snap.nodes[i];
    bool live = l->fates[i].is_known;
    for (unsigned p = 0; p < node->places && !live; p++)
        live = is_place_live(l, &l->snap.places[node->first + p]);
    return live;
}

static void spread(struct leaks *l)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < l->snap.n; i++) {
            struct fate *fate = &l->fates[i];
            if (fate->is_live || !is_live(l, i))
                continue;
            fate->is_live = true;
            more = true;
            look_at_task(l, l->snap.nodes[i].task);
            if (l->snap.nodes[i].fiber != l->snap.nodes[i].task)
                look_at_task(l, l->snap.nodes[i].fiber);
        }
    }
}

/* ---- the whole
 * ------------------------------------------------------------------------------------ */

static int by_stack(const void *a, const void *b)
{
    const struct fate *x = a, *y = b;
    return (x->stack.from > y->stack.from) - (x->stack.from < y->stack.from);
}

static int by_record(const void *a, const void *b)
{
    const struct thing *x = a, *y = b;
    return (x->record > y->record) - (x->record < y->record);
}

static bool may_be_candidate(const struct sni_snapshot *snap, const struct sni_node *node)
{
    bool may = node->places > 0 && !node->is_timed && !node->is_world;
    for (unsigned p = 0; p < node->places; p++)
        may = may && snap->places[node->first + p].tie != SNI_TIE_UNKNOWN;
    return may;
}

static void note_things(struct leaks *l, const struct sni_node *node)
{
    for (unsigned p = 0; p < node->places; p++) {
        const struct sni_place *place = &l->snap.places[node->first + p];
        uintptr_t object = (uintptr_t)place->object & UINT64_C(0xFFFFFFFFFFFF);
        if (place->tie == SNI_TIE_HANDLE)
            l->things[l->things_n++].record = (uintptr_t)sni_arena_around(object);
    }
}

static void sort_out(struct leaks *l)
{
    for (size_t i = 0; i < l->snap.n; i++) {
        const struct sni_node *node = &l->snap.nodes[i];
        struct fate *fate = &l->fates[i];
        fate->node = i;
        fate->is_candidate = may_be_candidate(&l->snap, node);
        fate->is_live = !fate->is_candidate;
        if (fate->is_candidate)
            note_things(l, node);
        if (node->task != node->fiber || node->task->kind != SNI_TASK_FIBER)
            continue;
        const struct sni_stack *stack = node->fiber->stack;
        fate->stack = (struct sni_span){(uintptr_t)stack->lo, (uintptr_t)stack->hi};
        l->stacks[l->stacks_n++] = *fate;
    }
    sni_sort(l->stacks, l->stacks_n, sizeof(*l->stacks), by_stack);
    sni_sort(l->things, l->things_n, sizeof(*l->things), by_record);
    size_t n = 0; /* each once */
    for (size_t i = 0; i < l->things_n; i++)
        if (n == 0 || l->things[n - 1].record != l->things[i].record)
            l->things[n++] = l->things[i];
    l->things_n = n;
}

/* Do we know where all threads are? */
static bool is_alone(const struct leaks *l)
{
    const struct sni_sched *sched = l->snap.sched;
    unsigned known = 1;
    if (!sched->config.single_threaded) {
        /* relaxed: those that count have stood still for long */
        uint32_t callers = sni_atomic_load(&sched->callers, relaxed);
        known = sched->workers_n + (l->joining < callers ? l->joining : callers) +
                sni_atomic_load(&sched->forever, relaxed) + (sni_exec_current() == NULL);
    }
    return sni_plat_threads_beside(known) == 0;
}

/* Nothing moves. */
static int judge(struct leaks *l)
{
    size_t n = l->snap.n;
    void *memory;
    l->bytes = 2 * (n + 1) * sizeof(struct fate) + (l->snap.places_n + 1) * sizeof(struct thing);
    if (sni_plat_reserve(&memory, l->bytes) < 0)
        return -ENOMEM;
    l->fates = memory;
    l->stacks = l->fates + n + 1;
    l->things = (struct thing *)(void *)(l->stacks + n + 1);
    sort_out(l);
    skip_own(l);
    skip_locks(l);
    if (l->rc == 0 && !is_alone(l))
        l->rc = -EBUSY;
    if (l->rc == 0)
        l->rc = sni_search_all(&l->search);
    if (l->rc < 0)
        return l->rc;
    look_at_loops(l);
    sni_arena_each(l->snap.sched->arena, look_at_root, l);
    l->only_handles = true;
    sni_search_span(&l->search, (uintptr_t)&l->snap.sched->config,
                    (uintptr_t)(&l->snap.sched->config + 1));
    sni_arena_each_other(l->snap.sched->arena, look_at_other, l);
    l->only_handles = false;
    spread(l);
    return 0;
}

/* Not inline: what its callers have in registers is in their frames, above this one. */
static SNI_NEVER_INLINE int look(struct leaks *l, struct sni_sched *sched)
{
    int rc = sni_sched_pause(sched);
    if (rc < 0)
        return rc;
    sni_mutex_lock(&sched->inspection);
    rc = sni_snapshot_take(&l->snap, sched);
    if (rc == 0)
        rc = sni_search_init(&l->search, found_word, l);
    if (rc == 0) {
        l->search.from_sp = (uintptr_t)__builtin_frame_address(0);
        sni_arena_bounds(&l->arena.from, &l->arena.to);
        rc = judge(l);
        sni_search_finish(&l->search);
    }
    sni_mutex_unlock(&sched->inspection);
    sni_sched_resume(sched);
    return rc;
}

/* The search has left on the stack what it looked for, where the next one would find it. */
static SNI_NEVER_INLINE void forget(void)
{
    volatile char below[FORGET_BYTES];
    for (size_t i = 0; i < sizeof(below); i++)
        below[i] = 0;
}

static int by_id(const void *a, const void *b)
{
    const sn_stuck *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Tell of those that are left, in the order of their numbers. */
static int tell_all(struct leaks *l, sn_stuck_fn *tell, void *arg)
{
    void *memory;
    size_t n = 0, bytes = (l->snap.n + 1) * sizeof(sn_stuck);
    if (sni_plat_reserve(&memory, bytes) < 0)
        return -ENOMEM;
    sn_stuck *list = memory;
    for (size_t i = 0; i < l->snap.n; i++)
        if (!l->fates[i].is_live)
            list[n++] = sni_stuck_of(&l->snap, &l->snap.nodes[i]);
    sni_sort(list, n, sizeof(*list), by_id);
    if (n > 0 && tell == NULL)
        fprintf(stderr, "sinew: leak: tasks that nobody can wake any more (%zu):\n", n);
    for (size_t i = 0; i < n; i++)
        (tell != NULL ? tell : sni_print_stuck)(&list[i], tell != NULL ? arg : &l->snap);
    sni_plat_release(memory, bytes);
    return (int)n;
}

int sn_leaks(sn_runtime *rt, sn_stuck_fn *tell, void *arg)
{
    struct sni_sched *sched = sni_runtime_sched(rt);
    if (sched == NULL)
        return -EINVAL;
    SNI_SPILL_REGISTERS();
    struct leaks l = {.rc = 0};
    int rc = look(&l, sched);
    forget();
    if (rc == 0)
        rc = tell_all(&l, tell, arg);
    if (l.fates != NULL)
        sni_plat_release(l.fates, l.bytes);
    sni_snapshot_finish(&l.snap);
    return rc;
}
