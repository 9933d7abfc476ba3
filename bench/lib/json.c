/* SPDX-License-Identifier: MIT */
/* json.c - results for programs: one JSON object per line, appended, read by tools/benchcmp.
 *
 * Each line repeats its run, so that lines can be sorted, filtered and joined with the usual text
 * tools. A line is built in memory and written by one call, so that programs that append to the
 * same file at the same time do not mix their lines. */
#include "harness.h"

#include <errno.h>
#include <stdlib.h>

static void put_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p < 0x20)
            fprintf(out, "\\u%04x", *p);
        else
            fputc(*p, out);
    }
    fputc('"', out);
}

static void put_field(FILE *out, const char *name, const char *text)
{
    fprintf(out, ",\"%s\":", name);
    put_string(out, text);
}

/* JSON knows neither infinity nor NaN; x - x is 0 for all numbers but those. */
static void put_number(FILE *out, double value)
{
    if (value - value == 0)
        fprintf(out, "%.10g", value);
    else
        fputs("null", out);
}

static void put_samples(FILE *out, const struct bench_case *c)
{
    fputs(",\"samples_ns\":[", out);
    for (unsigned i = 0; i < c->sample_count; i++) {
        fputs(i ? "," : "", out);
        put_number(out, c->samples_ns[i]);
    }
    fputc(']', out);
}

static void put_counters(FILE *out, const struct bench *b)
{
    fputs(",\"counters\":{", out);
    for (unsigned i = 0; i < b->counter_count; i++) {
        fputs(i ? "," : "", out);
        put_string(out, b->counters[i].name);
        fputc(':', out);
        put_number(out, b->counters[i].value);
    }
    fputc('}', out);
}

static void put_run(FILE *out, const struct environment *env, int pinned_cpu)
{
    fputs(",\"run\":{\"id\":", out);
    put_string(out, env->run_id);
    put_field(out, "time", env->time_utc);
    put_field(out, "program", env->program);
    put_field(out, "cpu", env->cpu_model);
    put_field(out, "kernel", env->kernel);
    put_field(out, "compiler", env->compiler);
    put_field(out, "flags", env->flags);
    if (pinned_cpu >= 0)
        fprintf(out, ",\"pinned_cpu\":%d}", pinned_cpu);
    else
        fputs(",\"pinned_cpu\":null}", out);
}

static void put_case(FILE *out, const struct environment *env, const struct bench_case *c)
{
    fputs("{\"bench\":", out);
    put_string(out, c->def->name);
    fputs(",\"median_ns\":", out);
    put_number(out, c->summary.median_ns);
    fputs(",\"min_ns\":", out);
    put_number(out, c->summary.min_ns);
    fputs(",\"mad_ns\":", out);
    put_number(out, c->summary.mad_ns);
    fprintf(out, ",\"rounds\":%u,\"iterations\":%llu,\"ops\":%llu", c->sample_count,
            (unsigned long long)c->iterations, (unsigned long long)def_ops(c->def));
    put_samples(out, c);
    put_counters(out, &c->last);
    put_run(out, env, def_pinned_cpu(env, c->def));
    fputs("}\n", out);
}

int json_append(FILE *out, const struct environment *env, const struct bench_case *c)
{
    char *line = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&line, &bytes);
    if (!memory)
        return -ENOMEM;
    put_case(memory, env, c);
    int rc = fclose(memory) == 0 ? 0 : -ENOMEM;
    errno = 0;
    if (rc == 0 && fwrite(line, 1, bytes, out) != bytes)
        rc = errno ? -errno : -EIO;
    free(line);
    return rc;
}
