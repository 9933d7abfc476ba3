/* SPDX-License-Identifier: MIT */
/* test_memory_lsan.c - memory checks of builds without the allocation wrappers. */
#include "selftest.h"

/* The thread sanitizer has no leak detection; only there the leaking test passes. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

TEST(leaksanitizer_finds_the_leak_of_a_test)
{
    if (__lsan_do_recoverable_leak_check != NULL)
        victims_say(1, "FAIL  leaks_memory: leaked memory", "'leaks_memory'");
    else
        victims_say(0, "ok    leaks_memory ", "'leaks_memory'");
}

TEST(a_test_that_wants_the_wrappers_is_skipped)
{
    victims_say(0, "skip  counts_its_allocations: needs the allocation wrappers", "counts_its");
    victims_say(0, "skip  makes_an_allocation_fail: needs the allocation", "makes_an_alloc");
}
