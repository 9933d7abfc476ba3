/* SPDX-License-Identifier: MIT */
/* A run in which no task can ever run again ends with a report and -EDEADLK (R160); one that a
 * deadline, a descriptor, a thread, a signal or another runtime may still wake does not. */
#include "base/atomic.h"
#include "unit/observe/said.h"
#include "unit/task/with_runtime.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

static const sn_runtime_options kinds_of_runtime[] = {
    {.single_threaded = true},
    {.single_threaded = true, .seed = 7},
    {.single_threaded = true, .virtual_time = true},
    {.workers = 1},
    {.workers = 4},
    {.workers = 3, .lifo = true},
};

enum { KINDS = sizeof(kinds_of_runtime) / sizeof(kinds_of_runtime[0]) };

static sn_event never;

static int wait_for_nothing(void *arg)
{
    (void)arg;
    return sn_event_wait(&never, SN_FOREVER);
}

static int main_waits(void *arg)
{
    (void)arg;
    return sn_join(sn_spawn(wait_for_nothing, NULL, .name = "sleeper"), NULL);
}

struct run {
    const sn_runtime_options *opts;
    sn_task_fn *fn;
};

static int run_it(void *arg)
{
    const struct run *run = arg;
    never = (sn_event)SN_EVENT_INIT;
    return run->opts != NULL ? run_to_the_end(run->opts, run->fn, NULL) : sn_run(run->fn, NULL);
}

static void check_sleeper(const char *text)
{
    CHECK_EQ(times(text, "sinew: deadlock: all tasks are asleep ("), 1);
    CHECK_STR_HAS(text, "\"sleeper\", spawned at ");
    CHECK_STR_HAS(text, "observe/test_asleep.c:");
    CHECK_STR_HAS(text, ", waits at event 0x");
    CHECK_EQ(times(text, "is still alive"), 0);
}

TEST(when_all_tasks_are_asleep_the_run_ends_with_a_report)
{
    struct said said = listen_to(run_it, &(struct run){.fn = main_waits});
    CHECK_EQ(said.result, -EDEADLK);
    check_sleeper(said.text);
    CHECK_STR_HAS(said.text, "all tasks are asleep (2)");
    CHECK_STR_HAS(said.text, "task 1 \"main\", spawned at sn_runtime_block_on, joins task 2 ");
    free(said.text);
}

TEST(runtimes_of_all_kinds_see_that_all_are_asleep, .limit_s = 60)
{
    for (int i = 0; i < KINDS; i++) {
        struct said said = listen_to(run_it, &(struct run){&kinds_of_runtime[i], main_waits});
        CHECK_EQ(said.result, -EDEADLK);
        check_sleeper(said.text);
        free(said.text);
    }
}

static int main_leaves(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_spawn_detached(wait_for_nothing, NULL, .name = "sleeper"), 0);
    return 3;
}

TEST(tasks_that_main_has_left_asleep_end_the_run_with_a_report, .limit_s = 60)
{
    struct said said = listen_to(run_it, &(struct run){.fn = main_leaves});
    CHECK_EQ(said.result, -EDEADLK);
    check_sleeper(said.text);
    CHECK_STR_HAS(said.text, "all tasks are asleep (1)");
    free(said.text);
    for (int i = 0; i < KINDS; i++) {
        said = listen_to(run_it, &(struct run){&kinds_of_runtime[i], main_leaves});
        CHECK_EQ(said.result, -EDEADLK);
        check_sleeper(said.text);
        free(said.text);
    }
}

static int main_sleeps_later(void *arg)
{
    CHECK_EQ(sn_sleep(SN_MS(5)), 0);
    return main_waits(arg);
}

TEST(it_is_seen_whichever_worker_falls_asleep_last, .limit_s = 60)
{
    for (int i = 0; i < 12; i++) {
        struct said said =
            listen_to(run_it, &(struct run){&kinds_of_runtime[i % KINDS], main_sleeps_later});
        CHECK_EQ(said.result, -EDEADLK);
        check_sleeper(said.text);
        free(said.text);
    }
}

/* Who runs a task comes late to its join: it shares a processor with the worker and gives way, so
 * that the worker falls asleep between the spawn and the join. */
static void take_turns(int policy)
{
    CHECK_EQ(sched_setscheduler(0, policy, &(struct sched_param){.sched_priority = 0}), 0);
}

static void note_start(unsigned index, void *arg)
{
    (void)index;
    atomic_store((atomic_bool *)arg, true);
}

static int run_late(void *arg)
{
    const struct run *run = arg;
    sn_runtime *rt = NULL;
    never = (sn_event)SN_EVENT_INIT;
    CHECK_EQ(sn_runtime_create(&rt, run->opts), 0);
    while (!atomic_load((atomic_bool *)run->opts->hooks.arg))
        usleep(100);
    usleep(2000); /* it sleeps now, so that the spawn wakes it */
    take_turns(SCHED_IDLE);
    int rc = sn_runtime_block_on(rt, run->fn, NULL);
    take_turns(SCHED_OTHER);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 2);
    sn_runtime_destroy(rt);
    return rc;
}

TEST(it_is_seen_although_the_caller_comes_late_to_its_join, .limit_s = 60)
{
    atomic_bool started;
    sn_runtime_options opts = {.workers = 1, .deadlock = SN_DEADLOCK_END};
    opts.hooks = (sn_hooks){.thread_started = note_start, .arg = &started};
    cpu_set_t allowed, one;
    CHECK_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            CPU_SET(cpu, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    for (int i = 0; i < 10; i++) {
        atomic_init(&started, false);
        struct said said = listen_to(run_late, &(struct run){&opts, main_waits});
        CHECK_EQ(said.result, -EDEADLK);
        check_sleeper(said.text);
        free(said.text);
    }
}

/* ---- who is woken while it is looked at ------------------------------------------------------ */

static sn_event stop_all;
static atomic_int stopped;

static int stop_in_time(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_event_wait(&stop_all, SN_FOREVER), 0);
    CHECK_EQ(sn_sleep(SN_MS(2)), 0);
    atomic_fetch_add(&stopped, 1);
    return 0;
}

static int give_zero(void *arg)
{
    (void)arg;
    return 0;
}

/* Leaves one that waits, and many records to be looked at. */
static int leave_one_behind(void *arg)
{
    enum { MANY = 3000 };
    static sn_task *t[MANY];
    for (int i = 0; i < MANY; i++)
        t[i] = sn_spawn(give_zero, arg);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    return sn_spawn_detached(stop_in_time, NULL, .name = "background");
}

TEST(a_run_is_not_ended_while_its_caller_wakes_a_task_and_shuts_down, .limit_s = 60)
{
    for (int i = 0; i < 100; i++) {
        sn_runtime *rt = NULL;
        sn_runtime_options opts = {.workers = 1, .deadlock = SN_DEADLOCK_END};
        stop_all = (sn_event)SN_EVENT_INIT;
        CHECK_EQ(sn_runtime_create(&rt, &opts), 0);
        CHECK_EQ(sn_runtime_block_on(rt, leave_one_behind, NULL), 0);
        CHECK_EQ(sn_event_set(&stop_all), 0);
        CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
        sn_runtime_destroy(rt);
        CHECK_EQ(atomic_load(&stopped), i + 1);
    }
}

static void *wake_and_end(void *arg)
{
    usleep((useconds_t)(intptr_t)arg);
    CHECK_EQ(sn_event_set(&stop_all), 0);
    return NULL;
}

static int wait_to_be_stopped(void *arg)
{
    (void)arg;
    return sn_event_wait(&stop_all, SN_FOREVER);
}

TEST(a_run_is_not_ended_although_who_wakes_its_task_ends_at_once, .limit_s = 60)
{
    for (int i = 0; i < 200; i++) {
        sn_runtime_options opts = {.single_threaded = true};
        pthread_t thread;
        stop_all = (sn_event)SN_EVENT_INIT;
        CHECK_EQ(pthread_create(&thread, NULL, wake_and_end, (void *)(intptr_t)(i * 5)), 0);
        CHECK_EQ(pthread_detach(thread), 0);
        CHECK_EQ(run_to_the_end(&opts, wait_to_be_stopped, NULL), 0);
    }
}

struct asleep {
    sn_runtime *rt;
    int rc;
};

static void *run_asleep(void *arg)
{
    struct asleep *a = arg;
    a->rc = sn_runtime_block_on(a->rt, main_waits, NULL);
    return NULL;
}

TEST(a_run_is_ended_also_while_another_thread_shuts_down, .limit_s = 60)
{
    for (int single = 0; single < 2; single++) {
        sn_runtime_options opts = {.single_threaded = single != 0,
                                   .workers = single != 0 ? 0 : 2,
                                   .deadlock = SN_DEADLOCK_END};
        struct asleep a = {.rc = 0};
        pthread_t thread;
        never = (sn_event)SN_EVENT_INIT;
        CHECK_EQ(sn_runtime_create(&a.rt, &opts), 0);
        CHECK_EQ(pthread_create(&thread, NULL, run_asleep, &a), 0);
        usleep(20000);
        (void)sn_runtime_shutdown(a.rt, SN_FOREVER);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK(a.rc == -EDEADLK || a.rc == -EPERM); /* it was late */
        sn_runtime_destroy(a.rt);
    }
}

TEST(the_status_of_a_program_that_ends_so_is_221)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(sn_run(main_waits, NULL));
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 221);
}

/* ---- what each task waits at --- */

static struct {
    sn_mutex mutex, other;
    sn_rwlock rw;
    sn_sem sem;
    sn_cond cond;
    sn_event event;
    sn_wait_group group;
    sn_latch latch;
    sn_barrier barrier;
    sn_once once;
    sn_chan *empty, *full;
    sn_broadcast *air;
    sn_watch *watch;
} at;

#define WAITER(name, call)     \
    static int name(void *arg) \
    {                          \
        int v = 0;             \
        uint64_t version = 1;  \
        (void)arg, (void)v;    \
        (void)version;         \
        int rc = (call);       \
        return rc;             \
    }

static int wait_at_cond(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_mutex_lock(&at.other, SN_FOREVER), 0);
    return sn_cond_wait(&at.cond, &at.other, SN_FOREVER);
}

static int wait_at_broadcast(void *arg)
{
    (void)arg;
    int v;
    sn_subscription sub;
    CHECK_EQ(sn_broadcast_subscribe(at.air, &sub), 0);
    return sn_broadcast_recv(&sub, &v, SN_FOREVER);
}

static int wait_in_select(void *arg)
{
    (void)arg;
    int v = 0;
    sn_case cases[] = {sn_case_recv(at.empty, &v), sn_case_send(at.full, &v)};
    return sn_select(cases, 2, 0, SN_FOREVER);
}

WAITER(wait_at_mutex, sn_mutex_lock(&at.mutex, SN_FOREVER))
WAITER(wait_to_read, sn_rwlock_lock_shared(&at.rw, SN_FOREVER))
WAITER(wait_at_sem, sn_sem_acquire(&at.sem, 1, SN_FOREVER))
WAITER(wait_at_event, sn_event_wait(&at.event, SN_FOREVER))
WAITER(wait_at_group, sn_wait_group_wait(&at.group, SN_FOREVER))
WAITER(wait_at_latch, sn_latch_wait(&at.latch, SN_FOREVER))
WAITER(wait_at_barrier, sn_barrier_wait(&at.barrier, SN_FOREVER))
WAITER(wait_at_once, sn_once_begin(&at.once, SN_FOREVER))
WAITER(wait_to_recv, sn_chan_recv(at.empty, &v, SN_FOREVER))
WAITER(wait_to_send, sn_chan_send(at.full, &v, SN_FOREVER))
WAITER(wait_at_watch, sn_watch_recv(at.watch, &v, &version, SN_FOREVER))

static const struct {
    sn_task_fn *fn;
    const char *name, *says;
} waiters[] = {
    {wait_at_mutex, "w-mutex", "waits at mutex 0x"},
    {wait_to_read, "w-rwlock", "waits at rwlock 0x"},
    {wait_at_sem, "w-sem", "waits at semaphore 0x"},
    {wait_at_cond, "w-cond", "waits at condition 0x"},
    {wait_at_event, "w-event", "waits at event 0x"},
    {wait_at_group, "w-group", "waits at wait group 0x"},
    {wait_at_latch, "w-latch", "waits at latch 0x"},
    {wait_at_barrier, "w-barrier", "waits at barrier 0x"},
    {wait_at_once, "w-once", "waits at once 0x"},
    {wait_to_recv, "w-recv", "waits to receive from channel 0x"},
    {wait_to_send, "w-send", "waits to send to channel 0x"},
    {wait_at_broadcast, "w-air", "waits at broadcast 0x"},
    {wait_at_watch, "w-watch", "waits at watch 0x"},
    {wait_in_select, "w-select", "selects: waits to receive from channel 0x"},
};

enum { WAITERS = sizeof(waiters) / sizeof(waiters[0]) };

typedef struct await_sem {
    sn_coro coro;
    sn_sync_state state;
    int rc;
} await_sem;

SN_CORO(await_sem, self)
{
    SN_BEGIN(self);
    SN_AWAIT_INTO(self->rc, sn_sem_acquire_op(&self->state, &at.sem, 1));
    SN_RETURN(self->rc);
    SN_END();
}

typedef struct await_recv {
    sn_coro coro;
    sn_chan_op op;
    int v;
    int rc;
} await_recv;

SN_CORO(await_recv, self)
{
    SN_BEGIN(self);
    SN_AWAIT_INTO(self->rc, sn_chan_recv_op(&self->op, at.empty, &self->v));
    SN_RETURN(self->rc);
    SN_END();
}

typedef struct await_watch {
    sn_coro coro;
    sn_news_op op;
    int v;
    uint64_t version;
    int rc;
} await_watch;

SN_CORO(await_watch, self)
{
    SN_BEGIN(self);
    SN_AWAIT_INTO(self->rc, sn_watch_recv_op(&self->op, at.watch, &self->v, &self->version));
    SN_RETURN(self->rc);
    SN_END();
}

typedef struct await_select {
    sn_coro coro;
    sn_select_state op;
    sn_case cases[2];
    int v;
    int rc;
} await_select;

SN_CORO(await_select, self)
{
    SN_BEGIN(self);
    self->cases[0] = sn_case_send(at.full, &self->v);
    self->cases[1] = sn_case_recv(at.empty, &self->v);
    SN_AWAIT_INTO(self->rc, sn_select_op(&self->op, self->cases, 2, 0));
    SN_RETURN(self->rc);
    SN_END();
}

static void prepare_places(void)
{
    at.mutex = at.other = (sn_mutex)SN_MUTEX_INIT;
    at.rw = (sn_rwlock)SN_RWLOCK_INIT;
    at.sem = (sn_sem)SN_SEM_INIT(0);
    at.cond = (sn_cond)SN_COND_INIT;
    at.event = (sn_event)SN_EVENT_INIT;
    at.group = (sn_wait_group)SN_WAIT_GROUP_INIT;
    at.latch = (sn_latch)SN_LATCH_INIT(1);
    at.barrier = (sn_barrier)SN_BARRIER_INIT(2);
    at.once = (sn_once)SN_ONCE_INIT;
    CHECK_EQ(sn_chan_create(&at.empty, sizeof(int), 1, NULL), 0);
    CHECK_EQ(sn_chan_create(&at.full, sizeof(int), 1, NULL), 0);
    CHECK_EQ(sn_chan_send(at.full, &(int){1}, SN_NOWAIT), 0);
    CHECK_EQ(sn_broadcast_create(&at.air, sizeof(int), 1), 0);
    CHECK_EQ(sn_watch_create(&at.watch, sizeof(int), &(int){0}), 0);
    CHECK_EQ(sn_wait_group_add(&at.group, 1), 0);
}

static int everybody_waits(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_mutex_lock(&at.mutex, SN_NOWAIT), 0);
    CHECK_EQ(sn_rwlock_lock(&at.rw, SN_NOWAIT), 0);
    CHECK_EQ(sn_once_begin(&at.once, SN_NOWAIT), 1);
    for (int i = 0; i < WAITERS; i++)
        CHECK_EQ(sn_spawn_detached(waiters[i].fn, NULL, .name = waiters[i].name), 0);
    CHECK_EQ(sn_spawn_coro_detached(await_sem, &(await_sem){.rc = 0}, .name = "c-sem"), 0);
    CHECK_EQ(sn_spawn_coro_detached(await_recv, &(await_recv){.v = 0}, .name = "c-recv"), 0);
    await_watch watches = {.version = 1};
    CHECK_EQ(sn_spawn_coro_detached(await_watch, &watches, .name = "c-watch"), 0);
    CHECK_EQ(sn_spawn_coro_detached(await_select, &(await_select){.v = 0}, .name = "c-select"), 0);
    return wait_for_nothing(NULL);
}

/* The line about the task of that name. */
static void check_line(const char *text, const char *name, const char *says)
{
    char key[64];
    snprintf(key, sizeof(key), "\"%s\", spawned at ", name);
    CHECK_STR_HAS(text, key);
    char line[1024];
    snprintf(line, sizeof(line), "%s", strstr(text, key));
    CHECK(strchr(line, '\n') != NULL);
    *strchr(line, '\n') = '\0';
    CHECK_STR_HAS(line, says);
}

TEST(the_report_says_what_each_task_waits_at)
{
    prepare_places();
    struct said said = listen_to(run_it, &(struct run){&kinds_of_runtime[4], everybody_waits});
    CHECK_EQ(said.result, -EDEADLK);
    CHECK_STR_HAS(said.text, "all tasks are asleep (19)");
    for (int i = 0; i < WAITERS; i++)
        check_line(said.text, waiters[i].name, waiters[i].says);
    check_line(said.text, "w-mutex", ", held by task 1 \"main\"");
    check_line(said.text, "w-rwlock", ", held by task 1 \"main\"");
    check_line(said.text, "w-once", ", held by task 1 \"main\"");
    check_line(said.text, "w-select", "; or waits to send to channel 0x");
    check_line(said.text, "c-sem", "waits at semaphore 0x");
    check_line(said.text, "c-recv", "waits to receive from channel 0x");
    check_line(said.text, "c-watch", "waits at watch 0x");
    check_line(said.text, "c-select", "selects: waits to send to channel 0x");
    free(said.text);
    CHECK_EQ(sn_chan_destroy(at.empty) | sn_chan_destroy(at.full), 0);
    CHECK_EQ(sn_broadcast_destroy(at.air) | sn_watch_destroy(at.watch), 0);
}

/* ---- who can still be woken --- */

static int set_later(void *arg)
{
    CHECK_EQ(sn_sleep(SN_MS(300)), 0);
    return sn_event_set(arg);
}

static int wait_for_sleeper(void *arg)
{
    (void)arg;
    sn_task *t = sn_spawn(set_later, &never);
    CHECK_EQ(sn_event_wait(&never, SN_FOREVER), 0);
    return sn_join(t, NULL);
}

static int wait_with_deadline(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_event_wait(&never, sn_after(SN_MS(300))), -ETIMEDOUT);
    return 0;
}

/* A thread that has not been seen by the runtime. */
static void *set_from_thread(void *arg)
{
    usleep(400 * 1000);
    CHECK_EQ(sn_event_set(arg), 0);
    return NULL;
}

static int wait_for_thread(void *arg)
{
    (void)arg;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, set_from_thread, &never), 0);
    int rc = sn_event_wait(&never, SN_FOREVER);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return rc;
}

static int wait_for_pipe(void *arg)
{
    (void)arg;
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        usleep(400 * 1000);
        _exit(write(fds[1], "x", 1) != 1);
    }
    int rc = sn_wait_fd(fds[0], SN_READABLE, SN_FOREVER);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK_EQ(close(fds[0]) | close(fds[1]), 0);
    return rc > 0 ? 0 : rc;
}

static void ignore_it(int number)
{
    (void)number;
}

static int other_runtime(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_sleep(SN_MS(300)), 0);
    return sn_event_set(&never);
}

static int wait_for_other_runtime(void *arg)
{
    (void)arg;
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 1}), 0);
    CHECK_EQ(sn_detach(sn_runtime_spawn(rt, other_runtime, NULL)), 0);
    int rc = sn_event_wait(&never, SN_FOREVER);
    (void)rt; /* destroyed by who may: see below */
    return rc;
}

static sn_task_fn *const hopeful[] = {wait_for_sleeper, wait_with_deadline, wait_for_thread,
                                      wait_for_pipe};

TEST(a_run_goes_on_while_somebody_may_wake_a_task, .limit_s = 120)
{
    for (size_t i = 0; i < sizeof(hopeful) / sizeof(hopeful[0]); i++) {
        struct said said = listen_to(run_it, &(struct run){.fn = hopeful[i]});
        CHECK_EQ(said.result, 0);
        CHECK_STR_EQ(said.text, "");
        free(said.text);
        said = listen_to(run_it, &(struct run){&kinds_of_runtime[0], hopeful[i]});
        CHECK_EQ(said.result, 0);
        CHECK_STR_EQ(said.text, "");
        free(said.text);
    }
}

/* A handler might wake somebody. That the child still waits after a while is no proof, but a report
 * would have ended it long before. */
TEST(a_run_goes_on_while_there_is_a_handler_for_signals)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(signal(SIGUSR1, ignore_it) != SIG_ERR);
        _exit(sn_run(main_waits, NULL));
    }
    usleep(600 * 1000);
    CHECK_EQ(waitpid(child, NULL, WNOHANG), 0);
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

TEST(a_run_goes_on_while_there_is_another_runtime, .leaks_memory = true, .leaks_fds = true)
{
    struct said said = listen_to(run_it, &(struct run){.fn = wait_for_other_runtime});
    CHECK_EQ(said.result, 0);
    CHECK_STR_EQ(said.text, "");
    free(said.text);
}

/* ---- policies --- */

static void *let_go_later(void *arg)
{
    usleep(700 * 1000);
    return set_from_thread(arg);
}

static sn_runtime *watched;

/* The thread comes when the report is written, so that it is alone until then. */
static int report_and_go_on(void *arg)
{
    const sn_runtime_options *opts = arg;
    int rc = -1;
    never = (sn_event)SN_EVENT_INIT;
    CHECK_EQ(sn_runtime_create(&watched, opts), 0);
    CHECK_EQ(sn_detach(sn_runtime_spawn(watched, wait_for_nothing, NULL, .name = "sleeper")), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, let_go_later, &never), 0);
    rc = sn_runtime_shutdown(watched, SN_FOREVER);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    sn_runtime_destroy(watched);
    return rc;
}

TEST(a_runtime_that_was_made_by_hand_says_nothing)
{
    struct said said = listen_to(report_and_go_on, &(sn_runtime_options){.workers = 2});
    CHECK_EQ(said.result, 0);
    CHECK_STR_EQ(said.text, "");
    free(said.text);
}

static int with_the_word(void *arg)
{
    CHECK_EQ(setenv("SINEW_DEADLOCK", arg, 1), 0);
    sn_runtime *rt = NULL;
    int rc = sn_runtime_create(&rt, NULL);
    if (rc == 0)
        sn_runtime_destroy(rt);
    CHECK_EQ(unsetenv("SINEW_DEADLOCK"), 0);
    return rc;
}

TEST(the_environment_has_three_words_for_it)
{
    static const char *const wrong[] = {"", "on", "END", "report "};
    CHECK_EQ(with_the_word("off"), 0);
    CHECK_EQ(with_the_word("report"), 0);
    CHECK_EQ(with_the_word("end"), 0);
    for (int i = 0; i < 4; i++) {
        struct said said = listen_to(with_the_word, (void *)(uintptr_t)wrong[i]);
        CHECK_EQ(said.result, -EINVAL);
        char sentence[128];
        snprintf(sentence, sizeof(sentence),
                 "sinew: SINEW_DEADLOCK is \"%s\", but must be off, report or end\n", wrong[i]);
        CHECK_STR_EQ(said.text, sentence);
        free(said.text);
    }
    sn_runtime *rt = NULL;
    sn_runtime_options odd = {.deadlock = (sn_deadlock_policy)9};
    CHECK_EQ(sn_runtime_create(&rt, &odd), -EINVAL);
}

/* Only reports: the program ends by other means. */
TEST(a_report_alone_ends_nothing)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/report", temp_dir());
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK_EQ(setenv("SINEW_DEADLOCK", "report", 1), 0);
        CHECK(freopen(path, "w", stderr) != NULL);
        setvbuf(stderr, NULL, _IONBF, 0);
        _exit(sn_run(main_waits, NULL));
    }
    for (;;) { /* the time limit of the test is the only one */
        usleep(10000);
        FILE *f = fopen(path, "r");
        char text[4096] = "";
        size_t got = f != NULL ? fread(text, 1, sizeof(text) - 1, f) : 0;
        if (f != NULL)
            fclose(f);
        if (got > 0 && strstr(text, "waits at event") != NULL)
            break;
    }
    CHECK_EQ(waitpid(child, NULL, WNOHANG), 0);
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

static int wait_again(void *arg)
{
    (void)arg;
    return sn_event_wait(&never, SN_FOREVER);
}

TEST(a_runtime_may_be_used_after_its_run_was_ended_and_be_ended_again)
{
    for (int i = 0; i < 2; i++) {
        sn_runtime *rt = NULL;
        sn_runtime_options opts = {.single_threaded = i == 0, .deadlock = SN_DEADLOCK_END};
        never = (sn_event)SN_EVENT_INIT;
        CHECK_EQ(sn_runtime_create(&rt, &opts), 0);
        CHECK_EQ(sn_runtime_block_on(rt, wait_again, NULL), -EDEADLK);
        CHECK_EQ(sn_runtime_block_on(rt, wait_again, NULL), -EDEADLK);
        CHECK_EQ(sn_event_set(&never), 0); /* both go on, and so does what follows */
        CHECK_EQ(sn_runtime_block_on(rt, wait_again, NULL), 0);
        CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
        sn_runtime_destroy(rt);
    }
}
