/* SPDX-License-Identifier: MIT */
/* 16_coroutine_echo - a connection that waits costs its frame: no stack, and no buffer.
 *
 *     16_coroutine_echo                    serves a hundred connections from this very process
 *     16_coroutine_echo 127.0.0.1:7000     serves
 *
 * A coroutine waits until there is something to read, and only then borrows a buffer: the scratch
 * lies on the worker's stack, and is gone with the next await. What cannot be written at once gets
 * memory of its own, until it has been. */
#include <sinew/sinew.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct echo {
    sn_coro coro;
    sn_conn *conn;
    sn_io_state io;
    char *rest; /* what is left to write, or NULL */
    size_t rest_bytes, done;
} echo;

/* Read and write what is possible without waiting. Returns 0 at the end, or an error. */
static ptrdiff_t pass_on(echo *self)
{
    char scratch[16384];
    ptrdiff_t n = sn_read(self->conn, scratch, sizeof(scratch), SN_NOWAIT);
    if (n <= 0)
        return n == -ETIMEDOUT ? 1 : n; /* there was nothing after all: wait again */
    size_t done = 0;
    int rc = sn_write_all(self->conn, scratch, (size_t)n, &done, SN_NOWAIT);
    if (rc != -ETIMEDOUT)
        return rc < 0 ? rc : n;
    self->rest_bytes = (size_t)n - done;
    self->rest = malloc(self->rest_bytes);
    if (self->rest == NULL)
        return -ENOMEM;
    memcpy(self->rest, scratch + done, self->rest_bytes);
    return n;
}

SN_CORO(echo, self)
{
    int rc;
    SN_BEGIN(self);
    for (;;) {
        SN_AWAIT_INTO(rc, sn_conn_wait_op(&self->io, self->conn, SN_READABLE));
        if (rc < 0 || pass_on(self) <= 0)
            SN_RETURN(0);
        for (self->done = 0; self->rest != NULL && self->done < self->rest_bytes;) {
            SN_AWAIT_INTO(rc, sn_write_op(&self->io, self->conn, self->rest + self->done,
                                          self->rest_bytes - self->done));
            if (rc < 0)
                SN_RETURN(0);
            self->done += (size_t)rc;
        }
        free(self->rest);
        self->rest = NULL;
    }
    SN_FINALLY();
    free(self->rest);
    (void)sn_close(self->conn);
    SN_END();
}

static int begin_echo(sn_conn *conn)
{
    echo frame = {.conn = conn};
    sn_task *task = sn_spawn_coro(echo, &frame, .name = "echo"); /* gets a copy of the frame */
    return task != NULL ? sn_detach(task) : -ENOMEM;
}

typedef struct server {
    sn_coro coro;
    sn_listener *listener;
    sn_conn *conn;
    sn_io_state io;
    sn_sleep_state nap;
} server;

SN_CORO(server, self)
{
    int rc;
    SN_BEGIN(self);
    for (;;) {
        SN_AWAIT_INTO(rc, sn_accept_op(&self->io, self->listener, &self->conn));
        if (rc == -EMFILE || rc == -ENFILE || rc == -ENOBUFS || rc == -ENOMEM)
            SN_AWAIT(sn_sleep_op(&self->nap, sn_after(SN_MS(10)))); /* one will be closed */
        else if (rc < 0)
            SN_RETURN(rc); /* -EBADF: the listener was closed */
        else if (begin_echo(self->conn) < 0)
            (void)sn_close(self->conn);
    }
    SN_END();
}

static int start(void *arg)
{
    server frame = {.listener = arg};
    return sn_join(sn_spawn_coro(server, &frame, .name = "server"), NULL);
}

/* This is a plain thread: the same calls block it. */
static int visit(const char *addr)
{
    enum { VISITORS = 100 };
    sn_conn *conn[VISITORS];
    sn_deadline until = sn_after(SN_S(20));
    int opened = 0, echoed = 0, rc = 0;
    while (opened < VISITORS && (rc = sn_connect(&conn[opened], addr, until)) == 0)
        opened++;
    for (int i = 0; i < opened && rc == 0; i++) {
        int back = -1;
        rc = sn_write_all(conn[i], &i, sizeof(i), NULL, until);
        if (rc == 0)
            rc = sn_read_exact(conn[i], &back, sizeof(back), NULL, until);
        echoed += back == i;
    }
    printf("%d connections open at once, %d echoes\n", opened, echoed);
    for (int i = 0; i < opened; i++)
        (void)sn_close(conn[i]);
    return rc;
}

static int run(sn_runtime *rt, const char *addr)
{
    sn_listener *listener;
    sn_addr where;
    char text[SN_ADDR_TEXT_MAX];
    int rc = sn_listen(&listener, addr != NULL ? addr : "127.0.0.1:0", NULL);
    if (rc == 0)
        rc = sn_listener_addr(listener, &where);
    if (rc == 0)
        rc = sn_addr_format(&where, text, sizeof(text));
    if (rc < 0)
        return rc;
    sn_task *task = sn_runtime_spawn(rt, start, listener, .name = "start");
    if (addr != NULL) {
        printf("listening on %s\n", text);
        fflush(stdout);
        return sn_join(task, NULL);
    }
    rc = visit(text);
    (void)sn_listener_close(listener);
    printf("the server ended: %s\n", sn_join(task, NULL) == -EBADF ? "closed" : "by mistake");
    return rc;
}

int main(int argc, char **argv)
{
    sn_runtime *rt;
    int rc = sn_runtime_create(&rt, NULL);
    if (rc == 0) {
        rc = run(rt, argc > 1 ? argv[1] : NULL);
        sn_runtime_destroy(rt);
    }
    if (rc < 0)
        fprintf(stderr, "16_coroutine_echo: %s\n", strerror(-rc));
    return rc < 0;
}
