// SPDX-License-Identifier: MIT

// The yardstick on CAF, the C++ Actor Framework.
//
//     caf <workload> [key=value ...]
//
// WORKLOADS.md says what each workload is. Event-based actors on the work-stealing scheduler with
// `workers` threads; the main thread starts the first actor and waits for a flag.
#include "../yard.h"

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "caf/all.hpp"


// a flag the plain main thread can wait for
struct Done {
    std::promise<uint64_t> p;
    void set(uint64_t v = 0) { p.set_value(v); }
    uint64_t wait() { return p.get_future().get(); }
};

// ---- W1
static void spawn_join(caf::actor_system &sys)
{
    int64_t n = yard_arg("n", 1000000), batch = yard_arg("batch", 1000);
    Done done;
    int64_t t0 = yard_now();
    sys.spawn([&, n, batch](caf::event_based_actor *self) -> caf::behavior {
        auto left = std::make_shared<int64_t>(n);
        auto open = std::make_shared<int64_t>(0);
        auto go = [=] {
            caf::actor me{self};
            *open = batch;
            for (int64_t i = 0; i < batch; i++)
                self->spawn([me](caf::event_based_actor *c) { c->send(me, int32_t{1}); });
        };
        go();
        return {[=, &done](int32_t) {
            if (--*open) return;
            if ((*left -= batch) > 0) {
                go();
                return;
            }
            done.set();
            self->quit();
        }};
    });
    done.wait();
    yard_report(n, double(yard_now() - t0) / n, "%s", "");
}

// ---- W5
static void mem(caf::actor_system &sys)
{
    int64_t n = yard_arg("n", 100000);
    std::atomic<int64_t> up{0};
    std::vector<caf::actor> v;
    v.reserve(n);
    long before = yard_status_kb("VmRSS");
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < n; i++)
        v.push_back(sys.spawn([&up](caf::event_based_actor *) -> caf::behavior {
            up++;
            return {[](int32_t) {}};
        }));
    while (up < n) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    int64_t t1 = yard_now();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    yard_report_memory(n, t0, t1, "recv", yard_status_kb("VmRSS") - before);
}

// ---- W6
static caf::behavior sky(caf::event_based_actor *self, caf::actor out, uint64_t num, uint64_t size)
{
    if (size == 1) {
        self->send(out, num);
        self->quit();
        return {};
    }
    uint64_t sub = size / 10;
    for (uint64_t i = 0; i < 10; i++)
        self->spawn(sky, caf::actor{self}, num + i * sub, sub);
    auto sum = std::make_shared<std::pair<uint64_t, int>>(0, 10);
    return {[=](uint64_t v) {
        sum->first += v;
        if (--sum->second) return;
        self->send(out, sum->first);
        self->quit();
    }};
}

static void skynet(caf::actor_system &sys)
{
    uint64_t n = yard_arg("n", 1000000);
    Done done;
    int64_t t0 = yard_now();
    auto sink = sys.spawn([&](caf::event_based_actor *self) -> caf::behavior {
        return {[=, &done](uint64_t v) { done.set(v); self->quit(); }};
    });
    sys.spawn(sky, sink, uint64_t{0}, n);
    uint64_t r = done.wait();
    int64_t t1 = yard_now();
    yard_check(r == n * (n - 1) / 2, "skynet");
    yard_report_result(n, t0, t1, r);
}

// ---- W10

static caf::behavior pong2(caf::event_based_actor *self, std::shared_ptr<caf::actor> peer)
{
    return {[=](uint64_t v) { self->send(*peer, v + 1); }};
}

static void actor_pingpong(caf::actor_system &sys)
{
    uint64_t n = yard_arg("n", 1000000);
    Done done;
    auto slot = std::make_shared<caf::actor>();
    auto b = sys.spawn(pong2, slot);
    int64_t t0 = yard_now();
    auto a = sys.spawn([&, b, n](caf::event_based_actor *self) -> caf::behavior {
        return {[=, &done](uint64_t v) {
            if (v >= n) {
                done.set(v);
                return;
            }
            self->send(b, v + 1);
        }};
    });
    *slot = a;
    caf::anon_send(a, uint64_t{0});
    done.wait();
    yard_report(n, double(yard_now() - t0) / n, "%s", "");
    fflush(stdout);
    _exit(0);
}

static void actor_ring(caf::actor_system &sys)
{
    int64_t n = yard_arg("n", 1000000), k = yard_arg("actors", 503);
    Done done;
    std::vector<caf::actor> ring(k);
    for (int64_t i = 0; i < k; i++) {
        auto *next = &ring[(i + 1) % k];
        ring[i] = sys.spawn([&done, next](caf::event_based_actor *self) -> caf::behavior {
            return {[=, &done](uint64_t v) {
                if (v == 0) done.set();
                else self->send(*next, v - 1);
            }};
        });
    }
    int64_t t0 = yard_now();
    caf::anon_send(ring[0], (uint64_t)n);
    done.wait();
    yard_report(n, double(yard_now() - t0) / n, "%s", "");
    fflush(stdout);
    _exit(0);
}

static void actor_spawn(caf::actor_system &sys)
{
    uint64_t n = yard_arg("n", 1000000);
    Done done;
    std::vector<caf::actor> v;
    v.reserve(n);
    std::atomic<uint64_t> up{0};
    auto sink = sys.spawn([&, n](caf::event_based_actor *self) -> caf::behavior {
        auto st = std::make_shared<std::pair<uint64_t, uint64_t>>(0, n);
        return {[=, &done](uint64_t x) {
            st->first += x;
            if (--st->second == 0) {
                done.set(st->first);
                self->quit();
            }
        }};
    });
    long before = yard_status_kb("VmRSS");
    int64_t t0 = yard_now();
    for (uint64_t i = 0; i < n; i++)
        v.push_back(sys.spawn([sink, &up](caf::event_based_actor *self) -> caf::behavior {
            up++;
            return {[=](uint64_t x) {
                self->send(sink, x + 1);
                self->quit();
            }};
        }));
    while (up < n) std::this_thread::yield();
    int64_t t1 = yard_now();
    long after = yard_status_kb("VmRSS");
    int64_t t2 = yard_now();
    sys.spawn([&](caf::event_based_actor *self) {
        for (uint64_t i = 0; i < n; i++) self->send(v[i], i);
    });
    uint64_t s = done.wait();
    int64_t t3 = yard_now();
    yard_check(s == n * (n - 1) / 2 + n, "actor_spawn");
    yard_report(n, double(t1 - t0 + t3 - t2) / n,
                ",\"spawn_ns\":%.1f,\"message_ns\":%.1f,\"bytes_per_actor\":%lld,\"result\":%llu",
                double(t1 - t0) / n, double(t3 - t2) / n,
                (long long)(after - before) * 1024 / (long long)n, (unsigned long long)s);
    fflush(stdout);
    _exit(0);
}

static void actor_fanin(caf::actor_system &sys)
{
    int64_t n = yard_arg("n", 4000000), k = yard_arg("senders", 8), per = n / k;
    Done done;
    int64_t t0 = yard_now();
    auto sink = sys.spawn([&, per, k](caf::event_based_actor *self) -> caf::behavior {
        auto left = std::make_shared<int64_t>(per * k);
        return {[=, &done](uint64_t) {
            if (--*left == 0) {
                done.set();
                self->quit();
            }
        }};
    });
    for (int64_t i = 0; i < k; i++)
        sys.spawn([sink, per](caf::event_based_actor *self) {
            for (int64_t j = 0; j < per; j++) self->send(sink, uint64_t{1});
        });
    done.wait();
    yard_report(n, double(yard_now() - t0) / n, "%s", "");
}

// ---- W11: the spinning sender is an actor on worker A
static void wake(caf::actor_system &sys)
{
    int64_t n = yard_arg("n", 2000), gap = yard_arg("gap_us", 200) * 1000;
    std::vector<uint32_t> lat(n);
    std::atomic<int64_t> stamp{0};
    Done done;
    auto b = sys.spawn([&](caf::event_based_actor *) -> caf::behavior {
        return {[&](int32_t) { stamp = yard_now(); }};
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    sys.spawn([&](caf::event_based_actor *self) {
        for (auto &l : lat) {
            for (int64_t e = yard_now() + gap; yard_now() < e;) {}
            stamp = 0;
            int64_t a = yard_now(), s;
            self->send(b, int32_t{1});
            while (!(s = stamp)) {}
            l = yard_saturate(s - a);
        }
        done.set();
    });
    done.wait();
    yard_report_wakes(lat.data(), n);
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", CAF_VERSION / 10000, CAF_VERSION / 100 % 100,
             CAF_VERSION % 100);
    yard_begin(argc, argv, "caf", version);
    struct { const char *name; void (*f)(caf::actor_system &); } table[] = {
        {"spawn_join", spawn_join}, {"mem", mem}, {"skynet", skynet},
        {"actor_pingpong", actor_pingpong}, {"actor_ring", actor_ring},
        {"actor_spawn", actor_spawn}, {"actor_fanin", actor_fanin}, {"wake", wake}};
    for (auto &e : table) {
        if (strcmp(yard.workload, e.name) != 0) continue;
        if (!strcmp(yard.workload, "mem") && strcmp(yard_word("kind", "recv"), "recv")) break;
        caf::actor_system_config cfg;
        cfg.set("scheduler.max-threads", (size_t)yard.workers);
        caf::actor_system sys{cfg};
        e.f(sys);
        fflush(stdout);
        _exit(0);
    }
    return yard_no_workload();
}
