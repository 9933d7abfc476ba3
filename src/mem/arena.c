/* SPDX-License-Identifier: MIT */
/* arena.c - chunks of records in the process's region.
 *
 * The region begins with the arena itself: a lock, the number of chunks in use, the free
 * records of each class, and one byte per chunk that tells its class. A chunk is never given
 * back and never changes its class, so an address, once a record's, stays one: that is what
 * makes a stale handle safe to look at. Memory of a burst stays in the free lists; tasks are
 * small and bursts return.
 *
 * Caches exchange records with the arena in batches, under the lock: a get or put that finds
 * its cache neither empty nor full takes neither lock nor atomic operation. A record may be
 * put into another cache than it came from; batches even that out.
 *
 * Generations: a put makes the generation even (dead), a get makes it odd (alive). Finding is
 * racy by nature: a handle may go stale right after. Callers that must know hold a reference. */
#include "mem/arena.h"

#include "base/assert.h"
#include "plat/region.h"
#include "plat/thread.h"

#include <sinew/errno.h>

enum {
    CHUNK_BYTES = 64 << 10,
    BATCH = 64, /* records that change hands at once                       */
    CACHED_MAX = 4 * BATCH,
    CLASS_NONE = 0, /* of a chunk that is not in use; else the class + 1       */
};

struct sni_arena {
    struct sni_mutex lock;       /* guards `free` and the growth of `chunks`          */
    SNI_ATOMIC(uint32_t) chunks; /* in use, from the start; grows, read by anyone     */
    uint32_t chunks_max;         /* immutable                                         */
    char *first_chunk;           /* immutable                                         */
    struct sni_record *free[SNI_RECORD_CLASSES];
    uint8_t class_of[]; /* per chunk, written before it is counted           */
};

/* Lay the arena out in a fresh region. Idempotent under the lock of the zeroed head. */
static void lay_out(struct sni_arena *arena, size_t bytes)
{
    if (arena->first_chunk != NULL)
        return;
    size_t chunks = bytes / CHUNK_BYTES;
    size_t head = sizeof(*arena) + chunks;
    head = (head + CHUNK_BYTES - 1) / CHUNK_BYTES;
    arena->chunks_max = (uint32_t)(chunks - head);
    arena->first_chunk = (char *)arena + head * CHUNK_BYTES;
}

int sni_arena_get(struct sni_arena **out)
{
    void *base;
    size_t bytes;
    int rc = sni_plat_region(&base, &bytes);
    if (rc < 0)
        return rc;
    struct sni_arena *arena = base;
    sni_mutex_lock(&arena->lock);
    lay_out(arena, bytes);
    sni_mutex_unlock(&arena->lock);
    *out = arena;
    return 0;
}

static size_t class_bytes(uint32_t class)
{
    return (size_t)(class + 1) * SNI_RECORD_STEP;
}

/* Put a batch of `class` into the free list from a new chunk. Under the lock. */
static int grow(struct sni_arena *arena, uint32_t class)
{
    /* relaxed: under the lock only we change it */
    uint32_t chunk = sni_atomic_load(&arena->chunks, relaxed);
    if (chunk == arena->chunks_max)
        return -ENOMEM;
    char *at = arena->first_chunk + (size_t)chunk * CHUNK_BYTES;
    size_t stride = class_bytes(class);
    for (size_t n = CHUNK_BYTES / stride; n > 0; n--) {
        struct sni_record *record = (struct sni_record *)(void *)(at + (n - 1) * stride);
        record->class = class;
        record->next = arena->free[class];
        arena->free[class] = record;
    }
    arena->class_of[chunk] = (uint8_t)(class + 1);
    /* release: class_of, to sni_arena_find's acquire */
    sni_atomic_store(&arena->chunks, chunk + 1, release);
    return 0;
}

void sni_record_cache_init(struct sni_record_cache *cache, struct sni_arena *arena)
{
    *cache = (struct sni_record_cache){.arena = arena};
}

static int refill(struct sni_record_cache *cache, uint32_t class)
{
    struct sni_arena *arena = cache->arena;
    int rc = 0;
    sni_mutex_lock(&arena->lock);
    if (arena->free[class] == NULL)
        rc = grow(arena, class);
    while (arena->free[class] != NULL && cache->list[class].count < BATCH) {
        struct sni_record *record = arena->free[class];
        arena->free[class] = record->next;
        record->next = cache->list[class].first;
        cache->list[class].first = record;
        cache->list[class].count++;
    }
    sni_mutex_unlock(&arena->lock);
    return rc;
}

/* Give records back until `keep` are left. */
static void drain(struct sni_record_cache *cache, uint32_t class, uint32_t keep)
{
    struct sni_arena *arena = cache->arena;
    sni_mutex_lock(&arena->lock);
    while (cache->list[class].count > keep) {
        struct sni_record *record = cache->list[class].first;
        cache->list[class].first = record->next;
        cache->list[class].count--;
        record->next = arena->free[class];
        arena->free[class] = record;
    }
    sni_mutex_unlock(&arena->lock);
}

void sni_record_cache_finish(struct sni_record_cache *cache)
{
    for (uint32_t class = 0; class < SNI_RECORD_CLASSES; class ++)
        if (cache->list[class].count > 0)
            drain(cache, class, 0);
}

/* Only the holder of a record changes its generation; others read it. */
static void live_on(struct sni_record *record)
{
    /* relaxed, release: pairs with the acquire in sni_arena_find */
    uint32_t generation = sni_atomic_load(&record->generation, relaxed);
    sni_atomic_store(&record->generation, generation + 1, release);
}

int sni_record_get(struct sni_record_cache *cache, size_t bytes, struct sni_record **out)
{
    sni_assert(bytes > 0 && bytes <= SNI_RECORD_BYTES_MAX, "a record of that size does not exist");
    uint32_t class = (uint32_t)((bytes - 1) / SNI_RECORD_STEP);
    if (sni_unlikely(cache->list[class].first == NULL)) {
        int rc = refill(cache, class);
        if (rc < 0)
            return rc;
    }
    struct sni_record *record = cache->list[class].first;
    cache->list[class].first = record->next;
    cache->list[class].count--;
    live_on(record);
    *out = record;
    return 0;
}

void sni_record_put(struct sni_record_cache *cache, struct sni_record *record)
{
    uint32_t class = record->class;
    live_on(record);
    record->next = cache->list[class].first;
    cache->list[class].first = record;
    if (sni_unlikely(++cache->list[class].count > CACHED_MAX))
        drain(cache, class, CACHED_MAX - 2 * BATCH);
}

uint64_t sni_record_handle(const struct sni_record *record)
{
    /* relaxed: the caller holds the record */
    uint64_t generation = sni_atomic_load(&record->generation, relaxed);
    return (uint64_t)(uintptr_t)record | generation << 48;
}

struct sni_record *sni_arena_find(uint64_t handle)
{
    struct sni_arena *arena = sni_plat_region_base();
    if (sni_unlikely(arena == NULL))
        return NULL;
    uint64_t offset = (handle & UINT64_C(0xFFFFFFFFFFFF)) - (uint64_t)(uintptr_t)arena->first_chunk;
    uint64_t chunk = offset / CHUNK_BYTES;
    /* acquire: pairs with the release in grow, class_of is there */
    if (chunk >= sni_atomic_load(&arena->chunks, acquire))
        return NULL;
    size_t stride = class_bytes(arena->class_of[chunk] - 1u);
    size_t within = (size_t)(offset % CHUNK_BYTES);
    if (within % stride != 0 || within / stride >= CHUNK_BYTES / stride)
        return NULL;
    struct sni_record *record =
        (struct sni_record *)(void *)(arena->first_chunk + chunk * CHUNK_BYTES + within);
    /* acquire: pairs with live_on */
    uint32_t generation = sni_atomic_load(&record->generation, acquire);
    bool alive = generation % 2 == 1 && (generation & 0xFFFF) == handle >> 48;
    return alive ? record : NULL;
}

void sni_arena_each(struct sni_arena *arena, void (*fn)(struct sni_record *record, void *arg),
                    void *arg)
{
    /* acquire: pairs with the release in grow */
    uint32_t chunks = sni_atomic_load(&arena->chunks, acquire);
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        char *at = arena->first_chunk + (size_t)chunk * CHUNK_BYTES;
        size_t stride = class_bytes(arena->class_of[chunk] - 1u);
        for (size_t n = 0; n < CHUNK_BYTES / stride; n++)
            fn((struct sni_record *)(void *)(at + n * stride), arg);
    }
}
