/* SPDX-License-Identifier: MIT */
/* bench.h - write a benchmark in three lines.
 *
 *     #include "bench.h"
 *
 *     BENCH(mutex_lock_unlock, .ops = 2, .note = "uncontended")
 *     {
 *         for (uint64_t i = 0; i < b->iterations; i++) {
 *             lock(&m);
 *             unlock(&m);
 *         }
 *     }
 *
 * The benchmark registers itself; link with `sinew_bench`, which supplies main(). Try --help.
 *
 * Words: an *operation* is what a reader cares about (one lock, one message); an *iteration* is one
 * turn of the body's loop and holds `.ops` operations; a *sample* is one call of the body with
 * `b->iterations` iterations; a *round* is one sample of each selected benchmark.
 *
 * Method: the process is pinned to one cpu; iterations are calibrated until a sample takes about
 * 20 ms; one round is thrown away as warm-up; then 11 rounds run interleaved (A B C A B C ...), so
 * that a noisy minute hurts all benchmarks alike instead of one. Figures are median, minimum and
 * MAD (the median distance from the median) over the rounds, in ns per operation. Nothing is
 * subtracted: loop, call and clock reads are inside the figure.
 *
 * Counting instructions: the body is called through the function `bench_region`, which is never
 * inlined, cloned or left by a tail call. One benchmark, exactly N iterations, nothing else:
 *
 *     valgrind --tool=callgrind --toggle-collect=bench_region ./micro --fixed 1000 NAME
 *
 * Setup and teardown functions run outside the region. bench_pause() stops the clock but not
 * callgrind, so a benchmark that is to be counted sets up in `.setup`. */
#ifndef SINEW_BENCH_H
#define SINEW_BENCH_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_COUNTERS_MAX = 8 };

struct bench_counter {
    const char *name;
    double value;
};

enum bench_outcome { BENCH_OK, BENCH_SKIPPED, BENCH_FAILED };

/* What a body sees. Made afresh for each sample. */
struct bench {
    uint64_t iterations; /* how often the body must turn its loop                          */
    void *arg;           /* `.arg` of the definition; `.setup` may replace it              */

    /* The harness's own; read and write through the functions below. */
    uint64_t lap_start_ns;
    uint64_t elapsed_ns;
    bool paused;
    enum bench_outcome outcome;
    const char *reason;
    unsigned counter_count;
    struct bench_counter counters[BENCH_COUNTERS_MAX];
};

typedef void bench_fn(struct bench *b);

/* A definition: BENCH fills the first part, its options are the second. */
struct bench_def {
    struct bench_def *next;
    const char *file;
    int line;
    const char *name;
    bench_fn *run; /* directly after `name`: the first word of BENCH(...) lands here */

    uint64_t ops;              /* operations per iteration; 0 means 1                            */
    const char *note;          /* last column of the table                                       */
    uint64_t fixed_iterations; /* no calibration; 0 means calibrate. --fixed overrides it        */
    bench_fn *setup;           /* before each sample, not timed                                  */
    bench_fn *teardown;        /* after each sample, not timed, also when setup skipped or failed */
    void *arg;                 /* initial b->arg                                                 */
    bool unpinned;             /* may use all cpus: for bodies that start threads of their own   */
};

/* BENCH(name, options...) { body }
 *
 * Defines `static void name(struct bench *b)`. Registration is a constructor: the linker keeps
 * those under --gc-sections and link-time optimisation, which it does not promise for objects
 * collected in a section of our own. */
#define BENCH(...)               BENCH_DEFINE_(BENCH_FIRST_(__VA_ARGS__, ~), __VA_ARGS__)
#define BENCH_FIRST_(first, ...) first
#define BENCH_DEFINE_(id, ...)   BENCH_EMIT_(id, __VA_ARGS__)
#define BENCH_EMIT_(id, ...)                                                 \
    static void id(struct bench *b);                                         \
    static struct bench_def bench_def_##id = {                               \
        .file = __FILE__, .line = __LINE__, .name = #id, __VA_ARGS__};       \
    __attribute__((constructor, used)) static void bench_register_##id(void) \
    {                                                                        \
        bench_register(&bench_def_##id);                                     \
    }                                                                        \
    static void id(struct bench *b)

void bench_register(struct bench_def *def);

/* Stop and restart the clock inside a body. A pair leaves about one clock read (20-30 ns) in the
 * figure, so pause around batches, not around single operations. A body may return paused.
 * Pausing twice, or resuming what is not paused, aborts with a sentence. */
void bench_pause(struct bench *b);
void bench_resume(struct bench *b);

/* Attach a figure that is not a time, such as bytes per task. The values of the last sample are
 * reported. `name` must outlive the process's main(), as a literal does. At most
 * BENCH_COUNTERS_MAX names per benchmark; a repeated name replaces its value. */
void bench_counter(struct bench *b, const char *name, double value);

/* Give up, from a setup function or a body, which must then return. A skipped benchmark (the kernel
 * lacks a feature) is named in the table; a failed one also makes the program exit with 1. */
void bench_skip(struct bench *b, const char *reason);
void bench_fail(struct bench *b, const char *reason);

/* Make the compiler believe that the scalar, pointer or struct `x`, and all memory it might point
 * to, is used here. */
#define bench_keep(x) __asm__ volatile("" : : "r,m"(x) : "memory")

/* Make the compiler believe that all memory is read and written here. */
static inline void bench_clobber(void)
{
    __asm__ volatile("" : : : "memory");
}

#endif
