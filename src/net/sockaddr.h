/* SPDX-License-Identifier: MIT */
/* sockaddr.h - addresses as the kernel wants and gives them. Apart from sinew/addr.h, because
 * public headers do not bring in the system's. */
#ifndef SINEW_NET_SOCKADDR_H
#define SINEW_NET_SOCKADDR_H

#include <sinew/addr.h>
#include <sys/socket.h>

/* Write `addr` for bind, connect or sendto: all of `*out`, of which the kernel is to be given
 * `*bytes`.
 *
 * Returns  0
 *          -EINVAL  no address; `*bytes` is 0 */
int sni_sockaddr_from(const sn_addr *addr, struct sockaddr_storage *out, socklen_t *bytes);

/* Read what accept, recvfrom, getsockname or getpeername gave: `bytes` of `*from`, as the kernel
 * counted them. `*out` is SN_ADDR_NONE unless this worked. A Unix socket without a name gives one
 * whose text is "unix:".
 *
 * Returns  0
 *          -EINVAL        `bytes` are too few or too many for their family; 0 of them is what
 *                         recvfrom gives for a sender without a name
 *          -EAFNOSUPPORT  another family
 *          -ENAMETOOLONG  a path that addr.h has no room for: the kernel lets a program bind one
 *                         of 108 bytes, and "./" is put before one that begins with '@' */
int sni_sockaddr_to(const struct sockaddr_storage *from, socklen_t bytes, sn_addr *out);

#endif
