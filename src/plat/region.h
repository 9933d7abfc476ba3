/* SPDX-License-Identifier: MIT */
/* region.h - one piece of address space that the whole process shares.
 *
 * Task records of all runtimes live in it, so that a handle can be told from any other
 * pointer by its address alone. It is address space, not memory: pages come when they are
 * touched. Reserved at the first call, never given back. */
#ifndef SINEW_PLAT_REGION_H
#define SINEW_PLAT_REGION_H

#include <stddef.h>

/* The region: page-aligned, zeroed before its first use, the same at every call.
 *
 * Returns  0
 *          -ENOMEM  the address space is exhausted or limited; the next call tries again */
int sni_plat_region(void **base, size_t *bytes);

#endif
