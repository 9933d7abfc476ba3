/* SPDX-License-Identifier: MIT */
/* environment.c - where and as what we run, and pinning.
 *
 * A figure without its machine, kernel, compiler and flags cannot be compared, so all of them go
 * into each result. Pinning goes to the last allowed cpu, since interrupts and daemons gather on
 * the first. Threads inherit the pin; a benchmark that starts some asks for `.unpinned`, and gets
 * the mask the process was started with, for its samples only. */
#include "harness.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#ifndef SINEW_BENCH_FLAGS
#define SINEW_BENCH_FLAGS "unknown flags"
#endif

#ifdef __clang__
#define COMPILER_NAME "" /* its version text begins with the name */
#else
#define COMPILER_NAME "gcc "
#endif

static void read_cpu_model(char *model, size_t bytes, const char *fallback)
{
    char line[512];
    snprintf(model, bytes, "%s", fallback);
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (!f)
        return;
    while (fgets(line, sizeof(line), f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(model, bytes, "%s", colon);
        break;
    }
    fclose(f);
}

/* The build leaves blanks where an option list was empty. */
static void copy_trimmed(char *to, size_t bytes, const char *from)
{
    snprintf(to, bytes, "%s", from + strspn(from, " "));
    for (size_t length = strlen(to); length > 0 && to[length - 1] == ' '; length--)
        to[length - 1] = '\0';
}

static int last_cpu(const cpu_set_t *set)
{
    for (size_t cpu = CPU_SETSIZE; cpu-- > 0;) {
        if (CPU_ISSET(cpu, set))
            return (int)cpu;
    }
    return -1;
}

static int pin_to(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    return sched_setaffinity(0, sizeof(one), &one) == 0 ? 0 : -errno;
}

/* A cpu that was asked for must be had; the default one is a wish. --once takes no times, and
 * tests want real parallelism, so it leaves the mask alone. */
static int choose_cpu(struct environment *env, const struct options *o)
{
    env->pinned_cpu = -1;
    if (o->no_pin || o->mode == MODE_ONCE)
        return EXIT_OK;
    int rc = sched_getaffinity(0, sizeof(env->allowed), &env->allowed) == 0 ? 0 : -errno;
    int cpu = rc < 0 || o->cpu >= 0 ? o->cpu : last_cpu(&env->allowed);
    if (rc == 0)
        rc = cpu >= 0 ? pin_to(cpu) : -ENODEV;
    if (rc == 0) {
        env->pinned_cpu = cpu;
        return EXIT_OK;
    }
    if (o->cpu >= 0) {
        fprintf(stderr, "This process cannot be pinned to cpu %d: %s.\n", o->cpu, strerror(-rc));
        return EXIT_USAGE;
    }
    fprintf(stderr, "Not pinned, expect more noise: %s.\n", strerror(-rc));
    return EXIT_OK;
}

static void stamp(struct environment *env, const struct options *o)
{
    char compact[32];
    struct tm utc = {0};
    time_t now = time(NULL);
    gmtime_r(&now, &utc);
    strftime(env->time_utc, sizeof(env->time_utc), "%Y-%m-%dT%H:%M:%SZ", &utc);
    strftime(compact, sizeof(compact), "%Y%m%dT%H%M%SZ", &utc);
    if (o->run_id)
        snprintf(env->run_id, sizeof(env->run_id), "%s", o->run_id);
    else
        snprintf(env->run_id, sizeof(env->run_id), "%s-%ld", compact, (long)getpid());
}

int environment_init(struct environment *env, const struct options *o, const char *program)
{
    struct utsname os = {0};
    *env = (struct environment){.pinned_cpu = -1};
    uname(&os);
    const char *slash = strrchr(program, '/');
    env->program = slash ? slash + 1 : program;
    snprintf(env->kernel, sizeof(env->kernel), "%s %s", os.sysname, os.release);
    snprintf(env->compiler, sizeof(env->compiler), "%s%s", COMPILER_NAME, __VERSION__);
    copy_trimmed(env->flags, sizeof(env->flags), SINEW_BENCH_FLAGS);
    read_cpu_model(env->cpu_model, sizeof(env->cpu_model), os.machine);
    stamp(env, o);
#ifdef __OPTIMIZE__
    env->optimised = true;
#endif
    return choose_cpu(env, o);
}

void environment_enter(const struct environment *env, const struct bench_def *def)
{
    if (env->pinned_cpu < 0)
        return;
    /* Both masks were accepted before. Failure now means a cpu was taken away under us; the figure
     * still stands, with the noise it will show. */
    if (def->unpinned)
        (void)sched_setaffinity(0, sizeof(env->allowed), &env->allowed);
    else
        (void)pin_to(env->pinned_cpu);
}
