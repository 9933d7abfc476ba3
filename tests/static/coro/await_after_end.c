/* SPDX-License-Identifier: MIT */
/* expect: this must stand between SN_BEGIN and SN_END */
#include <sinew/coro.h>

typedef struct job {
    sn_coro coro;
    int n;
} job;

sn_future *start(job *j);
int compute(int n);

SN_CORO(job, self)
{
    SN_BEGIN(self);
    SN_END();
    SN_YIELD();
}

sn_future *start(job *j)
{
    return SN_START(job, j);
}
