/* SPDX-License-Identifier: MIT */
/* The runtime (R2, R3, R24, R42, R150, R151): its options, its life, misuse, several at once. */
#include "plat/clock.h"
#include "stress/gate.h"
#include "unit/task/with_runtime.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int give_back(void *arg)
{
    return (int)(intptr_t)arg;
}

TEST(sn_run_runs_a_function_and_returns_its_result)
{
    CHECK_EQ(sn_run(give_back, (void *)5), 5);
    CHECK_EQ(sn_run(give_back, (void *)-5), -5);
}

static int panic_at_once(void *arg)
{
    (void)arg;
    sn_panic("at once");
}

TEST(sn_run_reports_a_panic_of_its_function)
{
    CHECK_EQ(sn_run(panic_at_once, NULL), -ECONNABORTED);
}

TEST(a_runtime_can_be_used_many_times)
{
    for (int level = 1; level <= 2; level++) {
        sn_runtime *rt;
        CHECK_EQ(sn_runtime_create(
                     &rt, &(sn_runtime_options){.single_threaded = level == 1, .workers = 2}),
                 0);
        for (int i = 0; i < 100; i++)
            CHECK_EQ(sn_runtime_block_on(rt, give_back, (void *)(intptr_t)i), i);
        sn_runtime_destroy(rt);
    }
}

TEST(destroying_null_is_fine)
{
    sn_runtime_destroy(NULL);
}

#ifdef SINEW_DEBUG
static int nest(void *arg)
{
    (void)arg;
    return sn_run(give_back, NULL);
}

FAIL_TEST(sn_run_inside_a_runtime_is_an_error, "was called inside a runtime")
{
    CHECK_EQ(sn_run(nest, NULL), 0);
}
#else
static int nest(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_run(give_back, NULL), -EDEADLK);
    CHECK_EQ(sn_runtime_block_on(arg, give_back, NULL), -EDEADLK);
    CHECK_EQ(sn_runtime_shutdown(arg, SN_NOWAIT), -EDEADLK);
    return 0;
}

TEST(sn_run_inside_a_runtime_is_an_error)
{
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, NULL), 0);
    CHECK_EQ(sn_runtime_block_on(rt, nest, rt), 0);
    sn_runtime_destroy(rt);
}
#endif

TEST(block_on_after_the_shutdown_is_refused)
{
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, NULL), 0);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    CHECK_EQ(sn_runtime_block_on(rt, give_back, NULL), -EPERM);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    sn_runtime_destroy(rt);
}

/* ---- options and environment (R150) ------------------------------------------------------ */

TEST(options_out_of_range_are_refused)
{
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 100000}), -EINVAL);
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.stack_bytes = 1}), -EINVAL);
    CHECK(rt == NULL);
}

static void check_bad_environment(const char *name, const char *value)
{
    sn_runtime *rt = NULL;
    CHECK_EQ(setenv(name, value, 1), 0);
    CHECK_EQ(sn_runtime_create(&rt, NULL), -EINVAL);
    CHECK(rt == NULL);
    CHECK_EQ(unsetenv(name), 0);
}

TEST(a_bad_environment_variable_is_an_error)
{
    static const char *const bad[] = {"", "0", "-1", "two", "3x", " 4 ", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check_bad_environment("SINEW_WORKERS", bad[i]);
        check_bad_environment("SINEW_STACK_BYTES", bad[i]);
    }
}

FAIL_TEST(the_error_names_the_variable_and_the_value,
          "sinew: SINEW_WORKERS is \"many\", but must be a number from 1 to 1024\n")
{
    sn_runtime *rt = NULL;
    setenv("SINEW_WORKERS", "many", 1);
    exit(sn_runtime_create(&rt, NULL) == -EINVAL ? 1 : 0);
}

/* `arg`: how many there should be, or NULL. A thread that was joined may be listed for a moment
 * longer, so others than that many are counted again. */
static int count_threads(void *arg)
{
    const int *expected = arg;
    int threads = 0;
    for (int i = 0; i < 200; i++) {
        struct command c = run_command("ls /proc/%d/task | wc -l", (int)getpid());
        threads = atoi(c.output);
        command_finish(&c);
        if (expected == NULL || threads == *expected)
            break;
        CHECK_EQ(sn_sleep(SN_MS(10)), 0);
    }
    return threads;
}

static void check_threads(const sn_runtime_options *opts, int expected)
{
    CHECK_EQ(run_with(opts, count_threads, &expected), expected);
}

TEST(the_environment_sets_the_number_of_workers_and_the_program_overrides_it)
{
    int one = run_with(&(sn_runtime_options){.workers = 1}, count_threads, NULL);
    int before = one - 1; /* a sanitizer may have a thread of its own by now */
    CHECK_EQ(setenv("SINEW_WORKERS", "3", 1), 0);
    CHECK_EQ(sn_run(count_threads, &(int){before + 3}), before + 3);
    check_threads(&(sn_runtime_options){.workers = 5}, before + 5);
    check_threads(&(sn_runtime_options){.single_threaded = true}, before);
}

#ifdef SINEW_HARNESS_WRAP
/* Every allocation fails once: an error each time, and nothing is left behind (the harness
 * looks). */
TEST(a_runtime_that_gets_no_memory_is_refused_and_leaks_nothing)
{
    const sn_runtime_options opts = {.workers = 2, .measure_stacks = true};
    int failures = 0;
    for (uint64_t k = 1;; k++) {
        sn_runtime *rt = NULL;
        uint64_t before = alloc_count();
        alloc_fail_at(k);
        int rc = sn_runtime_create(&rt, &opts);
        bool reached = alloc_count() - before >= k;
        alloc_fail_at(0);
        if (!reached) {
            CHECK_EQ(rc, 0);
            sn_runtime_destroy(rt);
            break;
        }
        if (rc == 0) /* a driver that got no memory: there are others */
            sn_runtime_destroy(rt);
        else
            CHECK_EQ(rc, -ENOMEM);
        failures += rc < 0;
    }
    CHECK_GE(failures, 2);
}
/* The address space ends after some threads: those that run are stopped, the rest is refused. */
TEST(a_runtime_whose_threads_are_refused_is_an_error_and_leaves_nothing)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 1}, give_back, NULL), 0);
    CHECK_EQ(count_threads(&(int){1}), 1);
    char *statm = read_file("/proc/self/statm");
    rlim_t used = (rlim_t)atol(statm) * 4096;
    free(statm);
    struct rlimit limit = {.rlim_cur = used + (64 << 20), .rlim_max = RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    sn_runtime *rt = NULL;
    int rc = sn_runtime_create(&rt, &(sn_runtime_options){.workers = 64});
    limit.rlim_cur = RLIM_INFINITY;
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    CHECK(rc == -EAGAIN || rc == -ENOMEM);
    CHECK(rt == NULL);
    CHECK_EQ(count_threads(&(int){1}), 1);
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 2}, give_back, (void *)2), 2);
}

static int spawn_without_address_space(void *arg)
{
    (void)arg;
    char *statm = read_file("/proc/self/statm");
    struct rlimit limit = {.rlim_cur = (rlim_t)atol(statm) * 4096 + (8 << 20),
                           .rlim_max = RLIM_INFINITY};
    free(statm);
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    /* A fiber gets its stack when it begins: that is where it ends, with the reason. */
    int rc = sn_join(sn_spawn(give_back, (void *)1, .stack_bytes = 512 << 20), NULL);
    limit.rlim_cur = RLIM_INFINITY;
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    CHECK_EQ(rc, -ENOMEM);
    return sn_join(sn_spawn(give_back, (void *)1, .stack_bytes = 512 << 20), NULL);
}

TEST(a_fiber_whose_stack_cannot_be_had_ends_with_enomem)
{
    CHECK_EQ(
        run_with(&(sn_runtime_options){.single_threaded = true}, spawn_without_address_space, NULL),
        1);
}
#endif

/* ---- several runtimes, threads outside (R5, R151) ---------------------------------------- */

static void *run_one(void *arg)
{
    for (int i = 0; i < 20; i++)
        CHECK_EQ(run_with(arg, give_back, (void *)3), 3);
    return NULL;
}

TEST(several_runtimes_live_in_one_process_at_once, .limit_s = 60)
{
    static sn_runtime_options options[4] = {{.workers = 2},
                                            {.single_threaded = true},
                                            {.workers = 3, .no_steal = true},
                                            {.workers = 1}};
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, run_one, &options[i]), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
}

static atomic_uintptr_t posted;

static int slow(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++)
        sn_yield();
    return 77;
}

static int post_a_handle(void *arg)
{
    (void)arg;
    atomic_store(&posted, (uintptr_t)sn_spawn(slow, NULL));
    while (atomic_load(&posted) != 0)
        sn_yield();
    return 0;
}

static void *join_outside(void *arg)
{
    uintptr_t handle;
    while ((handle = atomic_load(&posted)) == 0)
        ;
    *(int *)arg = sn_join((sn_task *)handle, NULL);
    atomic_store(&posted, 0);
    return NULL;
}

TEST(a_plain_thread_joins_a_task_by_blocking)
{
    int result = 0;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, join_outside, &result), 0);
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 2}, post_a_handle, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(result, 77);
}

/* ---- driven by a foreign loop (R45) ------------------------------------------------------- */

static bool is_readable(int fd, int wait_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, wait_ms) == 1;
}

static int three_turns(void *arg)
{
    for (int i = 0; i < 3; i++) {
        ++*(int *)arg;
        sn_yield();
    }
    return 9;
}

TEST(a_turn_runs_what_can_run_and_comes_back)
{
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true}), 0);
    CHECK_EQ(sn_runtime_turn(rt, SN_FOREVER), 0);
    int steps = 0;
    sn_task *t = sn_runtime_spawn(rt, three_turns, &steps, .name = "stepper");
    CHECK(t != NULL);
    CHECK_EQ(sn_runtime_turn(rt, SN_NOWAIT), 1); /* no time: one turn */
    CHECK_EQ(steps, 1);
    CHECK_EQ(sn_runtime_turn(rt, SN_FOREVER), 0);
    CHECK_EQ(steps, 3);
    CHECK_EQ(sn_join(t, NULL), 9);
    sn_runtime_destroy(rt);
}

static struct gate gate;

static int pass_gate(void *arg)
{
    (void)arg;
    gate_pass(&gate);
    return 4;
}

static void *open_gate(void *arg)
{
    (void)arg;
    gate_let(&gate, SIZE_MAX);
    return NULL;
}

TEST(a_foreign_loop_waits_for_the_descriptor_and_drives_the_runtime)
{
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true}), 0);
    int fd = sn_runtime_fd(rt);
    CHECK_GE(fd, 0);
    CHECK_EQ(sn_runtime_fd(rt), fd);
    CHECK_EQ(sn_runtime_turn(rt, SN_FOREVER), 0);
    CHECK(!is_readable(fd, 0));

    gate_init(&gate);
    sn_task *t = sn_runtime_spawn(rt, pass_gate, NULL);
    CHECK(is_readable(fd, 0));
    CHECK_EQ(sn_runtime_turn(rt, SN_FOREVER), 1); /* it waits at the gate */
    CHECK(!is_readable(fd, 0));

    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, open_gate, NULL), 0);
    CHECK(is_readable(fd, 10000)); /* the wake from the other thread */
    while (sn_runtime_turn(rt, SN_FOREVER) > 0)
        CHECK(is_readable(fd, 10000));
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(sn_join(t, NULL), 4);
    sn_runtime_destroy(rt);
}

TEST(a_turn_that_ran_out_of_time_leaves_the_descriptor_readable)
{
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true}), 0);
    int fd = sn_runtime_fd(rt);
    int steps = 0;
    CHECK(sn_runtime_spawn(rt, three_turns, &steps, .detached = true) == NULL);
    CHECK_EQ(sn_runtime_turn(rt, SN_NOWAIT), 1);
    CHECK(is_readable(fd, 0));
    CHECK_EQ(sn_runtime_turn(rt, SN_FOREVER), 0);
    CHECK_EQ(steps, 3);
    sn_runtime_destroy(rt);
}

TEST(a_runtime_with_threads_of_its_own_is_not_driven)
{
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 1}), 0);
    CHECK_EQ(sn_runtime_turn(rt, SN_NOWAIT), -EINVAL);
    CHECK_EQ(sn_runtime_fd(rt), -EINVAL);
    CHECK_EQ(sn_join(sn_runtime_spawn(rt, give_back, (void *)6), NULL), 6);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    int error = 0;
    CHECK(sn_runtime_spawn(rt, give_back, NULL, .error = &error) == NULL);
    CHECK_EQ(error, -EPERM);
    sn_runtime_destroy(rt);
}

/* ---- seeded (R190) ------------------------------------------------------------------------ */

static char order[64];
static int order_used;

static int note_turns(void *arg)
{
    for (int i = 0; i < 4; i++) {
        order[order_used++] = (char)(intptr_t)arg;
        sn_yield();
    }
    return 0;
}

static int run_five(void *arg)
{
    (void)arg;
    sn_task *t[5];
    for (intptr_t i = 0; i < 5; i++)
        t[i] = sn_spawn(note_turns, (void *)('a' + i), .priority = (sn_priority)(i % 4));
    for (int i = 0; i < 5; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    return 0;
}

static const char *order_of(uint64_t seed)
{
    memset(order, 0, sizeof(order));
    order_used = 0;
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true, .seed = seed}, run_five, NULL),
             0);
    CHECK_EQ(order_used, 20);
    return order;
}

TEST(the_same_seed_gives_the_same_order_and_others_give_others)
{
    char first[64];
    int different = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        strcpy(first, order_of(seed));
        CHECK_STR_EQ(order_of(seed), first);
        different += strcmp(first, order_of(seed + 1000)) != 0;
    }
    CHECK_GE(different, 49);
    CHECK_EQ(setenv("SINEW_SEED", "7", 1), 0);
    strcpy(first, order_of(7));
    CHECK_STR_EQ(order_of(0), first);
}

TEST(a_seed_without_a_single_thread_is_refused)
{
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.seed = 1, .workers = 2}), -EINVAL);
    CHECK(rt == NULL);
}

/* ---- idle (R43) --------------------------------------------------------------------------- */

/* How often the workers, which are named "sinew", went to sleep or were put aside. */
static long switches_of_workers(void)
{
    struct command c =
        run_command("for t in /proc/%d/task/*; do "
                    "if [ \"$(cat $t/comm)\" = sinew ]; then cat $t/status; fi; done | "
                    "awk '/voluntary_ctxt_switches/ { n += $2 } END { print n }'",
                    (int)getpid());
    long n = atol(c.output);
    command_finish(&c);
    return n;
}

static void mark(const char *text)
{
    CHECK_EQ(write(STDOUT_FILENO, text, strlen(text)), strlen(text));
}

/* There is a time of `us` in which no worker wakes up. They may need some such times to come to
 * rest, where others want the processors too; one that wakes up again and again never has one. */
static void check_rest(unsigned us)
{
    enum { TIMES = 8 };
    for (int i = 0; i < TIMES; i++) {
        long before = switches_of_workers();
        CHECK_GT(before, 0);
        mark("idle from here\n");
        usleep(us);
        mark("idle to here\n");
        if (switches_of_workers() == before)
            return;
    }
    FAIL("workers that have nothing to do wake up");
}

/* Workers that have nothing to do sleep: no polling, no timers, not one wake-up. */
TEST(an_idle_runtime_does_not_wake_up)
{
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 4}), 0);
    CHECK_EQ(sn_runtime_block_on(rt, slow, NULL), 77);
    usleep(200000); /* searchers give up after some microseconds */
    check_rest(500000);
    sn_runtime_destroy(rt);
}

static struct gate idle_gate;

static int pass_idle_gate(void *arg)
{
    (void)arg;
    gate_pass(&idle_gate);
    return 1;
}

static int join_one(void *arg)
{
    return sn_join(arg, NULL);
}

typedef struct awaiter {
    sn_coro coro;
    sn_task *other;
    sn_join_state join;
    int rc;
} awaiter;

SN_CORO(awaiter, self)
{
    SN_BEGIN(self);
    SN_AWAIT_INTO(self->rc, sn_join_op(&self->join, self->other, NULL));
    SN_RETURN(self->rc);
    SN_END();
}

/* At a gate, in a join, in an awaited join. */
static int wait_in_all_ways(void *arg)
{
    enum { EACH = 100 };
    sn_task *t[EACH];
    int sum = 0;
    for (int i = 0; i < EACH; i++) {
        awaiter frame = {.other = sn_spawn(join_one, sn_spawn(pass_idle_gate, NULL))};
        t[i] = sn_spawn_coro(awaiter, &frame);
    }
    for (int i = 0; i < EACH; i++)
        sum += sn_join(t[i], NULL);
    *(int *)arg = sum;
    return sum;
}

/* 301 tasks wait for two seconds, or SINEW_IDLE_S, and nobody wakes up. The next test looks at this
 * one, between the last two marks, from outside. */
TEST(an_idle_runtime_whose_tasks_wait_does_not_wake_up, .limit_s = 60)
{
    sn_runtime *rt;
    int sum = 0;
    gate_init(&idle_gate);
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
    sn_task *t = sn_runtime_spawn(rt, wait_in_all_ways, &sum);
    while (gate_waiting(&idle_gate) < 100)
        usleep(1000);
    usleep(300000);
    const char *idle_s = getenv("SINEW_IDLE_S");
    check_rest(1000000 * (idle_s != NULL ? (unsigned)atoi(idle_s) : 2));
    gate_let(&idle_gate, SIZE_MAX);
    CHECK_EQ(sn_join(t, NULL), 100);
    sn_runtime_destroy(rt);
    CHECK_EQ(sum, 100);
}

#ifdef SINEW_HARNESS_WRAP /* a sanitizer has threads of its own, and does not like to be traced */
TEST(an_idle_runtime_makes_no_system_call, .limit_s = 60)
{
    require_tool("strace", "test");
    struct command c = run_command("strace -f -qq -o %s/trace /proc/%d/exe --no-fork "
                                   "an_idle_runtime_whose_tasks_wait_does_not_wake_up 2>&1",
                                   temp_dir(), (int)getpid());
    if (strstr(c.output, "ptrace") != NULL || strstr(c.output, "PTRACE") != NULL)
        SKIP("this machine forbids tracing");
    CHECK_EQ(c.status, 0);
    command_finish(&c);
    /* Between the marks: the sleep of the thread that made them, and nothing else. */
    c = run_command("awk '/write.*idle from/ { on = 1; calls = \"\"; next } "
                    "/write.*idle to/ { on = 0; seen = \"nothing\" } "
                    "on && !/nanosleep/ { calls = calls $0 } "
                    "END { print calls seen }' %s/trace",
                    temp_dir());
    CHECK_STR_EQ(c.output, "nothing\n");
    command_finish(&c);
}
#endif

static int read_one(void *arg)
{
    int fd = *(int *)arg;
    char byte;
    CHECK_EQ(sn_wait_fd(fd, SN_READABLE, SN_FOREVER), SN_READABLE);
    CHECK_EQ(read(fd, &byte, 1), 1);
    return 0;
}

/* The same while a task waits for a byte: whoever watches for busy workers stops soon (0.1 s). */
static void wait_idly_with(sn_io_driver io)
{
    int ends[2];
    sn_runtime *rt;
    int rc = sn_runtime_create(&rt, &(sn_runtime_options){.workers = 4, .io = io});
    if (rc < 0)
        SKIP("this system refuses the driver");
    CHECK_EQ(pipe(ends), 0);
    sn_task *reader = sn_runtime_spawn(rt, read_one, &ends[0]);
    usleep(400000);
    check_rest(1000000);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    CHECK_EQ(sn_join(reader, NULL), 0);
    sn_runtime_destroy(rt);
    CHECK_EQ(close(ends[0]) | close(ends[1]), 0);
}

TEST(an_idle_runtime_in_which_a_task_waits_for_a_byte_does_not_wake_up_uring)
{
    wait_idly_with(SN_IO_URING);
}

TEST(an_idle_runtime_in_which_a_task_waits_for_a_byte_does_not_wake_up_epoll)
{
    wait_idly_with(SN_IO_EPOLL);
}

TEST(an_idle_runtime_in_which_a_task_waits_for_a_byte_does_not_wake_up_poll)
{
    wait_idly_with(SN_IO_POLL);
}

/* ---- what is left over (R21, R151) -------------------------------------------------------- */

static atomic_bool release;

static int hold_on(void *arg)
{
    (void)arg;
    while (!atomic_load(&release))
        sn_yield();
    return 0;
}

static sn_task *forgotten;

static int forget_handles(void *arg)
{
    (void)arg;
    forgotten = sn_spawn(give_back, NULL, .name = "orphan");
    sn_yield();
    return 0;
}

FAIL_TEST(a_handle_that_nobody_used_is_named_at_shutdown,
          "\"orphan\", spawned at tests/unit/runtime/test_runtime.c:")
{
    CHECK_EQ(sn_run(forget_handles, NULL), 0);
    exit(1);
}

static sn_task *unused[2];
static int unused_line;

static int use_two_and_keep_two(void *arg)
{
    (void)arg;
    unused_line = __LINE__ + 1;
    unused[0] = sn_spawn(give_back, NULL, .name = "kept");
    unused[1] = sn_spawn(give_back, NULL);
    CHECK_EQ(sn_detach(sn_spawn(give_back, NULL, .name = "let go")), 0);
    return sn_join(sn_spawn(give_back, NULL, .name = "joined"), NULL);
}

/* What `fn`, run in a runtime, leaves on standard error; the caller frees it. */
static char *complaints_of(sn_task_fn *fn)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/stderr", temp_dir());
    int before = dup(STDERR_FILENO);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(before >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    int rc = sn_run(fn, NULL);
    CHECK(dup2(before, STDERR_FILENO) >= 0);
    CHECK_EQ(close(before) | close(file), 0);
    CHECK_EQ(rc, 0);
    return read_file(path);
}

TEST(exactly_the_handles_that_nobody_used_are_named_with_the_lines_of_their_spawns)
{
    char *text = complaints_of(use_two_and_keep_two);
    for (int i = 0; i < 2; i++) {
        char place[128];
        snprintf(place, sizeof(place), "spawned at %s:%d", __FILE__, unused_line + i);
        CHECK_STR_HAS(text, place);
    }
    CHECK_STR_HAS(text, "\"kept\"");
    CHECK(strstr(text, "\"let go\"") == NULL && strstr(text, "\"joined\"") == NULL);
    free(text);
}

/* Its task has ended and been listed; its record may serve somebody else by now. */
TEST(a_handle_that_outlives_its_runtime_is_an_error)
{
    CHECK_EQ(sn_run(forget_handles, NULL), 0);
    sn_task *volatile stale = forgotten; /* compilers would object to its second use */
    CHECK_EQ(sn_join(stale, NULL), -ESRCH);
    CHECK_EQ(sn_detach(stale), -ESRCH);
    CHECK_EQ(sn_cancel(stale, NULL), -ESRCH);
}

static int leave_one_running(void *arg)
{
    (void)arg;
    return sn_detach(sn_spawn(hold_on, NULL, .name = "stubborn"));
}

FAIL_TEST(a_task_that_outlives_the_deadline_is_named, "\"stubborn\", spawned at")
{
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
    CHECK_EQ(sn_runtime_block_on(rt, leave_one_running, NULL), 0);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_NOWAIT), 1);
    sn_runtime_destroy(rt);
    exit(1);
}

static volatile bool enough;

/* Spawn one that goes on for ever and one that ends; how many are left after the shutdown. */
static int shut_down_two(sn_task_fn *endless, int64_t patience_ns)
{
    gate_init(&gate);
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true}), 0);
    CHECK(sn_runtime_spawn(rt, endless, NULL, .detached = true, .name = "kept") == NULL);
    CHECK(sn_runtime_spawn(rt, give_back, NULL, .detached = true) == NULL);
    int64_t until = sni_plat_now_ns() + patience_ns;
    int left = sn_runtime_shutdown(rt, sn_deadline_at_(until));
    CHECK_GE(sni_plat_now_ns(), until);
    sn_runtime_destroy(rt);
    return left;
}

/* A single-threaded runtime runs its tasks itself while it waits for them, but not past the
 * deadline; whatever they do. On a busy machine that may come before the first turn: again, then,
 * with a later one. */
TEST(a_shutdown_of_a_single_threaded_runtime_keeps_its_deadline)
{
    static sn_task_fn *const kinds[] = {hold_on, pass_gate};
    for (int i = 0; i < 2; i++) {
        int64_t patience_ns = SN_MS(20);
        int left;
        while ((left = shut_down_two(kinds[i], patience_ns)) == 2 && patience_ns < SN_S(2))
            patience_ns *= 2;
        CHECK_EQ(left, 1);
    }
}

/* ---- a shutdown beside others --------------------------------------------------------------- */

static sn_event stays;
static atomic_bool runs;

static int sleep_and_give_seven(void *arg)
{
    (void)arg;
    atomic_store(&runs, true);
    CHECK_EQ(sn_sleep(SN_MS(30)), 0);
    return 7;
}

static int stay(void *arg)
{
    (void)arg;
    atomic_store(&runs, true);
    return sn_event_wait(&stays, SN_FOREVER);
}

struct driven {
    sn_runtime *rt;
    sn_task_fn *fn;
    int rc;
};

static void *drive_it(void *arg)
{
    struct driven *d = arg;
    d->rc = sn_runtime_block_on(d->rt, d->fn, NULL);
    return NULL;
}

/* What the shutdown and who drives the runtime get. */
static int shut_down_beside(struct driven *d, bool single, sn_deadline until)
{
    pthread_t thread;
    atomic_store(&runs, false);
    stays = (sn_event)SN_EVENT_INIT;
    sn_runtime_options opts = {.single_threaded = single, .workers = single ? 0 : 2};
    CHECK_EQ(sn_runtime_create(&d->rt, &opts), 0);
    CHECK_EQ(pthread_create(&thread, NULL, drive_it, d), 0);
    while (!atomic_load(&runs))
        usleep(100);
    int alive = sn_runtime_shutdown(d->rt, until);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    sn_runtime_destroy(d->rt);
    return alive;
}

TEST(a_shutdown_waits_for_tasks_that_another_thread_drives)
{
    for (int single = 0; single < 2; single++) {
        struct driven d = {.fn = sleep_and_give_seven};
        CHECK_EQ(shut_down_beside(&d, single != 0, SN_FOREVER), 0);
        CHECK_EQ(d.rc, 7);
        CHECK_EQ(shut_down_beside(&d, single != 0, sn_after(SN_S(15))), 0);
        CHECK_EQ(d.rc, 7);
    }
}

TEST(a_shutdown_whose_time_is_up_stops_who_drives)
{
    for (int single = 0; single < 2; single++) {
        struct driven d = {.fn = stay};
        CHECK_EQ(shut_down_beside(&d, single != 0, sn_after(SN_MS(20))), 1);
        CHECK_EQ(d.rc, -ECANCELED);
    }
}

static int give_42(void *arg)
{
    (void)arg;
    sn_yield();
    return 42;
}

static void *block_on_until_refused(void *arg)
{
    int rc = 42;
    while (rc == 42)
        rc = sn_runtime_block_on(arg, give_42, NULL);
    return (void *)(intptr_t)rc;
}

/* Who has run a task gets its result, also if the runtime is shut down before it has taken it. */
static void shut_down_in_between(bool single, sn_deadline until, int last)
{
    for (int i = 0; i < 100; i++) {
        sn_runtime *rt;
        pthread_t thread;
        void *rc;
        sn_runtime_options opts = {.single_threaded = single, .workers = single ? 0 : 1};
        CHECK_EQ(sn_runtime_create(&rt, &opts), 0);
        CHECK_EQ(pthread_create(&thread, NULL, block_on_until_refused, rt), 0);
        usleep((useconds_t)(i * 3));
        CHECK_LE(sn_runtime_shutdown(rt, until), last == -EPERM ? 0 : 1);
        CHECK_EQ(pthread_join(thread, &rc), 0);
        CHECK((intptr_t)rc == -EPERM || (intptr_t)rc == last);
        sn_runtime_destroy(rt);
    }
}

TEST(a_result_is_not_lost_to_a_shutdown, .limit_s = 60)
{
    shut_down_in_between(true, SN_FOREVER, -EPERM);
    shut_down_in_between(false, SN_FOREVER, -EPERM);
    shut_down_in_between(true, SN_NOWAIT, -ECANCELED);
    shut_down_in_between(false, SN_NOWAIT, -ECANCELED);
}

static atomic_int ran_of_those;

static int count_me(void *arg)
{
    (void)arg;
    atomic_fetch_add(&ran_of_those, 1);
    return 0;
}

/* Returns how many could be spawned. */
static void *spawn_until_refused(void *arg)
{
    int rc = 0;
    intptr_t n = 0;
    for (; rc == 0; n++) {
        sn_task *task = sn_runtime_spawn(arg, count_me, NULL, .detached = true, .error = &rc);
        CHECK(task == NULL);
    }
    CHECK_EQ(rc, -EPERM);
    return (void *)(n - 1);
}

TEST(what_is_spawned_before_a_shutdown_runs_and_the_rest_is_refused, .limit_s = 60)
{
    for (int i = 0; i < 100; i++) {
        sn_runtime *rt;
        pthread_t thread;
        void *spawned;
        atomic_store(&ran_of_those, 0);
        CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 1}), 0);
        CHECK_EQ(pthread_create(&thread, NULL, spawn_until_refused, rt), 0);
        usleep((useconds_t)(i * 3));
        CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
        CHECK_EQ(pthread_join(thread, &spawned), 0);
        CHECK_EQ((intptr_t)spawned, atomic_load(&ran_of_those));
        sn_runtime_destroy(rt);
    }
}

/* ---- what outlives its runtime ------------------------------------------------------------ */

static sn_waker kept;

static sn_poll keep_waker(sn_future *fut, sn_cx *cx)
{
    (void)fut;
    if (kept.vt != NULL)
        return SN_READY(0);
    kept = sn_waker_clone(cx->waker);
    (void)sn_waker_wake_by_ref(cx->waker);
    return SN_PENDING;
}

static const sn_future_vtable keeper_kind = {.poll = keep_waker};

static int spawn_keeper(void *arg)
{
    (void)arg;
    sn_future keeper = SN_FUTURE_INIT(&keeper_kind);
    return sn_join(sn_spawn_future(&keeper, &keeper), NULL);
}

TEST(a_waker_may_outlive_the_runtime_of_its_task)
{
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(run_with(&(sn_runtime_options){.workers = 2}, spawn_keeper, NULL), 0);
        CHECK_EQ(sn_waker_wake_by_ref(&kept), -ESRCH);
        sn_waker copy = sn_waker_clone(&kept);
        sn_waker_drop(&copy);
        CHECK_EQ(sn_waker_wake(&kept), -ESRCH); /* the last reference */
    }
}

static void *join_what_was_posted(void *arg)
{
    uintptr_t handle;
    while ((handle = atomic_load(&posted)) == 0)
        ;
    *(int *)arg = sn_join((sn_task *)handle, NULL);
    return NULL;
}

static int post_stubborn(void *arg)
{
    (void)arg;
    atomic_store(&posted, (uintptr_t)sn_spawn(hold_on, NULL, .name = "stubborn"));
    return 0;
}

/* R151: a thread that joins a task learns it when the runtime ends without waiting for it. */
TEST(joining_a_task_that_its_runtime_abandons_gives_ecanceled)
{
    int result = 0;
    pthread_t thread;
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
    CHECK_EQ(pthread_create(&thread, NULL, join_what_was_posted, &result), 0);
    CHECK_EQ(sn_runtime_block_on(rt, post_stubborn, NULL), 0);
    usleep(20000); /* the thread waits by now; if not, it finds the task gone */
    CHECK_EQ(sn_runtime_shutdown(rt, SN_NOWAIT), 1);
    sn_runtime_destroy(rt);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(result == -ECANCELED || result == -ESRCH);
}

static int recurse(void *arg)
{
    volatile char frame[512];
    frame[0] = (char)(intptr_t)arg;
    if (enough)
        return 0;
    return recurse((void *)((intptr_t)arg + 1)) + frame[0];
}

static int spawn_recursion(void *arg)
{
    (void)arg;
    return sn_join(sn_spawn(recurse, NULL, .name = "deep", .stack_bytes = 16 << 10), NULL);
}

/* R26: an overflow is reported with the task, its spawn and the size to try. */
FAIL_TEST(a_stack_overflow_names_the_task_and_a_better_size,
          "\"deep\", spawned at tests/unit/runtime/test_runtime.c:")
{
    CHECK_EQ(sn_run(spawn_recursion, NULL), 0);
}
