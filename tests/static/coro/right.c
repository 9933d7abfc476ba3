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
    SN_BEGIN(self);
    for (self->n = 0; self->n < 3; self->n++)
        if (self->n == 1)
            SN_YIELD();
        else
            SN_EMIT(self->n);
    switch (self->n) {
    case 3:
        self->n = compute(self->n);
        break;
    default:
        SN_RETURN(1);
    }
    SN_AWAIT(start(self));
    SN_FINALLY();
    (void)compute(0);
    SN_END();
}

sn_future *start(job *j)
{
    return SN_START(job, j);
}
