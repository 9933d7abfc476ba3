/* SPDX-License-Identifier: MIT */
/* A function returns with the mutex locked, and does not say so. */
#include "../mutex.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

void defect(void)
{
    pthread_mutex_lock(&m);
} /* roles: still held at the end of function */
