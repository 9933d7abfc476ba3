/* SPDX-License-Identifier: MIT */
/* 24_happy_eyeballs - a host has several addresses, and some are dead: who answers first wins.
 *
 * The idea of RFC 8305: try the addresses in order, each a little later than the one before, or at
 * once when that one has failed. The first connection cancels what is left; no descriptor stays. */
#define _GNU_SOURCE /* S_ISSOCK */
#include <sinew/sinew.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct attempt {
    const char *addr;
    sn_conn *conn;
    sn_event failed;
};

static int attempt(void *arg)
{
    struct attempt *a = arg;
    int rc = sn_connect(&a->conn, a->addr, SN_FOREVER); /* as long as the group lives */
    if (rc < 0)
        (void)sn_event_set(&a->failed);
    return rc;
}

/* Connect to one of the addresses; `results` learns what became of those tried. */
static int connect_to_any(sn_conn **out, const char *const addrs[], unsigned n, int results[])
{
    enum { ADDRS_MAX = 8 };
    struct attempt attempts[ADDRS_MAX];
    sn_group_report report;
    int rc = 0;
    if (n == 0 || n > ADDRS_MAX)
        return -EINVAL;
    memset(attempts, 0, sizeof(attempts));
    SN_SCOPE(g, .policy = SN_FIRST_SUCCESS, .results = results, .results_max = n, .result = &rc,
             .report = &report) {
        for (unsigned i = 0; i < n; i++) {
            attempts[i] = (struct attempt){addrs[i], NULL, SN_EVENT_INIT};
            if (sn_group_spawn(g, attempt, &attempts[i], .name = addrs[i]) < 0 ||
                sn_event_wait(&attempts[i].failed, sn_after(SN_MS(250))) == -ECANCELED)
                break; /* there is a winner, or nobody waits for one any more */
        }
    }
    for (int i = 0; i < (int)n; i++) /* two at once: one is enough */
        if (i != report.winner && attempts[i].conn != NULL)
            (void)sn_close(attempts[i].conn);
    if (report.winner < 0)
        return rc;
    *out = attempts[report.winner].conn;
    return 0;
}

/* ---- addresses to try ---------------------------------------------------------------------- */

/* Listen at `host`; `text` becomes the whole address. */
static int listen_at(sn_listener **out, const char *host, int backlog, char text[SN_ADDR_TEXT_MAX])
{
    sn_addr where;
    snprintf(text, SN_ADDR_TEXT_MAX, "%s:0", host);
    int rc = sn_listen(out, text, &(sn_listen_options){.backlog = backlog});
    if (rc == 0)
        rc = sn_listener_addr(*out, &where);
    return rc < 0 ? rc : sn_addr_format(&where, text, SN_ADDR_TEXT_MAX);
}

static int count_sockets(void)
{
    int n = 0;
    struct stat st;
    for (int fd = 0; fd < 1024; fd++)
        n += fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
    return n;
}

static const char *outcome(int result)
{
    return result == 0 ? "connected" : result == 1 ? "not tried" : strerror(-result);
}

static int app(void *arg)
{
    char refuses[SN_ADDR_TEXT_MAX], hangs[SN_ADDR_TEXT_MAX], serves[SN_ADDR_TEXT_MAX];
    sn_listener *none, *full, *good;
    sn_conn *queue[2], *conn = NULL;
    (void)arg;
    int rc = listen_at(&none, "127.0.0.2", 0, refuses);
    if (rc >= 0)
        rc = sn_listener_close(none); /* nobody is there any more */
    if (rc >= 0)
        rc = listen_at(&full, "127.0.0.3", 1, hangs);
    for (int i = 0; i < 2 && rc >= 0; i++) /* nobody accepts these, and there is no more room */
        rc = sn_connect(&queue[i], hangs, SN_FOREVER);
    if (rc >= 0)
        rc = listen_at(&good, "127.0.0.1", 0, serves);
    if (rc < 0)
        return rc;

    const char *const addrs[] = {refuses, hangs, serves};
    int results[] = {1, 1, 1}, before = count_sockets();
    SN_DEADLINE(sn_after(SN_S(30))) {
        rc = connect_to_any(&conn, addrs, 3, results);
    }
    for (int i = 0; i < 3; i++)
        printf("%.9s: %s\n", addrs[i], outcome(results[i]));
    printf("%d socket more than before\n", count_sockets() - before);
    if (conn != NULL)
        (void)sn_close(conn);
    for (int i = 0; i < 2; i++)
        (void)sn_close(queue[i]);
    (void)sn_listener_close(full);
    (void)sn_listener_close(good);
    return rc;
}

int main(void)
{
    int rc = sn_run(app, NULL);
    if (rc < 0)
        fprintf(stderr, "24_happy_eyeballs: %s\n", strerror(-rc));
    return rc < 0;
}
