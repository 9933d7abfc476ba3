/* SPDX-License-Identifier: MIT */
/* The servers of the yardstick on libuv: serve PORT THREADS echo|http.
 *
 * One loop and one listener per thread (SO_REUSEPORT), one buffer for all connections of a loop,
 * uv_try_write first and uv_write only for what was not taken. HTTP keeps the beginning of a head
 * beside its connection, and leaves who does not take its answer at once. */
#include "../http.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <uv.h>

enum { BUFFER_BYTES = 65536, BACKLOG = 4096 };

struct visitor {
    uv_tcp_t tcp; /* the first: libuv's pointers are to it */
    char *part;
    size_t part_n;
};

struct rest {
    uv_write_t write;
    char bytes[];
};

static int port;
static bool http;
static __thread char buffer[HTTP_HEAD_MAX + BUFFER_BYTES]; /* what was kept, what is read */

static void on_close(uv_handle_t *handle)
{
    free(((struct visitor *)handle)->part);
    free(handle);
}

static void leave(uv_stream_t *stream)
{
    if (!uv_is_closing((uv_handle_t *)stream))
        uv_close((uv_handle_t *)stream, on_close);
}

static void on_alloc(uv_handle_t *handle, size_t n, uv_buf_t *buf)
{
    (void)handle;
    (void)n;
    *buf = uv_buf_init(buffer + HTTP_HEAD_MAX, http ? HTTP_HEAD_MAX : BUFFER_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

static void on_written(uv_write_t *write, int status)
{
    uv_stream_t *stream = write->handle;
    free(write);
    if (status < 0)
        leave(stream);
    else
        uv_read_start(stream, on_alloc, on_read);
}

static void echo(uv_stream_t *stream, size_t n, const uv_buf_t *buf)
{
    uv_buf_t out = uv_buf_init(buf->base, (unsigned)n);
    int done = uv_try_write(stream, &out, 1);
    if (done == (int)n)
        return;
    if (done < 0 && done != UV_EAGAIN) {
        leave(stream);
        return;
    }
    size_t at = done > 0 ? (size_t)done : 0;
    struct rest *rest = malloc(sizeof(*rest) + n - at);
    if (rest == NULL)
        abort();
    memcpy(rest->bytes, buf->base + at, n - at);
    out = uv_buf_init(rest->bytes, (unsigned)(n - at));
    uv_read_stop(stream);
    uv_write(&rest->write, stream, &out, 1, on_written);
}

static bool answer(uv_stream_t *stream, int requests)
{
    for (; requests > 0; requests -= HTTP_ANSWERS) {
        uv_buf_t out = uv_buf_init((char *)http_answers, (unsigned)http_portion(requests));
        if (uv_try_write(stream, &out, 1) != (int)out.len)
            return false;
    }
    return true;
}

static bool keep(struct visitor *v, const char *bytes, size_t n)
{
    char *part = n > 0 && n < HTTP_HEAD_MAX ? malloc(n) : NULL;
    if (part != NULL)
        memcpy(part, bytes, n);
    free(v->part);
    v->part = part;
    v->part_n = n;
    return n == 0 || part != NULL;
}

static void on_requests(uv_stream_t *stream, size_t n, const uv_buf_t *buf)
{
    struct visitor *v = (struct visitor *)stream;
    char *from = buf->base - v->part_n;
    size_t used;
    n += v->part_n;
    if (v->part_n > 0)
        memcpy(from, v->part, v->part_n);
    int requests = http_requests(from, n, &used);
    if (requests < 0 || !answer(stream, requests) || !keep(v, from + used, n - used))
        leave(stream);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    if (n < 0)
        leave(stream);
    else if (n > 0 && http)
        on_requests(stream, (size_t)n, buf);
    else if (n > 0)
        echo(stream, (size_t)n, buf);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct visitor *v = status == 0 ? calloc(1, sizeof(*v)) : NULL;
    if (v == NULL)
        return;
    uv_tcp_init(listener->loop, &v->tcp);
    if (uv_accept(listener, (uv_stream_t *)&v->tcp) != 0)
        leave((uv_stream_t *)&v->tcp);
    else
        uv_read_start((uv_stream_t *)&v->tcp, on_alloc, on_read);
}

static int bind_to_port(void)
{
    int one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((unsigned short)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* is inherited */
    if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0) {
        perror("serve");
        exit(1);
    }
    return fd;
}

static void *run(void *arg)
{
    uv_loop_t loop;
    uv_tcp_t listener;
    uv_loop_init(&loop);
    uv_tcp_init(&loop, &listener);
    uv_tcp_open(&listener, bind_to_port());
    if (uv_listen((uv_stream_t *)&listener, BACKLOG, on_connection) != 0)
        exit(1);
    uv_run(&loop, UV_RUN_DEFAULT);
    return arg;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fputs("usage: serve PORT THREADS echo|http\n", stderr);
        return 2;
    }
    port = atoi(argv[1]);
    http = strcmp(argv[3], "http") == 0;
    signal(SIGPIPE, SIG_IGN);
    for (int i = 1; i < atoi(argv[2]); i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, NULL) != 0)
            return 1;
    }
    run(NULL);
    return 1;
}
