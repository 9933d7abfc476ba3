/* SPDX-License-Identifier: MIT */
/* sync.h - locks, counters and events between tasks and threads (R90).
 *
 *     static sn_mutex m = SN_MUTEX_INIT;
 *
 *     rc = sn_mutex_lock(&m, SN_FOREVER);
 *     ...
 *     sn_mutex_unlock(&m);
 *
 * All of them are small values on the caller's memory, made by an initialiser: `= SN_MUTEX_INIT`,
 * or `*m = (sn_mutex)SN_MUTEX_INIT`. They do not move while anybody uses them. Finishing one is not
 * necessary, but finds out whether it is still in use. None of them allocates.
 *
 * Fibers, plain threads and coroutines may use one at the same time, also those of different
 * runtimes. Calls that can wait suspend a fiber and block a thread. A coroutine awaits the `_op`
 * form instead, whose memory is an sn_sync_state; it has no deadline, but can be raced
 * (sn_fut_race2), and whatever a dropped one was given is passed on to the next. A coroutine may
 * also make the call with SN_NOWAIT.
 *
 * Who takes many times in a row what was free gives others a turn now and then, before it takes it;
 * not so with SN_NOWAIT, which never suspends.
 *
 * Who waits is served in order of arrival, unless said otherwise. What is common to all calls that
 * wait is said once, here:
 *          -ETIMEDOUT  the deadline passed first; with SN_NOWAIT: it would have to wait
 *          -ECANCELED  the wait was cancelled
 *          -EDEADLK    a coroutine would block its worker and must await the _op form (misuse)
 *          -ENOTSUP    a fiber's scheduler keeps no time, and there is a deadline
 * A wait that ended so has left no trace and has taken nothing. */
#ifndef SINEW_SYNC_H
#define SINEW_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/clock.h>
#include <sinew/errno.h>
#include <sinew/future.h>

SN_BEGIN_DECLS

/* What each of them is made of. */
typedef struct sn_gate_ {
    struct {
        uint64_t raw_;
    } word_;
    void *first_;
} sn_gate_;

#define SN_GATE_INIT_(word) {{(word)}, 0}

/* The memory of a wait that a coroutine awaits. */
typedef struct sn_sync_state {
    sn_future future_;
    void *opaque_[24];
} sn_sync_state;

/* ---- mutex ------------------------------------------------------------------------------ */

/* One at a time. While it is free, whoever comes may take it, also if others wait: that keeps it
 * fast. But one that waits is overtaken so a few times only. A fair one is handed over in order of
 * arrival, always. */
typedef struct sn_mutex {
    sn_gate_ gate_;
    struct {
        int32_t raw_;
    } credit_;
    uint32_t fair_;
} sn_mutex;

/* A free one, of the first kind or of the other. */
#define SN_MUTEX_INIT      {SN_GATE_INIT_(0), {0}, 0}
#define SN_MUTEX_FAIR_INIT {SN_GATE_INIT_(0), {0}, 1}

/* Lock. Whoever locked it must unlock it: a fiber or a thread; what coroutines lock, any of them
 * may unlock.
 *
 * Suspends: if it is locked.   Threads: any.
 * Returns  0, and it is the caller's
 *          -EDEADLK  the caller holds it and would wait for itself for ever (misuse); with a
 *                    deadline it waits in vain
 *          and as above */
SN_API SN_SUSPENDS SN_MUST_USE int sn_mutex_lock(sn_mutex *m, sn_deadline until);

/* sn_mutex_lock as a future: SN_AWAIT_INTO(rc, sn_mutex_lock_op(&self->lock, m)).
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `state`; its result is 0 */
SN_API sn_future *sn_mutex_lock_op(sn_sync_state *state, sn_mutex *m);

/* Unlock.
 *
 * Suspends: no.   Threads: the fiber or thread that locked it.
 * Returns  0
 *          -EPERM  it is not locked, or by somebody else (misuse); it stays as it was */
SN_API int sn_mutex_unlock(sn_mutex *m);

/* The end of a mutex: from here on its memory may be used otherwise.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EBUSY  it is locked or waited for (misuse); it stays as it was */
SN_API int sn_mutex_finish(sn_mutex *m);

/* ---- condition -------------------------------------------------------------------------- */

/* To wait until something that a mutex guards has changed:
 *
 *     while (!ready && rc == 0)
 *         rc = sn_cond_wait(&changed, &m, until);
 *
 * It may be a variable of who waits: a signal does not touch it any more when the wait returns. And
 * it must be there until all waits have, also those that were signalled and want the mutex. */
typedef struct sn_cond {
    sn_gate_ gate_;
} sn_cond;

/* Nobody waits. */
#define SN_COND_INIT {SN_GATE_INIT_(0)}

/* Unlock `m`, wait until `cond` is signalled, and lock `m` again, also if the deadline passed or
 * the wait was cancelled. All who wait at the same time use the same mutex. With SN_NOWAIT `m` is
 * not unlocked at all.
 *
 * Suspends: yes.   Threads: that which holds `m`.
 * Returns  0       it was signalled
 *          -EPERM  the caller does not hold `m` (misuse); it has not waited
 *          and as above; `m` is the caller's in each case but -EPERM */
SN_API SN_SUSPENDS SN_MUST_USE int sn_cond_wait(sn_cond *cond, sn_mutex *m, sn_deadline until);

/* sn_cond_wait as a future. Dropped before it has completed, `m` is not the caller's, and a signal
 * that it was given goes to another.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `state`; its result is 0, or -EPERM */
SN_API sn_future *sn_cond_wait_op(sn_sync_state *state, sn_cond *cond, sn_mutex *m);

/* Let the one that has waited longest go on; if nobody waits, nothing happens. The caller need not
 * hold the mutex, but must have held it when it changed what is waited for.
 *
 * Suspends: no.   Threads: any.
 * Returns  0 */
SN_API int sn_cond_signal(sn_cond *cond);

/* Let all go on that wait now, one after the other, as they get the mutex.
 *
 * Suspends: no.   Threads: any.
 * Returns  0 */
SN_API int sn_cond_broadcast(sn_cond *cond);

/* The end of a condition.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EBUSY  it is waited for (misuse) */
SN_API int sn_cond_finish(sn_cond *cond);

/* ---- reading and writing ------------------------------------------------------------------ */

/* One who writes, or many who read. In order of arrival: a writer waits for those who came before
 * it, not for readers that come later; and so does a reader for writers. Who reads must not lock
 * it to read again: a writer may have come in between. */
typedef struct sn_rwlock {
    sn_gate_ gate_;
} sn_rwlock;

/* A free one. */
#define SN_RWLOCK_INIT {SN_GATE_INIT_(0)}

/* Lock it to write. Whoever locked it must unlock it, as with a mutex.
 *
 * Suspends: if anybody reads, writes or waits.   Threads: any.
 * Returns  0
 *          -EDEADLK  the caller writes already and would wait for itself for ever (misuse)
 *          and as above */
SN_API SN_SUSPENDS SN_MUST_USE int sn_rwlock_lock(sn_rwlock *lock, sn_deadline until);

/* sn_rwlock_lock as a future.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `state`; its result is 0 */
SN_API sn_future *sn_rwlock_lock_op(sn_sync_state *state, sn_rwlock *lock);

/* Unlock what was locked to write.
 *
 * Suspends: no.   Threads: the fiber or thread that locked it.
 * Returns  0
 *          -EPERM  the caller does not write (misuse); it stays as it was */
SN_API int sn_rwlock_unlock(sn_rwlock *lock);

/* Go over from writing to reading: nobody writes in between. Others who wait to read may come in.
 *
 * Suspends: no.   Threads: the fiber or thread that locked it.
 * Returns  0; -EPERM as sn_rwlock_unlock */
SN_API int sn_rwlock_downgrade(sn_rwlock *lock);

/* Lock it to read.
 *
 * Suspends: if anybody writes or waits.   Threads: any.
 * Returns  as sn_rwlock_lock */
SN_API SN_SUSPENDS SN_MUST_USE int sn_rwlock_lock_shared(sn_rwlock *lock, sn_deadline until);

/* sn_rwlock_lock_shared as a future.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `state`; its result is 0 */
SN_API sn_future *sn_rwlock_lock_shared_op(sn_sync_state *state, sn_rwlock *lock);

/* Unlock what was locked to read, or downgraded.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EPERM  nobody reads (misuse); it stays as it was */
SN_API int sn_rwlock_unlock_shared(sn_rwlock *lock);

/* The end of such a lock.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EBUSY  it is locked or waited for (misuse) */
SN_API int sn_rwlock_finish(sn_rwlock *lock);

/* ---- semaphore -------------------------------------------------------------------------- */

/* A number of units, taken and given back some at a time. Strictly in order: one that wants many is
 * not overtaken by those that want few. */
typedef struct sn_sem {
    sn_gate_ gate_;
} sn_sem;

/* With so many units to begin with: SN_SEM_INIT(10). */
#define SN_SEM_INIT(units) {SN_GATE_INIT_((uint64_t)(uint32_t)(units) << 2)}

/* Take `units`, all of them at once.
 *
 * Suspends: if there are not so many, or others wait.   Threads: any.
 * Returns  0; and as above */
SN_API SN_SUSPENDS SN_MUST_USE int sn_sem_acquire(sn_sem *sem, uint32_t units, sn_deadline until);

/* sn_sem_acquire as a future.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `state`; its result is 0 */
SN_API sn_future *sn_sem_acquire_op(sn_sync_state *state, sn_sem *sem, uint32_t units);

/* Give `units` back, or add new ones.
 *
 * Suspends: no.   Threads: any; need not be the one that took them.
 * Returns  0
 *          -EOVERFLOW  there would be more than 2^32 - 1 (misuse); none was added */
SN_API int sn_sem_release(sn_sem *sem, uint32_t units);

/* How many units are free right now.
 *
 * Suspends: no.   Threads: any.
 * Returns  the number, which may be another one already */
SN_API uint32_t sn_sem_get(const sn_sem *sem);

/* The end of a semaphore, whether or not all units are back.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EBUSY  it is waited for (misuse) */
SN_API int sn_sem_finish(sn_sem *sem);

/* ---- event ------------------------------------------------------------------------------ */

/* Something that has happened, or not yet. It stays set until it is reset, and lets everybody pass
 * meanwhile. An event for *one* lets one pass each time that it is set, and is reset by that. */
typedef struct sn_event {
    sn_gate_ gate_;
} sn_event;

#define SN_EVENT_ONE_ 8u

/* One that has not happened yet, for all or for one. */
#define SN_EVENT_INIT     {SN_GATE_INIT_(0)}
#define SN_EVENT_ONE_INIT {SN_GATE_INIT_(SN_EVENT_ONE_)}

/* Wait until it is set. What was written before it was set is visible then.
 *
 * Suspends: if it is not set.   Threads: any.
 * Returns  0; and as above */
SN_API SN_SUSPENDS SN_MUST_USE int sn_event_wait(sn_event *event, sn_deadline until);

/* sn_event_wait as a future.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `state`; its result is 0 */
SN_API sn_future *sn_event_wait_op(sn_sync_state *state, sn_event *event);

/* It has happened. Setting what is set changes nothing.
 *
 * Suspends: no.   Threads: any.
 * Returns  0 */
SN_API int sn_event_set(sn_event *event);

/* It has not happened yet. Whoever was let pass before, passes.
 *
 * Suspends: no.   Threads: any.
 * Returns  0 */
SN_API int sn_event_reset(sn_event *event);

/* Tells whether it is set right now.
 *
 * Suspends: no.   Threads: any.
 * Returns  true if a wait would not have waited */
SN_API bool sn_event_get(const sn_event *event);

/* The end of an event.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EBUSY  it is waited for (misuse) */
SN_API int sn_event_finish(sn_event *event);

/* ---- wait group ------------------------------------------------------------------------- */

/* To wait until all that was begun is done. May be a variable of who waits: it is not touched any
 * more when the wait returns. */
typedef struct sn_wait_group {
    sn_gate_ gate_;
} sn_wait_group;

/* Nothing is begun. */
#define SN_WAIT_GROUP_INIT {SN_GATE_INIT_(0)}

/* `n` more are begun. To be called before they can be done: by who spawns, not by who is spawned.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EOVERFLOW  there would be more than 2^32 - 1 (misuse) */
SN_API int sn_wait_group_add(sn_wait_group *group, uint32_t n);

/* One is done. What was written before is visible to who waits.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -ERANGE  more was done than begun (misuse) */
SN_API int sn_wait_group_done(sn_wait_group *group);

/* Wait until all is done.
 *
 * Suspends: if it is not.   Threads: any.
 * Returns  0; and as above */
SN_API SN_SUSPENDS SN_MUST_USE int sn_wait_group_wait(sn_wait_group *group, sn_deadline until);

/* sn_wait_group_wait as a future.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `state`; its result is 0 */
SN_API sn_future *sn_wait_group_wait_op(sn_sync_state *state, sn_wait_group *group);

/* The end of a wait group.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EBUSY  not all is done, or it is waited for (misuse) */
SN_API int sn_wait_group_finish(sn_wait_group *group);

/* ---- latch ------------------------------------------------------------------------------ */

/* A number that goes down to 0, once. May be a variable of who waits. */
typedef struct sn_latch {
    sn_gate_ gate_;
} sn_latch;

/* One that waits for `n`: SN_LATCH_INIT(3). */
#define SN_LATCH_INIT(n) {SN_GATE_INIT_((uint64_t)(uint32_t)(n) << 2)}

/* Count down by `n`. What was written before is visible to who waits.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -ERANGE  it would be less than 0 (misuse); it stays as it was */
SN_API int sn_latch_arrive(sn_latch *latch, uint32_t n);

/* Wait until it is 0.
 *
 * Suspends: if it is not.   Threads: any.
 * Returns  0; and as above */
SN_API SN_SUSPENDS SN_MUST_USE int sn_latch_wait(sn_latch *latch, sn_deadline until);

/* sn_latch_wait as a future.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `state`; its result is 0 */
SN_API sn_future *sn_latch_wait_op(sn_sync_state *state, sn_latch *latch);

/* The end of a latch.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EBUSY  it is waited for (misuse) */
SN_API int sn_latch_finish(sn_latch *latch);

/* ---- barrier ---------------------------------------------------------------------------- */

/* Nobody goes on before all have come; again and again. */
typedef struct sn_barrier {
    sn_gate_ gate_;
    uint32_t parties_;
} sn_barrier;

/* One for `n`: SN_BARRIER_INIT(4). For 0 or 1, nobody ever waits. */
#define SN_BARRIER_INIT(n) {SN_GATE_INIT_(0), (n)}

/* Come, and wait until all have. Who does not wait to the end has not come.
 *
 * Suspends: unless it is the last to come.   Threads: any.
 * Returns  1 for the last one, 0 for the others; and as above */
SN_API SN_SUSPENDS SN_MUST_USE int sn_barrier_wait(sn_barrier *barrier, sn_deadline until);

/* sn_barrier_wait as a future. Comes at the first poll; dropped before all have come, it has not.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `state`; its result is 1 or 0 */
SN_API sn_future *sn_barrier_wait_op(sn_sync_state *state, sn_barrier *barrier);

/* The end of a barrier.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EBUSY  it is waited for (misuse) */
SN_API int sn_barrier_finish(sn_barrier *barrier);

/* ---- once ------------------------------------------------------------------------------- */

/* What is to be done once, by the first who needs it. */
typedef struct sn_once {
    sn_gate_ gate_;
} sn_once;

/* It is not done. */
#define SN_ONCE_INIT {SN_GATE_INIT_(0)}

/* What to do: 0 or positive, or an error: then it is not done, and the next one tries. */
typedef int sn_once_fn(void *arg);

/* Run `fn(arg)`, unless that was done before; if another is at it, wait for that one. It must not
 * panic: the others would wait for ever.
 *
 * Suspends: if another is at it; and as `fn` does.   Threads: any.
 * Returns  0         it is done
 *          -EDEADLK  `fn` calls for itself and would wait for ever (misuse)
 *          what `fn` returned, if that was an error; and as above */
SN_API SN_SUSPENDS SN_MUST_USE int sn_once_run(sn_once *once, sn_once_fn *fn, void *arg,
                                               sn_deadline until);

/* The two halves of sn_once_run, for who has more to do than to call a function.
 *
 * Suspends: if another is at it.   Threads: any.
 * Returns  1  the caller must do it, and then call sn_once_end
 *          0  it is done; and as sn_once_run */
SN_API SN_SUSPENDS SN_MUST_USE int sn_once_begin(sn_once *once, sn_deadline until);

/* sn_once_begin as a future. A dropped one that was to do it leaves it to the next.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future in `state`; its result is 1 or 0 */
SN_API sn_future *sn_once_begin_op(sn_sync_state *state, sn_once *once);

/* It is done, or has failed, if `result` is an error.
 *
 * Suspends: no.   Threads: the fiber or thread that began.
 * Returns  0
 *          -EPERM  the caller had not begun (misuse) */
SN_API int sn_once_end(sn_once *once, int result);

/* The end of an sn_once.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EBUSY  somebody is at it, or waits (misuse) */
SN_API int sn_once_finish(sn_once *once);

SN_END_DECLS

#endif
