/* SPDX-License-Identifier: MIT */
/* sockaddr.c - from our addresses to the kernel's and back; see net/sockaddr.h.
 *
 * There and back again gives the same address. The other way round two things are lost: the flow
 * label of IPv6, which belongs to a packet and not to a place, and the spelling of a file whose
 * name begins with '@', which becomes "./@...", the same file, so that its text is not that of an
 * abstract name.
 *
 * The names of Unix sockets follow Linux, where the length tells three cases apart: it ends with
 * the family (no name), a NUL follows (abstract: all bytes count, NULs too), or a path follows,
 * which its NUL ends if it is there.
 *
 * Structs go in and out by memcpy: a sockaddr_storage that is looked at as a sockaddr_in is
 * another type at the same address, which compilers need not honour. */
#include "net/sockaddr.h"

#include <assert.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

enum {
    FAMILY_BYTES = offsetof(struct sockaddr_storage, ss_family) + sizeof(sa_family_t),
    PATH_AT = offsetof(struct sockaddr_un, sun_path),
    PATH_BYTES_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - 1, /* it ends with a NUL */
    IPV4_BYTES = sizeof(struct in_addr),
    IPV6_BYTES = sizeof(struct in6_addr),
};

static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == sizeof(((sn_addr *)0)->bytes_),
              "what addr.h has room for, a sockaddr_un has");
static_assert(sizeof(struct sockaddr_un) < sizeof(struct sockaddr_storage), "and a NUL");
static_assert((int)PATH_AT == (int)FAMILY_BYTES, "a name follows the family at once");

/* ---- to the kernel -------------------------------------------------------------------- */

static socklen_t write_ipv4(const sn_addr *addr, struct sockaddr_storage *out)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(addr->port_)};
    memcpy(&in.sin_addr, addr->bytes_, IPV4_BYTES);
    memcpy(out, &in, sizeof(in));
    return sizeof(in);
}

static socklen_t write_ipv6(const sn_addr *addr, struct sockaddr_storage *out)
{
    struct sockaddr_in6 in = {
        .sin6_family = AF_INET6, .sin6_port = htons(addr->port_), .sin6_scope_id = addr->scope_};
    memcpy(&in.sin6_addr, addr->bytes_, IPV6_BYTES);
    memcpy(out, &in, sizeof(in));
    return sizeof(in);
}

/* A path is given with its NUL; an abstract name has its own in front, and no name has none. */
static socklen_t write_unix(const sn_addr *addr, struct sockaddr_storage *out)
{
    out->ss_family = AF_UNIX;
    memcpy((char *)out + PATH_AT, addr->bytes_, addr->length_);
    bool is_path = addr->bytes_[0] != '\0';
    return (socklen_t)(PATH_AT + addr->length_ + is_path);
}

int sni_sockaddr_from(const sn_addr *addr, struct sockaddr_storage *out, socklen_t *bytes)
{
    memset(out, 0, sizeof(*out));
    *bytes = 0;
    switch (sn_addr_kind_of(addr)) {
    case SN_ADDR_NONE:
        break;
    case SN_ADDR_IPV4:
        *bytes = write_ipv4(addr, out);
        break;
    case SN_ADDR_IPV6:
        *bytes = write_ipv6(addr, out);
        break;
    case SN_ADDR_UNIX:
        *bytes = write_unix(addr, out);
        break;
    }
    return *bytes > 0 ? 0 : -EINVAL;
}

/* ---- from the kernel ------------------------------------------------------------------ */

static int read_ipv4(const struct sockaddr_storage *from, socklen_t bytes, sn_addr *a)
{
    struct sockaddr_in in;
    if (bytes < sizeof(in))
        return -EINVAL;
    memcpy(&in, from, sizeof(in));
    a->family_ = SN_ADDR_IPV4;
    a->port_ = ntohs(in.sin_port);
    a->length_ = IPV4_BYTES;
    memcpy(a->bytes_, &in.sin_addr, IPV4_BYTES);
    return 0;
}

static int read_ipv6(const struct sockaddr_storage *from, socklen_t bytes, sn_addr *a)
{
    struct sockaddr_in6 in;
    if (bytes < sizeof(in))
        return -EINVAL;
    memcpy(&in, from, sizeof(in));
    a->family_ = SN_ADDR_IPV6;
    a->port_ = ntohs(in.sin6_port);
    a->scope_ = in.sin6_scope_id;
    a->length_ = IPV6_BYTES;
    memcpy(a->bytes_, &in.sin6_addr, IPV6_BYTES);
    return 0;
}

/* `bytes` of a path; the last may be a NUL, or not. */
static int read_path(const char *path, size_t bytes, sn_addr *a)
{
    static const char here[] = {'.', '/'};
    size_t length = strnlen(path, bytes);
    size_t skip = path[0] == '@' ? sizeof(here) : 0;
    if (skip + length > PATH_BYTES_MAX)
        return -ENAMETOOLONG;
    memcpy(a->bytes_, here, skip);
    memcpy(a->bytes_ + skip, path, length);
    a->length_ = (uint32_t)(skip + length);
    return 0;
}

static int read_unix(const struct sockaddr_storage *from, socklen_t bytes, sn_addr *a)
{
    const char *path = (const char *)from + PATH_AT;
    size_t left = bytes - PATH_AT;
    a->family_ = SN_ADDR_UNIX;
    if (left > 0 && path[0] != '\0')
        return read_path(path, left, a);
    if (left > sizeof(a->bytes_))
        return -EINVAL;
    a->length_ = (uint32_t)left;
    memcpy(a->bytes_, path, left);
    return 0;
}

int sni_sockaddr_to(const struct sockaddr_storage *from, socklen_t bytes, sn_addr *out)
{
    const sn_addr none = {0};
    sn_addr a = none;
    int rc;
    if (bytes < FAMILY_BYTES || bytes > sizeof(*from))
        rc = -EINVAL;
    else if (from->ss_family == AF_INET)
        rc = read_ipv4(from, bytes, &a);
    else if (from->ss_family == AF_INET6)
        rc = read_ipv6(from, bytes, &a);
    else if (from->ss_family == AF_UNIX)
        rc = read_unix(from, bytes, &a);
    else
        rc = -EAFNOSUPPORT;
    *out = rc == 0 ? a : none;
    return rc;
}
