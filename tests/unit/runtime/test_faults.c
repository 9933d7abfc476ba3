/* SPDX-License-Identifier: MIT */
/* Every system call for memory and threads that a runtime makes fails once (R2, R51, R150, R201):
 * each time the result is a code, nothing is left behind, nothing crashes, and the next runtime
 * works.
 *
 * The first of many: a call that fails alone is often made good (a slab is made smaller, a guard is
 * done without), so there are also tests in which all calls fail from the k-th on. */
#include "faulty.h"
#include "fiber/stack.h"
#include "harness.h"
#include "plat/memory.h"

#include <sinew/sinew.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIBERS = 100 };

/* ---- the scenario ---------------------------------------------------------------------------- */

struct seen {
    int created;     /* what sn_runtime_create returned                     */
    int ran;         /* what the main task returned: 0, or it had no stack  */
    int refused;     /* fibers that got no record or no stack               */
    uint64_t all_at; /* in the main task: all mmaps fail from this one on   */
};

static int use_stack(void *arg)
{
    volatile char page[3000];
    page[0] = 1;
    sn_yield(); /* so that many stacks are in use at once */
    return (int)(intptr_t)arg + page[0];
}

static int spawn_and_join(void *arg)
{
    static const size_t sizes[] = {16 << 10, 64 << 10, 2 << 20};
    struct seen *seen = arg;
    sn_task *t[FIBERS];
    int errors[FIBERS] = {0};
    if (seen->all_at > 0)
        faulty_at(FAULTY_MMAP, seen->all_at, true);
    for (int i = 0; i < FIBERS; i++)
        t[i] = sn_spawn(use_stack, (void *)(intptr_t)i, .stack_bytes = sizes[i % 3],
                        .error = &errors[i]);
    for (int i = 0; i < FIBERS; i++) {
        int rc = t[i] != NULL ? sn_join(t[i], NULL) : errors[i];
        if (rc != i + 1) {
            CHECK_EQ(rc, -ENOMEM);
            seen->refused++;
        }
    }
    return 0;
}

/* Make a runtime, run a hundred fibers on stacks of three sizes, destroy it. */
static struct seen run_scenario(const sn_runtime_options *opts, uint64_t all_at)
{
    sn_runtime *rt = NULL;
    struct seen seen = {.all_at = all_at};
    seen.created = sn_runtime_create(&rt, opts);
    if (seen.created < 0) {
        CHECK(seen.created == -ENOMEM || seen.created == -EAGAIN);
        CHECK(rt == NULL);
        return seen;
    }
    seen.ran = sn_runtime_block_on(rt, spawn_and_join, &seen);
    CHECK(seen.ran == 0 || seen.ran == -ENOMEM);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    sn_runtime_destroy(rt);
    return seen;
}

static void check_good_run(const sn_runtime_options *opts)
{
    struct seen seen = run_scenario(opts, 0);
    CHECK_EQ(seen.created, 0);
    CHECK_EQ(seen.ran, 0);
    CHECK_EQ(seen.refused, 0);
}

static size_t count_lines(const char *path)
{
    size_t lines = 0;
    FILE *f = fopen(path, "r");
    CHECK(f != NULL);
    for (int c = fgetc(f); c != EOF; c = fgetc(f))
        lines += c == '\n';
    fclose(f);
    return lines;
}

static const sn_runtime_options single = {.single_threaded = true};
static const sn_runtime_options two = {.workers = 2};

/* ---- each call fails once -------------------------------------------------------------------- */

/* Until none is hit. Returns how many were; with several workers fewer, as fibers end while others
 * begin and leave them their stacks. The first runs leave what the process keeps for good:
 * the region of all records, and stacks of threads in the C library. */
static uint64_t fail_each(enum faulty_call call, const sn_runtime_options *opts)
{
    check_good_run(opts);
    check_good_run(opts);
    int64_t mapped = faulty_mapped_bytes();
    for (uint64_t k = 1;; k++) {
        faulty_at(call, k, false);
        struct seen seen = run_scenario(opts, 0);
        bool hit = faulty_end();
        CHECK_EQ(faulty_mapped_bytes(), mapped);
        if (call != FAULTY_MMAP && call != FAULTY_PTHREAD_CREATE)
            CHECK(seen.created == 0 && seen.ran == 0 && seen.refused == 0);
        if (!hit)
            return k - 1;
        check_good_run(opts);
        CHECK_EQ(faulty_mapped_bytes(), mapped);
    }
}

TEST(an_mmap_that_fails_is_an_error_or_made_good, .limit_s = 60)
{
    CHECK_GE(fail_each(FAULTY_MMAP, &single), 33); /* there are 33 stacks of 2 MiB */
    CHECK_GE(fail_each(FAULTY_MMAP, &two), 6);
}

TEST(an_madvise_that_fails_does_no_harm, .limit_s = 60)
{
    CHECK_GE(fail_each(FAULTY_MADVISE, &single), 33);
    CHECK_GE(fail_each(FAULTY_MADVISE, &two), 6);
}

TEST(guards_that_cannot_be_made_in_one_call_are_made_one_by_one, .limit_s = 60)
{
    if (sni_plat_guard_kind() != SNI_GUARD_MADVISE)
        SKIP("this kernel has no guards by madvise");
    CHECK_GE(fail_each(FAULTY_PROCESS_MADVISE, &single), 1);
}

TEST(an_mprotect_that_fails_leaves_a_stack_without_a_guard, .limit_s = 60)
{
    faulty_old_kernel();
    CHECK_GE(fail_each(FAULTY_MPROTECT, &single), 33);
    CHECK_GE(fail_each(FAULTY_MPROTECT, &two), 6);
}

/* The system cannot always take address space back: adjacent mappings are one to the kernel, and to
 * cut one out of the middle takes another. Then at least the memory goes. */
TEST(an_munmap_that_fails_still_gives_the_memory_back, .limit_s = 60)
{
    CHECK_GE(fail_each(FAULTY_MUNMAP, &single), 33);
    CHECK_GE(fail_each(FAULTY_MUNMAP, &two), 6);
    CHECK_GT(faulty_left_bytes(), 0);
    CHECK_EQ(faulty_left_discarded_bytes(), faulty_left_bytes());
}

TEST(a_thread_that_is_refused_is_an_error_and_stops_the_others, .limit_s = 60)
{
    static const sn_runtime_options four = {.workers = 4};
    CHECK_EQ(fail_each(FAULTY_PTHREAD_CREATE, &four), 4);
    faulty_at(FAULTY_PTHREAD_CREATE, 3, false);
    CHECK_EQ(run_scenario(&four, 0).created, -EAGAIN);
    CHECK(faulty_end());
}

/* ---- all calls fail from one on -------------------------------------------------------------- */

static uint64_t fail_all_from_each(const sn_runtime_options *opts)
{
    int refused_most = 0;
    check_good_run(opts);
    check_good_run(opts);
    int64_t mapped = faulty_mapped_bytes();
    for (uint64_t k = 1;; k++) {
        struct seen seen = run_scenario(opts, k);
        bool hit = faulty_end();
        CHECK_EQ(faulty_mapped_bytes(), mapped);
        CHECK_EQ(seen.created, 0);
        CHECK_EQ(seen.ran, 0);
        if (k == 1)
            refused_most = seen.refused;
        CHECK_LE(seen.refused, refused_most);
        if (!hit) {
            CHECK_EQ(seen.refused, 0);
            CHECK_GE(refused_most, 33); /* those on stacks of 2 MiB, if the others had some left */
            return k - 1;
        }
        CHECK_GE(seen.refused, 1);
        check_good_run(opts);
    }
}

TEST(fibers_that_get_no_stack_end_with_enomem_and_the_others_run, .limit_s = 60)
{
    CHECK_GE(fail_all_from_each(&single), 33);
}

/* From before the runtime is made: it is refused, or it works as far as its memory goes. */
static uint64_t fail_all_of_a_life(const sn_runtime_options *opts)
{
    check_good_run(opts);
    check_good_run(opts);
    int64_t mapped = faulty_mapped_bytes();
    for (uint64_t k = 1;; k++) {
        faulty_at(FAULTY_MMAP, k, true);
        struct seen seen = run_scenario(opts, 0);
        bool hit = faulty_end();
        CHECK_EQ(faulty_mapped_bytes(), mapped);
        if (!hit) {
            CHECK(seen.created == 0 && seen.ran == 0 && seen.refused == 0);
            return k - 1;
        }
        check_good_run(opts);
    }
}

/* It needs none before it has tasks, if others have been there and left the region. */
TEST(a_runtime_that_gets_no_address_space_is_refused_or_its_fibers_are, .limit_s = 60)
{
    CHECK_GE(fail_all_of_a_life(&single), 33);
    CHECK_GE(fail_all_of_a_life(&two), 6);
    faulty_at(FAULTY_MMAP, 1, true);
    struct seen seen = run_scenario(&two, 0);
    CHECK(faulty_end());
    CHECK(seen.created == -ENOMEM || seen.ran == -ENOMEM);
}

/* ---- the first runtime of a process ---------------------------------------------------------- */

/* Exit status of a child. */
enum { HIT = 10, MISSED = 11 };

/* In a process of its own, which has no region yet and knows nothing of the kernel. */
static bool fail_cold(enum faulty_call call, uint64_t k)
{
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
        faulty_at(call, k, false);
        (void)run_scenario(&single, 0);
        bool hit = faulty_end();
        check_good_run(&single);
        size_t mappings = count_lines("/proc/self/maps");
        int64_t mapped = faulty_mapped_bytes();
        check_good_run(&single);
#ifdef SINEW_HARNESS_WRAP /* a sanitizer maps what it needs, when it likes */
        CHECK_LE(count_lines("/proc/self/maps"), mappings);
#endif
        (void)mappings;
        CHECK_EQ(faulty_mapped_bytes(), mapped);
        _exit(hit ? HIT : MISSED);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == HIT || WEXITSTATUS(status) == MISSED);
    return WEXITSTATUS(status) == HIT;
}

TEST(the_first_runtime_of_a_process_survives_each_failure, .limit_s = 60)
{
    for (int call = FAULTY_MMAP; call <= FAULTY_PROCESS_MADVISE; call++) {
        uint64_t k = 1;
        while (fail_cold((enum faulty_call)call, k))
            k++;
        CHECK_GE(k, call == FAULTY_MPROTECT || call == FAULTY_PROCESS_MADVISE ? 1 : 34);
    }
}

/* ---- guards ---------------------------------------------------------------------------------- */

static void check_bare(struct sni_stack_cache *cache, size_t bytes)
{
    struct sni_stack *stack;
    CHECK_EQ(sni_stack_get(cache, bytes, &stack), 0);
    CHECK_EQ(stack->guard, SNI_GUARD_NONE);
    *stack->lo = 1;
    sni_stack_put(cache, stack);
}

static void check_guards_refused(enum faulty_call call)
{
    struct sni_stack_pool pool;
    struct sni_stack_cache cache;
    struct sni_stack_stats stats;
    CHECK_EQ(sni_stack_pool_init(&pool, NULL), 0);
    sni_stack_cache_init(&cache, &pool);
    faulty_at(call, 1, true);
    check_bare(&cache, 64 << 10);
    check_bare(&cache, 2 << 20);
    CHECK(faulty_end());
    sni_stack_pool_stats(&pool, &stats);
    CHECK_GE(stats.guards[SNI_GUARD_NONE], 2);
    CHECK_EQ(stats.guards[SNI_GUARD_MADVISE] + stats.guards[SNI_GUARD_MPROTECT], 0);
    sni_stack_cache_finish(&cache);
    sni_stack_pool_finish(&pool);
}

TEST(a_stack_whose_mprotect_is_refused_is_bare_and_counted)
{
    faulty_old_kernel();
    CHECK_EQ(sni_plat_guard_kind(), SNI_GUARD_MPROTECT);
    check_guards_refused(FAULTY_MPROTECT);
}

/* What a process finds that asks when all is well. */
static enum sni_guard_kind kind_of_kernel(void)
{
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0)
        _exit((int)sni_plat_guard_kind());
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    return (enum sni_guard_kind)WEXITSTATUS(status);
}

/* One moment without memory must not decide for the life of the process. */
TEST(a_probe_of_guards_that_is_refused_for_now_is_tried_again)
{
    enum sni_guard_kind kind = kind_of_kernel();
    faulty_at(FAULTY_MADVISE, 1, false);
    CHECK_EQ(sni_plat_guard_kind(), SNI_GUARD_MPROTECT);
    CHECK(faulty_end());
    CHECK_EQ(sni_plat_guard_kind(), kind);
    faulty_old_kernel();
    CHECK_EQ(sni_plat_guard_kind(), kind); /* it is known by now */
}

TEST(a_stack_whose_madvise_is_refused_is_bare_and_counted)
{
    if (sni_plat_guard_kind() != SNI_GUARD_MADVISE)
        SKIP("this kernel has no guards by madvise");
    check_guards_refused(FAULTY_GUARD);
}
