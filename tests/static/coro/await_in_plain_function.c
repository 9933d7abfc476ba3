/* SPDX-License-Identifier: MIT */
/* expect: this must stand between SN_BEGIN and SN_END */
#include <sinew/coro.h>

typedef struct job {
    sn_coro coro;
    int n;
} job;

sn_future *start(job *j);
int compute(int n);

int helper(job *j);
int helper(job *j)
{
    SN_AWAIT(start(j));
    return 0;
}
