/* SPDX-License-Identifier: MIT */
/* with_runtime.h - run a function as the main task of a runtime, at both levels (R4).
 *
 * TASK_TEST(name) { body } is a test per level: the body runs inside a task of a
 * single-threaded runtime, and inside one with four workers. */
#ifndef SINEW_TESTS_WITH_RUNTIME_H
#define SINEW_TESTS_WITH_RUNTIME_H

#include "harness.h"

#include <sinew/sinew.h>

static inline int run_with(const sn_runtime_options *opts, sn_task_fn *fn, void *arg)
{
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, opts), 0);
    int rc = sn_runtime_block_on(rt, fn, arg);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    sn_runtime_destroy(rt);
    return rc;
}

#define TASK_TEST(name)                                                                           \
    static int name##_body(void *arg);                                                            \
    TEST(name##_on_level_1, .limit_s = 60)                                                        \
    {                                                                                             \
        CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, name##_body, NULL), 0); \
    }                                                                                             \
    TEST(name##_on_level_2, .limit_s = 60)                                                        \
    {                                                                                             \
        CHECK_EQ(run_with(&(sn_runtime_options){.workers = 4}, name##_body, NULL), 0);            \
    }                                                                                             \
    static int name##_body(void *arg)

#endif
