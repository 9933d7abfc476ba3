/* SPDX-License-Identifier: MIT */
/* victims.c - see victims.h. Pure, since few machines that run the tests have two nodes.
 *
 * Only workers that are pinned have a node: others may be moved by the system at any time. */
#include "sched/victims.h"

#include <stdbool.h>

static unsigned append(uint16_t *list, unsigned filled, const int *nodes, unsigned n, unsigned me,
                       bool near)
{
    for (unsigned i = 0; i < n; i++)
        if (i != me && (nodes[i] == nodes[me]) == near)
            list[filled++] = (uint16_t)i;
    return filled;
}

unsigned sni_victims_sort(uint16_t *list, const int *nodes, unsigned n, unsigned me)
{
    unsigned near = append(list, 0, nodes, n, me, true);
    (void)append(list, near, nodes, n, me, false);
    return near;
}
