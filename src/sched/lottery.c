/* SPDX-License-Identifier: MIT */
/* lottery.c - see lottery.h: an array, and a draw that moves the last into the gap.
 *
 * The order in the array depends on nothing but the pushes and draws before, so a run with the
 * same seed meets the same array. */
#include "sched/lottery.h"

#include <stdlib.h>

bool sni_lottery_push(struct sni_lottery *lottery, struct sni_runlink *link)
{
    if (lottery->count == lottery->capacity) {
        size_t capacity = lottery->capacity > 0 ? lottery->capacity * 2 : 64;
        struct sni_runlink **links =
            realloc(lottery->links, capacity * sizeof(struct sni_runlink *));
        if (links == NULL)
            return false;
        lottery->links = links;
        lottery->capacity = capacity;
    }
    lottery->links[lottery->count++] = link;
    return true;
}

struct sni_runlink *sni_lottery_draw(struct sni_lottery *lottery, struct sni_rand *rand)
{
    if (lottery->count == 0)
        return NULL;
    size_t index = sni_rand_below(rand, (uint32_t)lottery->count);
    struct sni_runlink *link = lottery->links[index];
    lottery->links[index] = lottery->links[--lottery->count];
    return link;
}

void sni_lottery_finish(struct sni_lottery *lottery)
{
    free(lottery->links);
    *lottery = (struct sni_lottery){.count = 0};
}
