/* SPDX-License-Identifier: MIT */
/* sock.c - what listeners, connections and datagram sockets have in common: they are files with a
 * kind, made of an address in text, and can be asked for their own. */
#include "net/sock.h"

#include "net/sockaddr.h"
#include "plat/socket.h"

#include <sinew/errno.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

int sni_sock_make(int fd, enum sni_sock_kind kind, bool is_stream, void **out)
{
    uint64_t handle;
    int rc = sni_file_create(fd, (uint8_t)kind, is_stream, &handle);
    if (rc < 0)
        sni_plat_close(fd);
    else
        *out = (void *)(uintptr_t)handle;
    return rc;
}

int sni_conn_make(int fd, sn_conn **out)
{
    int yes = 1; /* refused by Unix sockets, which do not delay anyway */
    bool is_tcp = sni_plat_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0;
    void *handle;
    int rc = sni_sock_make(fd, SNI_CONN, is_tcp, &handle);
    if (rc == 0)
        *out = handle;
    return rc;
}

int sni_sock_open(const char *text, int type, struct sockaddr_storage *addr, uint32_t *bytes)
{
    sn_addr parsed;
    int rc = sn_addr_parse(text, &parsed);
    if (rc == 0)
        rc = sni_sockaddr_from(&parsed, addr, bytes);
    return rc < 0 ? rc : sni_plat_socket(addr->ss_family, type);
}

int sni_sock_name(const void *handle, uint32_t kinds,
                  int (*ask)(int fd, struct sockaddr *addr, uint32_t *bytes), sn_addr *out)
{
    if (out == NULL)
        return -EINVAL;
    struct sni_file *file;
    int rc = sni_file_use(sni_sock_handle(handle), kinds, &file);
    if (rc < 0)
        return rc;
    struct sockaddr_storage addr;
    uint32_t bytes = sizeof(addr);
    rc = ask(file->fd, (struct sockaddr *)&addr, &bytes);
    sni_file_unuse(file);
    return rc < 0 ? rc : sni_sockaddr_to(&addr, bytes, out);
}
