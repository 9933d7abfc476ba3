/* SPDX-License-Identifier: MIT */
/* Closing while others wait, and handles that are not what they should be (R84). */
#include "suite.h"

enum { MANY = 20 };

/* ---- close while others wait --------------------------------------------------------------- */

static int read_once(void *arg)
{
    char buf[4];
    return (int)x_read(arg, buf, sizeof(buf), SN_FOREVER);
}

static int read_exactly(void *arg)
{
    char buf[4];
    return sn_read_exact(arg, buf, sizeof(buf), NULL, SN_FOREVER);
}

static int read_pieces(void *arg)
{
    char buf[4];
    return (int)sn_readv(arg, &(sn_iov){buf, 4}, 1, SN_FOREVER);
}

static int read_with_deadline(void *arg)
{
    char buf[4];
    return (int)x_read(arg, buf, sizeof(buf), sn_after(SN_S(1000)));
}

static int wait_readable(void *arg)
{
    return x_conn_wait(arg, SN_READABLE, SN_FOREVER);
}

static int recv_fds(void *arg)
{
    char buf[4];
    int fd, n = 1;
    return (int)sn_recv_fds(arg, buf, 4, &fd, &n, SN_FOREVER);
}

static int write_until_refused(void *arg)
{
    static const char zeros[1 << 16];
    ptrdiff_t n;
    do
        n = x_write(arg, zeros, sizeof(zeros), SN_FOREVER);
    while (n > 0);
    return (int)n;
}

static int write_pieces_until_refused(void *arg)
{
    static char zeros[1 << 16];
    ptrdiff_t n;
    do
        n = sn_writev(arg, &(sn_iov){zeros, sizeof(zeros)}, 1, SN_FOREVER);
    while (n > 0);
    return (int)n;
}

static int close_conn(void *arg)
{
    let_them_wait();
    return sn_close(arg);
}

static void close_under(sn_conn *ends[2], int by_helper)
{
    static int (*const fns[])(void *) = {
        read_once,          read_exactly,        read_pieces, wait_readable,
        read_with_deadline, write_until_refused, recv_fds,    write_pieces_until_refused};
    struct helper h[MANY], closer;
    for (int i = 0; i < MANY; i++)
        help(&h[i], fns[i % 8], ends[0]);
    if (by_helper) {
        help(&closer, close_conn, ends[0]);
        CHECK_EQ(helped(&closer), 0);
    } else {
        CHECK_EQ(close_conn(ends[0]), 0);
    }
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(helped(&h[i]), -EBADF);
    CHECK_EQ(sn_close(ends[1]), 0);
}

NET_TEST(a_close_ends_all_waits_of_readers_and_writers)
{
    for (int by_helper = 0; by_helper < 2; by_helper++) {
        sn_conn *ends[2];
        tcp_pair(ends);
        close_under(ends, by_helper);
        CHECK_EQ(sn_conn_pair(ends), 0);
        close_under(ends, by_helper);
    }
}

NET_TEST(a_close_ends_the_wait_of_one)
{
    sn_conn *ends[2];
    struct helper h;
    for (int i = 0; i < 30; i++) {
        CHECK_EQ(sn_conn_pair(ends), 0);
        help(&h, i % 2 != 0 ? read_once : write_until_refused, ends[0]);
        if (i % 3 == 0)
            let_them_wait();
        else
            sn_yield();
        CHECK_EQ(sn_close(ends[0]), 0);
        CHECK_EQ(helped(&h), -EBADF);
        CHECK_EQ(sn_close(ends[1]), 0);
    }
}

static int accept_once(void *arg)
{
    sn_conn *c;
    return x_accept(arg, &c, NULL, SN_FOREVER);
}

NET_TEST(a_close_ends_all_waits_of_acceptors)
{
    struct place p = listen_at("127.0.0.1:0", NULL);
    struct helper h[MANY];
    for (int i = 0; i < MANY; i++)
        help(&h[i], accept_once, p.listener);
    let_them_wait();
    unlisten(&p);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(helped(&h[i]), -EBADF);
}

static int recv_once(void *arg)
{
    char buf[4];
    return (int)x_recv_from(arg, buf, sizeof(buf), NULL, SN_FOREVER);
}

NET_TEST(a_close_ends_all_waits_for_datagrams)
{
    sn_dgram *d;
    struct helper h[MANY];
    CHECK_EQ(sn_dgram_open(&d, "127.0.0.1:0"), 0);
    for (int i = 0; i < MANY; i++)
        help(&h[i], recv_once, d);
    let_them_wait();
    CHECK_EQ(sn_dgram_close(d), 0);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(helped(&h[i]), -EBADF);
}

static int close_once(void *arg)
{
    return sn_close(arg);
}

NET_TEST(of_many_that_close_one_succeeds)
{
    sn_conn *ends[2];
    struct helper h[MANY];
    CHECK_EQ(sn_conn_pair(ends), 0);
    for (int i = 0; i < MANY; i++)
        help(&h[i], i % 3 == 0 ? read_once : close_once, ends[0]);
    int closed = 0;
    for (int i = 0; i < MANY; i++) {
        int rc = helped(&h[i]);
        if (rc == 0)
            closed++;
        else
            CHECK_EQ(rc, -EBADF);
    }
    CHECK_EQ(closed, 1);
    CHECK_EQ(sn_close(ends[1]), 0);
}

/* The number of the descriptor is soon another's; what is of the old one must not go there. */
NET_TEST(a_descriptor_used_anew_is_not_disturbed_by_an_old_wait)
{
    sn_conn *old[2], *new[2];
    struct helper h;
    char byte;
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(sn_conn_pair(old), 0);
        help(&h, read_once, old[0]);
        if (i % 2 == 0)
            let_them_wait();
        CHECK_EQ(sn_close(old[0]), 0);
        CHECK_EQ(sn_conn_pair(new), 0);
        CHECK_EQ(x_write(new[0], "x", 1, SN_FOREVER), 1);
        CHECK_EQ(x_write(new[1], "y", 1, SN_FOREVER), 1);
        CHECK_EQ(helped(&h), -EBADF);
        CHECK_EQ(sn_close(old[1]), 0); /* not earlier: who has yet to read would find the end */
        CHECK_EQ(x_read(new[0], &byte, 1, SN_FOREVER), 1);
        CHECK_EQ(byte, 'y');
        CHECK_EQ(x_read(new[1], &byte, 1, SN_FOREVER), 1);
        CHECK_EQ(byte, 'x');
        CHECK_EQ(x_read(new[1], &byte, 1, SN_NOWAIT), -ETIMEDOUT);
        close_pair(new);
    }
}

/* ---- handles --------------------------------------------------------------------------------- */

/* Each function of a connection says `rc`. */
static void conn_is(sn_conn *c, int rc)
{
    char buf[4] = {0};
    int value, fd = 0, n = 1;
    sn_addr addr;
    const sn_iov iov = {buf, 4};
    CHECK_EQ(x_read(c, buf, 4, SN_FOREVER), rc);
    CHECK_EQ(x_read(c, buf, 0, SN_FOREVER), rc);
    CHECK_EQ(x_write(c, buf, 4, SN_FOREVER), rc);
    CHECK_EQ(x_write(c, buf, 0, SN_FOREVER), rc);
    CHECK_EQ(sn_read_exact(c, buf, 4, NULL, SN_FOREVER), rc);
    CHECK_EQ(sn_read_exact(c, buf, 0, NULL, SN_FOREVER), rc);
    CHECK_EQ(sn_write_all(c, buf, 4, NULL, SN_FOREVER), rc);
    CHECK_EQ(sn_readv(c, &iov, 1, SN_FOREVER), rc);
    CHECK_EQ(sn_readv(c, NULL, 0, SN_FOREVER), rc);
    CHECK_EQ(sn_writev(c, &iov, 1, SN_FOREVER), rc);
    CHECK_EQ(x_conn_wait(c, SN_READABLE, SN_FOREVER), rc);
    CHECK_EQ(sn_shutdown(c, SN_SHUT_BOTH), rc);
    CHECK_EQ(sn_conn_set(c, SN_CONN_NODELAY, 1), rc);
    CHECK_EQ(sn_conn_get(c, SN_CONN_NODELAY, &value), rc);
    CHECK_EQ(sn_conn_local(c, &addr), rc);
    CHECK_EQ(sn_conn_peer(c, &addr), rc);
    CHECK_EQ(sn_send_fds(c, buf, 1, &fd, 1, SN_FOREVER), rc);
    CHECK_EQ(sn_recv_fds(c, buf, 1, &fd, &n, SN_FOREVER), rc);
    CHECK_EQ(sn_close(c), rc);
}

static void listener_is(sn_listener *l, int rc)
{
    sn_conn *c;
    sn_addr addr;
    CHECK_EQ(x_accept(l, &c, NULL, SN_FOREVER), rc);
    CHECK_EQ(sn_listener_addr(l, &addr), rc);
    CHECK_EQ(sn_listener_close(l), rc);
}

static void dgram_is(sn_dgram *d, int rc)
{
    char buf[4] = {0};
    sn_addr addr;
    CHECK_EQ(x_send_to(d, buf, 4, NULL, SN_FOREVER), rc);
    CHECK_EQ(x_recv_from(d, buf, 4, NULL, SN_FOREVER), rc);
    CHECK_EQ(sn_dgram_connect(d, "127.0.0.1:1"), rc);
    CHECK_EQ(sn_dgram_addr(d, &addr), rc);
    CHECK_EQ(sn_dgram_close(d), rc);
}

NET_TEST(what_is_no_handle_is_ebadf)
{
    static const uintptr_t nothing[] = {0, 1, 8, 0x1234, UINTPTR_MAX, UINTPTR_MAX / 3, 1u << 20};
    for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
        conn_is((sn_conn *)nothing[i], -EBADF);
        listener_is((sn_listener *)nothing[i], -EBADF);
        dgram_is((sn_dgram *)nothing[i], -EBADF);
    }
}

NET_TEST(what_was_closed_is_ebadf_also_when_its_place_is_taken)
{
    sn_conn *c[2], *d[2];
    sn_dgram *g[2];
    sn_listener *l;
    CHECK_EQ(sn_conn_pair(c), 0);
    close_pair(c);
    conn_is(c[0], -EBADF);
    CHECK_EQ(sn_conn_pair(d), 0); /* in the records of the others, perhaps */
    conn_is(c[0], -EBADF);
    conn_is(c[1], -EBADF);
    close_pair(d);
    CHECK_EQ(sn_dgram_pair(g), 0);
    CHECK_EQ(sn_dgram_close(g[0]), 0);
    CHECK_EQ(sn_dgram_close(g[1]), 0);
    dgram_is(g[0], -EBADF);
    CHECK_EQ(sn_listen(&l, "127.0.0.1:0", NULL), 0);
    CHECK_EQ(sn_listener_close(l), 0);
    listener_is(l, -EBADF);
    conn_is((sn_conn *)(void *)l, -EBADF);
}

NET_TEST(a_handle_of_another_kind_is_enotsock_and_is_not_hurt)
{
    sn_conn *c[2];
    sn_dgram *g[2];
    struct place p = listen_at("127.0.0.1:0", NULL);
    char byte;
    CHECK_EQ(sn_conn_pair(c), 0);
    CHECK_EQ(sn_dgram_pair(g), 0);
    conn_is((sn_conn *)(void *)g[0], -ENOTSOCK);
    conn_is((sn_conn *)(void *)p.listener, -ENOTSOCK);
    listener_is((sn_listener *)(void *)c[0], -ENOTSOCK);
    dgram_is((sn_dgram *)(void *)c[0], -ENOTSOCK);
    CHECK_EQ(x_write(c[0], "x", 1, SN_FOREVER), 1);
    CHECK_EQ(x_read(c[1], &byte, 1, SN_FOREVER), 1);
    CHECK_EQ(x_send_to(g[0], "x", 1, NULL, SN_FOREVER), 1);
    CHECK_EQ(x_recv_from(g[1], &byte, 1, NULL, SN_FOREVER), 1);
    close_pair(c);
    CHECK_EQ(sn_dgram_close(g[0]), 0);
    CHECK_EQ(sn_dgram_close(g[1]), 0);
    unlisten(&p);
}
