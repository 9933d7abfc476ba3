/* SPDX-License-Identifier: MIT */
int test(void)
{
    return sn_used() + sn_used_too();
}
