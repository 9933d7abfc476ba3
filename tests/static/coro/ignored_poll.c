/* SPDX-License-Identifier: MIT */
/* expect gcc: ignoring return value of 'sn_future_poll' */
/* expect clang: ignoring return value of function declared with 'warn_unused_result' */
#include <sinew/future.h>

void poll_it(sn_future *fut, sn_cx *cx);
void poll_it(sn_future *fut, sn_cx *cx)
{
    sn_future_poll(fut, cx);
}
