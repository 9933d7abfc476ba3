/* SPDX-License-Identifier: MIT */
/* expect gcc: not compatible with any association */
/* expect clang: not compatible with any generic association type */
#include <sinew/coro.h>

typedef struct job {
    sn_coro coro;
    int n;
} job;

sn_future *start(job *j);
int compute(int n);

typedef struct other {
    sn_coro coro;
} other;

SN_CORO(job, self)
{
    SN_BEGIN(self);
    SN_END();
}

sn_future *start_other(other *o);
sn_future *start_other(other *o)
{
    return SN_START(job, o);
}
