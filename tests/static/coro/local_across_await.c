/* SPDX-License-Identifier: MIT */
/* expect gcc: may be used uninitialized */
/* expect clang: is uninitialized when used here */
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
    int kept = compute(1);
    SN_YIELD();
    self->n = kept;
    SN_END();
}

sn_future *start(job *j)
{
    return SN_START(job, j);
}
