/* SPDX-License-Identifier: MIT */
/* A handle goes into a structure, and that goes away. */
#include <sinew/sinew.h>

int work(void *arg);

struct job {
    sn_task *task;
    int id;
};

int defect(int id)
{
    struct job job = {.task = sn_spawn(work, NULL), .id = id};
    return job.task != NULL ? job.id : -1; /* clang: leak */
} /* gcc: malloc-leak */
