/* SPDX-License-Identifier: MIT */
/* sinew.h - how the yardstick's programs on Sinew begin: a runtime with `workers` threads, and the
 * workload as a task in it. The rest of the process is the kernel's to clean up. */
#ifndef SINEW_BENCH_PEERS_SINEW_H
#define SINEW_BENCH_PEERS_SINEW_H

#include "../yard.h"

#include <sinew/sinew.h>

struct yard_workload {
    const char *name;
    sn_task_fn *fn;
    bool lifo; /* a fork-join tree: the discipline that is made for them */
};

static inline const char *yard_sinew_version(void)
{
    static char text[32];
    unsigned v = (unsigned)sn_version();
    snprintf(text, sizeof(text), "%u.%u.%u", v >> 16, v >> 8 & 255, v & 255);
    return text;
}

static inline void *yard_alloc(int64_t n, size_t bytes)
{
    void *memory = calloc((size_t)n, bytes);
    yard_check(memory != NULL, "malloc");
    return memory;
}

static inline sn_chan *yard_chan(size_t capacity)
{
    sn_chan *ch = NULL;
    yard_check(sn_chan_create(&ch, sizeof(uint64_t), capacity, NULL) == 0, "chan_create");
    return ch;
}

static inline int yard_join_all(sn_task **tasks, int64_t n)
{
    int rc = 0;
    for (int64_t i = 0; i < n; i++)
        rc |= sn_join(tasks[i], NULL);
    return rc;
}

/* W5: wait until all are blocked, let them settle, and report; does not come back. */
static inline void yard_sinew_settle(int64_t n, int64_t t0, long before_kb, const char *kind,
                                     bool (*all_blocked)(int64_t n))
{
    while (!all_blocked(n))
        (void)sn_sleep(SN_MS(1));
    int64_t t1 = yard_now();
    (void)sn_sleep(SN_MS(300));
    yard_report_memory(n, t0, t1, kind, yard_status_kb("VmRSS") - before_kb);
    _exit(0);
}

/* A workload, and the end of the process right behind it. Not by way of the thread that waits for
 * the task: valgrind lets one thread run at a time and does not know that waiting for io_uring
 * blocks, so that an idle worker would keep that thread from ever going on. */
static inline int yard_sinew_run(void *arg)
{
    const struct yard_workload *w = arg;
    yard_check(w->fn(NULL) == 0, w->name);
    fflush(stdout);
    _exit(0);
}

static inline int yard_sinew_main(const struct yard_workload *w, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(yard.workload, w[i].name) != 0)
            continue;
        sn_runtime *rt = NULL;
        sn_runtime_options opts = {.workers = (unsigned)yard.workers, .lifo = w[i].lifo};
        yard_check(sn_runtime_create(&rt, &opts) == 0, "runtime_create");
        return sn_runtime_block_on(rt, yard_sinew_run, (void *)(uintptr_t)&w[i]);
    }
    return yard_no_workload();
}

#endif
