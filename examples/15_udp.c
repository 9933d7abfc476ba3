/* SPDX-License-Identifier: MIT */
/* 15_udp - a question that may get lost: time-outs, retries, and answers that come too late.
 *
 *     15_udp                            asks a server of its own, which loses some
 *     15_udp 127.0.0.1:7000             answers whatever is sent there, for ever */
#include <sinew/sinew.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ATTEMPTS = 3,
};

struct server {
    sn_dgram *socket;
    bool lossy;
};

/* "ping 2.1" is the first attempt of question 2. A lossy server does not hear that one, nor
 * anything of question 3, and answers question 4 twice. */
static int answer(void *arg)
{
    const struct server *s = arg;
    char text[512];
    sn_addr from;
    for (;;) {
        ptrdiff_t n = sn_recv_from(s->socket, text, sizeof(text), &from, SN_FOREVER);
        if (n < 0)
            return (int)n; /* -EBADF: closed, which is how it ends */
        if ((size_t)n > sizeof(text))
            continue; /* longer than we take: it came cut */
        bool is_lost = s->lossy && (memcmp(text, "ping 2.1", 8) == 0 || text[5] == '3');
        for (int i = 0; !is_lost && i < (s->lossy && text[5] == '4' ? 2 : 1); i++)
            if (sn_send_to(s->socket, text, (size_t)n, &from, sn_after(SN_S(1))) < 0)
                break; /* that one is gone; the others are not */
    }
}

/* Wait for the answer to `question`; others are late ones, to be thrown away. */
static ptrdiff_t await_answer(sn_dgram *socket, int question, sn_deadline until)
{
    char text[64] = "";
    ptrdiff_t n;
    do
        n = sn_recv_from(socket, text, sizeof(text) - 1, NULL, until);
    while (n >= 0 && strtol(text + 5, NULL, 10) != question);
    return n;
}

static int ask(sn_dgram *socket, int question)
{
    int64_t patience = SN_MS(500);
    for (int attempt = 1; attempt <= ATTEMPTS; attempt++, patience *= 2) {
        char text[32];
        int n = snprintf(text, sizeof(text), "ping %d.%d", question, attempt);
        ptrdiff_t rc = sn_send_to(socket, text, (size_t)n, NULL, sn_after(SN_S(1)));
        if (rc >= 0)
            rc = await_answer(socket, question, sn_after(patience));
        if (rc >= 0)
            return attempt;
        if (rc != -ETIMEDOUT)
            return (int)rc; /* -ECONNREFUSED: nobody is there, and the other machine said so */
    }
    return -ETIMEDOUT;
}

static int self_test(struct server *s, const char *addr)
{
    sn_dgram *client;
    int rc = sn_dgram_open(&client, "127.0.0.1:0");
    if (rc < 0)
        return rc;
    rc = sn_dgram_connect(client, addr); /* send there, and hear nobody else */
    s->lossy = true;
    sn_task *server = sn_spawn(answer, s, .name = "server");
    for (int question = 1; question <= 5 && rc == 0; question++) {
        int attempts = ask(client, question);
        if (attempts > 0)
            printf("ping %d: answered at attempt %d\n", question, attempts);
        else if (attempts == -ETIMEDOUT)
            printf("ping %d: no answer\n", question);
        else
            rc = attempts;
    }
    (void)sn_dgram_close(client);
    (void)sn_dgram_close(s->socket);
    (void)sn_join(server, NULL);
    return rc;
}

static int app(void *arg)
{
    const char *addr = arg;
    struct server s = {.lossy = false};
    sn_addr where;
    char text[SN_ADDR_TEXT_MAX];
    int rc = sn_dgram_open(&s.socket, addr != NULL ? addr : "127.0.0.1:0");
    if (rc == 0)
        rc = sn_dgram_addr(s.socket, &where);
    if (rc == 0)
        rc = sn_addr_format(&where, text, sizeof(text));
    if (rc < 0)
        return rc;
    if (addr == NULL)
        return self_test(&s, text);
    printf("listening on %s\n", text);
    fflush(stdout);
    return answer(&s);
}

int main(int argc, char **argv)
{
    int rc = sn_run(app, argc > 1 ? argv[1] : NULL);
    if (rc < 0)
        fprintf(stderr, "15_udp: %s\n", strerror(-rc));
    return rc < 0;
}
