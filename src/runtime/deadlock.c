/* SPDX-License-Identifier: MIT */
/* deadlock.c - who waits for whom, in words; and the end of a run in which all are asleep.
 *
 * That all workers sleep, with no task queued, no alarm set and no operation pending, the scheduler
 * knows (world.c). That nobody outside will wake a task is a matter of counting threads: those of
 * the process against our workers and those who wait for us. A thread counts as waiting for us when
 * it joins a task that has not ended, or waits without a deadline for the end of all. It cannot do
 * anything else, so it wakes nobody. And signal handlers might, so there must be none.
 *
 * These are looked at one after the other, so a thread may have woken a task that was looked at,
 * and wait for us when it is counted. What it did before, it has queued: if nobody else is there,
 * still no task is queued and none has run since, then it is so.
 *
 * Then nothing moves any more, and what follows needs no care for races: it is done by the last
 * worker, on its way to sleep, and if two fall asleep at once, by the first to take the lock. While
 * it is not so, the question is put again for some time: who has just spawned a task may be on its
 * way to the join.
 *
 * To end the run is to end the joins of those threads with -EDEADLK, as a cancellation would, and
 * to let those return who wait for the end of all. */
#include "runtime/deadlock.h"

#include "plat/thread.h"

#include <sinew/errno.h>
#include <stdio.h>
#include <string.h>

enum {
    TASKS_TOLD = 100, /* of those that are asleep; more are counted only */
    PLACES_TOLD = 8,  /* of one select                                   */
};

/* ---- words ----------------------------------------------------------------------------------- */

sn_stuck sni_stuck_of(const struct sni_snapshot *snap, const struct sni_node *node)
{
    sn_stuck stuck = {.id = node->id, .name = node->name, .at = node->at, .cycle = node->mark};
    if (node->places > 1) {
        stuck.waits = "select";
    } else if (node->places == 1) {
        stuck.waits = node->place.what;
        stuck.object = strcmp(stuck.waits, "join") != 0 ? node->place.object : NULL;
        const struct sni_node *owner = sni_snapshot_find(snap, node->place.owner);
        stuck.owner = owner != NULL ? owner->id : 0;
        stuck.owners = owner != NULL;
    }
    return stuck;
}

void sni_print_task(const struct sni_node *node)
{
    if (node->name != NULL)
        fprintf(stderr, "task %llu \"%s\"", (unsigned long long)node->id, node->name);
    else
        fprintf(stderr, "task %llu", (unsigned long long)node->id);
}

static void print_owner(const struct sni_snapshot *snap, const struct sni_place *place)
{
    const struct sni_node *owner = sni_snapshot_find(snap, place->owner);
    if (owner != NULL)
        sni_print_task(owner);
    else if (place->owner == SNI_SELF_CORO)
        fprintf(stderr, "a coroutine");
    else if (sni_arena_at(place->owner) != NULL)
        fprintf(stderr, "a task that runs");
    else
        fprintf(stderr, "a thread, or a task that has ended");
}

static void print_place(const struct sni_snapshot *snap, const struct sni_place *place)
{
    if (strcmp(place->what, "join") == 0) {
        fprintf(stderr, "joins ");
        print_owner(snap, place);
        return;
    }
    bool sends = strcmp(place->what, "send") == 0;
    if (sends || strcmp(place->what, "recv") == 0)
        fprintf(stderr, "waits to %s channel %p", sends ? "send to" : "receive from",
                place->object);
    else
        fprintf(stderr, "waits at %s %p", place->what, place->object);
    if (place->owner != 0) {
        fprintf(stderr, ", held by ");
        print_owner(snap, place);
    }
}

void sni_print_node(const struct sni_snapshot *snap, const struct sni_node *node,
                    sni_place_fn *more, void *arg)
{
    fprintf(stderr, "sinew:   task %llu \"%s\", spawned at %s, ", (unsigned long long)node->id,
            node->name != NULL ? node->name : "", node->at);
    if (node->places == 0)
        fprintf(stderr, "waits for something that is not known");
    if (node->places > 1)
        fprintf(stderr, "selects: ");
    for (unsigned i = 0; i < node->places && i < PLACES_TOLD; i++) {
        if (i > 0)
            fprintf(stderr, "; or ");
        print_place(snap, &snap->places[node->first + i]);
        if (more != NULL)
            more(&snap->places[node->first + i], arg);
    }
    if (node->places > PLACES_TOLD)
        fprintf(stderr, "; or %u more", node->places - PLACES_TOLD);
    fprintf(stderr, "\n");
}

/* One of the tasks of a cycle: the one that was spawned first. */
static struct sni_node *first_of(const struct sni_snapshot *snap, unsigned cycle)
{
    struct sni_node *first = NULL;
    for (size_t i = 0; i < snap->n; i++)
        if (snap->nodes[i].mark == cycle && (first == NULL || snap->nodes[i].id < first->id))
            first = &snap->nodes[i];
    return first;
}

void sni_each_in_cycles(struct sni_snapshot *snap, unsigned cycles, sn_stuck_fn *tell, void *arg)
{
    for (unsigned cycle = 1; cycle <= cycles; cycle++) {
        struct sni_node *first = first_of(snap, cycle);
        struct sni_node *node = first;
        do {
            sn_stuck stuck = sni_stuck_of(snap, node);
            tell(&stuck, arg);
            node = sni_node_next(snap, node);
        } while (node != first);
    }
}

void sni_print_cycles(struct sni_snapshot *snap, unsigned cycles)
{
    for (unsigned cycle = 1; cycle <= cycles; cycle++) {
        struct sni_node *first = first_of(snap, cycle);
        struct sni_node *node = first;
        fprintf(stderr, "sinew: deadlock: tasks that wait for each other:\n");
        do {
            sni_print_node(snap, node, NULL, NULL);
            node = sni_node_next(snap, node);
        } while (node != first);
    }
}

/* ---- all asleep ------------------------------------------------------------------------------ */

/* Is there a thread that could wake a task? `waiting` are known not to. */
static bool is_alone(const struct sni_sched *sched, unsigned waiting)
{
    unsigned ours = sched->config.single_threaded ? 1 : sched->workers_n;
    /* seq_cst: after the workers fell asleep; see ask_again in sched.c */
    unsigned forever = sni_atomic_load(&sched->forever, seq_cst);
    return sni_plat_threads_beside(ours + forever + waiting) == 0;
}

static bool is_joined_by_thread(const struct sni_node *node)
{
    return node->joiner != NULL && node->joiner->ops == NULL;
}

/* Whether it is so; if it is, `snap` has all tasks. `turns` is what sni_sched_turns was before. */
static bool is_hopeless(struct sni_sched *sched, struct sni_worker *w, uint64_t turns,
                        struct sni_snapshot *snap)
{
    /* relaxed: as many threads at most wait for tasks; what is so is counted below */
    if (!is_alone(sched, sni_atomic_load(&sched->callers, relaxed)))
        return false;
    if (sni_snapshot_take(snap, sched) < 0 || snap->n != sni_sched_alive(sched))
        return false;
    unsigned joining = 0;
    for (size_t i = 0; i < snap->n; i++)
        joining += is_joined_by_thread(&snap->nodes[i]);
    return is_alone(sched, joining) && sni_plat_catches_signals() == 0 && sni_world_is_quiet(w) &&
           sni_sched_turns(sched) == turns;
}

static void print_all(struct sni_snapshot *snap)
{
    fprintf(stderr,
            "sinew: deadlock: all tasks are asleep (%zu), and there is no deadline, descriptor or "
            "thread that could wake one:\n",
            snap->n);
    uint64_t last = 0;
    for (size_t told = 0; told < snap->n && told < TASKS_TOLD; told++) {
        const struct sni_node *next = NULL; /* by number, as they were spawned */
        for (size_t i = 0; i < snap->n; i++)
            if (snap->nodes[i].id > last && (next == NULL || snap->nodes[i].id < next->id))
                next = &snap->nodes[i];
        if (next == NULL)
            break;
        sni_print_node(snap, next, NULL, NULL);
        last = next->id;
    }
    if (snap->n > TASKS_TOLD)
        fprintf(stderr, "sinew:   and %zu more\n", snap->n - TASKS_TOLD);
    sni_print_cycles(snap, sni_snapshot_cycles(snap, true));
}

/* Let the threads go that wait for this runtime. */
static void end_waits(struct sni_snapshot *snap, struct sni_worker *w)
{
    struct sni_sched *sched = snap->sched;
    if (sched->config.single_threaded)
        sni_atomic_fetch_or(&w->detour, SNI_DETOUR_RETURN, relaxed); /* relaxed: our own */
    sni_sched_set_stuck(sched);
    for (size_t i = 0; i < snap->n; i++)
        if (is_joined_by_thread(&snap->nodes[i]))
            sni_wait_interrupt(snap->nodes[i].joiner, -EDEADLK);
}

static enum sni_verdict judge(struct sni_sched *sched, struct sni_worker *w, bool ends)
{
    struct sni_snapshot snap = {.sched = sched};
    if (!sni_mutex_trylock(&sched->inspection))
        return SNI_ASK_LATER;
    uint64_t turns = sni_sched_turns(sched);
    /* relaxed, both: under the lock */
    bool is_new = sni_atomic_load(&sched->told_at, relaxed) != turns;
    bool asked = is_new || ends;
    bool hopeless = asked && is_hopeless(sched, w, turns, &snap);
    if (hopeless && is_new)
        print_all(&snap);
    if (hopeless)
        sni_atomic_store(&sched->told_at, turns, relaxed); /* relaxed: as above */
    if (hopeless && ends)
        end_waits(&snap, w);
    sni_snapshot_finish(&snap);
    sni_mutex_unlock(&sched->inspection);
    if (hopeless && ends && sched->config.single_threaded)
        return SNI_LOOK_AGAIN;
    return asked && !hopeless ? SNI_ASK_LATER : SNI_SLEEP_ON;
}

enum sni_verdict sni_report_asleep(struct sni_sched *sched, struct sni_worker *w)
{
    return judge(sched, w, false);
}

enum sni_verdict sni_end_asleep(struct sni_sched *sched, struct sni_worker *w)
{
    return judge(sched, w, true);
}
