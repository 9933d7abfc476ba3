/* SPDX-License-Identifier: MIT */
static const struct law_row rows[] = {
    LAW(sn_wait, .takes = 1),
    LAW(
        sn_wait_op, .takes = 1),
};

int test(void)
{
    return sn_look() + sn_last_op();
}
