/* SPDX-License-Identifier: MIT */
/* A task receives with a mutex in its hands, on one path of two. */
#include "../mutex.h"
#include <sinew/sinew.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

SN_SUSPENDS int defect(sn_chan *ch, int *job)
{
    pthread_mutex_lock(&m);
    if (*job == 0)
        if (sn_chan_recv(ch, job, SN_FOREVER) < 0) /* roles: 'sn_chan_recv' while mutex */
            *job = -1;
    pthread_mutex_unlock(&m);
    return *job;
}
