/* SPDX-License-Identifier: MIT */
/* A connection is closed on an error, and then again. Only clang follows what came through an out
 * parameter. */
#include <sinew/sinew.h>

int defect(const char *addr)
{
    sn_conn *c;
    int rc = sn_connect(&c, addr, SN_FOREVER);
    if (rc < 0)
        return rc;
    rc = sn_write_all(c, "hello", 5, NULL, SN_FOREVER);
    if (rc < 0)
        sn_close(c);
    sn_close(c); /* clang: released memory */
    return rc;
}
