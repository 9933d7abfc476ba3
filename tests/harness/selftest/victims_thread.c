/* SPDX-License-Identifier: MIT */
/* victims_thread.c - what the thread sanitizer reports must fail a test. */
#include "harness.h"

#include <pthread.h>

static int shared;

static void *increment(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++)
        shared++;
    return NULL;
}

TEST(trips_the_sanitizer)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, increment, NULL), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}
