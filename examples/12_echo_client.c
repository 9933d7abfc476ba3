/* SPDX-License-Identifier: MIT */
/* 12_echo_client - one task sends while another receives; a half close says that this was all.
 *
 *     12_echo_client                  brings an echo of its own, and some text
 *     12_echo_client ADDR <file       sends the file to a server, and shows what comes back */
#include <sinew/sinew.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct talk {
    sn_conn *conn;
    int from; /* any descriptor: a pipe, a terminal, a file */
};

/* Reading a descriptor that is not a socket of ours: wait until it can be, then read it. */
static int send_all(void *arg)
{
    const struct talk *t = arg;
    char buf[4096];
    int rc = 0;
    while (rc >= 0 && (rc = sn_wait_fd(t->from, SN_READABLE, SN_FOREVER)) >= 0) {
        ssize_t n = read(t->from, buf, sizeof(buf));
        if (n <= 0)
            break;
        rc = sn_write_all(t->conn, buf, (size_t)n, NULL, sn_after(SN_S(10)));
    }
    (void)sn_shutdown(t->conn, SN_SHUT_WRITE); /* the other end reads 0, and may still answer */
    return rc;
}

static int show_all(sn_conn *conn)
{
    char buf[4096];
    ptrdiff_t n;
    while ((n = sn_read(conn, buf, sizeof(buf), sn_after(SN_S(60)))) > 0)
        fwrite(buf, 1, (size_t)n, stdout);
    return (int)n;
}

/* For the example without arguments: what a server would do. */
static int echo(void *arg)
{
    sn_conn *conn = arg;
    char buf[16]; /* small, so that there is something to see */
    ptrdiff_t n;
    int rc = 0;
    while (rc == 0 && (n = sn_read(conn, buf, sizeof(buf), SN_FOREVER)) > 0)
        rc = sn_write_all(conn, buf, (size_t)n, NULL, SN_FOREVER);
    return sn_close(conn);
}

static int open_demo(struct talk *t)
{
    static const char text[] = "Is there anybody?\nI hear only myself.\n";
    sn_conn *pair[2];
    int ends[2];
    int rc = sn_conn_pair(pair);
    if (rc < 0)
        return rc;
    t->conn = pair[0];
    rc = sn_spawn_detached(echo, pair[1], .name = "echo");
    if (rc < 0 || pipe(ends) < 0)
        return rc < 0 ? rc : -EMFILE;
    if (write(ends[1], text, strlen(text)) < 0)
        rc = -EIO;
    close(ends[1]);
    t->from = ends[0];
    return rc;
}

static int app(void *arg)
{
    const char *addr = arg;
    struct talk t = {.from = STDIN_FILENO};
    int rc = addr != NULL ? sn_connect(&t.conn, addr, sn_after(SN_S(10))) : open_demo(&t);
    if (rc < 0)
        return rc;
    sn_task *sender = sn_spawn(send_all, &t, .name = "sender");
    rc = show_all(t.conn);
    int sent = sn_join(sender, NULL);
    (void)sn_close(t.conn);
    return rc < 0 ? rc : sent;
}

int main(int argc, char **argv)
{
    int rc = sn_run(app, argc > 1 ? argv[1] : NULL);
    if (rc < 0)
        fprintf(stderr, "12_echo_client: %s\n", strerror(-rc));
    return rc < 0;
}
