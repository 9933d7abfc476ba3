/* SPDX-License-Identifier: MIT */
/* An echo server for measurements: echo_server PORT WORKERS [fiber|coro].
 *
 * The contract is that of the yardstick: TCP on 127.0.0.1, every byte comes back in order, any
 * number of connections. A connection is a fiber or a coroutine task. Neither owns a buffer while
 * it waits: a fiber has it on its stack, of which one page is touched; coroutines of one worker
 * share what they read into, since they use it up within one poll. */
#include <sinew/sinew.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUFFER_BYTES = 2048,
};

static bool use_coroutines;

static int serve_fiber(void *arg)
{
    sn_conn *conn = arg;
    char buf[BUFFER_BYTES];
    ptrdiff_t n;
    while ((n = sn_read(conn, buf, sizeof(buf), SN_FOREVER)) > 0)
        if (sn_write_all(conn, buf, (size_t)n, NULL, SN_FOREVER) < 0)
            break;
    (void)sn_close(conn);
    return 0;
}

typedef struct served {
    sn_coro coro;
    sn_conn *conn;
    sn_io_state io;
    int n;
    int rc;
} served;

/* What was read is written within the same poll; only what the kernel does not take at once is
 * kept, on the heap. */
static int echo_now(sn_conn *conn)
{
    char buf[BUFFER_BYTES];
    ptrdiff_t n = sn_read(conn, buf, sizeof(buf), SN_NOWAIT);
    if (n <= 0)
        return n == -ETIMEDOUT ? 1 : (int)n;
    return sn_write_all(conn, buf, (size_t)n, NULL, SN_NOWAIT) < 0 ? -1 : 1;
}

SN_CORO(served, self)
{
    SN_BEGIN(self);
    do {
        SN_AWAIT_INTO(self->n, sn_conn_wait_op(&self->io, self->conn, SN_READABLE));
        self->rc = self->n < 0 ? self->n : echo_now(self->conn);
    } while (self->rc > 0);
    (void)sn_close(self->conn);
    SN_END();
}

static int serve(void *arg)
{
    sn_listener *listener = arg;
    sn_conn *conn;
    int rc;
    while ((rc = sn_accept(listener, &conn, NULL, SN_FOREVER)) == 0) {
        if (use_coroutines) {
            rc = sn_spawn_coro_detached(served, &(served){.conn = conn});
        } else {
            rc = sn_spawn_detached(serve_fiber, conn);
        }
        if (rc < 0)
            (void)sn_close(conn);
    }
    return rc;
}

int main(int argc, char **argv)
{
    char addr[64];
    sn_listener *listener;
    sn_runtime *rt;
    if (argc < 3) {
        fprintf(stderr, "usage: echo_server PORT WORKERS [fiber|coro]\n");
        return 2;
    }
    snprintf(addr, sizeof(addr), "127.0.0.1:%d", atoi(argv[1]));
    use_coroutines = argc > 3 && strcmp(argv[3], "coro") == 0;
    int rc = sn_listen(&listener, addr, &(sn_listen_options){.backlog = 4096});
    if (rc == 0)
        rc = sn_runtime_create(&rt, &(sn_runtime_options){.workers = (unsigned)atoi(argv[2])});
    if (rc == 0)
        rc = sn_runtime_block_on(rt, serve, listener);
    fprintf(stderr, "echo_server: %s\n", strerror(-rc));
    return 1;
}
