/* SPDX-License-Identifier: MIT */
/* Which driver a runtime waits with (R80, R81): found out when the first wait needs one, so that a
 * runtime without I/O pays for none; a refusal is answered by the next best, unless one was asked
 * for by name. Refusals are made by filters of system calls. */
#include "unit/task/with_runtime.h"
#include "refuse_call.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int give_five(void *arg)
{
    (void)arg;
    return 5;
}

static int wait_for_a_byte(void *arg)
{
    int fds[2];
    (void)arg;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    CHECK_EQ(sn_wait_fd(fds[0], SN_READABLE, sn_after(SN_MS(1))), -ETIMEDOUT);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EQ(sn_wait_fd(fds[0], SN_READABLE, SN_FOREVER), SN_READABLE);
    CHECK_EQ(close(fds[0]) | close(fds[1]), 0);
    return 6;
}

static int run_on(sn_io_driver io, sn_task_fn *fn)
{
    sn_runtime *rt;
    CHECK_EQ(unsetenv("SINEW_IO"), 0);
    int rc = sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2, .io = io});
    if (rc < 0)
        return rc;
    rc = sn_runtime_block_on(rt, fn, NULL);
    sn_runtime_destroy(rt);
    return rc;
}

TEST(a_runtime_without_io_makes_neither_a_ring_nor_an_epoll_instance)
{
    filter_call(SYS_io_uring_setup, SECCOMP_RET_KILL_PROCESS);
    filter_call(SYS_epoll_create1, SECCOMP_RET_KILL_PROCESS);
    CHECK_EQ(run_on(SN_IO_AUTO, give_five), 5);
}

TEST(a_runtime_waits_with_the_best_driver_that_is_not_refused)
{
    CHECK_EQ(run_on(SN_IO_AUTO, wait_for_a_byte), 6);
    refuse_call(SYS_io_uring_setup, EPERM);
    CHECK_EQ(run_on(SN_IO_AUTO, wait_for_a_byte), 6);
    refuse_call(SYS_epoll_create1, EPERM);
    CHECK_EQ(run_on(SN_IO_AUTO, wait_for_a_byte), 6);
}

TEST(a_driver_that_was_asked_for_by_name_and_is_refused_is_an_error_of_the_creation)
{
    refuse_call(SYS_io_uring_setup, EPERM);
    int rc = run_on(SN_IO_URING, give_five);
    CHECK(rc == -EPERM || rc == -ENOSYS); /* ENOSYS: it was not built in */
    refuse_call(SYS_epoll_create1, EPERM);
    CHECK_EQ(run_on(SN_IO_EPOLL, give_five), -EPERM);
    CHECK_EQ(run_on(SN_IO_POLL, wait_for_a_byte), 6);

    sn_runtime *rt;
    CHECK_EQ(setenv("SINEW_IO", "uring", 1), 0);
    CHECK_EQ(sn_runtime_create(&rt, NULL), rc);
}
