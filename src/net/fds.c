/* SPDX-License-Identifier: MIT */
/* fds.c - descriptors sent over Unix connections.
 *
 * They travel with bytes. What is received beyond the room that the caller has is closed, so that
 * nobody can fill our table by sending more than was asked for. */
#include "net/sock.h"

#include "plat/socket.h"

#include <sinew/errno.h>

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Room for the kernel's message about descriptors. */
union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int) * SN_FDS_MAX)];
};

static ptrdiff_t do_msg(sn_conn *conn, enum sni_op_kind kind, struct msghdr *msg, sn_deadline until)
{
    struct sni_file *file;
    sni_spend_many(1, until.ns); /* not with descriptors in hand, see sni_file_end */
    int rc = sni_file_use(sni_sock_handle(conn), SNI_CONNS, &file);
    if (rc < 0)
        return rc;
    struct sni_op op = {.kind = (uint8_t)kind, .msg = msg};
    if (kind == SNI_OP_RECVMSG)
        op.flags = MSG_CMSG_CLOEXEC;
    ptrdiff_t result = sni_file_do(file, &op, until);
    sni_file_unuse(file);
    return result;
}

ptrdiff_t sn_send_fds(sn_conn *conn, const void *buf, size_t bytes, const int *fds, int n,
                      sn_deadline until)
{
    if (buf == NULL || bytes == 0 || fds == NULL || n < 1 || n > SN_FDS_MAX)
        return -EINVAL;
    union control control;
    size_t fds_bytes = sizeof(int) * (size_t)n;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = bytes};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = CMSG_SPACE(fds_bytes)};
    memset(&control, 0, sizeof(control));
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds_bytes);
    memcpy(CMSG_DATA(c), fds, fds_bytes);
    return do_msg(conn, SNI_OP_SENDMSG, &msg, until);
}

/* Keep up to `room` descriptors of one control message, close the others. */
static int keep(const struct cmsghdr *c, int *fds, int room)
{
    int kept = 0;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
        if (kept < room)
            fds[kept++] = fd;
        else
            sni_plat_close(fd);
    }
    return kept;
}

ptrdiff_t sn_recv_fds(sn_conn *conn, void *buf, size_t bytes, int *fds, int *n, sn_deadline until)
{
    if (buf == NULL || bytes == 0 || n == NULL || *n < 0 || *n > SN_FDS_MAX ||
        (fds == NULL && *n > 0))
        return -EINVAL;
    int room = *n;
    *n = 0;
    union control control;
    struct iovec iov = {.iov_base = buf, .iov_len = bytes};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof(control)};
    ptrdiff_t got = do_msg(conn, SNI_OP_RECVMSG, &msg, until);
    if (got < 0)
        return got;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            *n += keep(c, fds + *n, room - *n);
    return got;
}
