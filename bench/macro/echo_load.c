/* SPDX-License-Identifier: MIT */
/* echo_load - the client of the echo yardstick: many connections, one request in flight on each.
 *
 * Work. A request is `size` bytes that nobody else sends: drawn from the thread, the connection and
 * a running number. A connection writes it, reads until as many bytes came back, compares each of
 * them, notes the time, and writes the next. So a reply that is stale, cut or another connection's
 * is an error, and so is a byte too many. The loop is closed: while the server stalls, the client
 * stalls with it, and latencies are those of requests that were issued (coordinated omission is not
 * corrected). With C requests in flight, latency is C / throughput; what tells is its spread.
 *
 * Phases. Open: in portions, each connection with one verified echo before the next portion. Then
 * warm-up, the window (only this is counted), drain, and a close by RST, so that no TIME_WAIT
 * stays behind for the next run. With -I: after the opening, "READY" is printed and nothing is sent
 * until standard input ends.
 *
 * Cost. Edge-triggered epoll, one send and one recv per request, epoll_wait shared by up to 1024
 * events: about as dear as the best server. It reports the processor time of the server and its
 * own, within the window: what a server adds is seen in their ratio, which noise disturbs less than
 * it does the rate. One line of JSON goes to standard output; the exit code is 1 if there was any
 * error. */
#include "histogram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS = 1024,
    PORTION = 500, /* connections opened at once, by each thread */
    REPLY_MAX = 65536,
    OPEN_S = 10,
    DRAIN_S = 5,
};

static const uint64_t second = 1000000000;
static const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);

enum conn_state { IDLE, SENDING, WAITING, DEAD };

struct conn {
    int fd;
    enum conn_state state;
    uint32_t sent;
    uint32_t got;
    uint32_t count; /* requests completed in the window */
    uint64_t number;
    uint64_t since_ns;
};

struct errors {
    uint64_t connect; /* refused                                  */
    uint64_t open;    /* no echo at all                           */
    uint64_t io;      /* what the system says                     */
    uint64_t eof;     /* closed by the server                     */
    uint64_t bytes;   /* others than were sent, or more of them   */
    uint64_t drain;   /* no answer by the end                     */
};

struct tally {
    uint64_t total; /* requests, also those out of the window */
    uint32_t least; /* requests of one connection */
    uint32_t most;
    struct errors errors;
    struct histogram latency_ns; /* of those in the window */
};

struct client {
    pthread_t thread;
    unsigned id;
    unsigned conns_n;
    unsigned busy; /* connections with a request in flight */
    int epoll;
    struct conn *conns;
    unsigned char *requests; /* of each connection the one in flight */
    unsigned char reply[REPLY_MAX];
    struct tally tally;
};

struct plan {
    struct sockaddr_in server;
    unsigned conns;
    unsigned threads;
    size_t size;
    double warm_s;
    double window_s;
    unsigned idle_s;
    pid_t server_pid; /* 0: not told */
    pthread_barrier_t all;
    atomic_ullong begin_ns; /* of the window */
    atomic_ullong end_ns;
};

static struct plan plan = {
    .conns = 1,
    .threads = 1,
    .size = 64,
    .warm_s = 0.5,
    .window_s = 1.0,
    .begin_ns = UINT64_MAX,
    .end_ns = UINT64_MAX,
};

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * second + (uint64_t)ts.tv_nsec;
}

/* ---- a request ------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t z)
{
    z += golden;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static unsigned char *request_of(const struct client *cl, const struct conn *c)
{
    return cl->requests + (size_t)(c - cl->conns) * plan.size;
}

static void fill(const struct client *cl, struct conn *c)
{
    unsigned char *to = request_of(cl, c);
    uint64_t word = mix((uint64_t)cl->id << 56 ^ (uint64_t)(c - cl->conns) << 36 ^ c->number++);
    for (size_t at = 0; at < plan.size; at += sizeof(word), word += golden) {
        size_t left = plan.size - at;
        memcpy(to + at, &word, left < sizeof(word) ? left : sizeof(word));
    }
}

static void end_conn(struct client *cl, struct conn *c, uint64_t *error)
{
    ++*error;
    if (c->state == SENDING || c->state == WAITING)
        cl->busy--;
    close(c->fd);
    c->state = DEAD;
}

static void send_rest(struct client *cl, struct conn *c)
{
    const unsigned char *from = request_of(cl, c);
    c->state = WAITING;
    while (c->sent < plan.size) {
        ssize_t n = send(c->fd, from + c->sent, plan.size - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            c->state = SENDING;
            return;
        }
        if (n < 0) {
            end_conn(cl, c, &cl->tally.errors.io);
            return;
        }
        c->sent += (uint32_t)n;
    }
}

static void start(struct client *cl, struct conn *c, uint64_t at_ns)
{
    fill(cl, c);
    c->sent = 0;
    c->got = 0;
    c->since_ns = at_ns;
    c->state = WAITING;
    cl->busy++;
    send_rest(cl, c);
}

/* Returns whether the reply is complete. */
static bool receive(struct client *cl, struct conn *c)
{
    struct errors *errors = &cl->tally.errors;
    const unsigned char *sent = request_of(cl, c);
    ssize_t n = REPLY_MAX;
    while (n == REPLY_MAX) { /* less: there is no more now */
        n = recv(c->fd, cl->reply, REPLY_MAX, 0);
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n <= 0) {
            end_conn(cl, c, n < 0 ? &errors->io : &errors->eof);
            return false;
        }
        if ((size_t)n > c->sent - c->got || memcmp(cl->reply, sent + c->got, (size_t)n) != 0) {
            end_conn(cl, c, &errors->bytes);
            return false;
        }
        c->got += (uint32_t)n;
        if (c->got == plan.size) {
            cl->busy--;
            c->state = IDLE;
            return true;
        }
    }
    return false;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Something happened on `c`. `once`: no other request follows. */
static void serve(struct client *cl, struct conn *c, uint32_t events, bool once)
{
    if (c->state == SENDING)
        send_rest(cl, c);
    if (c->state == IDLE || c->state == DEAD)
        return;
    if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) == 0 || !receive(cl, c))
        return;
    uint64_t at_ns = now_ns();
    cl->tally.total++;
    if (once || at_ns >= atomic_load_explicit(&plan.end_ns, memory_order_relaxed))
        return;
    if (at_ns >= atomic_load_explicit(&plan.begin_ns, memory_order_relaxed)) {
        histogram_add(&cl->tally.latency_ns, at_ns - c->since_ns);
        c->count++;
    }
    start(cl, c, at_ns);
}

/* Until no request is in flight, or it is too late. */
static void run_until(struct client *cl, bool once, uint64_t late_ns)
{
    struct epoll_event events[EVENTS];
    while (cl->busy > 0 && now_ns() < late_ns) {
        int n = epoll_wait(cl->epoll, events, EVENTS, 200);
        for (int i = 0; i < n; i++)
            serve(cl, events[i].data.ptr, events[i].events, once);
    }
}

static int connect_one(void)
{
    int one = 1;
    struct linger abort_it = {.l_onoff = 1};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&plan.server, sizeof(plan.server)) < 0) {
        close(fd);
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort_it, sizeof(abort_it));
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void open_conn(struct client *cl, struct conn *c)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    c->state = DEAD;
    c->fd = connect_one();
    if (c->fd < 0 || epoll_ctl(cl->epoll, EPOLL_CTL_ADD, c->fd, &event) < 0) {
        cl->tally.errors.connect++;
        return;
    }
    c->state = IDLE;
    start(cl, c, now_ns());
}

static void open_all(struct client *cl)
{
    for (unsigned i = 0; i < cl->conns_n;) {
        for (unsigned end = i + PORTION; i < end && i < cl->conns_n; i++)
            open_conn(cl, &cl->conns[i]);
        run_until(cl, true, now_ns() + OPEN_S * second);
    }
    for (unsigned i = 0; i < cl->conns_n; i++)
        if (cl->conns[i].state == SENDING || cl->conns[i].state == WAITING)
            end_conn(cl, &cl->conns[i], &cl->tally.errors.open);
}

static void work(struct client *cl)
{
    for (unsigned i = 0; i < cl->conns_n; i++)
        if (cl->conns[i].state == IDLE)
            start(cl, &cl->conns[i], now_ns());
    run_until(cl, false, atomic_load(&plan.end_ns) + DRAIN_S * second);
    cl->tally.errors.drain = cl->busy;
}

static void *client_thread(void *arg)
{
    struct client *cl = arg;
    open_all(cl);
    pthread_barrier_wait(&plan.all); /* all are open                            */
    pthread_barrier_wait(&plan.all); /* the window is set, or the rest is over  */
    if (plan.idle_s == 0)
        work(cl);
    pthread_barrier_wait(&plan.all); /* all have drained                        */
    cl->tally.least = UINT32_MAX;
    for (unsigned i = 0; i < cl->conns_n; i++) {
        struct conn *c = &cl->conns[i];
        if (c->count < cl->tally.least)
            cl->tally.least = c->count;
        if (c->count > cl->tally.most)
            cl->tally.most = c->count;
        if (c->state != DEAD)
            close(c->fd);
    }
    return NULL;
}

static int start_client(struct client *cl, unsigned id)
{
    cl->id = id;
    cl->conns_n = plan.conns / plan.threads + (id < plan.conns % plan.threads);
    cl->conns = calloc(cl->conns_n, sizeof(*cl->conns));
    cl->requests = calloc(cl->conns_n, plan.size);
    cl->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (cl->conns == NULL || cl->requests == NULL || cl->epoll < 0)
        return -1;
    return pthread_create(&cl->thread, NULL, client_thread, cl) == 0 ? 0 : -1;
}

/* ---- processor time -------------------------------------------------------------------------- */

/* Seconds, of everybody. */
struct usage {
    double wall;
    double server;
    double client;
    double idle;
    double stolen;
};

static double clock_s(clockid_t clock)
{
    struct timespec ts;
    if (clock_gettime(clock, &ts) < 0)
        return 0;
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct usage usage_now(void)
{
    struct usage u = {.wall = clock_s(CLOCK_MONOTONIC),
                      .client = clock_s(CLOCK_PROCESS_CPUTIME_ID)};
    clockid_t of_server;
    if (plan.server_pid != 0 && clock_getcpuclockid(plan.server_pid, &of_server) == 0)
        u.server = clock_s(of_server);
    unsigned long long idle = 0, io = 0, stolen = 0;
    FILE *stat = fopen("/proc/stat", "re");
    if (stat == NULL)
        return u;
    double hz = (double)sysconf(_SC_CLK_TCK);
    if (fscanf(stat, "cpu %*u %*u %*u %llu %llu %*u %*u %llu", &idle, &io, &stolen) == 3) {
        u.idle = (double)(idle + io) / hz;
        u.stolen = (double)stolen / hz;
    }
    fclose(stat);
    return u;
}

static void sleep_until(uint64_t at_ns)
{
    struct timespec ts = {.tv_sec = (time_t)(at_ns / second), .tv_nsec = (long)(at_ns % second)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
}

/* ---- report ---------------------------------------------------------------------------------- */

static void add_tally(struct tally *to, const struct tally *t)
{
    to->total += t->total;
    histogram_merge(&to->latency_ns, &t->latency_ns);
    if (t->least < to->least)
        to->least = t->least;
    if (t->most > to->most)
        to->most = t->most;
    to->errors.connect += t->errors.connect;
    to->errors.open += t->errors.open;
    to->errors.io += t->errors.io;
    to->errors.eof += t->errors.eof;
    to->errors.bytes += t->errors.bytes;
    to->errors.drain += t->errors.drain;
}

static uint64_t errors_n(const struct errors *e)
{
    return e->connect + e->open + e->io + e->eof + e->bytes + e->drain;
}

static void put_count(const char *name, uint64_t value)
{
    printf(",\"%s\":%llu", name, (unsigned long long)value);
}

static void put_figure(const char *name, double value)
{
    printf(",\"%s\":%.3f", name, value);
}

static void report(const struct tally *t, const struct usage *a, const struct usage *b)
{
    double wall = b->wall > a->wall ? b->wall - a->wall : 1;
    double server = b->server - a->server;
    double client = b->client - a->client;
    double busy = (double)sysconf(_SC_NPROCESSORS_ONLN) * wall - (b->idle - a->idle);
    const struct histogram *ns = &t->latency_ns;
    double done = ns->n > 0 ? (double)ns->n : 1;
    printf("{\"conns\":%u,\"size\":%zu,\"threads\":%u", plan.conns, plan.size, plan.threads);
    put_count("requests", ns->n);
    put_count("total", t->total);
    put_figure("window_s", plan.window_s);
    put_figure("rps", (double)ns->n / plan.window_s);
    put_figure("p50_us", (double)histogram_quantile(ns, 0.5) / 1e3);
    put_figure("p99_us", (double)histogram_quantile(ns, 0.99) / 1e3);
    put_figure("p999_us", (double)histogram_quantile(ns, 0.999) / 1e3);
    put_figure("max_us", (double)ns->max / 1e3);
    put_figure("mean_us", (double)ns->sum / done / 1e3);
    put_count("conn_least", t->least);
    put_count("conn_most", t->most);
    put_figure("server_util", server / wall);
    put_figure("server_us", server * 1e6 / done);
    put_figure("client_util", client / wall);
    put_figure("client_us", client * 1e6 / done);
    put_figure("other_util", (busy - server - client) / wall);
    put_figure("stolen", (b->stolen - a->stolen) / wall);
    put_count("errors", errors_n(&t->errors));
    put_count("errors_connect", t->errors.connect);
    put_count("errors_open", t->errors.open);
    put_count("errors_io", t->errors.io);
    put_count("errors_eof", t->errors.eof);
    put_count("errors_bytes", t->errors.bytes);
    put_count("errors_drain", t->errors.drain);
    printf("}\n");
}

/* ---- command line ---------------------------------------------------------------------------- */

static int usage(void)
{
    fputs("usage: echo_load -p PORT [-c CONNS] [-s BYTES] [-t THREADS] [-w WARM_S] [-d WINDOW_S]\n"
          "                 [-P SERVER_PID] [-I SECONDS: idle, until standard input ends]\n",
          stderr);
    return 2;
}

static bool read_options(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "p:c:s:t:w:d:P:I:")) != -1) {
        double value = optarg != NULL ? atof(optarg) : -1;
        if (value < 0 || value > 1e9)
            return false;
        if (option == 'p')
            plan.server.sin_port = htons((uint16_t)value);
        else if (option == 'c')
            plan.conns = (unsigned)value;
        else if (option == 's')
            plan.size = (size_t)value;
        else if (option == 't')
            plan.threads = (unsigned)value;
        else if (option == 'w')
            plan.warm_s = value;
        else if (option == 'd')
            plan.window_s = value;
        else if (option == 'P')
            plan.server_pid = (pid_t)value;
        else if (option == 'I')
            plan.idle_s = (unsigned)value;
        else
            return false;
    }
    if (plan.threads > plan.conns)
        plan.threads = plan.conns;
    return plan.server.sin_port != 0 && plan.threads > 0 && plan.size > 0 &&
           plan.size < REPLY_MAX && plan.window_s > 0;
}

/* As many descriptors as may be had. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* All are open and do nothing. */
static void rest(void)
{
    char byte;
    printf("READY\n");
    fflush(stdout);
    alarm(plan.idle_s);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    pthread_barrier_wait(&plan.all);
}

static void measure(struct usage *a, struct usage *b)
{
    uint64_t begin_ns = now_ns() + (uint64_t)(plan.warm_s * 1e9);
    uint64_t end_ns = begin_ns + (uint64_t)(plan.window_s * 1e9);
    atomic_store(&plan.begin_ns, begin_ns);
    atomic_store(&plan.end_ns, end_ns);
    pthread_barrier_wait(&plan.all);
    sleep_until(begin_ns);
    *a = usage_now();
    sleep_until(end_ns);
    *b = usage_now();
}

int main(int argc, char **argv)
{
    struct usage a = {0};
    struct usage b = {0};
    plan.server.sin_family = AF_INET;
    plan.server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!read_options(argc, argv))
        return usage();
    raise_limit();
    pthread_barrier_init(&plan.all, NULL, plan.threads + 1);
    struct client *clients = calloc(plan.threads, sizeof(*clients));
    struct tally *sum = calloc(1, sizeof(*sum));
    if (clients == NULL || sum == NULL)
        return 2;
    for (unsigned i = 0; i < plan.threads; i++)
        if (start_client(&clients[i], i) < 0) {
            perror("echo_load");
            return 2;
        }
    pthread_barrier_wait(&plan.all);
    if (plan.idle_s > 0)
        rest();
    else
        measure(&a, &b);
    pthread_barrier_wait(&plan.all);
    sum->least = UINT32_MAX;
    for (unsigned i = 0; i < plan.threads; i++) {
        pthread_join(clients[i].thread, NULL);
        add_tally(sum, &clients[i].tally);
        free(clients[i].conns);
        free(clients[i].requests);
    }
    report(sum, &a, &b);
    int rc = errors_n(&sum->errors) > 0 ? 1 : 0;
    free(clients);
    free(sum);
    return rc;
}
