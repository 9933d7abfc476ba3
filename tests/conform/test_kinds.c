/* SPDX-License-Identifier: MIT */
/* Every kind of operation on real sockets (R80, R82): what a driver does itself it must do as the
 * system call would, and what it does not do is a POLL and the call. */
#include "conform/conform.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* One end of a conversation, with the ticket that a file would keep. */
struct end {
    int fd;
    uint32_t ticket;
};

static void close_end(struct sni_driver *d, struct end *end)
{
    sni_driver_forget(d, end->fd);
    CHECK_EQ(close(end->fd), 0);
}

static ptrdiff_t recv_some(struct sni_driver *d, struct end *end, void *buf, size_t bytes)
{
    struct sni_op op = {.fd = end->fd, .kind = SNI_OP_RECV, .kept = true};
    op.buf = buf;
    op.bytes = bytes;
    return perform(d, &op, &end->ticket);
}

static ptrdiff_t send_some(struct sni_driver *d, struct end *end, const void *buf, size_t bytes)
{
    struct sni_op op = {.fd = end->fd, .kind = SNI_OP_SEND, .kept = true};
    op.buf = (void *)(uintptr_t)buf;
    op.bytes = bytes;
    op.flags = MSG_NOSIGNAL;
    return perform(d, &op, &end->ticket);
}

static struct end accept_one(struct sni_driver *d, struct end *listener)
{
    struct sockaddr_in address;
    uint32_t bytes = sizeof(address);
    struct sni_op op = {.fd = listener->fd, .kind = SNI_OP_ACCEPT, .kept = true};
    op.addr = (struct sockaddr *)&address;
    op.addr_bytes = &bytes;
    struct end end = {.fd = (int)perform(d, &op, &listener->ticket)};
    CHECK_GE(end.fd, 0);
    CHECK_EQ(bytes, sizeof(address));
    CHECK_EQ(address.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    return end;
}

static int connect_end(struct sni_driver *d, struct end *end, int listener)
{
    struct sockaddr_in address;
    uint32_t bytes = sizeof(address);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    end->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK_GE(end->fd, 0);
    struct sni_op op = {.fd = end->fd, .kind = SNI_OP_CONNECT, .kept = true};
    op.addr = (struct sockaddr *)&address;
    op.addr_bytes = &bytes;
    return (int)perform(d, &op, &end->ticket);
}

static void *connect_later(void *listener)
{
    int *fd = listener;
    *fd = connect_to(*fd);
    return NULL;
}

TEST(accept_and_connect_meet)
{
    struct sni_driver *d = open_driver();
    struct end listener = {.fd = listen_on_loopback()};
    for (int i = 0; i < 20; i++) {
        struct end client = {.fd = -1};
        CHECK_EQ(connect_end(d, &client, listener.fd), 0);
        struct end server = accept_one(d, &listener);
        char byte = 0;
        CHECK_EQ(send_some(d, &client, "a", 1), 1);
        CHECK_EQ(recv_some(d, &server, &byte, 1), 1);
        CHECK_EQ(byte, 'a');
        close_end(d, &client);
        CHECK_EQ(recv_some(d, &server, &byte, 1), 0);
        close_end(d, &server);
    }
    close_end(d, &listener);
    close_driver(d);
}

TEST(an_accept_waits_for_who_comes)
{
    struct sni_driver *d = open_driver();
    struct end listener = {.fd = listen_on_loopback()};
    for (int i = 0; i < 20; i++) {
        int fd = listener.fd;
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, connect_later, &fd), 0);
        struct end server = accept_one(d, &listener);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(close(fd), 0);
        close_end(d, &server);
    }
    close_end(d, &listener);
    close_driver(d);
}

TEST(a_connection_to_nobody_is_refused)
{
    struct sni_driver *d = open_driver();
    int gone = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* bound, but does not listen */
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(bind(gone, (struct sockaddr *)&address, sizeof(address)), 0);
    struct end client = {.fd = -1};
    CHECK_EQ(connect_end(d, &client, gone), -ECONNREFUSED);
    close_end(d, &client);
    CHECK_EQ(close(gone), 0);
    close_driver(d);
}

enum { STREAM_BYTES = 1 << 20 };

struct flow {
    int fd;
    uint64_t sum;
    size_t bytes;
};

static void *swallow(void *arg)
{
    struct flow *flow = arg;
    static unsigned char buf[7000];
    ssize_t n;
    while ((n = recv(flow->fd, buf, sizeof(buf), 0)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            flow->sum = flow->sum * 31 + buf[i];
        flow->bytes += (size_t)n;
    }
    return NULL;
}

TEST(a_send_waits_for_room_and_nothing_is_lost)
{
    struct sni_driver *d = open_driver();
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int small = 4096;
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    struct end sender = {.fd = pair[0]};
    struct flow flow = {.fd = pair[1]};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, swallow, &flow), 0);
    uint64_t sum = 0;
    static unsigned char buf[3000];
    for (size_t sent = 0; sent < STREAM_BYTES;) {
        for (size_t i = 0; i < sizeof(buf); i++)
            buf[i] = (unsigned char)(sent + i * 7);
        ptrdiff_t n = send_some(d, &sender, buf, sizeof(buf));
        CHECK_GT(n, 0);
        for (ptrdiff_t i = 0; i < n; i++)
            sum = sum * 31 + buf[i];
        sent += (size_t)n;
    }
    close_end(d, &sender);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_GE(flow.bytes, STREAM_BYTES);
    CHECK_EQ(flow.sum, sum);
    CHECK_EQ(close(pair[1]), 0);
    close_driver(d);
}

static void *send_slowly(void *arg)
{
    int fd = *(int *)arg;
    for (int i = 0; i < 1000; i++) {
        unsigned char byte = (unsigned char)i;
        CHECK_EQ(send(fd, &byte, 1, MSG_NOSIGNAL), 1);
        if (i % 50 == 0)
            sni_plat_thread_yield();
    }
    CHECK_EQ(shutdown(fd, SHUT_WR), 0);
    return NULL;
}

TEST(a_recv_waits_for_what_comes_until_the_end_of_the_stream)
{
    struct sni_driver *d = open_driver();
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct end receiver = {.fd = pair[0]};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, send_slowly, &pair[1]), 0);
    unsigned char buf[16];
    size_t got = 0;
    for (;;) {
        ptrdiff_t n = recv_some(d, &receiver, buf, sizeof(buf));
        CHECK_GE(n, 0);
        if (n == 0)
            break;
        for (ptrdiff_t i = 0; i < n; i++)
            CHECK_EQ(buf[i], (unsigned char)(got + (size_t)i));
        got += (size_t)n;
    }
    CHECK_EQ(got, 1000);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close_end(d, &receiver);
    CHECK_EQ(close(pair[1]), 0);
    close_driver(d);
}

TEST(messages_keep_their_bounds_and_tell_their_sender)
{
    struct sni_driver *d = open_driver();
    struct end ends[2];
    struct sockaddr_in addresses[2];
    for (int i = 0; i < 2; i++) {
        ends[i] = (struct end){.fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)};
        addresses[i] = (struct sockaddr_in){.sin_family = AF_INET};
        addresses[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof(addresses[i]);
        CHECK_EQ(bind(ends[i].fd, (struct sockaddr *)&addresses[i], bytes), 0);
        CHECK_EQ(getsockname(ends[i].fd, (struct sockaddr *)&addresses[i], &bytes), 0);
    }
    for (int i = 0; i < 50; i++) {
        char text[] = "hello";
        struct iovec out = {text, (size_t)(1 + i % 5)};
        struct msghdr message = {.msg_name = &addresses[1],
                                 .msg_namelen = sizeof(addresses[1]),
                                 .msg_iov = &out,
                                 .msg_iovlen = 1};
        struct sni_op send_op = {.fd = ends[0].fd, .kind = SNI_OP_SENDMSG, .kept = true};
        send_op.msg = &message;
        CHECK_EQ(perform(d, &send_op, &ends[0].ticket), 1 + i % 5);

        char buf[32] = {0};
        struct sockaddr_in from;
        struct iovec in = {buf, sizeof(buf)};
        struct msghdr got = {
            .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &in, .msg_iovlen = 1};
        struct sni_op recv_op = {.fd = ends[1].fd, .kind = SNI_OP_RECVMSG, .kept = true};
        recv_op.msg = &got;
        CHECK_EQ(perform(d, &recv_op, &ends[1].ticket), 1 + i % 5);
        CHECK_EQ(from.sin_port, addresses[0].sin_port);
        CHECK_MEM_EQ(buf, text, (size_t)(1 + i % 5));
    }
    close_end(d, &ends[0]);
    close_end(d, &ends[1]);
    close_driver(d);
}

TEST(each_kind_that_waits_can_be_cancelled)
{
    static const uint8_t kinds[] = {SNI_OP_POLL, SNI_OP_ACCEPT, SNI_OP_RECV, SNI_OP_RECVMSG};
    struct sni_driver *d = open_driver();
    for (size_t i = 0; i < sizeof(kinds); i++) {
        if ((d->ops->native & 1u << kinds[i]) == 0)
            continue;
        int listener = listen_on_loopback();
        set_nonblocking(listener, false);
        int pair[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        char byte = '-';
        struct iovec in = {&byte, 1};
        struct msghdr message = {.msg_iov = &in, .msg_iovlen = 1};
        struct sni_op op = {.fd = kinds[i] == SNI_OP_ACCEPT ? listener : pair[0],
                            .kind = kinds[i],
                            .events = SNI_READABLE};
        if (kinds[i] == SNI_OP_RECVMSG)
            op.msg = &message;
        else if (kinds[i] == SNI_OP_RECV)
            op.buf = &byte;
        if (kinds[i] == SNI_OP_RECV)
            op.bytes = 1;
        sni_wait_begin(&op.waiter);
        sni_driver_submit(d, &op);
        sni_driver_flush(d);
        CHECK_EQ(reap_often(d, 3), 0);
        sni_driver_cancel(&op, -ETIMEDOUT);
        CHECK_EQ(drive(&op), -ETIMEDOUT);
        /* The kernel has neither operation nor buffer any more. */
        CHECK_EQ(send(pair[1], "x", 1, 0), 1);
        CHECK_EQ(reap_often(d, 3), 0);
        CHECK_EQ(byte, '-');
        sni_driver_forget(d, op.fd);
        CHECK_EQ(close(listener), 0);
        CHECK_EQ(close(pair[0]), 0);
        CHECK_EQ(close(pair[1]), 0);
    }
    close_driver(d);
}
