/* SPDX-License-Identifier: MIT */
/* expect: duplicate case value */
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
    SN_YIELD(); SN_YIELD();
    SN_END();
}

sn_future *start(job *j)
{
    return SN_START(job, j);
}
