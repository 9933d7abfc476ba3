/* SPDX-License-Identifier: MIT */
/* await.h - wait for a future from a fiber or a plain thread.
 *
 * Coroutines say SN_AWAIT (coro.h), which costs nothing; here somebody with a stack waits. Several
 * futures, or futures and other things, are waited for by sn_select (select.h). */
#ifndef SINEW_AWAIT_H
#define SINEW_AWAIT_H

#include <sinew/annotate.h>
#include <sinew/clock.h>
#include <sinew/errno.h>
#include <sinew/future.h>

SN_BEGIN_DECLS

/* Poll `fut` until it completes, waiting for its wakes, but not past `until`. If that has passed,
 * the future is pending as before and still the caller's: to be awaited again, put into a select,
 * or dropped. It makes progress only while somebody polls it. Futures of sn_*_op that need a
 * runtime complete with -EPERM on a plain thread. A wait allocates a record for the waker, once. A
 * future that panics ends the fiber, and is dropped with all that it awaits.
 *
 * Suspends: yes, if it is pending.   Threads: any; a plain thread blocks.
 * Returns  the result of the future; of those below it may be one, too: sn_future_finished tells
 *          -ETIMEDOUT   `until` has passed; with SN_NOWAIT: it was polled once
 *          -EINVAL      `fut` is NULL, or as sn_future_poll (misuse)
 *          -ENOMEM      no memory for the waker
 *          -EDEADLK     a coroutine would block its worker and must say SN_AWAIT (misuse)
 *          -ECANCELED   the task was cancelled while it waited
 * Owns: `fut` stays the caller's, to be dropped unless it has completed. */
SN_API SN_SUSPENDS int sn_await(sn_future *fut, sn_deadline until);

SN_END_DECLS

#endif
