/* SPDX-License-Identifier: MIT */
/* A handle is looked at, and then forgotten. */
#include <sinew/sinew.h>

int work(void *arg);

int defect(void)
{
    sn_task *t = sn_spawn(work, NULL);
    if (t == NULL)
        return -1;
    return 0; /* gcc: malloc-leak; clang: leak */
}
