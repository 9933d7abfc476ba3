/* SPDX-License-Identifier: MIT */
/* Mutexes: workload W9 of the yardstick, and what a lock costs that nobody else wants.
 *
 * W9: 1000 tasks, each 1000 times { lock; counter += 1; unlock } of one mutex. The time is per lock
 * and unlock, from the first spawn to the end of the last task. */
#include "bench.h"

#include <sinew/sinew.h>
#include <pthread.h>

enum {
    TASKS = 1000,
    ROUNDS = 1000,
};

static sn_mutex mutex;
static sn_rwlock rwlock;
static sn_sem sem;
static pthread_mutex_t floor_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t counter; /* guarded by the mutex */

/* ---- nobody else -------------------------------------------------------------------------- */

BENCH(mutex_lock_unlock, .note = "uncontended, plain thread")
{
    mutex = (sn_mutex)SN_MUTEX_INIT;
    for (uint64_t i = 0; i < b->iterations; i++) {
        if (sn_mutex_lock(&mutex, SN_FOREVER) != 0)
            bench_fail(b, "not locked");
        bench_clobber();
        (void)sn_mutex_unlock(&mutex);
    }
}

BENCH(mutex_floor, .note = "the same by pthread_mutex")
{
    for (uint64_t i = 0; i < b->iterations; i++) {
        pthread_mutex_lock(&floor_mutex);
        bench_clobber();
        pthread_mutex_unlock(&floor_mutex);
    }
    bench_keep(b);
}

BENCH(rwlock_read, .note = "lock and unlock, shared, uncontended")
{
    rwlock = (sn_rwlock)SN_RWLOCK_INIT;
    for (uint64_t i = 0; i < b->iterations; i++) {
        if (sn_rwlock_lock_shared(&rwlock, SN_FOREVER) != 0)
            bench_fail(b, "not locked");
        bench_clobber();
        (void)sn_rwlock_unlock_shared(&rwlock);
    }
}

BENCH(sem_acquire_release, .note = "uncontended")
{
    sem = (sn_sem)SN_SEM_INIT(1);
    for (uint64_t i = 0; i < b->iterations; i++) {
        if (sn_sem_acquire(&sem, 1, SN_FOREVER) != 0)
            bench_fail(b, "not acquired");
        bench_clobber();
        (void)sn_sem_release(&sem, 1);
    }
}

/* ---- W9 ----------------------------------------------------------------------------------- */

static int lock_and_add(void *arg)
{
    for (uint64_t i = 0; i < *(uint64_t *)arg; i++) {
        int rc = sn_mutex_lock(&mutex, SN_FOREVER);
        if (rc < 0)
            return rc;
        counter++;
        (void)sn_mutex_unlock(&mutex);
    }
    return 0;
}

static int run_all(void *arg)
{
    struct bench *b = arg;
    static sn_task *task[TASKS];
    uint64_t rounds = b->iterations;
    int rc = 0;
    counter = 0;
    bench_resume(b);
    for (int i = 0; i < TASKS; i++)
        task[i] = sn_spawn(lock_and_add, &rounds);
    for (int i = 0; i < TASKS; i++) {
        int one = sn_join(task[i], NULL);
        rc = rc < 0 ? rc : one;
    }
    bench_pause(b);
    return rc == 0 && counter != TASKS * rounds ? -ERANGE : rc;
}

static void w9(struct bench *b, unsigned workers, bool fair)
{
    sn_runtime *rt = NULL;
    sn_runtime_options opts = {.workers = workers, .single_threaded = workers == 1};
    bench_pause(b);
    mutex = fair ? (sn_mutex)SN_MUTEX_FAIR_INIT : (sn_mutex)SN_MUTEX_INIT;
    if (sn_runtime_create(&rt, &opts) < 0 || sn_runtime_block_on(rt, run_all, b) != 0)
        bench_fail(b, "a wrong result");
    sn_runtime_destroy(rt);
}

BENCH(w9_mutex_1_worker, .ops = TASKS, .fixed_iterations = ROUNDS, .unpinned = true)
{
    w9(b, 1, false);
}

BENCH(w9_mutex_2_workers, .ops = TASKS, .fixed_iterations = ROUNDS, .unpinned = true)
{
    w9(b, 2, false);
}

BENCH(w9_fair_mutex_2_workers, .ops = TASKS, .fixed_iterations = ROUNDS / 10, .unpinned = true,
      .note = "handed over in order of arrival")
{
    w9(b, 2, true);
}
