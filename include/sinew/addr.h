/* SPDX-License-Identifier: MIT */
/* addr.h - addresses of sockets, as values and as text.
 *
 *     sn_addr where;
 *     int rc = sn_addr_parse(text, &where);
 *
 *     127.0.0.1:80        IPv4: four decimal parts, a colon, a port
 *     [::1]:80            IPv6 in brackets
 *     [fe80::1%3]:80      with the number of the interface whose link is meant
 *     unix:/run/x.sock    a Unix socket in the file system; "unix:x.sock" is relative
 *     unix:@name          in Linux's abstract name space, which has no files; the file "@name" is
 *                         "unix:./@name"
 *
 * One address has one meaning, and text that others read differently is refused: a part of an IPv4
 * address with a zero in front (octal to some), a port with a sign, a blank, a name of a service or
 * left out, anything after the end. Names of hosts are not addresses: "localhost:80" is refused
 * here, because looking a name up takes time and can give several. So is "*:80", which is one
 * family to some and both to others: write "0.0.0.0:80" or "[::]:80". IPv6 needs its brackets, for
 * "::1:80" is an address without a port; and an interface its number, as its name means nothing
 * without asking the system.
 *
 * An sn_addr owns nothing: copy it, keep it in a struct, throw it away. All zeros is no address. */
#ifndef SINEW_ADDR_H
#define SINEW_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/errno.h>

SN_BEGIN_DECLS

/* What an address is of. */
typedef enum sn_addr_kind {
    SN_ADDR_NONE, /* no address: all zeros, or memory that never held one */
    SN_ADDR_IPV4,
    SN_ADDR_IPV6,
    SN_ADDR_UNIX,
} sn_addr_kind;

/* An address. Two that are equal need not be the same bytes: ask sn_addr_equal. */
typedef struct sn_addr {
    uint16_t family_; /* an sn_addr_kind                                          */
    uint16_t port_;   /* in the order of the machine; 0 for a Unix socket         */
    uint32_t scope_;  /* IPv6: the interface, 0 for none                          */
    uint32_t length_; /* of bytes_: 4, 16, or that of the path                    */
    uint8_t bytes_[108];
} sn_addr;

SN_STATIC_ASSERT(sizeof(sn_addr) == 120, "an address has no padding");

/* Room for the longest text of an address, with its NUL: "unix:@" and 107 bytes. */
#define SN_ADDR_TEXT_MAX 114

/* Read an address in one of the forms above. `*out` is SN_ADDR_NONE unless this worked.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EINVAL        not such a text, or NULL
 *          -ENAMETOOLONG  the path or name of a Unix socket is longer than 107 bytes */
SN_API SN_MUST_USE int sn_addr_parse(const char *text, sn_addr *out);

/* Write `addr` into `buf` of `bytes`. There is one text for each address, which sn_addr_parse reads
 * back as the same; IPv6 is written as RFC 5952 wants it, paths are copied as they are, with
 * whatever bytes are in them. A Unix socket without a name, such as the other end often is, is
 * written "unix:", the only text here that cannot be read back. If this fails `buf` is "", if it
 * has a byte.
 *
 * Suspends: no.   Threads: any.
 * Returns  the length without the NUL
 *          -ENOSPC  `bytes` are too few; SN_ADDR_TEXT_MAX always are enough
 *          -EINVAL  no address, or an abstract name that no text can hold, being empty or with a
 *                   NUL inside (other programs may have such) */
SN_API SN_MUST_USE int sn_addr_format(const sn_addr *addr, char *buf, size_t bytes);

/* What `addr` is of.
 *
 * Suspends: no.   Threads: any.
 * Returns  the kind; SN_ADDR_NONE for NULL and for what is no address */
SN_API sn_addr_kind sn_addr_kind_of(const sn_addr *addr);

/* The port of `addr`.
 *
 * Suspends: no.   Threads: any.
 * Returns  the port, 0 if it has none */
SN_API uint16_t sn_addr_port(const sn_addr *addr);

/* Change the port of `addr`.
 *
 * Suspends: no.   Threads: any, one at a time.
 * Returns  0
 *          -EINVAL  it has none: a Unix socket, or no address */
SN_API SN_MUST_USE int sn_addr_set_port(sn_addr *addr, uint16_t port);

/* Whether `a` and `b` are the same: kind, host, port, interface, or path byte by byte. An IPv4
 * address and the IPv6 address it is mapped to (::ffff:1.2.3.4) are two.
 *
 * Suspends: no.   Threads: any.
 * Returns  true if they are; no address is equal to no address */
SN_API bool sn_addr_equal(const sn_addr *a, const sn_addr *b);

/* Whether what is sent to `addr` stays on this machine by its number: 127.0.0.0/8, ::1, and
 * the former mapped into IPv6.
 *
 * Suspends: no.   Threads: any.
 * Returns  true if so; false for a Unix socket, which has no number */
SN_API bool sn_addr_is_loopback(const sn_addr *addr);

SN_END_DECLS

#endif
