/* SPDX-License-Identifier: MIT */
/* The yardstick on Sinew, by fibers: tasks that have a stack and wait wherever they like.
 *
 *     yard_sinew <workload> [key=value ...]
 *
 * WORKLOADS.md says what each workload is. Tasks are joined by their own handles, channels are as
 * Go's, fork-join trees (W6, W7) run in the LIFO discipline. */
#include "sinew.h"

#include <stdatomic.h>

/* ---- W1 ------------------------------------------------------------------------------------- */

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int spawn_join(void *arg)
{
    int64_t n = yard_arg("n", 1000000);
    int64_t batch = yard_arg("batch", 1000);
    sn_task **t = yard_alloc(batch, sizeof(sn_task *));
    int rc = 0;
    (void)arg;
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < n; i += batch) {
        for (int64_t k = 0; k < batch; k++)
            t[k] = sn_spawn(nothing, NULL);
        rc |= yard_join_all(t, batch);
    }
    yard_report(n, (double)(yard_now() - t0) / (double)n, ",\"batch\":%lld", (long long)batch);
    return rc;
}

/* ---- W2 ------------------------------------------------------------------------------------- */

static int yielder(void *arg)
{
    int64_t turns = *(const int64_t *)arg;
    for (int64_t i = 0; i < turns; i++)
        sn_yield();
    return 0;
}

static int yields(void *arg)
{
    int64_t n = yard_arg("n", 4000000);
    int64_t tasks = yard_arg("tasks", 2);
    int64_t each = n / tasks;
    sn_task **t = yard_alloc(tasks, sizeof(sn_task *));
    (void)arg;
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < tasks; i++)
        t[i] = sn_spawn(yielder, &each);
    int rc = yard_join_all(t, tasks);
    yard_report(n, (double)(yard_now() - t0) / (double)(each * tasks), ",\"tasks\":%lld",
                (long long)tasks);
    return rc;
}

/* ---- W3 ------------------------------------------------------------------------------------- */

struct court {
    sn_chan *a;
    sn_chan *b;
    uint64_t rounds;
};

static int pong(void *arg)
{
    struct court *c = arg;
    int rc = 0;
    for (uint64_t i = 0; i < c->rounds; i++) {
        uint64_t v = 0;
        rc |= sn_chan_recv(c->a, &v, SN_FOREVER);
        v++;
        rc |= sn_chan_send(c->b, &v, SN_FOREVER);
    }
    return rc;
}

static int ping(void *arg)
{
    struct court *c = arg;
    uint64_t v = 0;
    int rc = 0;
    for (uint64_t i = 0; i < c->rounds; i++) {
        rc |= sn_chan_send(c->a, &v, SN_FOREVER);
        rc |= sn_chan_recv(c->b, &v, SN_FOREVER);
    }
    return rc != 0 || v != c->rounds;
}

static int pingpong(void *arg)
{
    int64_t n = yard_arg("n", 1000000);
    struct court c = {yard_chan(0), yard_chan(0), (uint64_t)n};
    (void)arg;
    int64_t t0 = yard_now();
    sn_task *t[2] = {sn_spawn(pong, &c), sn_spawn(ping, &c)};
    yard_check(yard_join_all(t, 2) == 0, "pingpong");
    yard_report_result(n, t0, yard_now(), c.rounds);
    return 0;
}

/* ---- W4 ------------------------------------------------------------------------------------- */

struct range {
    sn_chan *ch;
    uint64_t from;
    uint64_t to;
    uint64_t sum;
};

static int produce(void *arg)
{
    struct range *r = arg;
    int rc = 0;
    for (uint64_t v = r->from; v < r->to; v++)
        rc |= sn_chan_send(r->ch, &v, SN_FOREVER);
    return rc;
}

static int consume(void *arg)
{
    struct range *r = arg;
    uint64_t sum = 0;
    uint64_t v;
    while (sn_chan_recv(r->ch, &v, SN_FOREVER) == 0)
        sum += v;
    r->sum = sum;
    return 0;
}

static int channel(void *arg)
{
    int64_t n = yard_arg("n", 4000000);
    int64_t prod = yard_arg("prod", 1);
    int64_t cons = yard_arg("cons", 1);
    uint64_t each = (uint64_t)(n / prod);
    struct range *r = yard_alloc(prod + cons, sizeof(*r));
    sn_task **t = yard_alloc(prod + cons, sizeof(sn_task *));
    sn_chan *ch = yard_chan((size_t)yard_arg("cap", 64));
    (void)arg;
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < prod; i++) {
        r[i] = (struct range){ch, (uint64_t)i * each, (uint64_t)(i + 1) * each, 0};
        t[i] = sn_spawn(produce, &r[i]);
    }
    for (int64_t i = prod; i < prod + cons; i++) {
        r[i] = (struct range){.ch = ch};
        t[i] = sn_spawn(consume, &r[i]);
    }
    int rc = yard_join_all(t, prod);
    rc |= sn_chan_close(ch);
    rc |= yard_join_all(t + prod, cons);
    int64_t t1 = yard_now();
    uint64_t sum = 0;
    for (int64_t i = prod; i < prod + cons; i++)
        sum += r[i].sum;
    yard_check(rc == 0 && sum == yard_sum_below(each * (uint64_t)prod), "chan");
    yard_report_result(n, t0, t1, sum);
    return 0;
}

/* ---- W5 ------------------------------------------------------------------------------------- */

static atomic_llong blocked;

static bool all_blocked(int64_t n)
{
    return atomic_load(&blocked) >= n;
}

static int sleep_for_good(void *arg)
{
    (void)arg;
    atomic_fetch_add(&blocked, 1);
    return sn_sleep(SN_S(120));
}

static int receive_for_good(void *arg)
{
    uint64_t v;
    atomic_fetch_add(&blocked, 1);
    return sn_chan_recv(arg, &v, SN_FOREVER);
}

static int mem(void *arg)
{
    int64_t n = yard_arg("n", 100000);
    const char *kind = yard_word("kind", "sleep");
    sn_task_fn *fn = strcmp(kind, "sleep") == 0 ? sleep_for_good : receive_for_good;
    sn_chan *ch = yard_chan(0);
    int rc = 0;
    (void)arg;
    long before_kb = yard_status_kb("VmRSS");
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < n; i++)
        rc |= sn_spawn_detached(fn, ch);
    yard_check(rc == 0, "mem");
    yard_sinew_settle(n, t0, before_kb, kind, all_blocked);
    return 0;
}

/* ---- W6 ------------------------------------------------------------------------------------- */

struct sky {
    uint64_t first;
    uint64_t leaves;
    uint64_t sum;
};

static int sky(void *arg)
{
    struct sky *s = arg;
    if (s->leaves == 1) {
        s->sum = s->first;
        return 0;
    }
    struct sky child[10];
    sn_task *t[10];
    for (unsigned i = 0; i < 10; i++) {
        child[i] = (struct sky){s->first + i * (s->leaves / 10), s->leaves / 10, 0};
        t[i] = sn_spawn(sky, &child[i]);
    }
    int rc = 0;
    for (unsigned i = 0; i < 10; i++) {
        rc |= sn_join(t[i], NULL);
        s->sum += child[i].sum;
    }
    return rc;
}

static int skynet(void *arg)
{
    int64_t n = yard_arg("n", 1000000);
    struct sky root = {.leaves = (uint64_t)n};
    (void)arg;
    int64_t t0 = yard_now();
    int rc = sn_join(sn_spawn(sky, &root), NULL);
    int64_t t1 = yard_now();
    yard_check(rc == 0 && root.sum == yard_sum_below((uint64_t)n), "skynet");
    yard_report_result(n, t0, t1, root.sum);
    return 0;
}

/* ---- W7 ------------------------------------------------------------------------------------- */

static int fib(void *arg)
{
    int n = (int)(intptr_t)arg;
    if (n < 2)
        return n;
    sn_task *left = sn_spawn(fib, (void *)(intptr_t)(n - 1));
    int right = fib((void *)(intptr_t)(n - 2));
    return sn_join(left, NULL) + right;
}

static int fibonacci(void *arg)
{
    int64_t n = yard_arg("n", 30);
    (void)arg;
    int64_t t0 = yard_now();
    int result = sn_join(sn_spawn(fib, (void *)(intptr_t)n), NULL);
    int64_t t1 = yard_now();
    yard_check((uint64_t)result == yard_fib(n), "fib");
    yard_report_result((int64_t)yard_fib(n + 1) - 1, t0, t1, (uint64_t)result);
    return 0;
}

/* ---- W8 ------------------------------------------------------------------------------------- */

/* A timer is an sn_sleep_op on memory that is there, polled once so that it is set, then dropped:
 * what a coroutine does for a time-out that does not come to pass. */
static int timer_cancel(void *arg)
{
    int64_t n = yard_arg("n", 1000000);
    uint32_t *ms = yard_delays_ms(n);
    sn_sleep_state *sleeps = malloc((size_t)n * sizeof(*sleeps));
    sn_waker waker = sn_noop_waker();
    sn_cx cx = {.waker = &waker};
    int64_t fired = 0;
    (void)arg;
    yard_check(sleeps != NULL, "malloc");
    memset(sleeps, 0, (size_t)n * sizeof(*sleeps)); /* its pages are touched before the clock */
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < n; i++) {
        sn_poll poll = sn_future_poll(sn_sleep_op(&sleeps[i], sn_after(SN_MS(ms[i]))), &cx);
        (void)poll;
    }
    int64_t t1 = yard_now();
    for (int64_t i = 0; i < n; i++) {
        if (sn_future_finished(&sleeps[i].future_))
            fired++;
        else
            (void)sn_future_drop(&sleeps[i].future_);
    }
    int64_t t2 = yard_now();
    yard_report(n, (double)(t2 - t0) / (double)n,
                ",\"schedule_ns\":%.1f,\"cancel_ns\":%.1f,\"fired\":%lld",
                (double)(t1 - t0) / (double)n, (double)(t2 - t1) / (double)n, (long long)fired);
    return 0;
}

struct sleeper {
    uint32_t *late;
    int64_t rounds;
    int64_t ms;
    sn_deadline begin;
};

static int sleeper(void *arg)
{
    struct sleeper *s = arg;
    int rc = sn_sleep_until(s->begin);
    for (int64_t i = 0; i < s->rounds; i++) {
        int64_t from = yard_now();
        rc |= sn_sleep(SN_MS(s->ms));
        s->late[i] = yard_saturate(yard_now() - from - SN_MS(s->ms));
    }
    return rc;
}

static int timer_sleep(void *arg)
{
    int64_t tasks = yard_arg("tasks", 100000);
    int64_t rounds = yard_arg("rounds", 100);
    uint32_t *late = yard_alloc(tasks * rounds, sizeof(*late));
    sn_task **t = yard_alloc(tasks, sizeof(sn_task *));
    int64_t t0 = yard_now() + SN_MS(yard_arg("warm_ms", 2000));
    sn_deadline begin = sn_after(t0 - yard_now());
    (void)arg;
    for (int64_t i = 0; i < tasks; i++) {
        struct sleeper s = {late + i * rounds, rounds, yard_arg("ms", 1), begin};
        t[i] = sn_spawn(sleeper, &s, .copy_bytes = sizeof(s));
    }
    yard_check(yard_join_all(t, tasks) == 0, "timer_sleep");
    yard_report_sleeps(late, tasks, rounds, t0, yard_now());
    return 0;
}

/* ---- W9 ------------------------------------------------------------------------------------- */

static sn_mutex mutex = SN_MUTEX_INIT;
static uint64_t counter; /* guarded by it */

static int lock_and_add(void *arg)
{
    int64_t iters = *(const int64_t *)arg;
    for (int64_t i = 0; i < iters; i++) {
        int rc = sn_mutex_lock(&mutex, SN_FOREVER);
        if (rc < 0)
            return rc;
        counter++;
        (void)sn_mutex_unlock(&mutex);
    }
    return 0;
}

static int locks(void *arg)
{
    int64_t tasks = yard_arg("tasks", 1000);
    int64_t iters = yard_arg("iters", 1000);
    sn_task **t = yard_alloc(tasks, sizeof(sn_task *));
    (void)arg;
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < tasks; i++)
        t[i] = sn_spawn(lock_and_add, &iters);
    int rc = yard_join_all(t, tasks);
    int64_t t1 = yard_now();
    yard_check(rc == 0 && counter == (uint64_t)(tasks * iters), "mutex");
    yard_report_result(tasks * iters, t0, t1, counter);
    return 0;
}

/* ---- W11 ------------------------------------------------------------------------------------ */

static _Atomic int64_t stamp;

static int stamper(void *arg)
{
    uint64_t v;
    while (sn_chan_recv(arg, &v, SN_FOREVER) == 0)
        atomic_store(&stamp, yard_now());
    return 0;
}

static int listener(void *arg)
{
    uint64_t v;
    while (sn_chan_recv(arg, &v, SN_FOREVER) == 0)
        ;
    return 0;
}

/* A task that is woken is kept as the next one of its waker's worker, and not for others to take.
 * So a second, dummy wake follows at once and pushes it into the queue that they steal from. */
static int wake(void *arg)
{
    yard_check(yard_arg("workers", 1) > 1, "two workers");
    int64_t n = yard_arg("n", 2000);
    int64_t gap_ns = yard_arg("gap_us", 200) * 1000;
    uint32_t *latency = yard_alloc(n, sizeof(*latency));
    sn_chan *ch = yard_chan(1);
    sn_chan *dummy = yard_chan(1);
    uint64_t v = 0;
    int rc = sn_spawn_detached(stamper, ch) | sn_spawn_detached(listener, dummy);
    (void)arg;
    (void)sn_sleep(SN_MS(10));
    for (int64_t i = 0; i < n; i++) {
        int64_t arrived;
        sn_yield(); /* lets the dummy run here */
        int64_t end = yard_now() + gap_ns;
        while (yard_now() < end)
            ;
        atomic_store(&stamp, 0);
        int64_t from = yard_now();
        rc |= sn_chan_send(ch, &v, SN_NOWAIT);
        int full = sn_chan_send(dummy, &v, SN_NOWAIT);
        while ((arrived = atomic_load(&stamp)) == 0)
            ;
        (void)full; /* then it has not run since, and will */
        latency[i] = yard_saturate(arrived - from);
    }
    yard_check(rc == 0, "wake");
    yard_report_wakes(latency, (size_t)n);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct yard_workload workloads[] = {
        {"spawn_join", spawn_join, false},
        {"yield", yields, false},
        {"pingpong", pingpong, false},
        {"chan", channel, false},
        {"mem", mem, false},
        {"skynet", skynet, true},
        {"fib", fibonacci, true},
        {"timer_cancel", timer_cancel, false},
        {"timer_sleep", timer_sleep, false},
        {"mutex", locks, false},
        {"wake", wake, false},
    };
    yard_begin(argc, argv, "sinew", yard_sinew_version());
    return yard_sinew_main(workloads, sizeof(workloads) / sizeof(workloads[0]));
}
