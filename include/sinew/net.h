/* SPDX-License-Identifier: MIT */
/* net.h - sockets: streams and datagrams, over TCP, UDP and Unix addresses (R82, R84).
 *
 *     sn_listener *l;
 *     sn_conn *c;
 *     rc = sn_listen(&l, "127.0.0.1:8080", NULL);
 *     while ((rc = sn_accept(l, &c, NULL, SN_FOREVER)) == 0)
 *         sn_spawn_detached(serve, c);
 *
 * Addresses are text, see addr.h: "127.0.0.1:80", "[::1]:80", "unix:/run/x". Calls return 0 or a
 * number of bytes, else a negative errno; those that can wait take a deadline. No signal is raised
 * and none interrupts. One thread or task may read while another writes; several may read, or
 * write, and then share what comes, or mix what goes.
 *
 * Handles are checked: one that was closed gives -EBADF. A close ends all waits on it, with -EBADF
 * too. Everything works from tasks, and from plain threads, which it blocks.
 *
 * A fiber that has read, written, accepted or waited many times in a row without having to wait
 * gives others a turn, so that one whose data is always there does not keep them all waiting. With
 * SN_NOWAIT a call never suspends.
 *
 * What is common to all of them is said once, here:
 *          -EBADF      closed, before or during the call; or not a handle
 *          -ENOTSOCK   a handle of another kind
 *          -ETIMEDOUT  the deadline passed first
 *          -ECANCELED  the task was cancelled (sn_cancel) while it waited, or before it had to; the
 *                      system has no buffer of it any more
 *          -ENOMEM, -EMFILE, -ENFILE, -ENOBUFS  the system has no more
 *          -EDEADLK    a coroutine would block its worker and must await the _op form (misuse)
 *          -EINVAL     NULL where there must be something, or an address that is not one
 * and what the system says about the connection: -ECONNRESET, -EPIPE, -ECONNREFUSED, ... */
#ifndef SINEW_NET_H
#define SINEW_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sinew/addr.h>
#include <sinew/annotate.h>
#include <sinew/clock.h>
#include <sinew/future.h>
#include <sinew/io.h>

SN_BEGIN_DECLS

typedef struct sn_listener sn_listener; /* accepts connections                    */
typedef struct sn_conn sn_conn;         /* a stream of bytes in both directions   */
typedef struct sn_dgram sn_dgram;       /* sends and receives datagrams           */

/* ---- listening ------------------------------------------------------------------------- */

/* What a listener may be told. */
typedef struct sn_listen_options {
    int backlog;     /* connections that wait to be accepted; default: as many as may be     */
    bool reuse_port; /* several listeners share a port, and the system spreads connections   */
    bool only_ipv6;  /* "[::]:80" does not take IPv4 too                                     */
    bool replace;    /* Unix: remove a socket of that name that nobody listens to any more   */
} sn_listen_options;

/* Listen at `addr`; port 0 lets the system choose. `opts` may be NULL.
 *
 * Suspends: no.   Threads: any.
 * Returns  0, and the listener, to be closed
 *          -EADDRINUSE, -EADDRNOTAVAIL, -EACCES, ... and as above */
SN_API SN_MUST_USE int sn_listen(sn_listener **out, const char *addr,
                                 const sn_listen_options *opts);

/* The next connection. `peer`, if not NULL, learns from where. While the process or the system has
 * no descriptor left, it waits for one, trying again after 1 ms, 2 ms, ... 1 s; nothing is lost.
 * If its wait is cancelled or comes to its deadline, and a connection is there just then, it takes
 * it, so that none is left to nobody.
 *
 * Suspends: yes.   Threads: any.
 * Returns  0, and the connection, to be closed
 *          -EMFILE, -ENFILE  there was no descriptor until the deadline; and as above */
SN_API SN_SUSPENDS SN_MUST_USE int sn_accept(sn_listener *listener, sn_conn **out, sn_addr *peer,
                                             sn_deadline until);

/* Where it listens, with the port that was chosen.
 *
 * Suspends: no.   Threads: any.   Returns  0, or as above */
SN_API SN_MUST_USE int sn_listener_addr(sn_listener *listener, sn_addr *out);

/* Close. The file of a Unix socket stays.
 *
 * Suspends: no.   Threads: any.   Returns  0; -EBADF */
SN_API int sn_listener_close(sn_listener *listener) SN_USES_UP(1);

/* ---- connections ----------------------------------------------------------------------- */

/* Connect to `addr`.
 *
 * Suspends: yes.   Threads: any.
 * Returns  0, and the connection, to be closed
 *          -ECONNREFUSED, -ENETUNREACH, -ENOENT (Unix), ... and as above */
SN_API SN_SUSPENDS SN_MUST_USE int sn_connect(sn_conn **out, const char *addr, sn_deadline until);

/* Two connections with each other.
 *
 * Suspends: no.   Threads: any.   Returns  0, or as above */
SN_API SN_MUST_USE int sn_conn_pair(sn_conn *out[2]);

/* Make a connection of a descriptor that came from elsewhere: a connected stream socket. It is
 * made non-blocking, and belongs to the connection from then on.
 *
 * Suspends: no.   Threads: any.
 * Returns  0; -ENOTSOCK or another error: the descriptor is still the caller's */
SN_API SN_MUST_USE int sn_conn_adopt(sn_conn **out, int fd);

/* Read what is there, at most `bytes`; waits until something is.
 *
 * Suspends: yes.   Threads: any.
 * Returns  the number of bytes; 0: the other end has shut down, or `bytes` is 0; or as above */
SN_API SN_SUSPENDS SN_MUST_USE ptrdiff_t sn_read(sn_conn *conn, void *buf, size_t bytes,
                                                 sn_deadline until);

/* Write some of `bytes`; waits until some can be.
 *
 * Suspends: yes.   Threads: any.
 * Returns  the number of bytes, more than 0 unless `bytes` is; or as above */
SN_API SN_SUSPENDS SN_MUST_USE ptrdiff_t sn_write(sn_conn *conn, const void *buf, size_t bytes,
                                                  sn_deadline until);

/* Read exactly `bytes`. `done`, if not NULL, learns how many were read, also on failure.
 *
 * Suspends: yes.   Threads: any.
 * Returns  0
 *          -EPIPE  the other end has shut down before; or as above */
SN_API SN_SUSPENDS SN_MUST_USE int sn_read_exact(sn_conn *conn, void *buf, size_t bytes,
                                                 size_t *done, sn_deadline until);

/* Write all `bytes`. `done`, if not NULL, learns how many were written, also on failure.
 *
 * Suspends: yes.   Threads: any.
 * Returns  0, or as above */
SN_API SN_SUSPENDS SN_MUST_USE int sn_write_all(sn_conn *conn, const void *buf, size_t bytes,
                                                size_t *done, sn_deadline until);

/* sn_read and sn_write with several pieces, at most SN_IOV_MAX, in one system call.
 *
 * Suspends: yes.   Threads: any.   Returns  as those */
#define SN_IOV_MAX 1024
SN_API SN_SUSPENDS SN_MUST_USE ptrdiff_t sn_readv(sn_conn *conn, const sn_iov *iov, int n,
                                                  sn_deadline until);
SN_API SN_SUSPENDS SN_MUST_USE ptrdiff_t sn_writev(sn_conn *conn, const sn_iov *iov, int n,
                                                   sn_deadline until);

/* Wait until it can be read from or written to (SN_READABLE, SN_WRITABLE) without waiting: a task
 * that holds no buffer meanwhile borrows one when there is something to put into it.
 *
 * Suspends: yes.   Threads: any.   Returns  the events, or as above */
SN_API SN_SUSPENDS SN_MUST_USE int sn_conn_wait(sn_conn *conn, unsigned events, sn_deadline until);

/* Which directions to shut down. */
typedef enum sn_shut {
    SN_SHUT_READ,
    SN_SHUT_WRITE, /* the other end reads to the end and then gets 0 */
    SN_SHUT_BOTH,
} sn_shut;

/* Shut down one direction or both.
 *
 * Suspends: no.   Threads: any.   Returns  0, or as above */
SN_API int sn_shutdown(sn_conn *conn, sn_shut how);

/* Properties of a connection. */
typedef enum sn_conn_option {
    SN_CONN_NODELAY,   /* TCP: do not wait for more before sending: 0 or 1; it is 1 at first  */
    SN_CONN_KEEPALIVE, /* TCP: so many idle seconds, then ask if the other end lives; 0: off */
    SN_CONN_SEND_BUFFER,
    SN_CONN_RECV_BUFFER, /* of the system, in bytes; it may give another size, on Linux twice  */
    SN_CONN_LINGER,      /* seconds that a close waits for data to go out; 0: abort; -1: off   */
} sn_conn_option;

/* Set or get one.
 *
 * Suspends: no.   Threads: any.   Returns  0; -EINVAL, -ENOPROTOOPT, or as above */
SN_API SN_MUST_USE int sn_conn_set(sn_conn *conn, sn_conn_option option, int value);
SN_API SN_MUST_USE int sn_conn_get(sn_conn *conn, sn_conn_option option, int *value);

/* The addresses of this end and the other.
 *
 * Suspends: no.   Threads: any.   Returns  0; -ENOTCONN, or as above */
SN_API SN_MUST_USE int sn_conn_local(sn_conn *conn, sn_addr *out);
SN_API SN_MUST_USE int sn_conn_peer(sn_conn *conn, sn_addr *out);

/* Unix: send or receive descriptors with the bytes, of which there must be at least one. Those
 * sent stay the caller's. Of those received at most `*n` are given, and `*n` learns how many; they
 * are close-on-exec; others that came are closed.
 *
 * Suspends: yes.   Threads: any.
 * Returns  the number of bytes, as sn_write and sn_read
 *          -EINVAL  no bytes, or more descriptors than SN_FDS_MAX */
#define SN_FDS_MAX 64
SN_API SN_SUSPENDS SN_MUST_USE ptrdiff_t sn_send_fds(sn_conn *conn, const void *buf, size_t bytes,
                                                     const int *fds, int n, sn_deadline until);
SN_API SN_SUSPENDS SN_MUST_USE ptrdiff_t sn_recv_fds(sn_conn *conn, void *buf, size_t bytes,
                                                     int *fds, int *n, sn_deadline until);

/* Close. What waits on it ends with -EBADF.
 *
 * Suspends: no.   Threads: any.   Returns  0; -EBADF */
SN_API int sn_close(sn_conn *conn) SN_USES_UP(1);

/* ---- datagrams ------------------------------------------------------------------------- */

/* A socket for datagrams, bound to `local`: UDP, or a Unix path. "0.0.0.0:0" and "[::]:0" let the
 * system choose.
 *
 * Suspends: no.   Threads: any.   Returns  0, and the socket, to be closed; or as sn_listen */
SN_API SN_MUST_USE int sn_dgram_open(sn_dgram **out, const char *local);

/* Two of them, connected with each other.
 *
 * Suspends: no.   Threads: any.   Returns  0, or as above */
SN_API SN_MUST_USE int sn_dgram_pair(sn_dgram *out[2]);

/* Send to `addr` by default, and receive from there only.
 *
 * Suspends: no.   Threads: any.   Returns  0, or as above */
SN_API SN_MUST_USE int sn_dgram_connect(sn_dgram *dgram, const char *addr);

/* Send one datagram, to `to`, or NULL: to where it is connected.
 *
 * Suspends: yes.   Threads: any.
 * Returns  the number of bytes; -EMSGSIZE, -EDESTADDRREQ, -ECONNREFUSED, or as above */
SN_API SN_SUSPENDS SN_MUST_USE ptrdiff_t sn_send_to(sn_dgram *dgram, const void *buf, size_t bytes,
                                                    const sn_addr *to, sn_deadline until);

/* Receive one datagram. What does not fit is lost. `from`, if not NULL, learns the sender, or
 * becomes SN_ADDR_NONE if it has no address.
 *
 * Suspends: yes.   Threads: any.
 * Returns  the length of the datagram, which may be 0, or more than `bytes`; or as above */
SN_API SN_SUSPENDS SN_MUST_USE ptrdiff_t sn_recv_from(sn_dgram *dgram, void *buf, size_t bytes,
                                                      sn_addr *from, sn_deadline until);

/* Where it is bound.
 *
 * Suspends: no.   Threads: any.   Returns  0, or as above */
SN_API SN_MUST_USE int sn_dgram_addr(sn_dgram *dgram, sn_addr *out);

/* Close.
 *
 * Suspends: no.   Threads: any.   Returns  0; -EBADF */
SN_API int sn_dgram_close(sn_dgram *dgram) SN_USES_UP(1);

/* ---- for coroutines --------------------------------------------------------------------- */

/* The calls above as futures: SN_AWAIT_INTO(n, sn_read_op(&self->io, conn, buf, sizeof(buf))).
 * They wait without end; race them with sn_sleep_op. One that is dropped has consumed nothing: no
 * connection, no byte. What they point to must stay until they are complete or dropped.
 * sn_accept_op does not wait for a descriptor when there is none: it gives -EMFILE at once.
 *
 * Suspends: no.   Threads: any; are polled inside a runtime.
 * Returns  the future in `state`; its result is as the call's, at most INT32_MAX;
 *          -EPERM  polled outside a runtime */
SN_API sn_future *sn_accept_op(sn_io_state *state, sn_listener *listener, sn_conn **out);
SN_API sn_future *sn_read_op(sn_io_state *state, sn_conn *conn, void *buf, size_t bytes);
SN_API sn_future *sn_write_op(sn_io_state *state, sn_conn *conn, const void *buf, size_t bytes);
SN_API sn_future *sn_conn_wait_op(sn_io_state *state, sn_conn *conn, unsigned events);
SN_API sn_future *sn_send_to_op(sn_io_state *state, sn_dgram *dgram, const void *buf, size_t bytes,
                                const sn_addr *to);
SN_API sn_future *sn_recv_from_op(sn_io_state *state, sn_dgram *dgram, void *buf, size_t bytes,
                                  sn_addr *from);

SN_END_DECLS

#endif
