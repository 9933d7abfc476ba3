/* SPDX-License-Identifier: MIT */
/* with_runtime.h - run a function as the main task of a runtime, of every kind (R4).
 *
 * TASK_TEST(name) { body } makes five tests: the body runs inside a task of a single-threaded
 * runtime and of one with four workers, in FIFO and in LIFO order (R41), and under twenty
 * seeds (R190). */
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

#define TASK_TEST_ON_(name, kind, ...)                                                \
    TEST(name##kind, .limit_s = 60)                                                   \
    {                                                                                 \
        CHECK_EQ(run_with(&(sn_runtime_options){__VA_ARGS__}, name##_body, NULL), 0); \
    }

/* The same body under twenty seeds: what the order of tasks can break, it breaks. */
static inline void run_with_seeds(sn_task_fn *fn)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        if (run_with(&(sn_runtime_options){.single_threaded = true, .seed = seed}, fn, NULL) != 0)
            FAIL("it failed with SINEW_SEED=%d", (int)seed);
}

#define TASK_TEST(name)                                                          \
    static int name##_body(void *arg);                                           \
    TASK_TEST_ON_(name, _on_level_1, .single_threaded = true)                    \
    TASK_TEST_ON_(name, _on_level_2, .workers = 4)                               \
    TASK_TEST_ON_(name, _on_level_1_lifo, .single_threaded = true, .lifo = true) \
    TASK_TEST_ON_(name, _on_level_2_lifo, .workers = 4, .lifo = true)            \
    TEST(name##_seeded, .limit_s = 60)                                           \
    {                                                                            \
        run_with_seeds(name##_body);                                             \
    }                                                                            \
    static int name##_body(void *arg)

#endif
