/* SPDX-License-Identifier: MIT */
/* goker.h - programs that hang, and what keeps them from it (R160).
 *
 * GoBench's goker collects programs that were boiled down from bugs of large Go programs; each is
 * known by the project and the number of its report. Ours are written anew from what is said about
 * these bugs: the same mistake, with our primitives, and with the steps in the order in which it
 * strikes. A program is a function of one flag. It must be reported with exactly the tasks that
 * hang if the mistake is in, and end without a word if it is not; with one thread and with several.
 *
 *     PROGRAM(moby_4951_two_locks_in_opposite_order, "first", "second")
 *     {
 *         ... if (is_fixed) ...
 *     }
 *
 * What a program uses is made anew for each run: `mu`, `rw`, `ch` and so on. */
#ifndef SINEW_TESTS_OBSERVE_GOKER_H
#define SINEW_TESTS_OBSERVE_GOKER_H

#include "unit/observe/said.h"

#define UNUSED __attribute__((unused))

/* These are reset before each run; channels are made by chan(). */
static bool is_fixed;
UNUSED static sn_mutex mu[3];
UNUSED static sn_rwlock rw;
UNUSED static sn_cond cond;
UNUSED static sn_wait_group group;
UNUSED static sn_latch meet; /* of two */
UNUSED static sn_event step[3];
UNUSED static bool flag;
static sn_chan *ch[4];

/* Begin a task that is known by the name of its function. */
#define GO(fn) CHECK_EQ(sn_spawn_detached(fn, NULL, .name = #fn), 0)

UNUSED static void chan(int i, size_t capacity)
{
    CHECK_EQ(sn_chan_create(&ch[i], sizeof(int), capacity, NULL), 0);
}

UNUSED static int send(int i)
{
    return sn_chan_send(ch[i], &(int){1}, SN_FOREVER);
}

UNUSED static int recv(int i)
{
    int value;
    return sn_chan_recv(ch[i], &value, SN_FOREVER);
}

/* Whichever comes first: 0 is `a`. */
UNUSED static int recv_either(int a, int b)
{
    int value;
    sn_case cases[] = {sn_case_recv(ch[a], &value), sn_case_recv(ch[b], &value)};
    return sn_select(cases, 2, 0, SN_FOREVER);
}

/* Send to `to`, unless something is received from `stop`, or that is closed. */
UNUSED static int send_unless(int to, int stop)
{
    int value;
    sn_case cases[] = {sn_case_send(ch[to], &(int){1}), sn_case_recv(ch[stop], &value)};
    return sn_select(cases, 2, 0, SN_FOREVER);
}

UNUSED static void lock(int i)
{
    CHECK_EQ(sn_mutex_lock(&mu[i], SN_FOREVER), 0);
}

UNUSED static void unlock(int i)
{
    CHECK_EQ(sn_mutex_unlock(&mu[i]), 0);
}

/* Both tasks are here. */
UNUSED static void meet_here(void)
{
    CHECK_EQ(sn_latch_arrive(&meet, 1), 0);
    CHECK_EQ(sn_latch_wait(&meet, SN_FOREVER), 0);
}

UNUSED static void reach(int i)
{
    CHECK_EQ(sn_event_set(&step[i]), 0);
}

UNUSED static void await(int i)
{
    CHECK_EQ(sn_event_wait(&step[i], SN_FOREVER), 0);
}

static inline void reset_all(bool fixed)
{
    is_fixed = fixed;
    for (int i = 0; i < 3; i++) {
        mu[i] = (sn_mutex)SN_MUTEX_INIT;
        step[i] = (sn_event)SN_EVENT_INIT;
    }
    rw = (sn_rwlock)SN_RWLOCK_INIT;
    cond = (sn_cond)SN_COND_INIT;
    group = (sn_wait_group)SN_WAIT_GROUP_INIT;
    meet = (sn_latch)SN_LATCH_INIT(2);
    flag = false;
}

struct program {
    sn_task_fn *fn;
    sn_runtime_options opts;
};

static inline int run_program(void *arg)
{
    const struct program *program = arg;
    int rc = run_to_the_end(&program->opts, program->fn, NULL);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(sn_chan_destroy(ch[i]), 0);
        ch[i] = NULL;
    }
    return rc;
}

/* `names` are those of the tasks that hang; NULL ends them. */
static inline void check_program(sn_task_fn *fn, const sn_runtime_options *opts,
                                 const char *const *names)
{
    reset_all(false);
    struct said said = listen_to(run_program, &(struct program){fn, *opts});
    CHECK_EQ(said.result, -EDEADLK);
    int n = 0;
    for (; names[n] != NULL; n++) {
        char words[128];
        snprintf(words, sizeof(words), "\"%s\", spawned at ", names[n]);
        CHECK_STR_HAS(said.text, words);
    }
    char count[64];
    snprintf(count, sizeof(count), "all tasks are asleep (%d)", n);
    CHECK_STR_HAS(said.text, count);
    free(said.text);
    reset_all(true);
    said = listen_to(run_program, &(struct program){fn, *opts});
    CHECK_EQ(said.result, 0);
    CHECK_STR_EQ(said.text, "");
    free(said.text);
}

#define PROGRAM(name, ...)                                                      \
    static int name##_main(void *arg);                                          \
    TEST(name)                                                                  \
    {                                                                           \
        const char *const names[] = {__VA_ARGS__, NULL};                        \
        check_program(name##_main, &(sn_runtime_options){.workers = 2}, names); \
        sn_runtime_options alone = {.single_threaded = true};                   \
        check_program(name##_main, &alone, names);                              \
    }                                                                           \
    static int name##_main(UNUSED void *arg)

#endif
