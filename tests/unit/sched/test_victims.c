/* SPDX-License-Identifier: MIT */
/* Stealing from the same node first (R46). */
#include "harness.h"

#include "sched/victims.h"

TEST(victims_on_the_same_node_come_first)
{
    const int nodes[] = {0, 1, 0, 1, 0, 1};
    uint16_t list[5];
    CHECK_EQ(sni_victims_sort(list, nodes, 6, 3), 2);
    const uint16_t expected[] = {1, 5, 0, 2, 4};
    CHECK_MEM_EQ(list, expected, sizeof(expected));
}

TEST(without_nodes_all_victims_are_near)
{
    const int nodes[] = {-1, -1, -1};
    uint16_t list[2];
    CHECK_EQ(sni_victims_sort(list, nodes, 3, 0), 2);
    CHECK_EQ(list[0], 1);
    CHECK_EQ(list[1], 2);
}

TEST(a_worker_alone_on_its_node_has_only_far_victims)
{
    const int nodes[] = {0, 0, 7};
    uint16_t list[2];
    CHECK_EQ(sni_victims_sort(list, nodes, 3, 2), 0);
    CHECK_EQ(list[0], 0);
    CHECK_EQ(list[1], 1);
}

TEST(one_worker_has_no_victims)
{
    const int nodes[] = {0};
    uint16_t list[1] = {42};
    CHECK_EQ(sni_victims_sort(list, nodes, 1, 0), 0);
    CHECK_EQ(list[0], 42);
}
