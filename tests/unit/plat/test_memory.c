/* SPDX-License-Identifier: MIT */
/* Address space, guards and resident memory (R51), as the platform gives them. */
#define _GNU_SOURCE 1
#include "harness.h"

#include "plat/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ADVICE_POPULATE = 23 }; /* MADV_POPULATE_WRITE, newer than many a libc */

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

static char *reserve(size_t bytes)
{
    void *base = NULL;
    CHECK_EQ(sni_plat_reserve(&base, bytes), 0);
    return base;
}

TEST(reserved_memory_is_zero_and_writable)
{
    size_t page = sni_plat_page_bytes();
    CHECK_EQ(page & (page - 1), 0);
    char *base = reserve(3 * page);
    for (size_t i = 0; i < 3 * page; i++)
        CHECK_EQ(base[i], 0);
    memset(base, 1, 3 * page);
    sni_plat_release(base + page, page); /* a part, from the middle */
    base[0] = 2;
    base[2 * page] = 2;
    CHECK(is_guarded(base + page));
    sni_plat_release(base, page);
    sni_plat_release(base + 2 * page, page);
    sni_plat_release(NULL, 0);
}

TEST(reserving_more_than_there_is_is_an_error)
{
    void *base = &base;
    CHECK_EQ(sni_plat_reserve(&base, (size_t)1 << 60), -ENOMEM);
    CHECK_EQ(sni_plat_reserve(&base, 0), -EINVAL);
    CHECK_EQ(sni_plat_reserve_aligned(&base, 4096, SIZE_MAX / 2 + 1), -ENOMEM);
    CHECK_EQ(sni_plat_reserve_aligned(&base, SIZE_MAX - 4095, 1 << 20), -ENOMEM);
    CHECK_EQ(sni_plat_reserve_aligned(&base, 4096, 12345), -EINVAL);
    CHECK_EQ(sni_plat_reserve_aligned(&base, 0, 1 << 20), -EINVAL);
    CHECK_PTR_EQ(base, &base);
}

TEST(reserved_memory_is_aligned_as_asked)
{
    size_t page = sni_plat_page_bytes();
    for (size_t align = page; align <= (size_t)1 << 30; align *= 2) {
        void *base = NULL;
        CHECK_EQ(sni_plat_reserve_aligned(&base, 5 * page, align), 0);
        CHECK_EQ((uintptr_t)base % align, 0);
        memset(base, 1, 5 * page);
        sni_plat_release(base, 5 * page);
    }
}

static void check_guard(enum sni_guard_kind kind, bool guards)
{
    size_t page = sni_plat_page_bytes();
    char *base = reserve(4 * page);
    memset(base, 1, 4 * page);
    CHECK_EQ(sni_plat_guard(base + page, page, kind), 0);
    CHECK_EQ(is_guarded(base + page), guards);
    CHECK_EQ(is_guarded(base + 2 * page - 1), guards);
    CHECK(!is_guarded(base + page - 1));
    CHECK(!is_guarded(base + 2 * page));
    sni_plat_discard(base, 4 * page);
    CHECK_EQ(is_guarded(base + page), guards);
    CHECK_EQ(base[0], 0);
    sni_plat_release(base, 4 * page);
}

TEST(a_guard_guards_its_pages_and_no_others_and_survives_discarding)
{
    check_guard(SNI_GUARD_AUTO, true);
    check_guard(sni_plat_guard_kind(), true);
    check_guard(SNI_GUARD_MPROTECT, true);
    check_guard(SNI_GUARD_NONE, false);
}

TEST(an_unknown_kind_of_guard_is_refused)
{
    char *base = reserve(sni_plat_page_bytes());
    CHECK_EQ(sni_plat_guard(base, sni_plat_page_bytes(), SNI_GUARD_KINDS), -EINVAL);
    CHECK(!is_guarded(base));
    sni_plat_release(base, sni_plat_page_bytes());
}

static void check_guard_each(enum sni_guard_kind kind)
{
    enum { COUNT = 100, STRIDE_PAGES = 3 };
    size_t page = sni_plat_page_bytes();
    size_t done = 0;
    char *base = reserve(COUNT * STRIDE_PAGES * page);
    CHECK_EQ(sni_plat_guard_each(base, page, STRIDE_PAGES * page, COUNT, kind, &done), 0);
    CHECK_EQ(done, COUNT);
    for (size_t i = 0; i < COUNT * STRIDE_PAGES; i++)
        CHECK_EQ(is_guarded(base + i * page), i % STRIDE_PAGES == 0);
    sni_plat_release(base, COUNT * STRIDE_PAGES * page);
}

TEST(many_guards_are_installed_at_once)
{
    check_guard_each(SNI_GUARD_AUTO);
    check_guard_each(SNI_GUARD_MPROTECT);
}

TEST(guards_that_fail_are_counted_up_to_the_first)
{
    size_t page = sni_plat_page_bytes();
    size_t done = 77;
    char *base = reserve(40 * page);
    sni_plat_release(base + 20 * page, 20 * page);
    CHECK_LT(sni_plat_guard_each(base, page, 2 * page, 20, SNI_GUARD_AUTO, &done), 0);
    CHECK_EQ(done, 10);
    sni_plat_release(base, 20 * page);
}

TEST(guards_that_cannot_be_probed_for_want_of_descriptors_are_mprotect)
{
    struct rlimit before, none;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    CHECK_EQ(sni_plat_guard_kind(), SNI_GUARD_MPROTECT); /* what cannot be tried is not used */
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    check_guard(sni_plat_guard_kind(), true); /* and tried again when it can */
}

TEST(the_limit_of_guards_is_about_mappings)
{
    CHECK_EQ(sni_plat_guard_limit(SNI_GUARD_MADVISE), SIZE_MAX);
    CHECK_EQ(sni_plat_guard_limit(SNI_GUARD_NONE), SIZE_MAX);
    CHECK_GT(sni_plat_guard_limit(SNI_GUARD_MPROTECT), 1000);
    CHECK_EQ(sni_plat_guard_limit(SNI_GUARD_AUTO), sni_plat_guard_limit(sni_plat_guard_kind()));
}

TEST(untouched_memory_is_counted_from_below)
{
    size_t page = sni_plat_page_bytes();
    size_t bytes = 3000 * page;
    char *base = reserve(bytes);
    sni_plat_small_pages(base, bytes);
    CHECK_EQ(sni_plat_untouched(base, bytes), bytes);
    base[bytes - 1] = 1;
    CHECK_EQ(sni_plat_untouched(base, bytes), bytes - page);
    base[2500 * page] = 1;
    CHECK_EQ(sni_plat_untouched(base, bytes), 2500 * page);
    base[0] = 1;
    CHECK_EQ(sni_plat_untouched(base, bytes), 0);
    CHECK_EQ(sni_plat_untouched(base + page, bytes - page), 2499 * page);
    sni_plat_discard(base, bytes);
    CHECK_EQ(sni_plat_untouched(base, bytes), bytes);
    sni_plat_release(base, bytes);
}

/* Does the kernel populate (Linux 5.14)? Emulators say no, or yes and do nothing. */
static bool can_populate(size_t page)
{
    char *base = reserve(page);
    bool can = madvise(base, page, ADVICE_POPULATE) == 0 && sni_plat_untouched(base, page) == 0;
    sni_plat_release(base, page);
    return can;
}

TEST(populated_memory_is_there_before_it_is_touched)
{
    size_t page = sni_plat_page_bytes();
    size_t bytes = 16 * page;
    char *base = reserve(bytes);
    sni_plat_small_pages(base, bytes);
    base[2 * page] = 1;
    sni_plat_populate(base + page + page / 2, 13 * page + 1); /* parts of pages are pages */
    CHECK_EQ(sni_plat_untouched(base, bytes), can_populate(page) ? page : 2 * page);
    for (size_t i = page; can_populate(page) && i < 15 * page; i += page)
        CHECK_EQ(sni_plat_untouched(base + i, page), 0);
    CHECK_EQ(sni_plat_untouched(base + 15 * page, page), page);
    for (size_t i = 0; i < bytes; i++)
        CHECK_EQ(base[i], i == 2 * page); /* zeroes, and what was there stays */
    sni_plat_populate(base, bytes);       /* once more, for nothing */
    sni_plat_release(base, bytes);
    sni_plat_populate(base, bytes); /* refused: there is nothing, and nothing comes of it */
}

/* The mapping that begins at `base` has the flag "nh", no huge pages, in /proc/self/smaps. */
static bool has_small_pages(const void *base)
{
    char line[512], begin[32];
    bool here = false, found = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    CHECK(file != NULL);
    snprintf(begin, sizeof begin, "%lx-", (unsigned long)(uintptr_t)base);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, begin, strlen(begin)) == 0)
            here = true;
        if (here && strncmp(line, "VmFlags:", 8) == 0) {
            found = strstr(line, " nh") != NULL;
            break;
        }
    }
    fclose(file);
    return found;
}

TEST(small_pages_are_asked_of_the_kernel)
{
    size_t page = sni_plat_page_bytes();
    char *base = reserve(3 * page);
    sni_plat_small_pages(base + page, page); /* alone, so that no neighbour merges with it */
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0)
        CHECK(has_small_pages(base + page));
    sni_plat_release(base, 3 * page);
}
