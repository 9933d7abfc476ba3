/* SPDX-License-Identifier: MIT */
/* region.h - one piece of address space that the whole process shares.
 *
 * Task records of all runtimes live in it, so that a handle can be told from any other
 * pointer by its address alone. It is address space, not memory: pages come when they are
 * touched. Reserved at the first call, never given back. */
#ifndef SINEW_PLAT_REGION_H
#define SINEW_PLAT_REGION_H

#include "base/atomic.h"

#include <stddef.h>

/* Written once, in linux/region.c. */
struct sni_region {
    SNI_ATOMIC(void *) base; /* NULL before the first sni_plat_region            */
    size_t bytes;            /* written before `base` is                         */
};

extern struct sni_region sni_region;

/* The region: page-aligned, zeroed before its first use, the same at every call.
 *
 * Returns  0
 *          -ENOMEM  the address space is exhausted or limited; the next call tries again */
int sni_plat_region(void **base, size_t *bytes);

/* Its base, or NULL if nobody has asked for it yet. */
static inline void *sni_plat_region_base(void)
{
    /* acquire: pairs with the release in linux/region.c */
    return sni_atomic_load(&sni_region.base, acquire);
}

#endif
