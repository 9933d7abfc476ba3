/* SPDX-License-Identifier: MIT */
/* Sockets and the lives of runtimes (R80, R84, R85): used in several, one after the other and at
 * once; abandoned in the middle of a wait; beside a task that does not give way. */
#include "on_driver.h"
#include "suite.h"

#include "base/atomic.h"
#include "plat/clock.h"
#include "sched/sched.h"

#include <sys/eventfd.h>
#include <unistd.h>

/* ---- one after the other --------------------------------------------------------------------- */

static sn_conn *ends[2];

/* Both ends have been waited for in both directions: a driver may have registered them. */
static int use_both(void *arg)
{
    (void)arg;
    char buf[4];
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(sn_read(ends[i], buf, 4, soon()), -ETIMEDOUT);
        CHECK_EQ(sn_conn_wait(ends[i], SN_WRITABLE, SN_FOREVER), SN_WRITABLE);
    }
    return 0;
}

static int write_later(void *arg)
{
    let_them_wait();
    CHECK_EQ(sn_write(arg, "xyz", 3, SN_FOREVER), 3);
    return 0;
}

static int read_both(void *arg)
{
    (void)arg;
    char buf[4];
    for (int i = 0; i < 2; i++) {
        sn_task *writer = sn_spawn(write_later, ends[1 - i]);
        CHECK_EQ(sn_read(ends[i], buf, 4, SN_FOREVER), 3);
        CHECK_EQ(sn_join(writer, NULL), 0);
    }
    return 0;
}

DRIVER_TEST(a_socket_outlives_the_runtimes_it_was_used_in)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        tcp_pair(ends);
        for (int i = 0; i < 3; i++) {
            sn_runtime *rt = runtime_on(io, workers);
            CHECK_EQ(sn_runtime_block_on(rt, use_both, NULL), 0);
            CHECK_EQ(sn_runtime_block_on(rt, read_both, NULL), 0);
            sn_runtime_destroy(rt);
        }
        char byte;
        CHECK_EQ(sn_write(ends[0], "x", 1, SN_FOREVER), 1); /* by this thread */
        CHECK_EQ(sn_read(ends[1], &byte, 1, SN_FOREVER), 1);
        close_pair(ends);
    }
}

/* A runtime without threads that nobody drives any more is no help to others. */
DRIVER_TEST(a_socket_does_not_hang_on_a_runtime_that_nobody_drives)
{
    sn_runtime *idle = runtime_on(io, 1), *busy = runtime_on(io, 2);
    tcp_pair(ends);
    CHECK_EQ(sn_runtime_block_on(idle, use_both, NULL), 0);
    CHECK_EQ(sn_runtime_block_on(busy, read_both, NULL), 0);
    CHECK_EQ(sn_runtime_block_on(idle, read_both, NULL), 0);
    CHECK_EQ(sn_runtime_block_on(busy, use_both, NULL), 0);
    sn_runtime_destroy(idle);
    CHECK_EQ(sn_runtime_block_on(busy, read_both, NULL), 0);
    close_pair(ends);
    sn_runtime_destroy(busy);
}

/* ---- what one driver knows is nothing to another --------------------------------------------- */

/* A deadline only for who would wait for ever. */
static sn_deadline late(void)
{
    return sn_after(SN_S(15));
}

/* Read less than asked for, after a wait: it is known that there is no more. */
static int read_short(void *arg)
{
    char buf[4];
    sn_task *writer = sn_spawn(write_later, ends[1]);
    CHECK_EQ(sn_read(arg, buf, 4, late()), 3);
    return sn_join(writer, NULL);
}

typedef struct reads_short {
    sn_coro coro;
    sn_io_state io;
    char buf[4];
} reads_short;

SN_CORO(reads_short, self)
{
    int n;
    SN_BEGIN(self);
    SN_AWAIT_INTO(n, sn_read_op(&self->io, ends[0], self->buf, 4));
    SN_RETURN(n);
    SN_END();
}

static int read_short_as_coro(void *arg)
{
    (void)arg;
    reads_short frame = {.buf = ""};
    sn_task *writer = sn_spawn(write_later, ends[1]);
    sn_task *reader = sn_spawn_coro(reads_short, &frame);
    CHECK_EQ(sn_join(reader, NULL), 3);
    return sn_join(writer, NULL);
}

static int wait_to_write_and_read(void *arg)
{
    char buf[4];
    CHECK_EQ(sn_conn_wait(arg, SN_WRITABLE, late()), SN_WRITABLE);
    CHECK_EQ(sn_read(arg, buf, 4, late()), 3);
    return 0;
}

DRIVER_TEST(what_a_runtime_that_is_gone_knew_of_a_socket_does_not_count)
{
    tcp_pair(ends);
    for (int i = 0; i < 3; i++) {
        sn_runtime *rt = runtime_on(io, 1);
        CHECK_EQ(sn_runtime_block_on(rt, read_short, ends[0]), 0);
        sn_runtime_destroy(rt);
        CHECK_EQ(sn_write(ends[1], "abc", 3, SN_FOREVER), 3);
        rt = runtime_on(io, 1);
        CHECK_EQ(sn_runtime_block_on(rt, wait_to_write_and_read, ends[0]), 0);
        sn_runtime_destroy(rt);
    }
    close_pair(ends);
}

/* Something else is waited for, and the driver is asked for all it has. */
static int reap_and_read(void *arg)
{
    char buf[4];
    sn_task *writer = sn_spawn(write_later, ends[0]);
    CHECK_EQ(sn_read(ends[1], buf, 4, late()), 3);
    CHECK_EQ(sn_join(writer, NULL), 0);
    CHECK_EQ(sn_read(arg, buf, 4, late()), 3);
    return 0;
}

/* Let the runtime open what descriptors it needs. */
static int open_driver(void *arg)
{
    (void)arg;
    sn_conn *c[2];
    CHECK_EQ(sn_conn_pair(c), 0);
    CHECK_EQ(sn_conn_wait(c[0], SN_WRITABLE, late()), SN_WRITABLE);
    close_pair(c);
    return 0;
}

/* The other has known one with the same number. */
DRIVER_TEST(what_another_runtime_knows_of_a_socket_does_not_count)
{
    sn_runtime *home = runtime_on(io, 1), *other = runtime_on(io, 1);
    CHECK_EQ(sn_runtime_block_on(home, open_driver, NULL), 0);
    CHECK_EQ(sn_runtime_block_on(other, open_driver, NULL), 0);
    tcp_pair(ends);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(sn_runtime_block_on(other, read_short, ends[0]), 0);
    close_pair(ends);
    tcp_pair(ends);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(sn_runtime_block_on(home, read_short, ends[0]), 0);
        CHECK_EQ(sn_runtime_block_on(other, i == 0 ? read_short : read_short_as_coro, ends[0]), 0);
        CHECK_EQ(sn_write(ends[1], "abc", 3, SN_FOREVER), 3);
        CHECK_EQ(sn_runtime_block_on(home, reap_and_read, ends[0]), 0);
    }
    close_pair(ends);
    sn_runtime_destroy(home);
    sn_runtime_destroy(other);
}

/* ---- at once --------------------------------------------------------------------------------- */

static SNI_ATOMIC(int) sum;

static int read_and_add(void *arg)
{
    unsigned char byte;
    ptrdiff_t n;
    while ((n = sn_read(arg, &byte, 1, SN_FOREVER)) == 1)
        sni_atomic_fetch_add(&sum, byte, relaxed); /* relaxed: joined before it is read */
    return (int)n;
}

static void two_at_once(sn_io_driver io, unsigned first, unsigned second)
{
    sn_runtime *rt[2] = {runtime_on(io, first), runtime_on(io, second)};
    sn_task *readers[6];
    tcp_pair(ends);
    sni_atomic_store(&sum, 0, relaxed); /* relaxed: nobody else yet */
    for (int i = 0; i < 6; i++)
        CHECK((readers[i] = sn_runtime_spawn(rt[i % 2], read_and_add, ends[1])) != NULL);
    int sent = 0;
    for (int i = 0; i < 300; i++) {
        unsigned char byte = (unsigned char)i;
        CHECK_EQ(sn_write(ends[0], &byte, 1, SN_FOREVER), 1);
        sent += byte;
        if (i % 50 == 0)
            let_them_wait();
    }
    CHECK_EQ(sn_shutdown(ends[0], SN_SHUT_WRITE), 0);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(sn_join(readers[i], NULL), 0);
    CHECK_EQ(sni_atomic_load(&sum, relaxed), sent); /* relaxed: all are joined */
    sn_runtime_destroy(rt[0]);
    close_pair(ends);
    sn_runtime_destroy(rt[1]);
}

DRIVER_TEST(a_socket_is_used_by_two_runtimes_at_once)
{
    two_at_once(io, 2, 2);
    two_at_once(io, 3, 2);
}

TEST(a_socket_is_used_by_runtimes_with_different_drivers, .limit_s = 60)
{
    static const sn_io_driver all[] = {SN_IO_URING, SN_IO_EPOLL, SN_IO_POLL, SN_IO_EPOLL};
    sn_runtime *rt[4];
    sn_task *readers[8];
    for (int i = 0; i < 4; i++)
        rt[i] = runtime_on(all[i], 2);
    tcp_pair(ends);
    for (int i = 0; i < 8; i++)
        CHECK((readers[i] = sn_runtime_spawn(rt[i % 4], read_and_add, ends[1])) != NULL);
    let_them_wait();
    for (int i = 0; i < 300; i++)
        CHECK_EQ(sn_write(ends[0], "\1", 1, SN_FOREVER), 1);
    CHECK_EQ(sn_shutdown(ends[0], SN_SHUT_WRITE), 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(sn_join(readers[i], NULL), 0);
    CHECK_EQ(sni_atomic_load(&sum, relaxed), 300); /* relaxed: all are joined */
    close_pair(ends);
    for (int i = 0; i < 4; i++)
        sn_runtime_destroy(rt[i]);
}

/* ---- abandoned ------------------------------------------------------------------------------- */

static sn_conn *quiet[2];
static sn_listener *listener;
static sn_dgram *dgram;
static int event_fd;

static int wait_in_read(void *arg)
{
    char buf[4];
    return (int)sn_read(arg, buf, 4, SN_FOREVER);
}

static int wait_in_read_until(void *arg)
{
    char buf[4];
    return (int)sn_read(arg, buf, 4, sn_after(SN_S(1000)));
}

static int wait_in_write(void *arg)
{
    static const char zeros[1 << 16];
    ptrdiff_t n;
    do
        n = sn_write(arg, zeros, sizeof(zeros), SN_FOREVER);
    while (n > 0);
    return (int)n;
}

static int wait_in_accept(void *arg)
{
    sn_conn *c;
    return sn_accept(arg, &c, NULL, SN_FOREVER);
}

static int wait_in_recv(void *arg)
{
    char buf[4];
    return (int)sn_recv_from(arg, buf, 4, NULL, SN_FOREVER);
}

static int wait_in_fd(void *arg)
{
    (void)arg;
    return sn_wait_fd(event_fd, SN_READABLE, SN_FOREVER);
}

typedef struct waiting {
    sn_coro coro;
    sn_io_state io;
    int what;
    sn_conn *conn;
    char buf[4];
} waiting;

static sn_future *future_of(waiting *w)
{
    switch (w->what) {
    case 0:
        return sn_read_op(&w->io, quiet[0], w->buf, 4);
    case 1:
        return sn_accept_op(&w->io, listener, &w->conn);
    case 2:
        return sn_recv_from_op(&w->io, dgram, w->buf, 4, NULL);
    case 3:
        return sn_wait_fd_op(&w->io, event_fd, SN_READABLE);
    default:
        return sn_conn_wait_op(&w->io, ends[1], SN_READABLE);
    }
}

SN_CORO(waiting, self)
{
    int rc;
    SN_BEGIN(self);
    SN_AWAIT_INTO(rc, future_of(self));
    SN_RETURN(rc);
    SN_END();
}

enum { WAITING = 12 };

/* One of them reads what another writes, and ends. Unless all are to be abandoned at once, it has
 * when this returns. */
static int spawn_waiting(void *arg)
{
    const bool *at_once = arg;
    int error;
    CHECK_EQ(sn_spawn_detached(wait_in_read, quiet[0]), 0);
    CHECK_EQ(sn_spawn_detached(wait_in_read_until, quiet[0]), 0);
    sn_task *ends_soon = sn_spawn(wait_in_read, ends[0]);
    CHECK_EQ(sn_spawn_detached(wait_in_write, ends[1]), 0);
    if (*at_once)
        CHECK_EQ(sn_detach(ends_soon), 0);
    else
        CHECK_GT(sn_join(ends_soon, NULL), 0);
    CHECK_EQ(sn_spawn_detached(wait_in_accept, listener), 0);
    CHECK_EQ(sn_spawn_detached(wait_in_recv, dgram), 0);
    CHECK_EQ(sn_spawn_detached(wait_in_fd, NULL), 0);
    for (int i = 0; i < 5; i++) {
        waiting w = {.what = i};
        sn_task *none = sn_spawn_coro(waiting, &w, .detached = true, .error = &error);
        CHECK(none == NULL);
        CHECK_EQ(error, 0);
    }
    let_them_wait();
    return 0;
}

/* ends[1] is full, and what was written is read by nobody but this. */
static void check_alive(void)
{
    static char buf[1 << 16];
    CHECK_GT(sn_read(ends[0], buf, sizeof(buf), SN_FOREVER), 0);
    while (sn_read(ends[0], buf, sizeof(buf), soon()) > 0) {
    }
    CHECK_EQ(sn_write(ends[0], "abc", 3, SN_FOREVER), 3);
    CHECK_EQ(sn_read(ends[1], buf, 8, SN_FOREVER), 3);
    CHECK_EQ(sn_write(quiet[1], "abc", 3, SN_FOREVER), 3);
    CHECK_EQ(sn_read(quiet[0], buf, 8, SN_FOREVER), 3);
    sn_addr to;
    CHECK_EQ(sn_dgram_addr(dgram, &to), 0);
    CHECK_EQ(sn_send_to(dgram, "abc", 3, &to, SN_FOREVER), 3);
    CHECK_EQ(sn_recv_from(dgram, buf, 8, NULL, SN_FOREVER), 3);
    CHECK_EQ(eventfd_write(event_fd, 1), 0);
    CHECK_EQ(sn_wait_fd(event_fd, SN_READABLE, SN_FOREVER), SN_READABLE);
}

static void abandon(sn_io_driver io, unsigned workers, bool at_once)
{
    sn_runtime *rt = runtime_on(io, workers);
    CHECK_EQ(sn_conn_pair(ends), 0);
    CHECK_EQ(sn_conn_pair(quiet), 0);
    CHECK_EQ(sn_listen(&listener, "127.0.0.1:0", NULL), 0);
    CHECK_EQ(sn_dgram_open(&dgram, "127.0.0.1:0"), 0);
    event_fd = eventfd(0, EFD_CLOEXEC);
    CHECK_EQ(sn_runtime_block_on(rt, spawn_waiting, &at_once), 0);
    if (at_once) { /* they know that they are over, but may not run any more */
        CHECK_GE(sn_runtime_shutdown(rt, SN_NOWAIT), 0);
    } else {
        CHECK_EQ(sn_runtime_shutdown(rt, soon()), WAITING - 1);
        check_alive();
    }
    close_pair(ends);
    close_pair(quiet);
    CHECK_EQ(sn_listener_close(listener), 0);
    CHECK_EQ(sn_dgram_close(dgram), 0);
    sn_runtime_destroy(rt);
    CHECK_EQ(close(event_fd), 0);
}

DRIVER_TEST(tasks_that_wait_are_abandoned_and_their_sockets_live_on)
{
    abandon(io, 1, false);
    abandon(io, 3, false);
}

static int wait_in_connect(void *arg)
{
    sn_conn *c;
    return sn_connect(&c, arg, SN_FOREVER);
}

static int spawn_connecting(void *arg)
{
    for (int i = 0; i < 3; i++)
        CHECK_EQ(sn_spawn_detached(wait_in_connect, arg), 0);
    let_them_wait();
    return 0;
}

/* The descriptor of a connection that is not yet made is nobody's but the task's. */
DRIVER_TEST(tasks_that_connect_are_abandoned_and_leave_no_descriptor)
{
    enum { MANY = 20 };
    sn_conn *c[MANY];
    struct place p = listen_at("127.0.0.1:0", &(sn_listen_options){.backlog = 1});
    int n = fill_queue(&p, c, MANY);
    for (unsigned workers = 1; workers <= 2; workers++) {
        sn_runtime *rt = runtime_on(io, workers);
        CHECK_EQ(sn_runtime_block_on(rt, spawn_connecting, p.addr), 0);
        CHECK_EQ(sn_runtime_shutdown(rt, soon()), 3);
        sn_runtime_destroy(rt);
    }
    while (n > 0)
        CHECK_EQ(sn_close(c[--n]), 0);
    unlisten(&p);
}

/* A full Unix listener refuses, and who connects asks again now and then. */
DRIVER_TEST(tasks_that_ask_a_full_listener_again_are_abandoned_and_leave_no_descriptor)
{
    enum { MANY = 20 };
    char text[SN_ADDR_TEXT_MAX];
    sn_conn *c[MANY];
    int n = 0;
    struct place p = listen_at(unix_addr(text, "full"), &(sn_listen_options){.backlog = 1});
    while (n < MANY && sn_connect(&c[n], p.addr, SN_NOWAIT) == 0)
        n++;
    CHECK_LT(n, MANY);
    for (unsigned workers = 1; workers <= 2; workers++) {
        sn_runtime *rt = runtime_on(io, workers);
        CHECK_EQ(sn_runtime_block_on(rt, spawn_connecting, p.addr), 0);
        CHECK_EQ(sn_runtime_shutdown(rt, soon()), 3);
        sn_runtime_destroy(rt);
    }
    while (n > 0)
        CHECK_EQ(sn_close(c[--n]), 0);
    unlisten(&p);
}

static int accept_and_close(void *arg)
{
    sn_conn *c;
    int rc = sn_accept(arg, &c, NULL, SN_FOREVER);
    return rc < 0 ? rc : sn_close(c);
}

static int receive_and_close(void *arg)
{
    char byte;
    int fds[2], n = 2;
    ptrdiff_t rc = sn_recv_fds(arg, &byte, 1, fds, &n, SN_FOREVER);
    while (n > 0)
        CHECK_EQ(close(fds[--n]), 0);
    return (int)rc;
}

static int spawn_receiving(void *arg)
{
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(sn_spawn_detached(accept_and_close, arg), 0);
        CHECK_EQ(sn_spawn_detached(receive_and_close, ends[0]), 0);
    }
    let_them_wait();
    return 0;
}

/* What they have waited for comes, and they do not run any more. */
DRIVER_TEST(tasks_that_get_descriptors_are_abandoned_and_leave_none)
{
    struct place p = listen_at("127.0.0.1:0", NULL);
    sn_conn *c[3];
    int fds[2] = {0, 0};
    sn_runtime *rt = runtime_on(io, 1);
    CHECK_EQ(sn_conn_pair(ends), 0);
    CHECK_EQ(sn_runtime_block_on(rt, spawn_receiving, p.listener), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(sn_connect(&c[i], p.addr, SN_FOREVER), 0);
        CHECK_EQ(sn_send_fds(ends[1], "x", 1, fds, 2, SN_FOREVER), 1);
    }
    CHECK_EQ(sn_runtime_shutdown(rt, SN_NOWAIT), 6);
    sn_runtime_destroy(rt);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(sn_close(c[i]), 0);
    close_pair(ends);
    unlisten(&p);
}

DRIVER_TEST(tasks_are_abandoned_at_once_in_the_middle_of_traffic)
{
    for (int i = 0; i < 5; i++) {
        abandon(io, 1, true);
        abandon(io, 3, true);
    }
}

/* ---- abandoned when it gave way -------------------------------------------------------------- */

enum { MUCH = 200 }; /* more than a task does before it gives way */

static struct place door;

static int read_all(void *arg)
{
    char byte;
    while (sn_read(arg, &byte, 1, SN_FOREVER) == 1) {
    }
    return 0;
}

static int read_all_pieces(void *arg)
{
    char byte;
    sn_iov piece = {&byte, 1};
    while (sn_readv(arg, &piece, 1, SN_FOREVER) == 1) {
    }
    return 0;
}

static int receive_all(void *arg)
{
    char byte;
    while (sn_recv_from(arg, &byte, 1, NULL, SN_FOREVER) == 1) {
    }
    return 0;
}

static int receive_all_fds(void *arg)
{
    char byte;
    int fd, n = 1;
    while (sn_recv_fds(arg, &byte, 1, &fd, &n, SN_FOREVER) == 1) {
        CHECK_EQ(n, 1);
        CHECK_EQ(close(fd), 0);
    }
    return 0;
}

static int wait_all(void *arg)
{
    while (sn_conn_wait(arg, SN_READABLE, SN_FOREVER) == SN_READABLE) {
    }
    return 0;
}

static int accept_all(void *arg)
{
    sn_conn *c;
    while (sn_accept(arg, &c, NULL, SN_FOREVER) == 0)
        CHECK_EQ(sn_close(c), 0);
    return 0;
}

struct busy {
    sn_task_fn *fn;
    void *arg;
};

static int leave_it_busy(void *arg)
{
    const struct busy *busy = arg;
    CHECK_EQ(sn_spawn_detached(busy->fn, busy->arg), 0);
    sn_yield();
    return 0; /* it has had its share, not all it wanted */
}

static void abandon_busy(sn_io_driver io, sn_task_fn *fn, void *arg)
{
    sn_runtime *rt = runtime_on(io, 1);
    struct busy busy = {fn, arg};
    CHECK_EQ(sn_runtime_block_on(rt, leave_it_busy, &busy), 0);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_NOWAIT), 1);
    sn_runtime_destroy(rt);
}

/* Its use of the socket is over, so that a close is one. */
DRIVER_TEST(a_task_that_is_abandoned_when_it_gave_way_does_not_keep_the_socket)
{
    static const char zeros[MUCH];
    sn_task_fn *readers[] = {read_all, read_all_pieces, wait_all};
    char byte;
    for (int i = 0; i < 3; i++) {
        tcp_pair(ends);
        CHECK_EQ(sn_write_all(ends[1], zeros, MUCH, NULL, SN_FOREVER), 0);
        abandon_busy(io, readers[i], ends[0]);
        CHECK_EQ(sn_close(ends[0]), 0);
        ptrdiff_t n = sn_read(ends[1], &byte, 1, late());
        CHECK(n == 0 || n == -ECONNRESET); /* there was more to read */
        CHECK_EQ(sn_close(ends[1]), 0);
    }
    sn_dgram *d[2];
    CHECK_EQ(sn_dgram_open(&d[0], "127.0.0.1:0"), 0);
    CHECK_EQ(sn_dgram_open(&d[1], "127.0.0.1:0"), 0);
    sn_addr to;
    CHECK_EQ(sn_dgram_addr(d[0], &to), 0);
    for (int i = 0; i < MUCH; i++)
        CHECK_EQ(sn_send_to(d[1], "x", 1, &to, SN_FOREVER), 1);
    abandon_busy(io, receive_all, d[0]);
    CHECK_EQ(sn_dgram_close(d[0]), 0);
    CHECK_EQ(sn_dgram_close(d[1]), 0);
}

/* Nor what it was just given. */
DRIVER_TEST(a_task_that_is_abandoned_when_it_gave_way_has_no_descriptor_in_hand)
{
    sn_conn *c[MUCH];
    char byte;
    CHECK_EQ(sn_conn_pair(ends), 0);
    int fd = eventfd(0, EFD_CLOEXEC);
    for (int i = 0; i < MUCH; i++)
        CHECK_EQ(sn_send_fds(ends[1], "x", 1, &fd, 1, SN_FOREVER), 1);
    CHECK_EQ(close(fd), 0);
    abandon_busy(io, receive_all_fds, ends[0]);
    close_pair(ends);
    door = listen_at("127.0.0.1:0", &(sn_listen_options){.backlog = MUCH});
    for (int i = 0; i < MUCH; i++)
        CHECK_EQ(sn_connect(&c[i], door.addr, SN_FOREVER), 0);
    abandon_busy(io, accept_all, door.listener);
    unlisten(&door);
    for (int i = 0; i < MUCH; i++) {
        ptrdiff_t n = sn_read(c[i], &byte, 1, late());
        CHECK(n == 0 || n == -ECONNRESET);
        CHECK_EQ(sn_close(c[i]), 0);
    }
}

/* ---- cancelled ------------------------------------------------------------------------------- */

/* Its request and the cancellation go to the kernel together. */
static int cancel_a_writer(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        sn_task *writer = sn_spawn(wait_in_write, ends[0]);
        CHECK(writer != NULL);
        sn_yield();
        CHECK_EQ(sn_cancel(writer, NULL), -ECANCELED);
    }
    return 0;
}

DRIVER_TEST(a_write_to_a_half_closed_end_can_be_cancelled)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        sn_runtime *rt = runtime_on(io, workers);
        CHECK_EQ(sn_conn_pair(ends), 0);
        CHECK_EQ(sn_shutdown(ends[1], SN_SHUT_WRITE), 0);
        CHECK_EQ(sn_runtime_block_on(rt, cancel_a_writer, NULL), 0);
        close_pair(ends);
        sn_runtime_destroy(rt);
    }
}

/* One connection, two who wait for it, and the older is cancelled. Its thread computes, so that the
 * kernel knows of the cancellation and has not yet ended its wait when the connection comes. */
struct acceptor {
    sn_runtime *rt;
    sn_listener *listener;
    sn_group *group;
    int result;
    SNI_ATOMIC(int) is_busy;
    SNI_ATOMIC(int) may_end;
};

static int accept_for(void *arg)
{
    struct acceptor *a = arg;
    a->result = accept_and_close(a->listener);
    return 0;
}

static int accept_and_compute(void *arg)
{
    struct acceptor *a = arg;
    SN_SCOPE(g) {
        a->group = g;
        CHECK_GE(sn_group_spawn(g, accept_for, a), 0);
        let_them_wait();
        sni_atomic_store(&a->is_busy, 1, release); /* release: pairs with whoever cancels */
        while (sni_atomic_load(&a->may_end, acquire) == 0) { /* acquire: as above */
        }
    }
    return 0;
}

static void *accept_in_thread(void *arg)
{
    struct acceptor *a = arg;
    CHECK_EQ(sn_runtime_block_on(a->rt, accept_and_compute, a), 0);
    return NULL;
}

static void *just_accept_in_thread(void *arg)
{
    struct acceptor *a = arg;
    CHECK_EQ(sn_runtime_block_on(a->rt, accept_for, a), 0);
    return NULL;
}

static void cancel_one_of_two(struct place *p, sn_runtime *rt[2])
{
    struct acceptor older = {.rt = rt[0], .listener = p->listener};
    struct acceptor younger = {.rt = rt[1], .listener = p->listener};
    pthread_t threads[2];
    sn_conn *c[2];
    CHECK_EQ(pthread_create(&threads[0], NULL, accept_in_thread, &older), 0);
    while (sni_atomic_load(&older.is_busy, acquire) == 0) /* acquire: pairs with the release */
        sni_plat_thread_yield();
    CHECK_EQ(pthread_create(&threads[1], NULL, just_accept_in_thread, &younger), 0);
    let_them_wait();
    sn_group_cancel(older.group, NULL);
    CHECK_EQ(sn_connect(&c[0], p->addr, SN_FOREVER), 0);
    sni_atomic_store(&older.may_end, 1, release); /* release: pairs with who computes */
    CHECK_EQ(pthread_join(threads[0], NULL), 0);
    if (older.result == 0) /* it may take what is there */
        CHECK_EQ(sn_connect(&c[1], p->addr, SN_FOREVER), 0);
    else
        CHECK_EQ(older.result, -ECANCELED);
    CHECK_EQ(pthread_join(threads[1], NULL), 0);
    CHECK_EQ(younger.result, 0);
    CHECK_EQ(sn_close(c[0]), 0);
    if (older.result == 0)
        CHECK_EQ(sn_close(c[1]), 0);
}

DRIVER_TEST(a_cancelled_accept_does_not_keep_a_connection_from_others)
{
    struct place p = listen_at("127.0.0.1:0", NULL);
    sn_runtime *rt[2] = {runtime_on(io, 1), runtime_on(io, 1)};
    for (int i = 0; i < 10; i++)
        cancel_one_of_two(&p, rt);
    sn_runtime_destroy(rt[0]);
    sn_runtime_destroy(rt[1]);
    unlisten(&p);
}

/* ---- beside a task that does not give way ---------------------------------------------------- */

static SNI_ATOMIC(int) stop;

/* Burns the processor until somebody whose completion this worker's driver has stops it. */
static int burn(void *arg)
{
    (void)arg;
    int64_t until = sni_plat_now_ns() + SN_S(20);
    while (!sni_atomic_load(&stop, acquire)) /* acquire: pairs with the release in the others */
        if (sni_plat_now_ns() > until)
            return -ETIMEDOUT;
    return 0;
}

static void *answer_outside(void *arg)
{
    char buf[8];
    ptrdiff_t n;
    while ((n = sn_read(arg, buf, sizeof(buf), SN_FOREVER)) > 0)
        CHECK_EQ(sn_write_all(arg, buf, (size_t)n, NULL, SN_FOREVER), 0);
    CHECK_EQ(n, 0);
    return NULL;
}

/* The read is submitted on this worker, which then burns; somebody else must reap it. */
static int echo_beside_a_burner(void *arg)
{
    (void)arg;
    char buf[8];
    for (int i = 0; i < 5; i++) {
        sni_atomic_store(&stop, 0, release); /* release: pairs with burn */
        CHECK_EQ(sn_read(ends[0], buf, 8, soon()), -ETIMEDOUT);
        sn_task *burner = sn_spawn(burn, NULL, .local = true); /* on this worker */
        CHECK(burner != NULL);
        for (int j = 0; j < 3; j++) {
            CHECK_EQ(sn_write(ends[0], "question", 8, SN_FOREVER), 8);
            CHECK_EQ(sn_read_exact(ends[0], buf, 8, NULL, SN_FOREVER), 0);
        }
        sni_atomic_store(&stop, 1, release); /* release: as above */
        CHECK_EQ(sn_join(burner, NULL), 0);
    }
    return sn_shutdown(ends[0], SN_SHUT_WRITE);
}

DRIVER_TEST(a_task_that_burns_does_not_hold_back_the_traffic_of_others)
{
    sn_runtime *rt = runtime_on(io, 2);
    pthread_t thread;
    tcp_pair(ends);
    CHECK_EQ(pthread_create(&thread, NULL, answer_outside, ends[1]), 0);
    CHECK_EQ(sn_runtime_block_on(rt, echo_beside_a_burner, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close_pair(ends);
    sn_runtime_destroy(rt);
}

/* ---- long waits ------------------------------------------------------------------------------ */

enum { SLOW_TURNS = 60 };

static void *write_slowly(void *arg)
{
    const struct timespec nap = {.tv_nsec = 2000000};
    for (int i = 0; i < SLOW_TURNS; i++) {
        CHECK_EQ(nanosleep(&nap, NULL), 0);
        CHECK_EQ(sn_write(arg, "x", 1, SN_FOREVER), 1);
    }
    return NULL;
}

/* Returns how often its worker has looked at the world. */
static int read_slowly(void *arg)
{
    char byte;
    const struct sni_worker *w = (const struct sni_worker *)(const void *)sni_exec_current();
    /* relaxed, both: a number that this thread writes */
    uint32_t before = sni_atomic_load(&w->looks, relaxed);
    for (int i = 0; i < SLOW_TURNS; i++)
        CHECK_EQ(sn_read(arg, &byte, 1, SN_FOREVER), 1);
    return (int)(sni_atomic_load(&w->looks, relaxed) - before);
}

/* A spin is 150 looks, and pays where the answer comes at once. */
DRIVER_TEST(a_worker_whose_waits_are_long_does_not_spin_before_each)
{
    sn_runtime *rt = runtime_on(io, 1);
    pthread_t thread;
    CHECK_EQ(sn_conn_pair(ends), 0);
    CHECK_EQ(pthread_create(&thread, NULL, write_slowly, ends[1]), 0);
    CHECK_LT(sn_runtime_block_on(rt, read_slowly, ends[0]), SLOW_TURNS * 150 / 2);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close_pair(ends);
    sn_runtime_destroy(rt);
}

/* A connection and a descriptor that are ready, and that a driver may have been told of, while the
 * only task sleeps. Returns how often its worker has looked at the world. */
static int sleep_beside_what_is_ready(void *arg)
{
    (void)arg;
    char byte;
    CHECK_EQ(sn_read(ends[0], &byte, 1, soon()), -ETIMEDOUT);
    CHECK_EQ(sn_wait_fd(event_fd, SN_READABLE, soon()), -ETIMEDOUT);
    CHECK_EQ(sn_write(ends[1], "x", 1, SN_FOREVER), 1);
    CHECK_EQ(eventfd_write(event_fd, 1), 0);
    const struct sni_worker *w = (const struct sni_worker *)(const void *)sni_exec_current();
    /* relaxed, both: a number that this thread writes */
    uint32_t before = sni_atomic_load(&w->looks, relaxed);
    CHECK_EQ(sn_sleep(SN_MS(50)), 0);
    uint32_t looks = sni_atomic_load(&w->looks, relaxed) - before;
    CHECK_EQ(sn_read(ends[0], &byte, 1, SN_FOREVER), 1); /* it was not forgotten */
    CHECK_EQ(sn_wait_fd(event_fd, SN_READABLE, SN_FOREVER), SN_READABLE);
    return (int)looks;
}

DRIVER_TEST(a_worker_sleeps_beside_what_is_ready_and_nobody_waits_for)
{
    sn_runtime *rt = runtime_on(io, 1);
    tcp_pair(ends);
    event_fd = eventfd(0, EFD_CLOEXEC);
    int looks = sn_runtime_block_on(rt, sleep_beside_what_is_ready, NULL);
    CHECK_GE(looks, 0);
    CHECK_LT(looks, 50); /* one for each thing that it is told of, and some; not thousands */
    close_pair(ends);
    CHECK_EQ(close(event_fd), 0);
    sn_runtime_destroy(rt);
}

/* ---- where operations must not be ------------------------------------------------------------ */

TEST(an_operation_outside_a_runtime_is_eperm)
{
    sn_io_state io;
    sn_conn *c;
    char byte;
    CHECK_EQ(sn_conn_pair(ends), 0);
    CHECK_EQ(sn_dgram_open(&dgram, "127.0.0.1:0"), 0);
    CHECK_EQ(sn_listen(&listener, "127.0.0.1:0", NULL), 0);
    CHECK_EQ(sn_block_on_simple(sn_read_op(&io, ends[0], &byte, 1), NULL), -EPERM);
    CHECK_EQ(sn_block_on_simple(sn_conn_wait_op(&io, ends[0], SN_READABLE), NULL), -EPERM);
    CHECK_EQ(sn_block_on_simple(sn_accept_op(&io, listener, &c), NULL), -EPERM);
    CHECK_EQ(sn_block_on_simple(sn_recv_from_op(&io, dgram, &byte, 1, NULL), NULL), -EPERM);
    CHECK_EQ(sn_block_on_simple(sn_wait_fd_op(&io, 0, SN_READABLE), NULL), -EPERM);
    close_pair(ends);
    CHECK_EQ(sn_dgram_close(dgram), 0);
    CHECK_EQ(sn_listener_close(listener), 0);
}

typedef struct blocking {
    sn_coro coro;
} blocking;

/* All but what need not wait. */
SN_CORO(blocking, self)
{
    char byte;
    SN_BEGIN(self);
    CHECK_EQ(sn_read(ends[0], &byte, 1, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_write(ends[0], "x", 1, SN_FOREVER), 1);
    CHECK_EQ(sn_read(ends[0], &byte, 1, SN_FOREVER), -EDEADLK);
    CHECK_EQ(sn_conn_wait(ends[0], SN_READABLE, SN_FOREVER), -EDEADLK);
    CHECK_EQ(sn_wait_fd(0, SN_READABLE, SN_FOREVER), -EDEADLK);
    SN_END();
}

static int spawn_blocking(void *arg)
{
    (void)arg;
    blocking frame = {0};
    return sn_join(sn_spawn_coro(blocking, &frame), NULL);
}

static void block_a_worker(void)
{
    sn_runtime *rt = runtime_on(SN_IO_POLL, 1);
    CHECK_EQ(sn_conn_pair(ends), 0);
    CHECK_EQ(sn_runtime_block_on(rt, spawn_blocking, NULL), 0);
    close_pair(ends);
    sn_runtime_destroy(rt);
}

#ifdef SINEW_DEBUG
FAIL_TEST(a_coroutine_that_would_block_its_worker_is_told, "would block its worker")
#else
TEST(a_coroutine_that_would_block_its_worker_is_told)
#endif
{
    block_a_worker();
}
