/* SPDX-License-Identifier: MIT */
/* server - the servers of the yardstick, by Sinew: server PORT WORKERS echo|http fiber|coro.
 *
 * The contract is the same for all servers (peers/WORKLOADS.md): TCP on 127.0.0.1, any number of
 * connections, and one that breaks is no harm to the others; `echo` sends every byte back in order,
 * `http` answers each request. SINEW_IO chooses the driver.
 *
 * A connection is a task. A fiber just reads and writes. Its buffer lies on its stack, and is small
 * enough to fit into the one page that is touched in any case. A coroutine's frame holds no buffer:
 * it waits until there is something to read, borrows the worker's stack for it, and has written it
 * before it waits again. Only what the kernel does not take at once is kept, on the heap; and the
 * beginning of a head whose end has not come. */
#include "../peers/http.h"

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
    bool http;
    bool coroutines;
};

/* ---- by fibers ------------------------------------------------------------------------------- */

static int echo_fiber(void *arg)
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

/* Returns 0, or why not all of the answers were taken. */
static int answer(sn_conn *conn, int requests, sn_deadline until)
{
    int rc = 0;
    for (; rc == 0 && requests > 0; requests -= HTTP_ANSWERS)
        rc = sn_write_all(conn, http_answers, http_portion(requests), NULL, until);
    return rc;
}

static int http_fiber(void *arg)
{
    sn_conn *conn = arg;
    char buffer[HTTP_HEAD_MAX];
    size_t have = 0;
    ptrdiff_t n;
    while ((n = sn_read(conn, buffer + have, sizeof(buffer) - have, SN_FOREVER)) > 0) {
        size_t used;
        have += (size_t)n;
        int requests = http_requests(buffer, have, &used);
        if (requests < 0 || answer(conn, requests, SN_FOREVER) < 0)
            break;
        have -= used;
        memmove(buffer, buffer + used, have);
        if (have == sizeof(buffer))
            break;
    }
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

/* As `rest`, what was read of a head that is not whole. */
typedef struct http_served {
    sn_coro coro;
    sn_conn *conn;
    struct rest *part; /* NULL nearly always */
    int rc;
    sn_io_state io;
} http_served;

static int keep_part(struct rest **part, const char *bytes, size_t n)
{
    free(*part);
    *part = NULL;
    if (n == 0)
        return 1;
    if (n == HTTP_HEAD_MAX)
        return -E2BIG;
    if ((*part = malloc(sizeof(**part) + n)) == NULL)
        return -ENOMEM;
    **part = (struct rest){.n = n};
    memcpy((*part)->bytes, bytes, n);
    return 1;
}

/* Returns 1 if what was there is answered; else the connection is over. Answers are small: who does
 * not take them at once is left. */
static int answer_some(sn_conn *conn, struct rest **part)
{
    char buffer[HTTP_HEAD_MAX];
    size_t have = 0;
    size_t used;
    if (*part != NULL)
        memcpy(buffer, (*part)->bytes, have = (*part)->n);
    ptrdiff_t n = sn_read(conn, buffer + have, sizeof(buffer) - have, SN_NOWAIT);
    if (n <= 0)
        return n == -ETIMEDOUT ? 1 : (int)n;
    have += (size_t)n;
    int requests = http_requests(buffer, have, &used);
    int rc = requests < 0 ? -EPROTO : answer(conn, requests, SN_NOWAIT);
    return rc < 0 ? rc : keep_part(part, buffer + used, have - used);
}

SN_CORO(http_served, self)
{
    SN_BEGIN(self);
    do {
        SN_AWAIT_INTO(self->rc, sn_conn_wait_op(&self->io, self->conn, SN_READABLE));
        if (self->rc > 0)
            self->rc = answer_some(self->conn, &self->part);
    } while (self->rc > 0);
    free(self->part);
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
        if (!server->coroutines)
            rc = sn_spawn_detached(server->http ? http_fiber : echo_fiber, conn);
        else if (server->http)
            rc = sn_spawn_coro_detached(http_served, &(http_served){.conn = conn});
        else
            rc = sn_spawn_coro_detached(served, &(served){.conn = conn});
        if (rc < 0)
            (void)sn_close(conn);
    }
    return rc;
}

/* Whether the word is the first of two; ends the program if it is neither. */
static bool is_first(const char *word, const char *first, const char *second)
{
    if (word != NULL && strcmp(word, first) == 0)
        return true;
    if (word != NULL && strcmp(word, second) == 0)
        return false;
    fputs("usage: server PORT WORKERS echo|http fiber|coro\n", stderr);
    exit(2);
}

int main(int argc, char **argv)
{
    char addr[64];
    sn_runtime *rt;
    struct server server = {.http = !is_first(argc > 3 ? argv[3] : NULL, "echo", "http"),
                            .coroutines = !is_first(argc > 4 ? argv[4] : NULL, "fiber", "coro")};
    snprintf(addr, sizeof(addr), "127.0.0.1:%d", atoi(argv[1]));
    int rc = sn_listen(&server.listener, addr, &(sn_listen_options){.backlog = BACKLOG});
    if (rc == 0)
        rc = sn_runtime_create(&rt, &(sn_runtime_options){.workers = (unsigned)atoi(argv[2])});
    if (rc == 0)
        rc = sn_runtime_block_on(rt, serve, &server);
    fprintf(stderr, "server: %s\n", strerror(-rc));
    return 1;
}
