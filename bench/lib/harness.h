/* SPDX-License-Identifier: MIT */
/* harness.h - what the files of the benchmark harness share. Benchmarks include bench.h only.
 *
 * Flow: options.c reads the command line, registry.c picks the benchmarks, environment.c finds out
 * where we run and pins, measure.c takes the samples, stats.c condenses them, table.c and json.c
 * write them down, main.c calls these in turn. State is passed along; the one mutable variable at
 * file scope is the list head in registry.c, because constructors run before main().
 *
 * Exit codes: 0 done; 1 a benchmark failed or a result could not be written; 2 the request made
 * no sense, and nothing was measured. */
#ifndef SINEW_BENCH_HARNESS_H
#define SINEW_BENCH_HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity, CPU_SET */
#endif

#include "bench.h"

#include <sched.h>
#include <stddef.h>
#include <stdio.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };
enum { ROUNDS_MAX = 1000, ONCE_ITERATIONS = 16 };

enum mode { MODE_MEASURE, MODE_ONCE, MODE_FIXED, MODE_LIST, MODE_HELP };

struct options {
    enum mode mode;
    bool quick;
    bool no_pin;
    int cpu;                   /* -1: choose the last allowed one              */
    unsigned rounds;           /* 0 until options_parse fills in the default   */
    double sample_ms;          /* likewise                                     */
    uint64_t fixed_iterations; /* MODE_FIXED                                   */
    const char *json_path;     /* NULL: no JSON                                */
    const char *run_id;        /* NULL: made from time and process id          */
    char **filters;            /* part of argv                                 */
    int filter_count;
};

struct environment {
    char cpu_model[128];
    char kernel[160];
    char compiler[128];
    char flags[512];
    char run_id[96];
    char time_utc[32];
    const char *program;
    cpu_set_t allowed; /* the mask we were started with     */
    int pinned_cpu;    /* -1: not pinned                    */
    bool optimised;    /* the harness itself, see table.c   */
};

struct summary {
    double median_ns;
    double min_ns;
    double mad_ns;
};

/* One selected benchmark and all that was learnt about it. */
struct bench_case {
    const struct bench_def *def;
    uint64_t iterations; /* per sample                                     */
    uint64_t spent_ns;   /* wall time of all samples so far, all included  */
    double *samples_ns;  /* per operation; room for ROUNDS_MAX             */
    unsigned sample_count;
    struct bench last; /* the latest sample: outcome, elapsed, counters  */
    struct summary summary;
};

/* options.c: returns EXIT_OK, or EXIT_USAGE after a sentence on stderr. Reorders argv. */
int options_parse(struct options *o, int argc, char **argv);
void options_help(const char *program);

/* registry.c: `*cases` is the caller's to release with registry_release. */
int registry_select(const struct options *o, struct bench_case **cases, size_t *count);
void registry_release(struct bench_case *cases, size_t count);

/* environment.c */
int environment_init(struct environment *env, const struct options *o, const char *program);
void environment_enter(const struct environment *env, const struct bench_def *def);

/* measure.c */
void measure_all(const struct options *o, const struct environment *env, struct bench_case *cases,
                 size_t count);
void bench_region(struct bench *b, bench_fn *run);

/* stats.c: `count` of at least 1. */
struct summary stats_summarise(const double *samples, size_t count);

/* table.c */
void table_print(FILE *out, const struct options *o, const struct environment *env,
                 const struct bench_case *cases, size_t count);
void table_print_once(FILE *out, const struct bench_case *cases, size_t count);

/* json.c: 0 or a negative errno. */
int json_append(FILE *out, const struct environment *env, const struct bench_case *c);

static inline uint64_t def_ops(const struct bench_def *def)
{
    return def->ops ? def->ops : 1;
}

static inline int def_pinned_cpu(const struct environment *env, const struct bench_def *def)
{
    return def->unpinned ? -1 : env->pinned_cpu;
}

#endif
