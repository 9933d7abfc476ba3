/* SPDX-License-Identifier: MIT */
/* echo_server - the echo server of the yardstick, by Sinew: echo_server PORT WORKERS fiber|coro.
 *
 * The contract is the same for all servers: TCP on 127.0.0.1, every byte comes back in order, any
 * number of connections, and one that breaks is no harm to the others. SINEW_IO chooses the driver.
 *
 * A connection is a task. A fiber just reads and writes. Its buffer lies on its stack, and is small
 * enough to fit into the one page that is touched in any case. A coroutine's frame holds no buffer:
 * it waits until there is something to read, borrows the worker's stack for it, and has written it
 * before it waits again. Only what the kernel does not take at once is kept, on the heap. */
#include <sinew/sinew.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUFFER_BYTES = 2048,
    BACKLOG = 4096,
};

struct server {
    sn_listener *listener;
    bool coroutines;
};

/* ---- by fibers ------------------------------------------------------------------------------- */

static int serve_fiber(void *arg)
{
    sn_conn *conn = arg;
    char buffer[BUFFER_BYTES];
    ptrdiff_t n;
    while ((n = sn_read(conn, buffer, sizeof(buffer), SN_FOREVER)) > 0)
        if (sn_write_all(conn, buffer, (size_t)n, NULL, SN_FOREVER) < 0)
            break;
    (void)sn_close(conn);
    return 0;
}

/* ---- by coroutines --------------------------------------------------------------------------- */

/* What the kernel did not take at once. */
struct rest {
    size_t at;
    size_t n;
    char bytes[];
};

typedef struct served {
    sn_coro coro;
    sn_conn *conn;
    struct rest *rest; /* NULL nearly always */
    int rc;
    sn_io_state io;
} served;

/* Returns 1 if it was echoed or there was nothing to read; else the connection is over. */
static int echo(sn_conn *conn, struct rest **rest)
{
    char buffer[BUFFER_BYTES];
    size_t done = 0;
    ptrdiff_t n = sn_read(conn, buffer, sizeof(buffer), SN_NOWAIT);
    if (n <= 0)
        return n == -ETIMEDOUT ? 1 : (int)n;
    int rc = sn_write_all(conn, buffer, (size_t)n, &done, SN_NOWAIT);
    if (rc == 0)
        return 1;
    if (rc != -ETIMEDOUT)
        return rc;
    size_t left = (size_t)n - done;
    *rest = malloc(sizeof(**rest) + left);
    if (*rest == NULL)
        return -ENOMEM;
    **rest = (struct rest){.n = left};
    memcpy((*rest)->bytes, buffer + done, left);
    return 1;
}

SN_CORO(served, self)
{
    SN_BEGIN(self);
    do {
        SN_AWAIT_INTO(self->rc, sn_conn_wait_op(&self->io, self->conn, SN_READABLE));
        if (self->rc > 0)
            self->rc = echo(self->conn, &self->rest);
        while (self->rc > 0 && self->rest != NULL) {
            SN_AWAIT_INTO(self->rc,
                          sn_write_op(&self->io, self->conn, self->rest->bytes + self->rest->at,
                                      self->rest->n - self->rest->at));
            if (self->rc > 0 && (self->rest->at += (size_t)self->rc) < self->rest->n)
                continue;
            free(self->rest);
            self->rest = NULL;
        }
    } while (self->rc > 0);
    (void)sn_close(self->conn);
    SN_END();
}

/* ---- accepting ------------------------------------------------------------------------------- */

static int serve(void *arg)
{
    struct server *server = arg;
    sn_conn *conn;
    int rc;
    while ((rc = sn_accept(server->listener, &conn, NULL, SN_FOREVER)) == 0) {
        if (server->coroutines)
            rc = sn_spawn_coro_detached(served, &(served){.conn = conn});
        else
            rc = sn_spawn_detached(serve_fiber, conn);
        if (rc < 0)
            (void)sn_close(conn);
    }
    return rc;
}

int main(int argc, char **argv)
{
    char addr[64];
    sn_runtime *rt;
    struct server server = {.coroutines = argc > 3 && strcmp(argv[3], "coro") == 0};
    if (argc < 4 || (!server.coroutines && strcmp(argv[3], "fiber") != 0)) {
        fputs("usage: echo_server PORT WORKERS fiber|coro\n", stderr);
        return 2;
    }
    snprintf(addr, sizeof(addr), "127.0.0.1:%d", atoi(argv[1]));
    int rc = sn_listen(&server.listener, addr, &(sn_listen_options){.backlog = BACKLOG});
    if (rc == 0)
        rc = sn_runtime_create(&rt, &(sn_runtime_options){.workers = (unsigned)atoi(argv[2])});
    if (rc == 0)
        rc = sn_runtime_block_on(rt, serve, &server);
    fprintf(stderr, "echo_server: %s\n", strerror(-rc));
    return 1;
}
