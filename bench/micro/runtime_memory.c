/* SPDX-License-Identifier: MIT */
/* What a runtime costs that does nothing (R2, R3): memory that became resident, in a process of its
 * own for each sample, and the time to make one, run an empty task on it, and destroy it.
 *
 *     created   bytes more than before, when it was made: its threads wait
 *     ran       the same when its first task has run: that has a stack and a record
 *     another   what a second runtime adds when its first task has run; some of the first one's
 *               bytes are the process's
 *
 * The driver is poll's, which has no buffers, or the usual one. Pages are counted, of memory that
 * is no file's; so what threads of the C library touch of their stacks is in it, 8 KiB each. */
#include "bench.h"
#include "own_process.h"

#include <sinew/sinew.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct sizes {
    double created, ran, another;
};

static double anonymous_bytes(void)
{
    static char line[256]; /* no memory of the heap's is touched between two looks */
    static char buffer[BUFSIZ];
    long kib = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    if (file == NULL)
        _exit(1);
    setvbuf(file, buffer, _IOFBF, sizeof(buffer));
    while (kib < 0 && fgets(line, sizeof(line), file) != NULL)
        (void)sscanf(line, "Anonymous: %ld", &kib);
    fclose(file);
    if (kib < 0)
        _exit(1);
    return (double)kib * 1024;
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static sn_runtime *create_and_run(const sn_runtime_options *opts, double *created, double *ran)
{
    sn_runtime *rt;
    if (sn_runtime_create(&rt, opts) < 0)
        _exit(1);
    (void)usleep(20 * 1000); /* its threads have come to rest */
    *created = anonymous_bytes();
    if (sn_runtime_block_on(rt, do_nothing, NULL) != 0)
        _exit(1);
    *ran = anonymous_bytes();
    return rt;
}

struct order {
    sn_runtime_options opts;
    uint64_t n; /* runtimes to be timed */
};

/* Tell the sizes; then make and destroy runtimes, and tell that it is done. */
static void sample(const void *arg, int with)
{
    const struct order *order = arg;
    double created, ran, ignored, another;
    (void)anonymous_bytes(); /* the C library's own, for the first time */
    double before = anonymous_bytes();
    sn_runtime *first = create_and_run(&order->opts, &created, &ran);
    sn_runtime *second = create_and_run(&order->opts, &ignored, &another);
    struct sizes sizes = {created - before, ran - before, another - ran};
    sn_runtime_destroy(second);
    sn_runtime_destroy(first);
    bool is_good = write(with, &sizes, sizeof(sizes)) == (ssize_t)sizeof(sizes) &&
                   read(with, &(char){0}, 1) == 1;
    for (uint64_t i = 0; i < order->n && is_good; i++) {
        sn_runtime *rt;
        is_good = sn_runtime_create(&rt, &order->opts) == 0 &&
                  sn_runtime_block_on(rt, do_nothing, NULL) == 0;
        if (is_good)
            sn_runtime_destroy(rt);
    }
    _exit(!is_good || write(with, "", 1) != 1);
}

static void measure(struct bench *b, sn_runtime_options opts)
{
    struct order order = {.opts = opts, .n = b->iterations};
    struct sizes sizes;
    bench_pause(b);
    struct own_process p = own_process_begin(sample, &order);
    bool is_good = own_process_hear(&p, &sizes, sizeof(sizes));
    bench_resume(b);
    is_good = is_good && own_process_go(&p) && own_process_hear(&p, &(char){0}, 1);
    bench_pause(b);
    if (!own_process_end(&p, b, is_good))
        return;
    bench_counter(b, "created_bytes", sizes.created);
    bench_counter(b, "ran_bytes", sizes.ran);
    bench_counter(b, "another_bytes", sizes.another);
}

BENCH(runtime_single, .fixed_iterations = 100, .unpinned = true,
      .note = "Level 1, without a driver that has buffers")
{
    measure(b, (sn_runtime_options){.single_threaded = true, .io = SN_IO_POLL});
}

BENCH(runtime_2_workers, .fixed_iterations = 100, .unpinned = true, .note = "likewise, Level 2")
{
    measure(b, (sn_runtime_options){.workers = 2, .io = SN_IO_POLL});
}

BENCH(runtime_8_workers, .fixed_iterations = 100, .unpinned = true, .note = "likewise")
{
    measure(b, (sn_runtime_options){.workers = 8, .io = SN_IO_POLL});
}

BENCH(runtime_usual, .fixed_iterations = 100, .unpinned = true,
      .note = "a worker for each processor, the best driver")
{
    measure(b, (sn_runtime_options){.workers = 0});
}
