/* SPDX-License-Identifier: MIT */
/* sock.h - between the files of this room: kinds of sockets, and handles. */
#ifndef SINEW_NET_SOCK_H
#define SINEW_NET_SOCK_H

#include "io/file.h"

#include <sinew/net.h>

enum sni_sock_kind {
    SNI_LISTENER,
    SNI_CONN,
    SNI_DGRAM,
};

enum {
    SNI_LISTENERS = 1u << SNI_LISTENER,
    SNI_CONNS = 1u << SNI_CONN,
    SNI_DGRAMS = 1u << SNI_DGRAM,
};

static inline uint64_t sni_sock_handle(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

/* Make a socket of `kind` of a descriptor; `is_stream` as in file.h: it is TCP. On failure the
 * descriptor is closed.
 *
 * Returns  0, -ENOMEM */
int sni_sock_make(int fd, enum sni_sock_kind kind, bool is_stream, void **out);

/* A connection that was accepted or made: the usual options, then sni_sock_make. */
int sni_conn_make(int fd, sn_conn **out);

/* Parse `text`, and make a socket of `type` (SOCK_STREAM, SOCK_DGRAM) for such an address.
 *
 * Returns  the descriptor, or -errno */
struct sockaddr_storage;
int sni_sock_open(const char *text, int type, struct sockaddr_storage *addr, uint32_t *bytes);

/* What getsockname or getpeername says. Returns 0 or -errno */
int sni_sock_name(const void *handle, uint32_t kinds,
                  int (*ask)(int fd, struct sockaddr *addr, uint32_t *bytes), sn_addr *out);

#endif
