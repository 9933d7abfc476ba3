/* SPDX-License-Identifier: MIT */
/* How long a worker that has nothing to do takes to come: workload W11 of the yardstick.
 *
 * A caller spins for a gap, notes the time and wakes a task, which notes the time as its first act.
 * The caller never leaves its processor, so the task can only run on a worker that idles: since the
 * gap, which is 200 us (it sleeps in the kernel) or 2 us (it has only just run out of work). The
 * caller is a task on the other of two workers, or a plain thread outside. The floor is the same
 * between two threads, with nothing but the kernel's futex. A task that is woken to hurry is kept
 * for the worker of its waker and is not for others to take; so the wake is one that need not
 * hurry, as that of a join is.
 *
 * The time of a sample is the sum of these latencies; counters give their median and 99th
 * percentile in ns. What counts is the ratio to the floor of the same run: it depends on the
 * machine how deep an idle processor sleeps. */
#include "bench.h"

#include "plat/clock.h"
#include "plat/thread.h"
#include "wait/wait.h"

#include <sinew/sinew.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    WAKES = 2000,
    WAKES_MAX = 1000000, /* of --fixed */
    GO_ON = 1,
    STOP = 2,
};

static struct {
    int64_t gap_ns;
    _Atomic(struct sni_waiter *) waiting; /* the task's, when it is about to wait    */
    SNI_ATOMIC(uint32_t) word;            /* floor: what the thread waits on          */
    _Atomic int64_t arrived_ns;           /* by the one that was woken; 0: not yet    */
} scene;

static int64_t latencies[WAKES_MAX];

static void spin_until(int64_t until_ns)
{
    while (sni_plat_now_ns() < until_ns)
        sni_cpu_pause();
}

/* ---- the one that is woken ------------------------------------------------------------------- */

static int sleeper(void *arg)
{
    (void)arg;
    for (;;) {
        struct sni_waiter w;
        sni_wait_begin(&w);
        atomic_store(&scene.waiting, &w);
        int rc = sni_wait_commit(&w, SN_FOREVER);
        atomic_store(&scene.arrived_ns, sni_plat_now_ns());
        if (rc == STOP)
            return 0;
    }
}

static void *sleeping_thread(void *arg)
{
    (void)arg;
    for (;;) {
        uint32_t found;
        /* acquire: pairs with the store in wake_thread */
        while ((found = sni_atomic_load(&scene.word, acquire)) == 0)
            (void)sni_plat_park(&scene.word.raw_, 0, INT64_MAX);
        int64_t now = sni_plat_now_ns();
        sni_atomic_store(&scene.word, 0, relaxed); /* relaxed: published by the time of arrival */
        atomic_store(&scene.arrived_ns, now);
        if (found == STOP)
            return NULL;
    }
}

/* ---- the one that wakes ---------------------------------------------------------------------- */

static void wake_task(int how)
{
    struct sni_waiter *w;
    while ((w = atomic_exchange(&scene.waiting, NULL)) == NULL)
        sni_cpu_pause();
    (void)sni_wait_claim_last(w, how);
}

static void wake_thread(int how)
{
    sni_atomic_store(&scene.word, (uint32_t)how, release); /* release: to sleeping_thread */
    sni_plat_unpark(&scene.word.raw_, 1);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void wake_many(struct bench *b, void (*wake)(int how))
{
    uint64_t n = b->iterations < WAKES_MAX ? b->iterations : WAKES_MAX;
    bench_pause(b);
    for (uint64_t i = 0; i < n; i++) {
        spin_until(sni_plat_now_ns() + scene.gap_ns);
        atomic_store(&scene.arrived_ns, 0);
        bench_resume(b);
        int64_t from = sni_plat_now_ns();
        wake(GO_ON);
        int64_t arrived;
        while ((arrived = atomic_load(&scene.arrived_ns)) == 0)
            sni_cpu_pause();
        bench_pause(b);
        latencies[i] = arrived - from;
    }
    wake(STOP);
    qsort(latencies, n, sizeof(latencies[0]), compare);
    if (latencies[0] <= 0)
        bench_fail(b, "somebody came before it was called");
    bench_counter(b, "p50_ns", (double)latencies[n / 2]);
    bench_counter(b, "p99_ns", (double)latencies[n * 99 / 100]);
}

/* ---- from a worker, from a thread, and the floor --------------------------------------------- */

static int call_from_worker(void *arg)
{
    sn_task *t = sn_spawn(sleeper, NULL);
    wake_many(arg, wake_task);
    return sn_join(t, NULL);
}

static int wait_for_sleeper(void *arg)
{
    return sn_join(arg, NULL);
}

static sn_runtime *begin(struct bench *b, unsigned workers, int64_t gap_us)
{
    sn_runtime *rt = NULL;
    scene.gap_ns = gap_us * 1000;
    atomic_store(&scene.waiting, NULL);
    if (workers > 0 && sn_runtime_create(&rt, &(sn_runtime_options){.workers = workers}) < 0)
        bench_fail(b, "no runtime");
    return rt;
}

static void from_worker(struct bench *b, int64_t gap_us)
{
    sn_runtime *rt = begin(b, 2, gap_us);
    if (rt != NULL && sn_runtime_block_on(rt, call_from_worker, b) != 0)
        bench_fail(b, "a wrong result");
    sn_runtime_destroy(rt);
}

static void from_thread(struct bench *b, int64_t gap_us)
{
    sn_runtime *rt = begin(b, 1, gap_us);
    if (rt == NULL)
        return;
    sn_task *t = sn_runtime_spawn(rt, sleeper, NULL);
    wake_many(b, wake_task);
    if (sn_runtime_block_on(rt, wait_for_sleeper, t) != 0)
        bench_fail(b, "a wrong result");
    sn_runtime_destroy(rt);
}

static void between_threads(struct bench *b, int64_t gap_us)
{
    pthread_t thread;
    (void)begin(b, 0, gap_us);
    if (pthread_create(&thread, NULL, sleeping_thread, NULL) != 0) {
        bench_fail(b, "no thread");
        return;
    }
    wake_many(b, wake_thread);
    pthread_join(thread, NULL);
}

BENCH(w11_wake_floor_200us, .fixed_iterations = WAKES, .unpinned = true,
      .note = "a thread that sleeps in the kernel, by futex")
{
    between_threads(b, 200);
}

BENCH(w11_wake_from_worker_200us, .fixed_iterations = WAKES, .unpinned = true,
      .note = "a task, by a task on the other worker")
{
    from_worker(b, 200);
}

BENCH(w11_wake_from_thread_200us, .fixed_iterations = WAKES, .unpinned = true,
      .note = "a task, by a plain thread")
{
    from_thread(b, 200);
}

BENCH(w11_wake_floor_2us, .fixed_iterations = WAKES, .unpinned = true,
      .note = "a thread that has only just gone to sleep")
{
    between_threads(b, 2);
}

BENCH(w11_wake_from_worker_2us, .fixed_iterations = WAKES, .unpinned = true,
      .note = "the worker has only just run out of work")
{
    from_worker(b, 2);
}

BENCH(w11_wake_from_thread_2us, .fixed_iterations = WAKES, .unpinned = true,
      .note = "the same, by a plain thread")
{
    from_thread(b, 2);
}
