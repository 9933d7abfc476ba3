/* SPDX-License-Identifier: MIT */
/* A handle goes into a variable that nobody reads. */
#include <sinew/sinew.h>

int work(void *arg);

void defect(void)
{
    sn_task *t = sn_spawn(work, NULL);
    (void)t;
} /* gcc: malloc-leak; clang: leak */
