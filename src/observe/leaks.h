/* SPDX-License-Identifier: MIT */
/* leaks.h - what sn_leaks knows: who is live (leaks.c), and who of the others waits for whom
 * (knots.c). */
#ifndef SINEW_OBSERVE_LEAKS_H
#define SINEW_OBSERVE_LEAKS_H

#include "observe/graph.h"
#include "observe/search.h"
#include "runtime/inspect.h"

/* Of a task that waits. */
struct sni_fate {
    struct sni_span stack; /* sorted by this in sni_leaks.stacks: of the node's fiber          */
    size_t node;
    bool is_candidate;
    bool is_live;
    bool is_known;   /* a handle that is still good, or a pointer into its record, was found   */
    bool is_pointed; /* a pointer into its stack was, but for one to `link`                    */
    uintptr_t link;  /* sni_place.link of who waits on its stack, or 0                         */

    /* Of knots.c, numbers from 1; 0: none. */
    uint32_t vertex;    /* its own, if it is leaked                     */
    uint32_t on_stack;  /* the anchor that is its stack                 */
    uint32_t in_record; /* that which is its record                     */
};

/* What candidates wait at, by its record. */
struct sni_thing {
    uintptr_t record;
    bool is_known;
    uint32_t anchor; /* of knots.c, from 1; 0: none */
};

/* Something at which leaked tasks wait, and that others of them may have: see knots.c. */
struct sni_anchor {
    uint32_t seen;    /* by whom it was found last     */
    uint32_t others;  /* who have it, but for these:   */
    uint32_t waiters; /* who wait there, and only there */
};

struct sni_knots {
    struct sni_graph graph;  /* tasks first, then anchors                                      */
    struct sni_node **nodes; /* of the tasks, in the order of their numbers                    */
    struct sni_node **told;  /* the same by cycles; those in none last                         */
    uint32_t tasks;
    struct sni_anchor *anchors; /* from 1                                                      */
    uint32_t anchors_n;
    uint32_t *only;       /* the anchor at which a task waits, if it waits at no other         */
    size_t *filled;       /* where the next edge of a vertex goes                              */
    uint32_t looked_at;   /* the task whose memory is searched                                 */
    bool is_counting;     /* the first time                                                    */
    void *memory, *edges; /* two mappings: all of these; graph.to                              */
    size_t bytes, edges_bytes;
};

struct sni_leaks {
    struct sni_snapshot snap;
    struct sni_search search;
    struct sni_fate *fates;  /* one for each node, in the same order                           */
    struct sni_fate *stacks; /* copies of those that have one, by address; `node` leads back   */
    size_t stacks_n;
    struct sni_thing *things;
    size_t things_n;
    size_t bytes; /* of all three, which are one mapping */
    struct sni_knots knots;
    struct sni_span arena;
    bool only_handles; /* pointers are the house's own here */
    unsigned joining;  /* threads that wait for a task      */
    int rc;
};

/* What a word of memory leads to; what it does not is NULL. */
struct sni_lead {
    struct sni_thing *thing;
    struct sni_fate *record; /* of this task */
    struct sni_fate *stack;  /* of this one  */
    bool by_handle;          /* and not by a pointer */
};

struct sni_lead sni_leaks_follow(const struct sni_leaks *l, uintptr_t word);

/* The fate of the task whose record begins at `task`, and of that on whose stack `address` lies; or
 * NULL. And what is at that place, which is tied by a handle. */
struct sni_fate *sni_leaks_fate(const struct sni_leaks *l, uintptr_t task);
struct sni_fate *sni_leaks_stack(const struct sni_leaks *l, uintptr_t address);
struct sni_thing *sni_leaks_thing(const struct sni_leaks *l, const struct sni_place *place);

/* What a task has: what was copied for it, its argument, its stack; word by word to l->search. */
void sni_leaks_look_at(struct sni_leaks *l, const struct sni_task *task);

/* Find out who of those that are left could have woken whom, and number the cycles, from 1, in
 * `mark` of their nodes; 0: in none.
 *
 * Returns  0, -ENOMEM
 * Owns: sni_knots_finish, also after an error. */
int sni_knots_tie(struct sni_leaks *l);
void sni_knots_finish(struct sni_knots *knots);

/* Who has what is at the place of a leaked task, by their indexes in sni_knots.nodes: those who
 * wait there themselves only if there are no others. None of a place that has an owner.
 *
 * Returns  how many */
uint32_t sni_knots_who(const struct sni_leaks *l, const struct sni_place *place,
                       const uint32_t **who);

#endif
