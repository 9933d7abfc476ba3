/* SPDX-License-Identifier: MIT */
/* Scopes: what it costs to wait for eight children by a group instead of by their handles, and to
 * enter and leave a block with a deadline. */
#include "with_runtime.h"

#include <stdint.h>

enum {
    CHILDREN = 8,
};

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int by_handles(void *arg)
{
    const struct bench *b = arg;
    int rc = 0;
    for (uint64_t i = 0; i < b->iterations; i++) {
        sn_task *t[CHILDREN];
        for (int k = 0; k < CHILDREN; k++)
            t[k] = sn_spawn(nothing, NULL);
        for (int k = 0; k < CHILDREN; k++)
            rc |= sn_join(t[k], NULL);
    }
    return rc;
}

static int by_scope(void *arg)
{
    const struct bench *b = arg;
    int rc = 0;
    for (uint64_t i = 0; i < b->iterations; i++) {
        int said = 0;
        SN_SCOPE(g, .result = &said) {
            for (int k = 0; k < CHILDREN; k++)
                (void)sn_group_spawn(g, nothing, NULL);
        }
        rc |= said;
    }
    return rc;
}

static int empty_scopes(void *arg)
{
    const struct bench *b = arg;
    for (uint64_t i = 0; i < b->iterations; i++) {
        SN_SCOPE(g) {
        }
    }
    return 0;
}

static int deadlines(void *arg)
{
    const struct bench *b = arg;
    sn_deadline at = sn_after(SN_S(3600));
    for (uint64_t i = 0; i < b->iterations; i++) {
        SN_DEADLINE(at) {
        }
    }
    return 0;
}

static int shields(void *arg)
{
    const struct bench *b = arg;
    for (uint64_t i = 0; i < b->iterations; i++) {
        SN_SHIELD(SN_FOREVER) {
        }
    }
    return 0;
}

BENCH(scope_8_by_handles, .ops = 1, .setup = one_worker, .teardown = finish,
      .note = "spawn 8 empty fibers, join them")
{
    inside(b, by_handles);
}

BENCH(scope_8_by_scope, .ops = 1, .setup = one_worker, .teardown = finish,
      .note = "the same in a scope; goal: 100 ns more")
{
    inside(b, by_scope);
}

BENCH(scope_empty, .ops = 1, .setup = one_worker, .teardown = finish, .note = "SN_SCOPE(g) {}")
{
    inside(b, empty_scopes);
}

BENCH(scope_deadline, .ops = 1, .setup = one_worker, .teardown = finish,
      .note = "SN_DEADLINE(at) {}")
{
    inside(b, deadlines);
}

BENCH(scope_shield, .ops = 1, .setup = one_worker, .teardown = finish, .note = "SN_SHIELD(...) {}")
{
    inside(b, shields);
}
