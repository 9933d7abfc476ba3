/* SPDX-License-Identifier: MIT */
/* What suspends under a mutex is a function of the program's own. */
#include "../mutex.h"
#include <sinew/sinew.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

SN_SUSPENDS static int fetch(sn_conn *c, char *byte)
{
    return (int)sn_read(c, byte, 1, SN_FOREVER);
}

SN_SUSPENDS int defect(sn_conn *c, char *byte)
{
    pthread_mutex_lock(&m);
    int rc = fetch(c, byte); /* roles: cannot call function 'fetch' while mutex */
    pthread_mutex_unlock(&m);
    return rc;
}
