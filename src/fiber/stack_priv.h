/* SPDX-License-Identifier: MIT */
/* stack_priv.h - between stack.c (pool and caches) and stack_slab.c (where stacks come from). */
#ifndef SINEW_FIBER_STACK_PRIV_H
#define SINEW_FIBER_STACK_PRIV_H

#include "fiber/stack.h"

/* What the pool knows of a class that is cut from slabs. */
static inline struct sni_stack_class *sni_stack_class_of(struct sni_stack_pool *pool,
                                                         unsigned class_)
{
    return &pool->classes[class_ - SNI_STACK_CLASS_MIN];
}

/* A slot of a slab that nobody else has: its state is decided, its record not yet written. */
struct sni_stack_slot {
    struct sni_stack_slab *slab;
    uint32_t index;
    enum sni_guard_kind guard;
};

/* A blank slot of the class becomes the caller's. Under the pool's mutex.
 *
 * Returns  0         it must be made a stack by sni_stack_slot_open
 *          -ENOMEM   no address space */
int sni_stack_slot_take(struct sni_stack_pool *pool, unsigned class_, struct sni_stack_slot *slot);

/* Write the record, which makes one page resident: a page fault, so not under the mutex. */
struct sni_stack *sni_stack_slot_open(const struct sni_stack_pool *pool,
                                      const struct sni_stack_slot *slot);

/* The opposites: give the memory back, record included, of a stack in no list; not under the
 * mutex. And then, under it, make the slot blank, and release its slab if it is not needed. */
struct sni_stack_slot sni_stack_slot_close(struct sni_stack *stack);
void sni_stack_slot_give(struct sni_stack_pool *pool, const struct sni_stack_slot *slot);

/* All slabs of the class, with whatever is on them. */
void sni_stack_slabs_release(struct sni_stack_pool *pool, unsigned class_);

/* Stacks mapped one by one. Not under the mutex. */
int sni_stack_big_create(struct sni_stack_pool *pool, unsigned class_, struct sni_stack **out);
void sni_stack_big_destroy(struct sni_stack_pool *pool, struct sni_stack *stack);

#endif
