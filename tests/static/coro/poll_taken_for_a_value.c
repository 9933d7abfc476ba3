/* SPDX-License-Identifier: MIT */
/* expect: error: */
#include <sinew/future.h>

int value_of(sn_future *fut, sn_cx *cx);
int value_of(sn_future *fut, sn_cx *cx)
{
    return sn_future_poll(fut, cx);
}
