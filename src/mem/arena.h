/* SPDX-License-Identifier: MIT */
/* arena.h - records that can be told from anything else by their address.
 *
 * Words
 *   record   a block of one of a few sizes, at the start of which a *generation* is kept. It
 *            survives being freed and grows by one with each life.
 *   chunk    64 KiB of the process's region, cut into records of one size, for ever
 *   cache    free records of one worker; unsynchronised, last in first out, so that what was
 *            freed last is still warm
 *
 * A *handle* is the record's address with the low 16 bits of its generation on top (bits 48 to
 * 63, which no user-space address has). sni_arena_find gives the record back, or NULL for
 * anything that is not a handle of a living record: a stale one, a stranger's pointer, a
 * number. It reads only the arena's own memory, so it never faults. */
#ifndef SINEW_MEM_ARENA_H
#define SINEW_MEM_ARENA_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SNI_RECORD_STEP = 64,          /* sizes are multiples of this, a cache line   */
    SNI_RECORD_CLASSES = 64,       /* up to 64 * 64 bytes; larger goes elsewhere  */
    SNI_RECORDS_CACHED_MAX = 1024, /* in one cache, of one class */
    SNI_RECORD_BYTES_MAX = SNI_RECORD_STEP * SNI_RECORD_CLASSES,
};

/* The head of every record. */
struct sni_record {
    SNI_ATOMIC(uint32_t) generation; /* odd while the record lives                         */
    uint32_t class;                  /* immutable: size is (class + 1) * SNI_RECORD_STEP    */
    union {
        struct sni_record *next; /* while free: the list it is in                           */
        SNI_ATOMIC(void *) own;  /* while it lives: whose it is may keep something here      */
    };
};

struct sni_arena;

/* The arena of this process.
 *
 * Returns  0, -ENOMEM */
int sni_arena_get(struct sni_arena **arena);

/* Free records at hand, for one thread. */
struct sni_record_cache {
    struct sni_arena *arena;
    struct {
        struct sni_record *first;
        uint32_t count;
        uint32_t batch; /* how many the last refill wanted; 0: there was none */
    } list[SNI_RECORD_CLASSES];
};

void sni_record_cache_init(struct sni_record_cache *cache, struct sni_arena *arena);

/* Give all free records back to the arena. */
void sni_record_cache_finish(struct sni_record_cache *cache);

/* The rare halves of what follows: the cache is empty, or has too many. */
int sni_record_cache_refill(struct sni_record_cache *cache, uint32_t class);
void sni_record_cache_drain(struct sni_record_cache *cache, uint32_t class);

/* Only the holder of a record changes its generation; others read it. */
static inline void sni_record_live_on_(struct sni_record *record)
{
    /* relaxed, release: pairs with the acquire in sni_arena_find */
    uint32_t generation = sni_atomic_load(&record->generation, relaxed);
    sni_atomic_store(&record->generation, generation + 1, release);
}

/* A record of `bytes`, at most SNI_RECORD_BYTES_MAX; only its head is initialised.
 *
 * Returns  0, -ENOMEM */
static inline int sni_record_get(struct sni_record_cache *cache, size_t bytes,
                                 struct sni_record **out)
{
    sni_assert(bytes > 0 && bytes <= SNI_RECORD_BYTES_MAX, "a record of that size does not exist");
    uint32_t class = (uint32_t)((bytes - 1) / SNI_RECORD_STEP);
    if (sni_unlikely(cache->list[class].first == NULL)) {
        int rc = sni_record_cache_refill(cache, class);
        if (rc < 0) {
            *out = NULL;
            return rc;
        }
    }
    struct sni_record *record = cache->list[class].first;
    cache->list[class].first = record->next;
    cache->list[class].count--;
    sni_record_live_on_(record);
    *out = record;
    return 0;
}

/* End the life of `record`: from here on its handle is stale. */
static inline void sni_record_put(struct sni_record_cache *cache, struct sni_record *record)
{
    uint32_t class = record->class;
    sni_record_live_on_(record);
    record->next = cache->list[class].first;
    cache->list[class].first = record;
    if (sni_unlikely(++cache->list[class].count > SNI_RECORDS_CACHED_MAX))
        sni_record_cache_drain(cache, class);
}

/* The same for whoever has no cache: from and to the process's arena, under its lock.
 *
 * Returns  0, -ENOMEM */
int sni_record_get_uncached(struct sni_arena *arena, size_t bytes, struct sni_record **out);
void sni_record_give(struct sni_record *record);

/* Records of the other kind, which are in no cache. They are given back by sni_record_give.
 *
 * Returns  0, -ENOMEM */
int sni_record_take(size_t bytes, struct sni_record **out);

/* The handle of a living record, as a number. */
static inline uint64_t sni_record_handle(const struct sni_record *record)
{
    /* relaxed: the caller holds the record */
    uint64_t generation = sni_atomic_load(&record->generation, relaxed);
    return (uint64_t)(uintptr_t)record | generation << 48;
}

/* The living record of `handle`, or NULL. */
struct sni_record *sni_arena_find(uint64_t handle);

/* The same for records of the other kind (sni_record_take). */
struct sni_record *sni_arena_find_other(uint64_t handle);

/* The living record of a cache that begins at `address`, or NULL. For reports, about what was a
 * record once, and may be another by now. */
struct sni_record *sni_arena_at(uintptr_t address);

/* The living record, of either kind, in which `address` lies, or NULL. For reports. */
struct sni_record *sni_arena_around(uintptr_t address);

/* The region in which all records are, with what is kept about them. */
void sni_arena_bounds(uintptr_t *from, uintptr_t *to);

/* Whether the living record is one of a cache, and not of the other kind. */
bool sni_record_is_cached(const struct sni_record *record);

/* Call `fn` for each record of a cache that was ever used; it looks at the generation itself. */
void sni_arena_each(struct sni_arena *arena, void (*fn)(struct sni_record *record, void *arg),
                    void *arg);

/* The same for records of the other kind. */
void sni_arena_each_other(struct sni_arena *arena, void (*fn)(struct sni_record *record, void *arg),
                          void *arg);

#endif
