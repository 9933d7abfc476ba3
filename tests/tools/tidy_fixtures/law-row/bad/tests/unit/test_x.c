/* SPDX-License-Identifier: MIT */
/* LAW(sn_wait) in a comment is no row. */
int test(void)
{
    return sn_look() + sn_wait(0) + sn_wait_op(0, 0) + sn_last_op();
}
