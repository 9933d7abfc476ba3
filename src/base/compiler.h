/* SPDX-License-Identifier: MIT */
/* compiler.h - the few words the house adds to C. */
#ifndef SINEW_BASE_COMPILER_H
#define SINEW_BASE_COMPILER_H

#include <stddef.h>

#include <sinew/config.h>

#define sni_likely(x)   __builtin_expect(!!(x), 1)
#define sni_unlikely(x) __builtin_expect(!!(x), 0)

/* The struct of `type` whose `member` is at `ptr`. */
#define sni_container_of(ptr, type, member) \
    ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* For the few functions whose callers must not have a frame, or are to be made for one use each. */
#define SNI_ALWAYS_INLINE inline __attribute__((always_inline))

/* For functions that are rarely called, so that the compiler lays their callers out for speed. */
#define SNI_COLD __attribute__((cold))

/* The line of memory at `address`, which need not be a good one, will be needed soon. */
#define sni_prefetch(address) __builtin_prefetch(address)

/* For functions whose body must stay a secret to their callers, also with link-time
 * optimisation. */
#if defined(__clang__)
#define SNI_NEVER_INLINE __attribute__((noinline))
#else
#define SNI_NEVER_INLINE __attribute__((noinline, noipa))
#endif

/* Tells the processor that this is a loop that waits for somebody else. */
static inline void sni_cpu_pause(void)
{
    SN_CPU_PAUSE_();
}

static inline void sni_cpu_pauses(int n)
{
    for (int i = 0; i < n; i++)
        sni_cpu_pause();
}

/* Keep in this function's frame what its callers have in registers. */
#define SNI_SPILL_REGISTERS() __builtin_unwind_init()

/* Whether this is compiled for ThreadSanitizer. */
#if defined(__SANITIZE_THREAD__)
#define SNI_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SNI_THREAD_SANITIZED 1
#endif
#endif
#ifndef SNI_THREAD_SANITIZED
#define SNI_THREAD_SANITIZED 0
#endif

/* The same for AddressSanitizer. */
#if defined(__SANITIZE_ADDRESS__)
#define SNI_ADDRESS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SNI_ADDRESS_SANITIZED 1
#endif
#endif
#ifndef SNI_ADDRESS_SANITIZED
#define SNI_ADDRESS_SANITIZED 0
#endif

#endif
