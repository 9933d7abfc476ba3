/* SPDX-License-Identifier: MIT */
/* Waiting for descriptors of any kind (R82): pipes, eventfd, timerfd, files, and what is none. */
#include "suite.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int write_later(void *arg)
{
    const int *fd = arg;
    let_them_wait();
    CHECK_EQ(write(*fd, "12345678", 8), 8);
    return 0;
}

NET_TEST(a_pipe_is_waited_for)
{
    int fds[2];
    char buf[8];
    struct helper h;
    CHECK_EQ(pipe(fds), 0); /* blocking; it is not changed */
    CHECK_EQ(x_wait_fd(fds[0], SN_READABLE, soon()), -ETIMEDOUT);
    CHECK_EQ(x_wait_fd(fds[1], SN_WRITABLE, SN_FOREVER), SN_WRITABLE);
    help(&h, write_later, &fds[1]);
    CHECK_EQ(x_wait_fd(fds[0], SN_READABLE, SN_FOREVER), SN_READABLE);
    CHECK_EQ(x_wait_fd(fds[0], SN_READABLE, SN_FOREVER), SN_READABLE);
    CHECK_EQ(helped(&h), 0);
    CHECK_EQ(read(fds[0], buf, 8), 8);
    CHECK_EQ(x_wait_fd(fds[0], SN_READABLE, soon()), -ETIMEDOUT);
    CHECK_EQ(close(fds[1]), 0);
    CHECK_EQ(x_wait_fd(fds[0], SN_READABLE, SN_FOREVER), SN_READABLE); /* its end */
    CHECK_EQ(read(fds[0], buf, 8), 0);
    CHECK_EQ(fcntl(fds[0], F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(close(fds[0]), 0);
}

NET_TEST(an_eventfd_is_waited_for_in_both_directions)
{
    int fd = eventfd(0, EFD_CLOEXEC);
    struct helper h;
    uint64_t number = UINT64_MAX - 1;
    CHECK_EQ(x_wait_fd(fd, SN_READABLE | SN_WRITABLE, SN_FOREVER), SN_WRITABLE);
    help(&h, write_later, &fd);
    CHECK_EQ(x_wait_fd(fd, SN_READABLE, SN_FOREVER), SN_READABLE);
    CHECK_EQ(helped(&h), 0);
    CHECK_EQ(read(fd, &number, 8), 8);
    number = UINT64_MAX - 1; /* it is full */
    CHECK_EQ(write(fd, &number, 8), 8);
    CHECK_EQ(x_wait_fd(fd, SN_WRITABLE, soon()), -ETIMEDOUT);
    CHECK_EQ(x_wait_fd(fd, SN_READABLE | SN_WRITABLE, SN_FOREVER), SN_READABLE);
    CHECK_EQ(close(fd), 0);
}

NET_TEST(a_timerfd_is_waited_for)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    const struct itimerspec soon_and_often = {.it_interval = {.tv_nsec = 1000000},
                                              .it_value = {.tv_nsec = 1000000}};
    uint64_t ticks;
    CHECK_EQ(x_wait_fd(fd, SN_READABLE, soon()), -ETIMEDOUT);
    CHECK_EQ(timerfd_settime(fd, 0, &soon_and_often, NULL), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(x_wait_fd(fd, SN_READABLE, SN_FOREVER), SN_READABLE);
        CHECK_EQ(read(fd, &ticks, 8), 8);
    }
    CHECK_EQ(close(fd), 0);
}

NET_TEST(a_file_is_always_ready)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK_GE(fd, 0);
    CHECK_EQ(x_wait_fd(fd, SN_READABLE, SN_FOREVER), SN_READABLE);
    CHECK_EQ(close(fd), 0);
}

/* Some ways to wait refuse it, others do not notice; none says that there is something. */
NET_TEST(a_file_never_has_anything_urgent)
{
    static const char *const paths[] = {"/proc/self/exe", "/", "/dev/null"};
    for (size_t i = 0; i < 3; i++) {
        int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
        CHECK_GE(fd, 0);
        int rc = x_wait_fd(fd, SN_URGENT, soon());
        CHECK(rc == -EPERM || rc == -ETIMEDOUT);
        CHECK_EQ(x_wait_fd(fd, SN_URGENT | SN_READABLE, SN_FOREVER), SN_READABLE);
        CHECK_EQ(close(fd), 0);
    }
}

NET_TEST(what_is_no_descriptor_or_no_event_is_refused)
{
    int fd = fcntl(0, F_DUPFD_CLOEXEC, 900); /* a number that nobody gets by chance */
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(x_wait_fd(fd, SN_READABLE, SN_FOREVER), -EBADF);
    CHECK_EQ(x_wait_fd(-1, SN_READABLE, SN_FOREVER), -EBADF);
    CHECK_EQ(x_wait_fd(1 << 30, SN_READABLE, SN_FOREVER), -EBADF);
    CHECK_EQ(x_wait_fd(0, 0, SN_FOREVER), -EINVAL);
    CHECK_EQ(x_wait_fd(0, 8, SN_FOREVER), -EINVAL);
    CHECK_EQ(x_wait_fd(0, SN_READABLE | 64, SN_FOREVER), -EINVAL);
}

FIBER_TEST(past_the_deadline_it_is_told_what_is_there)
{
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(sn_wait_fd(fds[0], SN_READABLE, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_wait_fd(fds[1], SN_WRITABLE, SN_NOWAIT), SN_WRITABLE);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EQ(sn_wait_fd(fds[0], SN_READABLE, sn_after(-SN_S(1))), SN_READABLE);
    CHECK_EQ(close(fds[0]), 0);
    CHECK_EQ(close(fds[1]), 0);
    CHECK_EQ(sn_wait_fd(fds[0], SN_READABLE, SN_NOWAIT), -EBADF);
}

static int wait_readable(void *arg)
{
    const int *fd = arg;
    return x_wait_fd(*fd, SN_READABLE, SN_FOREVER);
}

static int wait_writable(void *arg)
{
    const int *fd = arg;
    return x_wait_fd(*fd, SN_WRITABLE, SN_FOREVER);
}

NET_TEST(several_wait_for_one_descriptor)
{
    enum { N = 10 };
    int fds[2];
    struct helper readers[N], writers[N];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    for (int round = 0; round < 3; round++) {
        char buf[8];
        for (int i = 0; i < N; i++) {
            help(&readers[i], wait_readable, &fds[0]);
            help(&writers[i], wait_writable, &fds[0]);
        }
        for (int i = 0; i < N; i++)
            CHECK_EQ(helped(&writers[i]), SN_WRITABLE);
        CHECK_EQ(write(fds[1], "x", 1), 1);
        for (int i = 0; i < N; i++)
            CHECK_EQ(helped(&readers[i]), SN_READABLE);
        CHECK_EQ(read(fds[0], buf, 8), 1);
    }
    CHECK_EQ(close(fds[0]), 0);
    CHECK_EQ(close(fds[1]), 0);
}

/* A number that was closed and is another's now. */
NET_TEST(a_descriptor_used_anew_is_waited_for_like_a_new_one)
{
    for (int i = 0; i < 50; i++) {
        int fds[2];
        CHECK_EQ(pipe(fds), 0);
        CHECK_EQ(x_wait_fd(fds[1], SN_WRITABLE, SN_FOREVER), SN_WRITABLE);
        CHECK_EQ(x_wait_fd(fds[0], SN_READABLE, sn_after(SN_US(10))), -ETIMEDOUT);
        CHECK_EQ(write(fds[1], "x", 1), 1);
        CHECK_EQ(x_wait_fd(fds[0], SN_READABLE, SN_FOREVER), SN_READABLE);
        CHECK_EQ(close(fds[0]), 0);
        CHECK_EQ(close(fds[1]), 0);
    }
}

static int send_urgent(void *arg)
{
    const int *fd = arg;
    let_them_wait();
    CHECK_EQ(send(*fd, "!", 1, MSG_OOB), 1);
    return 0;
}

NET_TEST(urgent_data_are_waited_for)
{
    int fds[2];
    char byte;
    struct helper h;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    if (send(fds[0], "?", 1, MSG_OOB) < 0)
        SKIP("this kernel knows no urgent data of Unix sockets");
    CHECK_EQ(recv(fds[1], &byte, 1, MSG_OOB), 1);
    CHECK_EQ(x_wait_fd(fds[1], SN_URGENT, soon()), -ETIMEDOUT);
    help(&h, send_urgent, &fds[0]);
    CHECK_EQ(x_wait_fd(fds[1], SN_URGENT, SN_FOREVER), SN_URGENT);
    CHECK_EQ(helped(&h), 0);
    CHECK_EQ(close(fds[0]), 0);
    CHECK_EQ(close(fds[1]), 0);
}
