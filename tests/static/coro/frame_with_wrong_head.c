/* SPDX-License-Identifier: MIT */
/* expect: the frame of a coroutine needs a member */
#include <sinew/coro.h>

typedef struct disguised {
    struct {
        sn_future future;
        sn_future *awaiting_;
        uint32_t resume_;
        int value_;
    } coro;
} disguised;

SN_CORO(disguised, self)
{
    (void)self;
    (void)sn_cx_;
    return SN_PENDING;
}
