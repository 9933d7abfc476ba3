/* SPDX-License-Identifier: MIT */
/* Two are spawned, and one is joined. */
#include <sinew/sinew.h>

int work(void *arg);

int defect(void)
{
    sn_task *a = sn_spawn(work, NULL);
    sn_task *b = sn_spawn(work, NULL);
    int rc = sn_join(a, NULL);
    return b == NULL ? -1 : rc; /* gcc: malloc-leak; clang: leak */
}
