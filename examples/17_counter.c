/* SPDX-License-Identifier: MIT */
/* 17_counter - one counter, and three kinds of writers: fibers, coroutines and this very thread.
 *
 * They lock the same mutex: a fiber is suspended, a thread is blocked, a coroutine awaits. */
#include <sinew/sinew.h>
#include <stdio.h>

enum { ROUNDS = 1000 };
static sn_mutex lock = SN_MUTEX_INIT;
static sn_wait_group busy = SN_WAIT_GROUP_INIT;
static long counter; /* guarded by lock */

static int add(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS && sn_mutex_lock(&lock, SN_FOREVER) == 0; i++) {
        counter++;
        sn_mutex_unlock(&lock);
    }
    return sn_wait_group_done(&busy);
}

typedef struct adder {
    sn_coro coro;
    int i;
    sn_sync_state wait;
} adder;

SN_CORO(adder, self)
{
    SN_BEGIN(self);
    for (self->i = 0; self->i < ROUNDS; self->i++) {
        SN_AWAIT(sn_mutex_lock_op(&self->wait, &lock));
        counter++;
        sn_mutex_unlock(&lock);
    }
    SN_RETURN(sn_wait_group_done(&busy));
    SN_END();
}

static int begin(void *arg)
{
    int rc = sn_spawn_coro_detached(adder, &(adder){.i = 0});
    return rc < 0 ? rc : add(arg);
}

int main(void)
{
    sn_runtime *rt;
    if (sn_runtime_create(&rt, NULL) < 0)
        return 1;
    sn_wait_group_add(&busy, 3);
    int rc = sn_detach(sn_runtime_spawn(rt, begin, NULL));
    if (rc == 0 && add(NULL) == 0) /* no task, and just as good */
        rc = sn_wait_group_wait(&busy, SN_FOREVER);
    printf("counted to %ld\n", counter);
    sn_runtime_destroy(rt);
    return rc < 0;
}
