/* SPDX-License-Identifier: MIT */
/* Stacks (R51): guarded, one resident page each, cached, trimmed, by the hundred thousand. */
#include "harness.h"

#include "fiber/stack.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- the process, seen from outside -------------------------------------------------------- */

/* Does the kernel refuse to read this byte? */
static bool is_guarded(const void *at)
{
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    ssize_t n = write(ends[1], at, 1);
    bool refused = n < 0 && errno == EFAULT;
    close(ends[0]);
    close(ends[1]);
    return refused;
}

/* Field `which` of /proc/self/statm, in bytes: 0 is the address space, 1 what is resident. */
static size_t statm(int which)
{
    unsigned long pages[2] = {0, 0};
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK_EQ(fscanf(file, "%lu %lu", &pages[0], &pages[1]), 2);
    fclose(file);
    return pages[which] * sni_plat_page_bytes();
}

static size_t count_mappings(void)
{
    size_t lines = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file != NULL);
    for (int c = getc(file); c != EOF; c = getc(file))
        lines += c == '\n';
    fclose(file);
    return lines;
}

/* Sanitizers reserve terabytes and multiply what is resident. */
static bool is_sanitized(void)
{
    return statm(0) > (size_t)1 << 40;
}

/* ---- a pool with one cache ----------------------------------------------------------------- */

struct place {
    struct sni_stack_pool pool;
    struct sni_stack_cache cache;
};

static void place_init(struct place *p, const struct sni_stack_config *cfg)
{
    CHECK_EQ(sni_stack_pool_init(&p->pool, cfg), 0);
    sni_stack_cache_init(&p->cache, &p->pool);
}

static void place_finish(struct place *p)
{
    sni_stack_cache_finish(&p->cache);
    sni_stack_pool_finish(&p->pool);
}

static struct sni_stack *get(struct place *p, size_t bytes)
{
    struct sni_stack *stack = NULL;
    CHECK_EQ(sni_stack_get(&p->cache, bytes, &stack), 0);
    return stack;
}

static struct sni_stack_stats stats_of(struct place *p)
{
    struct sni_stack_stats stats;
    sni_stack_pool_stats(&p->pool, &stats);
    return stats;
}

/* `n` stacks of `bytes`, each with its record only; freed by the caller. */
static struct sni_stack **get_many(struct place *p, size_t n, size_t bytes)
{
    struct sni_stack **all = calloc(n, sizeof(struct sni_stack *));
    CHECK(all != NULL);
    for (size_t i = 0; i < n; i++)
        all[i] = get(p, bytes);
    return all;
}

static void put_many(struct place *p, struct sni_stack **all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sni_stack_put(&p->cache, all[i]);
    free(all);
}

/* ---- one stack ----------------------------------------------------------------------------- */

TEST(a_default_stack_has_64_kib_with_a_guard_below)
{
    struct place p;
    place_init(&p, NULL);
    struct sni_stack *s = get(&p, 0);
    CHECK_LE(s->hi - s->lo, 60 * 1024);
    CHECK_GE(s->hi - s->lo, 58 * 1024);
    CHECK_EQ((uintptr_t)s->lo % sni_plat_page_bytes(), 0);
    CHECK_EQ((uintptr_t)s->hi % 64, 0);
    memset(s->lo, 1, (size_t)(s->hi - s->lo));
    CHECK(is_guarded(s->lo - 1));
    CHECK(is_guarded(s->lo - sni_plat_page_bytes()));
    sni_stack_put(&p.cache, s);
    place_finish(&p);
}

static void check_sizes(enum sni_guard_kind kind)
{
    struct place p;
    place_init(&p, &(struct sni_stack_config){.guard = kind});
    size_t page = sni_plat_page_bytes();
    for (size_t bytes = 4096; bytes <= (size_t)1 << 30; bytes *= 2) {
        struct sni_stack *s = get(&p, bytes);
        size_t usable = (size_t)(s->hi - s->lo);
        CHECK_LE(usable, bytes < 2 * page ? page : bytes - page);
        CHECK_GE(usable + page + 1024, bytes);
        CHECK_GE(usable, page - 64);
        s->lo[0] = 1;
        s->hi[-1] = 1;
        CHECK(is_guarded(s->lo - 1));
        struct sni_stack *t = get(&p, bytes - 1); /* a second one, beside it or not */
        CHECK(t->lo >= s->hi || t->hi <= s->lo);
        sni_stack_put(&p.cache, t);
        sni_stack_put(&p.cache, s);
    }
    CHECK_EQ(stats_of(&p).in_use, 0);
    CHECK_EQ(stats_of(&p).guards[SNI_GUARD_NONE], 0);
    place_finish(&p);
}

TEST(stacks_of_4_kib_to_1_gib_are_usable_to_both_ends_and_guarded)
{
    check_sizes(SNI_GUARD_AUTO);
}

TEST(stacks_of_4_kib_to_1_gib_are_guarded_by_mprotect_too)
{
    check_sizes(SNI_GUARD_MPROTECT);
}

TEST(a_stack_of_more_than_1_gib_is_refused)
{
    struct place p;
    place_init(&p, NULL);
    struct sni_stack *s = NULL;
    CHECK_EQ(sni_stack_get(&p.cache, ((size_t)1 << 30) + 1, &s), -EINVAL);
    CHECK_EQ(sni_stack_get(&p.cache, SIZE_MAX, &s), -EINVAL);
    CHECK_PTR_EQ(s, NULL);
    CHECK_EQ(stats_of(&p).reserved_bytes, 0);
    place_finish(&p);
    struct sni_stack_pool pool;
    CHECK_EQ(sni_stack_pool_init(&pool, &(struct sni_stack_config){.default_bytes = SIZE_MAX}),
             -EINVAL);
}

TEST(a_zeroed_pool_and_cache_may_be_finished)
{
    struct place p = {0};
    place_finish(&p);
}

TEST(the_high_water_mark_is_the_deepest_page_touched)
{
    struct place p;
    size_t page = sni_plat_page_bytes();
    place_init(&p, NULL);
    struct sni_stack *s = get(&p, 1 << 20);
    CHECK_LE(sni_stack_high_water(s), page);
    s->hi[-5 * (ptrdiff_t)page] = 1;
    CHECK_GE(sni_stack_high_water(s), 5 * page);
    CHECK_LE(sni_stack_high_water(s), 6 * page);
    s->lo[0] = 1;
    CHECK_EQ(sni_stack_high_water(s), s->hi - s->lo);
    sni_stack_put(&p.cache, s);
    struct sni_stack *big = get(&p, 64 << 20);
    big->hi[-(20 << 20)] = 1;
    CHECK_GE(sni_stack_high_water(big), 20 << 20);
    CHECK_LE(sni_stack_high_water(big), (20 << 20) + (int)page);
    sni_stack_put(&p.cache, big);
    place_finish(&p);
}

FAIL_TEST(a_stack_put_back_twice_is_reported, "put back twice")
{
    struct place p;
    place_init(&p, NULL);
    struct sni_stack *s = get(&p, 0);
    sni_stack_put(&p.cache, s);
    sni_stack_put(&p.cache, s);
}

/* ---- reuse --------------------------------------------------------------------------------- */

TEST(the_stack_used_last_is_given_first_and_is_warm)
{
    struct place p;
    place_init(&p, NULL);
    struct sni_stack *a = get(&p, 0);
    struct sni_stack *b = get(&p, 0);
    memset(a->lo, 7, 100);
    memset(b->lo, 8, 100);
    sni_stack_put(&p.cache, a);
    sni_stack_put(&p.cache, b);
    CHECK_PTR_EQ(get(&p, 0), b);
    CHECK_PTR_EQ(get(&p, 65536), a); /* the same class by another name */
    CHECK_EQ(a->lo[99], 7);
    CHECK_EQ(b->lo[99], 8);
    sni_stack_put(&p.cache, a);
    sni_stack_put(&p.cache, b);
    place_finish(&p);
}

TEST(a_cache_is_bounded_and_shares_through_the_pool)
{
    struct place p;
    struct sni_stack_cache other;
    place_init(&p, &(struct sni_stack_config){.cached_max = 8});
    sni_stack_cache_init(&other, &p.pool);
    struct sni_stack **all = get_many(&p, 100, 0);
    CHECK_EQ(stats_of(&p).in_use, 100);
    put_many(&p, all, 100);
    struct sni_stack_stats stats = stats_of(&p);
    CHECK_EQ(stats.in_use, 0);
    CHECK_EQ(stats.cached, 100);
    CHECK_LE(p.cache.lists[16 - SNI_STACK_CLASS_MIN].count.raw_, 8);
    size_t reserved = stats.reserved_bytes;
    for (int i = 0; i < 92; i++) { /* what the first cache keeps is its own */
        struct sni_stack *s = NULL;
        CHECK_EQ(sni_stack_get(&other, 0, &s), 0);
        CHECK_LE(other.lists[16 - SNI_STACK_CLASS_MIN].count.raw_, 8);
    }
    stats = stats_of(&p);
    CHECK_EQ(stats.in_use, 92);
    CHECK_EQ(stats.cached, 8);
    CHECK_EQ(stats.reserved_bytes, reserved);
    sni_stack_cache_finish(&other);
    place_finish(&p); /* with stacks in use: their owners are never to run again */
}

TEST(big_stacks_beyond_a_small_cache_are_given_back)
{
    struct place p;
    place_init(&p, NULL);
    size_t before = statm(0);
    struct sni_stack **all = get_many(&p, 10, 16 << 20);
    memset(all[9]->lo, 1, 8 << 20);
    CHECK_GE(statm(0), before + (160 << 20));
    put_many(&p, all, 10);
    CHECK_LE(stats_of(&p).cached, 2);
    CHECK_LE(stats_of(&p).reserved_bytes, 32 << 20);
    struct sni_stack *s = get(&p, 16 << 20);
    CHECK_LE(sni_stack_high_water(s), 64 * 1024); /* cached ones keep little */
    sni_stack_put(&p.cache, s);
    sni_stack_cache_finish(&p.cache);
    CHECK_EQ(stats_of(&p).reserved_bytes, 0);
    sni_stack_pool_finish(&p.pool);
}

/* ---- many ---------------------------------------------------------------------------------- */

TEST(a_hundred_thousand_guarded_stacks_cost_a_page_each_and_few_mappings, .limit_s = 60)
{
    if (sni_plat_guard_kind() != SNI_GUARD_MADVISE)
        SKIP("needs a kernel with MADV_GUARD_INSTALL (6.13)");
    bool sanitized = is_sanitized();
    size_t n = sanitized ? 5000 : 100 * 1000;
    struct place p;
    place_init(&p, NULL);
    struct sni_stack **all = calloc(n, sizeof(struct sni_stack *));
    CHECK(all != NULL);
    memset(all, 1, n * sizeof(struct sni_stack *));
    size_t mappings = count_mappings();
    size_t resident = statm(1);
    for (size_t i = 0; i < n; i++) {
        all[i] = get(&p, 0);
        memset(all[i]->hi - 1024, 1, 1024); /* the frames of an idle fiber */
    }
    size_t each = (statm(1) - resident) / n;
    size_t more = count_mappings() - mappings;
    printf("%zu stacks: %zu bytes resident each, %zu mappings\n", n, each, more);
    CHECK_LE(each, sni_plat_page_bytes() + (sanitized ? 8192 : 64));
    CHECK_LE(more, sanitized ? 100 : 20);
    struct sni_stack_stats stats = stats_of(&p);
    CHECK_EQ(stats.in_use, n);
    CHECK_GE(stats.guards[SNI_GUARD_MADVISE], n);
    CHECK_EQ(stats.guards[SNI_GUARD_NONE], 0);
    for (size_t i = 0; i < n; i += n / 500)
        CHECK(is_guarded(all[i]->lo - 1) && !is_guarded(all[i]->lo));
    put_many(&p, all, n);
    place_finish(&p);
    if (!sanitized)
        CHECK_LE(count_mappings(), mappings + 5);
}

TEST(stacks_go_on_without_guards_where_mprotect_has_no_more_mappings, .limit_s = 60)
{
    if (is_sanitized())
        return; /* the sanitizer itself needs the mappings */
    enum { STACKS = 40 * 1000 };
    struct place p;
    place_init(&p, &(struct sni_stack_config){.guard = SNI_GUARD_MPROTECT,
                                              .mprotect_guards_max = SIZE_MAX / 2});
    struct sni_stack **all = get_many(&p, STACKS, 0);
    struct sni_stack_stats stats = stats_of(&p);
    printf("%zu guarded, %zu not\n", stats.guards[SNI_GUARD_MPROTECT],
           stats.guards[SNI_GUARD_NONE]);
    CHECK_GT(stats.guards[SNI_GUARD_MPROTECT], 20 * 1000);
    CHECK_GT(stats.guards[SNI_GUARD_NONE], 1000);
    CHECK_EQ(all[0]->guard, SNI_GUARD_MPROTECT);
    CHECK_EQ(all[STACKS - 1]->guard, SNI_GUARD_NONE);
    CHECK(!sni_stack_is_guard_hit(all[STACKS - 1], all[STACKS - 1]->lo - 1, NULL));
    place_finish(&p);
    free(all);
}

TEST(the_limit_for_mprotect_leaves_mappings_to_others)
{
    struct place p;
    place_init(&p,
               &(struct sni_stack_config){.guard = SNI_GUARD_MPROTECT, .mprotect_guards_max = 100});
    struct sni_stack **all = get_many(&p, 300, 8192);
    struct sni_stack_stats stats = stats_of(&p);
    CHECK_GE(stats.guards[SNI_GUARD_MPROTECT], 100);
    CHECK_LE(stats.guards[SNI_GUARD_MPROTECT], 132);
    CHECK_GE(stats.guards[SNI_GUARD_MPROTECT] + stats.guards[SNI_GUARD_NONE], 300);
    put_many(&p, all, 300);
    place_finish(&p);
    CHECK_LT(sni_plat_guard_limit(SNI_GUARD_MPROTECT), 32 * 1024);
}

/* ---- trimming ------------------------------------------------------------------------------ */

TEST(cold_stacks_give_their_memory_back_and_stay_guarded, .limit_s = 60)
{
    enum { STACKS = 4000, DEEP = 16 * 1024 };
    struct place p;
    place_init(&p, NULL);
    struct sni_stack **all = get_many(&p, STACKS, 0);
    for (int i = 0; i < STACKS; i++)
        memset(all[i]->hi - DEEP, 1, DEEP);
    size_t resident = statm(1);
    put_many(&p, all, STACKS);
    CHECK_EQ(sni_stack_pool_trim(&p.pool, SIZE_MAX), 0); /* this begins the period: none is cold */
    sni_stack_cache_trim(&p.cache);
    sni_stack_cache_trim(&p.cache); /* the cache's own are cold now, and the pool's */
    CHECK_EQ(stats_of(&p).cached, STACKS);
    size_t first = sni_stack_pool_trim(&p.pool, 1000);
    CHECK_EQ(first, 1000);
    size_t rest = sni_stack_pool_trim(&p.pool, SIZE_MAX);
    rest += sni_stack_pool_trim(&p.pool, SIZE_MAX);
    CHECK_EQ(first + rest, STACKS);
    struct sni_stack_stats stats = stats_of(&p);
    CHECK_EQ(stats.cached, 0);
    CHECK_EQ(stats.trimmed, STACKS);
    CHECK_LE(stats.slabs, 1);
    if (!is_sanitized())
        CHECK_LE(statm(1) + (size_t)STACKS * DEEP / 10 * 9, resident);
    struct sni_stack *again = get(&p, 0);
    CHECK_LE(sni_stack_high_water(again), sni_plat_page_bytes());
    CHECK_EQ(again->hi[-DEEP / 2], 0);
    CHECK(is_guarded(again->lo - 1));
    sni_stack_put(&p.cache, again);
    place_finish(&p);
}

/* Its header lies in the pool; a second slab, also one of another size, has its own. */
TEST(the_first_slab_costs_no_page_and_its_header_serves_a_later_one_when_it_is_gone)
{
    enum { FIRST = 16 }; /* of 64 KiB, in a slab of 1 MiB */
    struct place p;
    place_init(&p, NULL);
    struct sni_stack **all = get_many(&p, FIRST, 0);
    CHECK_EQ(stats_of(&p).reserved_bytes, 1 << 20);
    CHECK(all[0]->slab == &p.pool.first && all[FIRST - 1]->slab == &p.pool.first);
    struct sni_stack *small = get(&p, 16 << 10), *next = get(&p, 0);
    CHECK(small->slab != &p.pool.first && next->slab != &p.pool.first);
    CHECK(small->slab != next->slab);
    CHECK_EQ(stats_of(&p).slabs, 3);
    put_many(&p, all, FIRST);
    for (int i = 0; i < 4; i++) {
        sni_stack_cache_trim(&p.cache);
        sni_stack_pool_trim(&p.pool, SIZE_MAX);
    }
    CHECK_EQ(stats_of(&p).slabs, 2);
    CHECK_EQ(p.pool.first.bytes, 0);
    struct sni_stack *large = get(&p, 256 << 10);
    CHECK(large->slab == &p.pool.first);
    memset(large->lo, 1, (size_t)(large->hi - large->lo));
    CHECK(is_guarded(large->lo - 1));
    sni_stack_put(&p.cache, large);
    sni_stack_put(&p.cache, next);
    sni_stack_put(&p.cache, small);
    place_finish(&p);
}

TEST(a_guard_survives_the_discarding_of_its_stack)
{
    enum sni_guard_kind kinds[] = {sni_plat_guard_kind(), SNI_GUARD_MPROTECT};
    for (int k = 0; k < 2; k++) {
        struct place p;
        place_init(&p, &(struct sni_stack_config){.guard = kinds[k]});
        struct sni_stack *s = get(&p, 0);
        char *lo = s->lo;
        sni_stack_put(&p.cache, s);
        for (int i = 0; i < 4; i++) {
            sni_stack_cache_trim(&p.cache);
            sni_stack_pool_trim(&p.pool, SIZE_MAX);
        }
        CHECK_EQ(stats_of(&p).trimmed, 1);
        CHECK(is_guarded(lo - 1));
        s = get(&p, 0);
        CHECK_PTR_EQ(s->lo, lo);
        CHECK_EQ(s->guard, kinds[k]);
        CHECK(is_guarded(lo - 1) && !is_guarded(lo));
        sni_stack_put(&p.cache, s);
        place_finish(&p);
    }
}

TEST(stacks_in_use_all_the_time_are_not_trimmed)
{
    struct place p;
    place_init(&p, NULL);
    struct sni_stack **all = get_many(&p, 50, 0);
    put_many(&p, all, 50);
    sni_stack_cache_trim(&p.cache);
    for (int i = 0; i < 5; i++) {
        put_many(&p, get_many(&p, 50, 0), 50);
        sni_stack_cache_trim(&p.cache);
        CHECK_EQ(p.cache.lists[16 - SNI_STACK_CLASS_MIN].count.raw_, 50);
    }
    put_many(&p, get_many(&p, 20, 0), 20);
    sni_stack_cache_trim(&p.cache);
    CHECK_EQ(p.cache.lists[16 - SNI_STACK_CLASS_MIN].count.raw_, 20); /* 30 lay unused */
    place_finish(&p);
}

/* ---- exhaustion ---------------------------------------------------------------------------- */

TEST(address_space_that_is_used_up_is_an_error_and_leaks_nothing)
{
    if (is_sanitized())
        return; /* the sanitizer's own address space is beyond any limit */
    struct rlimit before, tight;
    struct place p;
    place_init(&p, NULL);
    struct sni_stack **all = calloc(5000, sizeof(struct sni_stack *));
    CHECK(all != NULL);
    CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
    size_t size = statm(0);
    tight = before;
    tight.rlim_cur = size + (40 << 20);
    CHECK_EQ(setrlimit(RLIMIT_AS, &tight), 0);
    size_t n = 0;
    int rc = 0;
    while (n < 5000 && (rc = sni_stack_get(&p.cache, 0, &all[n])) == 0)
        n++;
    CHECK_EQ(rc, -ENOMEM);
    CHECK_GE(n, 600); /* of 640: slabs shrink to what there is */
    struct sni_stack *big = NULL;
    CHECK_EQ(sni_stack_get(&p.cache, 512 << 20, &big), -ENOMEM);
    CHECK_EQ(sni_stack_get(&p.cache, 2 << 20, &big), -ENOMEM);
    CHECK_PTR_EQ(big, NULL);
    CHECK_EQ(stats_of(&p).in_use, n);
    sni_stack_put(&p.cache, all[--n]);
    CHECK_EQ(sni_stack_get(&p.cache, 0, &all[n]), 0); /* what is there is still given */
    CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
    CHECK_EQ(sni_stack_get(&p.cache, 0, &big), 0);
    sni_stack_put(&p.cache, big);
    for (size_t i = 0; i <= n; i++)
        sni_stack_put(&p.cache, all[i]);
    place_finish(&p);
    CHECK_EQ(statm(0), size);
    free(all);
}

/* ---- threads ------------------------------------------------------------------------------- */

enum { THREADS = 4, SHELF = 64, TURNS = 20 * 1000 };

/* Stacks wander: each thread takes what another left on the shelf and leaves one of its own. */
static struct {
    struct sni_stack_pool pool;
    struct sni_mutex mutex;
    struct sni_stack *shelf[SHELF];
} market;

static void *trade(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    struct sni_stack_cache cache;
    sni_stack_cache_init(&cache, &market.pool);
    for (int i = 0; i < TURNS; i++) {
        struct sni_stack *mine = NULL;
        CHECK_EQ(sni_stack_get(&cache, (size_t)8192 << (i % 3), &mine), 0);
        memset(mine->lo, (int)seed, 64);
        mine->hi[-1] = 1;
        seed = seed * 1103515245 + 12345;
        struct sni_stack **place = &market.shelf[seed / 65536 % SHELF];
        sni_mutex_lock(&market.mutex);
        struct sni_stack *theirs = *place;
        *place = mine;
        sni_mutex_unlock(&market.mutex);
        if (theirs != NULL)
            sni_stack_put(&cache, theirs);
        if (i % 1000 == 0) {
            sni_stack_cache_trim(&cache);
            sni_stack_pool_trim(&market.pool, 10);
        }
    }
    sni_stack_cache_finish(&cache);
    return NULL;
}

TEST(threads_pass_stacks_around, .limit_s = 60)
{
    pthread_t threads[THREADS];
    struct sni_stack_stats stats;
    CHECK_EQ(sni_stack_pool_init(&market.pool, &(struct sni_stack_config){.cached_max = 4}), 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, trade, (void *)(i + 1)), 0);
    for (int i = 0; i < 100; i++)
        sni_stack_pool_stats(&market.pool, &stats); /* also while they trade */
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    size_t left = 0;
    for (int i = 0; i < SHELF; i++)
        left += market.shelf[i] != NULL;
    sni_stack_pool_stats(&market.pool, &stats);
    CHECK_EQ(stats.in_use, left);
    sni_stack_pool_finish(&market.pool);
}
