/* SPDX-License-Identifier: MIT */
/* echo_epoll - the floor by epoll, written by hand: echo_epoll PORT THREADS [SPIN_US].
 *
 * Each thread has a loop and a listener of its own (SO_REUSEPORT). Descriptors are registered once,
 * edge-triggered; a request costs a recv and a send, since a short read proves that there is no
 * more, and epoll_wait is shared by all that is ready. One buffer serves all connections of a
 * thread; only what the kernel does not take at once is copied.
 *
 * SPIN_US: poll for so long before sleeping. 0, the default, is what such a server usually does; a
 * runtime that polls before it sleeps is compared with it. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 65536,
    FDS = 65536,
    EVENTS = 1024,
    BACKLOG = 4096,
};

/* What the kernel did not take yet. While there is something, nothing is read. */
struct rest {
    char *bytes;
    size_t at;
    size_t n;
};

/* A thread's own. */
struct loop {
    int epoll;
    int listener;
    char buffer[BUFFER_BYTES];
    struct rest rests[FDS]; /* by descriptor */
};

static uint16_t port;
static int64_t spin_ns;

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void drop(struct loop *l, int fd)
{
    free(l->rests[fd].bytes);
    l->rests[fd].bytes = NULL;
    close(fd);
}

/* Returns 0 when all is sent, -EAGAIN, or another error. */
static int send_rest(int fd, struct rest *rest)
{
    while (rest->at < rest->n) {
        ssize_t n = send(fd, rest->bytes + rest->at, rest->n - rest->at, MSG_NOSIGNAL);
        if (n < 0)
            return -errno;
        rest->at += (size_t)n;
    }
    free(rest->bytes);
    rest->bytes = NULL;
    return 0;
}

/* Returns as send_rest. */
static int send_all(int fd, const char *bytes, size_t n, struct rest *rest)
{
    ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
    if (sent == (ssize_t)n)
        return 0;
    if (sent < 0 && errno != EAGAIN)
        return -errno;
    size_t done = sent > 0 ? (size_t)sent : 0;
    *rest = (struct rest){.bytes = malloc(n - done), .n = n - done};
    if (rest->bytes == NULL)
        return -ENOMEM;
    memcpy(rest->bytes, bytes + done, n - done);
    return send_rest(fd, rest);
}

static void serve(struct loop *l, int fd, uint32_t events)
{
    struct rest *rest = &l->rests[fd];
    bool is_ending = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    int rc = rest->bytes != NULL ? send_rest(fd, rest) : 0;
    ssize_t n = BUFFER_BYTES;
    while (rc == 0 && (n == BUFFER_BYTES || is_ending)) {
        n = recv(fd, l->buffer, BUFFER_BYTES, 0);
        if (n > 0)
            rc = send_all(fd, l->buffer, (size_t)n, rest);
        else
            rc = n < 0 ? -errno : -EPIPE;
    }
    if (rc < 0 && rc != -EAGAIN)
        drop(l, fd);
}

static void add(int epoll, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        close(fd);
}

static void accept_all(struct loop *l)
{
    int fd;
    while ((fd = accept4(l->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (fd < FDS)
            add(l->epoll, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
        else
            close(fd);
    }
}

static int listen_at_port(void)
{
    int one = 1;
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* is inherited */
    if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, BACKLOG) < 0) {
        perror("echo_epoll");
        exit(1);
    }
    return fd;
}

static int wait_for_events(int epoll, struct epoll_event *events)
{
    int n = 0;
    if (spin_ns > 0)
        for (int64_t end = now_ns() + spin_ns; n == 0 && now_ns() < end;)
            n = epoll_wait(epoll, events, EVENTS, 0);
    return n > 0 ? n : epoll_wait(epoll, events, EVENTS, -1);
}

static void *loop(void *arg)
{
    struct epoll_event events[EVENTS];
    struct loop *l = calloc(1, sizeof(*l));
    if (l == NULL || (l->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0)
        exit(1);
    l->listener = listen_at_port();
    add(l->epoll, l->listener, EPOLLIN);
    for (;;) {
        int n = wait_for_events(l->epoll, events);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == l->listener)
                accept_all(l);
            else
                serve(l, events[i].data.fd, events[i].events);
        }
    }
    return arg;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: echo_epoll PORT THREADS [SPIN_US]\n", stderr);
        return 2;
    }
    port = (uint16_t)atoi(argv[1]);
    spin_ns = argc > 3 ? atoi(argv[3]) * INT64_C(1000) : 0;
    for (int i = 1; i < atoi(argv[2]); i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, loop, NULL) != 0)
            return 1;
    }
    (void)loop(NULL);
    return 1;
}
