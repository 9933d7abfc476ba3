/* SPDX-License-Identifier: MIT */
/* own_process.h - a sample in a process of its own, for what a process keeps once it had it. */
#ifndef SINEW_BENCH_OWN_PROCESS_H
#define SINEW_BENCH_OWN_PROCESS_H

#include "bench.h"

#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

struct own_process {
    pid_t pid; /* not positive: there is none */
    int from;  /* what it tells */
};

/* Run `fn(arg, to)` in a new process, which is to tell its results by write(to, ...) and to end by
 * _exit: with 0, if all was well. */
static inline struct own_process own_process_begin(void (*fn)(const void *arg, int to),
                                                   const void *arg)
{
    int ends[2];
    if (pipe(ends) < 0)
        return (struct own_process){.pid = -1, .from = -1};
    pid_t pid = fork();
    if (pid == 0) {
        fn(arg, ends[1]);
        _exit(1);
    }
    close(ends[1]);
    return (struct own_process){.pid = pid, .from = ends[0]};
}

/* Wait until it has told so much. False: it did not. */
static inline bool own_process_hear(const struct own_process *p, void *what, size_t bytes)
{
    return p->pid > 0 && read(p->from, what, bytes) == (ssize_t)bytes;
}

/* Wait for its end. Returns whether all was well; if not, or if `is_good` is false, the benchmark
 * has failed. */
static inline bool own_process_end(const struct own_process *p, struct bench *b, bool is_good)
{
    int status = 1;
    if (p->from >= 0)
        close(p->from);
    if (p->pid > 0)
        (void)waitpid(p->pid, &status, 0);
    is_good = is_good && status == 0;
    if (!is_good)
        bench_fail(b, "a sample's process gave a wrong result, or had no memory");
    return is_good;
}

#endif
