/* SPDX-License-Identifier: MIT */
/* socket.c (linux) - see socket.h.
 *
 * Calls that a signal may interrupt are made anew; the others cannot be interrupted, or go on by
 * themselves (connect).
 *
 * The two that every request makes go past the C library, for which they are points where a thread
 * may be cancelled: in a process with threads that is two compare and swaps for each, and neither
 * waits. Where we know how, they are written out: syscall(3) takes its arguments apart, and has its
 * result in two places. Sanitizers, though, must see them: bytes that come from a descriptor are
 * initialised, and happen after they were sent. */
#include "plat/socket.h"

#include "base/compiler.h"

#include <sinew/annotate.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

SN_UNUSED static inline ptrdiff_t or_errno(ptrdiff_t rc)
{
    return sni_unlikely(rc < 0) ? -errno : rc;
}

#if defined(SINEW_FIBER_NOTES) || !defined(SYS_recvfrom) || !defined(SYS_sendto)
#define RECV(fd, buf, bytes, flags) or_errno(recv(fd, buf, bytes, flags))
#define SEND(fd, buf, bytes, flags) or_errno(send(fd, buf, bytes, flags))
#else
#define RECV(fd, buf, bytes, flags) call(SYS_recvfrom, fd, (uintptr_t)(buf), bytes, flags)
#define SEND(fd, buf, bytes, flags) call(SYS_sendto, fd, (uintptr_t)(buf), bytes, flags)

/* recvfrom or sendto without an address. Returns what the kernel does: the result, or -errno. */
static inline ptrdiff_t call(long number, int fd, uintptr_t buf, size_t bytes, int flags)
{
#if defined(__x86_64__) && defined(__LP64__)
    register long r10 __asm__("r10") = flags;
    register long r8 __asm__("r8") = 0;
    register long r9 __asm__("r9") = 0;
    long rc = number;
    __asm__ volatile("syscall"
                     : "+a"(rc)
                     : "D"((long)fd), "S"(buf), "d"(bytes), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return rc;
#else
    return or_errno(syscall(number, (long)fd, buf, bytes, (long)flags, NULL, 0L));
#endif
}
#endif

/* Made anew until no signal interrupts; -errno of the last. */
#define RETRY(rc, call)                   \
    do {                                  \
        (rc) = (call);                    \
    } while ((rc) < 0 && errno == EINTR); \
    if ((rc) < 0)                         \
    (rc) = -errno

static int result(int rc)
{
    return rc < 0 ? -errno : rc;
}

int sni_plat_socket(int family, int type)
{
    return result(socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int sni_plat_socketpair(int type, int fds[2])
{
    return result(socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
}

int sni_plat_bind(int fd, const struct sockaddr *addr, uint32_t bytes)
{
    return result(bind(fd, addr, bytes));
}

int sni_plat_listen(int fd, int backlog)
{
    return result(listen(fd, backlog));
}

int sni_plat_shutdown(int fd, int how)
{
    return result(shutdown(fd, how));
}

int sni_plat_getsockname(int fd, struct sockaddr *addr, uint32_t *bytes)
{
    return result(getsockname(fd, addr, bytes));
}

int sni_plat_getpeername(int fd, struct sockaddr *addr, uint32_t *bytes)
{
    return result(getpeername(fd, addr, bytes));
}

int sni_plat_setsockopt(int fd, int level, int option, const void *value, uint32_t bytes)
{
    return result(setsockopt(fd, level, option, value, bytes));
}

int sni_plat_getsockopt(int fd, int level, int option, void *value, uint32_t *bytes)
{
    return result(getsockopt(fd, level, option, value, bytes));
}

int sni_plat_set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -errno;
    return (flags & O_NONBLOCK) != 0 ? 0 : result(fcntl(fd, F_SETFL, flags | O_NONBLOCK));
}

int sni_plat_connect(int fd, const struct sockaddr *addr, uint32_t bytes)
{
    if (connect(fd, addr, bytes) == 0)
        return 0;
    return errno == EINTR ? -EINPROGRESS : -errno; /* interrupted, it goes on by itself */
}

int sni_plat_socket_error(int fd)
{
    int error = 0;
    uint32_t bytes = sizeof(error);
    int rc = sni_plat_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
    return rc < 0 ? rc : -error;
}

int sni_plat_accept(int fd, struct sockaddr *addr, uint32_t *bytes)
{
    int rc;
    RETRY(rc, accept4(fd, addr, bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
    return rc;
}

ptrdiff_t sni_plat_recv(int fd, void *buf, size_t bytes, int flags)
{
    ptrdiff_t rc;
    do {
        rc = RECV(fd, buf, bytes, flags | MSG_DONTWAIT);
    } while (sni_unlikely(rc == -EINTR));
    return rc;
}

ptrdiff_t sni_plat_send(int fd, const void *buf, size_t bytes, int flags)
{
    ptrdiff_t rc;
    do {
        rc = SEND(fd, buf, bytes, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sni_unlikely(rc == -EINTR));
    return rc;
}

ptrdiff_t sni_plat_recvmsg(int fd, struct msghdr *msg, int flags)
{
    ptrdiff_t rc;
    RETRY(rc, recvmsg(fd, msg, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    return rc;
}

ptrdiff_t sni_plat_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    ptrdiff_t rc;
    RETRY(rc, sendmsg(fd, msg, flags | MSG_DONTWAIT | MSG_NOSIGNAL));
    return rc;
}

void sni_plat_close(int fd)
{
    (void)close(fd);
}
