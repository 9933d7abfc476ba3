/* SPDX-License-Identifier: MIT */
/* The yardstick on libuv: what fits an event loop, timers and being woken.
 *
 *     libuv <workload> [key=value ...]
 *
 * WORKLOADS.md says what each workload is. A "task" is a timer. */
#include "../yard.h"

#include <stdatomic.h>
#include <uv.h>

static void on_nothing(uv_timer_t *t)
{
    (void)t;
}

static void timer_cancel(void)
{
    int64_t n = yard_arg("n", 1000000);
    uv_loop_t *loop = uv_default_loop();
    uv_timer_t *t = malloc((size_t)n * sizeof(*t));
    uint32_t *d = yard_delays_ms(n);
    for (int64_t i = 0; i < n; i++)
        uv_timer_init(loop, &t[i]);
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < n; i++)
        uv_timer_start(&t[i], on_nothing, d[i], 0);
    int64_t t1 = yard_now();
    for (int64_t i = 0; i < n; i++)
        uv_timer_stop(&t[i]);
    int64_t t2 = yard_now();
    yard_report(n, (double)(t2 - t0) / (double)n,
                ",\"schedule_ns\":%.1f,\"cancel_ns\":%.1f,\"fired\":0",
                (double)(t1 - t0) / (double)n, (double)(t2 - t1) / (double)n);
}

/* a "task" is a timer that re-arms itself */
struct sleeper {
    uv_timer_t t;
    int64_t at;
    uint32_t *late;
    int left;
};
static int64_t g_ms;

static void on_sleep(uv_timer_t *t)
{
    struct sleeper *s = (struct sleeper *)t;
    int64_t a = yard_now();
    if (s->at) {
        *s->late++ = yard_saturate(a - s->at - g_ms * 1000000);
        if (--s->left == 0)
            return;
    }
    s->at = yard_now();
    uv_update_time(t->loop);
    uv_timer_start(t, on_sleep, (uint64_t)g_ms, 0);
}

static void timer_sleep(void)
{
    int64_t tasks = yard_arg("tasks", 100000), rounds = yard_arg("rounds", 100),
            warm = yard_arg("warm_ms", 2000);
    g_ms = yard_arg("ms", 1);
    uv_loop_t *loop = uv_default_loop();
    uint32_t *late = calloc((size_t)(tasks * rounds), sizeof(*late));
    struct sleeper *s = calloc((size_t)tasks, sizeof(*s));
    int64_t t0 = yard_now() + warm * 1000000;
    uv_update_time(loop);
    for (int64_t i = 0; i < tasks; i++) {
        uv_timer_init(loop, &s[i].t);
        s[i].late = late + i * rounds;
        s[i].left = (int)rounds;
        uv_timer_start(&s[i].t, on_sleep, (uint64_t)warm, 0);
    }
    uv_run(loop, UV_RUN_DEFAULT);
    yard_report_sleeps(late, tasks, rounds, t0, yard_now());
}

static void mem(void)
{
    int64_t n = yard_arg("n", 100000);
    uv_loop_t *loop = uv_default_loop();
    long before = yard_status_kb("VmRSS");
    int64_t t0 = yard_now();
    uv_timer_t **v = malloc((size_t)n * sizeof(*v));
    for (int64_t i = 0; i < n; i++) {
        v[i] = malloc(sizeof(**v));
        uv_timer_init(loop, v[i]);
        uv_timer_start(v[i], on_nothing, 120000, 0);
    }
    int64_t t1 = yard_now();
    yard_report_memory(n, t0, t1, "sleep", yard_status_kb("VmRSS") - before);
}

static _Atomic int64_t g_stamp;
static uv_async_t g_async;
static uv_loop_t g_loop;

static void on_async(uv_async_t *a)
{
    (void)a;
    atomic_store(&g_stamp, yard_now());
}

static void loop_thread(void *a)
{
    (void)a;
    uv_run(&g_loop, UV_RUN_DEFAULT);
}

static void wake(void)
{
    int64_t n = yard_arg("n", 2000), gap = yard_arg("gap_us", 200) * 1000;
    uint32_t *lat = calloc((size_t)n, sizeof(*lat));
    uv_thread_t t;
    uv_loop_init(&g_loop);
    uv_async_init(&g_loop, &g_async, on_async);
    uv_thread_create(&t, loop_thread, NULL);
    uv_sleep(10);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t e = yard_now() + gap; yard_now() < e;)
            ;
        atomic_store(&g_stamp, 0);
        int64_t a = yard_now(), s;
        uv_async_send(&g_async);
        while (!(s = atomic_load(&g_stamp)))
            ;
        lat[i] = yard_saturate(s - a);
    }
    yard_report_wakes(lat, (size_t)n);
    _exit(0);
}

int main(int argc, char **argv)
{
    yard_begin(argc, argv, "libuv", uv_version_string());
    if (strcmp(yard.workload, "timer_cancel") == 0)
        timer_cancel();
    else if (strcmp(yard.workload, "timer_sleep") == 0)
        timer_sleep();
    else if (strcmp(yard.workload, "mem") == 0 && strcmp(yard_word("kind", "sleep"), "sleep") == 0)
        mem();
    else if (strcmp(yard.workload, "wake") == 0)
        wake();
    else
        return yard_no_workload();
    return 0;
}
