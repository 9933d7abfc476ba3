/* SPDX-License-Identifier: MIT */
/* The handle of a future that runs as a task is used up twice. */
#include <sinew/sinew.h>

int defect(sn_deadline at)
{
    sn_sleep_state nap;
    sn_task *t = sn_spawn_future(sn_sleep_op(&nap, at), &nap);
    sn_detach(t);
    return sn_detach(t); /* gcc: double-free; Wall: use-after-free; clang: released memory */
}
