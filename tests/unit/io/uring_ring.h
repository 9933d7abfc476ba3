/* SPDX-License-Identifier: MIT */
/* uring_ring.h - what the tests of the io_uring driver share: rings of several kinds, sockets,
 * and an operation from its submission to its end, with the test's thread as the owner. */
#ifndef SINEW_TESTS_UNIT_IO_URING_RING_H
#define SINEW_TESTS_UNIT_IO_URING_RING_H

#include "harness.h"

#include "io/uring/uring.h"
#include "plat/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MS(n) ((int64_t)(n) * 1000000)

static inline void require_uring(void)
{
    struct sni_uring_features features;
    int rc = sni_uring_probe(&features);
    if (rc < 0)
        SKIP("io_uring is not to be had here: %s (%d)", features.reason, rc);
}

static inline struct sni_driver *ring_with(struct sni_uring_config config)
{
    require_uring();
    struct sni_driver *driver;
    CHECK_EQ(sni_uring_create(&config, &driver), 0);
    return driver;
}

static inline struct sni_driver *ring(void)
{
    return ring_with((struct sni_uring_config){0});
}

/* Once with all that this kernel has, once as on the oldest kernel, once with its thread. */
static inline void each_ring(void (*body)(struct sni_driver *driver))
{
    static const struct sni_uring_config configs[] = {
        {0}, {.without = SNI_URING_ALL}, {.sqpoll = true}};
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        struct sni_driver *driver = ring_with(configs[i]);
        body(driver);
        sni_driver_finish(driver);
    }
}

static inline void op_begin(struct sni_op *op, enum sni_op_kind kind, int fd)
{
    *op = (struct sni_op){.kind = (uint8_t)kind, .fd = fd};
    sni_wait_begin(&op->waiter);
}

static inline void op_recv(struct sni_driver *driver, struct sni_op *op, int fd, void *buf,
                           size_t bytes)
{
    op_begin(op, SNI_OP_RECV, fd);
    op->buf = buf;
    op->bytes = bytes;
    sni_driver_submit(driver, op);
}

static inline bool op_is_over(struct sni_op *op)
{
    sni_mutex_lock(&op->driver->lock);
    bool over = op->state == SNI_OP_COMPLETE;
    sni_mutex_unlock(&op->driver->lock);
    return over;
}

/* Sleep and reap until `op` is over. */
static inline ptrdiff_t op_end(struct sni_op *op)
{
    struct sni_driver *driver = op->driver;
    sni_driver_flush(driver);
    for (;;) {
        (void)sni_driver_reap_patiently(driver);
        if (op_is_over(op))
            break;
        sni_driver_wait(driver, INT64_MAX);
    }
    CHECK_EQ(sni_wait_commit(&op->waiter, SN_FOREVER), 0);
    return op->result;
}

/* Let the kernel have `op` for a while, and see that it does not end. */
static inline void check_waits(struct sni_op *op)
{
    int64_t until = sni_plat_now_ns() + MS(5);
    while (sni_plat_now_ns() < until) {
        sni_driver_wait(op->driver, until);
        (void)sni_driver_reap_patiently(op->driver);
    }
    CHECK(!op_is_over(op));
}

static inline void pair(int fds[2], int type)
{
    CHECK_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds), 0);
}

static inline void close_both(int fds[2])
{
    CHECK_EQ(close(fds[0]), 0);
    CHECK_EQ(close(fds[1]), 0);
}

/* One operation that waits, all the way: the ring works. */
static inline void recv_one(struct sni_driver *driver)
{
    int fds[2];
    char c = 0;
    struct sni_op op;
    pair(fds, SOCK_STREAM);
    op_recv(driver, &op, fds[0], &c, 1);
    sni_driver_flush(driver);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EQ(op_end(&op), 1);
    CHECK_EQ(c, 'x');
    close_both(fds);
}

/* A listening TCP socket on the loopback; `addr` receives where. */
static inline int listen_tcp(struct sockaddr_in *addr, int type, int backlog)
{
    socklen_t bytes = sizeof(*addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | type, 0);
    CHECK_GE(fd, 0);
    *addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    CHECK_EQ(bind(fd, (struct sockaddr *)addr, sizeof(*addr)), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)addr, &bytes), 0);
    CHECK_EQ(listen(fd, backlog), 0);
    return fd;
}

static inline int tcp_socket(int type)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | type, 0);
    CHECK_GE(fd, 0);
    return fd;
}

#endif
