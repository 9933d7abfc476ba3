/* SPDX-License-Identifier: MIT */
/* echo_uring - the floor by io_uring, written by hand: echo_uring PORT THREADS.
 *
 * Each thread has a ring (SINGLE_ISSUER, DEFER_TASKRUN) and a listener of its own (SO_REUSEPORT).
 * Multishot accept puts connections into the ring's own table of descriptors; a multishot recv per
 * connection takes buffers from a ring of them; the reply is sent from that same buffer, which goes
 * back when its send has completed. So a request costs a completion of the recv, an entry and a
 * completion of the send, and a twentieth of a system call.
 *
 * A connection's buffers are a queue: the first is being sent. When the buffer ring runs dry, a
 * recv ends with -ENOBUFS; those are armed again in the order in which they ended, once a buffer
 * has come back (newest first starved some of them for good). */
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum {
    CONNS = 16384,
    BUFFERS = 4096, /* a power of two */
    BUFFER_BYTES = 512,
    GROUP = 7,
    ENTRIES = 4096,
    COMPLETIONS = 32768,
    ENTRIES_OF_ONE = 64, /* more than the handling of one completion puts */
    BACKLOG = 4096,
};

/* What a completion is for: the upper half of its user data; the lower is the connection. */
enum what { ACCEPT = 1, RECV, SEND, CLOSE };

struct conn {
    uint16_t head; /* the buffer being sent, plus 1; 0: none */
    uint16_t tail;
    uint16_t sent; /* of the head's bytes                    */
    bool is_open;
    bool is_ended; /* closed when everything is sent         */
};

struct loop {
    struct io_uring ring;
    struct io_uring_buf_ring *free;
    int freed; /* put into `free`, not yet published */
    int listener;
    char *bytes;
    uint16_t next[BUFFERS]; /* in its connection's queue, plus 1 */
    uint16_t n[BUFFERS];
    struct conn conns[CONNS];
    uint32_t dry[CONNS]; /* connections without a recv, a queue */
    uint32_t dry_n;
};

static uint16_t port;

_Noreturn static void die(const char *what, int error)
{
    fprintf(stderr, "echo_uring: %s: %s\n", what, strerror(error));
    exit(1);
}

/* ---- entries --------------------------------------------------------------------------------- */

static struct io_uring_sqe *entry(struct loop *l)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&l->ring);
    if (sqe == NULL)
        die("the ring is full", EBUSY);
    return sqe;
}

static uint64_t user_data(enum what what, uint32_t conn)
{
    return (uint64_t)what << 32 | conn;
}

static void arm_accept(struct loop *l)
{
    struct io_uring_sqe *sqe = entry(l);
    io_uring_prep_multishot_accept_direct(sqe, l->listener, NULL, NULL, 0);
    sqe->user_data = user_data(ACCEPT, 0);
}

static void arm_recv(struct loop *l, uint32_t conn)
{
    struct io_uring_sqe *sqe = entry(l);
    io_uring_prep_recv_multishot(sqe, (int)conn, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT | IOSQE_FIXED_FILE;
    sqe->buf_group = GROUP;
    sqe->user_data = user_data(RECV, conn);
}

static void send_head(struct loop *l, uint32_t conn)
{
    const struct conn *c = &l->conns[conn];
    unsigned buffer = c->head - 1u;
    struct io_uring_sqe *sqe = entry(l);
    io_uring_prep_send(sqe, (int)conn, l->bytes + (size_t)buffer * BUFFER_BYTES + c->sent,
                       (size_t)(l->n[buffer] - c->sent), MSG_NOSIGNAL | MSG_WAITALL);
    sqe->flags |= IOSQE_FIXED_FILE;
    sqe->user_data = user_data(SEND, conn);
}

static void close_if_done(struct loop *l, uint32_t conn)
{
    struct conn *c = &l->conns[conn];
    if (!c->is_open || !c->is_ended || c->head != 0)
        return;
    c->is_open = false;
    struct io_uring_sqe *sqe = entry(l);
    io_uring_prep_close_direct(sqe, conn);
    sqe->user_data = user_data(CLOSE, conn);
}

static void give_back(struct loop *l, unsigned buffer)
{
    io_uring_buf_ring_add(l->free, l->bytes + (size_t)buffer * BUFFER_BYTES, BUFFER_BYTES,
                          (unsigned short)buffer, io_uring_buf_ring_mask(BUFFERS), l->freed++);
}

/* ---- completions ----------------------------------------------------------------------------- */

static void accepted(struct loop *l, const struct io_uring_cqe *cqe)
{
    if (cqe->res >= CONNS)
        die("accept", EMFILE);
    if (cqe->res >= 0) {
        l->conns[cqe->res] = (struct conn){.is_open = true};
        arm_recv(l, (uint32_t)cqe->res);
    }
    if ((cqe->flags & IORING_CQE_F_MORE) == 0)
        arm_accept(l);
}

static void enqueue(struct loop *l, uint32_t conn, unsigned buffer, int bytes)
{
    struct conn *c = &l->conns[conn];
    l->n[buffer] = (uint16_t)bytes;
    l->next[buffer] = 0;
    if (c->head != 0) {
        l->next[c->tail - 1] = (uint16_t)(buffer + 1);
        c->tail = (uint16_t)(buffer + 1);
        return;
    }
    c->head = c->tail = (uint16_t)(buffer + 1);
    c->sent = 0;
    send_head(l, conn);
}

static void received(struct loop *l, uint32_t conn, const struct io_uring_cqe *cqe)
{
    bool more = (cqe->flags & IORING_CQE_F_MORE) != 0;
    unsigned buffer = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
    if (cqe->res > 0) {
        enqueue(l, conn, buffer, cqe->res);
        if (!more)
            arm_recv(l, conn);
    } else if (cqe->res == -ENOBUFS) {
        l->dry[l->dry_n++] = conn;
    } else if (!more) {
        if ((cqe->flags & IORING_CQE_F_BUFFER) != 0)
            give_back(l, buffer);
        l->conns[conn].is_ended = true;
        close_if_done(l, conn);
    }
}

static void has_sent(struct loop *l, uint32_t conn, int bytes)
{
    struct conn *c = &l->conns[conn];
    unsigned buffer = c->head - 1u;
    if (bytes < 0) /* the other end is gone: its recv will tell, and end the connection */
        bytes = l->n[buffer] - c->sent;
    c->sent = (uint16_t)(c->sent + bytes);
    if (c->sent == l->n[buffer]) {
        c->head = l->next[buffer];
        c->sent = 0;
        give_back(l, buffer);
    }
    if (c->head != 0)
        send_head(l, conn);
    else
        close_if_done(l, conn);
}

static void complete(struct loop *l, const struct io_uring_cqe *cqe)
{
    uint32_t conn = (uint32_t)cqe->user_data;
    enum what what = (enum what)(cqe->user_data >> 32);
    if (what == ACCEPT)
        accepted(l, cqe);
    else if (what == RECV)
        received(l, conn, cqe);
    else if (what == SEND)
        has_sent(l, conn, cqe->res);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static int listen_at_port(void)
{
    int one = 1;
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* is inherited */
    if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, BACKLOG) < 0)
        die("listen", errno);
    return fd;
}

static void *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    if (at == MAP_FAILED)
        die("memory", errno);
    return at;
}

static void make_ring(struct loop *l)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER |
                 IORING_SETUP_DEFER_TASKRUN,
        .cq_entries = COMPLETIONS,
    };
    int rc = io_uring_queue_init_params(ENTRIES, &l->ring, &params);
    if (rc < 0)
        die("io_uring_queue_init", -rc);
    (void)io_uring_register_ring_fd(&l->ring); /* or it costs a little more */
    if ((rc = io_uring_register_files_sparse(&l->ring, CONNS)) < 0)
        die("io_uring_register_files_sparse", -rc);
    l->free = map(BUFFERS * sizeof(struct io_uring_buf));
    l->bytes = map((size_t)BUFFERS * BUFFER_BYTES);
    struct io_uring_buf_reg reg = {
        .ring_addr = (uintptr_t)l->free, .ring_entries = BUFFERS, .bgid = GROUP};
    if ((rc = io_uring_register_buf_ring(&l->ring, &reg, 0)) < 0)
        die("io_uring_register_buf_ring", -rc);
    io_uring_buf_ring_init(l->free);
    for (unsigned i = 0; i < BUFFERS; i++)
        give_back(l, i);
}

/* Publish the buffers that came back, and arm those that waited for one, in their order. */
static void refill(struct loop *l)
{
    uint32_t armed = 0;
    if (l->freed == 0)
        return;
    io_uring_buf_ring_advance(l->free, l->freed);
    l->freed = 0;
    while (armed < l->dry_n && io_uring_sq_space_left(&l->ring) > ENTRIES_OF_ONE)
        arm_recv(l, l->dry[armed++]);
    l->dry_n -= armed;
    memmove(l->dry, l->dry + armed, l->dry_n * sizeof(l->dry[0]));
}

static void *loop(void *arg)
{
    struct loop *l = map(sizeof(*l));
    l->listener = listen_at_port();
    make_ring(l);
    refill(l);
    arm_accept(l);
    for (;;) {
        int rc = io_uring_submit_and_wait(&l->ring, 1);
        if (rc < 0 && rc != -EINTR && rc != -EBUSY && rc != -EAGAIN)
            die("io_uring_submit_and_wait", -rc);
        struct io_uring_cqe *cqe;
        unsigned head;
        unsigned n = 0;
        io_uring_for_each_cqe(&l->ring, head, cqe)
        {
            if (io_uring_sq_space_left(&l->ring) < ENTRIES_OF_ONE)
                break; /* the rest after the next submission */
            complete(l, cqe);
            n++;
        }
        io_uring_cq_advance(&l->ring, n);
        refill(l);
    }
    return arg;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: echo_uring PORT THREADS\n", stderr);
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
