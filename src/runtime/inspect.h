/* SPDX-License-Identifier: MIT */
/* inspect.h - what the tasks of a runtime wait for, at this moment.
 *
 * Words
 *   node     a task that waits, as it was found
 *   place    what it waits at (wait/place.h)
 *   outer    a task whose joiner runs it on its own stack (struct sni_inline): both are nodes, with
 *            one fiber
 *
 * See inspect.c for how tasks are looked at while the others run. */
#ifndef SINEW_RUNTIME_INSPECT_H
#define SINEW_RUNTIME_INSPECT_H

#include "sched/sched.h"
#include "wait/place.h"

struct sni_node {
    struct sni_task *task;
    struct sni_task *fiber; /* whose stack it waits on; a coroutine: itself                    */
    uint64_t id;            /* of the task: a record may be another's later                    */
    const char *name;
    const char *at;
    struct sni_place place; /* the first of those that can end the wait                        */
    unsigned places;        /* how many there are; 0: not known                                */
    size_t first;           /* where all of them begin, in sni_snapshot.places                 */
    bool is_timed;          /* a time ends the wait, too                                       */
    bool is_world;          /* or a descriptor                                                 */
    struct sni_waiter *joiner;
    unsigned mark; /* whose use it is */
};

struct sni_snapshot {
    struct sni_sched *sched;
    struct sni_node *nodes; /* sorted by task */
    size_t n, room;
    struct sni_place *places; /* of all nodes */
    size_t places_n, places_room;
    uintptr_t *alarms; /* where alarms are that are set, sorted */
    size_t alarms_n, alarms_room;
    bool failed; /* no memory */
};

/* Look at all tasks of `sched` that wait. `sched->inspection` is held by the caller.
 *
 * Returns  0, -ENOMEM
 * Owns: sni_snapshot_finish, also after an error. */
int sni_snapshot_take(struct sni_snapshot *snap, struct sni_sched *sched);
void sni_snapshot_finish(struct sni_snapshot *snap);

/* As qsort, but in place. */
void sni_sort(void *array, size_t n, size_t bytes, int (*compare)(const void *a, const void *b));

/* The node of a task, or NULL: it does not wait, or is gone. */
struct sni_node *sni_snapshot_find(const struct sni_snapshot *snap, uintptr_t task);

/* The task that `node` waits for, if it waits for one and no other: a node, or NULL. */
struct sni_node *sni_node_next(const struct sni_snapshot *snap, const struct sni_node *node);

/* Number the cycles of tasks that wait for each other, from 1, in `mark` of their nodes; 0: in
 * none. With `is_still`, nothing moves; else each is looked at again, in one piece.
 *
 * Returns  how many there are */
unsigned sni_snapshot_cycles(struct sni_snapshot *snap, bool is_still);

#endif
