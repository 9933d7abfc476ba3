/* SPDX-License-Identifier: MIT */
/* 23_rate_limiter - three requests at once, then two each second: a bucket of tokens is a semaphore
 * that an interval fills. In virtual time, so that this takes no time at all. */
#include <sinew/sinew.h>
#include <stdio.h>

enum { BURST = 3, CALLERS = 3, CALLS = 4 };
static sn_sem bucket = SN_SEM_INIT(BURST);
static int64_t began;

/* Every half a second a token, unless the bucket is full. */
static int fill(void *arg)
{
    sn_interval drip;
    int rc = sn_interval_init(&drip, SN_MS(500), SN_MISSED_BURST);
    (void)arg;
    while (rc >= 0) { /* until it is cancelled */
        rc = sn_interval_wait(&drip);
        if (rc >= 0 && sn_sem_get(&bucket) < BURST)
            rc = sn_sem_release(&bucket, 1);
    }
    return rc;
}

static int call(void *arg)
{
    int me = *(int *)arg, rc = 0;
    for (int i = 1; i <= CALLS && rc == 0; i++) {
        /* the last one has no patience */
        rc = sn_sem_acquire(&bucket, 1, me == CALLERS ? sn_after(SN_MS(1200)) : SN_FOREVER);
        int ms = (int)((sn_now() - began) / SN_MS(1));
        printf("%d.%d s: caller %d, call %d%s\n", ms / 1000, ms % 1000 / 100, me, i,
               rc < 0 ? ": gives up" : "");
    }
    return rc;
}

static int app(void *arg)
{
    int number[CALLERS] = {1, 2, 3};
    sn_task *task[CALLERS], *filler = sn_spawn(fill, NULL);
    (void)arg;
    began = sn_now();
    for (int i = 0; i < CALLERS; i++)
        task[i] = sn_spawn(call, &number[i]);
    for (int i = 0; i < CALLERS; i++)
        printf("caller %d: %s\n", i + 1, sn_join(task[i], NULL) == 0 ? "served" : "lost");
    return sn_cancel(filler, NULL) == -ECANCELED ? 0 : -EIO;
}

int main(void)
{
    sn_runtime *rt;
    if (sn_runtime_create(&rt,
                          &(sn_runtime_options){.single_threaded = true, .virtual_time = true}))
        return 1;
    int rc = sn_runtime_block_on(rt, app, NULL);
    sn_runtime_destroy(rt);
    return rc < 0;
}
