/* echoload - closed-loop TCP echo load generator (epoll, 1 or 2 threads).
 *
 * C connections to 127.0.0.1:port, each with exactly one request of `size`
 * bytes in flight: write request, read until `size` bytes came back, compare
 * every byte, record latency (just before write -> just after the read that
 * completed it), write the next one.  Each request's content is unique per
 * (connection, sequence number), so a reply delivered to the wrong connection
 * or a stale reply is an error.  Closed loop: when the server stalls the
 * client stalls with it; latencies are those of the requests really issued
 * (no correction for coordinated omission).
 *
 * Phases: open (in chunks of 500 per thread; every new connection finishes one
 * verified echo before the next chunk opens) / warm-up / window / drain.
 * Connections are closed with SO_LINGER{1,0} (RST) so that no TIME_WAIT
 * sockets pile up between runs.
 *
 * Prints one JSON line.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- log-linear histogram: 7 bits of mantissa (<0.8 % error), ns ---- */
#define SUB 7
#define NB  ((64 - SUB + 1) << SUB)
static inline unsigned hidx(uint64_t v)
{
    if (v < (1u << SUB))
        return (unsigned)v;
    int e = 63 - __builtin_clzll(v) - SUB;
    return (unsigned)(((unsigned)(e + 1) << SUB) + ((v >> e) & ((1u << SUB) - 1)));
}
static inline uint64_t hval(unsigned i)
{ /* upper edge of the bucket */
    if (i < (1u << SUB))
        return i;
    unsigned e = (i >> SUB) - 1;
    return ((((uint64_t)(i & ((1u << SUB) - 1))) | (1u << SUB)) + 1) << e;
}

enum { IDLE, SENDING, WAITING, DEAD };
struct conn {
    int fd;
    uint32_t got, sent, count;
    uint8_t st;
    uint64_t seq, t0;
};

static int port, nconn = 1, size = 64, nthreads = 1, idle_s = 0, spin;
static double warm = 0.5, dur = 2.0;
static const char *label = "", *cc;
static pid_t spid[16];
static int nspid;
static struct sockaddr_in sa;
static _Atomic uint64_t tW = UINT64_MAX, tE = UINT64_MAX;
static pthread_barrier_t bar;

struct thr {
    pthread_t t;
    int id, n, ep;
    struct conn *c;
    unsigned char *tx;
    uint64_t *hist;
    uint64_t done, total, sum, max, e_conn, e_io, e_eof, e_bytes, e_drain, e_open;
    int busy;
    char pad[128];
};

static inline uint64_t now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}
static inline uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
static void fill(struct thr *T, struct conn *c)
{
    unsigned char *p = T->tx + (size_t)(c - T->c) * (size_t)size;
    uint64_t w = mix(((uint64_t)T->id << 56) ^ ((uint64_t)(c - T->c) << 36) ^ c->seq++);
    int i = 0;
    for (; i + 8 <= size; i += 8) {
        memcpy(p + i, &w, 8);
        w += 0x9e3779b97f4a7c15ull;
    }
    for (; i < size; i++)
        p[i] = (unsigned char)(w >> ((i & 7) * 8));
}
static void kill_conn(struct thr *T, struct conn *c)
{
    if (c->st == SENDING || c->st == WAITING)
        T->busy--;
    close(c->fd);
    c->st = DEAD;
}
static void push(struct thr *T, struct conn *c)
{ /* continue writing */
    unsigned char *p = T->tx + (size_t)(c - T->c) * (size_t)size;
    while (c->sent < (uint32_t)size) {
        ssize_t n = send(c->fd, p + c->sent, (size_t)size - c->sent, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EAGAIN) {
                c->st = SENDING;
                return;
            }
            T->e_io++;
            kill_conn(T, c);
            return;
        }
        c->sent += (uint32_t)n;
    }
    c->st = WAITING;
}
static void start(struct thr *T, struct conn *c, uint64_t t)
{
    fill(T, c);
    c->sent = c->got = 0;
    c->t0 = t;
    c->st = WAITING;
    T->busy++;
    push(T, c);
}
/* returns 1 when a request completed */
static int pull(struct thr *T, struct conn *c, unsigned char *buf, size_t cap)
{
    unsigned char *p = T->tx + (size_t)(c - T->c) * (size_t)size;
    for (;;) {
        ssize_t n = recv(c->fd, buf, cap, 0);
        if (n < 0) {
            if (errno == EAGAIN)
                return 0;
            T->e_io++;
            kill_conn(T, c);
            return 0;
        }
        if (n == 0) {
            T->e_eof++;
            kill_conn(T, c);
            return 0;
        }
        if ((size_t)n > (size_t)c->sent - c->got || memcmp(buf, p + c->got, (size_t)n)) {
            T->e_bytes++;
            kill_conn(T, c);
            return 0;
        }
        c->got += (uint32_t)n;
        if (c->got == (uint32_t)size) {
            T->busy--;
            c->st = IDLE;
            return 1;
        }
        if ((size_t)n < cap)
            return 0;
    }
}

#define CAP 65536
static void loop(struct thr *T, unsigned char *buf, int once, uint64_t deadline)
{
    struct epoll_event ev[1024];
    while (T->busy) {
        int n = epoll_wait(T->ep, ev, 1024, spin ? 0 : 200);
        if (n == 0 && spin && now() <= deadline)
            continue;
        if (n <= 0) {
            if (now() > deadline)
                return;
            continue;
        }
        uint64_t w = tW, e = tE;
        for (int i = 0; i < n; i++) {
            struct conn *c = ev[i].data.ptr;
            if (c->st == DEAD || c->st == IDLE)
                continue;
            if (c->st == SENDING) {
                push(T, c);
                if (c->st == DEAD)
                    continue;
            }
            if (!(ev[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
                continue;
            if (!pull(T, c, buf, CAP))
                continue;
            uint64_t t = now();
            T->total++;
            if (once)
                continue;
            if (t >= w) {
                if (t >= e)
                    continue; /* drain */
                uint64_t l = t - c->t0;
                T->hist[hidx(l)]++;
                T->sum += l;
                if (l > T->max)
                    T->max = l;
                T->done++;
                c->count++;
            }
            start(T, c, t);
        }
        if (!once && now() > deadline)
            return;
    }
}

static void *worker(void *a)
{
    struct thr *T = a;
    unsigned char *buf = malloc(CAP);
    T->ep = epoll_create1(EPOLL_CLOEXEC);
    T->c = calloc((size_t)T->n, sizeof *T->c);
    T->tx = calloc((size_t)T->n, (size_t)size);
    T->hist = calloc(NB, sizeof(uint64_t));
    for (int i = 0; i < T->n;) {
        int lim = i + 500 < T->n ? i + 500 : T->n;
        for (; i < lim; i++) {
            struct conn *c = &T->c[i];
            c->st = DEAD;
            int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof sa)) {
                T->e_conn++;
                if (fd >= 0)
                    close(fd);
                continue;
            }
            int one = 1;
            struct linger lg = {1, 0};
            if (cc)
                setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc));
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &lg, sizeof lg);
            fcntl(fd, F_SETFL, O_NONBLOCK);
            c->fd = fd;
            c->st = IDLE;
            struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
            epoll_ctl(T->ep, EPOLL_CTL_ADD, fd, &ev);
            start(T, c, now());
        }
        loop(T, buf, 1, now() + 10000000000ull);
    }
    for (int i = 0; i < T->n; i++)
        if (T->c[i].st == SENDING || T->c[i].st == WAITING) {
            T->e_open++;
            kill_conn(T, &T->c[i]);
        }
    pthread_barrier_wait(&bar); /* all open */
    pthread_barrier_wait(&bar); /* window set, or idle phase over */
    if (!idle_s) {
        uint64_t t = now();
        for (int i = 0; i < T->n; i++)
            if (T->c[i].st == IDLE)
                start(T, &T->c[i], t = now());
        loop(T, buf, 0, tE + 5000000000ull);
        for (int i = 0; i < T->n; i++)
            if (T->c[i].st == SENDING || T->c[i].st == WAITING)
                T->e_drain++;
    }
    pthread_barrier_wait(&bar); /* all drained */
    for (int i = 0; i < T->n; i++)
        if (T->c[i].st != DEAD)
            close(T->c[i].fd);
    free(buf);
    return 0;
}

struct snap {
    double wall, srv, cli, idle, steal;
};
static double clk(clockid_t c)
{
    struct timespec ts;
    if (clock_gettime(c, &ts))
        return 0;
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}
static void snapshot(struct snap *s)
{
    s->srv = 0;
    for (int i = 0; i < nspid; i++) {
        clockid_t c;
        if (!clock_getcpuclockid(spid[i], &c))
            s->srv += clk(c);
    }
    s->cli = clk(CLOCK_PROCESS_CPUTIME_ID);
    s->wall = clk(CLOCK_MONOTONIC);
    unsigned long long v[8] = {0};
    FILE *f = fopen("/proc/stat", "r");
    if (f) {
        if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", v, v + 1, v + 2, v + 3, v + 4,
                   v + 5, v + 6, v + 7) != 8)
            v[3] = 0;
        fclose(f);
    }
    double hz = (double)sysconf(_SC_CLK_TCK);
    s->idle = (double)(v[3] + v[4]) / hz;
    s->steal = (double)v[7] / hz;
}
static void sleep_until(uint64_t t)
{
    struct timespec ts = {(time_t)(t / 1000000000ull), (long)(t % 1000000000ull)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, 0) == EINTR) {
    }
}

int main(int argc, char **argv)
{
    int o;
    while ((o = getopt(argc, argv, "p:c:s:t:w:d:l:P:I:G:B")) != -1)
        switch (o) {
        case 'p':
            port = atoi(optarg);
            break;
        case 'c':
            nconn = atoi(optarg);
            break;
        case 's':
            size = atoi(optarg);
            break;
        case 't':
            nthreads = atoi(optarg);
            break;
        case 'w':
            warm = atof(optarg);
            break;
        case 'd':
            dur = atof(optarg);
            break;
        case 'l':
            label = optarg;
            break;
        case 'B':
            spin = 1;
            break;
        case 'G':
            cc = optarg;
            break;
        case 'I':
            idle_s = atoi(optarg);
            break;
        case 'P':
            for (char *p = strtok(optarg, ","); p && nspid < 16; p = strtok(0, ","))
                spid[nspid++] = atoi(p);
            break;
        default:
            fprintf(
                stderr,
                "echoload -p port [-c conns] [-s bytes] [-t threads] [-w warm_s] [-d window_s]\n"
                "         [-l label] [-P server_pid,...] [-I idle_s] [-G congestion_control] [-B busy-poll, never sleep]\n");
            return 2;
        }
    if (!port || nconn < 1 || size < 1 || size > CAP - 1 || nthreads < 1) {
        fprintf(stderr, "bad arguments\n");
        return 2;
    }
    if (nthreads > nconn)
        nthreads = nconn;
    struct rlimit rl;
    getrlimit(RLIMIT_NOFILE, &rl);
    rl.rlim_cur = rl.rlim_max;
    setrlimit(RLIMIT_NOFILE, &rl);
    sa.sin_family = AF_INET;
    sa.sin_port = htons((uint16_t)port);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct thr *T = calloc((size_t)nthreads, sizeof *T);
    pthread_barrier_init(&bar, 0, (unsigned)nthreads + 1);
    uint64_t b = now();
    for (int i = 0; i < nthreads; i++) {
        T[i].id = i;
        T[i].n = nconn / nthreads + (i < nconn % nthreads);
        pthread_create(&T[i].t, 0, worker, &T[i]);
    }
    pthread_barrier_wait(&bar);
    double open_s = (double)(now() - b) / 1e9;
    struct snap A = {0}, B = {0};
    if (idle_s) {
        printf("READY\n");
        fflush(stdout);
        alarm((unsigned)idle_s);
        char x;
        while (read(0, &x, 1) > 0) {
        }
        pthread_barrier_wait(&bar);
    } else {
        uint64_t t = now();
        tW = t + (uint64_t)(warm * 1e9);
        tE = tW + (uint64_t)(dur * 1e9);
        pthread_barrier_wait(&bar);
        sleep_until(tW);
        snapshot(&A);
        sleep_until(tE);
        snapshot(&B);
    }
    pthread_barrier_wait(&bar);
    uint64_t done = 0, total = 0, sum = 0, max = 0, ec = 0, ei = 0, ee = 0, eb = 0, ed = 0, eo = 0,
             *h = calloc(NB, 8);
    uint32_t cmin = UINT32_MAX, cmax = 0;
    for (int i = 0; i < nthreads; i++) {
        pthread_join(T[i].t, 0);
        done += T[i].done;
        total += T[i].total;
        sum += T[i].sum;
        if (T[i].max > max)
            max = T[i].max;
        ec += T[i].e_conn;
        ei += T[i].e_io;
        ee += T[i].e_eof;
        eb += T[i].e_bytes;
        ed += T[i].e_drain;
        eo += T[i].e_open;
        for (int k = 0; k < NB; k++)
            h[k] += T[i].hist[k];
        for (int k = 0; k < T[i].n; k++) {
            if (T[i].c[k].count < cmin)
                cmin = T[i].c[k].count;
            if (T[i].c[k].count > cmax)
                cmax = T[i].c[k].count;
        }
    }
    double pq[3] = {0.5, 0.99, 0.999}, pv[3] = {0};
    for (int q = 0; q < 3 && done; q++) {
        uint64_t want = (uint64_t)(pq[q] * (double)done), acc = 0;
        if (want >= done)
            want = done - 1;
        for (unsigned k = 0; k < NB; k++)
            if ((acc += h[k]) > want) {
                pv[q] = (double)hval(k) / 1e3;
                break;
            }
        if (pv[q] > (double)max / 1e3)
            pv[q] = (double)max / 1e3;
    }
    double w = B.wall - A.wall, srv = B.srv - A.srv, cli = B.cli - A.cli;
    double busy = (double)sysconf(_SC_NPROCESSORS_ONLN) * w - (B.idle - A.idle);
    if (w <= 0)
        w = 1;
    printf(
        "{\"label\":\"%s\",\"conns\":%d,\"size\":%d,\"cthreads\":%d,\"window_s\":%.3f,\"requests\":%llu,\"total\":%llu,\"rps\":%.0f,"
        "\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f,\"mean_us\":%.1f,"
        "\"errors\":%llu,\"e_conn\":%llu,\"e_open\":%llu,\"e_io\":%llu,\"e_eof\":%llu,\"e_bytes\":%llu,\"e_drain\":%llu,"
        "\"conn_min\":%u,\"conn_max\":%u,\"open_s\":%.3f,"
        "\"srv_util\":%.3f,\"srv_us_req\":%.3f,\"cli_util\":%.3f,\"cli_us_req\":%.3f,\"other_util\":%.3f,\"steal\":%.3f}\n",
        label, nconn, size, nthreads, dur, (unsigned long long)done, (unsigned long long)total,
        (double)done / dur, pv[0], pv[1], pv[2], (double)max / 1e3,
        done ? (double)sum / (double)done / 1e3 : 0,
        (unsigned long long)(ec + ei + ee + eb + ed + eo), (unsigned long long)ec,
        (unsigned long long)eo, (unsigned long long)ei, (unsigned long long)ee,
        (unsigned long long)eb, (unsigned long long)ed, cmin, cmax, open_s, srv / w,
        done ? srv * 1e6 / (double)done : 0, cli / w, done ? cli * 1e6 / (double)done : 0,
        (busy - srv - cli) / w, (B.steal - A.steal) / w);
    return ec + ei + ee + eb + ed + eo ? 1 : 0;
}
