/* SPDX-License-Identifier: MIT */
/* 14_chat - what one says, all others hear; who does not listen is shown out.
 *
 *     14_chat                          three guests of its own, one of whom does not listen
 *     14_chat 127.0.0.1:6667           serves; join with: socat - TCP:127.0.0.1:6667
 *
 * The room is shared by all tasks and has no lock. The runtime is single-threaded, so a task loses
 * the processor only where it waits; between two waits the room is its own. tell_others() keeps to
 * that by never waiting: it writes with SN_NOWAIT. What a guest has not read yet is kept by the
 * system, SEND_BYTES of it; one for whom there is no more room has not listened for too long. */
#include <sinew/sinew.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NICK_BYTES = 16,
    LINE_BYTES = 512,
    SEND_BYTES = 16 << 10,
    GUESTS_MAX = 64,
};

struct room {
    sn_listener *listener;
    struct guest *guests[GUESTS_MAX]; /* NULL: a free seat */
};

struct guest {
    struct room *room;
    sn_conn *conn;
    char nick[NICK_BYTES + 1];
    char input[LINE_BYTES]; /* what has come and is not a whole line yet */
    size_t count;
};

/* Nobody here waits to write: see above. */
static int say(struct guest *g, const char *text)
{
    return sn_write_all(g->conn, text, strlen(text), NULL, SN_NOWAIT);
}

/* Say a line to all others: "* ann has joined", "<ann> hello". */
static void tell_others(struct guest *from, const char *before, const char *after, const char *line)
{
    char text[LINE_BYTES + NICK_BYTES + 32];
    snprintf(text, sizeof(text), "%s%s%s%s\n", before, from->nick, after, line);
    for (int i = 0; i < GUESTS_MAX; i++) {
        struct guest *g = from->room->guests[i];
        if (g != NULL && g != from && say(g, text) < 0)
            (void)sn_shutdown(g->conn, SN_SHUT_BOTH); /* its own task reads the end, and leaves */
    }
}

/* The next line, without its end. Returns 0; -EPIPE, -EMSGSIZE, or what sn_read says. */
static int read_line(struct guest *g, char line[LINE_BYTES], sn_deadline until)
{
    char *end;
    while ((end = memchr(g->input, '\n', g->count)) == NULL) {
        if (g->count == sizeof(g->input))
            return -EMSGSIZE;
        ptrdiff_t n = sn_read(g->conn, g->input + g->count, sizeof(g->input) - g->count, until);
        if (n <= 0)
            return n < 0 ? (int)n : -EPIPE;
        g->count += (size_t)n;
    }
    size_t length = (size_t)(end - g->input);
    memcpy(line, g->input, length);
    line[length] = '\0';
    line[strcspn(line, "\r")] = '\0';
    g->count -= length + 1;
    memmove(g->input, end + 1, g->count);
    return 0;
}

static bool is_nick(const struct room *room, const char *nick)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    size_t length = strspn(nick, legal);
    for (int i = 0; i < GUESTS_MAX; i++)
        if (room->guests[i] != NULL && strcmp(room->guests[i]->nick, nick) == 0)
            return false;
    return length > 0 && length <= NICK_BYTES && nick[length] == '\0';
}

/* Ask for a name until there is one, and take a seat. Returns the seat, or an error. */
static int join(struct guest *g)
{
    char line[LINE_BYTES];
    sn_deadline until = sn_after(SN_S(60));
    for (;;) {
        int rc = say(g, "your name?\n");
        if (rc == 0)
            rc = read_line(g, line, until);
        if (rc < 0)
            return rc;
        if (!is_nick(g->room, line))
            continue;
        for (int seat = 0; seat < GUESTS_MAX; seat++) {
            if (g->room->guests[seat] != NULL)
                continue;
            memcpy(g->nick, line, strlen(line) + 1);
            g->room->guests[seat] = g; /* nothing has waited since is_nick: the name is free */
            return seat;
        }
        return -ENOSPC;
    }
}

static int attend(void *arg)
{
    struct guest *g = arg;
    char line[LINE_BYTES];
    int rc = sn_conn_set(g->conn, SN_CONN_SEND_BUFFER, SEND_BYTES);
    int seat = rc < 0 ? rc : join(g);
    if (seat >= 0) {
        rc = say(g, "welcome\n");
        tell_others(g, "* ", " has joined", "");
        while (rc == 0 && (rc = read_line(g, line, SN_FOREVER)) == 0)
            tell_others(g, "<", "> ", line);
        g->room->guests[seat] = NULL;
        tell_others(g, "* ", " has left", "");
    }
    (void)sn_close(g->conn);
    free(g);
    return 0;
}

static int serve(void *arg)
{
    struct room *room = arg;
    for (;;) {
        sn_conn *conn;
        int rc = sn_accept(room->listener, &conn, NULL, SN_FOREVER);
        if (rc < 0)
            return rc;
        struct guest *g = calloc(1, sizeof(*g));
        if (g != NULL) {
            *g = (struct guest){.room = room, .conn = conn};
            if (sn_spawn_detached(attend, g, .name = "guest") == 0)
                continue;
        }
        (void)sn_close(conn);
        free(g);
    }
}

/* ---- guests of our own ------------------------------------------------------------------- */

/* A guest's view of it: what there is to hear next. */
static int hear(struct guest *g, char line[LINE_BYTES])
{
    int rc = read_line(g, line, sn_after(SN_S(10)));
    if (rc == 0 && strlen(line) < 80)
        printf("%-5s hears: %s\n", g->nick, line);
    return rc;
}

static int enter(struct guest *g, const char *addr, const char *nick)
{
    char line[LINE_BYTES];
    snprintf(g->nick, sizeof(g->nick), "%s", nick);
    snprintf(line, sizeof(line), "%s\n", nick);
    int rc = sn_connect(&g->conn, addr, sn_after(SN_S(10)));
    if (rc == 0)
        rc = hear(g, (char[LINE_BYTES]){0});
    if (rc == 0)
        rc = say(g, line);
    return rc < 0 ? rc : hear(g, line);
}

/* Bob talks, Ann listens, Carl does not, until he is shown out. */
static int bore(struct guest *ann, struct guest *bob)
{
    char line[LINE_BYTES] = "", speech[401];
    memset(speech, 'a', 399);
    memcpy(speech + 399, "\n", 2);
    int rc = 0;
    printf("bob talks and talks\n");
    for (int i = 0; i < 10000 && rc == 0 && line[0] != '*'; i++) {
        rc = say(bob, speech);
        if (rc == 0)
            rc = hear(ann, line);
    }
    return rc;
}

static int meet(struct guest g[3], const char *addr)
{
    char line[LINE_BYTES];
    int rc = enter(&g[0], addr, "ann");
    if (rc == 0)
        rc = enter(&g[1], addr, "bob");
    if (rc == 0)
        rc = hear(&g[0], line);
    if (rc == 0)
        rc = say(&g[1], "hello, ann\n");
    if (rc == 0)
        rc = hear(&g[0], line);
    if (rc == 0)
        rc = enter(&g[2], addr, "carl");
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = hear(&g[i], line);
    return rc < 0 ? rc : bore(&g[0], &g[1]);
}

static int self_test(struct room *room, const char *addr)
{
    struct guest *g = calloc(3, sizeof(*g));
    if (g == NULL)
        return -ENOMEM;
    sn_task *server = sn_spawn(serve, room, .name = "server");
    int rc = meet(g, addr);
    for (int i = 0; i < 3; i++)
        if (g[i].conn != NULL)
            (void)sn_close(g[i].conn);
    free(g);
    (void)sn_listener_close(room->listener);
    (void)sn_join(server, NULL);
    return rc;
}

static int app(void *arg)
{
    const char *addr = arg;
    static struct room room; /* stays until the last guest has left */
    sn_addr where;
    char text[SN_ADDR_TEXT_MAX];
    int rc = sn_listen(&room.listener, addr != NULL ? addr : "127.0.0.1:0", NULL);
    if (rc == 0)
        rc = sn_listener_addr(room.listener, &where);
    if (rc == 0)
        rc = sn_addr_format(&where, text, sizeof(text));
    if (rc < 0)
        return rc;
    if (addr == NULL)
        return self_test(&room, text);
    printf("listening on %s\n", text);
    fflush(stdout);
    return serve(&room);
}

int main(int argc, char **argv)
{
    sn_runtime *rt;
    int rc = sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true});
    if (rc == 0) {
        rc = sn_runtime_block_on(rt, app, argc > 1 ? argv[1] : NULL);
        sn_runtime_destroy(rt);
    }
    if (rc < 0)
        fprintf(stderr, "14_chat: %s\n", strerror(-rc));
    return rc < 0;
}
