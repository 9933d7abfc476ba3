/* SPDX-License-Identifier: MIT */
/* arena.c - chunks of records in the process's region.
 *
 * The region begins with the arena itself: a lock, the number of chunks in use, the free
 * records of each class, and one byte per chunk that tells its class. A chunk is never given
 * back and never changes its class, so an address, once a record's, stays one: that is what
 * makes a stale handle safe to look at. Memory of a burst stays in the free lists; tasks are
 * small and bursts return.
 *
 * A chunk is cut into records piece by piece, and a piece is made memory as a whole, since its list
 * is written at once. The first piece of a class has one page, each further one is twice as large,
 * up to a chunk: who has a few tasks pays for a few, and who has a million makes a system call for
 * each 64 KiB. What is not cut yet looks like a record that is dead.
 *
 * Caches exchange records with the arena in batches, under the lock: a get or put that finds
 * its cache neither empty nor full takes neither lock nor atomic operation. The first batches are
 * small, so that many runtimes with few tasks do not keep what others could use. A record may be
 * put into another cache than it came from; batches even that out.
 *
 * Records that are taken one by one, without a cache, are of another kind: they have chunks of
 * their own, so a handle of one kind is never taken for one of the other.
 *
 * Generations: a put makes the generation even (dead), a get makes it odd (alive). Finding is
 * racy by nature: a handle may go stale right after. Callers that must know hold a reference. */
#include "mem/arena.h"

#include "base/assert.h"
#include "mem/arena_find.h"
#include "plat/memory.h"

#include <sinew/errno.h>

enum {
    CHUNK_BYTES = SNI_ARENA_CHUNK_BYTES,
    PIECE_BYTES_LEAST = 4 << 10,
    BATCH = 64,      /* records that change hands at once                       */
    BATCH_FIRST = 8, /* the first time; then twice as many as the last          */
    CACHED_MAX = SNI_RECORDS_CACHED_MAX,
    OTHER = SNI_ARENA_OTHER,
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

static uint32_t class_bytes(uint32_t class)
{
    return (class % SNI_RECORD_CLASSES + 1) * SNI_RECORD_STEP;
}

/* Have the next chunk be one of `class`. Under the lock. */
static int open_chunk(struct sni_arena *arena, uint32_t class, struct sni_arena_rest *rest)
{
    /* relaxed: under the lock only we change it */
    uint32_t chunk = sni_atomic_load(&arena->chunks, relaxed);
    if (chunk == arena->chunks_max)
        return -ENOMEM;
    rest->at = arena->first_chunk + (size_t)chunk * CHUNK_BYTES;
    rest->bytes = CHUNK_BYTES;
    arena->class_of[chunk] = (uint8_t)(class + 1);
    /* release: class_of, to sni_arena_find's acquire */
    sni_atomic_store(&arena->chunks, chunk + 1, release);
    return 0;
}

/* Put the records of a piece into the free list of `class`. Under the lock. */
static int grow(struct sni_arena *arena, uint32_t class)
{
    struct sni_arena_rest *rest = &arena->rest[class];
    uint32_t stride = class_bytes(class);
    int rc = rest->bytes < stride ? open_chunk(arena, class, rest) : 0;
    if (rc < 0)
        return rc;
    if (rest->piece < CHUNK_BYTES)
        rest->piece = rest->piece == 0 ? PIECE_BYTES_LEAST : 2 * rest->piece;
    uint32_t n = (rest->piece < rest->bytes ? rest->piece : rest->bytes) / stride;
    sni_plat_populate(rest->at, (size_t)n * stride);
    for (uint32_t i = n; i > 0; i--) {
        struct sni_record *record = (struct sni_record *)(void *)(rest->at + (i - 1) * stride);
        record->class = class;
        record->next = arena->free[class];
        arena->free[class] = record;
    }
    rest->at += (size_t)n * stride;
    rest->bytes -= n * stride;
    return 0;
}

void sni_record_cache_init(struct sni_record_cache *cache, struct sni_arena *arena)
{
    *cache = (struct sni_record_cache){.arena = arena};
}

int sni_record_cache_refill(struct sni_record_cache *cache, uint32_t class)
{
    struct sni_arena *arena = cache->arena;
    int rc = 0;
    uint32_t last = cache->list[class].batch;
    uint32_t batch = last == 0 ? BATCH_FIRST : last < BATCH ? 2 * last : BATCH;
    cache->list[class].batch = batch;
    sni_mutex_lock(&arena->lock);
    if (arena->free[class] == NULL)
        rc = grow(arena, class);
    while (arena->free[class] != NULL && cache->list[class].count < batch) {
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

void sni_record_cache_drain(struct sni_record_cache *cache, uint32_t class)
{
    drain(cache, class, CACHED_MAX - 2 * BATCH);
}

void sni_record_cache_finish(struct sni_record_cache *cache)
{
    for (uint32_t class = 0; class < SNI_RECORD_CLASSES; class ++)
        if (cache->list[class].count > 0)
            drain(cache, class, 0);
}

static int take(struct sni_arena *arena, uint32_t class, struct sni_record **out)
{
    int rc = 0;
    sni_mutex_lock(&arena->lock);
    if (arena->free[class] == NULL)
        rc = grow(arena, class);
    struct sni_record *record = arena->free[class];
    if (record != NULL)
        arena->free[class] = record->next;
    sni_mutex_unlock(&arena->lock);
    if (record == NULL)
        return rc;
    sni_record_live_on_(record);
    *out = record;
    return 0;
}

int sni_record_get_uncached(struct sni_arena *arena, size_t bytes, struct sni_record **out)
{
    return take(arena, (uint32_t)((bytes - 1) / SNI_RECORD_STEP), out);
}

int sni_record_take(size_t bytes, struct sni_record **out)
{
    struct sni_arena *arena;
    int rc = sni_arena_get(&arena);
    if (rc < 0)
        return rc;
    return take(arena, OTHER + (uint32_t)((bytes - 1) / SNI_RECORD_STEP), out);
}

void sni_record_give(struct sni_record *record)
{
    struct sni_arena *arena = sni_plat_region_base();
    sni_record_live_on_(record);
    sni_mutex_lock(&arena->lock);
    record->next = arena->free[record->class];
    arena->free[record->class] = record;
    sni_mutex_unlock(&arena->lock);
}

/* Does a record of `class` begin `within` bytes after the start of a chunk? Called for every use
 * of a handle, hence without a division: in steps, `within` is below 2^10 and `factor` rounds
 * 2^16 / steps up, for which the quotient is exact. */
static bool begins_record(uint32_t class, uint32_t within)
{
    class %= SNI_RECORD_CLASSES;
#define FACTOR(n)  (((1u << 16) + (n) - 1) / (n))
#define FACTORS(n) FACTOR(n), FACTOR((n) + 1), FACTOR((n) + 2), FACTOR((n) + 3)
    static const uint32_t factor[SNI_RECORD_CLASSES] = {
        FACTORS(1),  FACTORS(5),  FACTORS(9),  FACTORS(13), FACTORS(17), FACTORS(21),
        FACTORS(25), FACTORS(29), FACTORS(33), FACTORS(37), FACTORS(41), FACTORS(45),
        FACTORS(49), FACTORS(53), FACTORS(57), FACTORS(61)};
#undef FACTORS
#undef FACTOR
    uint32_t steps = within / SNI_RECORD_STEP;
    uint32_t nth = steps * factor[class] >> 16;
    uint32_t end = (nth + 1) * (class + 1);
    return within % SNI_RECORD_STEP == 0 && nth * (class + 1) == steps &&
           end <= CHUNK_BYTES / SNI_RECORD_STEP;
}

/* The record at `address`, dead or alive, if its class is one of `first` and the following. */
static inline struct sni_record *record_at(uint64_t address, uint32_t first)
{
    struct sni_arena *arena = sni_plat_region_base();
    if (sni_unlikely(arena == NULL))
        return NULL;
    uint64_t offset = address - (uint64_t)(uintptr_t)arena->first_chunk;
    uint64_t chunk = offset / CHUNK_BYTES;
    /* acquire: pairs with the release in open_chunk, class_of is there */
    if (chunk >= sni_atomic_load(&arena->chunks, acquire))
        return NULL;
    uint32_t within = (uint32_t)(offset % CHUNK_BYTES);
    uint32_t class = arena->class_of[chunk] - 1u;
    if (class - first >= SNI_RECORD_CLASSES || !begins_record(class, within))
        return NULL;
    return (struct sni_record *)(void *)(arena->first_chunk + chunk * CHUNK_BYTES + within);
}

/* The living record of `handle`, if its class is one of `first` and the following. */
static inline struct sni_record *find(uint64_t handle, uint32_t first)
{
    struct sni_record *record = record_at(handle & UINT64_C(0xFFFFFFFFFFFF), first);
    if (record == NULL)
        return NULL;
    /* acquire: pairs with live_on */
    uint32_t generation = sni_atomic_load(&record->generation, acquire);
    bool alive = generation % 2 == 1 && (generation & 0xFFFF) == handle >> 48;
    return alive ? record : NULL;
}

struct sni_record *sni_arena_find(uint64_t handle)
{
    return find(handle, 0);
}

struct sni_record *sni_arena_find_other(uint64_t handle)
{
    return find(handle, OTHER);
}

struct sni_record *sni_arena_at(uintptr_t address)
{
    struct sni_record *record = record_at(address, 0);
    /* acquire: pairs with live_on */
    bool alive = record != NULL && sni_atomic_load(&record->generation, acquire) % 2 == 1;
    return alive ? record : NULL;
}

struct sni_record *sni_arena_around(uintptr_t address)
{
    struct sni_arena *arena = sni_plat_region_base();
    if (arena == NULL)
        return NULL;
    uint64_t offset = address - (uint64_t)(uintptr_t)arena->first_chunk;
    uint64_t chunk = offset / CHUNK_BYTES;
    /* acquire: pairs with the release in open_chunk, class_of is there */
    if (chunk >= sni_atomic_load(&arena->chunks, acquire))
        return NULL;
    size_t stride = class_bytes(arena->class_of[chunk] - 1u);
    size_t nth = offset % CHUNK_BYTES / stride;
    if ((nth + 1) * stride > CHUNK_BYTES)
        return NULL;
    char *at = arena->first_chunk + chunk * CHUNK_BYTES + nth * stride;
    struct sni_record *record = (struct sni_record *)(void *)at;
    /* acquire: pairs with live_on */
    return sni_atomic_load(&record->generation, acquire) % 2 == 1 ? record : NULL;
}

bool sni_record_is_cached(const struct sni_record *record)
{
    return record->class < OTHER;
}

void sni_arena_bounds(uintptr_t *from, uintptr_t *to)
{
    const struct sni_arena *arena = sni_plat_region_base();
    *from = (uintptr_t)arena;
    *to =
        arena == NULL ? 0 : (uintptr_t)arena->first_chunk + (size_t)arena->chunks_max * CHUNK_BYTES;
}

static void each(struct sni_arena *arena, bool others,
                 void (*fn)(struct sni_record *record, void *arg), void *arg)
{
    /* acquire: pairs with the release in open_chunk */
    uint32_t chunks = sni_atomic_load(&arena->chunks, acquire);
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        if ((arena->class_of[chunk] > OTHER) != others)
            continue;
        char *at = arena->first_chunk + (size_t)chunk * CHUNK_BYTES;
        size_t stride = class_bytes(arena->class_of[chunk] - 1u);
        for (size_t n = 0; n < CHUNK_BYTES / stride; n++)
            fn((struct sni_record *)(void *)(at + n * stride), arg);
    }
}

void sni_arena_each(struct sni_arena *arena, void (*fn)(struct sni_record *record, void *arg),
                    void *arg)
{
    each(arena, false, fn, arg);
}

void sni_arena_each_other(struct sni_arena *arena, void (*fn)(struct sni_record *record, void *arg),
                          void *arg)
{
    each(arena, true, fn, arg);
}
