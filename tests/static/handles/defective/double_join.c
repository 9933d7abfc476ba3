/* SPDX-License-Identifier: MIT */
/* A task is joined twice. */
#include <sinew/sinew.h>

int work(void *arg);

int defect(void)
{
    sn_task *t = sn_spawn(work, NULL);
    int rc = sn_join(t, NULL);
    if (rc < 0)
        return rc;
    return sn_join(t, NULL); /* gcc: double-free; Wall: use-after-free; clang: released memory */
}
