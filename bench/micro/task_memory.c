/* SPDX-License-Identifier: MIT */
/* What a task costs that waits: workload W5 of the yardstick, memory for each of n tasks that are
 * blocked for good, and the time to spawn them and let them block.
 *
 * Here each waits for the end of the one before it, the first for a gate; so when the gate opens
 * they end one after the other, and the last one's result is their number: a check that all were
 * there. Records and stacks are kept by a process for the next burst, so each sample is a process
 * of its own, with a runtime of its own. The time is from the first spawn until the last one has
 * counted itself; the bytes are read 300 ms later.
 *
 *     micro_memory                            n = 100,000
 *     micro_memory --fixed 1000000 fiber      n = 1,000,000: 4.3 GB */
#include "bench.h"
#include "own_process.h"

#include "wait/wait.h"

#include <sinew/sinew.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    TASKS = 100000,
    SETTLE_US = 300 * 1000,
};

enum { BEGUN, BLOCKED, DONE };

/* What the sample's process tells, one after the other. */
struct told {
    unsigned what;     /* BEGUN and so on */
    double bytes_each; /* DONE */
};

struct crowd {
    uint64_t n;
    bool coroutines;
    int pipe;
    struct sni_waiter gate;
    atomic_ullong blocked;
};

static struct crowd crowd;

static void tell(unsigned what, double bytes_each)
{
    struct told told = {.what = what, .bytes_each = bytes_each};
    if (write(crowd.pipe, &told, sizeof(told)) != (ssize_t)sizeof(told))
        _exit(1);
}

static double resident_bytes(void)
{
    unsigned long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &size, &resident) != 2)
        _exit(1);
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* ---- those who wait -------------------------------------------------------------------------- */

static int wait_at_gate(void *arg)
{
    (void)arg;
    sni_wait_begin(&crowd.gate);
    return sni_wait_commit(&crowd.gate, SN_FOREVER);
}

static int join_fiber(void *arg)
{
    atomic_fetch_add(&crowd.blocked, 1);
    return sn_join(arg, NULL) + 1;
}

typedef struct joiner {
    sn_coro coro;
    sn_task *before;
    sn_join_state join;
    int rc;
} joiner;

SN_CORO(joiner, self)
{
    SN_BEGIN(self);
    atomic_fetch_add(&crowd.blocked, 1);
    SN_AWAIT_INTO(self->rc, sn_join_op(&self->join, self->before, NULL));
    SN_RETURN(self->rc + 1);
    SN_END();
}

static sn_task *spawn_behind(sn_task *before)
{
    if (!crowd.coroutines)
        return sn_spawn(join_fiber, before);
    joiner frame = {.before = before};
    return sn_spawn_coro(joiner, &frame);
}

/* ---- a sample -------------------------------------------------------------------------------- */

static int gather(void *arg)
{
    (void)arg;
    sn_task *last = sn_spawn(wait_at_gate, NULL);
    sn_yield(); /* there is one worker: now it waits */
    double before = resident_bytes();
    tell(BEGUN, 0);
    for (uint64_t i = 0; i < crowd.n && last != NULL; i++)
        last = spawn_behind(last);
    while (last != NULL && atomic_load(&crowd.blocked) < crowd.n)
        sn_yield();
    tell(BLOCKED, 0);
    (void)usleep(SETTLE_US);
    double bytes = resident_bytes() - before;
    (void)sni_wait_claim(&crowd.gate, 0);
    if (sn_join(last, NULL) != (int)crowd.n)
        return 1;
    tell(DONE, bytes / (double)crowd.n);
    return 0;
}

static void sample(const void *arg, int to)
{
    sn_runtime *rt;
    crowd = *(const struct crowd *)arg;
    crowd.pipe = to;
    if (sn_runtime_create(&rt, &(sn_runtime_options){.workers = 1}) < 0)
        _exit(1);
    int rc = sn_runtime_block_on(rt, gather, NULL);
    _exit(rc); /* without the time of giving everything back */
}

static bool hear(const struct own_process *p, unsigned what, struct told *told)
{
    return own_process_hear(p, told, sizeof(*told)) && told->what == what;
}

static void measure(struct bench *b, bool coroutines)
{
    struct crowd order = {.n = b->iterations, .coroutines = coroutines};
    struct told told;
    bench_pause(b);
    struct own_process p = own_process_begin(sample, &order);
    bool is_good = hear(&p, BEGUN, &told);
    bench_resume(b);
    is_good = is_good && hear(&p, BLOCKED, &told);
    bench_pause(b);
    is_good = is_good && hear(&p, DONE, &told);
    if (own_process_end(&p, b, is_good))
        bench_counter(b, "bytes_each", told.bytes_each);
}

BENCH(w5_mem_fiber, .fixed_iterations = TASKS,
      .note = "fibers blocked on a join; try --fixed 1000000 (4.3 GB)")
{
    measure(b, false);
}

BENCH(w5_mem_coro, .fixed_iterations = TASKS,
      .note = "coroutine tasks blocked on a join; try --fixed 1000000")
{
    measure(b, true);
}
