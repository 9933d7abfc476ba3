/* SPDX-License-Identifier: MIT */
/* High-water marks of stacks by spawn site (R51): the deepest of each, of the right one, from all
 * threads, in bounded memory. */
#include "fiber/highwater.h"
#include "fiber/stack.h"
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct sni_highwater_mark mark_of(const struct sni_highwater *table, const char *at)
{
    struct sni_highwater_mark mark;
    struct sni_highwater_mark found = {.at = at};
    int times = 0;
    for (size_t cursor = 0; sni_highwater_next(table, &cursor, &mark);) {
        if (mark.at == at) {
            found = mark;
            times++;
        }
    }
    CHECK_LE(times, 1);
    return found;
}

static size_t count_marks(const struct sni_highwater *table)
{
    struct sni_highwater_mark mark;
    size_t n = 0;
    for (size_t cursor = 0; sni_highwater_next(table, &cursor, &mark);)
        n++;
    return n;
}

TEST(a_mark_is_the_deepest_of_its_site)
{
    static struct sni_highwater table;
    sni_highwater_init(&table);
    CHECK_EQ(count_marks(&table), 0);
    sni_highwater_add(&table, "a.c:1", 100);
    sni_highwater_add(&table, "b.c:2", 9000);
    sni_highwater_add(&table, "a.c:1", 5000);
    sni_highwater_add(&table, "a.c:1", 300);
    CHECK_EQ(count_marks(&table), 2);
    CHECK_EQ(mark_of(&table, "a.c:1").bytes, 5000);
    CHECK_EQ(mark_of(&table, "a.c:1").stacks, 3);
    CHECK_EQ(mark_of(&table, "b.c:2").bytes, 9000);
    CHECK_EQ(mark_of(&table, "b.c:2").stacks, 1);
}

/* More sites than places: none is lost, the rest is counted together. */
TEST(sites_that_find_no_place_are_counted_together)
{
    enum { SITES = 2 * SNI_HIGHWATER_SITES };
    static struct sni_highwater table;
    static char texts[SITES][8];
    sni_highwater_init(&table);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < SITES; i++)
            sni_highwater_add(&table, texts[i], i + 1);
    size_t alone = 0;
    size_t others_most = 0;
    for (size_t i = 0; i < SITES; i++) {
        struct sni_highwater_mark mark = mark_of(&table, texts[i]);
        CHECK(mark.stacks == 0 || (mark.stacks == 2 && mark.bytes == i + 1));
        if (mark.stacks > 0)
            alone++;
        else
            others_most = i + 1;
    }
    CHECK_GE(alone, SNI_HIGHWATER_SITES / 2);
    CHECK_LE(alone, SNI_HIGHWATER_SITES);
    CHECK_EQ(mark_of(&table, NULL).stacks, 2 * (SITES - alone));
    CHECK_EQ(mark_of(&table, NULL).bytes, others_most);
    sni_highwater_add(&table, NULL, SITES + 1); /* a site without a name is none of its own */
    CHECK_EQ(mark_of(&table, NULL).bytes, SITES + 1);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 4, TURNS = 20000, SHARED = 40 };

static struct sni_highwater shared;
static char shared_at[SHARED][8];

static void *add_many(void *arg)
{
    size_t me = (size_t)(uintptr_t)arg;
    for (size_t i = 0; i < TURNS; i++)
        sni_highwater_add(&shared, shared_at[(i * 7 + me) % SHARED], i * THREADS + me);
    return NULL;
}

TEST(threads_that_add_at_once_lose_nothing)
{
    pthread_t threads[THREADS];
    sni_highwater_init(&shared);
    for (size_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, add_many, (void *)(uintptr_t)i), 0);
    for (size_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    uint64_t stacks = 0;
    size_t most = 0;
    for (size_t i = 0; i < SHARED; i++) {
        struct sni_highwater_mark mark = mark_of(&shared, shared_at[i]);
        CHECK_EQ(mark.stacks, THREADS * TURNS / SHARED);
        CHECK_GE(mark.bytes, (TURNS - SHARED) * THREADS);
        stacks += mark.stacks;
        most = mark.bytes > most ? mark.bytes : most;
    }
    CHECK_EQ(stacks, THREADS * TURNS);
    CHECK_EQ(most, THREADS * TURNS - 1);
    CHECK_EQ(count_marks(&shared), SHARED);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static struct sni_stack_pool pool;
static struct sni_stack_cache cache;

/* A fiber of `at` that used `depth` bytes of its stack, as far as anybody can see. */
static struct sni_stack *use(struct sni_highwater *table, const char *at, size_t bytes,
                             size_t depth)
{
    struct sni_stack *stack;
    CHECK_EQ(sni_stack_get(&cache, bytes, &stack), 0);
    stack->hi[-(ptrdiff_t)depth] = 1;
    sni_highwater_measure(table, at, stack);
    sni_stack_put(&cache, stack);
    return stack;
}

static void open_pool(void)
{
    CHECK_EQ(sni_stack_pool_init(&pool, NULL), 0);
    sni_stack_cache_init(&cache, &pool);
}

static void close_pool(void)
{
    sni_stack_cache_finish(&cache);
    sni_stack_pool_finish(&pool);
}

static void check_depth(const struct sni_highwater *table, const char *at, size_t depth)
{
    size_t bytes = mark_of(table, at).bytes;
    CHECK_GE(bytes, depth);
    CHECK_LT(bytes, depth + sni_plat_page_bytes());
}

TEST(a_stack_is_measured_for_the_fiber_that_used_it_and_not_for_the_one_before)
{
    static struct sni_highwater table;
    sni_highwater_init(&table);
    open_pool();
    struct sni_stack *first = use(&table, "deep", 0, 40000);
    CHECK_PTR_EQ(use(&table, "shallow", 0, 100), first); /* the same, which is what this is about */
    CHECK_PTR_EQ(use(&table, "middle", 0, 20000), first);
    check_depth(&table, "deep", 40000);
    check_depth(&table, "middle", 20000);
    CHECK_LE(mark_of(&table, "shallow").bytes, sni_plat_page_bytes());
    (void)use(&table, "big", 16 << 20, 10 << 20);
    (void)use(&table, "small", 16 << 20, 100000);
    check_depth(&table, "big", 10 << 20);
    check_depth(&table, "small", 100000);
    (void)use(&table, "smallest", 1, 100); /* two pages, one of them the guard */
    CHECK_LE(mark_of(&table, "smallest").bytes, sni_plat_page_bytes());
    close_pool();
}

TEST(a_stack_that_was_measured_is_as_good_as_before)
{
    static struct sni_highwater table;
    sni_highwater_init(&table);
    open_pool();
    struct sni_stack *stack = use(&table, "deep", 0, 40000);
    char *lo = stack->lo;
    CHECK_EQ(sni_stack_get(&cache, 0, &stack), 0);
    CHECK_PTR_EQ(stack->lo, lo); /* its record is still there */
    memset(stack->lo, 1, (size_t)(stack->hi - stack->lo));
    CHECK_EQ(sni_stack_high_water(stack), stack->hi - stack->lo);
    sni_stack_put(&cache, stack);
    close_pool();
}

/* There is no table unless asked for: nothing is counted, and no page is given back. */
TEST(without_a_table_nothing_is_measured)
{
    struct sni_stack *stack;
    open_pool();
    (void)use(NULL, "deep", 0, 40000);
    CHECK_EQ(count_marks(NULL), 0);
    CHECK_EQ(sni_stack_get(&cache, 0, &stack), 0);
    CHECK_GE(sni_stack_high_water(stack), 40000);
    sni_stack_put(&cache, stack);
    close_pool();
}
