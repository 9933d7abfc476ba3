/* SPDX-License-Identifier: MIT */
/* socket.h - the system calls on sockets, as the house wants them.
 *
 * None of them waits: what would have to is -EAGAIN. None is interrupted by a signal, none raises
 * SIGPIPE, and none touches errno for the caller. Descriptors are made non-blocking and
 * close-on-exec. */
#ifndef SINEW_PLAT_SOCKET_H
#define SINEW_PLAT_SOCKET_H

#include <stddef.h>
#include <stdint.h>

struct sockaddr;
struct msghdr;

/* A new socket, or pair of sockets. Returns the descriptor (0 for a pair), or -errno */
int sni_plat_socket(int family, int type);
int sni_plat_socketpair(int type, int fds[2]);

/* Returns 0 or -errno */
int sni_plat_bind(int fd, const struct sockaddr *addr, uint32_t bytes);
int sni_plat_listen(int fd, int backlog);
int sni_plat_shutdown(int fd, int how);
int sni_plat_getsockname(int fd, struct sockaddr *addr, uint32_t *bytes);
int sni_plat_getpeername(int fd, struct sockaddr *addr, uint32_t *bytes);
int sni_plat_setsockopt(int fd, int level, int option, const void *value, uint32_t bytes);
int sni_plat_getsockopt(int fd, int level, int option, void *value, uint32_t *bytes);

/* Make a descriptor that came from elsewhere non-blocking. Returns 0 or -errno */
int sni_plat_set_nonblocking(int fd);

/* Begin to connect. Returns 0 (it is connected), -EINPROGRESS (it will be writable when it is, or
 * has failed), or -errno */
int sni_plat_connect(int fd, const struct sockaddr *addr, uint32_t bytes);

/* How a connect that was under way ended, or another pending error. Returns 0 or -errno */
int sni_plat_socket_error(int fd);

/* Returns the new descriptor, or -errno */
int sni_plat_accept(int fd, struct sockaddr *addr, uint32_t *bytes);

/* Return the number of bytes, or -errno. `flags` are those of recv(2) and send(2). */
ptrdiff_t sni_plat_recv(int fd, void *buf, size_t bytes, int flags);
ptrdiff_t sni_plat_send(int fd, const void *buf, size_t bytes, int flags);
ptrdiff_t sni_plat_recvmsg(int fd, struct msghdr *msg, int flags);
ptrdiff_t sni_plat_sendmsg(int fd, const struct msghdr *msg, int flags);

/* Close; what it says is of no use to anybody, the descriptor is gone. */
void sni_plat_close(int fd);

#endif
