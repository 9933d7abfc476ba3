/* SPDX-License-Identifier: MIT */
/* The io_uring driver (R80, R81, R84): each kind of operation over real descriptors, a cancellation
 * at every point of an operation's life, and more operations than the rings have room for. */
#include "uring_ring.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* ---- kinds ------------------------------------------------------------------------------ */

static ptrdiff_t poll_for(struct sni_driver *driver, int fd, unsigned events)
{
    struct sni_op op;
    op_begin(&op, SNI_OP_POLL, fd);
    op.events = (uint8_t)events;
    sni_driver_submit(driver, &op);
    return op_end(&op);
}

static void poll_tells_what_is_there(struct sni_driver *driver)
{
    int fds[2];
    pair(fds, SOCK_STREAM);
    CHECK_EQ(poll_for(driver, fds[0], SNI_READABLE | SNI_WRITABLE), SNI_WRITABLE);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EQ(poll_for(driver, fds[0], SNI_READABLE), SNI_READABLE);
    CHECK_EQ(poll_for(driver, fds[0], SNI_READABLE | SNI_WRITABLE), SNI_READABLE | SNI_WRITABLE);
    close_both(fds);
}

TEST(a_poll_tells_what_is_there)
{
    each_ring(poll_tells_what_is_there);
}

static void poll_waits(struct sni_driver *driver)
{
    int fds[2];
    CHECK_EQ(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    struct sni_op op;
    op_begin(&op, SNI_OP_POLL, fds[0]);
    op.events = SNI_READABLE;
    sni_driver_submit(driver, &op);
    check_waits(&op);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EQ(op_end(&op), SNI_READABLE);
    close_both(fds);
}

TEST(a_poll_waits_for_what_is_not_there)
{
    each_ring(poll_waits);
}

TEST(a_closed_other_end_is_whatever_was_asked_for)
{
    static const unsigned asked[] = {SNI_READABLE, SNI_WRITABLE, SNI_PRIORITY,
                                     SNI_READABLE | SNI_WRITABLE};
    struct sni_driver *driver = ring();
    int fds[2];
    pair(fds, SOCK_STREAM);
    CHECK_EQ(close(fds[1]), 0);
    for (size_t i = 0; i < 4; i++)
        CHECK_EQ(poll_for(driver, fds[0], asked[i]), asked[i]);
    CHECK_EQ(close(fds[0]), 0);
    sni_driver_finish(driver);
}

TEST(urgent_data_is_a_priority)
{
    struct sni_driver *driver = ring();
    struct sockaddr_in addr;
    int listener = listen_tcp(&addr, 0, 8);
    int client = tcp_socket(0);
    CHECK_EQ(connect(client, (struct sockaddr *)&addr, sizeof(addr)), 0);
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK_EQ(send(client, "!", 1, MSG_OOB), 1);
    CHECK_EQ(poll_for(driver, server, SNI_PRIORITY), SNI_PRIORITY);
    CHECK_EQ(close(client) | close(server) | close(listener), 0);
    sni_driver_finish(driver);
}

/* The kernel tells of a half-closed end whether or not it was asked: that is no answer to who waits
 * for room, neither at once nor in a loop. */
static void half_closed_waits(struct sni_driver *driver)
{
    static char bytes[65536];
    int fds[2];
    pair(fds, SOCK_STREAM | SOCK_NONBLOCK);
    while (send(fds[0], bytes, sizeof(bytes), 0) > 0)
        ;
    CHECK_EQ(shutdown(fds[1], SHUT_WR), 0);
    struct sni_op op;
    for (int i = 0; i < 3; i++) {
        op_begin(&op, SNI_OP_POLL, fds[0]);
        op.events = SNI_WRITABLE;
        sni_driver_submit(driver, &op);
        check_waits(&op);
        if (i < 2)
            sni_driver_cancel_now(&op, -ETIMEDOUT);
    }
    int64_t until = sni_plat_now_ns() + MS(20);
    unsigned waits = 0;
    for (; sni_plat_now_ns() < until; waits++) {
        sni_driver_wait(driver, until);
        (void)sni_driver_reap(driver);
    }
    CHECK_LE(waits, 10);
    while (recv(fds[1], bytes, sizeof(bytes), 0) > 0)
        ;
    CHECK_EQ(op_end(&op), SNI_WRITABLE);
    close_both(fds);
}

TEST(who_waits_to_write_to_a_half_closed_end_sleeps_until_there_is_room)
{
    each_ring(half_closed_waits);
}

TEST(who_waits_for_urgent_data_is_told_though_no_descriptor_is_left)
{
    struct sni_driver *driver = ring();
    struct sockaddr_in addr;
    int listener = listen_tcp(&addr, 0, 8);
    int client = tcp_socket(0);
    CHECK_EQ(connect(client, (struct sockaddr *)&addr, sizeof(addr)), 0);
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    struct rlimit before;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct sni_op op;
    op_begin(&op, SNI_OP_POLL, server);
    op.events = SNI_PRIORITY;
    sni_driver_submit(driver, &op);
    check_waits(&op);
    CHECK_EQ(send(client, "!", 1, MSG_OOB), 1);
    check_waits(&op); /* it rests */
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_EQ(op_end(&op), SNI_PRIORITY);
    CHECK_EQ(close(client) | close(server) | close(listener), 0);
    sni_driver_finish(driver);
}

TEST(what_cannot_be_polled_is_ready)
{
    struct sni_driver *driver = ring();
    int fd = memfd_create("file", MFD_CLOEXEC);
    CHECK_EQ(poll_for(driver, fd, SNI_READABLE | SNI_WRITABLE), SNI_READABLE | SNI_WRITABLE);
    CHECK_EQ(poll_for(driver, fd, SNI_READABLE) & SNI_READABLE, SNI_READABLE);
    CHECK_EQ(close(fd), 0);
    int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(poll_for(driver, directory, SNI_READABLE) & SNI_READABLE, SNI_READABLE);
    CHECK_EQ(close(directory), 0);
    sni_driver_finish(driver);
}

static const int types[] = {0, SOCK_NONBLOCK};

static void accept_waits(struct sni_driver *driver)
{
    for (size_t i = 0; i < 2; i++) {
        struct sockaddr_in addr;
        struct sockaddr_in from = {0};
        struct sockaddr_in mine;
        socklen_t mine_bytes = sizeof(mine);
        uint32_t from_bytes = sizeof(from);
        int listener = listen_tcp(&addr, types[i], 8);
        struct sni_op op;
        op_begin(&op, SNI_OP_ACCEPT, listener);
        op.addr = (struct sockaddr *)&from;
        op.addr_bytes = &from_bytes;
        sni_driver_submit(driver, &op);
        check_waits(&op);
        int client = tcp_socket(0);
        CHECK_EQ(connect(client, (struct sockaddr *)&addr, sizeof(addr)), 0);
        ptrdiff_t fd = op_end(&op);
        CHECK_GE(fd, 0);
        CHECK_EQ(fcntl((int)fd, F_GETFD), FD_CLOEXEC);
        CHECK_EQ(fcntl((int)fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
        CHECK_EQ(getsockname(client, (struct sockaddr *)&mine, &mine_bytes), 0);
        CHECK_EQ(from_bytes, sizeof(from));
        CHECK_EQ(from.sin_port, mine.sin_port);
        CHECK_EQ(close((int)fd) | close(client) | close(listener), 0);
    }
}

TEST(an_accept_waits_whether_or_not_the_listener_blocks)
{
    each_ring(accept_waits);
}

static void start_connect(struct sni_driver *driver, struct sni_op *op, int fd, const void *addr,
                          uint32_t *bytes)
{
    op_begin(op, SNI_OP_CONNECT, fd);
    op->addr = (struct sockaddr *)(uintptr_t)addr;
    op->addr_bytes = bytes;
    sni_driver_submit(driver, op);
}

static void connects(struct sni_driver *driver)
{
    for (size_t i = 0; i < 2; i++) {
        struct sockaddr_in addr;
        uint32_t bytes = sizeof(addr);
        int listener = listen_tcp(&addr, 0, 8);
        int client = tcp_socket(types[i]);
        struct sni_op op;
        start_connect(driver, &op, client, &addr, &bytes);
        CHECK_EQ(op_end(&op), 0);
        start_connect(driver, &op, client, &addr, &bytes);
        CHECK_EQ(op_end(&op), -EISCONN); /* an error of the owner's stays one */
        CHECK_EQ(close(client) | close(listener), 0);
        client = tcp_socket(types[i]);
        start_connect(driver, &op, client, &addr, &bytes);
        CHECK_EQ(op_end(&op), -ECONNREFUSED);
        CHECK_EQ(close(client), 0);
    }
}

TEST(a_connect_succeeds_or_tells_why_not)
{
    each_ring(connects);
}

/* Connections until the listener takes no more: the next one stays in progress. */
static int fill_backlog(const struct sockaddr_in *addr, int *filler)
{
    int n = 0;
    for (;;) {
        filler[n] = tcp_socket(SOCK_NONBLOCK);
        (void)connect(filler[n], (const struct sockaddr *)addr, sizeof(*addr));
        usleep(2000);
        struct sockaddr_in peer;
        socklen_t peer_bytes = sizeof(peer);
        if (getpeername(filler[n], (struct sockaddr *)&peer, &peer_bytes) != 0)
            return n; /* this one is in progress */
        n++;
    }
}

TEST(a_connect_that_was_begun_before_is_waited_for, .limit_s = 30)
{
    struct sni_driver *driver = ring();
    struct sockaddr_in addr;
    uint32_t bytes = sizeof(addr);
    int filler[16];
    int listener = listen_tcp(&addr, 0, 0);
    int n = fill_backlog(&addr, filler);
    struct sni_op op;
    start_connect(driver, &op, filler[n], &addr, &bytes);
    check_waits(&op);
    for (int i = 0; i < n; i++)
        CHECK_EQ(close(accept4(listener, NULL, NULL, SOCK_CLOEXEC)), 0);
    CHECK_EQ(op_end(&op), 0); /* at the next of TCP's own attempts */
    for (int i = 0; i <= n; i++)
        CHECK_EQ(close(filler[i]), 0);
    CHECK_EQ(close(listener), 0);
    sni_driver_finish(driver);
}

TEST(a_connect_in_progress_can_be_cancelled)
{
    struct sni_driver *driver = ring();
    struct sockaddr_in addr;
    uint32_t bytes = sizeof(addr);
    int filler[16];
    int listener = listen_tcp(&addr, 0, 0);
    int n = fill_backlog(&addr, filler);
    struct sni_op op;
    int fresh = tcp_socket(SOCK_NONBLOCK);
    start_connect(driver, &op, fresh, &addr, &bytes);
    check_waits(&op);
    sni_driver_cancel(&op, -ETIMEDOUT);
    CHECK_EQ(op_end(&op), -ETIMEDOUT);
    start_connect(driver, &op, filler[n], &addr, &bytes);
    check_waits(&op);
    sni_driver_cancel(&op, -ETIMEDOUT);
    CHECK_EQ(op_end(&op), -ETIMEDOUT);
    for (int i = 0; i <= n; i++)
        CHECK_EQ(close(filler[i]), 0);
    CHECK_EQ(close(listener) | close(fresh), 0);
    sni_driver_finish(driver);
}

struct connecting {
    struct sni_driver *driver;
    struct sni_op op;
    struct sockaddr_in addr;
    uint32_t bytes;
    int fd;
};

static void *connect_and_leave(void *arg)
{
    struct connecting *c = arg;
    start_connect(c->driver, &c->op, c->fd, &c->addr, &c->bytes);
    check_waits(&c->op);
    return NULL;
}

TEST(a_connect_survives_the_end_of_the_thread_that_submitted_it, .limit_s = 30)
{
    struct connecting c = {.driver = ring(), .bytes = sizeof(c.addr), .fd = tcp_socket(0)};
    int filler[16];
    int listener = listen_tcp(&c.addr, 0, 0);
    int n = fill_backlog(&c.addr, filler);
    CHECK_EQ(close(filler[n]), 0); /* it would compete for the place that becomes free */
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, connect_and_leave, &c), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    check_waits(&c.op);
    for (int i = 0; i < n; i++)
        CHECK_EQ(close(accept4(listener, NULL, NULL, SOCK_CLOEXEC)), 0);
    CHECK_EQ(op_end(&c.op), 0);
    for (int i = 0; i < n; i++)
        CHECK_EQ(close(filler[i]), 0);
    CHECK_EQ(close(listener) | close(c.fd), 0);
    sni_driver_finish(c.driver);
}

/* A Unix listener that is full answers -EAGAIN and is writable all the same. */
static void full_listener(struct sni_driver *driver)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%p", temp_dir(), (void *)driver);
    uint32_t bytes = sizeof(addr);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&addr, bytes), 0);
    CHECK_EQ(listen(listener, 0), 0);
    int fds[3];
    struct sni_op op[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        start_connect(driver, &op[i], fds[i], &addr, &bytes);
    }
    CHECK_EQ(op_end(&op[0]), 0);
    check_waits(&op[1]);
    check_waits(&op[2]);
    sni_driver_cancel(&op[2], -ECANCELED);
    CHECK_EQ(op_end(&op[2]), -ECANCELED);
    CHECK_EQ(close(accept4(listener, NULL, NULL, SOCK_CLOEXEC)), 0);
    CHECK_EQ(op_end(&op[1]), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(close(fds[i]), 0);
    CHECK_EQ(close(listener) | unlink(addr.sun_path), 0);
}

TEST(a_connect_waits_for_a_full_unix_listener)
{
    each_ring(full_listener);
}

static void recv_waits(struct sni_driver *driver)
{
    static const uint32_t flags[] = {0, MSG_DONTWAIT};
    for (size_t i = 0; i < 4; i++) {
        int fds[2];
        char buf[8] = "";
        pair(fds, SOCK_STREAM | types[i % 2]);
        struct sni_op op;
        op_begin(&op, SNI_OP_RECV, fds[0]);
        op.buf = buf;
        op.bytes = sizeof(buf);
        op.flags = flags[i / 2];
        sni_driver_submit(driver, &op);
        check_waits(&op);
        CHECK_EQ(write(fds[1], "salut", 5), 5);
        CHECK_EQ(op_end(&op), 5);
        CHECK_MEM_EQ(buf, "salut", 5);
        CHECK_EQ(shutdown(fds[1], SHUT_WR), 0);
        op_recv(driver, &op, fds[0], buf, sizeof(buf));
        CHECK_EQ(op_end(&op), 0);
        close_both(fds);
    }
}

TEST(a_recv_waits_whether_or_not_the_socket_blocks)
{
    each_ring(recv_waits);
}

static void send_waits(struct sni_driver *driver)
{
    static char big[1 << 20];
    for (size_t i = 0; i < 2; i++) {
        int fds[2];
        pair(fds, SOCK_STREAM | types[i]);
        while (send(fds[0], big, sizeof(big), MSG_DONTWAIT) > 0)
            ;
        struct sni_op op;
        op_begin(&op, SNI_OP_SEND, fds[0]);
        op.buf = big;
        op.bytes = 1000;
        sni_driver_submit(driver, &op);
        check_waits(&op);
        while (recv(fds[1], big, sizeof(big), MSG_DONTWAIT) > 0)
            ;
        CHECK_EQ(op_end(&op), 1000);
        close_both(fds);
    }
}

TEST(a_send_waits_for_room_whether_or_not_the_socket_blocks)
{
    each_ring(send_waits);
}

static void send_to_nobody(struct sni_driver *driver)
{
    int fds[2];
    pair(fds, SOCK_STREAM);
    CHECK_EQ(close(fds[1]), 0);
    struct sni_op op;
    op_begin(&op, SNI_OP_SEND, fds[0]);
    op.buf = "x";
    op.bytes = 1;
    sni_driver_submit(driver, &op);
    CHECK_EQ(op_end(&op), -EPIPE);
    struct iovec iov = {.iov_base = "x", .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    op_begin(&op, SNI_OP_SENDMSG, fds[0]);
    op.msg = &msg;
    sni_driver_submit(driver, &op);
    CHECK_EQ(op_end(&op), -EPIPE);
    CHECK_EQ(close(fds[0]), 0);
}

TEST(a_send_to_nobody_is_an_error_and_not_a_signal)
{
    each_ring(send_to_nobody);
}

static void messages(struct sni_driver *driver)
{
    for (size_t i = 0; i < 2; i++) {
        int fds[2];
        char left[3];
        char right[8];
        pair(fds, SOCK_DGRAM | types[i]);
        struct iovec in[] = {{left, sizeof(left)}, {right, sizeof(right)}};
        struct iovec out[] = {{"one", 3}, {"two", 3}};
        struct msghdr in_msg = {.msg_iov = in, .msg_iovlen = 2};
        struct msghdr out_msg = {.msg_iov = out, .msg_iovlen = 2};
        struct sni_op op;
        struct sni_op answer;
        op_begin(&op, SNI_OP_RECVMSG, fds[0]);
        op.msg = &in_msg;
        sni_driver_submit(driver, &op);
        check_waits(&op);
        op_begin(&answer, SNI_OP_SENDMSG, fds[1]);
        answer.msg = &out_msg;
        sni_driver_submit(driver, &answer);
        CHECK_EQ(op_end(&op), 6);
        CHECK_EQ(op_end(&answer), 6);
        CHECK_MEM_EQ(left, "one", 3);
        CHECK_MEM_EQ(right, "two", 3);
        close_both(fds);
    }
}

TEST(a_message_arrives_in_pieces_as_asked_for)
{
    each_ring(messages);
}

TEST(errors_of_the_kernel_are_results)
{
    struct sni_driver *driver = ring();
    int fds[2];
    char c;
    struct sni_op op;
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    op_recv(driver, &op, fds[0], &c, 1);
    CHECK_EQ(op_end(&op), -ENOTSOCK);
    close_both(fds);
    op_recv(driver, &op, fds[0], &c, 1);
    CHECK_EQ(op_end(&op), -EBADF);
    CHECK_EQ(poll_for(driver, -1, SNI_READABLE), -EBADF);
    CHECK_EQ(sni_driver_pending(driver), 0);
    sni_driver_finish(driver);
}

/* ---- cancellation ----------------------------------------------------------------------- */

static void cancel_everywhere(struct sni_driver *driver)
{
    int fds[2];
    char c = 0;
    struct sni_op op;
    pair(fds, SOCK_STREAM);

    op_recv(driver, &op, fds[0], &c, 1); /* put, and not given to the kernel */
    sni_driver_cancel(&op, -ETIMEDOUT);
    CHECK_EQ(op_end(&op), -ETIMEDOUT);

    op_recv(driver, &op, fds[0], &c, 1); /* in the kernel */
    check_waits(&op);
    sni_driver_cancel(&op, -EBADF);
    CHECK_EQ(op_end(&op), -EBADF);

    op_recv(driver, &op, fds[0], &c, 1); /* twice: the first reason counts */
    sni_driver_flush(driver);
    sni_driver_cancel(&op, -ETIMEDOUT);
    sni_driver_cancel(&op, -ECANCELED);
    CHECK_EQ(op_end(&op), -ETIMEDOUT);
    sni_driver_cancel(&op, -ECANCELED); /* it is over: nothing happens */
    CHECK_EQ(op.result, -ETIMEDOUT);

    CHECK_EQ(write(fds[1], "xy", 2), 2);
    op_recv(driver, &op, fds[0], &c, 1); /* complete, and not reaped: what it achieved is told */
    sni_driver_wait(driver, INT64_MAX);
    CHECK(!op_is_over(&op));
    sni_driver_cancel(&op, -ECANCELED);
    CHECK_EQ(op_end(&op), 1);
    CHECK_EQ(c, 'x');
    CHECK_EQ(sni_driver_pending(driver), 0);
    CHECK_EQ(read(fds[0], &c, 1), 1); /* none of the cancelled ones took the other byte */
    CHECK_EQ(c, 'y');
    close_both(fds);
}

TEST(a_cancellation_works_at_every_point)
{
    each_ring(cancel_everywhere);
}

static void cancel_each_kind(struct sni_driver *driver)
{
    static char big[1 << 20];
    struct sockaddr_in addr;
    int listener = listen_tcp(&addr, SOCK_NONBLOCK, 8);
    int fds[2];
    pair(fds, SOCK_STREAM | SOCK_NONBLOCK);
    while (send(fds[0], big, sizeof(big), MSG_DONTWAIT) > 0)
        ;
    struct iovec iov = {big, 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    static const uint8_t kinds[] = {SNI_OP_POLL, SNI_OP_ACCEPT,  SNI_OP_RECV,
                                    SNI_OP_SEND, SNI_OP_RECVMSG, SNI_OP_SENDMSG};
    for (size_t i = 0; i < sizeof(kinds); i++) {
        struct sni_op op;
        op_begin(&op, kinds[i], kinds[i] == SNI_OP_ACCEPT ? listener : fds[0]);
        op.events = SNI_READABLE;
        if (kinds[i] == SNI_OP_RECV || kinds[i] == SNI_OP_SEND) {
            op.buf = big;
            op.bytes = 1;
        } else if (kinds[i] == SNI_OP_RECVMSG || kinds[i] == SNI_OP_SENDMSG) {
            op.msg = &msg;
        }
        sni_driver_submit(driver, &op);
        check_waits(&op);
        sni_driver_cancel(&op, -ETIMEDOUT);
        CHECK_EQ(op_end(&op), -ETIMEDOUT);
    }
    close_both(fds);
    CHECK_EQ(close(listener), 0);
}

TEST(each_kind_can_be_cancelled)
{
    each_ring(cancel_each_kind);
}

/* Submitted and cancelled in one batch, while the kernel finds a reason to try again at once: the
 * other end is half-closed, and still there is no room. */
static void cancel_to_half_closed(struct sni_driver *driver)
{
    static char big[1 << 20];
    int fds[2];
    pair(fds, SOCK_STREAM | SOCK_NONBLOCK);
    while (send(fds[0], big, sizeof(big), 0) > 0)
        ;
    CHECK_EQ(shutdown(fds[1], SHUT_WR), 0);
    struct iovec iov = {big, 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    struct sni_op op;
    for (int i = 0; i < 4; i++) {
        op_begin(&op, i % 2 == 0 ? SNI_OP_SEND : SNI_OP_SENDMSG, fds[0]);
        if (i % 2 == 0) {
            op.buf = big;
            op.bytes = 1;
        } else {
            op.msg = &msg;
        }
        sni_driver_submit(driver, &op);
        if (i >= 2)
            check_waits(&op);
        sni_driver_cancel(&op, -ETIMEDOUT);
        CHECK_EQ(op_end(&op), -ETIMEDOUT);
    }
    close_both(fds);
}

TEST(a_send_to_a_half_closed_end_can_be_cancelled)
{
    each_ring(cancel_to_half_closed);
}

/* The same for who receives: there is an error to be asked for, and nobody asks. */
static void cancel_beside_error(struct sni_driver *driver)
{
    struct sockaddr_in nobody;
    CHECK_EQ(close(listen_tcp(&nobody, 0, 8)), 0);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    char c = 0;
    CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_RECVERR, &(int){1}, sizeof(int)), 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&nobody, sizeof(nobody)), 0);
    CHECK_EQ(send(fd, &c, 1, 0), 1);
    struct pollfd error = {.fd = fd};
    CHECK_EQ(poll(&error, 1, -1), 1);
    CHECK_EQ(recv(fd, &c, 1, 0), -1);
    CHECK_EQ(errno, ECONNREFUSED);
    CHECK_EQ(poll(&error, 1, 0), 1); /* the error has been told, and what led to it is still kept */
    struct sni_op op;
    for (int i = 0; i < 3; i++) {
        op_recv(driver, &op, fd, &c, 1);
        if (i == 2)
            check_waits(&op);
        if (i == 0)
            sni_driver_cancel_now(&op, -ETIMEDOUT);
        else
            sni_driver_cancel(&op, -ETIMEDOUT);
        CHECK_EQ(op_end(&op), -ETIMEDOUT);
    }
    CHECK_EQ(close(fd), 0);
}

TEST(a_recv_can_be_cancelled_while_the_kernel_goes_on_trying)
{
    each_ring(cancel_beside_error);
}

static void late_cancel_of_accept(struct sni_driver *driver)
{
    struct sockaddr_in addr;
    int listener = listen_tcp(&addr, 0, 8);
    int client = tcp_socket(0);
    struct sni_op op;
    op_begin(&op, SNI_OP_ACCEPT, listener);
    sni_driver_submit(driver, &op);
    sni_driver_flush(driver);
    CHECK_EQ(connect(client, (struct sockaddr *)&addr, sizeof(addr)), 0);
    sni_driver_wait(driver, INT64_MAX);
    sni_driver_cancel(&op, -ECANCELED);
    ptrdiff_t fd = op_end(&op);
    CHECK_GE(fd, 0);
    CHECK_EQ(close((int)fd) | close(client) | close(listener), 0);
}

TEST(an_accept_that_was_cancelled_too_late_gives_its_descriptor)
{
    each_ring(late_cancel_of_accept);
}

static void cancel_now(struct sni_driver *driver)
{
    int fds[2];
    char c;
    struct sni_op op;
    pair(fds, SOCK_STREAM);
    for (int i = 0; i < 3; i++) {
        op_recv(driver, &op, fds[0], &c, 1);
        if (i > 0)
            sni_driver_flush(driver);
        if (i > 1)
            check_waits(&op);
        sni_driver_cancel_now(&op, -ECANCELED);
        CHECK(op_is_over(&op));
        CHECK_EQ(op.result, -ECANCELED);
        CHECK_EQ(sni_wait_commit(&op.waiter, SN_FOREVER), 0);
    }
    close_both(fds);
}

TEST(cancel_now_returns_when_the_operation_is_over)
{
    each_ring(cancel_now);
}

/* One frame, used again at once: a cancellation never meets the wrong operation. */
TEST(an_address_that_is_used_again_is_not_cancelled_by_what_came_too_late)
{
    struct sni_driver *driver = ring();
    int fds[2];
    char c;
    struct sni_op op;
    pair(fds, SOCK_STREAM);
    for (int i = 0; i < 2000; i++) {
        CHECK_EQ(write(fds[1], "x", 1), 1);
        op_recv(driver, &op, fds[0], &c, 1);
        sni_driver_flush(driver); /* it is complete */
        sni_mutex_lock(&driver->lock);
        op.why = -ETIMEDOUT;
        driver->ops->cancel(driver, &op); /* put, and not given to the kernel */
        (void)driver->ops->reap(driver);
        sni_mutex_unlock(&driver->lock);
        CHECK_EQ(op_end(&op), 1);
        op_recv(driver, &op, fds[0], &c, 1);
        CHECK_EQ(write(fds[1], "x", 1), 1);
        CHECK_EQ(op_end(&op), 1);
    }
    close_both(fds);
    sni_driver_finish(driver);
}

/* ---- slots that are used again ------------------------------------------------------------ */

/* A cancellation asks for no completion if it succeeds. What comes into its slot has one. */
static void use_slots_again(struct sni_driver *driver)
{
    int fds[2];
    char c;
    struct sni_op op;
    pair(fds, SOCK_STREAM);
    for (int i = 0; i < 8; i++) {
        op_recv(driver, &op, fds[0], &c, 1);
        check_waits(&op);
        sni_driver_cancel(&op, -ECANCELED);
        CHECK_EQ(op_end(&op), -ECANCELED);
        for (int j = 0; j <= i; j++) { /* of both kinds of numbers: each slot has its turn */
            CHECK_EQ(write(fds[1], "x", 1), 1);
            op_recv(driver, &op, fds[0], &c, 1);
            CHECK_EQ(op_end(&op), 1);
        }
    }
    close_both(fds);
}

TEST(what_comes_into_the_slot_of_a_cancellation_completes)
{
    struct sni_driver *driver = ring_with((struct sni_uring_config){.entries = 2});
    use_slots_again(driver);
    sni_driver_finish(driver);
}

/* ---- more than there is room for --------------------------------------------------------- */

enum { MANY = 10000 };
static struct sni_op many[MANY];
static unsigned char bytes_of[MANY];

static void write_all(int fd, const unsigned char *buf, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(fd, buf, bytes);
        CHECK_GT(n, 0);
        buf += n;
        bytes -= (size_t)n;
    }
}

static void end_many(void)
{
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(op_end(&many[i]), 1);
    CHECK_EQ(sni_driver_pending(many[0].driver), 0);
}

static const struct sni_uring_config tiny[] = {
    {.entries = 8}, {.entries = 8, .without = SNI_URING_ALL}, {.entries = 8, .sqpoll = true}};

TEST(ten_thousand_operations_wait_on_a_ring_of_eight, .limit_s = 60)
{
    static unsigned char data[MANY];
    for (size_t k = 0; k < 3; k++) {
        struct sni_driver *driver = ring_with(tiny[k]);
        int fds[2];
        pair(fds, SOCK_STREAM);
        for (int i = 0; i < MANY; i++)
            op_recv(driver, &many[i], fds[0], &bytes_of[i], 1);
        check_waits(&many[0]);
        CHECK_EQ(sni_driver_pending(driver), MANY);
        write_all(fds[1], data, sizeof(data));
        end_many();
        close_both(fds);
        sni_driver_finish(driver);
    }
}

TEST(ten_thousand_waiting_operations_are_all_cancelled, .limit_s = 60)
{
    for (size_t k = 0; k < 3; k++) {
        struct sni_driver *driver = ring_with(tiny[k]);
        int fds[2];
        pair(fds, SOCK_STREAM);
        for (int i = 0; i < MANY; i++)
            op_recv(driver, &many[i], fds[0], &bytes_of[i], 1);
        for (int i = 0; i < MANY; i++)
            sni_driver_cancel(&many[i], -ETIMEDOUT);
        for (int i = 0; i < MANY; i++)
            CHECK_EQ(op_end(&many[i]), -ETIMEDOUT);
        close_both(fds);
        sni_driver_finish(driver);
    }
}

static int prefix_over(int from)
{
    while (from < MANY && op_is_over(&many[from]))
        from++;
    return from;
}

TEST(completions_that_overflow_are_reaped_in_order_and_not_too_many_at_a_time, .limit_s = 60)
{
    static unsigned char data[MANY];
    for (int i = 0; i < MANY; i++)
        data[i] = (unsigned char)(i % 251);
    for (size_t k = 0; k < 2; k++) {
        struct sni_driver *driver = ring_with(tiny[k]);
        int fds[2];
        pair(fds, SOCK_STREAM);
        write_all(fds[1], data, sizeof(data));
        for (int i = 0; i < MANY; i++)
            op_recv(driver, &many[i], fds[0], &bytes_of[i], 1);
        sni_driver_flush(driver);
        int over = 0;
        while (over < MANY) {
            unsigned n = sni_driver_reap_patiently(driver);
            CHECK_LE(n, 256);
            int now = prefix_over(over);
            CHECK_EQ(now - over, n);
            over = now;
        }
        end_many();
        CHECK_MEM_EQ(bytes_of, data, sizeof(data));
        close_both(fds);
        sni_driver_finish(driver);
    }
}
