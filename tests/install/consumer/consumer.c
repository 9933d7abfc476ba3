/* SPDX-License-Identifier: MIT */
/* A program of somebody else: it uses what is installed and nothing of the source tree. */
#include <sinew/sinew.h>
#include <stdio.h>

typedef struct answer {
    sn_coro coro;
    sn_fut_yield pause;
} answer;

SN_CORO(answer, self)
{
    SN_BEGIN(self);
    SN_AWAIT(sn_fut_yield_init(&self->pause));
    SN_RETURN(42);
    SN_END();
}

int main(void)
{
    answer a;
    int value = sn_block_on_simple(SN_START(answer, &a), NULL);
    printf("sinew %d.%d.%d says %d\n", sn_version() >> 16, (sn_version() >> 8) & 0xFF,
           sn_version() & 0xFF, value);
    return value == 42 && sn_version() == SN_VERSION ? 0 : 1;
}
