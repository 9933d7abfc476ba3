// SPDX-License-Identifier: MIT

// The yardstick on oneTBB: fork-join by task_group.
//
//     tbb <workload> [key=value ...]
//
// WORKLOADS.md says what each workload is. The measuring code is the arena's master.
#include "../yard.h"

#include <string>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/version.h>

static void spawn_join()
{
    int64_t n = yard_arg("n", 1000000), batch = yard_arg("batch", 1000);
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < n; i += batch) {
        tbb::task_group g;
        for (int64_t j = 0; j < batch; j++) g.run([] {});
        g.wait();
    }
    yard_report(n, double(yard_now() - t0) / n, "%s", "");
}

static uint64_t sky(uint64_t num, uint64_t size)
{
    if (size == 1) return num;
    uint64_t sub = size / 10, r[10];
    tbb::task_group g;
    for (int i = 0; i < 10; i++) g.run([&r, i, num, sub] { r[i] = sky(num + i * sub, sub); });
    g.wait();
    uint64_t s = 0;
    for (uint64_t x : r) s += x;
    return s;
}

static void skynet()
{
    int64_t n = yard_arg("n", 1000000);
    int64_t t0 = yard_now();
    uint64_t r = sky(0, n);
    int64_t t1 = yard_now();
    yard_check(r == (uint64_t)n * (n - 1) / 2, "skynet");
    yard_report_result(n, t0, t1, r);
}

static uint64_t fib_task(int n)
{
    if (n < 2) return n;
    uint64_t a;
    tbb::task_group g;
    g.run([&a, n] { a = fib_task(n - 1); });
    uint64_t b = fib_task(n - 2);
    g.wait();
    return a + b;
}

static void fib()
{
    int n = (int)yard_arg("n", 30);
    int64_t t0 = yard_now();
    uint64_t r = fib_task(n);
    int64_t t1 = yard_now();
    yard_check(r == yard_fib(n), "fib");
    int64_t s = yard_fib(n + 1) - 1;
    yard_report_result(s, t0, t1, r);
}

int main(int argc, char **argv)
{
    yard_begin(argc, argv, "tbb", TBB_runtime_version());
    std::string workload = yard.workload;
    void (*f)() = nullptr;
    if (workload == "spawn_join") f = spawn_join;
    if (workload == "skynet") f = skynet;
    if (workload == "fib") f = fib;
    if (!f) return yard_no_workload();
    tbb::global_control gc(tbb::global_control::max_allowed_parallelism, yard.workers);
    tbb::task_arena arena(yard.workers);
    arena.execute(f);
    return 0;
}
