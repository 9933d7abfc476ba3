/* Hand-written io_uring echo server: multishot accept into the direct-descriptor
 * table, multishot recv into a provided buffer ring, send from that same
 * buffer, buffer goes back to the ring when its send completed.  One ring per
 * thread (SINGLE_ISSUER|DEFER_TASKRUN), SO_REUSEPORT listener per thread.
 *
 * usage: echo_uring port threads [flags]
 *   flags (ablation; default none):  D  no DEFER_TASKRUN (COOP_TASKRUN instead)
 *                                    M  one-shot recv (re-armed for every message)
 *                                    F  ordinary descriptors instead of direct ones
 *                                    R  ring fd not registered
 *                                    P  with M: re-armed recv tries first (no POLL_FIRST)
 *                                    S  sends post no completion when they succeed: MSG_DONTWAIT|MSG_WAITALL
 *                                       + CQE_SKIP_SUCCESS, so when io_uring_enter has returned every send of
 *                                       that batch without a completion is done and its buffer is free.  Halves
 *                                       the completions, and a wait for 1 is not satisfied by our own send.
 * env URING_BUFS (4096), URING_BUFSZ (512), URING_WAIT (1): ring entries, bytes
 * per buffer, completions waited for. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAXC 16384
#define BGID 7
enum { ACCEPT = 1, RECV, SEND, CLOSE };
struct conn {
    uint16_t head, tail;     /* queued buffers, bid+1; head is in flight */
    uint16_t off;            /* bytes of head already sent */
    uint8_t open, eof, fast; /* fast: head was sent with CQE_SKIP_SUCCESS */
};
static int port, nbuf = 4096, bufsz = 512, waitn = 1;
static int f_nodefer, f_oneshot, f_plain, f_noreg, f_tryfirst, f_skip;

struct rt {
    struct io_uring r;
    struct io_uring_buf_ring *br;
    char *bufs;
    uint16_t *next, *len;
    struct conn *c;
    int l, added;
    int *rearm, nrearm;
    int *fast, *fast2, nfast; /* connections with a fast send in this batch */
    int again; /* more to do once these sends are out: do not sleep, they post no completion */
};

static inline uint64_t ud(int type, int c)
{
    return ((uint64_t)type << 32) | (uint32_t)c;
}
static inline struct io_uring_sqe *sqe(struct rt *R)
{
    struct io_uring_sqe *s = io_uring_get_sqe(&R->r);
    if (!s) {
        io_uring_submit(&R->r);
        s = io_uring_get_sqe(&R->r);
    }
    return s;
}
static void fixed(struct io_uring_sqe *s)
{
    if (!f_plain)
        s->flags |= IOSQE_FIXED_FILE;
}
static void arm_recv(struct rt *R, int c, int rearmed)
{
    struct io_uring_sqe *s = sqe(R);
    if (f_oneshot)
        io_uring_prep_recv(s, c, 0, (size_t)bufsz, 0);
    else
        io_uring_prep_recv_multishot(s, c, 0, 0, 0);
    if (f_oneshot && rearmed && !f_tryfirst)
        s->ioprio |= IORING_RECVSEND_POLL_FIRST;
    s->flags |= IOSQE_BUFFER_SELECT;
    s->buf_group = BGID;
    fixed(s);
    s->user_data = ud(RECV, c);
}
static void send_head(struct rt *R, int c)
{
    struct conn *k = &R->c[c];
    int bid = k->head - 1;
    struct io_uring_sqe *s = sqe(R);
    io_uring_prep_send(s, c, R->bufs + (size_t)bid * (size_t)bufsz + k->off,
                       (size_t)(R->len[bid] - k->off), MSG_NOSIGNAL | MSG_WAITALL);
    fixed(s);
    s->user_data = ud(SEND, c);
    if (f_skip && !k->off) {
        s->msg_flags |= MSG_DONTWAIT;
        s->flags |= IOSQE_CQE_SKIP_SUCCESS;
        k->fast = 1;
        R->fast[R->nfast++] = c;
        if (R->next[bid])
            R->again = 1;
    }
}
static inline void give(struct rt *R, int bid)
{
    io_uring_buf_ring_add(R->br, R->bufs + (size_t)bid * (size_t)bufsz, (unsigned)bufsz,
                          (unsigned short)bid, io_uring_buf_ring_mask((unsigned)nbuf), R->added++);
}
static void finish(struct rt *R, int c)
{
    struct conn *k = &R->c[c];
    if (!k->open || k->head || !k->eof)
        return;
    k->open = 0;
    struct io_uring_sqe *s = sqe(R);
    if (f_plain)
        io_uring_prep_close(s, c);
    else
        io_uring_prep_close_direct(s, (unsigned)c);
    s->user_data = ud(CLOSE, c);
}
static void arm_accept(struct rt *R)
{
    struct io_uring_sqe *s = sqe(R);
    if (f_plain)
        io_uring_prep_multishot_accept(s, R->l, 0, 0, 0);
    else
        io_uring_prep_multishot_accept_direct(s, R->l, 0, 0, 0);
    s->user_data = ud(ACCEPT, 0);
}
static void sent(struct rt *R, int c, int res)
{
    struct conn *k = &R->c[c];
    int bid = k->head - 1;
    if (res < 0)
        k->eof = 1, res = R->len[bid] - k->off; /* peer gone: discard */
    k->off = (uint16_t)(k->off + res);
    if (k->off < R->len[bid]) {
        send_head(R, c);
        return;
    }
    k->head = R->next[bid];
    k->off = 0;
    give(R, bid);
    if (k->head)
        send_head(R, c);
    else if (k->eof)
        finish(R, c);
}
static void on_cqe(struct rt *R, struct io_uring_cqe *q)
{
    int type = (int)(q->user_data >> 32), c = (int)(uint32_t)q->user_data, res = q->res;
    if (type == ACCEPT) {
        if (res >= 0) {
            if (res >= MAXC) {
                fprintf(stderr, "too many connections\n");
                exit(1);
            }
            memset(&R->c[res], 0, sizeof R->c[res]);
            R->c[res].open = 1;
            arm_recv(R, res, 0);
        }
        if (!(q->flags & IORING_CQE_F_MORE))
            arm_accept(R);
    } else if (type == RECV) {
        struct conn *k = &R->c[c];
        if (res > 0) {
            int bid = (int)(q->flags >> IORING_CQE_BUFFER_SHIFT);
            R->len[bid] = (uint16_t)res;
            R->next[bid] = 0;
            if (k->head) {
                R->next[k->tail - 1] = (uint16_t)(bid + 1);
                k->tail = (uint16_t)(bid + 1);
                if (k->fast)
                    R->again = 1;
            } else {
                k->head = k->tail = (uint16_t)(bid + 1);
                k->off = 0;
                send_head(R, c);
            }
            if (!(q->flags & IORING_CQE_F_MORE))
                arm_recv(R, c, 1);
        } else if (res == -ENOBUFS) {
            R->rearm[R->nrearm++] = c;
        } else if (!(q->flags & IORING_CQE_F_MORE)) {
            if (q->flags & IORING_CQE_F_BUFFER)
                give(R, (int)(q->flags >> IORING_CQE_BUFFER_SHIFT));
            k->eof = 1;
            if (k->fast)
                R->again = 1;
            finish(R, c);
        }
    } else if (type == SEND) {
        struct conn *k = &R->c[c];
        int bid = k->head - 1;
        if (k->fast) { /* did not succeed in full at once: the ordinary way from here on */
            k->fast = 0;
            if (res == -EAGAIN || res == 0) {
                struct io_uring_sqe *s = sqe(R);
                io_uring_prep_send(s, c, R->bufs + (size_t)bid * (size_t)bufsz, R->len[bid],
                                   MSG_NOSIGNAL | MSG_WAITALL);
                fixed(s);
                s->user_data = ud(SEND, c);
                return;
            }
        }
        sent(R, c, res);
    }
}
static void *run(void *a)
{
    (void)a;
    struct rt *R = calloc(1, sizeof *R);
    int one = 1;
    R->l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(R->l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(R->l, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    setsockopt(R->l, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    const char *cc = getenv("ECHO_CC"); /* congestion control, inherited too */
    if (cc)
        setsockopt(R->l, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc));
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(R->l, (struct sockaddr *)&sa, sizeof sa) || listen(R->l, 4096)) {
        perror("listen");
        exit(1);
    }
    struct io_uring_params p = {0};
    p.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER |
              (f_nodefer ? IORING_SETUP_COOP_TASKRUN : IORING_SETUP_DEFER_TASKRUN);
    p.cq_entries = 32768;
    int e = io_uring_queue_init_params(4096, &R->r, &p);
    if (e) {
        fprintf(stderr, "io_uring_queue_init: %s\n", strerror(-e));
        exit(1);
    }
    if (!f_noreg)
        io_uring_register_ring_fd(&R->r);
    if (!f_plain && (e = io_uring_register_files_sparse(&R->r, MAXC))) {
        fprintf(stderr, "files: %s\n", strerror(-e));
        exit(1);
    }
    R->br = mmap(0, (size_t)nbuf * sizeof(struct io_uring_buf), PROT_READ | PROT_WRITE,
                 MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    R->bufs = mmap(0, (size_t)nbuf * (size_t)bufsz, PROT_READ | PROT_WRITE,
                   MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    struct io_uring_buf_reg reg = {
        .ring_addr = (uint64_t)(uintptr_t)R->br, .ring_entries = (uint32_t)nbuf, .bgid = BGID};
    if ((e = io_uring_register_buf_ring(&R->r, &reg, 0))) {
        fprintf(stderr, "buf_ring: %s\n", strerror(-e));
        exit(1);
    }
    io_uring_buf_ring_init(R->br);
    R->next = calloc((size_t)nbuf, 2);
    R->len = calloc((size_t)nbuf, 2);
    R->c = calloc(MAXC, sizeof *R->c);
    R->rearm = calloc(MAXC, sizeof(int));
    R->fast = calloc(MAXC, sizeof(int));
    R->fast2 = calloc(MAXC, sizeof(int));
    for (int i = 0; i < nbuf; i++)
        give(R, i);
    io_uring_buf_ring_advance(R->br, R->added);
    R->added = 0;
    arm_accept(R);
    for (;;) {
        unsigned w = R->again || (R->nfast && R->nrearm) ? 0 : (unsigned)waitn;
        R->again = 0;
        int r = io_uring_submit_and_wait(&R->r, w);
        if (r < 0 && r != -EINTR && r != -ETIME && r != -EBUSY && r != -EAGAIN) {
            fprintf(stderr, "enter: %s\n", strerror(-r));
            exit(1);
        }
        struct io_uring_cqe *q;
        unsigned head, n = 0;
        int nf = R->nfast, *f = R->fast; /* fast sends of the batch just submitted */
        if (io_uring_sq_ready(&R->r))
            nf = 0; /* not all of it went in: judge them next time */
        else {
            R->fast = R->fast2;
            R->fast2 = f;
            R->nfast = 0;
        }
        if (nf) /* failed ones first, so that what is left has succeeded */
            io_uring_for_each_cqe(&R->r, head, q) if (q->user_data >> 32 == SEND &&
                                                      R->c[(uint32_t)q->user_data].fast)
            {
                on_cqe(R, q);
                q->user_data = 0;
            }
        for (int i = 0; i < nf; i++)
            if (R->c[f[i]].fast) {
                R->c[f[i]].fast = 0;
                sent(R, f[i], R->len[R->c[f[i]].head - 1]);
            }
        io_uring_for_each_cqe(&R->r, head, q)
        {
            if (io_uring_sq_space_left(&R->r) < 64)
                break; /* never submit in mid-batch */
            if (q->user_data)
                on_cqe(R, q);
            n++;
        }
        if (R->added) {
            io_uring_buf_ring_advance(R->br, R->added);
            R->added = 0;
            while (R->nrearm)
                arm_recv(R, R->rearm[--R->nrearm], 0);
        }
        io_uring_cq_advance(&R->r, n);
    }
    return 0;
}
static int env(const char *n, int d)
{
    const char *v = getenv(n);
    return v ? atoi(v) : d;
}
int main(int argc, char **argv)
{
    port = argc > 1 ? atoi(argv[1]) : 7000;
    int n = argc > 2 ? atoi(argv[2]) : 1;
    const char *f = argc > 3 ? argv[3] : "";
    f_nodefer = !!strchr(f, 'D');
    f_oneshot = !!strchr(f, 'M');
    f_plain = !!strchr(f, 'F');
    f_noreg = !!strchr(f, 'R');
    f_tryfirst = !!strchr(f, 'P');
    f_skip = !!strchr(f, 'S');
    nbuf = env("URING_BUFS", nbuf);
    bufsz = env("URING_BUFSZ", bufsz);
    waitn = env("URING_WAIT", waitn);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 1; i < n; i++) {
        pthread_t t;
        pthread_create(&t, 0, run, 0);
    }
    run(0);
}
