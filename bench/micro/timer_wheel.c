/* SPDX-License-Identifier: MIT */
/* The timer wheel, full: a million timers that are due in 1 ms to 1 h, ticks of a millisecond
 * (workload W8 of the yardstick, without a runtime around it).
 *
 * Each timer has a cache line of its own, as it has inside of something that waits, so a timer that
 * is touched anew is a miss. An iteration is the whole million, and one is enough for a sample.
 * What is not measured happens in the setup, or, with more iterations, while the clock stands: so
 * instructions are counted with --fixed 1 (bench.h). */
#include "base/rand.h"
#include "bench.h"
#include "timer/wheel.h"

#include <stdint.h>
#include <stdlib.h>

enum { TIMERS = 1000000 };

static const int64_t ms = 1000000;
static const int64_t hour = INT64_C(3600) * 1000000000;

struct sleeper {
    _Alignas(64) struct sni_timer timer;
};

static struct sni_wheel wheel;
static struct sni_wheel_slots slots;
static struct sleeper *sleepers;
static int64_t *deadlines; /* of the first, the second, ... timer that is inserted */
static uint32_t *shuffled; /* the numbers of all sleepers in random order */

static void empty_wheel(void)
{
    sni_wheel_init(&wheel, &slots, 0, ms);
    for (uint32_t i = 0; i < TIMERS; i++)
        sni_timer_init(&sleepers[i].timer);
}

static void full_wheel(void)
{
    empty_wheel();
    for (uint32_t i = 0; i < TIMERS; i++)
        sni_wheel_add(&wheel, &sleepers[i].timer, deadlines[i]);
}

static void make_empty(struct bench *b)
{
    struct sni_rand rand;
    sni_rand_init(&rand, 1);
    sleepers = aligned_alloc(64, sizeof(*sleepers) * TIMERS);
    deadlines = malloc(sizeof(*deadlines) * TIMERS);
    shuffled = malloc(sizeof(*shuffled) * TIMERS);
    if (sleepers == NULL || deadlines == NULL || shuffled == NULL) {
        bench_fail(b, "no memory");
        return;
    }
    for (uint32_t i = 0; i < TIMERS; i++) {
        uint32_t at = sni_rand_below(&rand, i + 1);
        shuffled[i] = shuffled[at];
        shuffled[at] = i;
        deadlines[i] = ms + (int64_t)(sni_rand_next64(&rand) % (uint64_t)(hour - ms));
    }
    empty_wheel();
}

static void make_full(struct bench *b)
{
    make_empty(b);
    if (b->outcome == BENCH_OK)
        full_wheel();
}

static void finish(struct bench *b)
{
    (void)b;
    free(sleepers);
    free(deadlines);
    free(shuffled);
    sleepers = NULL;
    deadlines = NULL;
    shuffled = NULL;
}

/* Before each iteration but the first, for which the setup has done it. */
static void again(struct bench *b, uint64_t iteration, void (*make)(void))
{
    if (iteration == 0)
        return;
    bench_pause(b);
    make();
    bench_resume(b);
}

BENCH(timer_insert_in_order, .ops = TIMERS, .fixed_iterations = 1, .setup = make_empty,
      .teardown = finish, .note = "1 M timers, 1 ms..1 h, in order of memory")
{
    for (uint64_t i = 0; i < b->iterations; i++) {
        again(b, i, empty_wheel);
        for (uint32_t k = 0; k < TIMERS; k++)
            sni_wheel_add(&wheel, &sleepers[k].timer, deadlines[k]);
    }
}

BENCH(timer_insert_scattered, .ops = TIMERS, .fixed_iterations = 1, .setup = make_empty,
      .teardown = finish, .note = "the same, each anywhere in memory")
{
    for (uint64_t i = 0; i < b->iterations; i++) {
        again(b, i, empty_wheel);
        for (uint32_t k = 0; k < TIMERS; k++)
            sni_wheel_add(&wheel, &sleepers[shuffled[k]].timer, deadlines[k]);
    }
}

BENCH(timer_cancel_in_order, .ops = TIMERS, .fixed_iterations = 1, .setup = make_full,
      .teardown = finish, .note = "1 M timers, in order of insertion")
{
    bool all = true;
    for (uint64_t i = 0; i < b->iterations; i++) {
        again(b, i, full_wheel);
        for (uint32_t k = 0; k < TIMERS; k++)
            all &= sni_wheel_remove(&wheel, &sleepers[k].timer);
    }
    if (!all || sni_wheel_count(&wheel) != 0)
        bench_fail(b, "a timer was not armed");
}

BENCH(timer_cancel_random, .ops = TIMERS, .fixed_iterations = 1, .setup = make_full,
      .teardown = finish, .note = "1 M timers, in random order")
{
    bool all = true;
    for (uint64_t i = 0; i < b->iterations; i++) {
        again(b, i, full_wheel);
        for (uint32_t k = 0; k < TIMERS; k++)
            all &= sni_wheel_remove(&wheel, &sleepers[shuffled[k]].timer);
    }
    if (!all || sni_wheel_count(&wheel) != 0)
        bench_fail(b, "a timer was not armed");
}

/* A time-out that is nearly always cancelled, above a million others: the common case. */
BENCH(timer_schedule_and_cancel, .setup = make_full, .teardown = finish,
      .note = "one timer again and again, 1 M others waiting")
{
    struct sni_timer timer;
    sni_timer_init(&timer);
    for (uint64_t i = 0; i < b->iterations; i++) {
        sni_wheel_add(&wheel, &timer, deadlines[i % 4096]);
        sni_wheel_remove(&wheel, &timer);
    }
}

/* One who sleeps by the wheel alone: what a timer costs from the slot it was put in to the end. */
BENCH(timer_expire_each, .ops = TIMERS, .fixed_iterations = 1, .setup = make_full,
      .teardown = finish, .note = "1 M timers in an hour, woken by next_ns")
{
    uint64_t runs = 0;
    for (uint64_t i = 0; i < b->iterations; i++) {
        again(b, i, full_wheel);
        runs = 0;
        for (int64_t now; (now = sni_wheel_next_ns(&wheel)) != INT64_MAX; runs++)
            while (sni_wheel_pop(&wheel, now) != NULL)
                ;
    }
    bench_counter(b, "runs", (double)runs);
    if (sni_wheel_count(&wheel) != 0)
        bench_fail(b, "a timer is left");
}

BENCH(timer_expire_jump, .ops = TIMERS, .fixed_iterations = 1, .setup = make_full,
      .teardown = finish, .note = "the same at one time, an hour later")
{
    for (uint64_t i = 0; i < b->iterations; i++) {
        again(b, i, full_wheel);
        while (sni_wheel_pop(&wheel, 2 * hour) != NULL)
            ;
    }
    if (sni_wheel_count(&wheel) != 0)
        bench_fail(b, "a timer is left");
}

/* What a scheduler pays for looking in vain: no timer is due. */
BENCH(timer_pop_nothing, .setup = make_full, .teardown = finish, .note = "a run that finds nothing")
{
    for (uint64_t i = 0; i < b->iterations; i++)
        if (sni_wheel_pop(&wheel, (int64_t)i & 1023) != NULL)
            bench_fail(b, "a timer was early");
}

BENCH(timer_next, .setup = make_full, .teardown = finish, .note = "sni_wheel_next_ns")
{
    for (uint64_t i = 0; i < b->iterations; i++) {
        int64_t next = sni_wheel_next_ns(&wheel);
        bench_keep(next);
    }
}
