/* SPDX-License-Identifier: MIT */
/* stack.h - stacks for fibers, by the million.
 *
 * Words: a *pool* belongs to a runtime and owns the address space; a *cache* belongs to a
 * worker and keeps stacks that were just used, the last one first, without a lock. A stack is
 * *blank* when nothing of it is resident: never used, or discarded since. Sizes are *classes*,
 * powers of two from two pages to 1 GiB; the size of a stack is that of its address space and
 * includes the guard page below it, as with pthreads, and the record of 64 bytes above it.
 *
 * A stack that is idle, or used by a fiber that is not deep, costs one resident page: the
 * topmost, which also holds its record (struct sni_stack). Classes of up to 1 MiB are cut from
 * slabs, one mapping for many; larger ones are mapped one by one.
 *
 * Guards: with SNI_GUARD_MADVISE every stack has one. Where the kernel (before 6.13) has only
 * mprotect, a guard costs two of the 65,530 mappings of a process: from about 28,000 stacks on,
 * or when the kernel refuses, further stacks come without, and the statistics say how many. */
#ifndef SINEW_FIBER_STACK_H
#define SINEW_FIBER_STACK_H

#include "base/atomic.h"
#include "base/list.h"
#include "plat/memory.h"
#include "plat/thread.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SNI_STACK_CLASS_MIN = 13, /* class c is of 2^c bytes; two pages are the least */
    SNI_STACK_CLASS_MAX = 30,
    SNI_STACK_CLASS_SLAB_MAX = 20, /* larger ones are mapped one by one */
    SNI_STACK_CLASSES = SNI_STACK_CLASS_MAX - SNI_STACK_CLASS_MIN + 1,
    SNI_STACK_SLAB_CLASSES = SNI_STACK_CLASS_SLAB_MAX - SNI_STACK_CLASS_MIN + 1,
};

/* The record of a stack, in the highest 64 bytes of its own memory. */
struct sni_stack {
    char *lo; /* usable is [lo, hi): constant, as is all but in_use and the links */
    char *hi;
    struct sni_stack_slab *slab; /* NULL: mapped by itself                                  */
    uint32_t index;              /* which of its slab                                       */
    uint8_t class_;              /* log2 of its size                                        */
    uint8_t guard;               /* enum sni_guard_kind                                     */
    bool in_use;                 /* between get and put                                     */
    unsigned valgrind_id;
    union {
        struct sni_stack *next; /* while in a cache or the pool: the next colder one        */
        void *scopes;           /* while in use: whose fiber it is, see task/scope.c        */
    };
    struct sni_stack *prev; /* while in the pool: the next warmer one                       */
};

/* Zeroed is all defaults. */
struct sni_stack_config {
    size_t default_bytes;       /* size for sni_stack_get(.., 0, ..); 0: 64 KiB             */
    size_t slab_bytes_max;      /* slabs grow up to this; 0: 64 MiB                         */
    enum sni_guard_kind guard;  /* SNI_GUARD_AUTO unless a test wants another               */
    size_t mprotect_guards_max; /* 0: sni_plat_guard_limit                                  */
    uint32_t cached_max;        /* stacks of the default class a cache keeps; 0: 1024       */
};

/* Of a pool with all its caches; a snapshot, exact when nothing moves. */
struct sni_stack_stats {
    size_t reserved_bytes;          /* address space, guards and slab headers included      */
    size_t slabs;                   /* mappings for classes up to 1 MiB                     */
    size_t in_use;                  /* stacks between get and put                           */
    size_t cached;                  /* stacks with memory that are free, in caches and pool */
    size_t blank;                   /* stacks without memory that are free                  */
    size_t guards[SNI_GUARD_KINDS]; /* stacks by what guards them; [SNI_GUARD_NONE] counts
                                       those that should have had one and did not get it,
                                       and all of them when none was wanted                 */
    uint64_t trimmed;               /* stacks whose memory was given back, ever             */
};

/* Free stacks of one class in one place. Touched by the owner of the place; `count` is also
 * read by sni_stack_pool_stats. */
struct sni_stack_list {
    struct sni_stack *head; /* most recently used                                           */
    struct sni_stack *tail; /* the pool's: least recently used                              */
    SNI_ATOMIC(uint32_t) count;
    uint32_t low; /* least `count` since the last trim: so many at the tail are cold         */
};

/* What the pool knows of one class; guarded by the pool's mutex. */
struct sni_stack_class {
    struct sni_stack_list free;
    struct sni_list open;   /* slabs with blank stacks                                      */
    struct sni_list full;   /* slabs without                                                */
    size_t slab_bytes_next; /* they double                                                  */
    size_t blank;           /* in all slabs                                                 */
};

/* A slab, see stack_slab.c. Guarded by the pool's mutex, but for what is constant. */
struct sni_stack_slab {
    struct sni_list link; /* in `open` or `full` of its class                             */
    char *base;           /* of the reservation; constant, as the next three              */
    size_t bytes;         /* of all of it                                                 */
    char *slots;
    uint64_t *bits; /* a bitmap of blank slots, then one of those that are bare           */
    uint32_t count; /* constant, as class_                                                */
    uint32_t blank_count;
    uint32_t guarded;     /* slots below have the guard they will ever have               */
    uint32_t bare_count;  /* of those, how many have none                                 */
    uint32_t search_from; /* words of the bitmap before this one are zero                 */
    uint8_t class_;
};

enum { SNI_STACK_FIRST_SLOTS = 128 };

/* Thread-safe. */
struct sni_stack_pool {
    struct sni_mutex mutex; /* guards what follows; system calls are made under it         */
    struct sni_list caches; /* of sni_stack_cache.link                                     */
    struct sni_stack_class classes[SNI_STACK_SLAB_CLASSES]; /* see sni_stack_class_of      */
    struct sni_stack_slab first; /* the header of a slab, as long as `bytes` is not 0      */
    uint64_t first_bits[2 * SNI_STACK_FIRST_SLOTS / 64];
    struct sni_stack_stats stats; /* reserved_bytes, slabs, guards, trimmed, and:           */
    size_t given;                 /* stacks that exist and are not blank                    */
    struct sni_stack_config cfg;  /* with the defaults filled in; constant, as what follows */
    size_t page_bytes;
    uint8_t class_min;
    uint8_t class_default;
};

/* Of one worker, unsynchronised: get and put are calls of its thread. */
struct sni_stack_cache {
    struct sni_stack_pool *pool;
    uint8_t class_min; /* copies, to keep the pool's cache lines out of the fast path        */
    uint8_t class_default;
    struct sni_stack_list lists[SNI_STACK_CLASSES]; /* the first is that of SNI_STACK_CLASS_MIN, */
    uint32_t count_max[SNI_STACK_CLASSES];          /* and so here                               */
    struct sni_list link; /* guarded by the pool's mutex                                     */
};

/* Returns  0          ready; nothing is reserved yet
 *          -EINVAL    a size in `cfg` is out of range
 * `cfg` may be NULL for the defaults. */
int sni_stack_pool_init(struct sni_stack_pool *pool, const struct sni_stack_config *cfg);

/* Give all address space back. All caches are finished and all stacks put, or their owners are
 * never to run again: slabs go with what is on them, stacks larger than 1 MiB that are still
 * in use stay behind. Fine on a zeroed pool. */
void sni_stack_pool_finish(struct sni_stack_pool *pool);

void sni_stack_cache_init(struct sni_stack_cache *cache, struct sni_stack_pool *pool);

/* Hand what the cache holds to the pool. Fine on a zeroed cache. */
void sni_stack_cache_finish(struct sni_stack_cache *cache);

/* A stack of at least `bytes` bytes, guard and record included, and never less than one usable
 * page; 0: of the pool's default size. Its memory holds whatever its last user left there.
 *
 * Returns  0          *out is the caller's until sni_stack_put into any cache of the pool
 *          -EINVAL    more than 1 GiB
 *          -ENOMEM    no address space or no mappings left; nothing has changed */
int sni_stack_get(struct sni_stack_cache *cache, size_t bytes, struct sni_stack **out);

void sni_stack_put(struct sni_stack_cache *cache, struct sni_stack *stack);

/* Call `fn` for each slab, all of it: for who searches memory. */
void sni_stack_pool_each(struct sni_stack_pool *pool,
                         void (*fn)(uintptr_t from, uintptr_t to, void *arg), void *arg);

/* Move to the pool what lay unused in the cache since the last call. */
void sni_stack_cache_trim(struct sni_stack_cache *cache);

/* Give back the memory of at most `stacks_max` free stacks that lay unused in the pool since
 * the last call, and the address space of slabs that are blank as a whole, but for one of each
 * class. Takes about 2 us for each stack. Returns how many. */
size_t sni_stack_pool_trim(struct sni_stack_pool *pool, size_t stacks_max);

void sni_stack_pool_stats(struct sni_stack_pool *pool, struct sni_stack_stats *stats);

/* How much of the stack has been used, in bytes from the top, rounded up to pages, by anybody
 * since it was blank. One system call per 4 MiB of size. */
size_t sni_stack_high_water(const struct sni_stack *stack);

/* The same, and all pages but the topmost go back to the system, so that the next mark is that of
 * the next user alone. Nobody stands on the stack. One system call more if it was deeper. */
size_t sni_stack_high_water_take(struct sni_stack *stack);

/* ---- overflow ---------------------------------------------------------------------- */

/* What to tell about an overflow. */
struct sni_stack_overflow {
    size_t had_bytes;   /* size of the stack, as it would be asked for                      */
    size_t below_bytes; /* how far below its lowest usable byte it was touched              */
    size_t next_bytes;  /* the size to try next; 0: it was the largest                      */
};

/* Whether `addr` lies in the guard of `stack`, and if so what to tell; `what` may be NULL. Safe
 * in signal handlers. */
bool sni_stack_is_guard_hit(const struct sni_stack *stack, const void *addr,
                            struct sni_stack_overflow *what);

#endif
