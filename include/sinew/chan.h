/* SPDX-License-Identifier: MIT */
/* chan.h - channels: values from those who send to those who receive.
 *
 *     sn_chan *ch;
 *     int rc = sn_chan_create(&ch, sizeof(int), 64, NULL);
 *     ...
 *     rc = sn_chan_send(ch, &value, SN_FOREVER);           // in one task
 *     rc = sn_chan_recv(ch, &value, sn_after(SN_MS(50)));  // in another
 *     ...
 *     sn_chan_destroy(ch);
 *
 * Any number of fibers, plain threads and coroutines (the futures at the end) send and receive at
 * the same time. Values are copied in and out; they have one size, which may be 0. What was sent
 * first is received first, and who has waited longest is served first.
 *
 * Capacities: 1 to SN_CHAN_CAPACITY_MAX values fit in, then senders wait. With 0 a send and a
 * receive meet: neither is over before the other. SN_CHAN_UNBOUNDED never lets a sender wait, and
 * gives memory back after a burst.
 *
 * The end: after a close, senders get -EPIPE at once, their value still theirs; receivers get what
 * is left, then -EPIPE. A channel closes by sn_chan_close, or when one side has no reference any
 * more. Who creates a channel has a reference to each side. Whoever uses a channel must be sure
 * that somebody holds a reference to that side meanwhile. Simple programs need none but the
 * creator's, and sn_chan_destroy after all others have ended.
 *
 * A fiber or coroutine that has sent or received many times in a row without waiting gives others a
 * turn, so that one whose channel is never empty does not keep them all waiting. With SN_NOWAIT a
 * call never suspends.
 *
 * A call that did not wait for its deadline in vain and was not refused has taken place once. A
 * deadline that comes too late loses nothing: the value was sent or received, and the call says
 * so. */
#ifndef SINEW_CHAN_H
#define SINEW_CHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/clock.h>
#include <sinew/errno.h>
#include <sinew/future.h>

SN_BEGIN_DECLS

/* A handle. Not a pointer to look through: it is checked before every use. */
typedef struct sn_chan sn_chan;

/* Capacities: the largest, and none at all. */
#define SN_CHAN_CAPACITY_MAX ((size_t)1 << 20)
#define SN_CHAN_UNBOUNDED    SIZE_MAX

/* The largest element. */
#define SN_CHAN_ELEMENT_MAX ((size_t)1 << 20)

/* What may be said about a channel when it is created. */
typedef struct sn_chan_options {
    bool oneshot; /* the first value closes it; its capacity is 1, whatever was said */

    /* Ends a value that nobody received. That lies in an array as malloc would give it: aligned for
     * all types but those that ask for more than max_align_t. */
    void (*drop)(void *element, void *arg);
    void *drop_arg;
} sn_chan_options;

/* The two sides of a channel, for references. */
typedef enum sn_chan_side {
    SN_CHAN_SENDER = 1,
    SN_CHAN_RECEIVER = 2,
    SN_CHAN_BOTH = 3,
} sn_chan_side;

/* Make a channel for elements of `element_bytes`. `opts` may be NULL.
 *
 * Suspends: no.   Threads: any, also outside a runtime.
 * Returns  0         *out has a reference to each side
 *          -EINVAL   `out` is NULL, or a size is out of range
 *          -ENOMEM   no memory for the channel and its capacity
 * Owns: sn_chan_destroy, or sn_chan_release, gives it back. */
SN_API SN_MUST_USE int sn_chan_create(sn_chan **out, size_t element_bytes, size_t capacity,
                                      const sn_chan_options *opts);

/* Close it and give up a reference to each side, the creator's. NULL is fine.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EINVAL   a side has no reference; it is closed, and none was given up
 *          -EBADF    not a channel, or gone (misuse) */
SN_API int sn_chan_destroy(sn_chan *ch);

/* One more reference to a side, or to both.
 *
 * Suspends: no.   Threads: any that knows of a reference to hold on to.
 * Returns  0         it is the caller's
 *          -EINVAL   no such side
 *          -EPIPE    that side has no reference any more, and gets none
 *          -EBADF    as sn_chan_destroy */
SN_API int sn_chan_acquire(sn_chan *ch, sn_chan_side side);

/* Give up a reference. The last one of a side closes the channel; the last of all frees it, and
 * values that are left are dropped.
 *
 * Suspends: no.   Threads: any.
 * Returns  0; -EINVAL: no such side, or it has no reference; -EBADF as sn_chan_destroy */
SN_API int sn_chan_release(sn_chan *ch, sn_chan_side side);

/* No more values: senders are refused from now on, receivers when they have got what is left.
 * Closing again is fine.
 *
 * Suspends: no.   Threads: any.
 * Returns  0; -EBADF as sn_chan_destroy */
SN_API int sn_chan_close(sn_chan *ch);

/* Send a copy of the element at `value`, waiting for room or for a receiver until `until`.
 *
 * Suspends: yes, if it must wait.   Threads: any; a plain thread blocks.
 * Returns  0            sent
 *          -EPIPE       the channel is closed
 *          -ETIMEDOUT   `until` has passed; with SN_NOWAIT: it would have had to wait
 *          -ENOMEM      unbounded: no memory for it
 *          -EDEADLK     a coroutine would block its worker and must await sn_chan_send_op (misuse)
 *          -EBADF       as sn_chan_destroy
 *          -ECANCELED   the task was cancelled while it waited
 * Owns: 0 means that the value has gone; with an error it is still the caller's. */
SN_API SN_SUSPENDS SN_MUST_USE int sn_chan_send(sn_chan *ch, const void *value, sn_deadline until);

/* Receive an element into `value`, waiting for one until `until`.
 *
 * Suspends: yes, if it must wait.   Threads: any; a plain thread blocks.
 * Returns  0            *value is the element
 *          -EPIPE       the channel is closed and empty
 *          -ETIMEDOUT   `until` has passed; with SN_NOWAIT: there was none
 *          -EDEADLK, -EBADF, -ECANCELED as sn_chan_send
 * Owns: with 0 the element is the caller's; with an error what is at `value` means nothing. */
SN_API SN_SUSPENDS SN_MUST_USE int sn_chan_recv(sn_chan *ch, void *value, sn_deadline until);

/* Send `n` elements in order, waiting for room as often as need be. Others may send in between.
 *
 * Suspends: yes, if it must wait.   Threads: any.
 * Returns  how many were sent, from the first on: less than `n` if it was closed, timed out, was
 *          cancelled or ran out of memory on the way; if none was: as sn_chan_send
 * Owns: what was sent has gone, the rest is the caller's. */
SN_API SN_SUSPENDS SN_MUST_USE ptrdiff_t sn_chan_send_n(sn_chan *ch, const void *values, size_t n,
                                                        sn_deadline until);

/* Receive what is there, at most `n` elements; wait only if there is none.
 *
 * Suspends: yes, if it must wait.   Threads: any.
 * Returns  how many, at least 1 (0 if `n` is); else as sn_chan_recv
 * Owns: as sn_chan_recv. */
SN_API SN_SUSPENDS SN_MUST_USE ptrdiff_t sn_chan_recv_n(sn_chan *ch, void *values, size_t n,
                                                        sn_deadline until);

/* How many values are inside, at this moment; a value in the hands of a waiting sender is not.
 *
 * Suspends: no.   Threads: any.
 * Returns  the number; 0 for what is not a channel */
SN_API size_t sn_chan_len(sn_chan *ch);

/* How many fit in.
 *
 * Suspends: no.   Threads: any.
 * Returns  the capacity; SN_CHAN_UNBOUNDED; 0 for what is not a channel */
SN_API size_t sn_chan_cap(sn_chan *ch);

/* ---- broadcast ------------------------------------------------------------------------- */

/* A channel whose values all subscribers get. It keeps the last so many; who is too slow loses the
 * oldest, and learns how many. A sender never waits. */
typedef struct sn_broadcast sn_broadcast;

/* How far somebody has come. The memory is the caller's, for one task at a time. */
typedef struct sn_subscription {
    sn_broadcast *from_;
    uint64_t next_;
} sn_subscription;

/* Make one that keeps the last `capacity` elements (1 to SN_CHAN_CAPACITY_MAX) of `element_bytes`.
 *
 * Suspends: no.   Threads: any, also outside a runtime.
 * Returns  0; -EINVAL, -ENOMEM as sn_chan_create
 * Owns: sn_broadcast_destroy gives it back. */
SN_API SN_MUST_USE int sn_broadcast_create(sn_broadcast **out, size_t element_bytes,
                                           size_t capacity);

/* Free it. Nobody may use it any more. NULL is fine.
 *
 * Suspends: no.   Threads: any.
 * Returns  0; -EBADF: not a broadcast, or gone (misuse) */
SN_API int sn_broadcast_destroy(sn_broadcast *b) SN_USES_UP(1);

/* No more values: subscribers get what is left, then -EPIPE.
 *
 * Suspends: no.   Threads: any.
 * Returns  0; -EBADF as sn_broadcast_destroy */
SN_API int sn_broadcast_close(sn_broadcast *b);

/* Give a copy of the element at `value` to all subscribers.
 *
 * Suspends: no.   Threads: any.
 * Returns  0; -EPIPE: it is closed; -EBADF as sn_broadcast_destroy */
SN_API SN_MUST_USE int sn_broadcast_send(sn_broadcast *b, const void *value);

/* Begin to receive: what is sent from now on.
 *
 * Suspends: no.   Threads: any.
 * Returns  0; -EBADF as sn_broadcast_destroy
 * Owns: `sub` needs no end, and may be copied: the copy goes its own way. */
SN_API int sn_broadcast_subscribe(sn_broadcast *b, sn_subscription *sub);

/* Receive the next element into `value`, waiting for it until `until`.
 *
 * Suspends: yes, if it must wait.   Threads: any, one at a time for a subscription.
 * Returns  0, or how many were lost before this one (at most INT32_MAX is said)
 *          -EPIPE, -ETIMEDOUT, -EDEADLK, -EBADF, -ECANCELED as sn_chan_recv */
SN_API SN_SUSPENDS SN_MUST_USE int sn_broadcast_recv(sn_subscription *sub, void *value,
                                                     sn_deadline until);

/* ---- watch ----------------------------------------------------------------------------- */

/* One value, the latest, and how often it was set. */
typedef struct sn_watch sn_watch;

/* Make one with a copy of the element at `value`, which is version 1.
 *
 * Suspends: no.   Threads: any, also outside a runtime.
 * Returns  0; -EINVAL, -ENOMEM as sn_chan_create
 * Owns: sn_watch_destroy gives it back. */
SN_API SN_MUST_USE int sn_watch_create(sn_watch **out, size_t element_bytes, const void *value);

/* Free it. Nobody may use it any more. NULL is fine.
 *
 * Suspends: no.   Threads: any.
 * Returns  0; -EBADF: not a watch, or gone (misuse) */
SN_API int sn_watch_destroy(sn_watch *w) SN_USES_UP(1);

/* No more versions: who has seen the last one gets -EPIPE instead of waiting.
 *
 * Suspends: no.   Threads: any.
 * Returns  0; -EBADF as sn_watch_destroy */
SN_API int sn_watch_close(sn_watch *w);

/* Put a copy of the element at `value` in place of the one before: a new version.
 *
 * Suspends: no.   Threads: any.
 * Returns  0; -EPIPE: it is closed; -EBADF as sn_watch_destroy */
SN_API SN_MUST_USE int sn_watch_set(sn_watch *w, const void *value);

/* Copy the latest to `value`; `version`, if not NULL, learns which one it is.
 *
 * Suspends: no.   Threads: any.
 * Returns  0; -EBADF as sn_watch_destroy */
SN_API SN_MUST_USE int sn_watch_get(sn_watch *w, void *value, uint64_t *version);

/* Wait until there is another version than `*version`, copy it to `value`, and say which one it is.
 * Those in between are not to be had. Begin with 0 to get the present one at once.
 *
 * Suspends: yes, if it must wait.   Threads: any.
 * Returns  0; -EPIPE, -ETIMEDOUT, -EDEADLK, -EBADF, -ECANCELED as sn_chan_recv */
SN_API SN_SUSPENDS SN_MUST_USE int sn_watch_recv(sn_watch *w, void *value, uint64_t *version,
                                                 sn_deadline until);

/* ---- for coroutines -------------------------------------------------------------------- */

/* The memory of a send or receive that a coroutine awaits. */
typedef struct sn_chan_op {
    sn_future future_;
    int result; /* 0: it has taken place; -ECANCELED: it has not (yet); else why not */
    void *opaque_[15];
} sn_chan_op;

/* That of a wait for the news of a broadcast or a watch. */
typedef struct sn_news_op {
    sn_future future_;
    int result; /* of the wait; -ECANCELED: it is not over */
    void *opaque_[24];
} sn_news_op;

/* sn_chan_send as a future: SN_AWAIT_INTO(rc, sn_chan_send_op(&self->op, ch, &self->value)). The
 * element is read from `value` between the first poll and the end. For a deadline race it against a
 * sleep. Dropped, its place in the line is given up; a counterpart may have come just before, which
 * `op->result` tells: then the value has gone.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `op`; its result is as sn_chan_send's */
SN_API sn_future *sn_chan_send_op(sn_chan_op *op, sn_chan *ch, const void *value);

/* sn_chan_recv as a future. Dropped, it may have been given its element just before: if
 * `op->result` is 0, that lies at `value` and is the caller's.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `op`; its result is as sn_chan_recv's */
SN_API sn_future *sn_chan_recv_op(sn_chan_op *op, sn_chan *ch, void *value);

/* sn_broadcast_recv as a future. Dropped, it has received nothing.
 *
 * Suspends: no.   Threads: any, one at a time for a subscription.
 * Returns  the future in `op`; its result is as sn_broadcast_recv's */
SN_API sn_future *sn_broadcast_recv_op(sn_news_op *op, sn_subscription *sub, void *value);

/* sn_watch_recv as a future. Dropped, it has received nothing, and `*version` is as it was.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `op`; its result is as sn_watch_recv's */
SN_API sn_future *sn_watch_recv_op(sn_news_op *op, sn_watch *w, void *value, uint64_t *version);

/* ---- typed ----------------------------------------------------------------------------- */

/* A channel that knows its type: the compiler objects to another one.
 *
 *     SN_CHAN(struct job) jobs;
 *     rc = SN_CHAN_CREATE(&jobs, 64, NULL);
 *     rc = SN_CHAN_SEND(&jobs, &job, SN_FOREVER);
 *
 * `jobs.chan` is the channel, for all that has no typed form. */
#define SN_CHAN(type)   \
    struct {            \
        sn_chan *chan;  \
        type *element_; \
    }
#define SN_CHAN_CREATE(c, capacity, opts) \
    (sn_chan_create(&(c)->chan, sizeof(*(c)->element_), (capacity), (opts)))
#define SN_CHAN_SEND(c, value, until) \
    (sn_chan_send((c)->chan, 1 ? (value) : (c)->element_, (until)))
#define SN_CHAN_RECV(c, value, until) \
    (sn_chan_recv((c)->chan, 1 ? (value) : (c)->element_, (until)))

SN_END_DECLS

#endif
