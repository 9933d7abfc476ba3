/* SPDX-License-Identifier: MIT */
/* Timers as tasks use them: workload W8 timer_cancel of the yardstick. A million are set, for 1 ms
 * to 10 s from now, and cancelled in the order in which they were set.
 *
 * Twice: by an alarm, which is what each call with a deadline sets and clears (a wheel and its
 * lock), at times that are known; and by sn_sleep_op, what a coroutine does for a time-out: the
 * time is read, a future is made, polled once, and dropped. Peers do the latter.
 *
 * One task does all of it and never waits, so its worker does not look at the time meanwhile, and
 * none expires. An iteration is a million; what is not measured happens while the clock stands. */
#include "base/rand.h"
#include "bench.h"
#include "timer/alarm.h"
#include "wait/current.h"

#include <sinew/sinew.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    TIMERS = 1000000,
    DELAY_MS_MAX = 10000,
};

static sn_runtime *rt;
static int64_t *delays_ns;
static struct sni_alarm *alarms;
static sn_sleep_state *sleeps;

static void make(struct bench *b)
{
    struct sni_rand rand;
    sni_rand_init(&rand, 1);
    delays_ns = malloc(sizeof(*delays_ns) * TIMERS);
    alarms = calloc(TIMERS, sizeof(*alarms));
    sleeps = calloc(TIMERS, sizeof(*sleeps));
    if (delays_ns == NULL || alarms == NULL || sleeps == NULL) {
        bench_fail(b, "no memory");
        return;
    }
    for (uint32_t i = 0; i < TIMERS; i++)
        delays_ns[i] = SN_MS(1 + sni_rand_below(&rand, DELAY_MS_MAX));
    if (sn_runtime_create(&rt, &(sn_runtime_options){.workers = 1}) < 0)
        bench_fail(b, "no runtime");
}

static void finish(struct bench *b)
{
    (void)b;
    sn_runtime_destroy(rt);
    free(delays_ns);
    free(alarms);
    free(sleeps);
    rt = NULL;
    delays_ns = NULL;
    alarms = NULL;
    sleeps = NULL;
}

static void inside(struct bench *b, sn_task_fn *fn)
{
    bench_pause(b); /* the task says when it begins */
    if (sn_runtime_block_on(rt, fn, b) != TIMERS)
        bench_fail(b, "a timer expired, or was not set");
}

/* ---- alarms ------------------------------------------------------------------------------- */

static void ring(struct sni_alarm *alarm)
{
    (void)alarm;
}

static void touch_alarms(void)
{
    for (uint32_t i = 0; i < TIMERS; i++)
        sni_alarm_init(&alarms[i], ring);
}

static void set_alarms(void)
{
    struct sni_clockwork *cw = sni_exec_current()->clockwork;
    int64_t now_ns = sn_now();
    for (uint32_t i = 0; i < TIMERS; i++)
        sni_alarm_set(&alarms[i], cw, now_ns + delays_ns[i]);
}

static int clear_alarms(void)
{
    int were_set = 0;
    for (uint32_t i = 0; i < TIMERS; i++)
        were_set += sni_alarm_clear(&alarms[i]);
    return were_set;
}

static int measure_set(void *arg)
{
    struct bench *b = arg;
    int were_set = 0;
    for (uint64_t i = 0; i < b->iterations; i++) {
        touch_alarms();
        bench_resume(b);
        set_alarms();
        bench_pause(b);
        were_set = clear_alarms();
    }
    return were_set;
}

static int measure_clear(void *arg)
{
    struct bench *b = arg;
    int were_set = 0;
    for (uint64_t i = 0; i < b->iterations; i++) {
        touch_alarms();
        set_alarms();
        bench_resume(b);
        were_set = clear_alarms();
        bench_pause(b);
    }
    return were_set;
}

BENCH(w8_alarm_schedule, .ops = TIMERS, .fixed_iterations = 1, .setup = make, .teardown = finish,
      .note = "1 M alarms, 1 ms..10 s")
{
    inside(b, measure_set);
}

BENCH(w8_alarm_cancel, .ops = TIMERS, .fixed_iterations = 1, .setup = make, .teardown = finish,
      .note = "1 M alarms, in the order they were set")
{
    inside(b, measure_clear);
}

/* ---- futures ------------------------------------------------------------------------------ */

static void begin_sleeps(void)
{
    sn_waker waker = sn_noop_waker();
    sn_cx cx = {.waker = &waker};
    for (uint32_t i = 0; i < TIMERS; i++) {
        sn_poll poll = sn_future_poll(sn_sleep_op(&sleeps[i], sn_after(delays_ns[i])), &cx);
        bench_keep(poll);
    }
}

static int drop_sleeps(void)
{
    int dropped = 0;
    for (uint32_t i = 0; i < TIMERS; i++)
        dropped +=
            !sn_future_finished(&sleeps[i].future_) && sn_future_drop(&sleeps[i].future_) == 0;
    return dropped;
}

static int measure_begin(void *arg)
{
    struct bench *b = arg;
    int dropped = 0;
    for (uint64_t i = 0; i < b->iterations; i++) {
        bench_resume(b);
        begin_sleeps();
        bench_pause(b);
        dropped = drop_sleeps();
    }
    return dropped;
}

static int measure_drop(void *arg)
{
    struct bench *b = arg;
    int dropped = 0;
    for (uint64_t i = 0; i < b->iterations; i++) {
        begin_sleeps();
        bench_resume(b);
        dropped = drop_sleeps();
        bench_pause(b);
    }
    return dropped;
}

static void make_touched(struct bench *b)
{
    make(b);
    for (uint32_t i = 0; sleeps != NULL && i < TIMERS; i++)
        sleeps[i].opaque_[0] = &sleeps[i];
}

BENCH(w8_sleep_op_schedule, .ops = TIMERS, .fixed_iterations = 1, .setup = make_touched,
      .teardown = finish, .note = "1 M sn_sleep_op, polled once; reads the time")
{
    inside(b, measure_begin);
}

BENCH(w8_sleep_op_cancel, .ops = TIMERS, .fixed_iterations = 1, .setup = make_touched,
      .teardown = finish, .note = "1 M of them dropped")
{
    inside(b, measure_drop);
}
