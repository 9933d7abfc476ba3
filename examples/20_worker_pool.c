/* SPDX-License-Identifier: MIT */
/* 20_worker_pool - three workers, many jobs, little room: who brings too many has to wait. */
#include <sinew/sinew.h>
#include <stdatomic.h>
#include <stdio.h>

enum { WORKERS = 3, JOBS = 200, ROOM = 4 };

static SN_CHAN(int) jobs;
static atomic_int waiting, waiting_max; /* jobs that were brought and are not yet done */
static atomic_long sum;

static int work(void *arg)
{
    (void)arg;
    for (int job; SN_CHAN_RECV(&jobs, &job, SN_FOREVER) == 0;) {
        (void)sn_sleep(SN_US(100)); /* hard work */
        atomic_fetch_add(&sum, job);
        atomic_fetch_sub(&waiting, 1);
    }
    return 0;
}

static int app(void *arg)
{
    sn_task *worker[WORKERS];
    (void)arg;
    if (SN_CHAN_CREATE(&jobs, ROOM, NULL) < 0)
        return -1;
    for (int i = 0; i < WORKERS; i++)
        worker[i] = sn_spawn(work, NULL, .name = "worker");
    for (int job = 1; job <= JOBS; job++) {
        int n = atomic_fetch_add(&waiting, 1) + 1;
        if (n > waiting_max)
            waiting_max = n;
        if (SN_CHAN_SEND(&jobs, &job, SN_FOREVER) < 0) /* waits while there is no room */
            break;
    }
    (void)sn_chan_close(jobs.chan); /* what is inside is still done */
    for (int i = 0; i < WORKERS; i++)
        (void)sn_join(worker[i], NULL);
    sn_chan_destroy(jobs.chan);
    printf("%d jobs done, their sum is %ld\n", JOBS - waiting, sum);
    /* those in the channel, one in the hands of each worker, and the one that waits for room */
    printf("never more than %d at a time: %s\n", ROOM + WORKERS + 1,
           waiting_max <= ROOM + WORKERS + 1 ? "true" : "false");
    return 0;
}

int main(void)
{
    return sn_run(app, NULL) < 0;
}
