/* SPDX-License-Identifier: MIT */
/* http_epoll - the floor of HTTP, written by hand: http_epoll PORT THREADS.
 *
 * As echo_epoll.c: a loop and a listener for each thread, edge-triggered, a recv and a send per
 * request. One buffer serves all connections of a thread; only a head that has come in part is
 * kept. Answers are small: who does not take them at once is left. */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    FDS = 65536,
    EVENTS = 1024,
    BACKLOG = 4096,
};

/* The beginning of a head. */
struct part {
    char *bytes;
    size_t n;
};

/* A thread's own. */
struct loop {
    int epoll;
    int listener;
    char buffer[HTTP_HEAD_MAX];
    struct part parts[FDS]; /* by descriptor */
};

static uint16_t port;

static void drop(struct loop *l, int fd)
{
    free(l->parts[fd].bytes);
    l->parts[fd] = (struct part){0};
    close(fd);
}

static bool answer(int fd, int requests)
{
    for (; requests > 0; requests -= HTTP_ANSWERS) {
        size_t n = http_portion(requests);
        if (send(fd, http_answers, n, MSG_NOSIGNAL) != (ssize_t)n)
            return false;
    }
    return true;
}

static bool keep(struct part *part, const char *bytes, size_t n)
{
    free(part->bytes);
    *part = (struct part){0};
    if (n == 0)
        return true;
    if (n == HTTP_HEAD_MAX || (part->bytes = malloc(n)) == NULL)
        return false;
    memcpy(part->bytes, bytes, n);
    part->n = n;
    return true;
}

static void serve(struct loop *l, int fd, uint32_t events)
{
    bool is_ending = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    struct part *part = &l->parts[fd];
    for (;;) {
        size_t have = part->n;
        size_t used;
        if (have > 0)
            memcpy(l->buffer, part->bytes, have);
        ssize_t n = recv(fd, l->buffer + have, HTTP_HEAD_MAX - have, 0);
        if (n < 0 && errno == EAGAIN)
            return;
        bool is_all = n < (ssize_t)(HTTP_HEAD_MAX - have);
        have += n > 0 ? (size_t)n : 0;
        int requests = n > 0 ? http_requests(l->buffer, have, &used) : -1;
        if (requests < 0 || !answer(fd, requests) || !keep(part, l->buffer + used, have - used)) {
            drop(l, fd);
            return;
        }
        if (is_all && !is_ending)
            return;
    }
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
            add(l->epoll, fd, EPOLLIN | EPOLLRDHUP | EPOLLET);
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
        perror("http_epoll");
        exit(1);
    }
    return fd;
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
        int n = epoll_wait(l->epoll, events, EVENTS, -1);
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
        fputs("usage: http_epoll PORT THREADS\n", stderr);
        return 2;
    }
    port = (uint16_t)atoi(argv[1]);
    for (int i = 1; i < atoi(argv[2]); i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, loop, NULL) != 0)
            return 1;
    }
    (void)loop(NULL);
    return 1;
}
