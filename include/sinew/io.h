/* SPDX-License-Identifier: MIT */
/* io.h - waiting for descriptors of any kind (R82).
 *
 * Sockets of Sinew are in net.h. This is for descriptors that come from elsewhere: a library's
 * connection, a pipe, a timerfd, a device. They stay their owner's, and may be blocking or not. */
#ifndef SINEW_IO_H
#define SINEW_IO_H

#include <stddef.h>
#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/clock.h>
#include <sinew/future.h>

SN_BEGIN_DECLS

/* What to wait for, and what is there. A broken or closed other end makes both true: the next
 * read or write tells. */
enum {
    SN_READABLE = 1,
    SN_WRITABLE = 2,
    SN_URGENT = 4, /* what poll(2) calls POLLPRI */
};

/* A piece of memory; several of them are read into or written from in one call. Laid out as the
 * system's struct iovec. */
typedef struct sn_iov {
    void *base;
    size_t bytes;
} sn_iov;

/* Wait until `fd` is ready for one of `events`, but not past `until`. Several may wait for one
 * descriptor. It must not be closed meanwhile: the waits could go on.
 *
 * Suspends: yes.   Threads: any; outside a runtime it blocks the thread.
 * Returns  the events that are there, more than 0; sometimes one that is not there any more
 *          -ETIMEDOUT  `until` has passed
 *          -ECANCELED  the task was cancelled
 *          -EBADF      not a descriptor
 *          -EINVAL     `events` holds none, or others
 *          -EPERM      SN_URGENT alone, of what never has any: a regular file, a directory. Where
 *                      poll(2) is used, as by plain threads, that is not noticed, and the wait
 *                      ends at its deadline. Otherwise such a file is always ready
 *          -EMFILE, -ENFILE, -ENOMEM  the system gives no means to wait
 *          -EDEADLK    a coroutine would block its worker and must await sn_wait_fd_op (misuse) */
SN_API SN_SUSPENDS SN_MUST_USE int sn_wait_fd(int fd, unsigned events, sn_deadline until);

/* The memory of an operation on a descriptor that a coroutine awaits. */
typedef struct sn_io_state {
    sn_future future_;
    void *opaque_[23];
} sn_io_state;

/* sn_wait_fd as a future, without an end but the event: race it with sn_sleep_op.
 *
 * Suspends: no.   Threads: any; is polled inside a runtime.
 * Returns  the future in `state`; its result is as sn_wait_fd's, or
 *          -EPERM  polled outside a runtime, too */
SN_API sn_future *sn_wait_fd_op(sn_io_state *state, int fd, unsigned events);

SN_END_DECLS

#endif
