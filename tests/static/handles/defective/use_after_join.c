/* SPDX-License-Identifier: MIT */
/* A task has been joined, and is then waited for by a select. */
#include <sinew/sinew.h>

int work(void *arg);

int defect(void)
{
    sn_task *t = sn_spawn(work, NULL);
    sn_join(t, NULL);
    sn_case c = sn_case_join(t); /* gcc: use-after-free; Wall: use-after-free; clang: is freed */
    return sn_select(&c, 1, 0, SN_FOREVER);
}
