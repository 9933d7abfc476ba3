/* SPDX-License-Identifier: MIT */
/* sn_unused is only spoken of */
int test(void)
{
    return sn_used();
}
