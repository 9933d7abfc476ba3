/* SPDX-License-Identifier: MIT */
/* Functions that suspend and say so, and functions that do not suspend. */
#include "../mutex.h"
#include <sinew/sinew.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int count;

void locks_and_does_not_suspend(void)
{
    pthread_mutex_lock(&m);
    count++;
    pthread_mutex_unlock(&m);
}

SN_SUSPENDS int suspends_before_and_after(sn_chan *ch)
{
    int value;
    int rc = sn_chan_recv(ch, &value, SN_FOREVER);
    pthread_mutex_lock(&m);
    count += value;
    pthread_mutex_unlock(&m);
    return rc < 0 ? rc : sn_chan_send(ch, &value, SN_FOREVER);
}

SN_SUSPENDS int suspends_in_a_loop(sn_chan *ch)
{
    int value;
    while (sn_chan_recv(ch, &value, SN_FOREVER) == 0)
        locks_and_does_not_suspend();
    return 0;
}

SN_SUSPENDS int unlocks_on_both_paths(bool much)
{
    pthread_mutex_lock(&m);
    if (!much) {
        pthread_mutex_unlock(&m);
        return sn_sleep(SN_MS(1));
    }
    count = 0;
    pthread_mutex_unlock(&m);
    return sn_sleep(SN_MS(2));
}

void lock_all(void) SN_LOCKS;
void lock_all(void)
{
    pthread_mutex_lock(&m);
}

void unlock_all(void) SN_UNLOCKS;
void unlock_all(void)
{
    pthread_mutex_unlock(&m);
}

SN_SUSPENDS void locks_through_functions(void)
{
    lock_all();
    count--;
    unlock_all();
    sn_yield();
}

SN_SUSPEND_UNCHECKED int tries_under_a_mutex(sn_chan *ch)
{
    pthread_mutex_lock(&m);
    int rc = sn_chan_send(ch, &count, SN_NOWAIT);
    pthread_mutex_unlock(&m);
    return rc;
}

int calls_the_one_that_knows_better(sn_chan *ch)
{
    return tries_under_a_mutex(ch);
}

SN_SUSPENDS static int work(void *arg)
{
    return sn_join(arg, NULL);
}

int spawns_without_suspending(sn_task *other)
{
    return sn_spawn_detached(work, other);
}

SN_SUSPENDS int keeps_a_promise(sn_mutex *lock)
{
    int rc = sn_mutex_lock(lock, SN_FOREVER);
    if (rc < 0)
        return rc;
    SN_NO_SUSPEND();
    count++;
    return sn_mutex_unlock(lock);
}

void wakes_others(sn_event *e, sn_chan *ch)
{
    SN_NO_SUSPEND();
    sn_event_set(e);
    sn_chan_close(ch);
}

int main(void)
{
    return sn_run(work, NULL);
}
