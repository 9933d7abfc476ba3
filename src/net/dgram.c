/* SPDX-License-Identifier: MIT */
/* dgram.c - sockets for datagrams: UDP, and Unix (R82).
 *
 * Sending is always tried here and never left to a ring: io_uring (Linux 6.18) that finds the queue
 * of a Unix socket full has used up the bytes by then, and sends an empty datagram later.
 *
 * A Unix socket that is not connected has nobody to tell it when the queue of another has room
 * again: poll(2) says writable all the time. So such a sender asks again now and then. */
#include "net/sock.h"

#include "io/file_op.h"
#include "net/sockaddr.h"
#include "plat/socket.h"

#include <sinew/errno.h>
#include <sinew/time.h>

#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int use(sn_dgram *dgram, struct sni_file **file)
{
    return sni_file_use(sni_sock_handle(dgram), SNI_DGRAMS, file);
}

/* ---- making ---------------------------------------------------------------------------- */

int sn_dgram_open(sn_dgram **out, const char *local)
{
    if (out == NULL)
        return -EINVAL;
    struct sockaddr_storage addr;
    uint32_t bytes;
    int fd = sni_sock_open(local, SOCK_DGRAM, &addr, &bytes);
    if (fd < 0)
        return fd;
    int rc = sni_plat_bind(fd, (struct sockaddr *)&addr, bytes);
    if (rc < 0) {
        sni_plat_close(fd);
        return rc;
    }
    void *handle;
    rc = sni_sock_make(fd, SNI_DGRAM, false, &handle);
    if (rc == 0)
        *out = handle;
    return rc;
}

int sn_dgram_pair(sn_dgram *out[2])
{
    int fds[2];
    if (out == NULL)
        return -EINVAL;
    int rc = sni_plat_socketpair(SOCK_DGRAM, fds);
    if (rc < 0)
        return rc;
    void *first, *second;
    rc = sni_sock_make(fds[0], SNI_DGRAM, false, &first);
    if (rc < 0) {
        sni_plat_close(fds[1]);
        return rc;
    }
    rc = sni_sock_make(fds[1], SNI_DGRAM, false, &second);
    if (rc < 0) {
        (void)sn_dgram_close(first);
        return rc;
    }
    out[0] = first;
    out[1] = second;
    return 0;
}

int sn_dgram_connect(sn_dgram *dgram, const char *text)
{
    sn_addr parsed;
    struct sockaddr_storage addr;
    uint32_t bytes;
    int rc = sn_addr_parse(text, &parsed);
    if (rc == 0)
        rc = sni_sockaddr_from(&parsed, &addr, &bytes);
    struct sni_file *file;
    if (rc == 0)
        rc = use(dgram, &file);
    if (rc < 0)
        return rc;
    rc = sni_plat_connect(file->fd, (struct sockaddr *)&addr, bytes);
    sni_file_unuse(file);
    return rc;
}

int sn_dgram_addr(sn_dgram *dgram, sn_addr *out)
{
    return sni_sock_name(dgram, SNI_DGRAMS, sni_plat_getsockname, out);
}

int sn_dgram_close(sn_dgram *dgram)
{
    struct sni_file *file;
    int rc = use(dgram, &file);
    if (rc < 0)
        return rc;
    rc = sni_file_close(sni_sock_handle(dgram));
    sni_file_unuse(file);
    return rc;
}

/* ---- sending and receiving --------------------------------------------------------------- */

/* A message with one piece and an address, as the kernel wants it. */
struct message {
    struct msghdr msg;
    struct iovec iov;
    struct sockaddr_storage addr;
};

static void lay_out(struct message *m, const void *buf, size_t bytes)
{
    m->iov = (struct iovec){.iov_base = (void *)(uintptr_t)buf, .iov_len = bytes};
    m->msg = (struct msghdr){.msg_iov = &m->iov, .msg_iovlen = 1};
}

static int lay_out_to(struct message *m, const void *buf, size_t bytes, const sn_addr *to)
{
    lay_out(m, buf, bytes);
    if (to == NULL)
        return 0;
    m->msg.msg_name = &m->addr;
    return sni_sockaddr_from(to, &m->addr, &m->msg.msg_namelen);
}

static void lay_out_from(struct message *m, void *buf, size_t bytes)
{
    lay_out(m, buf, bytes);
    m->msg.msg_name = &m->addr;
    m->msg.msg_namelen = sizeof(m->addr);
}

static void tell_sender(const struct message *m, sn_addr *from)
{
    if (from != NULL && sni_sockaddr_to(&m->addr, m->msg.msg_namelen, from) < 0)
        memset(from, 0, sizeof(*from)); /* SN_ADDR_NONE */
}

static ptrdiff_t do_msg(sn_dgram *dgram, struct sni_op *op, sn_deadline until)
{
    struct sni_file *file;
    int rc = use(dgram, &file);
    if (rc < 0)
        return rc;
    ptrdiff_t result = sni_file_do(file, op, until);
    sni_file_end(file, result, until);
    return result;
}

/* Wait a moment, for what never comes to such a socket, so that a close ends it. Returns 0, or as
 * sni_file_wait */
static ptrdiff_t nap(struct sni_file *file, sn_deadline until)
{
    sn_deadline wake = sn_after(SN_MS(1));
    bool last = until.ns <= wake.ns;
    ptrdiff_t rc = sni_file_wait(file, SNI_PRIORITY, last ? until : wake);
    if (rc > 0) /* it is broken: the next try tells, but not in a busy loop */
        rc = sni_file_nap(file, wake);
    return rc == -ETIMEDOUT && !last && sni_wait_is_past(wake) ? 0 : rc;
}

static ptrdiff_t send_patiently(sn_dgram *dgram, const struct msghdr *msg, sn_deadline until)
{
    struct sni_file *file;
    ptrdiff_t rc = use(dgram, &file);
    if (rc < 0)
        return rc;
    do {
        rc = sni_plat_sendmsg(file->fd, msg, 0);
    } while (rc == -EAGAIN && (rc = nap(file, until)) == 0);
    sni_file_end(file, rc, until);
    return rc;
}

ptrdiff_t sn_send_to(sn_dgram *dgram, const void *buf, size_t bytes, const sn_addr *to,
                     sn_deadline until)
{
    struct message m;
    int rc = buf == NULL && bytes > 0 ? -EINVAL : lay_out_to(&m, buf, bytes, to);
    if (rc < 0)
        return rc;
    if (to != NULL && sn_addr_kind_of(to) == SN_ADDR_UNIX)
        return send_patiently(dgram, &m.msg, until);
    struct sni_op op = {.kind = SNI_OP_SENDMSG, .is_polled = true, .msg = &m.msg};
    return do_msg(dgram, &op, until);
}

ptrdiff_t sn_recv_from(sn_dgram *dgram, void *buf, size_t bytes, sn_addr *from, sn_deadline until)
{
    if (buf == NULL && bytes > 0)
        return -EINVAL;
    struct message m;
    lay_out_from(&m, buf, bytes);
    struct sni_op op = {.kind = SNI_OP_RECVMSG, .msg = &m.msg, .flags = MSG_TRUNC};
    ptrdiff_t got = do_msg(dgram, &op, until);
    if (got >= 0)
        tell_sender(&m, from);
    return got;
}

/* ---- for coroutines --------------------------------------------------------------------- */

static ptrdiff_t try_send(struct sni_file_op *fop)
{
    struct message m;
    int rc = fop->op.buf == NULL && fop->op.bytes > 0
                 ? -EINVAL
                 : lay_out_to(&m, fop->op.buf, fop->op.bytes, fop->extra);
    return rc < 0 ? rc : sni_plat_sendmsg(fop->op.fd, &m.msg, 0);
}

static ptrdiff_t try_recv(struct sni_file_op *fop)
{
    if (fop->op.buf == NULL && fop->op.bytes > 0)
        return -EINVAL;
    struct message m;
    lay_out_from(&m, fop->op.buf, fop->op.bytes);
    ptrdiff_t got = sni_plat_recvmsg(fop->op.fd, &m.msg, MSG_TRUNC);
    if (got >= 0)
        tell_sender(&m, fop->extra);
    return got;
}

static sn_future *msg_op(sn_io_state *state, const struct sni_file_op_kind *kind, sn_dgram *dgram,
                         void *buf, size_t bytes, void *addr, unsigned events)
{
    struct sni_file_op *fop =
        sni_file_op_init(state, kind, sni_sock_handle(dgram), SNI_DGRAMS, events);
    fop->op.buf = buf;
    fop->op.bytes = bytes;
    fop->extra = addr;
    return &fop->future;
}

/* To a Unix address, see the top: a send that naps when it must wait. */
struct patient {
    sn_future future;
    sn_dgram *dgram;
    const void *buf;
    size_t bytes;
    const sn_addr *to;
    sn_future *nap; /* NULL while there is none */
    sn_sleep_state nap_state;
};

static_assert(sizeof(struct patient) <= sizeof(sn_io_state), "sn_io_state is too small");

static ptrdiff_t try_patient(const struct patient *p)
{
    struct message m;
    struct sni_file *file;
    int rc = p->buf == NULL && p->bytes > 0 ? -EINVAL : lay_out_to(&m, p->buf, p->bytes, p->to);
    if (rc == 0)
        rc = use(p->dgram, &file);
    if (rc < 0)
        return rc;
    ptrdiff_t sent = sni_plat_sendmsg(file->fd, &m.msg, 0);
    sni_file_unuse(file);
    return sent;
}

static sn_poll poll_patient(sn_future *fut, sn_cx *cx)
{
    struct patient *p = sni_container_of(fut, struct patient, future);
    for (;;) {
        if (p->nap != NULL) {
            sn_poll napped = sn_future_poll(p->nap, cx);
            if (sn_poll_pending(napped))
                return SN_PENDING;
            p->nap = NULL;
            if (napped.value < 0)
                return napped;
        }
        ptrdiff_t sent = try_patient(p);
        if (sent != -EAGAIN)
            return SN_READY((int)sent);
        p->nap = sn_sleep_op(&p->nap_state, sn_after(SN_MS(1)));
    }
}

static void drop_patient(sn_future *fut)
{
    struct patient *p = sni_container_of(fut, struct patient, future);
    if (p->nap != NULL)
        (void)sn_future_drop(p->nap);
}

static sn_future *patient_op(sn_io_state *state, sn_dgram *dgram, const void *buf, size_t bytes,
                             const sn_addr *to)
{
    static const sn_future_vtable vtable = {
        .poll = poll_patient, .drop = drop_patient, .name = "send_to"};
    struct patient *p = (struct patient *)(void *)state;
    *p = (struct patient){.dgram = dgram, .buf = buf, .bytes = bytes, .to = to};
    return sn_future_init(&p->future, &vtable);
}

sn_future *sn_send_to_op(sn_io_state *state, sn_dgram *dgram, const void *buf, size_t bytes,
                         const sn_addr *to)
{
    if (to != NULL && sn_addr_kind_of(to) == SN_ADDR_UNIX)
        return patient_op(state, dgram, buf, bytes, to);
    static const struct sni_file_op_kind kind = {.vt = SNI_FILE_OP("send_to"), .attempt = try_send};
    return msg_op(state, &kind, dgram, (void *)(uintptr_t)buf, bytes, (void *)(uintptr_t)to,
                  SNI_WRITABLE);
}

sn_future *sn_recv_from_op(sn_io_state *state, sn_dgram *dgram, void *buf, size_t bytes,
                           sn_addr *from)
{
    static const struct sni_file_op_kind kind = {.vt = SNI_FILE_OP("recv_from"),
                                                 .attempt = try_recv};
    return msg_op(state, &kind, dgram, buf, bytes, from, SNI_READABLE);
}
