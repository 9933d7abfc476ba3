/* SPDX-License-Identifier: MIT */
/* The yardstick on OpenMP: fork-join by tasks (W1, W6, W7).
 *
 *     openmp <workload> [key=value ...]
 *
 * WORKLOADS.md says what each workload is. The measuring code is the `single` thread of a parallel
 * region. With one thread, gcc's runtime runs a task at once instead of putting it off, and so it
 * does when 64 tasks for each thread are waiting: it never holds a whole batch. */
#include "../yard.h"

#include <omp.h>

static void spawn_join(void)
{
    int64_t n = yard_arg("n", 1000000);
    int64_t batch = yard_arg("batch", 1000);
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < n; i += batch) {
        for (int64_t k = 0; k < batch; k++) {
#pragma omp task
            __asm__ volatile(""); /* an empty body is compiled to no task at all */
        }
#pragma omp taskwait
    }
    yard_report(n, (double)(yard_now() - t0) / (double)n, ",\"batch\":%lld", (long long)batch);
}

static uint64_t sky(uint64_t first, uint64_t leaves)
{
    if (leaves == 1)
        return first;
    uint64_t sums[10];
    for (unsigned i = 0; i < 10; i++) {
#pragma omp task shared(sums) firstprivate(i)
        sums[i] = sky(first + i * (leaves / 10), leaves / 10);
    }
#pragma omp taskwait
    uint64_t sum = 0;
    for (unsigned i = 0; i < 10; i++)
        sum += sums[i];
    return sum;
}

static void skynet(void)
{
    uint64_t n = (uint64_t)yard_arg("n", 1000000);
    int64_t t0 = yard_now();
    uint64_t sum = sky(0, n);
    int64_t t1 = yard_now();
    yard_check(sum == yard_sum_below(n), "skynet");
    yard_report_result((int64_t)n, t0, t1, sum);
}

static uint64_t fib(int n)
{
    if (n < 2)
        return (uint64_t)n;
    uint64_t left;
#pragma omp task shared(left)
    left = fib(n - 1);
    uint64_t right = fib(n - 2);
#pragma omp taskwait
    return left + right;
}

static void fibonacci(void)
{
    int n = (int)yard_arg("n", 30);
    int64_t t0 = yard_now();
    uint64_t result = fib(n);
    int64_t t1 = yard_now();
    yard_check(result == yard_fib(n), "fib");
    yard_report_result((int64_t)yard_fib(n + 1) - 1, t0, t1, result);
}

int main(int argc, char **argv)
{
    char version[64];
    void (*f)(void) = NULL;
    snprintf(version, sizeof(version), "%d, gcc %s", _OPENMP, __VERSION__);
    yard_begin(argc, argv, "openmp", version);
    if (strcmp(yard.workload, "spawn_join") == 0)
        f = spawn_join;
    else if (strcmp(yard.workload, "skynet") == 0)
        f = skynet;
    else if (strcmp(yard.workload, "fib") == 0)
        f = fibonacci;
    else
        return yard_no_workload();
    omp_set_num_threads(yard.workers);
#pragma omp parallel
#pragma omp single
    f();
    return 0;
}
