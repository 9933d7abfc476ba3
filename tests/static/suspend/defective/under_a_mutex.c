/* SPDX-License-Identifier: MIT */
/* A task sleeps with a mutex of the system in its hands. */
#include "../mutex.h"
#include <sinew/sinew.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

SN_SUSPENDS int defect(void)
{
    pthread_mutex_lock(&m);
    int rc = sn_sleep(SN_MS(1)); /* roles: cannot call function 'sn_sleep' while mutex */
    pthread_mutex_unlock(&m);
    return rc;
}
