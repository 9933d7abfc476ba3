/* SPDX-License-Identifier: MIT */
/* One turn of a loop in many goes on without the join. */
#include <sinew/sinew.h>

int work(void *arg);
int prepare(int i);

int defect(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) { /* clang: leak */
        sn_task *t = sn_spawn(work, NULL);
        if (prepare(i) < 0)
            continue;
        sum += sn_join(t, NULL);
    }
    return sum; /* gcc: malloc-leak */
}
