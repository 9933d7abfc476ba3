/* SPDX-License-Identifier: MIT */
/* listener.c - listening and accepting (R82).
 *
 * When there is no descriptor left, the connection stays in the kernel's queue and the listener
 * stays readable: to wait for readiness would be to spin. So accepting backs off, for longer each
 * time, and tries again: somebody closes something sooner or later. */
#include "net/sock.h"

#include "io/file_op.h"
#include "net/sockaddr.h"
#include "plat/socket.h"

#include <sinew/errno.h>
#include <sinew/time.h>

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG_DEFAULT = 65535, /* the system cuts it to what it allows */
};

/* ---- listening ------------------------------------------------------------------------- */

/* Remove a socket that nobody listens to. Not the file of somebody who does, nor another one. */
static void remove_stale(const struct sockaddr_storage *addr, uint32_t bytes)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)addr;
    struct stat st;
    if (un->sun_path[0] == '\0' || lstat(un->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return;
    int fd = sni_plat_socket(AF_UNIX, SOCK_STREAM);
    if (fd < 0)
        return;
    if (sni_plat_connect(fd, (const struct sockaddr *)addr, bytes) == -ECONNREFUSED)
        (void)unlink(un->sun_path);
    sni_plat_close(fd);
}

static int configure(int fd, int family, const sn_listen_options *opts)
{
    int yes = 1, rc = 0;
    if (family != AF_UNIX) /* a port in TIME_WAIT may be used anew */
        rc = sni_plat_setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (rc == 0 && opts->reuse_port)
        rc = sni_plat_setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes));
    int only = opts->only_ipv6;
    if (rc == 0 && family == AF_INET6)
        rc = sni_plat_setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
    return rc;
}

int sn_listen(sn_listener **out, const char *text, const sn_listen_options *opts)
{
    static const sn_listen_options defaults = {.backlog = 0};
    opts = opts != NULL ? opts : &defaults;
    if (out == NULL || opts->backlog < 0)
        return -EINVAL;
    struct sockaddr_storage addr;
    uint32_t bytes;
    int fd = sni_sock_open(text, SOCK_STREAM, &addr, &bytes);
    if (fd < 0)
        return fd;
    if (opts->replace && addr.ss_family == AF_UNIX)
        remove_stale(&addr, bytes);
    int rc = configure(fd, addr.ss_family, opts);
    if (rc == 0)
        rc = sni_plat_bind(fd, (struct sockaddr *)&addr, bytes);
    if (rc == 0)
        rc = sni_plat_listen(fd, opts->backlog != 0 ? opts->backlog : BACKLOG_DEFAULT);
    if (rc < 0) {
        sni_plat_close(fd);
        return rc;
    }
    void *handle;
    rc = sni_sock_make(fd, SNI_LISTENER, false, &handle);
    if (rc == 0)
        *out = handle;
    return rc;
}

int sn_listener_addr(sn_listener *listener, sn_addr *out)
{
    return sni_sock_name(listener, SNI_LISTENERS, sni_plat_getsockname, out);
}

int sn_listener_close(sn_listener *listener)
{
    struct sni_file *file;
    int rc = sni_file_use(sni_sock_handle(listener), SNI_LISTENERS, &file);
    if (rc < 0)
        return rc;
    rc = sni_file_close(sni_sock_handle(listener));
    sni_file_unuse(file);
    return rc;
}

/* ---- accepting ------------------------------------------------------------------------- */

static bool is_exhausted(ptrdiff_t rc)
{
    return rc == -EMFILE || rc == -ENFILE || rc == -ENOBUFS || rc == -ENOMEM;
}

/* The connection was gone before we took it. */
static bool is_transient(ptrdiff_t rc)
{
    return rc == -ECONNABORTED || rc == -EPROTO || rc == -ENETDOWN || rc == -EHOSTDOWN ||
           rc == -EHOSTUNREACH || rc == -ENETUNREACH;
}

/* Wait for `nap_ns`, or until the deadline: for what never comes to a listener, so that a close
 * ends it. Returns 0; -ETIMEDOUT, -ECANCELED, -EBADF, -EDEADLK */
static int back_off(struct sni_file *file, int64_t nap_ns, sn_deadline until)
{
    sn_deadline wake = sn_after(nap_ns);
    bool last = until.ns <= wake.ns;
    wake = last ? until : wake;
    ptrdiff_t rc = sni_file_wait(file, SNI_PRIORITY, wake);
    if (rc == -ETIMEDOUT && sni_wait_is_past(wake))
        return last ? -ETIMEDOUT : 0;
    if (rc == -EBADF || rc == -EDEADLK || rc == -ECANCELED || rc == -ETIMEDOUT)
        return (int)rc;
    rc = sni_file_nap(file, wake); /* for that wait something is lacking, too */
    return rc == 0 && last ? -ETIMEDOUT : (int)rc;
}

static ptrdiff_t accept_fd(struct sni_file *file, struct sockaddr_storage *addr, uint32_t *bytes,
                           sn_deadline until)
{
    for (int64_t nap_ns = SN_MS(1);;) {
        *bytes = sizeof(*addr);
        struct sni_op op = {
            .kind = SNI_OP_ACCEPT, .addr = (struct sockaddr *)addr, .addr_bytes = bytes};
        ptrdiff_t rc = sni_file_do(file, &op, until);
        if (is_transient(rc))
            continue;
        if (!is_exhausted(rc))
            return rc;
        int over = back_off(file, nap_ns, until);
        if (over < 0)
            return over == -EBADF || over == -ECANCELED ? over : rc;
        nap_ns = nap_ns < SN_S(1) / 2 ? 2 * nap_ns : SN_S(1);
    }
}

int sn_accept(sn_listener *listener, sn_conn **out, sn_addr *peer, sn_deadline until)
{
    if (out == NULL)
        return -EINVAL;
    struct sni_file *file;
    sni_spend_many(1, until.ns); /* not with a descriptor in hand, see sni_file_end */
    int rc = sni_file_use(sni_sock_handle(listener), SNI_LISTENERS, &file);
    if (rc < 0)
        return rc;
    struct sockaddr_storage addr;
    uint32_t bytes;
    ptrdiff_t fd = accept_fd(file, &addr, &bytes, until);
    sni_file_unuse(file);
    if (fd < 0)
        return (int)fd;
    if (peer != NULL && sni_sockaddr_to(&addr, bytes, peer) < 0)
        memset(peer, 0, sizeof(*peer)); /* SN_ADDR_NONE: a name that we cannot hold */
    return sni_conn_make((int)fd, out);
}

/* ---- for coroutines --------------------------------------------------------------------- */

static ptrdiff_t try_accept(struct sni_file_op *fop)
{
    ptrdiff_t rc = -EINVAL;
    if (fop->extra == NULL)
        return rc;
    do {
        rc = sni_plat_accept(fop->op.fd, NULL, NULL);
    } while (is_transient(rc));
    return rc;
}

static int finish_accept(struct sni_file_op *fop, ptrdiff_t fd)
{
    sn_conn **out = fop->extra;
    return fd < 0 ? (int)fd : sni_conn_make((int)fd, out);
}

sn_future *sn_accept_op(sn_io_state *state, sn_listener *listener, sn_conn **out)
{
    static const struct sni_file_op_kind kind = {
        .vt = SNI_FILE_OP("accept"), .attempt = try_accept, .finish = finish_accept};
    struct sni_file_op *fop =
        sni_file_op_init(state, &kind, sni_sock_handle(listener), SNI_LISTENERS, SNI_READABLE);
    fop->extra = (void *)out;
    return &fop->future;
}
