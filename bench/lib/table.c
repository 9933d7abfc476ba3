/* SPDX-License-Identifier: MIT */
/* table.c - results for people.
 *
 * Times are always ns, so that a column can be read downwards, with fewer decimals where they would
 * be noise; rates get a unit letter, since they span ten decades. What makes a figure doubtful is
 * said in its own row or as a line below. */
#include "harness.h"

#include <string.h>

/* Less than a tenth of a cycle: no loop turns that fast. */
#define SUSPECT_NS_PER_ITERATION 0.02

static int name_width(const struct bench_case *cases, size_t count)
{
    size_t width = strlen("benchmark");
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(cases[i].def->name);
        width = length > width ? length : width;
    }
    return (int)width;
}

static int decimals(double ns)
{
    if (ns >= 1e6)
        return 0;
    return ns >= 1e3 ? 1 : 3;
}

static void format_rate(char *text, size_t bytes, double per_second)
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    size_t unit = 0;
    if (!(per_second < 1e15)) { /* no such machine: see SUSPECT_NS_PER_ITERATION */
        snprintf(text, bytes, "-");
        return;
    }
    while (per_second >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        per_second /= 1000;
        unit++;
    }
    snprintf(text, bytes, "%.2f%s", per_second, units[unit]);
}

static void print_remarks(FILE *out, const struct bench_case *c)
{
    const char *gap = "  "; /* before the first remark, so that no line ends in blanks */
    if (c->def->note) {
        fprintf(out, "%s%s", gap, c->def->note);
        gap = " ";
    }
    for (unsigned i = 0; i < c->last.counter_count; i++) {
        const struct bench_counter *counter = &c->last.counters[i];
        fprintf(out, "%s[%s %.6g]", gap, counter->name, counter->value);
        gap = " ";
    }
    if (c->def->unpinned)
        fprintf(out, "%s[unpinned]", gap);
}

static void print_row(FILE *out, const struct bench_case *c, int width)
{
    char rate[32];
    const struct summary *s = &c->summary;
    if (c->last.outcome != BENCH_OK) {
        fprintf(out, "%-*s  %s: %s\n", width, c->def->name,
                c->last.outcome == BENCH_SKIPPED ? "skipped" : "FAILED",
                c->last.reason ? c->last.reason : "no reason given");
        return;
    }
    double median = s->median_ns > 0 ? s->median_ns : 1e-9;
    format_rate(rate, sizeof(rate), 1e9 / median);
    fprintf(out, "%-*s  %12.*f  %12.*f  %6.1f  %10s", width, c->def->name, decimals(s->median_ns),
            s->median_ns, decimals(s->min_ns), s->min_ns, 100 * s->mad_ns / median, rate);
    print_remarks(out, c);
    fputc('\n', out);
}

static void print_header(FILE *out, const struct options *o, const struct environment *env)
{
    fprintf(out, "# cpu %s | kernel %s | compiler %s | flags %s | ", env->cpu_model, env->kernel,
            env->compiler, env->flags);
    if (env->pinned_cpu >= 0)
        fprintf(out, "pinned to cpu %d | ", env->pinned_cpu);
    else
        fputs("not pinned | ", out);
    if (o->mode == MODE_FIXED)
        fputs("one sample, no warm-up\n", out);
    else
        fprintf(out, "%u rounds of %g ms\n", o->rounds, o->sample_ms);
    if (!env->optimised)
        fputs("# Built without optimisation: these figures say little.\n", out);
}

void table_print(FILE *out, const struct options *o, const struct environment *env,
                 const struct bench_case *cases, size_t count)
{
    int width = name_width(cases, count);
    print_header(out, o, env);
    fprintf(out, "%-*s  %12s  %12s  %6s  %10s  %s\n", width, "benchmark", "median ns/op",
            "min ns/op", "MAD %", "ops/s", "note");
    for (size_t i = 0; i < count; i++)
        print_row(out, &cases[i], width);
    for (size_t i = 0; i < count && o->mode == MODE_MEASURE; i++) {
        double per_iteration = cases[i].summary.median_ns * (double)def_ops(cases[i].def);
        if (cases[i].sample_count > 0 && per_iteration < SUSPECT_NS_PER_ITERATION)
            fprintf(out, "# %s takes no time at all: the compiler removed it, see bench_keep.\n",
                    cases[i].def->name);
    }
}

void table_print_once(FILE *out, const struct bench_case *cases, size_t count)
{
    int width = name_width(cases, count);
    for (size_t i = 0; i < count; i++) {
        if (cases[i].last.outcome != BENCH_OK)
            print_row(out, &cases[i], width);
        else
            fprintf(out, "%-*s  ran %llu iterations\n", width, cases[i].def->name,
                    (unsigned long long)cases[i].iterations);
    }
}
