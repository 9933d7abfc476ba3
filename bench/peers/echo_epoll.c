/* Hand-written epoll echo server: edge-triggered, one loop per thread,
 * SO_REUSEPORT listener per thread.  usage: echo_epoll port threads
 * Per request: read + write; epoll_wait is shared by the whole ready batch.
 * env ECHO_SPIN=us: poll with epoll_wait(timeout 0) for that long before blocking
 * (default 0: block at once).  env ECHO_CC: congestion control of the sockets. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#define CAP   65536
#define MAXFD 65536
struct pend {
    char *p;
    size_t off, len;
};
static struct pend pend[MAXFD];
static int port;
static uint64_t spin_ns;
static uint64_t now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void drop(int fd)
{
    free(pend[fd].p);
    pend[fd].p = 0;
    close(fd);
}
static int flush(int fd)
{ /* 0 done, 1 blocked, -1 dead */
    struct pend *q = &pend[fd];
    while (q->off < q->len) {
        ssize_t n = send(fd, q->p + q->off, q->len - q->off, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN ? 1 : -1;
        q->off += (size_t)n;
    }
    free(q->p);
    q->p = 0;
    return 0;
}
static void serve(int fd, uint32_t ev, char *buf)
{
    if (pend[fd].p) {
        int r = flush(fd);
        if (r < 0) {
            drop(fd);
            return;
        }
        if (r > 0)
            return;
    }
    for (;;) {
        ssize_t n = recv(fd, buf, CAP, 0);
        if (n <= 0) {
            if (n < 0 && errno == EAGAIN)
                return;
            drop(fd);
            return;
        }
        ssize_t w = send(fd, buf, (size_t)n, MSG_NOSIGNAL);
        if (w < 0 && errno != EAGAIN) {
            drop(fd);
            return;
        }
        if (w < n) { /* back-pressure: keep the rest, stop reading */
            if (w < 0)
                w = 0;
            struct pend *q = &pend[fd];
            q->len = (size_t)(n - w);
            q->off = 0;
            q->p = malloc(q->len);
            memcpy(q->p, buf + w, q->len);
            int r = flush(fd);
            if (r < 0) {
                drop(fd);
                return;
            }
            if (r > 0)
                return;
            continue;
        }
        /* a short read drained the socket; new data gives a new edge */
        if (n < CAP && !(ev & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
            return;
    }
}
static void *run(void *a)
{
    (void)a;
    int l = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(l, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    setsockopt(l, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* inherited */
    const char *cc = getenv("ECHO_CC"); /* congestion control, inherited too */
    if (cc)
        setsockopt(l, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc));
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(l, (struct sockaddr *)&sa, sizeof sa) || listen(l, 4096)) {
        perror("listen");
        exit(1);
    }
    int ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = l}, evs[1024];
    epoll_ctl(ep, EPOLL_CTL_ADD, l, &ev);
    char *buf = malloc(CAP);
    for (;;) {
        int n = 0;
        if (spin_ns)
            for (uint64_t t = now() + spin_ns; !(n = epoll_wait(ep, evs, 1024, 0)) && now() < t;) {
            }
        if (n <= 0)
            n = epoll_wait(ep, evs, 1024, -1);
        for (int i = 0; i < n; i++) {
            int fd = evs[i].data.fd;
            if (fd != l) {
                serve(fd, evs[i].events, buf);
                continue;
            }
            int c;
            while ((c = accept4(l, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
                if (c >= MAXFD) {
                    close(c);
                    continue;
                }
                ev.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
                ev.data.fd = c;
                epoll_ctl(ep, EPOLL_CTL_ADD, c, &ev);
            }
        }
    }
    return 0;
}
int main(int argc, char **argv)
{
    port = argc > 1 ? atoi(argv[1]) : 7000;
    int n = argc > 2 ? atoi(argv[2]) : 1;
    const char *sp = getenv("ECHO_SPIN");
    spin_ns = sp ? (uint64_t)atoi(sp) * 1000u : 0;
    signal(SIGPIPE, SIG_IGN);
    for (int i = 1; i < n; i++) {
        pthread_t t;
        pthread_create(&t, 0, run, 0);
    }
    run(0);
}
