/* SPDX-License-Identifier: MIT */
/* own_process.h - a sample in a process of its own, for what a process keeps once it had it. */
#ifndef SINEW_BENCH_OWN_PROCESS_H
#define SINEW_BENCH_OWN_PROCESS_H

#include "bench.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct own_process {
    pid_t pid; /* not positive: there is none */
    int with;  /* what is told, both ways */
};

/* Run `fn(arg, with)` in a new process, which is to tell its results by write(with, ...) and to end
 * by _exit: with 0, if all was well. */
static inline struct own_process own_process_begin(void (*fn)(const void *arg, int with),
                                                   const void *arg)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        return (struct own_process){.pid = -1, .with = -1};
    pid_t pid = fork();
    if (pid == 0) {
        fn(arg, ends[1]);
        _exit(1);
    }
    close(ends[1]);
    return (struct own_process){.pid = pid, .with = ends[0]};
}

/* Let it go on: it reads a byte. Then what is timed begins not before the clock does. */
static inline bool own_process_go(const struct own_process *p)
{
    return p->pid > 0 && write(p->with, "", 1) == 1;
}

/* Wait until it has told so much. False: it did not. */
static inline bool own_process_hear(const struct own_process *p, void *what, size_t bytes)
{
    return p->pid > 0 && read(p->with, what, bytes) == (ssize_t)bytes;
}

/* Wait for its end. Returns whether all was well; if not, or if `is_good` is false, the benchmark
 * has failed. */
static inline bool own_process_end(const struct own_process *p, struct bench *b, bool is_good)
{
    int status = 1;
    if (p->with >= 0)
        close(p->with);
    if (p->pid > 0)
        (void)waitpid(p->pid, &status, 0);
    is_good = is_good && status == 0;
    if (!is_good)
        bench_fail(b, "a sample's process gave a wrong result, or had no memory");
    return is_good;
}

#endif
