/* SPDX-License-Identifier: MIT */
/* errno.h - the error codes that Sinew returns, on every target.
 *
 * Sinew's functions return 0 or a positive value, else a negative code from
 * this list; they never read or write `errno`. Where the toolchain has an
 * <errno.h> its numbers are used, so that `rc == -ETIMEDOUT` means what the
 * program thinks; where it has none (plain WebAssembly), or one without some
 * name, the numbers below are Linux's. */
#ifndef SINEW_ERRNO_H
#define SINEW_ERRNO_H

#if defined(__has_include)
#if __has_include(<errno.h>)
#include <errno.h>
#endif
#endif

/* A code stands here from the day a contract names it. */
#ifndef EPERM
#define EPERM 1
#endif
#ifndef ESRCH
#define ESRCH 3
#endif
#ifndef EBADF
#define EBADF 9
#endif
#ifndef EAGAIN
#define EAGAIN 11
#endif
#ifndef ENOMEM
#define ENOMEM 12
#endif
#ifndef EBUSY
#define EBUSY 16
#endif
#ifndef EINVAL
#define EINVAL 22
#endif
#ifndef ENOSPC
#define ENOSPC 28
#endif
#ifndef EPIPE
#define EPIPE 32
#endif
#ifndef EDEADLK
#define EDEADLK 35
#endif
#ifndef ENAMETOOLONG
#define ENAMETOOLONG 36
#endif
#ifndef ECONNABORTED
#define ECONNABORTED 103
#endif
#ifndef ETIMEDOUT
#define ETIMEDOUT 110
#endif
#ifndef EALREADY
#define EALREADY 114
#endif
#ifndef ECANCELED
#define ECANCELED 125
#endif

#endif
