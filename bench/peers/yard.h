/* SPDX-License-Identifier: MIT */
/* yard.h - what the yardstick's programs in C and C++ have in common: parameters, clock, memory,
 * the line of JSON. WORKLOADS.md says what the workloads are, and what an exit code means. */
#ifndef SINEW_BENCH_PEERS_YARD_H
#define SINEW_BENCH_PEERS_YARD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    YARD_USAGE = 2,
    YARD_NO_WORKLOAD = 3,
    YARD_WRONG_RESULT = 4,
};

/* Who runs, and what it was told. Filled in by yard_begin. */
static struct {
    const char *peer;
    const char *version;
    const char *workload;
    int argc;
    char **argv;
    int workers;
} yard;

/* The text behind `key=`, the last one if there are several. */
static inline const char *yard_word(const char *key, const char *otherwise)
{
    size_t length = strlen(key);
    for (int i = yard.argc - 1; i > 1; i--)
        if (strncmp(yard.argv[i], key, length) == 0 && yard.argv[i][length] == '=')
            return yard.argv[i] + length + 1;
    return otherwise;
}

static inline int64_t yard_arg(const char *key, int64_t otherwise)
{
    const char *word = yard_word(key, NULL);
    return word != NULL ? strtoll(word, NULL, 10) : otherwise;
}

static inline void yard_begin(int argc, char **argv, const char *peer, const char *version)
{
    if (argc < 2) {
        fputs("usage: <program> <workload> [key=value ...]\n", stderr);
        exit(YARD_USAGE);
    }
    yard.peer = peer;
    yard.version = version;
    yard.workload = argv[1];
    yard.argc = argc;
    yard.argv = argv;
    yard.workers = (int)yard_arg("workers", 1);
}

static inline int yard_no_workload(void)
{
    fprintf(stderr, "%s: no workload %s\n", yard.peer, yard.workload);
    return YARD_NO_WORKLOAD;
}

static inline void yard_check(bool right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "%s: wrong result in %s\n", yard.peer, what);
    fflush(stdout);
    _exit(YARD_WRONG_RESULT);
}

static inline int64_t yard_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* A line of /proc/self/status, in KiB: VmRSS, and VmHWM for the peak (ru_maxrss survives an exec
 * and may show the parent's). */
static inline long yard_status_kb(const char *key)
{
    char line[128];
    long kb = 0;
    size_t length = strlen(key);
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, key, length) == 0 && sscanf(line + length, ": %ld", &kb) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kb;
}

/* The line of JSON. `more` are further members, each with a comma before it. */
__attribute__((format(printf, 3, 4))) static inline void yard_report(int64_t n, double ns_per_op,
                                                                     const char *more, ...)
{
    va_list args;
    printf("{\"peer\":\"%s\",\"workload\":\"%s\",\"workers\":%d,\"n\":%lld,\"ns_per_op\":%.2f,"
           "\"ops_per_s\":%.0f,\"rss_kb\":%ld,\"version\":\"%s\"",
           yard.peer, yard.workload, yard.workers, (long long)n, ns_per_op,
           ns_per_op > 0 ? 1e9 / ns_per_op : 0.0, yard_status_kb("VmHWM"), yard.version);
    va_start(args, more);
    vprintf(more, args);
    va_end(args);
    puts("}");
    fflush(stdout);
}

/* The usual one: so many operations took from t0 to t1, and this is what came out of them. */
static inline void yard_report_result(int64_t n, int64_t t0, int64_t t1, uint64_t result)
{
    yard_report(n, (double)(t1 - t0) / (double)n, ",\"ms\":%.1f,\"result\":%llu",
                (double)(t1 - t0) / 1e6, (unsigned long long)result);
}

static inline void yard_report_memory(int64_t n, int64_t t0, int64_t t1, const char *kind,
                                      long grown_kb)
{
    yard_report(n, (double)(t1 - t0) / (double)n, ",\"kind\":\"%s\",\"bytes_per_task\":%lld", kind,
                (long long)grown_kb * 1024 / (long long)n);
}

static inline int yard_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Latencies are kept in 32 bits: over four seconds is late enough. */
static inline uint32_t yard_saturate(int64_t ns)
{
    return ns<0 ? 0 : ns>(int64_t) UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

/* As members for yard_report. Sorts `v`. */
static inline const char *yard_percentiles(uint32_t *v, size_t n)
{
    static char text[128];
    qsort(v, n, sizeof(*v), yard_compare);
    snprintf(text, sizeof(text), ",\"min_ns\":%u,\"p50_ns\":%u,\"p99_ns\":%u,\"p999_ns\":%u", v[0],
             v[n / 2], v[n * 99 / 100], v[n * 999 / 1000]);
    return text;
}

static inline void yard_report_wakes(uint32_t *v, size_t n)
{
    const char *percentiles = yard_percentiles(v, n);
    yard_report((int64_t)n, v[n / 2], "%s", percentiles);
}

static inline void yard_report_sleeps(uint32_t *late, int64_t tasks, int64_t rounds, int64_t t0,
                                      int64_t t1)
{
    int64_t n = tasks * rounds;
    yard_report(n, (double)(t1 - t0) / (double)n, ",\"tasks\":%lld,\"rounds\":%lld%s",
                (long long)tasks, (long long)rounds, yard_percentiles(late, (size_t)n));
}

/* The delays of W8 timer_cancel, in ms: uniform in 1..10000, the same in each run. */
static inline uint32_t *yard_delays_ms(int64_t n)
{
    uint64_t x = 1;
    uint32_t *ms = (uint32_t *)malloc((size_t)n * sizeof(*ms));
    if (ms == NULL)
        abort();
    for (int64_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        ms[i] = (uint32_t)(1 + x % 10000);
    }
    return ms;
}

static inline uint64_t yard_fib(int64_t n)
{
    uint64_t a = 0;
    uint64_t b = 1;
    for (; n > 0; n--) {
        uint64_t c = a + b;
        a = b;
        b = c;
    }
    return a;
}

/* 0 + 1 + ... + (n - 1), what most workloads must come to. */
static inline uint64_t yard_sum_below(uint64_t n)
{
    return n * (n - 1) / 2;
}

#endif
