/* SPDX-License-Identifier: MIT */
/* graph.h - which vertices of a graph lead to each other. */
#ifndef SINEW_OBSERVE_GRAPH_H
#define SINEW_OBSERVE_GRAPH_H

#include <stddef.h>
#include <stdint.h>

/* Vertices are numbers below n. Vertex v leads to to[first[v]] up to to[first[v + 1] - 1]. */
struct sni_graph {
    uint32_t n; /* below UINT32_MAX */
    size_t *first;
    uint32_t *to;
};

/* What is kept about a vertex while it is looked for. */
struct sni_graph_visit {
    size_t next;         /* of its edges, the one to be followed next               */
    uint32_t index, low; /* when it was found, from 1; the first that it leads back to */
    uint32_t parent;     /* from where it was found                                 */
    uint32_t stack;      /* not the vertex's own: the stack, which is as long       */
};

/* Say in of[v], for each vertex, in which component it is, numbered from 0: two are in the same if
 * each leads to the other, on whatever way. `visits` is room for n, zeroed.
 *
 * Returns  how many components there are */
uint32_t sni_graph_components(const struct sni_graph *graph, struct sni_graph_visit *visits,
                              uint32_t *of);

#endif
