/* SPDX-License-Identifier: MIT */
/* knots.c - who of the leaked tasks waits for whom.
 *
 * Nobody live could wake one of them (leaks.c); so whoever could is one of them, and they wait for
 * each other. That is a graph. A task leads to what it waits at: the task that holds the lock or is
 * joined, or an *anchor*, which is a channel, or the stack or record of a task on which the
 * semaphore, the event and so on lies. An anchor leads to those who *have* it:
 *
 *   - who has a handle of the channel, or a pointer into its record, on its stack or in what was
 *     copied for it;
 *   - who has a pointer into that stack or that record; and whose it is.
 *
 * Who waits at something has it as well, of course. But it needs help and can give none: who waits
 * there, and nowhere else, counts only if nobody else has it. So two receivers lead to the sender,
 * and not to each other; if only receivers are left, each leads to all of them.
 *
 * A *cycle* is a strongly connected component of this graph with two tasks or more; or with one,
 * that waits at nothing but what it has alone. Each of its tasks waits for another one of it. Who
 * waits for a cycle and is in none would go on if that were broken.
 *
 * Anchors are vertices, so that a million who have a channel at which a million wait are two
 * million edges, and not a million times as many. The memory of each task is searched twice, first
 * to count edges and then to note them. Nothing moves meanwhile. What is kept here are numbers, and
 * it is made when memory has been searched: none of it can be taken for a handle.
 *
 * Which of the tasks on one stack (struct sni_inline) a word belongs to cannot be told: all of them
 * have it. And a pointer into a stack may mean something else there. So who is said to have
 * something can perhaps not get at it; but nobody else can.
 *
 * Rejected: an edge for who could cancel it, which is who has its handle (then who joins a task
 * would be in a cycle with it, whatever it waits for); an edge to the last one who acquired a
 * semaphore (it has no owner: anybody who reaches it may release it, and often another one does).
 * */
#include "observe/leaks.h"

#include "plat/memory.h"

#include <sinew/errno.h>

struct component {
    uint32_t tasks;
    uint32_t cycle; /* 0: not numbered yet, or it is none  */
    bool returns;   /* an edge leads from it to itself     */
    bool leaves;    /* one leads elsewhere                 */
};

/* ---- edges ------------------------------------------------------------------------------ */

static uint32_t vertex_of_anchor(const struct sni_knots *k, uint32_t anchor)
{
    return k->tasks + anchor - 1;
}

static void add_edge(struct sni_knots *k, uint32_t from, uint32_t to)
{
    if (k->is_counting)
        k->graph.first[from + 1]++;
    else
        k->graph.to[k->filled[from]++] = to;
}

/* Where it is kept which anchor is at a place; NULL: none can be. */
static uint32_t *anchor_at(const struct sni_leaks *l, const struct sni_place *place)
{
    uintptr_t object = (uintptr_t)place->object;
    if (place->tie == SNI_TIE_HANDLE) {
        struct sni_thing *thing = sni_leaks_thing(l, place);
        return thing != NULL ? &thing->anchor : NULL;
    }
    if (place->tie != SNI_TIE_MEMORY)
        return NULL;
    struct sni_fate *fate = sni_leaks_stack(l, object);
    if (fate != NULL)
        return &fate->on_stack;
    struct sni_record *record = sni_arena_around(object);
    fate = record != NULL ? sni_leaks_fate(l, (uintptr_t)record) : NULL;
    return fate != NULL ? &fate->in_record : NULL;
}

/* The task that is looked at has it. */
static void have(struct sni_knots *k, uint32_t number)
{
    struct sni_anchor *anchor = &k->anchors[number];
    uint32_t seen = k->looked_at + 1 + (k->is_counting ? 0 : k->tasks);
    if (number == 0 || anchor->seen == seen)
        return;
    anchor->seen = seen;
    bool is_waiter = k->only[k->looked_at] == number;
    if (k->is_counting && is_waiter)
        anchor->waiters++;
    else if (k->is_counting)
        anchor->others++;
    else if (!is_waiter || anchor->others == 0)
        add_edge(k, vertex_of_anchor(k, number), k->looked_at);
}

static void found_word(uintptr_t word, void *arg)
{
    struct sni_leaks *l = arg;
    struct sni_lead lead = sni_leaks_follow(l, word);
    if (lead.thing != NULL)
        have(&l->knots, lead.thing->anchor);
    if (lead.record != NULL && !lead.by_handle) /* a handle does not lead to what is in it */
        have(&l->knots, lead.record->in_record);
    if (lead.stack != NULL)
        have(&l->knots, lead.stack->on_stack);
}

static void look_at(struct sni_leaks *l, uint32_t task)
{
    struct sni_knots *k = &l->knots;
    const struct sni_node *node = k->nodes[task];
    k->looked_at = task;
    for (unsigned p = 0; p < node->places; p++) {
        const struct sni_place *place = &l->snap.places[node->first + p];
        const uint32_t *anchor = anchor_at(l, place);
        const struct sni_fate *owner =
            place->tie == SNI_TIE_OWNER ? sni_leaks_fate(l, place->owner) : NULL;
        if (anchor != NULL) {
            add_edge(k, task, vertex_of_anchor(k, *anchor));
            have(k, *anchor);
        }
        if (owner != NULL && owner->vertex != 0)
            add_edge(k, task, owner->vertex - 1);
    }
    const struct sni_fate *fiber = sni_leaks_fate(l, (uintptr_t)node->fiber);
    have(k, l->fates[node - l->snap.nodes].in_record);
    if (fiber != NULL)
        have(k, fiber->on_stack);
    sni_leaks_look_at(l, node->task);
    if (node->fiber != node->task)
        sni_leaks_look_at(l, node->fiber);
}

static int add_edges(struct sni_leaks *l)
{
    struct sni_knots *k = &l->knots;
    size_t *first = k->graph.first;
    l->search.word = found_word;
    k->is_counting = true;
    for (uint32_t t = 0; t < k->tasks; t++)
        look_at(l, t);
    for (uint32_t a = 1; a <= k->anchors_n; a++)
        first[vertex_of_anchor(k, a) + 1] =
            k->anchors[a].others > 0 ? k->anchors[a].others : k->anchors[a].waiters;
    for (uint32_t v = 0; v < k->graph.n; v++) {
        first[v + 1] += first[v];
        k->filled[v] = first[v];
    }
    k->edges_bytes = (first[k->graph.n] + 1) * sizeof(*k->graph.to);
    if (sni_plat_reserve(&k->edges, k->edges_bytes) < 0) {
        k->edges = NULL;
        return -ENOMEM;
    }
    k->graph.to = k->edges;
    k->is_counting = false;
    for (uint32_t t = 0; t < k->tasks; t++)
        look_at(l, t);
    return 0;
}

/* ---- vertices --------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const struct sni_node *x = *(struct sni_node *const *)a, *y = *(struct sni_node *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

static void number_all(struct sni_leaks *l)
{
    struct sni_knots *k = &l->knots;
    for (size_t i = 0; i < l->snap.n; i++)
        if (!l->fates[i].is_live)
            k->nodes[k->tasks++] = &l->snap.nodes[i];
    sni_sort(k->nodes, k->tasks, sizeof(*k->nodes), by_id);
    for (uint32_t t = 0; t < k->tasks; t++) {
        const struct sni_node *node = k->nodes[t];
        l->fates[node - l->snap.nodes].vertex = t + 1;
        for (unsigned p = 0; p < node->places; p++) {
            uint32_t *anchor = anchor_at(l, &l->snap.places[node->first + p]);
            if (anchor != NULL && *anchor == 0)
                *anchor = ++k->anchors_n;
            if (anchor != NULL && node->places == 1)
                k->only[t] = *anchor;
        }
    }
    k->graph.n = k->tasks + k->anchors_n;
}

/* ---- cycles ----------------------------------------------------------------------------- */

static int by_cycle(const void *a, const void *b)
{
    const struct sni_node *x = *(struct sni_node *const *)a, *y = *(struct sni_node *const *)b;
    unsigned p = x->mark - 1, q = y->mark - 1; /* 0, in none, becomes the last */
    return p != q ? (p > q) - (p < q) : by_id(a, b);
}

static bool is_cycle(const struct component *c)
{
    return c->tasks > 1 || (c->tasks == 1 && c->returns && !c->leaves);
}

static void number_cycles(struct sni_knots *k, const uint32_t *of, struct component *components)
{
    const struct sni_graph *graph = &k->graph;
    unsigned cycles = 0;
    for (uint32_t v = 0; v < graph->n; v++) {
        struct component *c = &components[of[v]];
        c->tasks += v < k->tasks;
        for (size_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
            c->returns = c->returns || of[graph->to[e]] == of[v];
            c->leaves = c->leaves || of[graph->to[e]] != of[v];
        }
    }
    for (uint32_t t = 0; t < k->tasks; t++) {
        struct component *c = &components[of[t]];
        if (c->cycle == 0 && is_cycle(c))
            c->cycle = ++cycles;
        k->nodes[t]->mark = c->cycle;
        k->told[t] = k->nodes[t];
    }
    sni_sort(k->told, k->tasks, sizeof(*k->told), by_cycle);
}

/* ---- the whole -------------------------------------------------------------------------- */

static void *take(char **at, size_t n, size_t bytes)
{
    void *array = *at;
    *at += (n * bytes + 7) & ~(size_t)7;
    return array;
}

int sni_knots_tie(struct sni_leaks *l)
{
    struct sni_knots *k = &l->knots;
    size_t tasks = 0, places = 0;
    for (size_t i = 0; i < l->snap.n; i++)
        if (!l->fates[i].is_live) {
            tasks++;
            places += l->snap.nodes[i].places;
        }
    size_t n = tasks + places; /* vertices, at most */
    if (tasks == 0)
        return 0;
    if (n >= UINT32_MAX / 2)
        return -ENOMEM;
    k->bytes = 2 * tasks * sizeof(*k->nodes) + (tasks + 1 + n) * sizeof(*k->only) +
               (places + 1) * sizeof(*k->anchors) + (2 * n + 1) * sizeof(size_t) +
               n * (sizeof(struct sni_graph_visit) + sizeof(struct component)) + 64;
    if (sni_plat_reserve(&k->memory, k->bytes) < 0) {
        k->memory = NULL;
        return -ENOMEM;
    }
    char *at = k->memory;
    k->nodes = take(&at, tasks, sizeof(*k->nodes));
    k->told = take(&at, tasks, sizeof(*k->told));
    k->only = take(&at, tasks, sizeof(*k->only));
    k->anchors = take(&at, places + 1, sizeof(*k->anchors));
    k->graph.first = take(&at, n + 1, sizeof(*k->graph.first));
    k->filled = take(&at, n, sizeof(*k->filled));
    struct sni_graph_visit *visits = take(&at, n, sizeof(*visits));
    struct component *components = take(&at, n, sizeof(*components));
    uint32_t *of = take(&at, n, sizeof(*of));
    number_all(l);
    int rc = add_edges(l);
    if (rc < 0)
        return rc;
    (void)sni_graph_components(&k->graph, visits, of);
    number_cycles(k, of, components);
    return 0;
}

void sni_knots_finish(struct sni_knots *k)
{
    if (k->memory != NULL)
        sni_plat_release(k->memory, k->bytes);
    if (k->edges != NULL)
        sni_plat_release(k->edges, k->edges_bytes);
    *k = (struct sni_knots){.tasks = 0};
}

uint32_t sni_knots_who(const struct sni_leaks *l, const struct sni_place *place,
                       const uint32_t **who)
{
    const struct sni_knots *k = &l->knots;
    const uint32_t *anchor = anchor_at(l, place);
    if (anchor == NULL || *anchor == 0)
        return 0;
    uint32_t v = vertex_of_anchor(k, *anchor);
    *who = &k->graph.to[k->graph.first[v]];
    return (uint32_t)(k->graph.first[v + 1] - k->graph.first[v]);
}
