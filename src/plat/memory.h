/* SPDX-License-Identifier: MIT */
/* memory.h - address space, guard pages and resident memory, as the operating system gives them.
 *
 * This is a contract with one folder of code per platform. Addresses and sizes are multiples of
 * sni_plat_page_bytes(). Results are 0 or a negative errno; a failed call changed nothing, but
 * for sni_plat_guard_each, which says how far it came. All functions may be called from any
 * thread. None allocates. */
#ifndef SINEW_PLAT_MEMORY_H
#define SINEW_PLAT_MEMORY_H

#include <stddef.h>

/* How a page is made to fault. */
enum sni_guard_kind {
    SNI_GUARD_AUTO,     /* the best that works here; only in requests                         */
    SNI_GUARD_MADVISE,  /* a mark in the page table: costs no mapping, so millions are fine   */
    SNI_GUARD_MPROTECT, /* splits the mapping: two more per guard, of 65,530 in a process     */
    SNI_GUARD_NONE,     /* no guard: an overflow runs into the neighbour                      */
    SNI_GUARD_KINDS,
};

/* Bytes of a page; a power of two. */
size_t sni_plat_page_bytes(void);

/* Address space, readable and writable, filled with zeroes, that becomes memory page by page
 * when it is touched.
 *
 * Returns  0         *base is the caller's until sni_plat_release
 *          -ENOMEM   no address space, or a limit of the process or the system is reached
 *          -EINVAL   nothing was asked for, or with a strange alignment */
int sni_plat_reserve(void **base, size_t bytes);

/* The same, with *base a multiple of `align`, a power of two and at least a page. */
int sni_plat_reserve_aligned(void **base, size_t bytes, size_t align);

/* Give address space back, all of a reservation or whole pages of it. NULL with 0 is fine. At the
 * limit of mappings the system may keep the address space; the memory is given back anyway. */
void sni_plat_release(void *base, size_t bytes);

/* Ask that touching one page here never brings a huge one: a stack that uses 4 KiB must not
 * cost 2 MiB. A hint; systems without huge pages ignore it. */
void sni_plat_small_pages(void *base, size_t bytes);

/* Make all of it memory now, by one call, for one who is about to touch every page: that is cheaper
 * than a fault for each. A hint; where it is refused, touching still does it. `base` and `bytes`
 * need not be of whole pages. */
void sni_plat_populate(void *base, size_t bytes);

/* Which kind SNI_GUARD_AUTO is here: found once per process, by installing a guard and looking
 * whether it guards, because some emulators say yes and do nothing. */
enum sni_guard_kind sni_plat_guard_kind(void);

/* How many guards of `kind` a process can have while it leaves room for the mappings of
 * others, such as libraries and thread stacks; SIZE_MAX where it does not matter. */
size_t sni_plat_guard_limit(enum sni_guard_kind kind);

/* Make the pages fault when touched, for good: only sni_plat_release takes a guard away, and
 * it survives sni_plat_discard. What the pages held is lost.
 *
 * Returns  0         they do; with SNI_GUARD_NONE: they do not, and nothing was done
 *          -ENOMEM   the process has no more mappings or the kernel no more memory
 *          -EINVAL   this kernel does not know `kind`, or the range is not the caller's */
int sni_plat_guard(void *base, size_t bytes, enum sni_guard_kind kind);

/* `count` guards of `bytes` bytes each, `stride` bytes apart, the first at `base`: one system
 * call for many of them where the kernel can. Stops at the first that fails; *done is how many
 * were installed, also on success. Results as sni_plat_guard. */
int sni_plat_guard_each(void *base, size_t bytes, size_t stride, size_t count,
                        enum sni_guard_kind kind, size_t *done);

/* Give memory back and keep the address space: the pages read as zeroes when next touched. Pages
 * that the program has locked, by mlockall, stay as they are. */
void sni_plat_discard(void *base, size_t bytes);

/* How many bytes, counted upwards from `base`, have not been touched since they were reserved
 * or discarded: a multiple of the page, at most `bytes`. 0 where the system cannot tell. */
size_t sni_plat_untouched(const void *base, size_t bytes);

#endif
