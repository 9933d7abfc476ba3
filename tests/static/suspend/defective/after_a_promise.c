/* SPDX-License-Identifier: MIT */
/* A function says that it does not suspend from here on, and does. */
#include <errno.h>
#include <sinew/sinew.h>

SN_SUSPENDS int defect(sn_mutex *m)
{
    if (sn_mutex_lock(m, SN_FOREVER) < 0)
        return -1;
    SN_NO_SUSPEND(); /* errno is the thread's */
    errno = 0;
    sn_yield(); /* roles: cannot call function 'sn_yield' while role 'sn_no_suspend' */
    return -errno;
}
