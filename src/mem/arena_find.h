/* SPDX-License-Identifier: MIT */
/* arena_find.h - what the arena looks like, for who finds a record at every turn (io/file.c).
 *
 * A record of one step begins wherever a step does, so that of the checks in sni_arena_find three
 * comparisons are left: they are written out where they are needed, without a call. */
#ifndef SINEW_MEM_ARENA_FIND_H
#define SINEW_MEM_ARENA_FIND_H

#include "mem/arena.h"
#include "plat/region.h"
#include "plat/thread.h"

enum {
    SNI_ARENA_CHUNK_BYTES = 64 << 10,
    SNI_ARENA_KINDS = 2,
    SNI_ARENA_OTHER = SNI_RECORD_CLASSES, /* added to the class of records that are not cached */
};

/* What is left of the newest chunk of a class. */
struct sni_arena_rest {
    char *at;       /* where its next record will be                            */
    uint32_t bytes; /* that are not cut yet; 0: there is no chunk, or it is used up */
    uint32_t piece; /* how many were cut last; 0: none ever                     */
};

/* At the beginning of the region. */
struct sni_arena {
    struct sni_mutex lock;       /* guards `free`, `rest` and the growth of `chunks`  */
    SNI_ATOMIC(uint32_t) chunks; /* in use, from the start; grows, read by anyone     */
    uint32_t chunks_max;         /* immutable                                         */
    char *first_chunk;           /* immutable                                         */
    struct sni_record *free[SNI_ARENA_KINDS * SNI_RECORD_CLASSES];
    struct sni_arena_rest rest[SNI_ARENA_KINDS * SNI_RECORD_CLASSES];
    uint8_t class_of[]; /* per chunk, the class + 1: written before it is counted    */
};

/* As sni_arena_find_other, of records of at most SNI_RECORD_STEP bytes. */
static inline struct sni_record *sni_arena_find_step(uint64_t handle)
{
    const struct sni_arena *arena = sni_plat_region_base();
    if (sni_unlikely(arena == NULL))
        return NULL;
    uint64_t address = handle & UINT64_C(0xFFFFFFFFFFFF);
    uint64_t chunk = (address - (uint64_t)(uintptr_t)arena->first_chunk) / SNI_ARENA_CHUNK_BYTES;
    /* acquire: pairs with the release in open_chunk, class_of is there */
    if (sni_unlikely(chunk >= sni_atomic_load(&arena->chunks, acquire) ||
                     arena->class_of[chunk] != SNI_ARENA_OTHER + 1 ||
                     address % SNI_RECORD_STEP != 0))
        return NULL;
    struct sni_record *record = (struct sni_record *)(uintptr_t)address;
    /* acquire: pairs with live_on. Only a living one's is odd, and so is that of a handle */
    uint32_t generation = sni_atomic_load(&record->generation, acquire);
    bool is_alive = (generation & 0xFFFF) == handle >> 48 && generation % 2 == 1;
    return sni_likely(is_alive) ? record : NULL;
}

#endif
