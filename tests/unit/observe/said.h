/* SPDX-License-Identifier: MIT */
/* said.h - what a program says on standard error while it runs. */
#ifndef SINEW_TESTS_OBSERVE_SAID_H
#define SINEW_TESTS_OBSERVE_SAID_H

#include "harness.h"

#include <sinew/sinew.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct said {
    int result;
    char *text; /* to be freed */
};

/* Run `run(arg)` and listen. */
static inline struct said listen_to(int (*run)(void *arg), void *arg)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/said", temp_dir());
    int before = dup(STDERR_FILENO);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    CHECK(before >= 0 && fd >= 0);
    fflush(stderr);
    CHECK(dup2(fd, STDERR_FILENO) >= 0);
    struct said said = {.result = run(arg)};
    fflush(stderr);
    CHECK(dup2(before, STDERR_FILENO) >= 0);
    CHECK_EQ(close(before) | close(fd), 0);
    said.text = read_file(path);
    fputs(said.text, stderr); /* for who reads why the test has failed */
    return said;
}

/* How often `what` stands in `text`. */
static inline int times(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
        n++;
    return n;
}

/* What sn_run does with a runtime of any kind, and ends its run when all are asleep. */
static inline int run_to_the_end(const sn_runtime_options *opts, sn_task_fn *fn, void *arg)
{
    sn_runtime *rt = NULL;
    sn_runtime_options ends = *opts;
    ends.deadlock = SN_DEADLOCK_END;
    CHECK_EQ(sn_runtime_create(&rt, &ends), 0);
    int rc = sn_runtime_block_on(rt, fn, arg);
    int alive = sn_runtime_shutdown(rt, SN_FOREVER);
    sn_runtime_destroy(rt);
    return alive > 0 ? -EDEADLK : rc;
}

#endif
