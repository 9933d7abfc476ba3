/* SPDX-License-Identifier: MIT */
/* runtime.c - the composition root: options, environment, the way in and the way out.
 *
 * Nothing else reads the environment or decides which parts make up a runtime. The life of a
 * runtime is create, any number of block_on, shutdown, destroy; sn_run is all of them. */
#include "runtime/runtime.h"

#include "runtime/deadlock.h"
#include "runtime/drivers.h"
#include "runtime/report.h"

#include "base/assert.h"
#include "plat/cpu.h"
#include "plat/random.h"
#include "sched/sched.h"

#include <sinew/errno.h>
#include <sinew/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORKERS_MAX = SNI_WORKERS_MAX,
    STACK_BYTES_MIN = 8 << 10,
    STACK_BYTES_DEFAULT = 64 << 10,
    CAPACITY_MAX = 1 << 16,
    TICK_NS_DEFAULT = 1 << 14,
    TICK_NS_MAX = 1000000000,
};

#define STACK_BYTES_MAX ((unsigned long long)1 << 30)

struct sn_runtime {
    struct sni_sched sched;
    struct sni_driver_choice driver;
    bool is_stuck; /* the shutdown found tasks that can never run again, and they were listed */
};

/* ---- options --------------------------------------------------------------------------- */

static int complain(const char *what, const char *value, unsigned long long least,
                    unsigned long long most)
{
    fprintf(stderr, "sinew: %s is \"%s\", but must be a number from %llu to %llu\n", what, value,
            least, most);
    return -EINVAL;
}

/* The number in the environment variable `name`, if it is set; else *value stays. */
static int from_environment(const char *name, unsigned long long least, unsigned long long most,
                            unsigned long long *value)
{
    const char *text = getenv(name);
    if (text == NULL)
        return 0;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (end == text || *end != '\0' || text[0] == '-' || errno != 0 || number < least ||
        number > most)
        return complain(name, text, least, most);
    *value = number;
    return 0;
}

static int check_number(const char *what, unsigned long long value, unsigned long long least,
                        unsigned long long most)
{
    if (value >= least && value <= most)
        return 0;
    char text[24];
    snprintf(text, sizeof(text), "%llu", value);
    return complain(what, text, least, most);
}

/* What the program said, else the environment, else the default. */
static int choose(const char *option, const char *variable, unsigned long long set,
                  unsigned long long fallback, unsigned long long least, unsigned long long most,
                  unsigned long long *value)
{
    *value = set != 0 ? set : fallback;
    if (set != 0)
        return check_number(option, set, least, most);
    return from_environment(variable, least, most, value);
}

static int check_capacity(unsigned capacity)
{
    int rc = check_number("the option queue_capacity", capacity, 2, CAPACITY_MAX);
    if (rc == 0 && (capacity & (capacity - 1)) != 0) {
        fprintf(stderr, "sinew: the option queue_capacity is %u, which is no power of two\n",
                capacity);
        rc = -EINVAL;
    }
    return rc;
}

/* What the program said, else the environment, else `fallback`. */
static int choose_deadlock(sn_deadlock_policy set, sn_deadlock_policy fallback,
                           struct sni_sched_config *config)
{
    static const char *const words[] = {"", "off", "report", "end"};
    const char *text = getenv("SINEW_DEADLOCK");
    if ((unsigned)set > SN_DEADLOCK_END) {
        fprintf(stderr, "sinew: the option deadlock is %d, which is no sn_deadlock_policy\n",
                (int)set);
        return -EINVAL;
    }
    if (set == SN_DEADLOCK_DEFAULT && text != NULL) {
        while (set <= SN_DEADLOCK_END && strcmp(text, words[set]) != 0)
            set++;
        if (set == SN_DEADLOCK_DEFAULT || set > SN_DEADLOCK_END) {
            fprintf(stderr, "sinew: SINEW_DEADLOCK is \"%s\", but must be off, report or end\n",
                    text);
            return -EINVAL;
        }
    }
    set = set != SN_DEADLOCK_DEFAULT ? set : fallback;
    config->all_asleep = set == SN_DEADLOCK_END      ? sni_end_asleep
                         : set == SN_DEADLOCK_REPORT ? sni_report_asleep
                                                     : NULL;
    return 0;
}

/* To count processors some files are read, which takes longer than all the rest: only if
 * nobody has said how many workers there shall be. */
static unsigned long long usual_workers(const sn_runtime_options *opts)
{
    bool is_said = opts->workers != 0 || opts->single_threaded || getenv("SINEW_WORKERS") != NULL;
    return is_said ? 1 : (unsigned long long)sni_plat_cpu_count();
}

static int configure(const sn_runtime_options *opts, struct sni_sched_config *config)
{
    unsigned long long workers, stack_bytes, seed = opts->seed;
    int rc = choose("the option workers", "SINEW_WORKERS", opts->workers, usual_workers(opts), 1,
                    WORKERS_MAX, &workers);
    if (rc == 0)
        rc = choose("the option stack_bytes", "SINEW_STACK_BYTES", opts->stack_bytes,
                    STACK_BYTES_DEFAULT, STACK_BYTES_MIN, STACK_BYTES_MAX, &stack_bytes);
    if (rc == 0 && seed == 0)
        rc = from_environment("SINEW_SEED", 0, UINT64_MAX, &seed);
    if (rc == 0 && (opts->seed != 0 || opts->virtual_time) && !opts->single_threaded) {
        fprintf(stderr, "sinew: the option %s needs the option single_threaded\n",
                opts->seed != 0 ? "seed" : "virtual_time");
        rc = -EINVAL;
    }
    if (rc == 0 && opts->timer_tick_ns != 0)
        rc = check_number("the option timer_tick_ns", (unsigned long long)opts->timer_tick_ns, 1,
                          TICK_NS_MAX);
    if (rc == 0 && opts->queue_capacity != 0)
        rc = check_capacity(opts->queue_capacity);
    if (rc < 0)
        return rc;
    *config = (struct sni_sched_config){
        .workers = (unsigned)workers,
        .single_threaded = opts->single_threaded,
        .no_steal = opts->no_steal,
        .pin = opts->pin,
        .lifo = opts->lifo,
        .queue_capacity = opts->queue_capacity != 0 ? opts->queue_capacity : SNI_RUNQ_CAPACITY,
        .measure_stacks = opts->measure_stacks,
        .hooks = opts->hooks,
        .virtual_time = opts->virtual_time,
        .tick_ns = opts->timer_tick_ns != 0 ? opts->timer_tick_ns : TICK_NS_DEFAULT,
        .stack_bytes = (size_t)stack_bytes,
        .name = opts->name != NULL ? opts->name : "sinew",
        .seeded = seed != 0 && opts->single_threaded,
        .seed = seed != 0 ? seed : sni_plat_random_seed(),
    };
    return 0;
}

/* ---- life ------------------------------------------------------------------------------ */

static int create(sn_runtime **out, const sn_runtime_options *opts, sn_deadlock_policy fallback)
{
    struct sni_sched_config config;
    int rc = configure(opts, &config);
    if (rc == 0)
        rc = choose_deadlock(opts->deadlock, fallback, &config);
    if (rc < 0)
        return rc;
    sn_runtime *rt = aligned_alloc(SNI_SCHED_LINE_BYTES, sizeof(*rt));
    if (rt == NULL)
        return -ENOMEM;
    rc = sni_choose_driver(opts->io, opts->sqpoll, &rt->driver);
    if (rc < 0) {
        free(rt);
        return rc;
    }
    config.make_driver = sni_make_driver;
    config.make_driver_arg = &rt->driver;
    rt->is_stuck = false;
    rc = sni_sched_init(&rt->sched, &config);
    if (rc < 0) {
        free(rt);
        return rc;
    }
    (void)sni_report_install();
    *out = rt;
    return 0;
}

int sn_runtime_create(sn_runtime **out, const sn_runtime_options *opts)
{
    static const sn_runtime_options defaults = {.workers = 0};
    return create(out, opts != NULL ? opts : &defaults, SN_DEADLOCK_OFF);
}

struct sni_sched *sni_runtime_sched(sn_runtime *rt)
{
    if (rt != NULL)
        return &rt->sched;
    const struct sni_worker *w = sni_worker_current();
    return w != NULL ? w->sched : NULL;
}

/* Who drives has come back, but not because of its task; or the task was given up. */
static int why_not(const struct sni_sched *sched)
{
    /* relaxed, both: set before that */
    bool is_stuck = sni_atomic_load(&sched->stuck, relaxed) != 0;
    bool is_stopped = sni_atomic_load(&sched->life, relaxed) == SNI_SCHED_STOPPING;
    return is_stopped && !is_stuck ? -ECANCELED : -EDEADLK;
}

/* The result of the task that `handle` names; or why it will never have one. */
static int join(struct sni_sched *sched, sn_task *handle, bool is_driven)
{
    sn_exit how = {.kind = SN_EXIT_NONE};
    int rc = 0;
    if (is_driven)
        rc = sni_task_wait(handle);
    else if (sni_task_look(handle) == -EAGAIN) /* nobody drives it any more: it never ends */
        rc = why_not(sched);
    if (rc < 0) {
        (void)sn_detach(handle);
        return rc != -ESRCH ? rc : why_not(sched); /* a shutdown has used it up */
    }
    rc = sn_join(handle, &how);
    return how.kind != SN_EXIT_NONE ? rc : why_not(sched); /* as above */
}

static int wait_for(sn_runtime *rt, sn_task *handle)
{
    struct sni_sched *sched = &rt->sched;
    bool is_driven = !sched->config.single_threaded; /* by others */
    int rc = is_driven ? 0 : sni_sched_drive(sched, handle);
    if (rc < 0) {
        sni_atomic_fence(acquire); /* of the lock that was not to be had */
        /* relaxed: closed by whoever drives it now */
        is_driven = sni_atomic_load(&sched->life, relaxed) != SNI_SCHED_OPEN;
        if (!is_driven) {
            (void)sn_detach(handle);
            return sni_misuse(rc, "two threads drive one single-threaded runtime");
        }
    }
    return join(sched, handle, is_driven);
}

int sn_runtime_block_on(sn_runtime *rt, sn_task_fn *fn, void *arg)
{
    if (sni_exec_current() != NULL)
        return sni_misuse(-EDEADLK, "sn_runtime_block_on or sn_run was called inside a runtime");
    sn_spawn_options opts = {.at_ = "sn_runtime_block_on", .name = "main"};
    struct sni_spawn what = {.kind = SNI_TASK_FIBER, .fn = fn, .arg = arg, .opts = &opts};
    sn_task *handle;
    sni_atomic_fetch_add(&rt->sched.callers, 1, relaxed); /* relaxed: the spawn publishes it */
    SNI_SPILL_REGISTERS();                                /* sn_leaks looks for handles in memory */
    int rc = sni_sched_spawn(&rt->sched, &what, true, &handle);
    if (rc == 0)
        rc = wait_for(rt, handle);
    sni_atomic_fetch_sub(&rt->sched.callers, 1, release); /* release: to who shuts it down */
    return rc;
}

sn_task *sn_runtime_spawn_(sn_runtime *rt, sn_task_fn *fn, void *arg, const sn_spawn_options *opts)
{
    struct sni_spawn what = {.kind = SNI_TASK_FIBER, .fn = fn, .arg = arg, .opts = opts};
    sn_task *handle = NULL;
    int rc = sni_sched_spawn(&rt->sched, &what, !opts->detached, &handle);
    if (opts->error != NULL)
        *opts->error = rc;
    return handle;
}

int sn_runtime_turn(sn_runtime *rt, sn_deadline until)
{
    if (!rt->sched.config.single_threaded)
        return -EINVAL;
    if (sni_exec_current() != NULL)
        return sni_misuse(-EDEADLK, "sn_runtime_turn was called inside a runtime");
    int rc = sni_sched_turn(&rt->sched, until);
    if (rc == -EPERM)
        return rc;
    if (rc < 0)
        return sni_misuse(rc, "two threads drive one single-threaded runtime");
    uint64_t alive = sni_sched_alive(&rt->sched);
    return alive < INT32_MAX ? (int)alive : INT32_MAX;
}

int sn_runtime_fd(sn_runtime *rt)
{
    return rt->sched.config.single_threaded ? sni_sched_event_fd(&rt->sched) : -EINVAL;
}

int sn_runtime_stacks(sn_runtime *rt,
                      void (*tell)(const char *at, size_t bytes, uint64_t fibers, void *arg),
                      void *arg)
{
    size_t cursor = 0;
    int places = 0;
    struct sni_highwater_mark mark;
    for (; sni_highwater_next(rt->sched.marks, &cursor, &mark); places++)
        tell(mark.at, mark.bytes, mark.stacks, arg);
    return places;
}

int sn_runtime_shutdown(sn_runtime *rt, sn_deadline until)
{
    if (sni_exec_current() != NULL)
        return sni_misuse(-EDEADLK, "sn_runtime_shutdown was called inside a runtime");
    struct sni_sched *sched = &rt->sched;
    if (!sni_sched_close(sched))
        return 0;
    SNI_SPILL_REGISTERS(); /* as above */
    rt->is_stuck = sni_sched_wait_all(sched, until) == -EDEADLK;
    sni_sched_stop(sched);
    return sni_report_leftovers(sched, rt->is_stuck);
}

void sn_runtime_destroy(sn_runtime *rt)
{
    if (rt == NULL)
        return;
    (void)sn_runtime_shutdown(rt, SN_FOREVER);
    sni_report_remove();
    sni_sched_finish(&rt->sched);
    free(rt);
}

int sn_run(sn_task_fn *fn, void *arg)
{
    sn_runtime *rt;
    if (sni_exec_current() != NULL)
        return sni_misuse(-EDEADLK, "sn_runtime_block_on or sn_run was called inside a runtime");
    int rc = create(&rt, &(sn_runtime_options){.workers = 0}, SN_DEADLOCK_END);
    if (rc < 0)
        return rc;
    rc = sn_runtime_block_on(rt, fn, arg);
    (void)sn_runtime_shutdown(rt, SN_FOREVER);
    if (rt->is_stuck)
        rc = -EDEADLK;
    sn_runtime_destroy(rt);
    return rc;
}
