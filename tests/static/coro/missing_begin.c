/* SPDX-License-Identifier: MIT */
/* expect: error: */
#include <sinew/coro.h>

typedef struct job {
    sn_coro coro;
    int n;
} job;

sn_future *start(job *j);
int compute(int n);

SN_CORO(job, self)
{
    self->n = 1;
    SN_END();
}

sn_future *start(job *j)
{
    return SN_START(job, j);
}
