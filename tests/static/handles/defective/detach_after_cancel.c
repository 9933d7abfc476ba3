/* SPDX-License-Identifier: MIT */
/* A task is cancelled, which waits for it, and then let go. */
#include <sinew/sinew.h>

int work(void *arg);

int defect(void)
{
    sn_task *t = sn_spawn(work, NULL);
    int rc = sn_cancel(t, NULL);
    sn_detach(t); /* gcc: use-after-free; Wall: use-after-free; clang: released memory */
    return rc;
}
