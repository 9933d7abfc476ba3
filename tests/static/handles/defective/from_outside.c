/* SPDX-License-Identifier: MIT */
/* A plain thread spawns into a runtime and forgets the handle. */
#include <sinew/sinew.h>

int work(void *arg);

int defect(sn_runtime *rt)
{
    sn_task *t = sn_runtime_spawn(rt, work, NULL);
    return t != NULL ? 0 : -1; /* gcc: malloc-leak; clang: leak */
}
