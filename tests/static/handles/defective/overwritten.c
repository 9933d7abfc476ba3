/* SPDX-License-Identifier: MIT */
/* A second spawn takes the variable of the first. */
#include <sinew/sinew.h>

int work(void *arg);

int defect(void)
{
    sn_task *t = sn_spawn(work, NULL); /* clang: never read */
    t = sn_spawn(work, NULL);
    return sn_join(t, NULL); /* gcc: malloc-leak; clang: leak */
}
