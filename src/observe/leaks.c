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
 *     has a pointer into that stack, but for one to the link by which its owner is queued: that is
 *     the queue's, and leads to nothing else;
 *   - it waits at something that lies anywhere else: there may be ways to get at it that no word of
 *     memory shows.
 *
 * "Somebody has" means that the word is found in live memory. Then its stack and its record become
 * live, and so on, until nothing changes. The candidates that are left wait for ever: what could
 * wake them is known to them alone. That is what a tracing collector would say, but for the heap:
 * blocks have no known bounds here, so all of it counts as live. Who of them waits for whom is then
 * found out by knots.c.
 *
 * It must not move meanwhile. All other workers stand still (pause.c), so that what their tasks
 * know is on their stacks; threads that wait for the runtime have put their registers on theirs
 * (SNI_SPILL_REGISTERS). What other threads have in registers cannot be seen: then there is no
 * answer. So a task is never listed that could be woken; but a stale word may keep one from being
 * listed. Of the thread that asks, or on which the task runs that does, it is known where it
 * stands, and old words below that are not looked at. */
#include "observe/leaks.h"

#include "plat/clock.h"
#include "plat/memory.h"
#include "plat/self.h"
#include "runtime/deadlock.h"
#include "runtime/runtime.h"

#include <sinew/errno.h>
#include <stdio.h>
#include <string.h>

enum {
    PATIENCE_NS = 2000000000, /* with a thread that is on its way to a join */
    FORGET_BYTES = 6 << 10,
    HAVERS_TOLD = 4, /* by name; more are counted only */
};

#define ADDRESS UINT64_C(0xFFFFFFFFFFFF) /* of a handle */

/* ---- what is found ------------------------------------------------------------------------------
 * */

static struct sni_thing *find_thing(const struct sni_leaks *l, uintptr_t record)
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

struct sni_fate *sni_leaks_stack(const struct sni_leaks *l, uintptr_t address)
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

struct sni_fate *sni_leaks_fate(const struct sni_leaks *l, uintptr_t task)
{
    const struct sni_node *node = sni_snapshot_find(&l->snap, task);
    return node != NULL ? &l->fates[node - l->snap.nodes] : NULL;
}

struct sni_thing *sni_leaks_thing(const struct sni_leaks *l, const struct sni_place *place)
{
    struct sni_record *record = sni_arena_around((uintptr_t)place->object & ADDRESS);
    return record != NULL ? find_thing(l, (uintptr_t)record) : NULL;
}

struct sni_lead sni_leaks_follow(const struct sni_leaks *l, uintptr_t word)
{
    struct sni_lead lead = {.thing = NULL};
    uintptr_t address = word & ADDRESS;
    if (address < l->arena.from || address >= l->arena.to) {
        struct sni_fate *fate = l->only_handles ? NULL : sni_leaks_stack(l, word);
        lead.stack = fate != NULL && fate->link != word ? fate : NULL;
        return lead;
    }
    lead.by_handle = address != word;
    struct sni_record *record = sni_arena_around(address);
    if (record != NULL && (lead.by_handle ? sni_record_handle(record) == word : !l->only_handles)) {
        lead.thing = find_thing(l, (uintptr_t)record);
        lead.record = sni_leaks_fate(l, (uintptr_t)record);
    }
    return lead;
}

static void found_word(uintptr_t word, void *arg)
{
    struct sni_leaks *l = arg;
    struct sni_lead lead = sni_leaks_follow(l, word);
    if (lead.thing != NULL)
        lead.thing->is_known = true;
    if (lead.record != NULL &&
        (!lead.by_handle || sni_task_has_handle(l->snap.nodes[lead.record->node].task)))
        lead.record->is_known = true;
    if (lead.stack != NULL)
        lead.stack->is_pointed = true;
}

/* ---- where it is looked for ---------------------------------------------------------------------
 * */

static uintptr_t end_of(const struct sni_record *record)
{
    size_t class = record->class % SNI_RECORD_CLASSES;
    return (uintptr_t)record + (class + 1) * SNI_RECORD_STEP;
}

void sni_leaks_look_at(struct sni_leaks *l, const struct sni_task *task)
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
    struct sni_leaks *l = arg;
    struct sni_task *task = (struct sni_task *)(void *)record;
    if (!sni_task_find(task))
        return;
    const struct sni_fate *fate = sni_leaks_fate(l, (uintptr_t)task);
    const bool is_ours = sni_task_home(task) == &l->snap.sched->home;
    if (!sni_task_is_complete(task) && (fate == NULL || !fate->is_candidate)) {
        if (is_ours)
            sni_leaks_look_at(l, task);
        else
            sni_search_span(&l->search, (uintptr_t)(task + 1), end_of(record));
    }
    sni_task_unref(sni_exec_current(), task);
}

static void look_at_other(struct sni_record *record, void *arg)
{
    struct sni_leaks *l = arg;
    /* acquire: pairs with the beginning of its life */
    if (sni_atomic_load(&record->generation, acquire) % 2 == 1)
        sni_search_span(&l->search, (uintptr_t)(record + 1), end_of(record));
}

static void skip(uintptr_t from, uintptr_t to, void *arg)
{
    struct sni_leaks *l = arg;
    if (l->rc == 0)
        l->rc = sni_search_skip(&l->search, from, to);
}

/* What lies below where a thread stands, on its own stack: frames of this search, and old words.
 * The rest of it is memory like other memory; a task's stack is looked at by itself. */
static void skip_below(struct sni_leaks *l, const struct sni_thread *thread, uintptr_t sp)
{
    uintptr_t low;
    int rc = sni_plat_thread_stack(thread, &low);
    if (rc == 0)
        skip(low, sp, l);
    else
        l->rc = rc;
}

static void skip_below_threads(struct sni_leaks *l)
{
    const struct sni_sched *sched = l->snap.sched;
    const struct sni_worker *me = sni_worker_current();
    const bool in_fiber = me != NULL && me->exec.exec.fiber != NULL;
    skip_below(l, NULL, in_fiber ? (uintptr_t)me->loop.sp : l->search.from_sp);
    for (unsigned i = 0; i < sched->started; i++) {
        const struct sni_worker *w = &sched->workers[i];
        if (w != me) /* relaxed: see sni_world_sleep */
            skip_below(l, &w->thread, sni_atomic_load(&w->idle_sp, relaxed));
    }
}

/* Whether a joiner is a thread. Its frame is not read directly: it is not known yet that no other
 * thread runs, and one whose deadline has passed may be on its way out of it. */
static bool is_thread(const struct sni_leaks *l, const struct sni_waiter *joiner)
{
    struct sni_waiter copy;
    return joiner != NULL &&
           sni_plat_self_read(l->search.self, (uintptr_t)joiner, &copy, sizeof(copy)) ==
               sizeof(copy) &&
           copy.ops == NULL;
}

/* A stack that is mapped by itself; and who counts as a thread that waits. */
static void note_task(struct sni_record *record, void *arg)
{
    struct sni_leaks *l = arg;
    struct sni_task *task = (struct sni_task *)(void *)record;
    if (!sni_task_find(task))
        return;
    if (sni_task_home(task) == &l->snap.sched->home) {
        const struct sni_stack *stack = task->kind == SNI_TASK_FIBER ? task->stack : NULL;
        if (stack != NULL && stack->slab == NULL)
            skip((uintptr_t)stack->lo, (uintptr_t)stack->hi, l);
        l->joining += is_thread(l, sni_task_joiner(task));
    }
    sni_task_unref(sni_exec_current(), task);
}

/* A lock names its holder by its address, which wakes nobody. */
static void skip_locks(struct sni_leaks *l)
{
    for (size_t i = 0; i < l->snap.places_n; i++) {
        const struct sni_place *place = &l->snap.places[i];
        uintptr_t word = (uintptr_t)place->object;
        if (place->tie == SNI_TIE_OWNER && strcmp(place->what, "join") != 0)
            skip(word, word + sizeof(uint64_t), l);
    }
}

/* Everything of our own that would be found. */
static void skip_own(struct sni_leaks *l)
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

static bool is_place_live(const struct sni_leaks *l, const struct sni_place *place)
{
    uintptr_t object = (uintptr_t)place->object;
    const struct sni_thing *thing;
    const struct sni_fate *fate;
    struct sni_record *record;
    switch (place->tie) {
    case SNI_TIE_HANDLE:
        thing = sni_leaks_thing(l, place);
        return thing == NULL || thing->is_known;
    case SNI_TIE_OWNER:
        if (place->owner < l->arena.from || place->owner >= l->arena.to)
            return true; /* a thread, or some coroutine */
        fate = sni_leaks_fate(l, place->owner);
        if (fate != NULL)
            return fate->is_live;
        return sni_arena_at(place->owner) != NULL; /* else it has ended, and holds the lock */
    case SNI_TIE_MEMORY:
        fate = sni_leaks_stack(l, object);
        if (fate != NULL)
            return fate->is_live || fate->is_pointed;
        record = sni_arena_around(object);
        fate = record != NULL ? sni_leaks_fate(l, (uintptr_t)record) : NULL;
        return fate == NULL || fate->is_live || fate->is_known;
    default:
        return true;
    }
}

static bool is_live(const struct sni_leaks *l, size_t i)
{
    const struct sni_node *node = &l->snap.nodes[i];
    bool live = l->fates[i].is_known;
    for (unsigned p = 0; p < node->places && !live; p++)
        live = is_place_live(l, &l->snap.places[node->first + p]);
    return live;
}

static void spread(struct sni_leaks *l)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < l->snap.n; i++) {
            struct sni_fate *fate = &l->fates[i];
            if (fate->is_live || !is_live(l, i))
                continue;
            fate->is_live = true;
            more = true;
            sni_leaks_look_at(l, l->snap.nodes[i].task);
            if (l->snap.nodes[i].fiber != l->snap.nodes[i].task)
                sni_leaks_look_at(l, l->snap.nodes[i].fiber);
        }
    }
}

/* ---- the whole
 * ------------------------------------------------------------------------------------ */

static int by_stack(const void *a, const void *b)
{
    const struct sni_fate *x = a, *y = b;
    return (x->stack.from > y->stack.from) - (x->stack.from < y->stack.from);
}

static int by_record(const void *a, const void *b)
{
    const struct sni_thing *x = a, *y = b;
    return (x->record > y->record) - (x->record < y->record);
}

static bool may_be_candidate(const struct sni_snapshot *snap, const struct sni_node *node)
{
    bool may = node->places > 0 && !node->is_timed && !node->is_world;
    for (unsigned p = 0; p < node->places; p++)
        may = may && snap->places[node->first + p].tie != SNI_TIE_UNKNOWN;
    return may;
}

static void note_things(struct sni_leaks *l, const struct sni_node *node)
{
    struct sni_fate *fiber = sni_leaks_fate(l, (uintptr_t)node->fiber);
    for (unsigned p = 0; p < node->places; p++) {
        const struct sni_place *place = &l->snap.places[node->first + p];
        if (fiber != NULL && place->link != NULL)
            fiber->link = (uintptr_t)place->link;
        if (place->tie == SNI_TIE_HANDLE)
            l->things[l->things_n++].record =
                (uintptr_t)sni_arena_around((uintptr_t)place->object & ADDRESS);
    }
}

static void sort_out(struct sni_leaks *l)
{
    for (size_t i = 0; i < l->snap.n; i++) {
        const struct sni_node *node = &l->snap.nodes[i];
        struct sni_fate *fate = &l->fates[i];
        fate->node = i;
        fate->is_candidate = may_be_candidate(&l->snap, node);
        fate->is_live = !fate->is_candidate;
        if (fate->is_candidate)
            note_things(l, node);
        if (node->task != node->fiber || node->task->kind != SNI_TASK_FIBER)
            continue;
        const struct sni_task *fiber = node->fiber; /* nothing lies below where it was left */
        fate->stack = (struct sni_span){(uintptr_t)fiber->context.sp, (uintptr_t)fiber->stack->hi};
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

/* Do we know where all threads are?
 *
 * Returns  0, -EBUSY, or -EAGAIN: no, but one that has called sn_runtime_block_on has yet to come
 *          to its join, or to come back from it */
static int know_threads(const struct sni_leaks *l)
{
    const struct sni_sched *sched = l->snap.sched;
    unsigned known = 1, callers = 0;
    if (!sched->config.single_threaded) {
        /* relaxed: those that count have stood still for long */
        callers = sni_atomic_load(&sched->callers, relaxed);
        known = sched->workers_n + (l->joining < callers ? l->joining : callers) +
                sni_atomic_load(&sched->forever, relaxed) + (sni_exec_current() == NULL);
    }
    if (sni_plat_threads_beside(known) == 0)
        return 0;
    return l->joining < callers ? -EAGAIN : -EBUSY;
}

/* Nothing moves. */
static int judge(struct sni_leaks *l)
{
    size_t n = l->snap.n;
    void *memory;
    l->bytes =
        2 * (n + 1) * sizeof(struct sni_fate) + (l->snap.places_n + 1) * sizeof(struct sni_thing);
    if (sni_plat_reserve(&memory, l->bytes) < 0)
        return -ENOMEM;
    l->fates = memory;
    l->stacks = l->fates + n + 1;
    l->things = (struct sni_thing *)(void *)(l->stacks + n + 1);
    sort_out(l);
    skip_own(l);
    skip_below_threads(l);
    skip_locks(l);
    if (l->rc == 0)
        l->rc = know_threads(l);
    if (l->rc == 0)
        l->rc = sni_search_all(&l->search);
    if (l->rc < 0)
        return l->rc;
    sni_arena_each(l->snap.sched->arena, look_at_root, l);
    l->only_handles = true;
    sni_search_span(&l->search, (uintptr_t)&l->snap.sched->config,
                    (uintptr_t)(&l->snap.sched->config + 1));
    sni_arena_each_other(l->snap.sched->arena, look_at_other, l);
    l->only_handles = false;
    spread(l);
    return sni_knots_tie(l);
}

/* Not inline: what its callers have in registers is in their frames, above this one. */
static SNI_NEVER_INLINE int look(struct sni_leaks *l, struct sni_sched *sched)
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

/* Wipe what lies below on the stack. A search leaves there what it looked for, where the next one
 * would find it; and its own frames would have holes with old words in them. */
static SNI_NEVER_INLINE void forget(void)
{
    volatile char below[FORGET_BYTES];
    for (size_t i = 0; i < sizeof(below); i++)
        below[i] = 0;
}

/* Who could have ended the wait: one task, or so many. Of a select they are counted for each case,
 * unless it is one and the same. */
static void note_owners(const struct sni_leaks *l, const struct sni_node *node, sn_stuck *stuck)
{
    uint64_t the_one = 0;
    bool is_one = true;
    unsigned n = 0;
    for (unsigned p = 0; p < node->places; p++) {
        const uint32_t *who = NULL;
        uint32_t have = sni_knots_who(l, &l->snap.places[node->first + p], &who);
        uint64_t id = have == 1 ? l->knots.nodes[who[0]]->id : 0;
        is_one = is_one && have == 1 && (p == 0 || id == the_one);
        the_one = id;
        n += have;
    }
    if (n == 0)
        return; /* a lock, a join: that is known */
    stuck->owner = is_one ? the_one : 0;
    stuck->owners = is_one ? 1 : n;
}

struct telling {
    const struct sni_leaks *l;
    const struct sni_node *node;
};

/* Behind "waits to receive from channel 0x...": who has it. */
static void print_who(const struct sni_place *place, void *arg)
{
    const struct telling *telling = arg;
    const struct sni_leaks *l = telling->l;
    const uint32_t *who = NULL;
    uint32_t n = sni_knots_who(l, place, &who);
    if (n == 1 && l->knots.nodes[who[0]] == telling->node) {
        fprintf(stderr, ", which it alone has");
        return;
    }
    for (uint32_t i = 0; i < n && i < HAVERS_TOLD; i++) {
        fprintf(stderr, i == 0 ? ", which " : i + 1 == n ? " and " : ", ");
        sni_print_task(l->knots.nodes[who[i]]);
    }
    if (n > HAVERS_TOLD)
        fprintf(stderr, " and %u more", n - HAVERS_TOLD);
    if (n > 0)
        fprintf(stderr, n == 1 ? " has" : " have");
}

static void print_one(const struct sni_leaks *l, const struct sni_node *node,
                      const struct sni_node *before)
{
    if (node->mark != 0 && (before == NULL || before->mark != node->mark))
        fprintf(stderr, "sinew:  cycle %u:\n", node->mark);
    else if (node->mark == 0 && (before == NULL || before->mark != 0))
        fprintf(stderr, "sinew:  in no cycle:\n");
    struct telling telling = {l, node};
    sni_print_node(&l->snap, node, print_who, &telling);
}

/* Tell of those that are left: by cycles, and in these in the order of their numbers. */
static void tell_all(const struct sni_leaks *l, sn_stuck_fn *tell, void *arg)
{
    const struct sni_knots *k = &l->knots;
    if (k->tasks > 0 && tell == NULL)
        fprintf(stderr, "sinew: leak: tasks that nobody can wake any more (%u):\n", k->tasks);
    for (uint32_t t = 0; t < k->tasks; t++) {
        if (tell == NULL) {
            print_one(l, k->told[t], t > 0 ? k->told[t - 1] : NULL);
            continue;
        }
        sn_stuck stuck = sni_stuck_of(&l->snap, k->told[t]);
        note_owners(l, k->told[t], &stuck);
        tell(&stuck, arg);
    }
}

/* Its frame, and those below it, are where nothing is left of what others had there before. */
static SNI_NEVER_INLINE int look_and_tell(struct sni_sched *sched, sn_stuck_fn *tell, void *arg)
{
    struct sni_leaks l = {.rc = 0};
    int rc = look(&l, sched);
    forget();
    if (rc == 0) {
        tell_all(&l, tell, arg);
        rc = (int)l.knots.tasks;
    }
    sni_knots_finish(&l.knots);
    if (l.fates != NULL)
        sni_plat_release(l.fates, l.bytes);
    sni_snapshot_finish(&l.snap);
    return rc;
}

int sn_leaks(sn_runtime *rt, sn_stuck_fn *tell, void *arg)
{
    struct sni_sched *sched = sni_runtime_sched(rt);
    if (sched == NULL)
        return -EINVAL;
    SNI_SPILL_REGISTERS();
    const int64_t until_ns = sni_plat_now_ns() + PATIENCE_NS;
    int rc; /* no tail call of what follows: our frame has the registers */
    for (unsigned round = 0;; round++) {
        forget();
        rc = look_and_tell(sched, tell, arg);
        if (rc != -EAGAIN || sni_plat_now_ns() >= until_ns)
            break;
        sni_plat_back_off(round);
    }
    forget();
    return rc == -EAGAIN ? -EBUSY : rc;
}
