/* SPDX-License-Identifier: MIT */
/* wait.h - the one suspension protocol.
 *
 * Everything that waits in Sinew waits like this, be it a fiber or a plain thread:
 *
 *     struct sni_waiter w;
 *     sni_wait_begin(&w);                    // binds to this fiber or thread
 *     lock; push w.link somewhere; unlock;   // publish: from here on w can be claimed
 *     rc = sni_wait_commit(&w, until);       // sleep until somebody claims it
 *     // here w is linked nowhere any more: the claimer or we ourselves took it out
 *
 * and whoever ends the wait does
 *
 *     if (sni_wait_claim(w, result)) ...     // at most one claimer wins
 *
 * Claims are raced by wakers, deadlines and cancellations; the state word decides. The loser
 * does nothing. A waiter lives in its waiter's own frame, so waiting allocates nothing; after
 * a successful claim the claimer must not touch it: its owner may have gone on.
 *
 * See wait.c for the states and why no wake is lost. */
#ifndef SINEW_WAIT_WAIT_H
#define SINEW_WAIT_WAIT_H

#include "base/atomic.h"
#include "base/list.h"
#include "wait/current.h"

#include <sinew/clock.h>

struct sni_waiter {
    SNI_ATOMIC(uint32_t) state;     /* any thread, see wait.c                                 */
    const struct sni_exec_ops *ops; /* immutable after begin; NULL: the waiter is a thread     */
    void *fiber;                    /* immutable after begin                                  */
    struct sni_list link;           /* the primitive's, under its lock                        */

    /* What to do when the wait is to end before its time: NULL claims it with the reason. An
     * operation that the kernel has is cancelled instead, and claimed when it is over. Set
     * after begin, before it is published. */
    void (*interrupt)(struct sni_waiter *w, int why);
};

/* Bind `w` to the running fiber, or to this thread if there is none. */
void sni_wait_begin(struct sni_waiter *w);

/* Sleep until `w` is claimed, or interrupted because `until` has passed.
 *
 * Returns  the result given by the claimer; -ETIMEDOUT, in which case the caller unlinks w;
 *          -ENOTSUP  a fiber's executor keeps no time, and the wait is over as for -ETIMEDOUT */
int sni_wait_commit(struct sni_waiter *w, sn_deadline until);

/* End the wait of `w`, whose memory the caller keeps alive, before its time: `why` is -ETIMEDOUT
 * or -ECANCELED. */
void sni_wait_interrupt(struct sni_waiter *w, int why);

/* End the wait of `w` with `result` (from -2^29 to 2^29 - 1), and make its owner go on.
 *
 * Returns  true if this call won; false if it was claimed before */
bool sni_wait_claim(struct sni_waiter *w, int result);

/* The same, but the owner need not hurry: it goes on behind what is runnable already. For the
 * end of a task, say: whoever joins many finds more of them ended. */
bool sni_wait_claim_last(struct sni_waiter *w, int result);

/* How to make the owner of a waiter go on, kept for later: see sni_wait_claim_quietly. */
struct sni_wake {
    const struct sni_exec_ops *ops; /* NULL: a thread */
    void *who;                      /* NULL: nothing is left to do */
};

/* As sni_wait_claim, for those who hold a lock: what can be done later is left to sni_wake_up,
 * which is called when the lock is free again. A thread is woken then (a system call), and the
 * poller of a coroutine's operation (somebody else's code). A fiber is made runnable at once: if
 * its runtime abandons it, the claimer's lock is what tells that the claimer has let go of it. */
bool sni_wait_claim_quietly(struct sni_waiter *w, int result, struct sni_wake *wake);

/* Do what a quiet claim that won has left. */
void sni_wake_up(const struct sni_wake *wake);

/* The result of the claim of a waiter that is over. */
int sni_wait_result(const struct sni_waiter *w);

/* Whether `w` has been claimed. What the claimer wrote before is visible then. */
bool sni_wait_is_over(const struct sni_waiter *w);

/* Give other threads a turn. */
void sni_wait_yield_thread(void);

/* Bind `w` to neither fiber nor thread: `ops->resume(who)` is called when it is claimed after
 * sni_wait_published. For operations that a coroutine awaits. */
void sni_wait_begin_with(struct sni_waiter *w, const struct sni_exec_ops *ops, void *who);

/* For executors: the fiber of `w` is saved and may be resumed from now on.
 *
 * Returns  true if it was claimed meanwhile: the executor must resume it itself */
bool sni_wait_published(struct sni_waiter *w);

#endif
