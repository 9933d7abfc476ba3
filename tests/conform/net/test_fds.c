/* SPDX-License-Identifier: MIT */
/* Descriptors that come and go (R82): adopted, passed on; and properties of connections. */
#include "suite.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- properties ---------------------------------------------------------------------------- */

NET_TEST(properties_of_a_connection_are_set_and_told)
{
    sn_conn *ends[2];
    int value = 7;
    tcp_pair(ends);
    for (int i = 0; i < 2; i++) { /* at first, at both ends */
        CHECK_EQ(sn_conn_get(ends[i], SN_CONN_NODELAY, &value), 0);
        CHECK_EQ(value, 1);
        CHECK_EQ(sn_conn_get(ends[i], SN_CONN_KEEPALIVE, &value), 0);
        CHECK_EQ(value, 0);
        CHECK_EQ(sn_conn_get(ends[i], SN_CONN_LINGER, &value), 0);
        CHECK_EQ(value, -1);
    }
    static const struct {
        sn_conn_option option;
        int value;
        bool exact;
    } options[] = {{SN_CONN_NODELAY, 0, true},         {SN_CONN_NODELAY, 1, true},
                   {SN_CONN_KEEPALIVE, 30, true},      {SN_CONN_KEEPALIVE, 0, true},
                   {SN_CONN_LINGER, 5, true},          {SN_CONN_LINGER, 0, true},
                   {SN_CONN_LINGER, -1, true},         {SN_CONN_SEND_BUFFER, 30000, false},
                   {SN_CONN_RECV_BUFFER, 30000, false}};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        CHECK_EQ(sn_conn_set(ends[0], options[i].option, options[i].value), 0);
        CHECK_EQ(sn_conn_get(ends[0], options[i].option, &value), 0);
        if (options[i].exact)
            CHECK_EQ(value, options[i].value);
        else
            CHECK_GE(value, options[i].value);
    }
    CHECK_EQ(sn_conn_set(ends[0], (sn_conn_option)77, 1), -EINVAL);
    CHECK_EQ(sn_conn_get(ends[0], (sn_conn_option)77, &value), -EINVAL);
    CHECK_EQ(sn_conn_set(ends[0], SN_CONN_LINGER, -2), -EINVAL);
    CHECK_EQ(sn_conn_set(ends[0], SN_CONN_KEEPALIVE, -1), -EINVAL);
    CHECK_EQ(sn_conn_set(ends[0], SN_CONN_SEND_BUFFER, -1), -EINVAL);
    CHECK_EQ(sn_conn_get(ends[0], SN_CONN_LINGER, NULL), -EINVAL);
    close_pair(ends);

    CHECK_EQ(sn_conn_pair(ends), 0);
    CHECK_EQ(sn_conn_set(ends[0], SN_CONN_NODELAY, 1), -ENOPROTOOPT);
    CHECK_EQ(sn_conn_get(ends[0], SN_CONN_NODELAY, &value), -ENOPROTOOPT);
    CHECK_EQ(sn_conn_set(ends[0], SN_CONN_SEND_BUFFER, 30000), 0);
    close_pair(ends);
}

/* ---- adopted --------------------------------------------------------------------------------- */

NET_TEST(a_stream_socket_from_elsewhere_becomes_a_connection)
{
    int fds[2];
    sn_conn *c;
    char buf[8];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    CHECK_EQ(sn_conn_adopt(&c, fds[0]), 0);
    CHECK((fcntl(fds[0], F_GETFL) & O_NONBLOCK) != 0);
    CHECK_EQ(x_read(c, buf, 8, soon()), -ETIMEDOUT); /* it was blocking */
    CHECK_EQ(send(fds[1], "abc", 3, 0), 3);
    CHECK_EQ(x_read(c, buf, 8, SN_FOREVER), 3);
    CHECK_EQ(x_write(c, "de", 2, SN_FOREVER), 2);
    CHECK_EQ(recv(fds[1], buf, 8, 0), 2);
    CHECK_EQ(sn_close(c), 0);
    CHECK_EQ(recv(fds[1], buf, 8, 0), 0);
    CHECK_EQ(close(fds[1]), 0);
}

NET_TEST(what_is_no_stream_socket_is_not_adopted_and_stays_the_callers)
{
    int fds[2];
    sn_conn *c = NULL;
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(sn_conn_adopt(&c, fds[0]), -ENOTSOCK);
    CHECK_EQ(fcntl(fds[0], F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(close(fds[0]), 0);
    CHECK_EQ(close(fds[1]), 0);
    CHECK_EQ(sn_conn_adopt(&c, fds[1]), -EBADF);
    CHECK_EQ(sn_conn_adopt(&c, -1), -EBADF);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds), 0);
    CHECK_EQ(sn_conn_adopt(&c, fds[0]), -ENOTSOCK);
    CHECK_EQ(sn_conn_adopt(NULL, fds[0]), -EINVAL);
    CHECK(c == NULL);
    CHECK_EQ(close(fds[0]), 0);
    CHECK_EQ(close(fds[1]), 0);
}

/* Two ends of a TCP connection: a descriptor, and a connection. */
static int half_adopted(sn_conn **conn)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof(at);
    int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int a = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(l, (struct sockaddr *)&at, sizeof(at)), 0);
    CHECK_EQ(listen(l, 1), 0);
    CHECK_EQ(getsockname(l, (struct sockaddr *)&at, &bytes), 0);
    CHECK_EQ(connect(a, (struct sockaddr *)&at, sizeof(at)), 0);
    int b = accept(l, NULL, NULL);
    CHECK_EQ(close(l), 0);
    CHECK_EQ(sn_conn_adopt(conn, b), 0);
    return a;
}

static int send_urgently(void *arg)
{
    const int *fd = arg;
    let_them_wait();
    CHECK_EQ(send(*fd, "abc", 3, 0), 3);
    CHECK_EQ(send(*fd, "!", 1, MSG_OOB), 1);
    CHECK_EQ(send(*fd, "def", 3, 0), 3);
    return 0;
}

/* The kernel cuts a read at urgent data, which must not be taken for all there is. */
NET_TEST(bytes_behind_urgent_data_come_although_the_read_was_short)
{
    sn_conn *c;
    char buf[16];
    struct helper h;
    int fd = half_adopted(&c);
    help(&h, send_urgently, &fd);
    size_t n = 0;
    while (n < 6) {
        ptrdiff_t got = x_read(c, buf + n, sizeof(buf) - n, SN_FOREVER);
        CHECK_GT(got, 0);
        n += (size_t)got;
    }
    CHECK_MEM_EQ(buf, "abcdef", 6);
    CHECK_EQ(helped(&h), 0);
    CHECK_EQ(x_read(c, buf, sizeof(buf), soon()), -ETIMEDOUT);
    CHECK_EQ(send(fd, "x", 1, 0), 1);
    CHECK_EQ(x_read(c, buf, sizeof(buf), SN_FOREVER), 1);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(sn_close(c), 0);
}

/* ---- passed on ------------------------------------------------------------------------------- */

static int open_fds(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    while (readdir(dir) != NULL)
        n++;
    CHECK_EQ(closedir(dir), 0);
    return n;
}

static int send_pipe(void *arg)
{
    int fds[2];
    let_them_wait();
    CHECK_EQ(pipe2(fds, 0), 0);
    CHECK_EQ(sn_send_fds(arg, "fd", 2, fds, 2, SN_FOREVER), 2);
    CHECK_EQ(close(fds[0]), 0); /* they stay the sender's */
    CHECK_EQ(close(fds[1]), 0);
    return 0;
}

FIBER_TEST(descriptors_are_passed_on_and_close_on_exec)
{
    sn_conn *ends[2];
    struct helper h;
    char buf[8];
    int fds[4], n = 4;
    CHECK_EQ(sn_conn_pair(ends), 0);
    CHECK_EQ(sn_recv_fds(ends[1], buf, 8, fds, &n, soon()), -ETIMEDOUT);
    CHECK_EQ(n, 0);
    help(&h, send_pipe, ends[0]);
    n = 4;
    CHECK_EQ(sn_recv_fds(ends[1], buf, 8, fds, &n, SN_FOREVER), 2);
    CHECK_EQ(n, 2);
    CHECK_EQ(helped(&h), 0);
    CHECK((fcntl(fds[0], F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((fcntl(fds[1], F_GETFD) & FD_CLOEXEC) != 0);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EQ(read(fds[0], buf, 8), 1);
    CHECK_EQ(close(fds[0]), 0);
    CHECK_EQ(close(fds[1]), 0);

    CHECK_EQ(sn_write_all(ends[0], "none", 4, NULL, SN_FOREVER), 0);
    n = 4;
    CHECK_EQ(sn_recv_fds(ends[1], buf, 8, fds, &n, SN_FOREVER), 4);
    CHECK_EQ(n, 0);
    CHECK_EQ(sn_close(ends[0]), 0);
    n = 4;
    CHECK_EQ(sn_recv_fds(ends[1], buf, 8, fds, &n, SN_FOREVER), 0);
    CHECK_EQ(sn_close(ends[1]), 0);
}

FIBER_TEST(more_descriptors_than_there_is_room_for_are_closed)
{
    sn_conn *ends[2];
    char buf[8];
    int out[SN_FDS_MAX], fd = -1, n;
    for (int i = 0; i < SN_FDS_MAX; i++)
        out[i] = 0;
    CHECK_EQ(sn_conn_pair(ends), 0);
    int before = open_fds();
    CHECK_EQ(sn_send_fds(ends[0], "x", 1, out, SN_FDS_MAX, SN_FOREVER), 1);
    n = 1;
    CHECK_EQ(sn_recv_fds(ends[1], buf, 8, &fd, &n, SN_FOREVER), 1);
    CHECK_EQ(n, 1);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(open_fds(), before);
    CHECK_EQ(sn_send_fds(ends[0], "y", 1, out, 3, SN_FOREVER), 1);
    n = 0;
    CHECK_EQ(sn_recv_fds(ends[1], buf, 8, NULL, &n, SN_FOREVER), 1);
    CHECK_EQ(n, 0);
    CHECK_EQ(sn_send_fds(ends[0], "z", 1, out, 3, SN_FOREVER), 1);
    CHECK_EQ(sn_read(ends[1], buf, 8, SN_FOREVER), 1); /* who does not ask gets none */
    CHECK_EQ(open_fds(), before);
    close_pair(ends);
}

FIBER_TEST(descriptors_that_cannot_be_passed_on_are_refused)
{
    sn_conn *ends[2];
    char buf[8];
    int fds[SN_FDS_MAX + 1] = {0}, n = 1;
    CHECK_EQ(sn_conn_pair(ends), 0);
    CHECK_EQ(sn_send_fds(ends[0], "", 0, fds, 1, SN_FOREVER), -EINVAL);
    CHECK_EQ(sn_send_fds(ends[0], NULL, 1, fds, 1, SN_FOREVER), -EINVAL);
    CHECK_EQ(sn_send_fds(ends[0], "x", 1, fds, SN_FDS_MAX + 1, SN_FOREVER), -EINVAL);
    CHECK_EQ(sn_send_fds(ends[0], "x", 1, fds, -1, SN_FOREVER), -EINVAL);
    CHECK_EQ(sn_send_fds(ends[0], "x", 1, NULL, 1, SN_FOREVER), -EINVAL);
    fds[0] = -1;
    CHECK_EQ(sn_send_fds(ends[0], "x", 1, fds, 1, SN_FOREVER), -EBADF);
    CHECK_EQ(sn_recv_fds(ends[0], buf, 0, fds, &n, SN_FOREVER), -EINVAL);
    CHECK_EQ(sn_recv_fds(ends[0], NULL, 1, fds, &n, SN_FOREVER), -EINVAL);
    CHECK_EQ(sn_recv_fds(ends[0], buf, 1, fds, NULL, SN_FOREVER), -EINVAL);
    CHECK_EQ(sn_recv_fds(ends[0], buf, 1, NULL, &n, SN_FOREVER), -EINVAL);
    n = -1;
    CHECK_EQ(sn_recv_fds(ends[0], buf, 1, fds, &n, SN_FOREVER), -EINVAL);
    n = SN_FDS_MAX + 1;
    CHECK_EQ(sn_recv_fds(ends[0], buf, 1, fds, &n, SN_FOREVER), -EINVAL);
    close_pair(ends);
}
