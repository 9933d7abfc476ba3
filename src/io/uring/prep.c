/* SPDX-License-Identifier: MIT */
/* prep.c - what each kind of operation looks like to the kernel.
 *
 * Whatever flags an owner gives, three things are ours: a send raises no SIGPIPE; a descriptor
 * that we make is close-on-exec and nonblocking; and MSG_DONTWAIT, with which the kernel completes
 * with -EAGAIN what would have to wait, is in every send (uring.c says why) and in no receive. */
#include "io/uring/prep.h"

#include <poll.h>
#include <sys/socket.h>

enum {
    BYTES_MAX =
        0x7ffff000, /* what one system call moves at most (man 2 read); a length is 32 bits */
};

static size_t at_most(size_t bytes)
{
    return bytes < BYTES_MAX ? bytes : BYTES_MAX;
}

unsigned sni_uring_mask_of_other(const struct sni_op *op)
{
    switch ((enum sni_op_kind)op->kind) {
    case SNI_OP_CONNECT:
    case SNI_OP_SEND:
    case SNI_OP_SENDMSG:
        return POLLOUT;
    case SNI_OP_RECV:
    case SNI_OP_RECVMSG:
        if ((op->flags & MSG_ERRQUEUE) != 0)
            return 0; /* POLLERR, which need not be asked for, tells that something is there */
        return (op->flags & MSG_OOB) != 0 ? POLLPRI : POLLIN | POLLRDHUP;
    case SNI_OP_ACCEPT:
        return POLLIN;
    case SNI_OP_POLL:
    case SNI_OP_KINDS:
        break;
    }
    return 0;
}

void sni_uring_prep(struct io_uring_sqe *sqe, const struct sni_op *op, bool patient)
{
    const int quiet = MSG_NOSIGNAL | MSG_DONTWAIT;
    const int flags = ((int)op->flags & ~MSG_DONTWAIT) | (patient ? 0 : MSG_DONTWAIT);
    switch ((enum sni_op_kind)op->kind) {
    case SNI_OP_ACCEPT:
        io_uring_prep_accept(sqe, op->fd, op->addr, op->addr_bytes,
                             (int)op->flags | SOCK_CLOEXEC | SOCK_NONBLOCK);
        break;
    case SNI_OP_CONNECT:
        io_uring_prep_connect(sqe, op->fd, op->addr, *op->addr_bytes);
        break;
    case SNI_OP_RECV:
        io_uring_prep_recv(sqe, op->fd, op->buf, at_most(op->bytes), flags);
        break;
    case SNI_OP_SEND:
        io_uring_prep_send(sqe, op->fd, op->buf, at_most(op->bytes), flags | quiet);
        break;
    case SNI_OP_RECVMSG:
        io_uring_prep_recvmsg(sqe, op->fd, op->msg, (unsigned)flags);
        break;
    case SNI_OP_SENDMSG:
        io_uring_prep_sendmsg(sqe, op->fd, op->msg, (unsigned)(flags | quiet));
        break;
    case SNI_OP_POLL:
    case SNI_OP_KINDS:
        io_uring_prep_poll_add(sqe, op->fd, sni_uring_mask(op));
        break;
    }
}
