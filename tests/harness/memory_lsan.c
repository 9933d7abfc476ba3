/* SPDX-License-Identifier: MIT */
/* memory_lsan.c - memory checks where the sanitizer owns malloc; twin of memory_wrap.c.
 *
 * The address and leak sanitizers bring LeakSanitizer, which is asked after the body whether
 * anything is lost. The thread sanitizer has no leak detection: the weak symbols are then absent
 * and nothing is checked. There is no fault injection here, so a test that wants it skips. */
#include "harness_priv.h"

extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));
extern void __lsan_disable(void) __attribute__((weak));
extern void __lsan_enable(void) __attribute__((weak));

/* What the runner allocated is inherited by the child, where nothing may point to it any more. */
void memory_ignore(void)
{
    if (__lsan_disable != NULL)
        __lsan_disable();
}

void memory_watch(void)
{
    if (__lsan_enable != NULL)
        __lsan_enable();
}

void memory_check(void)
{
    if (__lsan_do_recoverable_leak_check != NULL && __lsan_do_recoverable_leak_check() != 0)
        harness_fail(NULL, 0, "leaked memory; LeakSanitizer's report is in the output");
}

void alloc_fail_at(uint64_t k)
{
    (void)k;
    SKIP("needs the allocation wrappers, which this sanitizer build leaves out");
}

uint64_t alloc_count(void)
{
    SKIP("needs the allocation wrappers, which this sanitizer build leaves out");
}
