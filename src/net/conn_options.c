/* SPDX-License-Identifier: MIT */
/* conn_options.c - properties and addresses of a connection.
 *
 * Each option is one number for our users; the system has two for some, and for one a struct. */
#include "net/sock.h"

#include "plat/socket.h"

#include <sinew/errno.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* Options that are a number for us and for the system. */
static const struct {
    int level;
    int name;
} plain[] = {
    [SN_CONN_NODELAY] = {IPPROTO_TCP, TCP_NODELAY},
    [SN_CONN_SEND_BUFFER] = {SOL_SOCKET, SO_SNDBUF},
    [SN_CONN_RECV_BUFFER] = {SOL_SOCKET, SO_RCVBUF},
};

/* Options of TCP on a Unix socket are refused in two ways, as the kernel is old or new. */
static int one_refusal(int rc)
{
    return rc == -EOPNOTSUPP ? -ENOPROTOOPT : rc;
}

static int set_number(int fd, int level, int name, int value)
{
    return one_refusal(sni_plat_setsockopt(fd, level, name, &value, sizeof(value)));
}

static int get_number(int fd, int level, int name, int *value)
{
    uint32_t bytes = sizeof(*value);
    return one_refusal(sni_plat_getsockopt(fd, level, name, value, &bytes));
}

static int set_keepalive(int fd, int seconds)
{
    int rc = seconds > 0 ? set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds) : 0;
    return rc < 0 ? rc : set_number(fd, SOL_SOCKET, SO_KEEPALIVE, seconds > 0);
}

static int get_keepalive(int fd, int *seconds)
{
    int on;
    int rc = get_number(fd, SOL_SOCKET, SO_KEEPALIVE, &on);
    if (rc < 0 || on == 0) {
        *seconds = 0;
        return rc;
    }
    return get_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
}

static int set_linger(int fd, int seconds)
{
    struct linger linger = {.l_onoff = seconds >= 0, .l_linger = seconds >= 0 ? seconds : 0};
    return sni_plat_setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static int get_linger(int fd, int *seconds)
{
    struct linger linger;
    uint32_t bytes = sizeof(linger);
    int rc = sni_plat_getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &bytes);
    if (rc == 0)
        *seconds = linger.l_onoff != 0 ? linger.l_linger : -1;
    return rc;
}

static int set_option(int fd, sn_conn_option option, int value)
{
    if (value < (option == SN_CONN_LINGER ? -1 : 0))
        return -EINVAL;
    switch (option) {
    case SN_CONN_KEEPALIVE:
        return set_keepalive(fd, value);
    case SN_CONN_LINGER:
        return set_linger(fd, value);
    case SN_CONN_NODELAY:
    case SN_CONN_SEND_BUFFER:
    case SN_CONN_RECV_BUFFER:
        return set_number(fd, plain[option].level, plain[option].name, value);
    }
    return -EINVAL;
}

static int get_option(int fd, sn_conn_option option, int *value)
{
    switch (option) {
    case SN_CONN_KEEPALIVE:
        return get_keepalive(fd, value);
    case SN_CONN_LINGER:
        return get_linger(fd, value);
    case SN_CONN_NODELAY:
    case SN_CONN_SEND_BUFFER:
    case SN_CONN_RECV_BUFFER:
        return get_number(fd, plain[option].level, plain[option].name, value);
    }
    return -EINVAL;
}

int sn_conn_set(sn_conn *conn, sn_conn_option option, int value)
{
    struct sni_file *file;
    int rc = sni_file_use(sni_sock_handle(conn), SNI_CONNS, &file);
    if (rc < 0)
        return rc;
    rc = set_option(file->fd, option, value);
    sni_file_unuse(file);
    return rc;
}

int sn_conn_get(sn_conn *conn, sn_conn_option option, int *value)
{
    if (value == NULL)
        return -EINVAL;
    struct sni_file *file;
    int rc = sni_file_use(sni_sock_handle(conn), SNI_CONNS, &file);
    if (rc < 0)
        return rc;
    rc = get_option(file->fd, option, value);
    sni_file_unuse(file);
    return rc;
}

int sn_conn_local(sn_conn *conn, sn_addr *out)
{
    return sni_sock_name(conn, SNI_CONNS, sni_plat_getsockname, out);
}

int sn_conn_peer(sn_conn *conn, sn_addr *out)
{
    return sni_sock_name(conn, SNI_CONNS, sni_plat_getpeername, out);
}
