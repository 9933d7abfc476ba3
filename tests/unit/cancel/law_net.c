/* SPDX-License-Identifier: MIT */
/* law_net.c - the rows of sockets and descriptors. See law.h.
 *
 * Descriptors are made here and adopted, so that `let` can see by poll(2) that its effect has
 * arrived, whatever Sinew knows of it. */
#include "unit/cancel/law.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BLOB = 1 << 20, QUEUE = 64 };

static struct {
    int fd[2];       /* the call is at the first; the second is the other end                  */
    sn_conn *conn;   /* has the first                                                          */
    sn_dgram *dgram; /* instead                                                                */
    sn_addr to;      /* of dgrams                                                              */
    sn_dgram *far;   /* where `to` is                                                          */
    sn_listener *listener;
    char addr[SN_ADDR_TEXT_MAX];
    sn_conn *accepted;
    int queued[QUEUE]; /* who waits to be accepted                                               */
    int queued_n;
    char buf[16];
    size_t done;   /* bytes, of calls that tell                                              */
    size_t filled; /* bytes or datagrams that lie between the two ends                       */
    int got_fd;
} at;

static char blob[BLOB];

static void must(int rc)
{
    CHECK_EQ(rc, 0);
}

/* ---- something to read, or not --------------------------------------------------------------- */

static void open_pair(void)
{
    at.done = 99;
    at.got_fd = -1;
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, at.fd));
    must(sn_conn_adopt(&at.conn, at.fd[0]));
}

static void let_read(void)
{
    CHECK_EQ(send(at.fd[1], "x", 1, 0), 1);
}

static void await_readable(void)
{
    struct pollfd p = {.fd = at.fd[0], .events = POLLIN};
    CHECK_EQ(poll(&p, 1, -1), 1);
}

static void let_read_with_fd(void)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct iovec iov = {"x", 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &at.fd[1], sizeof(int));
    CHECK_EQ(sendmsg(at.fd[1], &msg, 0), 1);
}

static void close_pair(void)
{
    must(sn_close(at.conn));
    must(close(at.fd[1]));
}

/* Nothing is left to be read, and what comes next is read, and whole. */
static void check_reading(void)
{
    char buf[4] = "";
    CHECK_EQ(sn_read(at.conn, buf, sizeof(buf), SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(send(at.fd[1], "abc", 3, 0), 3);
    must(sn_read_exact(at.conn, buf, 3, NULL, SN_FOREVER));
    CHECK_STR_EQ(buf, "abc");
}

static void close_read(bool let, bool took)
{
    char c = 0;
    if (took)
        CHECK_EQ(at.buf[0], 'x');
    if (let && !took) {
        CHECK_EQ(sn_read(at.conn, &c, 1, SN_NOWAIT), 1);
        CHECK_EQ(c, 'x');
    }
    check_reading();
    close_pair();
}

/* Waits for events take nothing. */
static void close_wait(bool let, bool took)
{
    if (took)
        at.buf[0] = 0;
    close_read(let, false);
}

static void close_read_fd(bool let, bool took)
{
    if (took) {
        CHECK_GE(at.got_fd, 0);
        must(close(at.got_fd));
    }
    close_read(let, took); /* a read takes the byte, and the system closes the descriptor */
}

static const struct law_place nothing_to_read = {
    .open = open_pair, .let = let_read, .close = close_read, .settle = await_readable};
static const struct law_place nothing_to_see = {
    .open = open_pair, .let = let_read, .close = close_wait, .settle = await_readable};
static const struct law_place no_fd_to_read = {
    .open = open_pair, .let = let_read_with_fd, .close = close_read_fd, .settle = await_readable};

static ptrdiff_t read_some(sn_deadline until)
{
    return sn_read(at.conn, at.buf, sizeof(at.buf), until);
}

static ptrdiff_t readv_some(sn_deadline until)
{
    sn_iov iov[] = {{at.buf, 1}, {at.buf + 1, 1}};
    return sn_readv(at.conn, iov, 2, until);
}

static ptrdiff_t read_one(sn_deadline until)
{
    int rc = sn_read_exact(at.conn, at.buf, 1, &at.done, until);
    CHECK_EQ(at.done, rc == 0);
    return rc;
}

static ptrdiff_t recv_fds(sn_deadline until)
{
    int n = 1;
    ptrdiff_t rc = sn_recv_fds(at.conn, at.buf, 1, &at.got_fd, &n, until);
    CHECK_EQ(n, rc == 1);
    return rc;
}

static ptrdiff_t wait_readable(sn_deadline until)
{
    return sn_conn_wait(at.conn, SN_READABLE, until);
}

static sn_future *read_op(union law_memory *m)
{
    return sn_read_op(&m->io, at.conn, at.buf, sizeof(at.buf));
}

static sn_future *wait_op(union law_memory *m)
{
    return sn_conn_wait_op(&m->io, at.conn, SN_READABLE);
}

static ptrdiff_t wait_fd(sn_deadline until)
{
    return sn_wait_fd(at.fd[0], SN_READABLE, until);
}

static sn_future *wait_fd_op(union law_memory *m)
{
    return sn_wait_fd_op(&m->io, at.fd[0], SN_READABLE);
}

/* Among others of all kinds. */
static ptrdiff_t select_fd(sn_deadline until)
{
    sn_chan_op op;
    sn_chan *nobody;
    int v;
    must(sn_chan_create(&nobody, sizeof(int), 0, NULL));
    sn_future *fut = sn_chan_recv_op(&op, nobody, &v);
    sn_case cases[] = {sn_case_future(fut), sn_case_recv(nobody, &v),
                       sn_case_deadline(sn_after(SN_S(3600))), sn_case_fd(at.fd[0], SN_READABLE)};
    int rc = sn_select(cases, 4, 0, until);
    must(sn_future_drop(fut));
    must(sn_chan_destroy(nobody));
    return rc == 3 ? cases[3].result : rc;
}

/* ---- some of what is to be read -------------------------------------------------------------- */

static void open_some(void)
{
    open_pair();
    CHECK_EQ(send(at.fd[1], "123", 3, 0), 3);
}

static void close_some(bool let, bool took)
{
    (void)let, (void)took;
    CHECK_EQ(at.done, 3); /* it was told what it has read, and has it */
    CHECK_MEM_EQ(at.buf, "123", 3);
    check_reading();
    close_pair();
}

static const struct law_place some_to_read = {.open = open_some, .close = close_some};

/* Called again, it reads on where it was. */
static ptrdiff_t read_all(sn_deadline until)
{
    size_t had = at.done == 99 ? 0 : at.done;
    int rc = sn_read_exact(at.conn, at.buf + had, sizeof(at.buf) - had, &at.done, until);
    at.done += had;
    return rc;
}

/* ---- TCP, which knows that it has read all there was ----------------------------------------- */

static int bound_socket(int kind, struct sockaddr_in *addr)
{
    socklen_t bytes = sizeof(*addr);
    int fd = socket(AF_INET, kind | SOCK_CLOEXEC, 0);
    *addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    CHECK_GE(fd, 0);
    must(bind(fd, (struct sockaddr *)addr, sizeof(*addr)));
    must(getsockname(fd, (struct sockaddr *)addr, &bytes));
    return fd;
}

static void open_tcp(void)
{
    struct sockaddr_in addr;
    int listener = bound_socket(SOCK_STREAM, &addr);
    must(listen(listener, 1));
    at.fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(connect(at.fd[1], (struct sockaddr *)&addr, sizeof(addr)));
    at.fd[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK_GE(at.fd[0], 0);
    must(close(listener));
    must(sn_conn_adopt(&at.conn, at.fd[0]));
    let_read();
    CHECK_EQ(sn_read(at.conn, at.buf, sizeof(at.buf), SN_FOREVER), 1); /* less than it wanted */
    at.buf[0] = 0;
}

static const struct law_place dry = {
    .open = open_tcp, .let = let_read, .close = close_read, .settle = await_readable};
static const struct law_place dry_to_see = {
    .open = open_tcp, .let = let_read, .close = close_wait, .settle = await_readable};

/* ---- no room to write ------------------------------------------------------------------------ */

static void open_crammed(void)
{
    at.filled = 0;
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, at.fd));
    must(setsockopt(at.fd[0], SOL_SOCKET, SO_SNDBUF, &(int){4096}, sizeof(int)));
    must(sn_conn_adopt(&at.conn, at.fd[0]));
    ptrdiff_t n;
    while ((n = sn_write(at.conn, blob, 1024, SN_NOWAIT)) > 0)
        at.filled += (size_t)n;
    while ((n = sn_write(at.conn, blob, 1, SN_NOWAIT)) > 0)
        at.filled += (size_t)n;
    CHECK_EQ(n, -ETIMEDOUT);
}

static size_t drain(void)
{
    char buf[4096];
    size_t total = 0;
    ssize_t n;
    while ((n = recv(at.fd[1], buf, sizeof(buf), MSG_DONTWAIT)) > 0)
        total += (size_t)n;
    return total;
}

/* Everything but what the call may have written just now. */
static void let_write(void)
{
    char buf[4096];
    for (size_t left = at.filled; left > 0;) {
        ssize_t n = recv(at.fd[1], buf, left < sizeof(buf) ? left : sizeof(buf), 0);
        CHECK_GT(n, 0);
        left -= (size_t)n;
    }
    at.filled = 0;
}

static void close_crammed(bool let, bool took)
{
    CHECK(let || !took);
    CHECK_EQ(drain(), at.filled + (took ? 1 : 0));
    CHECK_EQ(sn_write(at.conn, "yz", 2, SN_NOWAIT), 2);
    CHECK_EQ(drain(), 2);
    close_pair();
}

static void close_writable(bool let, bool took)
{
    (void)took;
    close_crammed(let, false);
}

static const struct law_place crammed = {
    .open = open_crammed, .let = let_write, .close = close_crammed};
static const struct law_place not_writable = {
    .open = open_crammed, .let = let_write, .close = close_writable};

static ptrdiff_t write_some(sn_deadline until)
{
    return sn_write(at.conn, "x", 1, until);
}

static ptrdiff_t writev_some(sn_deadline until)
{
    sn_iov iov[] = {{"x", 1}, {NULL, 0}};
    return sn_writev(at.conn, iov, 2, until);
}

static ptrdiff_t write_one(sn_deadline until)
{
    int rc = sn_write_all(at.conn, "x", 1, &at.done, until);
    CHECK_EQ(at.done, rc == 0);
    return rc;
}

static ptrdiff_t send_fds(sn_deadline until)
{
    return sn_send_fds(at.conn, "x", 1, at.fd, 1, until);
}

static ptrdiff_t wait_writable(sn_deadline until)
{
    return sn_conn_wait(at.conn, SN_WRITABLE, until);
}

static sn_future *write_op(union law_memory *m)
{
    return sn_write_op(&m->io, at.conn, "x", 1);
}

/* ---- room for some of what is to be written -------------------------------------------------- */

static void open_room(void)
{
    for (int i = 0; i < BLOB; i++)
        blob[i] = (char)(i % 251);
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, at.fd));
    must(setsockopt(at.fd[0], SOL_SOCKET, SO_SNDBUF, &(int){4096}, sizeof(int)));
    must(sn_conn_adopt(&at.conn, at.fd[0]));
    at.done = 0;
}

static void close_room(bool let, bool took)
{
    char buf[4096];
    size_t total = 0;
    ssize_t n;
    (void)let, (void)took;
    CHECK_GT(at.done, 0);
    while ((n = recv(at.fd[1], buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
        CHECK_MEM_EQ(buf, blob + total, (size_t)n);
        total += (size_t)n;
    }
    CHECK_EQ(total, at.done); /* it was told what it has written */
    CHECK_EQ(sn_write(at.conn, "yz", 2, SN_NOWAIT), 2);
    CHECK_EQ(drain(), 2);
    close_pair();
}

static const struct law_place room_for_some = {.open = open_room, .close = close_room};

static ptrdiff_t write_blob(sn_deadline until)
{
    size_t had = at.done;
    int rc = sn_write_all(at.conn, blob + had, BLOB - had, &at.done, until);
    at.done += had;
    return rc;
}

/* ---- nobody who connects --------------------------------------------------------------------- */

static struct sockaddr_in listen_at(int backlog)
{
    sn_addr where;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    must(sn_listen(&at.listener, "127.0.0.1:0", &(sn_listen_options){.backlog = backlog}));
    must(sn_listener_addr(at.listener, &where));
    CHECK_GT(sn_addr_format(&where, at.addr, sizeof(at.addr)), 0);
    unsigned port;
    CHECK_EQ(sscanf(at.addr, "127.0.0.1:%u", &port), 1);
    to.sin_port = htons((uint16_t)port);
    return to;
}

static struct sockaddr_in listens_at;

static void open_listener(void)
{
    at.accepted = NULL;
    at.queued_n = 0;
    listens_at = listen_at(0);
}

static void let_accept(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(connect(fd, (struct sockaddr *)&listens_at, sizeof(listens_at)));
    at.queued[at.queued_n++] = fd;
}

/* Who connects is accepted, once. */
static void close_listener(bool let, bool took)
{
    CHECK_EQ(at.accepted != NULL, took);
    for (int left = (let && !took) + 1; left > 0; left--) {
        if (left == 1) {
            sn_conn *none;
            CHECK_EQ(sn_accept(at.listener, &none, NULL, SN_NOWAIT), -ETIMEDOUT);
            let_accept();
        }
        sn_conn *conn;
        must(sn_accept(at.listener, &conn, NULL, SN_FOREVER));
        must(sn_close(conn));
    }
    if (took)
        must(sn_close(at.accepted));
    while (at.queued_n > 0)
        must(close(at.queued[--at.queued_n]));
    must(sn_listener_close(at.listener));
}

static const struct law_place nobody_connects = {
    .open = open_listener, .let = let_accept, .close = close_listener};

static ptrdiff_t accept_one(sn_deadline until)
{
    return sn_accept(at.listener, &at.accepted, NULL, until);
}

static sn_future *accept_op(union law_memory *m)
{
    return sn_accept_op(&m->io, at.listener, &at.accepted);
}

/* ---- a listener whose queue is full ---------------------------------------------------------- */

static void connect_until_full(int family, const void *addr, socklen_t bytes)
{
    for (at.queued_n = 0; at.queued_n < QUEUE; at.queued_n++) {
        int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        CHECK_GE(fd, 0);
        int rc = connect(fd, addr, bytes);
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        if (rc < 0 && (errno != EINPROGRESS || poll(&p, 1, 0) != 1)) {
            must(close(fd));
            return;
        }
        at.queued[at.queued_n] = fd;
    }
    FAIL("the queue of a listener is never full");
}

static void open_full_tcp(void)
{
    at.conn = NULL;
    struct sockaddr_in to = listen_at(1);
    connect_until_full(AF_INET, &to, sizeof(to));
}

static void open_full_unix(void)
{
    static int counter;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int n = snprintf(to.sun_path, sizeof(to.sun_path), "%s/law%d", temp_dir(), counter++);
    CHECK_LT(n, (int)sizeof(to.sun_path));
    (void)snprintf(at.addr, sizeof(at.addr), "unix:%s", to.sun_path);
    at.conn = NULL;
    must(sn_listen(&at.listener, at.addr, &(sn_listen_options){.backlog = 1}));
    connect_until_full(AF_UNIX, &to, sizeof(to));
}

/* Make room. Everybody in the queue is accepted, and the call comes next. */
static void let_connect(void)
{
    while (at.queued_n > 0) {
        sn_conn *conn;
        must(sn_accept(at.listener, &conn, NULL, SN_FOREVER));
        must(sn_close(conn));
        must(close(at.queued[--at.queued_n]));
    }
}

static void close_full_queue(bool let, bool took)
{
    sn_conn *conn;
    CHECK_EQ(at.conn != NULL, took);
    if (!let)
        let_connect();
    if (took)
        must(sn_close(at.conn));
    must(sn_connect(&conn, at.addr, SN_FOREVER));
    must(sn_close(conn));
    must(sn_listener_close(at.listener));
}

static const struct law_place full_tcp = {
    .open = open_full_tcp, .let = let_connect, .close = close_full_queue};
static const struct law_place full_unix = {
    .open = open_full_unix, .let = let_connect, .close = close_full_queue};

static ptrdiff_t connect_once(sn_deadline until)
{
    return sn_connect(&at.conn, at.addr, until);
}

/* ---- datagrams ------------------------------------------------------------------------------- */

static void open_dgram(void)
{
    sn_addr where;
    char text[SN_ADDR_TEXT_MAX];
    unsigned port;
    must(sn_dgram_open(&at.dgram, "127.0.0.1:0"));
    must(sn_dgram_addr(at.dgram, &where));
    CHECK_GT(sn_addr_format(&where, text, sizeof(text)), 0);
    CHECK_EQ(sscanf(text, "127.0.0.1:%u", &port), 1);
    struct sockaddr_in from;
    at.fd[1] = bound_socket(SOCK_DGRAM, &from);
    from.sin_port = htons((uint16_t)port);
    must(connect(at.fd[1], (struct sockaddr *)&from, sizeof(from)));
}

static void let_dgram(void)
{
    CHECK_EQ(send(at.fd[1], "xy", 2, 0), 2); /* on the loopback it has arrived by then */
}

static void close_dgram(bool let, bool took)
{
    char buf[8] = "";
    if (took)
        CHECK_MEM_EQ(at.buf, "xy", 2);
    if (let && !took)
        CHECK_EQ(sn_recv_from(at.dgram, buf, sizeof(buf), NULL, SN_NOWAIT), 2);
    CHECK_EQ(sn_recv_from(at.dgram, buf, sizeof(buf), NULL, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(send(at.fd[1], "abc", 3, 0), 3);
    CHECK_EQ(sn_recv_from(at.dgram, buf, sizeof(buf), NULL, SN_FOREVER), 3);
    must(sn_dgram_close(at.dgram));
    must(close(at.fd[1]));
}

static const struct law_place no_dgram = {
    .open = open_dgram, .let = let_dgram, .close = close_dgram};

static ptrdiff_t recv_dgram(sn_deadline until)
{
    return sn_recv_from(at.dgram, at.buf, sizeof(at.buf), NULL, until);
}

static sn_future *recv_dgram_op(union law_memory *m)
{
    return sn_recv_from_op(&m->io, at.dgram, at.buf, sizeof(at.buf), NULL);
}

/* Two Unix sockets, the queue of the second full: connected, or each with a name. */
static void fill_queue(const sn_addr *to)
{
    for (at.filled = 0; sn_send_to(at.dgram, "0", 1, to, SN_NOWAIT) == 1;)
        at.filled++;
}

static void open_connected(void)
{
    sn_dgram *ends[2];
    must(sn_dgram_pair(ends));
    at.dgram = ends[0];
    at.far = ends[1];
    fill_queue(NULL);
}

static void open_named(void)
{
    static int counter;
    char text[2][SN_ADDR_TEXT_MAX];
    for (int i = 0; i < 2; i++) {
        int n = snprintf(text[i], sizeof(text[i]), "unix:%s/d%d", temp_dir(), counter++);
        CHECK_LT(n, (int)sizeof(text[i]));
    }
    must(sn_dgram_open(&at.dgram, text[0]));
    must(sn_dgram_open(&at.far, text[1]));
    must(sn_addr_parse(text[1], &at.to));
    fill_queue(&at.to);
}

static void let_send(void)
{
    char buf[4];
    for (; at.filled > 0; at.filled--) {
        CHECK_EQ(sn_recv_from(at.far, buf, sizeof(buf), NULL, SN_FOREVER), 1);
        CHECK_EQ(buf[0], '0');
    }
}

static void close_full_queue_of_dgrams(bool let, bool took)
{
    char buf[4];
    CHECK(let || !took);
    let_send();
    if (took) {
        CHECK_EQ(sn_recv_from(at.far, buf, sizeof(buf), NULL, SN_NOWAIT), 2);
        CHECK_MEM_EQ(buf, "xy", 2);
    }
    CHECK_EQ(sn_recv_from(at.far, buf, sizeof(buf), NULL, SN_NOWAIT), -ETIMEDOUT);
    must(sn_dgram_close(at.dgram));
    must(sn_dgram_close(at.far));
}

static const struct law_place full_connected = {
    .open = open_connected, .let = let_send, .close = close_full_queue_of_dgrams};
static const struct law_place full_named = {
    .open = open_named, .let = let_send, .close = close_full_queue_of_dgrams};

static ptrdiff_t send_dgram(sn_deadline until)
{
    return sn_send_to(at.dgram, "xy", 2, NULL, until);
}

static ptrdiff_t send_named(sn_deadline until)
{
    return sn_send_to(at.dgram, "xy", 2, &at.to, until);
}

static sn_future *send_dgram_op(union law_memory *m)
{
    return sn_send_to_op(&m->io, at.dgram, "xy", 2, NULL);
}

static sn_future *send_named_op(union law_memory *m)
{
    return sn_send_to_op(&m->io, at.dgram, "xy", 2, &at.to);
}

/* ---- the rows -------------------------------------------------------------------------------- */

/* A future that asks its driver, because it cannot try or takes it for granted that it would be in
 * vain, is pending at first; and so it can be dropped by then. */
#define OP   LAW_NEEDS_RUNTIME
#define ASKS (LAW_NEEDS_RUNTIME | LAW_DOUBTFUL)

static const struct law_row rows[] = {
    LAW(sn_read, .place = &nothing_to_read, .plain = read_some, .takes = 1),
    LAW(sn_read, .variant = "TCP", .place = &dry, .plain = read_some, .takes = 1),
    LAW(sn_readv, .place = &nothing_to_read, .plain = readv_some, .takes = 1),
    LAW(sn_readv, .variant = "TCP", .place = &dry, .plain = readv_some, .takes = 1),
    LAW(sn_read_exact, .place = &nothing_to_read, .plain = read_one),
    LAW(sn_read_exact, .variant = "some are there", .place = &some_to_read, .plain = read_all),
    LAW(sn_recv_fds, .place = &no_fd_to_read, .plain = recv_fds, .takes = 1),
    LAW(sn_read_op, .place = &nothing_to_read, .op = read_op, .takes = 1, .flags = OP),
    LAW(sn_read_op, .variant = "TCP", .place = &dry, .op = read_op, .takes = 1, .flags = ASKS),
    LAW(sn_conn_wait, .place = &nothing_to_see, .plain = wait_readable, .takes = SN_READABLE),
    LAW(sn_conn_wait, .variant = "TCP", .place = &dry_to_see, .plain = wait_readable,
        .takes = SN_READABLE),
    LAW(sn_conn_wait, .variant = "writable", .place = &not_writable, .plain = wait_writable,
        .takes = SN_WRITABLE),
    LAW(sn_conn_wait_op, .place = &nothing_to_see, .op = wait_op, .takes = SN_READABLE,
        .flags = ASKS),
    LAW(sn_conn_wait_op, .variant = "TCP", .place = &dry_to_see, .op = wait_op,
        .takes = SN_READABLE, .flags = ASKS),
    LAW(sn_wait_fd, .place = &nothing_to_see, .plain = wait_fd, .takes = SN_READABLE),
    LAW(sn_wait_fd_op, .place = &nothing_to_see, .op = wait_fd_op, .takes = SN_READABLE,
        .flags = ASKS),
    LAW(sn_select, .variant = "descriptor", .place = &nothing_to_see, .plain = select_fd,
        .takes = SN_READABLE),
    LAW(sn_write, .place = &crammed, .plain = write_some, .takes = 1),
    LAW(sn_writev, .place = &crammed, .plain = writev_some, .takes = 1),
    LAW(sn_write_all, .place = &crammed, .plain = write_one),
    LAW(sn_write_all, .variant = "room for some", .place = &room_for_some, .plain = write_blob),
    LAW(sn_send_fds, .place = &crammed, .plain = send_fds, .takes = 1),
    LAW(sn_write_op, .place = &crammed, .op = write_op, .takes = 1, .flags = ASKS),
    LAW(sn_accept, .place = &nobody_connects, .plain = accept_one),
    LAW(sn_accept_op, .place = &nobody_connects, .op = accept_op, .flags = OP),
    LAW(sn_connect, .variant = "TCP", .place = &full_tcp, .plain = connect_once,
        .flags = LAW_DOUBTFUL),
    LAW(sn_connect, .variant = "Unix", .place = &full_unix, .plain = connect_once),
    LAW(sn_recv_from, .place = &no_dgram, .plain = recv_dgram, .takes = 2),
    LAW(sn_recv_from_op, .place = &no_dgram, .op = recv_dgram_op, .takes = 2, .flags = OP),
    LAW(sn_send_to, .place = &full_connected, .plain = send_dgram, .takes = 2),
    LAW(sn_send_to, .variant = "by name", .place = &full_named, .plain = send_named, .takes = 2),
    LAW(sn_send_to_op, .place = &full_connected, .op = send_dgram_op, .takes = 2, .flags = ASKS),
    LAW(sn_send_to_op, .variant = "by name", .place = &full_named, .op = send_named_op, .takes = 2,
        .flags = OP),
};

const struct law_rows law_of_sockets = {rows, sizeof(rows) / sizeof(rows[0])};
