/* SPDX-License-Identifier: MIT */
/* coroutine.h - the least that makes a context useful in a test: resume it, let it yield.
 *
 * One is resumed by whoever likes, and yields to whoever resumed it. Its stack is plain
 * reserved memory without a guard, or one that the test brings. */
#ifndef SINEW_TESTS_FIBER_COROUTINE_H
#define SINEW_TESTS_FIBER_COROUTINE_H

#include "fiber/context.h"

#include <stdbool.h>
#include <stddef.h>

struct coroutine;
typedef void coroutine_fn(struct coroutine *co, void *first);

struct coroutine {
    struct sni_context self;
    struct sni_context back; /* who resumed it */
    coroutine_fn *fn;
    void *memory; /* reserved by coroutine_init; NULL: brought by the test */
    size_t bytes;
    unsigned valgrind_id;
    bool done;
};

/* On a stack of its own of `bytes` bytes. */
void coroutine_init(struct coroutine *co, coroutine_fn *fn, size_t bytes);
void coroutine_init_on(struct coroutine *co, coroutine_fn *fn, void *lo, void *hi);
void coroutine_finish(struct coroutine *co);

/* Let it go on with `value` until it yields, and give what it yields; NULL when it ends. */
void *coroutine_resume(struct coroutine *co, void *value);

/* From inside: give `value` to the resumer, and get the next one's. */
void *coroutine_yield(struct coroutine *co, void *value);

#endif
