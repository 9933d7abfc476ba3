/* SPDX-License-Identifier: MIT */
/* Handles go into an array, and not all of them come out. */
#include <sinew/sinew.h>

int work(void *arg);

int defect(void)
{
    sn_task *t[2];
    t[0] = sn_spawn(work, NULL);
    t[1] = sn_spawn(work, NULL);
    return sn_join(t[1], NULL); /* clang: leak */
} /* gcc: malloc-leak */
