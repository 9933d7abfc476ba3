/* SPDX-License-Identifier: MIT */
/* conn.c - connections: making them, reading, writing, closing (R82, R84).
 *
 * Each call uses the file of its handle for as long as it lasts (io/file.h), which is what makes a
 * close from elsewhere safe. The future forms differ only in how they try. */
#include "net/sock.h"

#include "io/file_op.h"
#include "net/sockaddr.h"
#include "plat/socket.h"

#include <sinew/errno.h>
#include <sinew/time.h>

#include <assert.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static_assert(sizeof(sn_iov) == sizeof(struct iovec), "sn_iov is the system's");
static_assert(offsetof(sn_iov, bytes) == offsetof(struct iovec, iov_len), "sn_iov is the system's");
static_assert(SN_IOV_MAX <= IOV_MAX, "the system takes that many pieces");

static int use(sn_conn *conn, struct sni_file **file)
{
    return sni_file_use(sni_sock_handle(conn), SNI_CONNS, file);
}

/* ---- making ---------------------------------------------------------------------------- */

/* A Unix listener whose queue is full refuses with -EAGAIN, and nothing tells when it is not:
 * ask again now and then. */
static int connect_patiently(struct sni_file *file, const struct sockaddr *addr, uint32_t bytes,
                             sn_deadline until)
{
    for (;;) {
        int rc = sni_plat_connect(file->fd, addr, bytes);
        if (rc != -EAGAIN)
            return rc;
        if (until.ns <= sn_now())
            return -ETIMEDOUT;
        sn_deadline nap = sn_after(SN_MS(1));
        rc = sni_file_nap(file, nap.ns < until.ns ? nap : until);
        if (rc < 0)
            return rc;
    }
}

/* The descriptor is a file already, so that all waits are like others, also when the fiber is
 * abandoned. */
static int make_connect(sn_conn *conn, const struct sockaddr *addr, uint32_t bytes,
                        sn_deadline until)
{
    struct sni_file *file;
    int rc = use(conn, &file);
    if (rc < 0)
        return rc;
    file->is_unborn = true;
    rc = connect_patiently(file, addr, bytes, until);
    if (rc == -EINPROGRESS) {
        ptrdiff_t events = sni_file_wait(file, SNI_WRITABLE, until);
        rc = events < 0 ? (int)events : sni_plat_socket_error(file->fd);
    }
    file->is_unborn = false;
    sni_file_unuse(file);
    return rc;
}

int sn_connect(sn_conn **out, const char *text, sn_deadline until)
{
    if (out == NULL)
        return -EINVAL;
    struct sockaddr_storage addr;
    uint32_t bytes;
    int fd = sni_sock_open(text, SOCK_STREAM, &addr, &bytes);
    if (fd < 0)
        return fd;
    sn_conn *conn;
    int rc = sni_conn_make(fd, &conn);
    if (rc < 0)
        return rc;
    rc = make_connect(conn, (struct sockaddr *)&addr, bytes, until);
    if (rc < 0)
        (void)sn_close(conn);
    else
        *out = conn;
    return rc;
}

int sn_conn_pair(sn_conn *out[2])
{
    int fds[2];
    if (out == NULL)
        return -EINVAL;
    int rc = sni_plat_socketpair(SOCK_STREAM, fds);
    if (rc < 0)
        return rc;
    sn_conn *first;
    rc = sni_conn_make(fds[0], &first);
    if (rc < 0) {
        sni_plat_close(fds[1]);
        return rc;
    }
    rc = sni_conn_make(fds[1], &out[1]);
    if (rc < 0)
        (void)sn_close(first);
    else
        out[0] = first;
    return rc;
}

int sn_conn_adopt(sn_conn **out, int fd)
{
    if (out == NULL)
        return -EINVAL;
    int type;
    uint32_t bytes = sizeof(type);
    int rc = sni_plat_getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes);
    if (rc == 0 && type != SOCK_STREAM)
        rc = -ENOTSOCK;
    if (rc == 0)
        rc = sni_plat_set_nonblocking(fd);
    uint64_t handle;
    int nodelay; /* what only TCP has */
    bytes = sizeof(nodelay);
    bool is_tcp = sni_plat_getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &bytes) == 0;
    if (rc == 0)
        rc = sni_file_create(fd, SNI_CONN, is_tcp, &handle);
    if (rc == 0)
        *out = (sn_conn *)(uintptr_t)handle;
    return rc;
}

int sn_close(sn_conn *conn)
{
    struct sni_file *file;
    int rc = use(conn, &file);
    if (rc < 0)
        return rc;
    rc = sni_file_close(sni_sock_handle(conn));
    sni_file_unuse(file);
    return rc;
}

/* ---- reading and writing ---------------------------------------------------------------- */

/* Do `op` on the connection. */
static ptrdiff_t do_op(sn_conn *conn, struct sni_op *op, sn_deadline until)
{
    struct sni_file *file;
    int rc = use(conn, &file);
    if (rc < 0)
        return rc;
    ptrdiff_t result = sni_file_do(file, op, until);
    sni_file_end(file, result, until);
    return result;
}

/* Is there nothing to move? Then only the handle is checked. */
static ptrdiff_t nothing(sn_conn *conn)
{
    struct sni_file *file;
    int rc = use(conn, &file);
    if (rc == 0)
        sni_file_unuse(file);
    return rc;
}

ptrdiff_t sn_read(sn_conn *conn, void *buf, size_t bytes, sn_deadline until)
{
    if (bytes == 0)
        return nothing(conn);
    if (buf == NULL)
        return -EINVAL;
    return sni_file_recv(sni_sock_handle(conn), SNI_CONNS, buf, bytes, until);
}

ptrdiff_t sn_write(sn_conn *conn, const void *buf, size_t bytes, sn_deadline until)
{
    if (bytes == 0)
        return nothing(conn);
    if (buf == NULL)
        return -EINVAL;
    return sni_file_send(sni_sock_handle(conn), SNI_CONNS, buf, bytes, until);
}

/* Of `bytes` that are all to be moved, one call has moved `rc`, or failed; *moved are those before.
 * Returns  0: all of them are; 1: go on; -errno. 0 at once are the end. */
static int add_up(ptrdiff_t rc, size_t bytes, size_t *moved)
{
    if (rc <= 0)
        return rc < 0 ? (int)rc : -EPIPE;
    *moved += (size_t)rc;
    return *moved < bytes;
}

int sn_read_exact(sn_conn *conn, void *buf, size_t bytes, size_t *done, sn_deadline until)
{
    size_t moved = 0;
    int rc = bytes == 0 ? (int)nothing(conn) : buf == NULL ? -EINVAL : 1;
    while (rc > 0)
        rc = add_up(sni_file_recv(sni_sock_handle(conn), SNI_CONNS, (char *)buf + moved,
                                  bytes - moved, until),
                    bytes, &moved);
    if (done != NULL)
        *done = moved;
    return rc;
}

int sn_write_all(sn_conn *conn, const void *buf, size_t bytes, size_t *done, sn_deadline until)
{
    size_t moved = 0;
    int rc = bytes == 0 ? (int)nothing(conn) : buf == NULL ? -EINVAL : 1;
    while (rc > 0)
        rc = add_up(sni_file_send(sni_sock_handle(conn), SNI_CONNS, (const char *)buf + moved,
                                  bytes - moved, until),
                    bytes, &moved);
    if (done != NULL)
        *done = moved;
    return rc;
}

static ptrdiff_t move_pieces(sn_conn *conn, enum sni_op_kind kind, const sn_iov *iov, int n,
                             sn_deadline until)
{
    if (n < 0 || n > SN_IOV_MAX || (iov == NULL && n > 0))
        return -EINVAL;
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += iov[i].bytes;
    if (bytes == 0)
        return nothing(conn);
    struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n};
    struct sni_op op = {.kind = (uint8_t)kind, .msg = &msg};
    return do_op(conn, &op, until);
}

ptrdiff_t sn_readv(sn_conn *conn, const sn_iov *iov, int n, sn_deadline until)
{
    return move_pieces(conn, SNI_OP_RECVMSG, iov, n, until);
}

ptrdiff_t sn_writev(sn_conn *conn, const sn_iov *iov, int n, sn_deadline until)
{
    return move_pieces(conn, SNI_OP_SENDMSG, iov, n, until);
}

static bool are_events(unsigned events)
{
    return events != 0 && (events & ~(unsigned)(SN_READABLE | SN_WRITABLE)) == 0;
}

int sn_conn_wait(sn_conn *conn, unsigned events, sn_deadline until)
{
    if (!are_events(events))
        return -EINVAL;
    struct sni_file *file;
    int rc = use(conn, &file);
    if (rc < 0)
        return rc;
    rc = (int)sni_file_wait(file, events, until);
    sni_file_end(file, rc, until);
    return rc;
}

int sn_shutdown(sn_conn *conn, sn_shut how)
{
    static const int system[] = {SHUT_RD, SHUT_WR, SHUT_RDWR};
    if ((unsigned)how > SN_SHUT_BOTH)
        return -EINVAL;
    struct sni_file *file;
    int rc = use(conn, &file);
    if (rc < 0)
        return rc;
    rc = sni_plat_shutdown(file->fd, system[how]);
    sni_file_unuse(file);
    return rc;
}

/* ---- for coroutines --------------------------------------------------------------------- */

static ptrdiff_t try_read(struct sni_file_op *fop)
{
    if (fop->op.buf == NULL || fop->op.bytes == 0)
        return fop->op.bytes == 0 ? 0 : -EINVAL;
    return sni_plat_recv(fop->op.fd, fop->op.buf, fop->op.bytes, 0);
}

static ptrdiff_t try_write(struct sni_file_op *fop)
{
    if (fop->op.buf == NULL || fop->op.bytes == 0)
        return fop->op.bytes == 0 ? 0 : -EINVAL;
    return sni_plat_send(fop->op.fd, fop->op.buf, fop->op.bytes, 0);
}

static sn_future *move_op(sn_io_state *state, const struct sni_file_op_kind *kind, sn_conn *conn,
                          void *buf, size_t bytes, unsigned events)
{
    struct sni_file_op *fop =
        sni_file_op_init(state, kind, sni_sock_handle(conn), SNI_CONNS, events);
    fop->op.buf = buf;
    fop->op.bytes = bytes < INT32_MAX ? bytes : INT32_MAX;
    return &fop->future;
}

sn_future *sn_read_op(sn_io_state *state, sn_conn *conn, void *buf, size_t bytes)
{
    static const struct sni_file_op_kind kind = {.vt = SNI_FILE_OP("read"), .attempt = try_read};
    return move_op(state, &kind, conn, buf, bytes, SNI_READABLE);
}

sn_future *sn_write_op(sn_io_state *state, sn_conn *conn, const void *buf, size_t bytes)
{
    static const struct sni_file_op_kind kind = {.vt = SNI_FILE_OP("write"), .attempt = try_write};
    return move_op(state, &kind, conn, (void *)(uintptr_t)buf, bytes, SNI_WRITABLE);
}

static ptrdiff_t refuse_events(struct sni_file_op *fop)
{
    (void)fop;
    return -EINVAL;
}

sn_future *sn_conn_wait_op(sn_io_state *state, sn_conn *conn, unsigned events)
{
    static const struct sni_file_op_kind kind = {.vt = SNI_FILE_OP("wait")};
    static const struct sni_file_op_kind wrong = {.vt = SNI_FILE_OP("wait"),
                                                  .attempt = refuse_events};
    return move_op(state, are_events(events) ? &kind : &wrong, conn, NULL, 0, events);
}
