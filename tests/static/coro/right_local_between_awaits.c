/* SPDX-License-Identifier: MIT */
/* expect: nothing */
#include <sinew/coro.h>

typedef struct job {
    sn_coro coro;
    int n;
} job;

sn_future *start(job *j);
int compute(int n);

SN_CORO(job, self)
{
    int rc;
    SN_BEGIN(self);
    int fresh = compute(1);
    self->n = fresh;
    SN_AWAIT_INTO(rc, start(self));
    SN_RETURN(rc);
    SN_END();
}

sn_future *start(job *j)
{
    return SN_START(job, j);
}
