// SPDX-License-Identifier: MIT

// The yardstick on Boost.Fiber.
//
//     boost.fiber <workload> [key=value ...]
//
// WORKLOADS.md says what each workload is. workers=1: the default round_robin scheduler. workers=2:
// two threads with algo::work_stealing (idle threads spin: with suspend=true a sleeping thread is
// not told of new work). Stacks: pooled_fixedsize_stack, 16 KiB (stack=..).
#include "../yard.h"

#include <atomic>
#include <boost/fiber/all.hpp>
#include <boost/version.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace bf = boost::fibers;
using stack_t_ = bf::pooled_fixedsize_stack;

// one pool per thread: the pooled allocator is not thread safe across threads,
// so with two workers (fibers may finish elsewhere) malloc'ed stacks are used
static stack_t_ &pool()
{
    static thread_local stack_t_ p(yard_arg("stack", 16384));
    return p;
}

template <class F> static bf::fiber spawn(F &&f, bf::launch l = bf::launch::post)
{
    if (yard.workers == 1) return bf::fiber(l, std::allocator_arg, pool(), std::forward<F>(f));
    return bf::fiber(l, std::allocator_arg, bf::fixedsize_stack(yard_arg("stack", 16384)),
                     std::forward<F>(f));
}

static void spawn_join()
{
    int64_t n = yard_arg("n", 1000000), batch = yard_arg("batch", 1000);
    std::vector<bf::fiber> v;
    v.reserve(batch);
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < n; i += batch) {
        for (int64_t j = 0; j < batch; j++) v.push_back(spawn([] {}));
        for (auto &f : v) f.join();
        v.clear();
    }
    yard_report(n, double(yard_now() - t0) / n, "%s", "");
}

static void yield()
{
    int64_t n = yard_arg("n", 4000000), tasks = yard_arg("tasks", 2), per = n / tasks;
    std::vector<bf::fiber> v;
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < tasks; i++)
        v.push_back(spawn([per] {
            for (int64_t k = 0; k < per; k++) boost::this_fiber::yield();
        }));
    for (auto &f : v) f.join();
    yard_report(n, double(yard_now() - t0) / (per * tasks), "%s", "");
}

static void pingpong()
{
    int64_t n = yard_arg("n", 1000000);
    bf::unbuffered_channel<uint64_t> a, b;
    int64_t t0 = yard_now();
    auto f = spawn([&] {
        for (int64_t i = 0; i < n; i++) b.push(a.value_pop() + 1);
    });
    auto g = spawn([&] {
        uint64_t v = 0;
        for (int64_t i = 0; i < n; i++) {
            a.push(v);
            v = b.value_pop();
        }
        yard_check(v == (uint64_t)n, "pingpong");
    });
    f.join();
    g.join();
    yard_report_result(n, t0, yard_now(), n);
}

static void channel()
{
    int64_t n = yard_arg("n", 4000000), p = yard_arg("prod", 1), c = yard_arg("cons", 1), cap = yard_arg("cap", 64);
    int64_t per = n / p;
    bf::buffered_channel<uint64_t> ch(cap); // holds cap-1 values
    std::atomic<uint64_t> sum{0};
    std::vector<bf::fiber> ps, cs;
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < p; i++)
        ps.push_back(spawn([&ch, i, per] {
            for (int64_t k = 0; k < per; k++) ch.push((uint64_t)(i * per + k));
        }));
    for (int64_t i = 0; i < c; i++)
        cs.push_back(spawn([&] {
            uint64_t s = 0, v;
            while (ch.pop(v) == bf::channel_op_status::success) s += v;
            sum += s;
        }));
    for (auto &f : ps) f.join();
    ch.close();
    for (auto &f : cs) f.join();
    int64_t t1 = yard_now();
    uint64_t m = per * p;
    yard_check(sum == m * (m - 1) / 2, "chan");
    yard_report_result(n, t0, t1, sum);
}

static void mem()
{
    int64_t n = yard_arg("n", 100000);
    std::string kind = yard_word("kind", "sleep");
    std::atomic<int64_t> blocked{0};
    bf::buffered_channel<uint64_t> ch(64);
    long before = yard_status_kb("VmRSS");
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < n; i++) {
        if (kind == "sleep")
            spawn([&] {
                blocked++;
                boost::this_fiber::sleep_for(std::chrono::seconds(120));
            }).detach();
        else
            spawn([&] {
                blocked++;
                uint64_t v;
                ch.pop(v);
            }).detach();
    }
    while (blocked < n) boost::this_fiber::yield();
    int64_t t1 = yard_now();
    boost::this_fiber::sleep_for(std::chrono::milliseconds(300));
    long after = yard_status_kb("VmRSS");
    yard_report_memory(n, t0, t1, kind.c_str(), after - before);
    _exit(0);
}

// launch::dispatch: the child runs at once and the parent's continuation is what
// waits in the queue, so the tree is walked depth first (with post it is breadth
// first and 10^6 stacks are alive at once)
static uint64_t sky(uint64_t num, uint64_t size)
{
    if (size == 1) return num;
    uint64_t sub = size / 10, r[10];
    bf::fiber f[10];
    for (int i = 0; i < 10; i++)
        f[i] = spawn([&r, i, num, sub] { r[i] = sky(num + i * sub, sub); }, bf::launch::dispatch);
    uint64_t s = 0;
    for (int i = 0; i < 10; i++) {
        f[i].join();
        s += r[i];
    }
    return s;
}

static void skynet()
{
    int64_t n = yard_arg("n", 1000000);
    int64_t t0 = yard_now();
    uint64_t r = 0;
    spawn([&] { r = sky(0, n); }).join();
    int64_t t1 = yard_now();
    yard_check(r == (uint64_t)n * (n - 1) / 2, "skynet");
    yard_report_result(n, t0, t1, r);
}

static uint64_t fib_task(int n)
{
    if (n < 2) return n;
    uint64_t a = 0;
    bf::fiber f = spawn([&a, n] { a = fib_task(n - 1); }, bf::launch::dispatch);
    uint64_t b = fib_task(n - 2);
    f.join();
    return a + b;
}

static void fib()
{
    int n = (int)yard_arg("n", 30);
    uint64_t r = 0;
    int64_t t0 = yard_now();
    spawn([&] { r = fib_task(n); }).join();
    int64_t t1 = yard_now();
    yard_check(r == yard_fib(n), "fib");
    int64_t s = yard_fib(n + 1) - 1;
    yard_report_result(s, t0, t1, r);
}

static void timer_sleep()
{
    int64_t tasks = yard_arg("tasks", 100000), rounds = yard_arg("rounds", 100), ms = yard_arg("ms", 1),
            warm = yard_arg("warm_ms", 2000);
    std::vector<uint32_t> late(tasks * rounds);
    std::vector<bf::fiber> v;
    int64_t t0 = yard_now() + warm * 1000000;
    for (int64_t i = 0; i < tasks; i++)
        v.push_back(spawn([&late, i, rounds, ms, t0] {
            boost::this_fiber::sleep_for(std::chrono::nanoseconds(t0 - yard_now()));
            for (int64_t r = 0; r < rounds; r++) {
                int64_t a = yard_now();
                boost::this_fiber::sleep_for(std::chrono::milliseconds(ms));
                late[i * rounds + r] = yard_saturate(yard_now() - a - ms * 1000000);
            }
        }));
    for (auto &f : v) f.join();
    yard_report_sleeps(late.data(), tasks, rounds, t0, yard_now());
}

static void mutex()
{
    int64_t tasks = yard_arg("tasks", 1000), iters = yard_arg("iters", 1000), counter = 0;
    bf::mutex m;
    std::vector<bf::fiber> v;
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < tasks; i++)
        v.push_back(spawn([&] {
            for (int64_t k = 0; k < iters; k++) {
                m.lock();
                counter++;
                m.unlock();
            }
        }));
    for (auto &f : v) f.join();
    int64_t t1 = yard_now(), n = tasks * iters;
    yard_check(counter == n, "mutex");
    yard_report_result(n, t0, t1, counter);
}

// two threads with the default scheduler (their idle loop sleeps on a condition
// variable); the woken fiber belongs to the second thread
static void wake()
{
    int64_t n = yard_arg("n", 2000), gap = yard_arg("gap_us", 200) * 1000;
    std::vector<uint32_t> lat(n);
    bf::buffered_channel<int> ch(2);
    std::atomic<int64_t> stamp{0};
    std::thread t([&] {
        int x;
        while (ch.pop(x) == bf::channel_op_status::success) stamp = yard_now();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    for (auto &l : lat) {
        for (int64_t e = yard_now() + gap; yard_now() < e;) {}
        stamp = 0;
        int64_t a = yard_now(), s;
        ch.push(1);
        while (!(s = stamp)) {}
        l = yard_saturate(s - a);
    }
    ch.close();
    t.join();
    yard_report_wakes(lat.data(), n);
}

int main(int argc, char **argv)
{
    yard_begin(argc, argv, "boost.fiber", BOOST_LIB_VERSION);
    struct { const char *name; void (*f)(); } table[] = {
        {"spawn_join", spawn_join}, {"yield", yield}, {"pingpong", pingpong},
        {"chan", channel}, {"mem", mem}, {"skynet", skynet}, {"fib", fib},
        {"timer_sleep", timer_sleep}, {"mutex", mutex}, {"wake", wake}};
    for (auto &e : table) {
        if (strcmp(yard.workload, e.name) != 0) continue;
        if (yard.workers == 1 || e.f == wake) {
            e.f();
            fflush(stdout);
            _exit(0);
        }
        bf::mutex m;
        bf::condition_variable cv;
        bool done = false;
        std::vector<std::thread> ts;
        for (int i = 1; i < yard.workers; i++)
            ts.emplace_back([&] {
                bf::use_scheduling_algorithm<bf::algo::work_stealing>(yard.workers);
                std::unique_lock<bf::mutex> l(m);
                cv.wait(l, [&] { return done; });
            });
        bf::use_scheduling_algorithm<bf::algo::work_stealing>(yard.workers);
        e.f();
        fflush(stdout);
        _exit(0);
    }
    return yard_no_workload();
}
