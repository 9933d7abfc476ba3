/* SPDX-License-Identifier: MIT */
/* timer_sleep - how late sleepers wake up: workload W8 timer_sleep of the yardstick.
 *
 *     timer_sleep                                               all cases, as a table
 *     timer_sleep fiber|coro WORKERS TASKS ROUNDS MS [WARM_MS]   one, as a line of JSON
 *
 * All tasks sleep until one moment, then each sleeps `ms` again and again, `rounds` times, and
 * notes how much longer it was: as a task sees it, the wait for its turn included. 1000 tasks x
 * 1 ms and 10,000 x 10 ms are a million wakes a second, which a good runtime should just carry.
 * 100,000 x 1 ms is far too much for a few cores: there, ns/sleep is throughput, and P99 against
 * P50 is fairness.
 *
 * Nobody may wake up early: that is checked, and the exit code is 1 if somebody did. `cpu` is
 * processor time over time, of all threads. */
#include "histogram.h"

#include <sinew/sinew.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct load {
    bool coroutines;
    unsigned workers;
    uint32_t tasks;
    uint32_t rounds;
    int64_t sleep_ns;
    int64_t warm_ns;
};

struct result {
    struct histogram late_ns;
    uint64_t early;
    double ns_per_sleep;
    double cpu;
};

struct run {
    struct load load;
    sn_deadline begin;
    int32_t *late; /* ns, of task 0 its rounds, of task 1, ... */
    sn_task **tasks;
    int64_t end_ns;
    double begin_cpu_s;
    double end_cpu_s;
};

static struct run run;

static double cpu_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int32_t late_by(int64_t since_ns)
{
    int64_t ns = sn_now() - since_ns - run.load.sleep_ns;
    return ns < INT32_MAX ? (int32_t)ns : INT32_MAX; /* two seconds: late is late */
}

/* ---- those who sleep --------------------------------------------------------------------- */

static int sleep_fiber(void *arg)
{
    int32_t *late = arg;
    (void)sn_sleep_until(run.begin);
    for (uint32_t i = 0; i < run.load.rounds; i++) {
        int64_t since_ns = sn_now();
        (void)sn_sleep(run.load.sleep_ns);
        late[i] = late_by(since_ns);
    }
    return 0;
}

typedef struct sleeper {
    sn_coro coro;
    int32_t *late;
    uint32_t round;
    int64_t since_ns;
    sn_sleep_state nap;
} sleeper;

SN_CORO(sleeper, self)
{
    SN_BEGIN(self);
    SN_AWAIT(sn_sleep_op(&self->nap, run.begin));
    for (self->round = 0; self->round < run.load.rounds; self->round++) {
        self->since_ns = sn_now();
        SN_AWAIT(sn_sleep_op(&self->nap, sn_after(run.load.sleep_ns)));
        self->late[self->round] = late_by(self->since_ns);
    }
    SN_END();
}

/* ---- a case ------------------------------------------------------------------------------ */

static int spawn_and_join(void *arg)
{
    int rc = 0;
    (void)arg;
    run.begin = sn_after(run.load.warm_ns);
    for (uint32_t i = 0; i < run.load.tasks; i++) {
        int32_t *late = run.late + (size_t)i * run.load.rounds;
        run.tasks[i] = run.load.coroutines ? sn_spawn_coro(sleeper, &(sleeper){.late = late})
                                           : sn_spawn(sleep_fiber, late);
    }
    if (sn_now() >= run.begin.ns)
        fputs("timer_sleep: the warm-up was too short\n", stderr);
    (void)sn_sleep_until(run.begin);
    run.begin_cpu_s = cpu_s();
    for (uint32_t i = 0; i < run.load.tasks; i++)
        rc |= sn_join(run.tasks[i], NULL);
    run.end_ns = sn_now();
    run.end_cpu_s = cpu_s();
    return rc;
}

static void evaluate(struct result *result)
{
    size_t n = (size_t)run.load.tasks * run.load.rounds;
    *result = (struct result){0};
    for (size_t i = 0; i < n; i++) {
        result->early += run.late[i] < 0;
        histogram_add(&result->late_ns, run.late[i] < 0 ? 0 : (uint64_t)run.late[i]);
    }
    int64_t took_ns = run.end_ns - run.begin.ns;
    result->ns_per_sleep = (double)took_ns / (double)n;
    result->cpu = (run.end_cpu_s - run.begin_cpu_s) / ((double)took_ns / 1e9);
}

static int measure(const struct load *load, struct result *result)
{
    sn_runtime *rt = NULL;
    run = (struct run){.load = *load};
    run.late = malloc(sizeof(*run.late) * load->tasks * load->rounds);
    run.tasks = malloc(sizeof(*run.tasks) * load->tasks);
    int rc = run.late != NULL && run.tasks != NULL ? 0 : -ENOMEM;
    if (rc == 0)
        rc = sn_runtime_create(&rt, &(sn_runtime_options){.workers = load->workers});
    if (rc == 0)
        rc = sn_runtime_block_on(rt, spawn_and_join, NULL);
    sn_runtime_destroy(rt);
    if (rc == 0)
        evaluate(result);
    else
        fprintf(stderr, "timer_sleep: %s\n", strerror(-rc));
    free(run.late);
    free(run.tasks);
    if (rc == 0 && result->early > 0)
        fprintf(stderr, "timer_sleep: %llu woke up early\n", (unsigned long long)result->early);
    return rc == 0 && result->early == 0 ? 0 : 1;
}

/* ---- reports ------------------------------------------------------------------------------ */

static const char *kind_of(const struct load *load)
{
    return load->coroutines ? "coro" : "fiber";
}

static void print_json(const struct load *load, const struct result *r)
{
    const struct histogram *late = &r->late_ns;
    printf("{\"workload\":\"timer_sleep\",\"kind\":\"%s\",\"workers\":%u,\"tasks\":%u,"
           "\"rounds\":%u,\"ms\":%g",
           kind_of(load), load->workers, load->tasks, load->rounds, (double)load->sleep_ns / 1e6);
    printf(",\"ns_per_op\":%.1f,\"cpu\":%.2f", r->ns_per_sleep, r->cpu);
    printf(",\"p50_ns\":%llu,\"p99_ns\":%llu,\"p999_ns\":%llu,\"max_ns\":%llu}\n",
           (unsigned long long)histogram_quantile(late, 0.5),
           (unsigned long long)histogram_quantile(late, 0.99),
           (unsigned long long)histogram_quantile(late, 0.999), (unsigned long long)late->max);
}

static void print_row(const struct load *load, const struct result *r)
{
    printf("%-5s %7u %8u %6g %6u %12.1f %12.1f %12.1f %10.0f %5.2f\n", kind_of(load), load->workers,
           load->tasks, (double)load->sleep_ns / 1e6, load->rounds,
           (double)histogram_quantile(&r->late_ns, 0.5) / 1e3,
           (double)histogram_quantile(&r->late_ns, 0.99) / 1e3,
           (double)histogram_quantile(&r->late_ns, 0.999) / 1e3, r->ns_per_sleep, r->cpu);
    fflush(stdout);
}

static int measure_all(void)
{
    static const struct load loads[] = {
        {.tasks = 1000, .rounds = 1000, .sleep_ns = SN_MS(1), .warm_ns = SN_MS(500)},
        {.tasks = 10000, .rounds = 200, .sleep_ns = SN_MS(10), .warm_ns = SN_MS(500)},
        {.tasks = 100000, .rounds = 100, .sleep_ns = SN_MS(1), .warm_ns = SN_MS(2000)},
    };
    static struct result result;
    int rc = 0;
    printf("%-5s %7s %8s %6s %6s %12s %12s %12s %10s %5s\n", "kind", "workers", "tasks", "ms",
           "rounds", "P50 us late", "P99", "P999", "ns/sleep", "cpu");
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
        for (unsigned workers = 1; workers <= 2; workers++)
            for (int coroutines = 0; coroutines <= 1; coroutines++) {
                struct load load = loads[i];
                load.workers = workers;
                load.coroutines = coroutines == 1;
                rc |= measure(&load, &result);
                print_row(&load, &result);
            }
    return rc;
}

static int measure_one(int argc, char **argv)
{
    static struct result result;
    struct load load = {.coroutines = strcmp(argv[1], "coro") == 0,
                        .workers = (unsigned)atoi(argv[2]),
                        .tasks = (uint32_t)atoi(argv[3]),
                        .rounds = (uint32_t)atoi(argv[4]),
                        .sleep_ns = SN_MS(atoi(argv[5])),
                        .warm_ns = SN_MS(argc > 6 ? atoi(argv[6]) : 500)};
    if (load.tasks == 0 || load.rounds == 0)
        return 2;
    int rc = measure(&load, &result);
    print_json(&load, &result);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return measure_all();
    if (argc >= 6)
        return measure_one(argc, argv);
    fputs("usage: timer_sleep [fiber|coro WORKERS TASKS ROUNDS MS [WARM_MS]]\n", stderr);
    return 2;
}
