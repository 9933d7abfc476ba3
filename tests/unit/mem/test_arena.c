/* SPDX-License-Identifier: MIT */
/* Records and their handles (R2, R21): what is alive is found, everything else is not. */
#include "harness.h"

#include "mem/arena.h"
#include "mem/arena_find.h"
#include "plat/memory.h"

#include <pthread.h>
#include <stdlib.h>

static struct sni_arena *arena;
static struct sni_record_cache cache;

static void begin(void)
{
    CHECK_EQ(sni_arena_get(&arena), 0);
    sni_record_cache_init(&cache, arena);
}

TEST(a_handle_finds_its_record_while_it_lives_and_not_after)
{
    begin();
    struct sni_record *r;
    CHECK_EQ(sni_record_get(&cache, 100, &r), 0);
    uint64_t handle = sni_record_handle(r);
    CHECK_PTR_EQ(sni_arena_find(handle), r);
    sni_record_put(&cache, r);
    CHECK_PTR_EQ(sni_arena_find(handle), NULL);
    struct sni_record *again;
    CHECK_EQ(sni_record_get(&cache, 100, &again), 0);
    CHECK_PTR_EQ(again, r); /* last in, first out */
    CHECK_PTR_EQ(sni_arena_find(handle), NULL);
    CHECK_PTR_EQ(sni_arena_find(sni_record_handle(again)), again);
    sni_record_put(&cache, again);
    sni_record_cache_finish(&cache);
}

TEST(a_record_is_found_by_its_address_while_it_lives)
{
    begin();
    struct sni_record *r;
    CHECK_EQ(sni_record_get(&cache, 100, &r), 0);
    uintptr_t at = (uintptr_t)r;
    uintptr_t wrong[] = {0, 8, at + 8, at + SNI_RECORD_STEP, at - 1, (uintptr_t)&at, UINTPTR_MAX};
    CHECK_PTR_EQ(sni_arena_at(at), r);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK(sni_arena_at(wrong[i]) == NULL);
    sni_record_put(&cache, r);
    CHECK(sni_arena_at(at) == NULL);
    sni_record_cache_finish(&cache);
}

TEST(no_number_that_is_not_a_handle_is_taken_for_one)
{
    begin();
    struct sni_record *r;
    CHECK_EQ(sni_record_get(&cache, 100, &r), 0);
    uint64_t handle = sni_record_handle(r);
    int local;
    void *heap = malloc(10);
    uint64_t wrong[] = {0,
                        1,
                        UINT64_MAX,
                        (uintptr_t)&local,
                        (uintptr_t)heap,
                        (uintptr_t)r,
                        handle + 1,
                        handle + 8,
                        handle + SNI_RECORD_STEP,
                        handle - 1,
                        handle ^ UINT64_C(1) << 48,
                        handle ^ UINT64_C(1) << 63,
                        (uintptr_t)arena,
                        (uintptr_t)arena + 64,
                        handle + (UINT64_C(1) << 40)};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_PTR_EQ(sni_arena_find(wrong[i]), NULL);
    for (uint64_t bit = 1; bit != 0; bit <<= 1)
        CHECK_PTR_EQ(sni_arena_find(handle ^ bit), NULL);
    free(heap);
    sni_record_put(&cache, r);
    sni_record_cache_finish(&cache);
}

/* What is found in one step is what is found in many: of records of one line, and no others. */
TEST(a_record_of_one_line_is_found_in_one_step_and_nothing_else_is)
{
    begin();
    struct sni_record *line;
    struct sni_record *lines;
    struct sni_record *cached;
    CHECK_EQ(sni_record_take(SNI_RECORD_STEP, &line), 0);
    CHECK_EQ(sni_record_take(SNI_RECORD_STEP + 1, &lines), 0);
    CHECK_EQ(sni_record_get(&cache, SNI_RECORD_STEP, &cached), 0);
    uint64_t handle = sni_record_handle(line);
    /* at + 8 there is a generation, too; relaxed: nobody else is here */
    sni_atomic_store(&line->own, (void *)(uintptr_t)(handle >> 48), relaxed);
    CHECK_PTR_EQ(sni_arena_find_step(handle), line);
    CHECK_PTR_EQ(sni_arena_find_other(handle), line);
    uint64_t wrong[] = {0,
                        1,
                        UINT64_MAX,
                        (uintptr_t)line,
                        (uintptr_t)&line,
                        handle + 8,
                        handle + SNI_RECORD_STEP,
                        handle ^ UINT64_C(1) << 48,
                        handle + (UINT64_C(2) << 48),
                        handle + SNI_ARENA_CHUNK_BYTES * UINT64_C(1000),
                        sni_record_handle(lines),
                        sni_record_handle(cached)};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_PTR_EQ(sni_arena_find_step(wrong[i]), NULL);
    sni_record_give(line);
    CHECK_PTR_EQ(sni_arena_find_step(handle), NULL);
    CHECK_EQ(sni_record_take(SNI_RECORD_STEP, &line), 0);
    CHECK_PTR_EQ(sni_arena_find_step(handle), NULL);
    CHECK_PTR_EQ(sni_arena_find_step(sni_record_handle(line)), line);
    sni_record_give(line);
    sni_record_give(lines);
    sni_record_put(&cache, cached);
    sni_record_cache_finish(&cache);
}

TEST(records_of_all_sizes_do_not_overlap)
{
    begin();
    enum { N = 3000 };
    static struct sni_record *r[N];
    for (int i = 0; i < N; i++) {
        size_t bytes = 32 + (size_t)i * 7 % (SNI_RECORD_BYTES_MAX - 32);
        CHECK_EQ(sni_record_get(&cache, bytes, &r[i]), 0);
        char *body = (char *)(r[i] + 1);
        for (size_t k = sizeof(*r[i]); k < bytes; k++)
            body[k - sizeof(*r[i])] = (char)i;
    }
    for (int i = 0; i < N; i++) {
        size_t bytes = 32 + (size_t)i * 7 % (SNI_RECORD_BYTES_MAX - 32);
        char *body = (char *)(r[i] + 1);
        CHECK_EQ(body[0], (char)i);
        CHECK_EQ(body[bytes - sizeof(*r[i]) - 1], (char)i);
        CHECK_PTR_EQ(sni_arena_find(sni_record_handle(r[i])), r[i]);
        sni_record_put(&cache, r[i]);
    }
    sni_record_cache_finish(&cache);
}

/* The chunk of a record. */
static char *chunk_of(const struct sni_record *record)
{
    uintptr_t from = (uintptr_t)arena->first_chunk;
    uintptr_t offset = (uintptr_t)record - from;
    return arena->first_chunk + offset / SNI_ARENA_CHUNK_BYTES * SNI_ARENA_CHUNK_BYTES;
}

TEST(few_records_cost_few_pages_and_many_come_by_the_chunk)
{
    enum { BYTES = 192, PER_CHUNK = SNI_ARENA_CHUNK_BYTES / BYTES, SOME = 4 << 10 };
    begin();
    static struct sni_record *r[PER_CHUNK + 1];
    CHECK_EQ(sni_record_get(&cache, BYTES, &r[0]), 0);
    char *chunk = chunk_of(r[0]);
    size_t rest = SNI_ARENA_CHUNK_BYTES - SOME;
    if (sni_plat_page_bytes() <= SOME)
        CHECK_EQ(sni_plat_untouched(chunk + SOME, rest), rest);
    uint64_t last = (uintptr_t)chunk + (PER_CHUNK - 1) * BYTES; /* which is not cut yet */
    CHECK_PTR_EQ(sni_arena_find(last + (UINT64_C(1) << 48)), NULL);
    CHECK(sni_arena_at(last) == NULL && sni_arena_around(last + 8) == NULL);
    for (size_t i = 1; i < PER_CHUNK; i++) {
        CHECK_EQ(sni_record_get(&cache, BYTES, &r[i]), 0);
        CHECK_PTR_EQ(chunk_of(r[i]), chunk);
    }
    CHECK_EQ(sni_record_get(&cache, BYTES, &r[PER_CHUNK]), 0);
    CHECK(chunk_of(r[PER_CHUNK]) != chunk);
    for (size_t at = 0; at < SNI_ARENA_CHUNK_BYTES; at += sni_plat_page_bytes())
        CHECK_EQ(sni_plat_untouched(chunk_of(r[PER_CHUNK]) + at, 1), 0);
    for (size_t i = 0; i <= PER_CHUNK; i++)
        sni_record_put(&cache, r[i]);
    sni_record_cache_finish(&cache);
}

static void count_living(struct sni_record *record, void *arg)
{
    if (sni_atomic_load(&record->generation, acquire) % 2 == 1)
        ++*(int *)arg;
}

TEST(each_visits_every_living_record)
{
    begin();
    struct sni_record *r[100];
    for (int i = 0; i < 100; i++)
        CHECK_EQ(sni_record_get(&cache, (size_t)i + 32, &r[i]), 0);
    int living = 0;
    sni_arena_each(arena, count_living, &living);
    CHECK_EQ(living, 100);
    for (int i = 0; i < 100; i++)
        sni_record_put(&cache, r[i]);
    living = 0;
    sni_arena_each(arena, count_living, &living);
    CHECK_EQ(living, 0);
    sni_record_cache_finish(&cache);
}

/* Records wander from thread to thread, as tasks that are stolen do. */
static struct sni_record *mailbox[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *trade(void *arg)
{
    struct sni_record_cache mine;
    sni_record_cache_init(&mine, arena);
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (int i = 0; i < 30000; i++) {
        struct sni_record *r;
        CHECK_EQ(sni_record_get(&mine, 128, &r), 0);
        CHECK_PTR_EQ(sni_arena_find(sni_record_handle(r)), r);
        seed = seed * 1103515245 + 12345;
        unsigned slot = seed >> 16 & 63;
        pthread_mutex_lock(&lock);
        struct sni_record *other = mailbox[slot];
        mailbox[slot] = r;
        pthread_mutex_unlock(&lock);
        if (other != NULL)
            sni_record_put(&mine, other);
    }
    sni_record_cache_finish(&mine);
    return NULL;
}

TEST(records_freed_by_other_threads_are_not_lost_or_given_twice)
{
    begin();
    pthread_t thread[4];
    for (uintptr_t i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, trade, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 64; i++)
        if (mailbox[i] != NULL)
            sni_record_put(&cache, mailbox[i]);
    int living = 0;
    sni_arena_each(arena, count_living, &living);
    CHECK_EQ(living, 0);
    sni_record_cache_finish(&cache);
}
