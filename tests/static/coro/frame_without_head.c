/* SPDX-License-Identifier: MIT */
/* expect gcc: has no member named 'coro' */
/* expect clang: no member named 'coro' in */
#include <sinew/coro.h>

typedef struct bare {
    int n;
} bare;

sn_future *start(bare *b);

SN_CORO(bare, self)
{
    SN_BEGIN(self);
    SN_END();
}

sn_future *start(bare *b)
{
    return SN_START(bare, b);
}
