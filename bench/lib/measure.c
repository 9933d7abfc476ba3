/* SPDX-License-Identifier: MIT */
/* measure.c - the clock, one sample, calibration, interleaved rounds.
 *
 * One sample: pin, setup, clock, body, clock, teardown. The two clock reads are adjacent to the
 * call of the body and nothing is subtracted for them: at 20 ms per sample they are a millionth.
 *
 * Calibration: grow the iterations by at most GROWTH_MAX per attempt until a sample takes half the
 * target, then scale once. Small steps, because a body may be worse than linear in iterations. It
 * stops early when the body spends its time paused, by looking at wall time too.
 *
 * Rejected: time-boxed loops that read the clock between iterations (the read is in the figure of
 * a 1 ns operation); all samples of one benchmark in a row (a noisy neighbour then looks like a
 * slow benchmark). */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ITERATIONS_MAX  (UINT64_C(1) << 40)
#define QUICK_BUDGET_NS UINT64_C(600000000)
#define GROWTH_MAX      10.0
#define WALL_FACTOR_MAX 20.0
enum { ATTEMPTS_MAX = 48 };

#if __has_attribute(noipa)
#define REGION_ATTRIBUTES __attribute__((noinline, noipa, used))
#else
#define REGION_ATTRIBUTES __attribute__((noinline, used))
#endif

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static _Noreturn void misuse(const char *sentence)
{
    fprintf(stderr, "The benchmark is wrong: %s.\n", sentence);
    abort();
}

void bench_pause(struct bench *b)
{
    uint64_t now = now_ns();
    if (b->paused)
        misuse("bench_pause() called outside the body or while paused");
    b->elapsed_ns += now - b->lap_start_ns;
    b->paused = true;
}

void bench_resume(struct bench *b)
{
    if (!b->paused)
        misuse("bench_resume() called while not paused");
    b->paused = false;
    b->lap_start_ns = now_ns();
}

void bench_counter(struct bench *b, const char *name, double value)
{
    unsigned i = 0;
    while (i < b->counter_count && strcmp(b->counters[i].name, name) != 0)
        i++;
    if (i == BENCH_COUNTERS_MAX)
        misuse("it has more than BENCH_COUNTERS_MAX counters");
    if (i == b->counter_count)
        b->counter_count++;
    b->counters[i] = (struct bench_counter){.name = name, .value = value};
}

void bench_skip(struct bench *b, const char *reason)
{
    if (b->outcome == BENCH_FAILED)
        return;
    b->outcome = BENCH_SKIPPED;
    b->reason = reason;
}

void bench_fail(struct bench *b, const char *reason)
{
    b->outcome = BENCH_FAILED;
    b->reason = reason;
}

/* The name callgrind is told. The empty asm keeps the call from becoming a jump, after which
 * callgrind would see the region left before the body ran. */
REGION_ATTRIBUTES void bench_region(struct bench *b, bench_fn *run)
{
    run(b);
    bench_clobber();
}

/* Runs the body once and leaves the result in c->last. True if it counts. */
static bool take_sample(struct bench_case *c, const struct environment *env, uint64_t iterations)
{
    const struct bench_def *def = c->def;
    struct bench *b = &c->last;
    uint64_t start_ns = now_ns();
    environment_enter(env, def);
    *b = (struct bench){.iterations = iterations, .arg = def->arg, .paused = true};
    if (def->setup)
        def->setup(b);
    if (b->outcome == BENCH_OK) {
        bench_resume(b);
        bench_region(b, def->run);
        if (!b->paused)
            bench_pause(b);
    }
    if (def->teardown)
        def->teardown(b);
    c->spent_ns += now_ns() - start_ns;
    return b->outcome == BENCH_OK;
}

static uint64_t scale(uint64_t iterations, double factor)
{
    double scaled = (double)iterations * factor;
    if (scaled >= (double)ITERATIONS_MAX)
        return ITERATIONS_MAX;
    return scaled < 1 ? 1 : (uint64_t)scaled;
}

static void calibrate(struct bench_case *c, const struct environment *env, double target_ns)
{
    c->iterations = 1;
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        uint64_t spent_before_ns = c->spent_ns;
        if (!take_sample(c, env, c->iterations))
            return;
        double elapsed_ns = (double)c->last.elapsed_ns;
        double wall_ns = (double)(c->spent_ns - spent_before_ns);
        double factor = elapsed_ns > 0 ? target_ns / elapsed_ns : GROWTH_MAX;
        bool near = elapsed_ns >= target_ns / 2;
        if (!near && wall_ns >= target_ns * WALL_FACTOR_MAX)
            return;
        c->iterations = scale(c->iterations, factor < GROWTH_MAX ? factor : GROWTH_MAX);
        if (near || c->iterations == ITERATIONS_MAX)
            return;
    }
}

static void plan(const struct options *o, const struct environment *env, struct bench_case *c)
{
    uint64_t wanted = c->def->fixed_iterations;
    if (o->mode == MODE_FIXED)
        c->iterations = o->fixed_iterations;
    else if (o->mode == MODE_ONCE)
        c->iterations = wanted && wanted < ONCE_ITERATIONS ? wanted : ONCE_ITERATIONS;
    else if (wanted)
        c->iterations = wanted;
    else
        calibrate(c, env, o->sample_ms * 1e6);
}

/* --quick promises an end: what is slow gets fewer rounds, but always one. */
static bool over_budget(const struct options *o, const struct bench_case *c, uint64_t budget_ns)
{
    return o->quick && o->mode == MODE_MEASURE && c->spent_ns > budget_ns;
}

static void warm_up(const struct options *o, const struct environment *env, struct bench_case *c)
{
    if (c->last.outcome == BENCH_OK && !over_budget(o, c, QUICK_BUDGET_NS / 4))
        (void)take_sample(c, env, c->iterations);
}

static void take_round(const struct options *o, const struct environment *env, struct bench_case *c)
{
    if (c->last.outcome != BENCH_OK)
        return;
    if (c->sample_count > 0 && over_budget(o, c, QUICK_BUDGET_NS))
        return;
    if (!take_sample(c, env, c->iterations))
        return;
    double operations = (double)c->iterations * (double)def_ops(c->def);
    c->samples_ns[c->sample_count++] = (double)c->last.elapsed_ns / operations;
}

void measure_all(const struct options *o, const struct environment *env, struct bench_case *cases,
                 size_t count)
{
    unsigned rounds = o->mode == MODE_MEASURE ? o->rounds : 1;
    for (size_t i = 0; i < count; i++)
        plan(o, env, &cases[i]);
    for (size_t i = 0; i < count && o->mode == MODE_MEASURE; i++)
        warm_up(o, env, &cases[i]);
    for (unsigned round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++)
            take_round(o, env, &cases[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (cases[i].sample_count > 0)
            cases[i].summary = stats_summarise(cases[i].samples_ns, cases[i].sample_count);
    }
}
