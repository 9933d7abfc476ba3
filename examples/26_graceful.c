/* SPDX-License-Identifier: MIT */
/* 26_graceful - a server that ends well: SIGTERM, no new guests, time to finish, then good-bye.
 *
 *     26_graceful                       has guests of its own, sends itself the signal, and ends
 *     26_graceful 127.0.0.1:7000        serves until it gets SIGTERM, and up to 3 s longer */
#define _GNU_SOURCE /* sigset_t */
#include <sinew/sinew.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct server {
    sn_listener *listener;
    sn_group *guests;
    int signals;     /* readable when there is a SIGTERM */
    sn_event closed; /* the listener is */
    sn_group_report report;
};

static int echo(void *arg)
{
    sn_conn *conn = arg;
    char buf[4096];
    ptrdiff_t n;
    int rc = 0;
    while (rc == 0 && (n = sn_read(conn, buf, sizeof(buf), sn_after(SN_S(60)))) != 0)
        rc = n < 0 ? (int)n : sn_write_all(conn, buf, (size_t)n, NULL, sn_after(SN_S(60)));
    if (rc == -ECANCELED)
        SN_SHIELD(sn_after(SN_S(1))) /* in here we may wait */
        {
            if (sn_write_all(conn, "closing", 7, NULL, SN_FOREVER) < 0)
                rc = -EPIPE; /* gone without a word */
        }
    (void)sn_close(conn);
    return rc;
}

static int accept_guests(void *arg)
{
    struct server *s = arg;
    sn_conn *conn;
    int rc;
    while ((rc = sn_accept(s->listener, &conn, NULL, SN_FOREVER)) == 0)
        if (sn_group_spawn(s->guests, echo, conn, .name = "guest") < 0)
            (void)sn_close(conn); /* no memory for one more: go on with those we have */
    return rc;
}

static int serve(void *arg)
{
    struct server *s = arg;
    int rc = 0;
    /* If one fails, that is nothing to the others. */
    SN_SCOPE(guests, .policy = SN_COLLECT_ALL, .report = &s->report) {
        s->guests = guests;
        SN_SCOPE(door) {
            (void)sn_group_spawn(door, accept_guests, s, .background = true);
            rc = sn_wait_fd(s->signals, SN_READABLE, SN_FOREVER);
        } /* nobody accepts any more */
        (void)sn_listener_close(s->listener);
        printf("server: %s\n", rc < 0 ? strerror(-rc) : "SIGTERM, no new guests");
        (void)sn_event_set(&s->closed);
        if (sn_group_join(guests, sn_after(SN_S(3))) == -ETIMEDOUT)
            sn_group_cancel(guests, "the server is closing");
    }
    return rc < 0 ? rc : 0;
}

/* ---- guests of our own -------------------------------------------------------------------- */

static int hear(sn_conn *conn, const char *name, size_t bytes)
{
    char text[64] = "";
    int rc = sn_read_exact(conn, text, bytes, NULL, sn_after(SN_S(30)));
    printf("%s hears \"%s\"\n", name, text);
    return rc;
}

static int talk(sn_conn *conn, const char *name, const char *text)
{
    int rc = sn_write_all(conn, text, strlen(text), NULL, sn_after(SN_S(30)));
    return rc < 0 ? rc : hear(conn, name, strlen(text));
}

static int visit(struct server *s, const char *addr)
{
    sn_conn *ann = NULL, *bob = NULL, *carl;
    int rc = sn_connect(&ann, addr, SN_FOREVER);
    if (rc == 0)
        rc = sn_connect(&bob, addr, SN_FOREVER);
    if (rc == 0)
        rc = talk(ann, "ann", "hello");
    if (rc == 0)
        rc = talk(bob, "bob", "hello");
    (void)kill(getpid(), SIGTERM);
    if (rc == 0)
        rc = sn_event_wait(&s->closed, SN_FOREVER);
    if (rc == 0 && sn_connect(&carl, addr, SN_FOREVER) == -ECONNREFUSED)
        printf("carl is not let in\n");
    if (rc == 0)
        rc = talk(ann, "ann", "good night");
    if (ann != NULL)
        (void)sn_close(ann);
    if (rc == 0)
        rc = hear(bob, "bob", 7); /* who does not go by himself */
    if (bob != NULL)
        (void)sn_close(bob);
    return rc;
}

static int app(void *arg)
{
    const char *addr = arg;
    char text[SN_ADDR_TEXT_MAX];
    sn_addr where;
    sigset_t set;
    struct server s = {.closed = SN_EVENT_INIT};
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    int rc = sn_listen(&s.listener, addr != NULL ? addr : "127.0.0.1:0", NULL);
    if (rc == 0)
        rc = sn_listener_addr(s.listener, &where);
    if (rc == 0)
        rc = sn_addr_format(&where, text, sizeof(text));
    if (rc < 0)
        return rc;
    if (addr != NULL)
        printf("listening on %s\n", text);
    fflush(stdout);
    int visited = 0;
    SN_SCOPE(g, .result = &rc) {
        (void)sn_group_spawn(g, serve, &s, .name = "server");
        visited = addr == NULL ? visit(&s, text) : 0;
    }
    printf("server: %d guests, %d of them shown out\n", (int)s.report.spawned,
           (int)s.report.cancelled);
    (void)close(s.signals);
    return rc < 0 ? rc : visited;
}

int main(int argc, char **argv)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL); /* in all threads: it is read, not handled */
    int rc = sn_run(app, argc > 1 ? argv[1] : NULL);
    if (rc < 0)
        fprintf(stderr, "26_graceful: %s\n", strerror(-rc));
    return rc < 0;
}
