/* SPDX-License-Identifier: MIT */
/* When the second spawn fails, the first task is forgotten. */
#include <sinew/sinew.h>

int work(void *arg);

int defect(void)
{
    sn_task *a = sn_spawn(work, NULL);
    sn_task *b = sn_spawn(work, NULL);
    if (b == NULL)
        return -1; /* gcc: malloc-leak; clang: leak */
    return sn_join(a, NULL) + sn_join(b, NULL);
}
