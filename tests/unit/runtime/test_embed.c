/* SPDX-License-Identifier: MIT */
/* A runtime in a foreign event loop (R45): its one descriptor tells of time, descriptors and wakes
 * alike, and nobody turns it for nothing. */
#include "unit/task/with_runtime.h"

#include <poll.h>
#include <pthread.h>
#include <sinew/errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The foreign loop: waits for the descriptor, gives a turn. Returns the number of turns. */
static int loop_until_done(sn_runtime *rt)
{
    struct pollfd p = {.fd = sn_runtime_fd(rt), .events = POLLIN};
    CHECK_GE(p.fd, 0);
    for (int turns = 1; turns < 100000; turns++) {
        CHECK_EQ(poll(&p, 1, 20000), 1);
        int alive = sn_runtime_turn(rt, sn_after(SN_MS(100)));
        CHECK_GE(alive, 0);
        if (alive == 0)
            return turns;
    }
    FAIL("%s", "the tasks do not end");
    return 0;
}

static int run_in_loop(sn_io_driver io, sn_task_fn *fn, void *arg)
{
    sn_runtime *rt;
    int rc = sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true, .io = io});
    if (rc < 0)
        SKIP("this system refuses the driver");
    CHECK_PTR_EQ(sn_runtime_spawn(rt, fn, arg, .detached = true), NULL);
    int turns = loop_until_done(rt);
    sn_runtime_destroy(rt);
    return turns;
}

static int three_naps(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(sn_sleep(SN_MS(5)), 0);
    return 0;
}

TEST(the_descriptor_of_a_runtime_becomes_readable_when_a_sleeper_is_due)
{
    /* the first turn, one for each nap, and those that came a tick too early */
    CHECK_LE(run_in_loop(SN_IO_AUTO, three_naps, NULL), 12);
}

static sn_conn *pair[2];

static int write_late(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_sleep(SN_MS(3)), 0);
    CHECK_EQ(sn_write(pair[1], "x", 1, SN_FOREVER), 1);
    return 0;
}

static int read_five(void *arg)
{
    (void)arg;
    char c;
    CHECK_EQ(sn_conn_pair(pair), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(sn_spawn_detached(write_late, NULL), 0);
        CHECK_EQ(sn_read(pair[0], &c, 1, SN_FOREVER), 1);
    }
    CHECK_EQ(sn_close(pair[0]), 0);
    CHECK_EQ(sn_close(pair[1]), 0);
    return 0;
}

TEST(the_descriptor_of_a_runtime_becomes_readable_when_a_socket_is_uring)
{
    (void)run_in_loop(SN_IO_URING, read_five, NULL);
}

TEST(the_descriptor_of_a_runtime_becomes_readable_when_a_socket_is_epoll)
{
    (void)run_in_loop(SN_IO_EPOLL, read_five, NULL);
}

TEST(the_descriptor_of_a_runtime_becomes_readable_when_a_socket_is_poll)
{
    (void)run_in_loop(SN_IO_POLL, read_five, NULL);
}

/* ---- what nobody waits for ------------------------------------------------------------------- */

static int use_and_sleep(void *arg)
{
    (void)arg;
    char c;
    CHECK_EQ(sn_read(pair[0], &c, 1, sn_after(SN_MS(1))), -ETIMEDOUT);
    return sn_sleep(SN_S(1000));
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* Turns until the descriptor is not readable any more. */
static int turns_until_quiet(sn_runtime *rt)
{
    int turns = 0;
    for (; is_readable(sn_runtime_fd(rt)) && turns < 1000; turns++)
        CHECK_EQ(sn_runtime_turn(rt, sn_after(SN_MS(100))), 1);
    return turns;
}

TEST(the_descriptor_of_a_runtime_is_quiet_beside_what_is_ready_and_nobody_waits_for)
{
    static const sn_io_driver drivers[] = {SN_IO_AUTO, SN_IO_EPOLL, SN_IO_POLL};
    for (int i = 0; i < 3; i++) {
        sn_runtime *rt;
        sn_runtime_options opts = {.single_threaded = true, .io = drivers[i]};
        CHECK_EQ(sn_runtime_create(&rt, &opts), 0);
        CHECK_EQ(sn_conn_pair(pair), 0);
        CHECK_PTR_EQ(sn_runtime_spawn(rt, use_and_sleep, NULL, .detached = true), NULL);
        for (int turns = 0; turns < 5; turns++) { /* until it sleeps */
            CHECK_EQ(usleep(2000), 0);
            CHECK_EQ(sn_runtime_turn(rt, sn_after(SN_MS(100))), 1);
        }
        CHECK_LE(turns_until_quiet(rt), 10);
        CHECK_EQ(sn_write(pair[1], "x", 1, SN_FOREVER), 1);
        CHECK_LE(turns_until_quiet(rt), 10);
        CHECK_EQ(sn_close(pair[0]), 0);
        CHECK_EQ(sn_close(pair[1]), 0);
        CHECK_EQ(sn_runtime_shutdown(rt, SN_NOWAIT), 1);
        sn_runtime_destroy(rt);
    }
}

/* ---- bytes from a thread that knows nothing of the runtime ---------------------------------- */

static int pipe_fds[2];

static void *write_to_pipe(void *arg)
{
    (void)arg;
    CHECK_EQ(usleep(5000), 0);
    CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
    return NULL;
}

static int read_pipe(void *arg)
{
    (void)arg;
    char c;
    CHECK_EQ(sn_wait_fd(pipe_fds[0], SN_READABLE, SN_FOREVER), SN_READABLE);
    CHECK_EQ(read(pipe_fds[0], &c, 1), 1);
    return 0;
}

TEST(the_descriptor_of_a_runtime_becomes_readable_when_a_strangers_pipe_is)
{
    static const sn_io_driver drivers[] = {SN_IO_AUTO, SN_IO_EPOLL, SN_IO_POLL};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        CHECK_EQ(pipe(pipe_fds), 0);
        CHECK_EQ(pthread_create(&thread, NULL, write_to_pipe, NULL), 0);
        (void)run_in_loop(drivers[i], read_pipe, NULL);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        close(pipe_fds[0]);
        close(pipe_fds[1]);
    }
}

/* ---- a ring whose submissions a thread of the kernel looks for (R81) ------------------------- */

TEST(a_runtime_works_with_a_polling_thread_of_the_kernel)
{
    sn_runtime *rt;
    sn_runtime_options opts = {.workers = 1, .io = SN_IO_URING, .sqpoll = true};
    if (sn_runtime_create(&rt, &opts) < 0)
        SKIP("this system refuses the driver");
    CHECK_EQ(sn_runtime_block_on(rt, read_five, NULL), 0);
    sn_runtime_destroy(rt);
}

/* ---- what a turn leaves --------------------------------------------------------------------- */

static sn_event first_event, never;
static sn_deadline turn_until;

typedef struct waker_of_one {
    sn_coro coro;
    sn_sync_state wait;
    int rc;
} waker_of_one;

/* Wakes the other, and uses up the time of the turn. */
SN_CORO(waker_of_one, self)
{
    SN_BEGIN(self);
    CHECK_EQ(sn_event_set(&first_event), 0);
    while (sn_now() < turn_until.ns)
        continue;
    SN_AWAIT_INTO(self->rc, sn_event_wait_op(&self->wait, &never));
    CHECK_EQ(self->rc, 0);
    SN_END();
}

typedef struct one {
    sn_coro coro;
    sn_sync_state wait;
    int rc;
} one;

SN_CORO(one, self)
{
    SN_BEGIN(self);
    SN_AWAIT_INTO(self->rc, sn_event_wait_op(&self->wait, &first_event));
    CHECK_EQ(self->rc, 0);
    CHECK_EQ(sn_event_set(&never), 0);
    SN_END();
}

static int spawn_both(void *arg)
{
    (void)arg;
    one waits = {.rc = 0};
    waker_of_one wakes = {.rc = 0};
    CHECK_EQ(sn_detach(sn_spawn_coro(one, &waits)), 0);
    sn_yield();
    CHECK_EQ(sn_detach(sn_spawn_coro(waker_of_one, &wakes)), 0);
    return 0;
}

/* ---- a wake that came too late ------------------------------------------------------------- */

/* What wakes a thread that sleeps in a driver, or its loop: an eventfd. */
static bool is_event(int fd)
{
    char path[32], name[64] = {0};
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return readlink(path, name, sizeof(name) - 1) > 0 && strstr(name, "[eventfd]") != NULL;
}

static int wait_for_pipe(void *arg)
{
    return sn_wait_fd(*(int *)arg, SN_READABLE, SN_FOREVER);
}

/* Turn until the descriptor is quiet, some times at most. */
static bool becomes_quiet(sn_runtime *rt)
{
    struct pollfd p = {.fd = sn_runtime_fd(rt), .events = POLLIN};
    for (int i = 0; i < 10 && poll(&p, 1, 0) == 1; i++)
        CHECK_EQ(sn_runtime_turn(rt, SN_NOWAIT), 0);
    return poll(&p, 1, 0) == 0;
}

/* Who rings for a sleeper tells the kernel a little later, and the sleep may be over by then. */
TEST(the_descriptor_of_a_runtime_is_quiet_after_a_wake_that_came_too_late)
{
    sn_runtime *rt;
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    CHECK_EQ(
        sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true, .io = SN_IO_EPOLL}),
        0);
    CHECK_GE(sn_runtime_fd(rt), 0);
    CHECK_EQ(sn_runtime_block_on(rt, wait_for_pipe, &ends[0]), SN_READABLE);
    CHECK(becomes_quiet(rt));
    int events = 0;
    for (int fd = 3; fd < 64; fd++) {
        uint64_t ring = 1;
        if (is_event(fd) && ++events > 0)
            CHECK_EQ(write(fd, &ring, sizeof(ring)), sizeof(ring));
    }
    CHECK_GE(events, 2);
    CHECK(becomes_quiet(rt));
    sn_runtime_destroy(rt);
    CHECK_EQ(close(ends[0]), 0);
    CHECK_EQ(close(ends[1]), 0);
}

TEST(the_descriptor_is_readable_when_the_time_of_a_turn_was_up)
{
    sn_runtime *rt;
    first_event = never = (sn_event)SN_EVENT_INIT;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true}), 0);
    struct pollfd p = {.fd = sn_runtime_fd(rt), .events = POLLIN};
    CHECK(sn_runtime_spawn(rt, spawn_both, NULL, .detached = true) == NULL);
    int alive = 3;
    for (int turns = 0; alive > 0 && turns < 1000; turns++) {
        CHECK_EQ(poll(&p, 1, 0), 1);
        turn_until = sn_after(SN_MS(1));
        alive = sn_runtime_turn(rt, turn_until);
    }
    CHECK_EQ(alive, 0);
    sn_runtime_destroy(rt);
}

static int sleep_for_hours(void *arg)
{
    (void)arg;
    for (int i = 0; i < 24; i++)
        CHECK_EQ(sn_sleep(SN_S(3600)), 0);
    return 0;
}

TEST(virtual_time_passes_in_turns_and_in_a_shutdown_with_a_deadline)
{
    sn_runtime_options opts = {.single_threaded = true, .virtual_time = true};
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &opts), 0);
    CHECK(sn_runtime_spawn(rt, sleep_for_hours, NULL, .detached = true) == NULL);
    CHECK_LE(loop_until_done(rt), 30);
    sn_runtime_destroy(rt);
    CHECK_EQ(sn_runtime_create(&rt, &opts), 0);
    CHECK(sn_runtime_spawn(rt, sleep_for_hours, NULL, .detached = true) == NULL);
    CHECK_EQ(sn_runtime_shutdown(rt, sn_after(SN_S(15))), 0);
    sn_runtime_destroy(rt);
}

static int add_one(void *arg)
{
    ++*(int *)arg;
    return 0;
}

TEST(a_turn_after_a_shutdown_runs_nothing)
{
    sn_runtime *rt;
    int ran = 0;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true}), 0);
    CHECK(sn_runtime_spawn(rt, add_one, &ran, .detached = true, .name = "late") == NULL);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_NOWAIT), 1);
    CHECK_EQ(sn_runtime_turn(rt, sn_after(SN_MS(10))), -EPERM);
    CHECK_EQ(ran, 0);
    sn_runtime_destroy(rt);
}

static int yield_often(void *arg)
{
    for (int i = 0; i < 10; i++) {
        ++*(int *)arg;
        sn_yield();
    }
    return 0;
}

TEST(a_turn_without_time_runs_something_all_the_same)
{
    sn_runtime *rt;
    int ran = 0, turns = 0;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true}), 0);
    for (int i = 0; i < 3; i++)
        CHECK(sn_runtime_spawn(rt, yield_often, &ran, .detached = true) == NULL);
    while (sn_runtime_turn(rt, SN_NOWAIT) > 0)
        CHECK_LE(++turns, 100);
    CHECK_EQ(ran, 30);
    sn_runtime_destroy(rt);
}
