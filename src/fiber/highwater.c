/* SPDX-License-Identifier: MIT */
/* highwater.c - a table of spawn sites that only grows; see highwater.h.
 *
 * Open addressing by the address of the site's text, linear probing. A slot is claimed by a compare
 * and swap of its `at` from NULL, and never freed, so whoever finds its own `at` may add to that
 * slot, and a lookup ends at the first free one. A mark rises by compare and swap. There is no
 * lock: workers that put stacks back at the same time meet only if they ran fibers of one site.
 *
 * All orders are relaxed: the figures stand for themselves, and the texts are older than the table.
 *
 * After as many sites as there are slots, or when a probe has become long, a site is counted under
 * `others`: the table is bounded, and a program that spawns from more places learns at least the
 * deepest of the rest.
 *
 * Rejected: painting the stack with a pattern and looking for the lowest byte that changed, which
 * would touch all of it, 16 pages instead of one, for the sake of a figure below the page, in which
 * sizes are given anyway. A key by text, which would have to be read each time: so a spawn in an
 * inline function of a header is one site for each file that includes it, and whoever prints may
 * add them up. */
#include "fiber/highwater.h"

#include "fiber/stack.h"

#include <string.h>

enum {
    PROBES_MAX = 16,
};

_Static_assert((SNI_HIGHWATER_SITES & (SNI_HIGHWATER_SITES - 1)) == 0,
               "masking needs a power of 2");

void sni_highwater_init(struct sni_highwater *table)
{
    memset(table, 0, sizeof(*table));
}

static size_t home_of(const char *at)
{
    uint64_t hash = (uint64_t)(uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(hash >> 32) & (SNI_HIGHWATER_SITES - 1);
}

/* The slot of `at`, claimed if need be. */
static struct sni_highwater_slot *slot_of(struct sni_highwater *table, const char *at)
{
    size_t home = home_of(at);
    for (size_t i = 0; i < PROBES_MAX && at != NULL; i++) {
        struct sni_highwater_slot *slot = &table->slots[(home + i) & (SNI_HIGHWATER_SITES - 1)];
        const char *found = sni_atomic_load(&slot->at, relaxed); /* relaxed: see the top */
        /* relaxed, both: see the top */
        if (found == NULL && sni_atomic_cas(&slot->at, &found, at, relaxed, relaxed))
            return slot;
        if (found == at)
            return slot;
    }
    return &table->others;
}

void sni_highwater_add(struct sni_highwater *table, const char *at, size_t bytes)
{
    struct sni_highwater_slot *slot = slot_of(table, at);
    sni_atomic_fetch_add(&slot->stacks, 1, relaxed); /* relaxed, here and below: see the top */
    size_t most = sni_atomic_load(&slot->bytes, relaxed);
    while (bytes > most && !sni_atomic_cas(&slot->bytes, &most, bytes, relaxed, relaxed))
        ; /* somebody else raised it, perhaps not far enough */
}

SNI_COLD void sni_highwater_measure_slow(struct sni_highwater *table, const char *at,
                                         struct sni_stack *stack)
{
    sni_highwater_add(table, at, sni_stack_high_water_take(stack));
}

bool sni_highwater_next(const struct sni_highwater *table, size_t *cursor,
                        struct sni_highwater_mark *mark)
{
    while (table != NULL && *cursor <= SNI_HIGHWATER_SITES) {
        size_t i = (*cursor)++;
        const struct sni_highwater_slot *slot =
            i < SNI_HIGHWATER_SITES ? &table->slots[i] : &table->others;
        mark->at = sni_atomic_load(&slot->at, relaxed); /* relaxed, all: see the top */
        mark->bytes = sni_atomic_load(&slot->bytes, relaxed);
        mark->stacks = sni_atomic_load(&slot->stacks, relaxed);
        if (mark->stacks > 0)
            return true;
    }
    return false;
}
