/* SPDX-License-Identifier: MIT */
/* An error on the way returns before the join. */
#include <sinew/sinew.h>

int work(void *arg);
int prepare(void);

int defect(void)
{
    sn_task *t = sn_spawn(work, NULL);
    int rc = prepare();
    if (rc < 0)
        return rc; /* gcc: malloc-leak; clang: leak */
    return sn_join(t, NULL);
}
