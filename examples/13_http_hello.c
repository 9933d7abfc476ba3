/* SPDX-License-Identifier: MIT */
/* 13_http_hello - HTTP/1.1 by hand: keep-alive, pipelining, limits, deadlines.
 *
 *     13_http_hello                     starts a server, visits it, shows what happened, and ends
 *     13_http_hello 127.0.0.1:8080      serves
 *
 * A visitor's task is a loop: read the head of a request, answer it. What a stranger sends is
 * bounded in size (HEAD_BYTES_MAX, BODY_BYTES_MAX) and in time: a request has `idle_ns` to arrive
 * as a whole, so that a visitor who sends a letter a minute is not served for hours. */
#define _GNU_SOURCE /* memmem, strcasestr, strsep */
#include <sinew/sinew.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD_BYTES_MAX = 4096,
    BODY_BYTES_MAX = 1 << 20,
};

struct visit {
    sn_conn *conn;
    int64_t idle_ns;
};

/* What has come and is not used up: perhaps several requests, perhaps half a one. */
struct input {
    char bytes[HEAD_BYTES_MAX];
    size_t count;
};

struct request {
    char method[16], path[256];
    int status; /* what is wrong with it, as HTTP counts, or 200 */
    bool keep;  /* the connection, for the next one */
    long body_bytes;
};

/* ---- reading ----------------------------------------------------------------------------- */

/* Returns the bytes of the next head, up to its empty line; 0: nobody is there any more;
 * -E2BIG, or what sn_read said. */
static ptrdiff_t read_head(sn_conn *conn, struct input *in, sn_deadline until)
{
    for (;;) {
        char *end = memmem(in->bytes, in->count, "\r\n\r\n", 4);
        if (end != NULL)
            return end + 4 - in->bytes;
        if (in->count == sizeof(in->bytes))
            return -E2BIG;
        ptrdiff_t n = sn_read(conn, in->bytes + in->count, sizeof(in->bytes) - in->count, until);
        if (n <= 0)
            return n;
        in->count += (size_t)n;
    }
}

static void use_up(struct input *in, size_t bytes)
{
    in->count -= bytes;
    memmove(in->bytes, in->bytes + bytes, in->count);
}

static int skip_body(sn_conn *conn, struct input *in, size_t bytes, sn_deadline until)
{
    for (;;) {
        size_t here = bytes < in->count ? bytes : in->count;
        use_up(in, here);
        bytes -= here;
        if (bytes == 0)
            return 0;
        ptrdiff_t n = sn_read(conn, in->bytes, sizeof(in->bytes), until);
        if (n <= 0)
            return n < 0 ? (int)n : -EPIPE;
        in->count = (size_t)n;
    }
}

/* Strict: lines end in CR LF, and there is no other CR, LF, NUL or control character. What is read
 * in two ways by two programs is how requests are smuggled past one of them. */
static bool is_clean(const char *head, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)head[i];
        if (c == '\r' && i + 1 < bytes && head[i + 1] == '\n')
            i++;
        else if ((c < ' ' && c != '\t') || c == 127)
            return false;
    }
    return true;
}

static bool is_token(const char *text)
{
    static const char legal[] = "!#$%&'*+-.^_`|~0123456789"
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return *text != '\0' && text[strspn(text, legal)] == '\0';
}

/* A line of the head, "Name: value". Returns what is wrong with it, or 200. */
static int read_field(char *line, struct request *req, int *hosts)
{
    char *value = strchr(line, ':');
    if (value == NULL)
        return 400;
    *value++ = '\0';
    if (!is_token(line))
        return 400;
    value += strspn(value, " \t");
    for (size_t n = strlen(value); n > 0 && strchr(" \t", value[n - 1]) != NULL; n--)
        value[n - 1] = '\0';
    if (strcasecmp(line, "Host") == 0) {
        ++*hosts;
    } else if (strcasecmp(line, "Connection") == 0) {
        req->keep = req->keep && strcasestr(value, "close") == NULL;
    } else if (strcasecmp(line, "Transfer-Encoding") == 0) {
        return 501;
    } else if (strcasecmp(line, "Content-Length") == 0) {
        size_t digits = strspn(value, "0123456789");
        if (digits == 0 || value[digits] != '\0' || req->body_bytes >= 0)
            return 400;
        req->body_bytes = digits < 9 ? strtol(value, NULL, 10) : BODY_BYTES_MAX + 1L;
    }
    return 200;
}

/* Reads a head that is a clean string and cuts it up. Its last line is empty: "\r" here. */
static void read_request(char *head, struct request *req)
{
    char version[16];
    int hosts = 0, used = 0;
    char *line = head, *end = strstr(line, "\r\n");
    *end = '\0';
    if (sscanf(line, "%15[A-Z] %255[!-~] %15[!-~]%n", req->method, req->path, version, &used) != 3)
        return;
    bool is_1_1 = strcmp(version, "HTTP/1.1") == 0;
    if (line[used] != '\0' || req->path[0] != '/' || (!is_1_1 && strcmp(version, "HTTP/1.0") != 0))
        return;
    req->keep = is_1_1;
    req->status = 200;
    for (line = end + 2; strcmp(line, "\r") != 0 && req->status == 200; line = end + 2) {
        end = strstr(line, "\r\n");
        *end = '\0';
        req->status = read_field(line, req, &hosts);
    }
    if (req->status == 200 && (hosts > 1 || (is_1_1 && hosts == 0)))
        req->status = 400;
    if (req->status == 200 && req->body_bytes > BODY_BYTES_MAX)
        req->status = 413;
}

/* ---- answering --------------------------------------------------------------------------- */

static const char *reason(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 413:
        return "Content Too Large";
    case 431:
        return "Request Header Fields Too Large";
    case 501:
        return "Not Implemented";
    default:
        return "Bad Request";
    }
}

static int answer(sn_conn *conn, const struct request *req, int64_t idle_ns)
{
    char text[512], body[64];
    int status = req->status;
    if (status == 200 && strcmp(req->method, "GET") != 0 && strcmp(req->method, "HEAD") != 0)
        status = 405;
    else if (status == 200 && strcmp(req->path, "/") != 0)
        status = 404;
    int length =
        snprintf(body, sizeof(body), "%s\n", status == 200 ? "Hello, web!" : reason(status));
    int n = snprintf(text, sizeof(text),
                     "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n%s%s\r\n"
                     "%s",
                     status, reason(status), length, status == 405 ? "Allow: GET, HEAD\r\n" : "",
                     req->keep ? "" : "Connection: close\r\n",
                     strcmp(req->method, "HEAD") == 0 ? "" : body);
    return sn_write_all(conn, text, (size_t)n, NULL, sn_after(idle_ns));
}

/* A close with something unread is a reset, which could overtake our last answer. So say that we
 * are done, and let the other end finish, for a while. */
static void hang_up(sn_conn *conn, struct input *in)
{
    sn_deadline until = sn_after(SN_S(1));
    if (sn_shutdown(conn, SN_SHUT_WRITE) == 0)
        while (sn_read(conn, in->bytes, sizeof(in->bytes), until) > 0)
            ;
    (void)sn_close(conn);
}

static int serve_visit(void *arg)
{
    struct visit v = *(struct visit *)arg;
    struct input in = {.count = 0};
    struct request req = {.keep = true};
    int rc = 0;
    while (rc == 0 && req.keep) {
        sn_deadline until = sn_after(v.idle_ns);
        ptrdiff_t n = read_head(v.conn, &in, until);
        if (n <= 0 && n != -E2BIG)
            break; /* gone, silent for too long, or broken */
        req = (struct request){.status = n < 0 ? 431 : 400, .body_bytes = -1};
        if (n > 0 && is_clean(in.bytes, (size_t)n)) {
            in.bytes[n - 1] = '\0'; /* the last LF: the head is a string now */
            read_request(in.bytes, &req);
            use_up(&in, (size_t)n);
        }
        req.keep = req.keep && req.status == 200;
        rc = answer(v.conn, &req, v.idle_ns);
        if (rc == 0 && req.keep && req.body_bytes > 0)
            rc = skip_body(v.conn, &in, (size_t)req.body_bytes, until);
    }
    hang_up(v.conn, &in);
    return rc;
}

/* ---- listening --------------------------------------------------------------------------- */

struct server {
    sn_listener *listener;
    int64_t idle_ns;
    char addr[SN_ADDR_TEXT_MAX];
};

static int open_server(struct server *s, const char *addr, int64_t idle_ns)
{
    sn_addr where;
    s->idle_ns = idle_ns;
    int rc = sn_listen(&s->listener, addr, NULL);
    if (rc < 0)
        return rc;
    rc = sn_listener_addr(s->listener, &where);
    if (rc == 0)
        rc = sn_addr_format(&where, s->addr, sizeof(s->addr));
    if (rc < 0)
        (void)sn_listener_close(s->listener);
    return rc < 0 ? rc : 0;
}

static int serve(void *arg)
{
    const struct server *s = arg;
    for (;;) {
        struct visit v = {.idle_ns = s->idle_ns};
        int rc = sn_accept(s->listener, &v.conn, NULL, SN_FOREVER);
        if (rc < 0)
            return rc; /* -EBADF: it was closed, and that is how a server ends */
        if (sn_spawn_detached(serve_visit, &v, .copy_bytes = sizeof(v), .name = "visit") < 0)
            (void)sn_close(v.conn);
    }
}

/* ---- visiting ---------------------------------------------------------------------------- */

/* Says each text when something has come back to the one before, listens to the end, and shows
 * the first line of each answer. */
static int visit(const char *addr, const char *what, const char *const texts[2], bool in_full)
{
    sn_deadline until = sn_after(SN_S(10));
    char heard[4096];
    size_t count = 0;
    sn_conn *conn;
    int rc = sn_connect(&conn, addr, until);
    if (rc < 0)
        return rc;
    ptrdiff_t n = 1;
    for (int i = 0; n > 0;) {
        if (i < 2 && texts[i] != NULL)
            rc = sn_write_all(conn, texts[i], strlen(texts[i]), NULL, until);
        i++;
        n = rc < 0 ? rc : sn_read(conn, heard + count, sizeof(heard) - 1 - count, until);
        count += n > 0 ? (size_t)n : 0;
    }
    (void)sn_close(conn);
    heard[count] = '\0';
    printf("%-12s", what);
    for (char *at = heard; (at = strstr(at, "HTTP/1.1 ")) != NULL; at += 9)
        printf(" [%.*s]", (int)strcspn(at + 9, "\r"), at + 9);
    printf("%s\n", count == 0 ? " closed without an answer" : "");
    char *rest = in_full ? heard : NULL;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != '\0';)
        printf("    |%.*s\n", (int)strcspn(line, "\r"), line);
    return (int)n;
}

#define HOST     "Host: x\r\n"
#define GET      "GET / HTTP/1.1\r\n" HOST "\r\n"
#define LAST_GET "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"

static int self_test(void)
{
    static const struct {
        const char *what;
        const char *texts[2];
    } visits[] = {
        {"keep-alive", {GET, LAST_GET}},
        {"pipelining", {GET GET LAST_GET, NULL}},
        {"HEAD", {"HEAD / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", NULL}},
        {"a body", {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello" LAST_GET, NULL}},
        {"no such page", {"GET /nothing HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", NULL}},
        {"rubbish", {"who is there?\r\n\r\n", NULL}},
    };
    struct server s, strict;
    int rc = open_server(&s, "127.0.0.1:0", SN_S(10));
    if (rc < 0)
        return rc;
    rc = open_server(&strict, "127.0.0.1:0", SN_MS(50));
    if (rc < 0) {
        (void)sn_listener_close(s.listener);
        return rc;
    }
    sn_task *servers[] = {sn_spawn(serve, &s), sn_spawn(serve, &strict)};
    rc = visit(s.addr, "GET /", (const char *const[]){LAST_GET, NULL}, true);
    for (size_t i = 0; i < sizeof(visits) / sizeof(visits[0]) && rc == 0; i++)
        rc = visit(s.addr, visits[i].what, visits[i].texts, false);
    if (rc == 0)
        rc = visit(strict.addr, "silence", (const char *const[]){"GET / HTT", NULL}, false);
    (void)sn_listener_close(s.listener);
    (void)sn_listener_close(strict.listener);
    for (int i = 0; i < 2; i++)
        (void)sn_join(servers[i], NULL);
    return rc;
}

static int app(void *arg)
{
    const char *addr = arg;
    if (addr == NULL)
        return self_test();
    struct server s;
    int rc = open_server(&s, addr, SN_S(5));
    if (rc < 0)
        return rc;
    printf("listening on %s\n", s.addr);
    fflush(stdout);
    return serve(&s);
}

int main(int argc, char **argv)
{
    int rc = sn_run(app, argc > 1 ? argv[1] : NULL);
    if (rc < 0)
        fprintf(stderr, "13_http_hello: %s\n", strerror(-rc));
    return rc < 0;
}
