/* SPDX-License-Identifier: MIT */
/* A storm of cancels over an echo server and its clients, on loopback sockets, with each driver
 * (R61, R82). Servers, half of them coroutines, and clients are cancelled wherever they are. What a
 * client reads is what it wrote, in order and from the first byte on, however far it got; each
 * connection that was made is closed, once, and no descriptor is left. */
#include "cancel_storm.h"

#include <stdio.h>

enum { PIECE = 512, MESSAGE_MAX = 6000 };

static struct {
    sn_listener *listener;
    char addr[SN_ADDR_TEXT_MAX];
    atomic_long opened, closed;
    atomic_long echoed, echoed_partly; /* messages */
} all;

static bool is_an_end(ptrdiff_t rc)
{
    return rc == -ECANCELED || rc == -ETIMEDOUT || rc == -EPIPE || rc == -ECONNRESET;
}

/* No connection is to linger: there are not so many ports. */
static void opened(sn_conn *conn)
{
    atomic_fetch_add(&all.opened, 1);
    CHECK_EQ(sn_conn_set(conn, SN_CONN_LINGER, 0), 0);
}

static void closed(sn_conn *conn)
{
    CHECK_EQ(sn_close(conn), 0);
    atomic_fetch_add(&all.closed, 1);
}

/* ---- servers --------------------------------------------------------------------------------- */

static int echo(sn_conn *conn, struct dice *d)
{
    char buf[PIECE];
    for (;;) {
        ptrdiff_t n = sn_read(conn, buf, sizeof(buf), some_time(d));
        if (n <= 0) {
            CHECK(n == 0 || is_an_end(n));
            return (int)n;
        }
        int rc = sn_write_all(conn, buf, (size_t)n, NULL, some_time(d));
        CHECK(rc == 0 || is_an_end(rc));
        if (rc < 0)
            return rc;
    }
}

static int serve(void *arg)
{
    struct dice d = *(struct dice *)arg;
    while (!sn_cancelled()) {
        sn_conn *conn = NULL;
        int rc = sn_accept(all.listener, &conn, NULL, some_time(&d));
        if (rc < 0) {
            CHECK(conn == NULL && is_an_end(rc));
            continue;
        }
        opened(conn);
        (void)echo(conn, &d);
        closed(conn);
    }
    return -ECANCELED;
}

typedef struct server {
    sn_coro coro;
    sn_io_state io;
    sn_conn *conn;
    int rc, got, done;
    char buf[PIECE];
} server;

SN_CORO(server, self)
{
    SN_BEGIN(self);
    for (;;) {
        self->conn = NULL;
        SN_AWAIT_INTO(self->rc, sn_accept_op(&self->io, all.listener, &self->conn));
        CHECK_EQ(self->rc, 0);
        opened(self->conn);
        self->rc = 1;
        while (self->rc > 0) {
            SN_AWAIT_INTO(self->got, sn_read_op(&self->io, self->conn, self->buf, PIECE));
            self->rc = self->got;
            for (self->done = 0; self->rc > 0 && self->done < self->got; self->done += self->rc)
                SN_AWAIT_INTO(self->rc, sn_write_op(&self->io, self->conn, self->buf + self->done,
                                                    (size_t)(self->got - self->done)));
        }
        CHECK(self->rc == 0 || is_an_end(self->rc));
        closed(self->conn);
    }
    SN_FINALLY();
    if (self->conn != NULL)
        closed(self->conn);
    SN_END();
}

/* ---- clients --------------------------------------------------------------------------------- */

struct message {
    unsigned char text[MESSAGE_MAX], back[MESSAGE_MAX];
};

/* Write one message and read it again; less of it if it is cancelled, or the server is. */
static int talk(sn_conn *conn, struct dice *d, struct message *m)
{
    size_t bytes = 1 + roll(d) % (roll(d) % 8 == 0 ? MESSAGE_MAX : 200);
    size_t written = 0, done = 0;
    uint32_t first = roll(d);
    for (size_t i = 0; i < bytes; i++)
        m->text[i] = (unsigned char)(first + i * 7);
    memset(m->back, 0, bytes);
    int rc = sn_write_all(conn, m->text, bytes, &written, some_time(d));
    CHECK(rc == 0 ? written == bytes : written < bytes);
    if (rc == 0) {
        rc = sn_read_exact(conn, m->back, bytes, &done, some_time(d));
        CHECK(rc == 0 ? done == bytes : done < bytes);
        CHECK_MEM_EQ(m->back, m->text, done);
        atomic_fetch_add(rc == 0 ? &all.echoed : &all.echoed_partly, 1);
    }
    CHECK(rc == 0 || is_an_end(rc));
    return rc;
}

static int ask(void *arg)
{
    struct dice d = *(struct dice *)arg;
    struct message m;
    while (!sn_cancelled()) {
        sn_conn *conn = NULL;
        int rc = sn_connect(&conn, all.addr, some_time(&d));
        if (rc < 0) {
            CHECK(conn == NULL && is_an_end(rc));
            continue;
        }
        opened(conn);
        for (uint32_t i = roll(&d) % 6; rc == 0 && i > 0; i--)
            rc = talk(conn, &d, &m);
        closed(conn);
    }
    return -ECANCELED;
}

/* ---- the storm ------------------------------------------------------------------------------- */

static sn_task *spawn_one(int slot, uint32_t dice)
{
    struct dice d = {dice};
    if (slot % 4 == 0) {
        server frame = {.rc = 0};
        return sn_spawn_coro(server, &frame);
    }
    return sn_spawn(slot % 4 == 1 ? serve : ask, &d, .copy_bytes = sizeof(d));
}

static int blow(void *arg)
{
    struct storm storm = {.spawn = spawn_one, .cancels = *(int *)arg / STORM_SLOW};
    sn_addr where;
    CHECK_EQ(sn_listen(&all.listener, "127.0.0.1:0", NULL), 0);
    CHECK_EQ(sn_listener_addr(all.listener, &where), 0);
    CHECK_GT(sn_addr_format(&where, all.addr, sizeof(all.addr)), 0);
    storm_blow(&storm);
    CHECK_EQ(sn_listener_close(all.listener), 0);
    printf("%ld connections, %ld messages came back, %ld in part\n", (long)all.opened,
           (long)all.echoed, (long)all.echoed_partly);
    CHECK_EQ(atomic_load(&all.opened), atomic_load(&all.closed));
    CHECK_GT(atomic_load(&all.echoed), 0);
    return 0;
}

static void blow_with(sn_io_driver io)
{
    int many = io == SN_IO_URING ? 2000 : 5000; /* a ring of another worker takes its time */
    int rest = 10000 - many;
    storm_run((sn_runtime_options){.io = io, .workers = 4}, blow, &many);
    storm_run((sn_runtime_options){.io = io, .single_threaded = true, .seed = test_seed() | 1},
              blow, &rest);
}

TEST(a_storm_of_cancels_over_an_echo_server_with_uring, .limit_s = 120)
{
    blow_with(SN_IO_URING);
}

TEST(a_storm_of_cancels_over_an_echo_server_with_epoll, .limit_s = 120)
{
    blow_with(SN_IO_EPOLL);
}

TEST(a_storm_of_cancels_over_an_echo_server_with_poll, .limit_s = 120)
{
    blow_with(SN_IO_POLL);
}
