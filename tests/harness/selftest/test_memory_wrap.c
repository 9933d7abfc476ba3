/* SPDX-License-Identifier: MIT */
/* test_memory_wrap.c - the book of allocations and injected failures. */
#include "selftest.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Keeps the compiler from seeing that an allocation is not needed. */
static void *volatile sink;

TEST(a_memory_leak_fails_the_test_with_its_size_and_place)
{
    struct command c = victims("leaks_memory");
    CHECK_STR_HAS(c.output, "FAIL  leaks_memory: leaked 123 bytes in 2 blocks\n");
    CHECK_STR_HAS(c.output, "leaked: 100 bytes allocated at ");
    CHECK_STR_HAS(c.output, "harness_victims+0x");
    CHECK_EQ(c.status, 1);
    command_finish(&c);
}

TEST(a_block_survives_a_realloc_that_fails)
{
    victims_say(1, ": leaked 50 bytes in 1 blocks\n", "leaks_a_block_it_could_not_enlarge");
}

TEST(the_count_of_allocations_starts_at_zero_and_counts_each_kind)
{
    void *block = NULL;
    CHECK_EQ(alloc_count(), 0);
    sink = malloc(1);
    sink = realloc(sink, 100);
    free(sink);
    sink = calloc(1, 1);
    free(sink);
    sink = aligned_alloc(64, 64);
    free(sink);
    CHECK_EQ(posix_memalign(&block, 64, 64), 0);
    free(block);
    CHECK_EQ(alloc_count(), 5);
}

/* malloc in disguise: compilers assume that malloc itself leaves errno alone. */
static void *(*volatile allocate)(size_t) = malloc;

TEST(only_the_kth_allocation_from_now_fails)
{
    free(malloc(1));
    alloc_fail_at(3);
    for (int i = 1; i <= 6; i++) {
        errno = 0;
        sink = allocate(10);
        CHECK_EQ(sink == NULL, i == 3);
        CHECK_EQ(errno, i == 3 ? ENOMEM : 0);
        free(sink);
    }
}

TEST(every_kind_of_allocation_can_be_made_to_fail)
{
    void *block = NULL;
    alloc_fail_at(1);
    sink = calloc(1, 1);
    CHECK(sink == NULL);
    alloc_fail_at(1);
    sink = aligned_alloc(64, 64);
    CHECK(sink == NULL);
    alloc_fail_at(1);
    CHECK_EQ(posix_memalign(&block, 64, 64), ENOMEM);
    char *text = malloc(4);
    CHECK(text != NULL);
    memcpy(text, "abc", 4);
    alloc_fail_at(1);
    char *larger = realloc(text, 1000);
    sink = larger;
    CHECK(larger == NULL);
    CHECK_STR_EQ(text, "abc");
    free(text);
}

TEST(zero_turns_the_failure_off)
{
    alloc_fail_at(1);
    alloc_fail_at(0);
    sink = malloc(1);
    CHECK(sink != NULL);
    free(sink);
}

TEST(the_failure_hit_shows_in_the_count)
{
    uint64_t before = alloc_count();
    alloc_fail_at(2);
    sink = malloc(1);
    free(sink);
    CHECK_LT(alloc_count() - before, 2);
    sink = malloc(1);
    CHECK(sink == NULL);
    CHECK_GE(alloc_count() - before, 2);
}

/* Enough to make the book grow several times, from several threads, in mixed order. */
enum { BLOCKS = 20000, THREADS = 4 };

static void *churn(void *arg)
{
    char **blocks = calloc(BLOCKS, sizeof *blocks);
    unsigned step = 7919; /* prime, so that every block is met once */
    CHECK(blocks != NULL);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(i % 100 + 1);
        CHECK(blocks[i] != NULL);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t at = i * step % BLOCKS;
        if (at % 3 == 0)
            blocks[at] = realloc(blocks[at], 200);
        free(blocks[at]);
    }
    free(blocks);
    return arg;
}

TEST(the_book_stays_right_under_many_blocks_and_threads)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, churn, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(alloc_count(), THREADS * (1 + BLOCKS + (BLOCKS + 2) / 3));
}
