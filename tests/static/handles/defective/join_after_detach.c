/* SPDX-License-Identifier: MIT */
/* A task is let go, and then joined. */
#include <sinew/sinew.h>

int work(void *arg);

int defect(void)
{
    sn_task *t = sn_spawn(work, NULL);
    sn_detach(t);
    return sn_join(t, NULL); /* gcc: use-after-free; Wall: use-after-free; clang: released memory */
}
