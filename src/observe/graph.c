/* SPDX-License-Identifier: MIT */
/* graph.c - strongly connected components, after Tarjan.
 *
 * A walk goes into the depth and numbers vertices as it finds them. `low` of a vertex is the least
 * number that it has been seen to lead back to, among those that are in no component yet. These lie
 * on a stack, in the order of their numbers. A vertex that leads back to none before itself when
 * all its edges were followed is the first of a component: that is all of the stack from it on.
 *
 * Each edge is followed once. There may be millions of vertices in a row, so the way back is kept
 * in the vertices (`parent`, `next`), and not on the stack of a thread.
 *
 * Rejected: trimming vertices without a way in or out until none is left (it finds where cycles
 * are, but does not tell two that are connected from one). */
#include "observe/graph.h"

#define NONE UINT32_MAX

struct walk {
    const struct sni_graph *graph;
    struct sni_graph_visit *visits;
    uint32_t *of;
    uint32_t found;      /* vertices  */
    uint32_t stacked;    /* of these  */
    uint32_t components; /* completed */
};

static void enter(struct walk *walk, uint32_t v, uint32_t parent)
{
    struct sni_graph_visit *visit = &walk->visits[v];
    visit->index = visit->low = ++walk->found;
    visit->next = walk->graph->first[v];
    visit->parent = parent;
    walk->visits[walk->stacked++].stack = v;
}

/* All edges of v were followed. Returns where to go on. */
static uint32_t leave(struct walk *walk, uint32_t v)
{
    const struct sni_graph_visit *visit = &walk->visits[v];
    if (visit->low == visit->index) {
        uint32_t member;
        do {
            member = walk->visits[--walk->stacked].stack;
            walk->of[member] = walk->components;
        } while (member != v);
        walk->components++;
    }
    if (visit->parent != NONE && walk->visits[visit->parent].low > visit->low)
        walk->visits[visit->parent].low = visit->low;
    return visit->parent;
}

static void walk_from(struct walk *walk, uint32_t start)
{
    uint32_t v = start;
    enter(walk, v, NONE);
    while (v != NONE) {
        struct sni_graph_visit *visit = &walk->visits[v];
        if (visit->next == walk->graph->first[v + 1]) {
            v = leave(walk, v);
            continue;
        }
        uint32_t to = walk->graph->to[visit->next++];
        if (walk->visits[to].index == 0) {
            enter(walk, to, v);
            v = to;
        } else if (walk->of[to] == NONE && visit->low > walk->visits[to].index) {
            visit->low = walk->visits[to].index;
        }
    }
}

uint32_t sni_graph_components(const struct sni_graph *graph, struct sni_graph_visit *visits,
                              uint32_t *of)
{
    struct walk walk = {.graph = graph, .visits = visits, .of = of};
    for (uint32_t v = 0; v < graph->n; v++)
        of[v] = NONE;
    for (uint32_t v = 0; v < graph->n; v++)
        if (visits[v].index == 0)
            walk_from(&walk, v);
    return walk.components;
}
