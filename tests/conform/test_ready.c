/* SPDX-License-Identifier: MIT */
/* What counts as ready, for each kind of descriptor (R80, R82), kept or not. The reference is
 * what poll(2) says. */
#include "conform/conform.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void submit(struct sni_driver *d, struct sni_op *op, int fd, unsigned events, bool kept)
{
    begin_poll(op, fd, events);
    op->kept = kept;
    sni_driver_submit(d, op);
}

/* `fd` is ready for `events`, and says so soon. */
static ptrdiff_t poll_now(struct sni_driver *d, int fd, unsigned events, bool kept)
{
    struct sni_op op;
    submit(d, &op, fd, events, kept);
    return drive(&op);
}

static void expect_nothing(struct sni_driver *d, struct sni_op *op)
{
    CHECK_EQ(reap_often(d, 5), 0);
    CHECK(!is_complete(op));
}

/* A try has just failed. So this waits, at once or after as many futile completions as there may
 * be events on the way. */
static void submit_after_a_try(struct sni_driver *d, struct sni_op *op, int fd, unsigned events,
                               bool kept)
{
    uint32_t ticket = 0;
    for (int i = 0; i < 3; i++) {
        begin_poll(op, fd, events);
        op->kept = kept;
        op->flags = ticket;
        sni_driver_submit(d, op);
        (void)reap_often(d, 5);
        if (!is_complete(op))
            return;
        CHECK(kept);
        ticket = op->flags;
    }
    FAIL("a driver insists that descriptor %d is ready", fd);
}

static void finish(struct sni_driver *d, int fd)
{
    sni_driver_forget(d, fd);
    CHECK_EQ(close(fd), 0);
}

#define WITH_AND_WITHOUT(kept) \
    for (int kept##_i = 0, kept = 0; kept##_i < 2; kept##_i++, kept = kept##_i)

TEST(a_socket_pair_is_writable_until_it_is_full_and_readable_when_it_has_something)
{
    WITH_AND_WITHOUT(kept)
    {
        struct sni_driver *d = open_driver();
        int pair[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        CHECK_EQ(poll_now(d, pair[0], SNI_WRITABLE, kept), SNI_WRITABLE);
        CHECK_EQ(poll_now(d, pair[0], SNI_READABLE | SNI_WRITABLE, kept), SNI_WRITABLE);

        static char bytes[4096];
        while (send(pair[0], bytes, sizeof(bytes), 0) > 0)
            ;
        CHECK_EQ(poll_now(d, pair[1], SNI_READABLE, kept), SNI_READABLE);
        struct sni_op op;
        submit_after_a_try(d, &op, pair[0], SNI_WRITABLE, kept);
        while (recv(pair[1], bytes, sizeof(bytes), 0) > 0)
            ;
        CHECK_EQ(drive(&op), SNI_WRITABLE);
        finish(d, pair[0]);
        finish(d, pair[1]);
        close_driver(d);
    }
}

TEST(a_pipe_tells_when_it_has_something_and_when_its_other_end_is_gone)
{
    WITH_AND_WITHOUT(kept)
    {
        struct sni_driver *d = open_driver();
        int ends[2];
        CHECK_EQ(pipe2(ends, O_NONBLOCK), 0);
        struct sni_op op;
        submit(d, &op, ends[0], SNI_READABLE, kept);
        expect_nothing(d, &op);
        CHECK_EQ(write(ends[1], "x", 1), 1);
        CHECK_EQ(drive(&op), SNI_READABLE);
        char byte;
        CHECK_EQ(read(ends[0], &byte, 1), 1);

        submit_after_a_try(d, &op, ends[0], SNI_READABLE, kept);
        finish(d, ends[1]);
        CHECK_EQ(drive(&op), SNI_READABLE);
        CHECK_EQ(read(ends[0], &byte, 1), 0);
        finish(d, ends[0]);

        CHECK_EQ(pipe2(ends, O_NONBLOCK), 0);
        CHECK_EQ(poll_now(d, ends[1], SNI_WRITABLE, kept), SNI_WRITABLE);
        finish(d, ends[0]);
        CHECK_EQ(poll_now(d, ends[1], SNI_WRITABLE, kept), SNI_WRITABLE);
        finish(d, ends[1]);
        close_driver(d);
    }
}

TEST(a_listening_socket_is_readable_when_somebody_comes_and_a_connecting_one_writable)
{
    WITH_AND_WITHOUT(kept)
    {
        struct sni_driver *d = open_driver();
        int listener = listen_on_loopback();
        struct sni_op comes;
        submit(d, &comes, listener, SNI_READABLE, kept);
        expect_nothing(d, &comes);
        int client = connect_to(listener);
        struct sni_op connected;
        submit(d, &connected, client, SNI_WRITABLE, kept);
        CHECK_EQ(drive(&comes), SNI_READABLE);
        CHECK_EQ(drive(&connected), SNI_WRITABLE);
        int server = accept(listener, NULL, NULL);
        CHECK_GE(server, 0);
        int error = -1;
        socklen_t bytes = sizeof(error);
        CHECK_EQ(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
        CHECK_EQ(error, 0);
        finish(d, server);
        finish(d, client);
        finish(d, listener);
        close_driver(d);
    }
}

TEST(a_refused_connection_is_writable_and_readable_and_has_the_error)
{
    WITH_AND_WITHOUT(kept)
    {
        struct sni_driver *d = open_driver();
        int listener = listen_on_loopback();
        struct sockaddr_in address;
        socklen_t bytes = sizeof(address);
        CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
        CHECK_EQ(close(listener), 0);
        int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(client, (struct sockaddr *)&address, bytes);
        unsigned both = SNI_READABLE | SNI_WRITABLE;
        CHECK_EQ(poll_now(d, client, SNI_WRITABLE, kept), SNI_WRITABLE);
        CHECK_EQ(poll_now(d, client, both, kept), both);
        finish(d, client);
        close_driver(d);
    }
}

TEST(a_udp_socket_is_readable_when_a_datagram_came)
{
    WITH_AND_WITHOUT(kept)
    {
        struct sni_driver *d = open_driver();
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        struct sockaddr_in address = {.sin_family = AF_INET};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof(address);
        CHECK_EQ(bind(fd, (struct sockaddr *)&address, bytes), 0);
        CHECK_EQ(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
        struct sni_op op;
        submit(d, &op, fd, SNI_READABLE, kept);
        expect_nothing(d, &op);
        CHECK_EQ(sendto(fd, "", 0, 0, (struct sockaddr *)&address, bytes), 0);
        CHECK_EQ(drive(&op), SNI_READABLE);
        finish(d, fd);
        close_driver(d);
    }
}

TEST(a_peer_that_says_no_more_makes_readable_and_one_that_is_gone_both)
{
    WITH_AND_WITHOUT(kept)
    {
        struct sni_driver *d = open_driver();
        int pair[2];
        unsigned both = SNI_READABLE | SNI_WRITABLE;
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        struct sni_op op;
        submit(d, &op, pair[0], SNI_READABLE, kept);
        expect_nothing(d, &op);
        CHECK_EQ(shutdown(pair[1], SHUT_WR), 0);
        CHECK_EQ(drive(&op), SNI_READABLE);
        char byte;
        CHECK_EQ(recv(pair[0], &byte, 1, 0), 0);

        static char bytes[4096];
        while (send(pair[0], bytes, sizeof(bytes), 0) > 0)
            ;
        submit_after_a_try(d, &op, pair[0], SNI_WRITABLE, kept);
        CHECK_EQ(close(pair[1]), 0);
        CHECK_EQ(drive(&op), SNI_WRITABLE);
        CHECK_EQ(poll_now(d, pair[0], both, kept), both);
        finish(d, pair[0]);
        close_driver(d);
    }
}

TEST(urgent_data_is_told_to_who_asks_for_it)
{
    WITH_AND_WITHOUT(kept)
    {
        struct sni_driver *d = open_driver();
        int listener = listen_on_loopback();
        int client = connect_to(listener);
        CHECK_EQ(poll_now(d, listener, SNI_READABLE, kept), SNI_READABLE);
        int server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        CHECK_GE(server, 0);
        struct sni_op op;
        submit(d, &op, server, SNI_PRIORITY, kept);
        CHECK_EQ(poll_now(d, client, SNI_WRITABLE, kept), SNI_WRITABLE);
        CHECK_EQ(send(client, "a", 1, 0), 1);
        CHECK_EQ(poll_now(d, server, SNI_READABLE, kept), SNI_READABLE);
        expect_nothing(d, &op);
        CHECK_EQ(send(client, "!", 1, MSG_OOB), 1);
        CHECK_EQ(drive(&op), SNI_PRIORITY);
        finish(d, server);
        finish(d, client);
        finish(d, listener);
        close_driver(d);
    }
}

TEST(readers_and_writers_of_one_descriptor_are_told_apart)
{
    WITH_AND_WITHOUT(kept)
    {
        struct sni_driver *d = open_driver();
        int pair[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        struct sni_op reader;
        struct sni_op writer;
        submit(d, &reader, pair[0], SNI_READABLE, kept);
        submit(d, &writer, pair[0], SNI_WRITABLE, kept);
        CHECK_EQ(drive(&writer), SNI_WRITABLE);
        expect_nothing(d, &reader);
        CHECK_EQ(send(pair[1], "x", 1, 0), 1);
        CHECK_EQ(drive(&reader), SNI_READABLE);
        finish(d, pair[0]);
        finish(d, pair[1]);
        close_driver(d);
    }
}

TEST(a_regular_file_is_always_ready)
{
    WITH_AND_WITHOUT(kept)
    {
        struct sni_driver *d = open_driver();
        char path[512];
        (void)snprintf(path, sizeof(path), "%s/file", temp_dir());
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK_GE(fd, 0);
        unsigned both = SNI_READABLE | SNI_WRITABLE;
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(poll_now(d, fd, SNI_READABLE, kept), SNI_READABLE);
            CHECK_EQ(poll_now(d, fd, both, kept), both);
        }
        finish(d, fd);
        close_driver(d);
    }
}

TEST(what_is_no_descriptor_is_refused)
{
    WITH_AND_WITHOUT(kept)
    {
        struct sni_driver *d = open_driver();
        int fd = dup(0);
        CHECK_GE(fd, 0);
        CHECK_EQ(close(fd), 0);
        CHECK_EQ(poll_now(d, fd, SNI_READABLE, kept), -EBADF);
        CHECK_EQ(poll_now(d, -1, SNI_READABLE, kept), -EBADF);
        CHECK_EQ(poll_now(d, 1 << 30, SNI_WRITABLE, kept), -EBADF);
        CHECK_EQ(poll_now(d, INT32_MAX, SNI_READABLE, kept), -EBADF);
        sni_driver_forget(d, fd);
        sni_driver_forget(d, INT32_MAX);
        close_driver(d);
    }
}

/* Before it sleeps, its owner only glances, and that need not hand over what was put off. */
TEST(a_wait_hands_over_what_was_put_off)
{
    struct sni_driver *d = open_driver();
    for (int kept = 0; kept < 2; kept++) {
        struct sni_op op;
        int fds[2];
        CHECK_EQ(pipe(fds), 0);
        submit(d, &op, fds[0], SNI_READABLE, kept != 0);
        CHECK_EQ(sni_driver_glance(d), 0);
        CHECK(!is_complete(&op));
        CHECK_EQ(write(fds[1], "x", 1), 1);
        for (int i = 0; i < 5 && !is_complete(&op); i++) { /* a wait may return early */
            sni_driver_wait(d, INT64_MAX);
            (void)sni_driver_glance(d);
        }
        CHECK(is_complete(&op));
        CHECK_EQ(op.result, SNI_READABLE);
        finish(d, fds[0]);
        CHECK_EQ(close(fds[1]), 0);
    }
    close_driver(d);
}
