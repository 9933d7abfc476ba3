/* SPDX-License-Identifier: MIT */
/* highwater.h - how deep the stacks of fibers were, by the place of their spawn.
 *
 * For whoever chooses a stack size: a table of *sites*, the "file:line" of a spawn, each with the
 * deepest use of any stack that a fiber of that site gave back. Who was not asked for one has no
 * table, and NULL for it: that costs a load and a branch.
 *
 * With a table, each stack that is given back is measured by the page: one system call, 1.4 us for
 * 64 KiB; and if it was deeper than its topmost page a second one, which gives deeper pages back to
 * the system, 4 us with the page fault that follows (bench: stack_high_water, _deep). Else the
 * next fiber on that stack would be counted as deep as the last one. Nothing is written to stacks,
 * so a mark is exact to the page and no better. */
#ifndef SINEW_FIBER_HIGHWATER_H
#define SINEW_FIBER_HIGHWATER_H

#include "base/atomic.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sni_stack;

enum {
    SNI_HIGHWATER_SITES = 256, /* a power of two; further sites are counted together */
};

/* One site; see highwater.c for who writes what. */
struct sni_highwater_slot {
    SNI_ATOMIC(const char *) at; /* NULL: free; set once                     */
    SNI_ATOMIC(size_t) bytes;    /* only grows                               */
    SNI_ATOMIC(uint64_t) stacks;
};

struct sni_highwater {
    struct sni_highwater_slot slots[SNI_HIGHWATER_SITES];
    struct sni_highwater_slot others; /* `at` stays NULL */
};

/* What is known of a site. */
struct sni_highwater_mark {
    const char *at;  /* as it was spawned with; NULL: all sites that found no place */
    size_t bytes;    /* the deepest use, from the top of the stack                  */
    uint64_t stacks; /* that were measured                                          */
};

/* An empty table. */
void sni_highwater_init(struct sni_highwater *table);

/* A fiber that was spawned at `at` has used `bytes` bytes of its stack. Any thread; `at` must live
 * as long as the table, as a literal does, and is told apart by its address. */
void sni_highwater_add(struct sni_highwater *table, const char *at, size_t bytes);

/* The rare half of what follows. */
void sni_highwater_measure_slow(struct sni_highwater *table, const char *at,
                                struct sni_stack *stack);

/* The fiber that was spawned at `at` has left `stack` for good: nobody stands on it any more, and
 * it is still the caller's. To be called right before sni_stack_put. Without a table, nothing. */
static inline void sni_highwater_measure(struct sni_highwater *table, const char *at,
                                         struct sni_stack *stack)
{
    if (sni_unlikely(table != NULL))
        sni_highwater_measure_slow(table, at, stack);
}

/* The next mark, in no order; *cursor begins as 0. Any thread, also while others add: a moment's
 * figures. False: there are no more, or no table. */
bool sni_highwater_next(const struct sni_highwater *table, size_t *cursor,
                        struct sni_highwater_mark *mark);

#endif
