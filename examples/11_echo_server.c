/* SPDX-License-Identifier: MIT */
/* 11_echo_server - a task for each connection: it reads, it writes, as if it were alone.
 *
 *     11_echo_server                                   talks to itself, and ends
 *     11_echo_server 127.0.0.1:7000                    serves; "unix:echo.sock" does as well
 *     11_echo_server 127.0.0.1:0 --connections 3       serves three, and ends */
#include <sinew/sinew.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int echo(void *arg)
{
    sn_conn *conn = arg;
    char buf[4096];
    ptrdiff_t n;
    int rc = 0;
    while (rc == 0 && (n = sn_read(conn, buf, sizeof(buf), sn_after(SN_S(60)))) > 0)
        rc = sn_write_all(conn, buf, (size_t)n, NULL, sn_after(SN_S(60)));
    return sn_close(conn); /* it has said all, or is silent, or gone */
}

static int serve(sn_listener *listener, long connections)
{
    int rc = 0;
    for (; connections != 0 && rc == 0; connections--) {
        sn_conn *conn;
        rc = sn_accept(listener, &conn, NULL, SN_FOREVER);
        if (rc == 0 && sn_spawn_detached(echo, conn, .name = "echo") < 0)
            (void)sn_close(conn); /* no memory for one more: go on with those we have */
    }
    return rc;
}

static int serve_three(void *arg)
{
    return serve(arg, 3);
}

static int talk(const char *addr, const char *text)
{
    sn_conn *conn;
    char back[64];
    size_t length = strlen(text);
    sn_deadline until = sn_after(SN_S(10)); /* for all of it: a deadline is a point in time */
    int rc = sn_connect(&conn, addr, until);
    if (rc < 0)
        return rc;
    rc = sn_write_all(conn, text, length, NULL, until);
    if (rc == 0)
        rc = sn_read_exact(conn, back, length, NULL, until);
    if (rc == 0)
        printf("said \"%s\", heard \"%.*s\"\n", text, (int)length, back);
    (void)sn_close(conn);
    return rc;
}

static int self_test(sn_listener *listener, const char *addr)
{
    static const char *const words[] = {"hello", "is there anybody", "good bye"};
    sn_task *server = sn_spawn(serve_three, listener, .name = "server");
    int rc = 0;
    for (int i = 0; i < 3 && rc == 0; i++)
        rc = talk(addr, words[i]);
    (void)sn_listener_close(listener); /* ends the server's accept, if it still waits */
    int served = sn_join(server, NULL);
    return rc < 0 ? rc : served;
}

struct args {
    const char *addr;
    long connections; /* negative: without end */
};

static int app(void *arg)
{
    const struct args *args = arg;
    sn_listener *listener;
    sn_addr where;
    char text[SN_ADDR_TEXT_MAX];
    int rc = sn_listen(&listener, args->addr != NULL ? args->addr : "127.0.0.1:0", NULL);
    if (rc < 0)
        return rc;
    rc = sn_listener_addr(listener, &where); /* port 0 has become a number */
    if (rc == 0)
        rc = sn_addr_format(&where, text, sizeof(text));
    if (rc >= 0 && args->addr == NULL)
        return self_test(listener, text); /* which closes it */
    if (rc >= 0) {
        printf("listening on %s\n", text);
        fflush(stdout);
        rc = serve(listener, args->connections);
    }
    (void)sn_listener_close(listener);
    return rc;
}

int main(int argc, char **argv)
{
    struct args args = {.addr = argc > 1 ? argv[1] : NULL, .connections = -1};
    if (argc == 4 && strcmp(argv[2], "--connections") == 0)
        args.connections = strtol(argv[3], NULL, 10);
    int rc = sn_run(app, &args);
    if (rc < 0)
        fprintf(stderr, "11_echo_server: %s\n", strerror(-rc));
    return rc < 0;
}
