/* SPDX-License-Identifier: MIT */
/* mutex.h - the mutexes of the system, as a program that checks who suspends marks them. */
#ifndef SINEW_TESTS_STATIC_MUTEX_H
#define SINEW_TESTS_STATIC_MUTEX_H

#include <pthread.h>
#include <sinew/annotate.h>

int pthread_mutex_lock(pthread_mutex_t *m) SN_LOCKS;
int pthread_mutex_unlock(pthread_mutex_t *m) SN_UNLOCKS;

#endif
