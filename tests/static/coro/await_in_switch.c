/* SPDX-License-Identifier: MIT */
/* expect gcc: overflow in conversion */
/* expect clang: overflow converting case value */
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
    switch (self->n) {
    case 1:
        SN_YIELD();
        break;
    default:
        break;
    }
    SN_END();
}

sn_future *start(job *j)
{
    return SN_START(job, j);
}
