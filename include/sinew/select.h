/* SPDX-License-Identifier: MIT */
/* select.h - wait for the first of several things.
 *
 *     sn_case cases[] = {
 *         sn_case_recv(jobs, &job),
 *         sn_case_send(results, &result),
 *     };
 *     switch (sn_select(cases, 2, 0, sn_after(SN_S(1)))) {
 *     case 0: ...                   // cases[0].result: 0, or -EPIPE if `jobs` is closed
 *     case 1: ...
 *     default: ...                  // -ETIMEDOUT, or another error
 *     }
 *
 * Exactly one case takes place; the others have neither sent nor received anything. If several can,
 * one of them is chosen at random, each as likely as any other. A channel may stand in several
 * cases, and on both sides. A case whose channel is NULL never takes place, so that a case can be
 * switched off. A closed channel's case takes place, with -EPIPE as its result. */
#ifndef SINEW_SELECT_H
#define SINEW_SELECT_H

#include <stddef.h>
#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/chan.h>
#include <sinew/clock.h>
#include <sinew/errno.h>
#include <sinew/future.h>

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
    int result; /* of the case that took place: 0, or the error of its call */
    void *opaque_[6];
} sn_case;

/* A case that sends a copy of the element at `value`. With an error as its result, the value is
 * still the caller's.
 *
 * Suspends: no.   Threads: any.
 * Returns  the case */
SN_API sn_case sn_case_send(sn_chan *ch, const void *value);

/* A case that receives an element into `value`. Cases may share the place; what is there if another
 * case took place means nothing.
 *
 * Suspends: no.   Threads: any.
 * Returns  the case */
SN_API sn_case sn_case_recv(sn_chan *ch, void *value);

/* Let one of the `n` cases take place, waiting until one can, or `until`. With SN_NOWAIT it does
 * not wait, and -ETIMEDOUT is the default branch. Allocates nothing.
 *
 * Suspends: yes, if it must wait.   Threads: any; a plain thread blocks.
 * Returns  the number of the case that took place, from 0; its `result` tells how
 *          -ETIMEDOUT   none could until then
 *          -EINVAL      too many cases, an unknown flag, or something that is no case
 *          -EBADF       a channel is gone, or is none (misuse)
 *          -EDEADLK     a coroutine would block its worker and must await sn_select_op (misuse)
 *          -ECANCELED   the task was cancelled while it waited
 * Owns: the cases stay the caller's and may be used again. */
SN_API SN_MUST_USE int sn_select(sn_case *cases, size_t n, unsigned flags, sn_deadline until);

/* The memory of a select that a coroutine awaits. */
typedef struct sn_select_state {
    sn_future future_;
    int result; /* the case that took place; -ECANCELED: none (yet); else an error */
    void *opaque_[25];
} sn_select_state;

/* sn_select as a future. `cases` must stay where they are until it is over. For a deadline race it
 * against a sleep. Dropped, no case takes place; one may have done so just before, which
 * `op->result` tells.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `op`; its result is as sn_select's */
SN_API sn_future *sn_select_op(sn_select_state *op, sn_case *cases, size_t n, unsigned flags);

SN_END_DECLS

#endif
