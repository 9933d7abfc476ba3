/* SPDX-License-Identifier: MIT */
/* A connection is read from after its close. */
#include <sinew/sinew.h>

int defect(sn_listener *l)
{
    char byte;
    sn_conn *c;
    if (sn_accept(l, &c, NULL, SN_FOREVER) < 0)
        return -1;
    sn_close(c);
    return (int)sn_read(c, &byte, 1, SN_NOWAIT); /* clang: is freed */
}
