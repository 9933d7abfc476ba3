/* SPDX-License-Identifier: MIT */
/* suite.c - rows, helpers, and the calls that differ from row to row. See suite.h.
 *
 * In the rows of coroutines a call spawns one, which awaits the operation, raced with a sleep if
 * there is a deadline, and the fiber that calls joins it. So each body tests the operations too,
 * as they are used, and what they leave behind when they are dropped. */
#include "on_driver.h"

#include "base/atomic.h"

#include <stdio.h>
#include <stdlib.h>

static enum net_who who_runs;
static sn_io_driver io_runs;

sn_io_driver net_io(void)
{
    return io_runs;
}

/* ---- rows ------------------------------------------------------------------------------- */

static int run_body(void *arg)
{
    void (**body)(void) = arg;
    (*body)();
    return 0;
}

void net_run(enum net_who who, sn_io_driver io, unsigned workers, void (*body)(void))
{
    who_runs = who;
    io_runs = io;
    if (who == NET_thread) {
        body();
        return;
    }
    if (io == SN_IO_URING && getenv("SINEW_NET_SUITE_AUTO") != NULL)
        io_runs = io = SN_IO_AUTO; /* see test_choice.c */
    sn_runtime *rt = runtime_on(io, workers);
    CHECK_EQ(sn_runtime_block_on(rt, run_body, &body), 0);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    sn_runtime_destroy(rt);
}

/* ---- helpers ----------------------------------------------------------------------------- */

static void *run_thread(void *arg)
{
    struct helper *h = arg;
    h->rc = h->fn(h->arg);
    __atomic_store_n(&h->atomic.done, 1, __ATOMIC_RELEASE);
    return NULL;
}

void help(struct helper *h, int (*fn)(void *arg), void *arg)
{
    *h = (struct helper){.fn = fn, .arg = arg};
    if (who_runs == NET_fiber || who_runs == NET_coro) {
        h->task = sn_spawn(fn, arg);
        CHECK(h->task != NULL);
    } else {
        CHECK_EQ(pthread_create(&h->thread, NULL, run_thread, h), 0);
    }
}

int helped(struct helper *h)
{
    if (h->task != NULL)
        return sn_join(h->task, NULL);
    while (!__atomic_load_n(&h->atomic.done, __ATOMIC_ACQUIRE)) /* not to block a worker */
        CHECK_EQ(sn_sleep(SN_US(200)), 0);
    CHECK_EQ(pthread_join(h->thread, NULL), 0);
    return h->rc;
}

void let_them_wait(void)
{
    CHECK_EQ(sn_sleep(SN_MS(2)), 0);
}

/* ---- calls by coroutines ------------------------------------------------------------------ */

enum what { READ, WRITE, ACCEPT, CONN_WAIT, WAIT_FD, SEND_TO, RECV_FROM };

typedef struct call {
    sn_coro coro;
    sn_io_state io;
    sn_sleep_state nap;
    sn_fut_race2 race;
    enum what what;
    void *sock;
    void *buf;
    size_t bytes;
    const sn_addr *to;
    sn_addr *from;
    sn_conn **out;
    int fd;
    unsigned events;
    sn_deadline until;
} call;

static sn_future *op_of(call *c)
{
    switch (c->what) {
    case READ:
        return sn_read_op(&c->io, c->sock, c->buf, c->bytes);
    case WRITE:
        return sn_write_op(&c->io, c->sock, c->buf, c->bytes);
    case ACCEPT:
        return sn_accept_op(&c->io, c->sock, c->out);
    case CONN_WAIT:
        return sn_conn_wait_op(&c->io, c->sock, c->events);
    case WAIT_FD:
        return sn_wait_fd_op(&c->io, c->fd, c->events);
    case SEND_TO:
        return sn_send_to_op(&c->io, c->sock, c->buf, c->bytes, c->to);
    case RECV_FROM:
        return sn_recv_from_op(&c->io, c->sock, c->buf, c->bytes, c->from);
    }
    abort();
}

SN_CORO(call, self)
{
    int rc;
    SN_BEGIN(self);
    if (self->until.ns == SN_FOREVER.ns) {
        SN_AWAIT_INTO(rc, op_of(self));
        SN_RETURN(rc);
    }
    SN_AWAIT_INTO(
        rc, sn_fut_race2_init(&self->race, op_of(self), sn_sleep_op(&self->nap, self->until)));
    SN_RETURN(self->race.race.winner == 0 ? rc : -ETIMEDOUT);
    SN_END();
}

static int await(call c)
{
    sn_task *task = sn_spawn_coro(call, &c);
    CHECK(task != NULL);
    return sn_join(task, NULL);
}

/* Only from inside the runtime: of a plain thread beside one nobody polls coroutines. */
static bool by_coro(void)
{
    return who_runs == NET_coro && sn_task_id() != 0;
}

ptrdiff_t x_read(sn_conn *conn, void *buf, size_t bytes, sn_deadline until)
{
    if (!by_coro())
        return sn_read(conn, buf, bytes, until);
    return await((call){.what = READ, .sock = conn, .buf = buf, .bytes = bytes, .until = until});
}

ptrdiff_t x_write(sn_conn *conn, const void *buf, size_t bytes, sn_deadline until)
{
    if (!by_coro())
        return sn_write(conn, buf, bytes, until);
    return await((call){.what = WRITE,
                        .sock = conn,
                        .buf = (void *)(uintptr_t)buf,
                        .bytes = bytes,
                        .until = until});
}

int x_accept(sn_listener *listener, sn_conn **out, sn_addr *peer, sn_deadline until)
{
    if (!by_coro())
        return sn_accept(listener, out, peer, until);
    int rc = await((call){.what = ACCEPT, .sock = listener, .out = out, .until = until});
    if (rc == 0 && peer != NULL)
        CHECK_EQ(sn_conn_peer(*out, peer), 0);
    return rc;
}

int x_conn_wait(sn_conn *conn, unsigned events, sn_deadline until)
{
    if (!by_coro())
        return sn_conn_wait(conn, events, until);
    return await((call){.what = CONN_WAIT, .sock = conn, .events = events, .until = until});
}

int x_wait_fd(int fd, unsigned events, sn_deadline until)
{
    if (!by_coro())
        return sn_wait_fd(fd, events, until);
    return await((call){.what = WAIT_FD, .fd = fd, .events = events, .until = until});
}

ptrdiff_t x_send_to(sn_dgram *d, const void *buf, size_t bytes, const sn_addr *to,
                    sn_deadline until)
{
    if (!by_coro())
        return sn_send_to(d, buf, bytes, to, until);
    return await((call){.what = SEND_TO,
                        .sock = d,
                        .buf = (void *)(uintptr_t)buf,
                        .bytes = bytes,
                        .to = to,
                        .until = until});
}

ptrdiff_t x_recv_from(sn_dgram *d, void *buf, size_t bytes, sn_addr *from, sn_deadline until)
{
    if (!by_coro())
        return sn_recv_from(d, buf, bytes, from, until);
    return await((call){
        .what = RECV_FROM, .sock = d, .buf = buf, .bytes = bytes, .from = from, .until = until});
}

/* ---- sockets ------------------------------------------------------------------------------ */

struct place listen_at(const char *addr, const sn_listen_options *opts)
{
    struct place p;
    sn_addr where;
    CHECK_EQ(sn_listen(&p.listener, addr, opts), 0);
    CHECK_EQ(sn_listener_addr(p.listener, &where), 0);
    CHECK_GT(sn_addr_format(&where, p.addr, sizeof(p.addr)), 0);
    return p;
}

void unlisten(struct place *place)
{
    CHECK_EQ(sn_listener_close(place->listener), 0);
}

/* A backlog of 1 takes two: those get all the time that a busy machine needs. From then on only
 * who is not taken waits. */
int fill_queue(const struct place *p, sn_conn **conns, int max)
{
    int n = 0, rc = 0;
    while (n < max && rc == 0) {
        rc = sn_connect(&conns[n], p->addr, sn_after(n < 2 ? SN_S(2) : SN_MS(30)));
        n += rc == 0;
    }
    CHECK_EQ(rc, -ETIMEDOUT);
    CHECK_GT(n, 0);
    return n;
}

void tcp_pair(sn_conn *ends[2])
{
    struct place p = listen_at("127.0.0.1:0", NULL);
    CHECK_EQ(sn_connect(&ends[0], p.addr, SN_FOREVER), 0);
    CHECK_EQ(x_accept(p.listener, &ends[1], NULL, SN_FOREVER), 0);
    unlisten(&p);
}

void close_pair(sn_conn *ends[2])
{
    CHECK_EQ(sn_close(ends[0]), 0);
    CHECK_EQ(sn_close(ends[1]), 0);
}

const char *unix_addr(char text[SN_ADDR_TEXT_MAX], const char *name)
{
    int n = snprintf(text, SN_ADDR_TEXT_MAX, "unix:%s/%s", temp_dir(), name);
    CHECK_LT(n, SN_ADDR_TEXT_MAX);
    return text;
}

const char *dgram_addr(char text[SN_ADDR_TEXT_MAX], sn_dgram *d)
{
    sn_addr where;
    CHECK_EQ(sn_dgram_addr(d, &where), 0);
    CHECK_GT(sn_addr_format(&where, text, SN_ADDR_TEXT_MAX), 0);
    return text;
}
