/* SPDX-License-Identifier: MIT */
/* suite.h - one suite for sockets, whoever uses them and whatever waits for the kernel (R82, R84).
 *
 * NET_TEST(name) { body } makes a test of the body for each *row*, whose name it bears:
 *     fiber_<driver>_1, fiber_<driver>_2   fibers of a runtime on one thread (Level 1), or with
 *                                          several workers (Level 2)
 *     coro_<driver>_1, coro_<driver>_2     the same, but each call of a kind that has an _op form
 *                                          is a coroutine that awaits it
 *     thread                               plain threads, no runtime anywhere
 *     beside_<driver>                      the body is a fiber, its helpers are plain threads
 * FIBER_TEST leaves the coroutines out: for what they have no form of.
 *
 * A body uses the calls x_... for those that differ, and helpers for what happens at the same
 * time. A driver that the system refuses skips its rows. */
#ifndef SINEW_TESTS_CONFORM_NET_SUITE_H
#define SINEW_TESTS_CONFORM_NET_SUITE_H

#include "harness.h"

#include <sinew/errno.h>
#include <sinew/sinew.h>

#include <pthread.h>
#include <string.h>

enum net_who { NET_fiber, NET_coro, NET_thread, NET_beside };

/* Run `body` in a row; `workers` 1 is Level 1. */
void net_run(enum net_who who, sn_io_driver io, unsigned workers, void (*body)(void));

#define NET_ROW_(name, who, driver, io, workers)             \
    TEST(name##_##who##_##driver##_##workers, .limit_s = 40) \
    {                                                        \
        net_run(NET_##who, io, workers, name##_body);        \
    }
#define NET_ROWS_(name, who)                   \
    NET_ROW_(name, who, uring, SN_IO_URING, 1) \
    NET_ROW_(name, who, uring, SN_IO_URING, 3) \
    NET_ROW_(name, who, epoll, SN_IO_EPOLL, 1) \
    NET_ROW_(name, who, epoll, SN_IO_EPOLL, 3) \
    NET_ROW_(name, who, poll, SN_IO_POLL, 1)   \
    NET_ROW_(name, who, poll, SN_IO_POLL, 3)
#define NET_PLAIN_ROWS_(name)                     \
    NET_ROW_(name, thread, none, SN_IO_AUTO, 0)   \
    NET_ROW_(name, beside, uring, SN_IO_URING, 2) \
    NET_ROW_(name, beside, epoll, SN_IO_EPOLL, 2) \
    NET_ROW_(name, beside, poll, SN_IO_POLL, 2)

#define NET_TEST(name)             \
    static void name##_body(void); \
    NET_ROWS_(name, fiber)         \
    NET_ROWS_(name, coro)          \
    NET_PLAIN_ROWS_(name)          \
    static void name##_body(void)

#define FIBER_TEST(name)           \
    static void name##_body(void); \
    NET_ROWS_(name, fiber)         \
    NET_PLAIN_ROWS_(name)          \
    static void name##_body(void)

/* What waits for the kernel in this row. */
sn_io_driver net_io(void);

/* ---- at the same time -------------------------------------------------------------------- */

/* Somebody who runs `fn(arg)` beside the body: a fiber, or a plain thread. */
struct helper {
    sn_task *task;
    pthread_t thread;
    int (*fn)(void *arg);
    void *arg;
    int rc;
    struct {
        int done;
    } atomic;
};

void help(struct helper *h, int (*fn)(void *arg), void *arg);

/* Wait for its end. Returns what `fn` did. */
int helped(struct helper *h);

/* Let others come to where they wait. No test depends on whether they have. */
void let_them_wait(void);

/* ---- the calls that differ --------------------------------------------------------------- */

ptrdiff_t x_read(sn_conn *conn, void *buf, size_t bytes, sn_deadline until);
ptrdiff_t x_write(sn_conn *conn, const void *buf, size_t bytes, sn_deadline until);
int x_accept(sn_listener *listener, sn_conn **out, sn_addr *peer, sn_deadline until);
int x_conn_wait(sn_conn *conn, unsigned events, sn_deadline until);
int x_wait_fd(int fd, unsigned events, sn_deadline until);
ptrdiff_t x_send_to(sn_dgram *d, const void *buf, size_t bytes, const sn_addr *to,
                    sn_deadline until);
ptrdiff_t x_recv_from(sn_dgram *d, void *buf, size_t bytes, sn_addr *from, sn_deadline until);

/* ---- what bodies need -------------------------------------------------------------------- */

/* A deadline that passes soon, and one that does not unless something hangs. */
static inline sn_deadline soon(void)
{
    return sn_after(SN_MS(3));
}

/* Listen at `addr`, and the text of where that is. */
struct place {
    sn_listener *listener;
    char addr[SN_ADDR_TEXT_MAX];
};

struct place listen_at(const char *addr, const sn_listen_options *opts);
void unlisten(struct place *place);

/* Connect to `p`, which listens by TCP with a backlog of 1 and accepts nobody, until a connect has
 * to wait. Returns how many are connected, fewer than `max`. */
int fill_queue(const struct place *p, sn_conn **conns, int max);

/* Two ends of a TCP connection on the loopback; ends[0] has connected, ends[1] was accepted. */
void tcp_pair(sn_conn *ends[2]);
void close_pair(sn_conn *ends[2]);

/* "unix:<a file in the test's own directory>" */
const char *unix_addr(char text[SN_ADDR_TEXT_MAX], const char *name);

/* The text of the address of `d`. */
const char *dgram_addr(char text[SN_ADDR_TEXT_MAX], sn_dgram *d);

#endif
