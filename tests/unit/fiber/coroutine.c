/* SPDX-License-Identifier: MIT */
/* coroutine.c - see coroutine.h. */
#include "unit/fiber/coroutine.h"

#include "base/compiler.h"
#include "harness.h"
#include "plat/memory.h"

#include <string.h>

struct first {
    struct coroutine *co;
    void *value;
};

static void begin(void *pass)
{
    struct first first = *(struct first *)pass;
    first.co->fn(first.co, first.value);
    first.co->done = true;
    sni_context_exit(&first.co->self, &first.co->back, NULL);
}

void coroutine_init_on(struct coroutine *co, coroutine_fn *fn, void *lo, void *hi)
{
    memset(co, 0, sizeof *co);
    co->fn = fn;
    CHECK_EQ(sni_context_make(&co->self, lo, hi, begin), 0);
}

void coroutine_init(struct coroutine *co, coroutine_fn *fn, size_t bytes)
{
    void *memory = NULL;
    CHECK_EQ(sni_plat_reserve(&memory, bytes), 0);
    coroutine_init_on(co, fn, memory, (char *)memory + bytes);
    co->valgrind_id = sni_valgrind_stack_register(memory, (char *)memory + bytes);
    co->memory = memory;
    co->bytes = bytes;
}

void coroutine_finish(struct coroutine *co)
{
    sni_context_finish(&co->self);
    if (co->memory == NULL)
        return;
    sni_valgrind_stack_deregister(co->valgrind_id);
    sni_plat_release(co->memory, co->bytes);
}

void *coroutine_resume(struct coroutine *co, void *value)
{
    /* The first switch passes more than a value; `fn` being set tells that it is to come. */
    struct first first = {co, value};
    bool started = co->fn == NULL;
    CHECK(!co->done);
    if (started)
        return sni_context_switch(&co->back, &co->self, value);
    void *got = sni_context_switch(&co->back, &co->self, &first);
    co->fn = NULL;
    return got;
}

void *coroutine_yield(struct coroutine *co, void *value)
{
    return sni_context_switch(&co->self, &co->back, value);
}
