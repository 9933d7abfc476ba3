/* SPDX-License-Identifier: MIT */
/* A function of this file joins, and so does its caller. */
#include <sinew/sinew.h>

int work(void *arg);

static int wait_for(sn_task *t)
{
    return sn_join(t, NULL);
}

int defect(void)
{
    sn_task *t = sn_spawn(work, NULL);
    int rc = wait_for(t);
    if (rc < 0)
        return rc;
    return sn_join(t, NULL); /* gcc: double-free; Wall: use-after-free; clang: released memory */
}
