/* SPDX-License-Identifier: MIT */
/* fuzz.h - what a fuzz target brings, and who runs it.
 *
 * A target is one file, fuzz_<x>.c, that defines the three names below and includes nothing of the
 * harness, so that it has two drivers:
 *
 *   mutate.c     part of every build: a bounded number of inputs, made from the target's examples
 *                by the seed of the run (a failure names it)
 *   libFuzzer    cmake --build --preset clang --target fuzz_<x> && build/clang/tests/fuzz/fuzz_<x>
 *                unbounded, guided by coverage, with the address sanitizer; not built unless asked
 *
 * A broken invariant ends the process by FUZZ_CHECK, which both understand. */
#ifndef SINEW_TESTS_FUZZ_H
#define SINEW_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Try one input. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Inputs to begin with, as text; NULL ends them. */
extern const char *const fuzz_examples[];

/* How often something worth reaching was reached; `what` NULL ends them. A fuzz test that finds
 * nothing because all it tries is refused at once proves nothing, so mutate.c wants each of these
 * a hundred times. */
struct fuzz_count {
    const char *what;
    unsigned long times;
};
extern struct fuzz_count fuzz_counts[];

/* The condition holds for this input; else show both and abort. */
#define FUZZ_CHECK(cond, data, bytes) \
    ((cond) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #cond, (data), (bytes)))

static inline void fuzz_fail(const char *file, int line, const char *cond, const uint8_t *data,
                             size_t bytes)
{
    fprintf(stderr, "%s:%d: does not hold: %s\ninput: \"", file, line, cond);
    for (size_t i = 0; i < bytes; i++)
        fprintf(stderr, data[i] >= ' ' && data[i] < 0x7f ? "%c" : "\\x%02x", data[i]);
    fprintf(stderr, "\"\n");
    abort();
}

#endif
