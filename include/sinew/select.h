/* SPDX-License-Identifier: MIT */
/* select.h - wait for the first of several things.
 *
 *     sn_case cases[] = {
 *         sn_case_recv(jobs, &job),
 *         sn_case_send(results, &result),
 *         sn_case_join(helper),
 *         sn_case_deadline(next_report),
 *     };
 *     switch (sn_select(cases, 4, 0, sn_after(SN_S(1)))) {
 *     case 0: ...                   // cases[0].result: 0, or -EPIPE if `jobs` is closed
 *     case 1: ...
 *     ...
 *     default: ...                  // -ETIMEDOUT, or another error
 *     }
 *
 * Exactly one case takes place; the others have done nothing: no value was sent or received, no
 * handle used up, no event consumed. If several can, one of them is chosen at random, each as
 * likely as any other. The same thing may stand in several cases, a channel also on both sides. A
 * case without a thing (NULL, a negative descriptor, SN_FOREVER) never takes place, so that a case
 * can be switched off. A case that takes place may have an error as its result: -EPIPE of a closed
 * channel, or what the plain call would have said.
 *
 * Futures (sn_case_future) are what is not listed here: every sn_*_op, every coroutine. One that
 * loses is neither dropped nor cancelled: it is pending, and the caller's. */
#ifndef SINEW_SELECT_H
#define SINEW_SELECT_H

#include <stddef.h>
#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/chan.h>
#include <sinew/clock.h>
#include <sinew/errno.h>
#include <sinew/future.h>
#include <sinew/task.h>

SN_BEGIN_DECLS

/* The most cases of a select. */
#define SN_SELECT_MAX 64

/* Flags of a select. */
#define SN_SELECT_ORDERED 1u /* of those that can take place the first one does */

/* One of the things to wait for; made by the functions below. */
typedef struct sn_case {
    const void *kind_;
    void *at_;
    void *value_;
    int64_t more_;
    int result; /* of the case that took place: as told below */
    unsigned char opaque_[76];
} sn_case;

/* A case that sends a copy of the element at `value`. Its result is as sn_chan_send's; with an
 * error the value is still the caller's.
 *
 * Suspends: no.   Threads: any.
 * Returns  the case */
SN_API sn_case sn_case_send(sn_chan *ch, const void *value);

/* A case that receives an element into `value`. Cases may share the place; what is there if another
 * case took place means nothing. Its result is as sn_chan_recv's.
 *
 * Suspends: no.   Threads: any.
 * Returns  the case */
SN_API sn_case sn_case_recv(sn_chan *ch, void *value);

/* A case that receives the next element of a broadcast. Its result is as sn_broadcast_recv's: 0, or
 * how many were lost; -EPIPE.
 *
 * Suspends: no.   Threads: any.
 * Returns  the case */
SN_API sn_case sn_case_broadcast(sn_subscription *sub, void *value);

/* A case that receives another version than `*version`. Its result is as sn_watch_recv's.
 * `*version` changes only if it takes place.
 *
 * Suspends: no.   Threads: any.
 * Returns  the case */
SN_API sn_case sn_case_watch(sn_watch *w, void *value, uint64_t *version);

/* A case that takes place at that time. Its result is 0, or -EPERM in an sn_select_op that is
 * polled outside a runtime.
 *
 * Suspends: no.   Threads: any.
 * Returns  the case */
SN_API sn_case sn_case_deadline(sn_deadline at);

/* A case that takes place when `task` has ended. The handle is not used up: sn_join then gives the
 * result without waiting. Nobody else may use the handle meanwhile. Its result is 0; -ESRCH: not a
 * handle, or used up; -EDEADLK: a task that waits for its own end.
 *
 * Suspends: no.   Threads: any.
 * Returns  the case */
SN_API sn_case sn_case_join(sn_task *task);

/* A case that takes place when a descriptor that is not Sinew's is ready for one of `events`. Its
 * result is as sn_wait_fd's: the events; or -EPERM in an sn_select_op that is polled outside a
 * runtime and must wait. A wait takes a record from the heap for each such case, and for a plain
 * thread one more. For sockets of Sinew take the futures of net.h, say sn_conn_wait_op.
 *
 * Suspends: no.   Threads: any.
 * Returns  the case */
SN_API sn_case sn_case_fd(int fd, unsigned events);

/* A case that polls `fut`, and takes place when that completes; its result is the future's. If it
 * loses, the future is pending as before: put it into the next select, await it, or drop it. It
 * makes progress only while it is polled. It must not be polled, cancelled or dropped by others
 * during the select, nor be put into one when it has completed (misuse, as sn_future_poll). A fiber
 * or thread that must wait takes one record from the heap, however many futures there are. If a
 * shutdown that does not wait abandons the fiber in its select, the future is dropped; so are all
 * futures of the cases if one of them panics, which ends the fiber.
 *
 * Suspends: no.   Threads: any.
 * Returns  the case */
SN_API sn_case sn_case_future(sn_future *fut);

/* Let one of the `n` cases take place, waiting until one can, or `until`. With SN_NOWAIT it does
 * not wait, and -ETIMEDOUT is the default branch. Allocates nothing, except for descriptors and
 * futures that must be waited for.
 *
 * Suspends: yes, if it must wait.   Threads: any; a plain thread blocks.
 * Returns  the number of the case that took place, from 0; its `result` tells how
 *          -ETIMEDOUT   none could until then
 *          -EINVAL      too many cases, an unknown flag, or something that is no case
 *          -EBADF       a channel is gone, or is none (misuse)
 *          -ENOMEM      no memory to wait for a descriptor or a future
 *          -EDEADLK     a coroutine would block its worker and must await sn_select_op (misuse)
 *          -ECANCELED   the task was cancelled while it waited
 * Owns: the cases stay the caller's and may be used again. */
SN_API SN_SUSPENDS SN_MUST_USE int sn_select(sn_case *cases, size_t n, unsigned flags,
                                             sn_deadline until);

/* The memory of a select that a coroutine awaits. */
typedef struct sn_select_state {
    sn_future future_;
    int result; /* the case that took place; -ECANCELED: none (yet); else an error */
    void *opaque_[25];
} sn_select_state;

/* sn_select as a future. `cases` must stay where they are until it is over. A deadline is one of
 * them. Futures among them are polled with the waker of whoever polls this one. Dropped, no case
 * takes place; a send or receive may have done so just before, which `op->result` tells. Futures
 * among its cases are not dropped with it: a coroutine drops what it has pending in SN_FINALLY.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `op`; its result is as sn_select's */
SN_API sn_future *sn_select_op(sn_select_state *op, sn_case *cases, size_t n, unsigned flags);

SN_END_DECLS

#endif
