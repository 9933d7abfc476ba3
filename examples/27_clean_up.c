/* SPDX-License-Identifier: MIT */
/* 27_clean_up - what is left to do when a request takes too long, or nobody wants it any more.
 *
 * SN_DEADLINE ends its waits, SN_SHIELD lets the farewell wait all the same; SN_DEFER and sn_ensure
 * put away what was taken out. */
#include <sinew/sinew.h>
#include <stdio.h>
#include <string.h>

enum { WORD = 7 }; /* bytes of each that is said */

struct request {
    sn_conn *client, *server;
    int64_t patience_ns;
    sn_event begun;
    char heard[8 * WORD]; /* by the server */
};

static void hang_up(void *conn)
{
    (void)sn_close(conn);
}

/* Repeats what it hears; but over its work it forgets to answer. */
static int serve(void *arg)
{
    struct request *r = arg;
    char word[WORD + 1] = "";
    SN_DEFER(hang_up, r->server); /* when this function is left, here or there */
    int rc;
    while ((rc = sn_read_exact(r->server, word, WORD, NULL, SN_FOREVER)) == 0) {
        strncat(r->heard, word, sizeof(r->heard) - strlen(r->heard) - 1);
        if (strcmp(word, "do work") == 0)
            rc = sn_event_set(&r->begun);
        else
            rc = sn_write_all(r->server, word, WORD, NULL, SN_FOREVER);
        if (rc < 0)
            return rc;
    }
    return rc == -EPIPE ? 0 : rc; /* the client has hung up */
}

static int ask(sn_conn *conn, const char *question)
{
    char answer[WORD];
    int rc = sn_write_all(conn, question, WORD, NULL, SN_FOREVER);
    return rc < 0 ? rc : sn_read_exact(conn, answer, WORD, NULL, SN_FOREVER);
}

static int sweep(void *arg)
{
    int rc = sn_sleep(SN_MS(1)); /* a hook may wait, whatever has happened to its task */
    printf("    swept: %s\n", (const char *)arg);
    return rc;
}

static int request(void *arg)
{
    struct request *r = arg;
    bool is_late = false;
    SN_DEFER(hang_up, r->client);
    int rc = sn_ensure(sweep, "the work table"); /* when the task ends, even by a panic */
    if (rc == 0)
        rc = ask(r->client, "hello, ");
    if (rc < 0)
        return rc;
    SN_DEADLINE(sn_after(r->patience_ns), .expired = &is_late) {
        rc = ask(r->client, "do work");
        if (rc < 0) {
            printf("    %s: %s\n", strerror(-rc), sn_cancel_reason());
            SN_SHIELD(sn_after(SN_S(30))) /* in here we may wait, but not for ever */
            {
                if (ask(r->client, ", or no") == 0)
                    printf("    the server knows\n");
            }
        }
    }
    printf("    the deadline has %spassed\n", is_late ? "" : "not ");
    return rc;
}

/* A server, and a client whose user leaves soon or waits. */
static int play(bool leaves)
{
    sn_conn *ends[2];
    int rc = sn_conn_pair(ends), result = 0;
    if (rc < 0)
        return rc;
    struct request r = {ends[0], ends[1], leaves ? SN_S(3600) : SN_MS(100), SN_EVENT_INIT, ""};
    SN_SCOPE(servers, .result = &rc) {
        (void)sn_group_spawn(servers, serve, &r);
        SN_SCOPE(clients, .results = &result, .results_max = 1) {
            (void)sn_group_spawn(clients, request, &r);
            if (leaves && sn_event_wait(&r.begun, SN_FOREVER) == 0)
                sn_group_cancel(clients, "the user has left");
        }
    }
    printf("the request: %s; the server has heard \"%s\"\n", strerror(-result), r.heard);
    return rc;
}

static int app(void *arg)
{
    (void)arg;
    int rc = play(false);
    return rc < 0 ? rc : play(true);
}

int main(void)
{
    return sn_run(app, NULL) < 0;
}
