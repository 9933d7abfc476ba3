/* SPDX-License-Identifier: MIT */
/* with_runtime.h - a runtime for the body of a benchmark, made before the clock starts. Included by
 * one file of an executable. */
#ifndef SINEW_BENCH_WITH_RUNTIME_H
#define SINEW_BENCH_WITH_RUNTIME_H

#include "bench.h"

#include <sinew/sinew.h>

static sn_runtime *rt;

static inline void make(struct bench *b, unsigned workers, bool lifo)
{
    if (sn_runtime_create(&rt, &(sn_runtime_options){.workers = workers, .lifo = lifo}) < 0)
        bench_fail(b, "no runtime");
}

static inline void one_worker(struct bench *b)
{
    make(b, 1, false);
}

static inline void two_workers(struct bench *b)
{
    make(b, 2, false);
}

static inline void finish(struct bench *b)
{
    (void)b;
    sn_runtime_destroy(rt);
    rt = NULL;
}

static inline void inside(struct bench *b, sn_task_fn *fn)
{
    if (sn_runtime_block_on(rt, fn, b) != 0)
        bench_fail(b, "a wrong result");
}

#endif
