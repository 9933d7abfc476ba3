/* SPDX-License-Identifier: MIT */
/* Which vertices of a graph lead to each other (R160): as if all ways were tried. */
#include "observe/graph.h"

#include "base/rand.h"
#include "harness.h"

#include <stdbool.h>
#include <stdlib.h>

enum { FEW = 8, EDGES_MAX = 20, GRAPHS = 20000, MANY = 1000000 };

struct edges {
    size_t n;
    uint32_t from[EDGES_MAX], to[EDGES_MAX];
};

static void try_all_ways(const struct edges *edges, bool leads[FEW][FEW])
{
    for (uint32_t v = 0; v < FEW; v++)
        for (uint32_t w = 0; w < FEW; w++)
            leads[v][w] = v == w;
    for (size_t e = 0; e < edges->n; e++)
        leads[edges->from[e]][edges->to[e]] = true;
    for (uint32_t by = 0; by < FEW; by++)
        for (uint32_t v = 0; v < FEW; v++)
            for (uint32_t w = 0; w < FEW; w++)
                leads[v][w] = leads[v][w] || (leads[v][by] && leads[by][w]);
}

static void check_few(const struct edges *edges)
{
    size_t first[FEW + 1] = {0}, n = 0;
    uint32_t to[EDGES_MAX], of[FEW];
    for (uint32_t v = 0; v < FEW; v++) {
        for (size_t e = 0; e < edges->n; e++)
            if (edges->from[e] == v)
                to[n++] = edges->to[e];
        first[v + 1] = n;
    }
    struct sni_graph_visit visits[FEW] = {{.next = 0}};
    struct sni_graph graph = {FEW, first, to};
    uint32_t components = sni_graph_components(&graph, visits, of);
    bool leads[FEW][FEW];
    bool seen[FEW] = {false};
    try_all_ways(edges, leads);
    for (uint32_t v = 0; v < FEW; v++) {
        CHECK(of[v] < components);
        seen[of[v]] = true;
        for (uint32_t w = 0; w < FEW; w++)
            CHECK_EQ(of[v] == of[w], leads[v][w] && leads[w][v]);
    }
    for (uint32_t c = 0; c < components; c++)
        CHECK(seen[c]);
}

TEST(vertices_are_in_one_component_if_each_leads_to_the_other)
{
    struct sni_rand rand;
    sni_rand_init(&rand, 6);
    for (int i = 0; i < GRAPHS; i++) {
        struct edges edges = {.n = sni_rand_below(&rand, EDGES_MAX + 1)};
        for (size_t e = 0; e < edges.n; e++) {
            edges.from[e] = sni_rand_below(&rand, FEW);
            edges.to[e] = sni_rand_below(&rand, FEW);
        }
        check_few(&edges);
    }
}

/* A row of a million, the last of which leads to `back`: what was a function that calls itself
 * would need gigabytes of stack for it. */
static uint32_t components_of_a_row(uint32_t back)
{
    size_t *first = malloc((MANY + 1) * sizeof(*first));
    uint32_t *to = malloc(MANY * sizeof(*to)), *of = malloc(MANY * sizeof(*of));
    struct sni_graph_visit *visits = calloc(MANY, sizeof(*visits));
    CHECK(first != NULL && to != NULL && of != NULL && visits != NULL);
    for (uint32_t v = 0; v < MANY; v++) {
        first[v] = v;
        to[v] = v + 1 < MANY ? v + 1 : back;
    }
    first[MANY] = MANY;
    struct sni_graph graph = {MANY, first, to};
    uint32_t components = sni_graph_components(&graph, visits, of);
    CHECK_EQ(of[back], of[MANY - 1]);
    free(first);
    free(to);
    free(of);
    free(visits);
    return components;
}

TEST(a_million_vertices_in_a_row_need_no_deep_stack)
{
    CHECK_EQ(components_of_a_row(0), 1);
    CHECK_EQ(components_of_a_row(MANY - 1), MANY);
    CHECK_EQ(components_of_a_row(MANY / 2), MANY / 2 + 1);
}
