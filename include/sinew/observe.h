/* SPDX-License-Identifier: MIT */
/* observe.h - what tasks wait for, and which of them wait in vain (R160).
 *
 *     int n = sn_deadlocks(NULL, NULL, NULL);     // prints the cycles of this task's runtime
 *
 * Nothing is recorded for this while a program runs, so there is nothing to turn on, and a program
 * that does not ask pays nothing. */
#ifndef SINEW_OBSERVE_H
#define SINEW_OBSERVE_H

#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/runtime.h>

SN_BEGIN_DECLS

/* A task that waits in vain. The texts are the program's own (names) or constants. */
typedef struct sn_stuck {
    uint64_t id;        /* as sn_task_id                                                       */
    const char *name;   /* as it was spawned with, or NULL                                     */
    const char *at;     /* where it was spawned, "file.c:42"                                   */
    const char *waits;  /* "join", "mutex", "rwlock", "once", "semaphore", "condition", "event",
                           "wait group", "latch", "barrier", "send", "recv", "broadcast",
                           "watch", "select", "group"; NULL: that is not known                */
    const void *object; /* the lock, or the handle of the channel; NULL: none, or several     */
    uint64_t owner;     /* the task that holds the lock, is joined, or is the oldest of the group;
                           0: none, or not known                                             */
    unsigned cycle;     /* which cycle it is in, from 1; 0: in none                           */
} sn_stuck;

/* Receives what is found, one at a time, on the calling thread. May do what its caller may. */
typedef void sn_stuck_fn(const sn_stuck *task, void *arg);

/* Find tasks of `rt` (NULL: of the runtime that the caller is a task of) that wait for each other
 * in a cycle: each joins the next, or waits for the end of a group that the next one is in, or
 * wants a mutex, an rwlock or a once that the next one holds; and none has a deadline. `tell` is
 * called for each task of each cycle, in the order in which they wait; NULL: they are listed on
 * standard error.
 *
 * What it says is so: none of these tasks can go on unless one of them is cancelled. What it does
 * not see: locks that are held by readers, threads or coroutines, which are not known by name; and
 * waits that any of several others could end, at channels, semaphores, conditions and so on
 * (sn_leaks).
 *
 * Suspends: no.   Threads: any; `rt` must not be shut down meanwhile.
 * Returns  the number of cycles
 *          -EINVAL  `rt` is NULL, and the caller is no task
 *          -ENOMEM  no memory to look at all tasks */
SN_API int sn_deadlocks(sn_runtime *rt, sn_stuck_fn *tell, void *arg);

SN_END_DECLS

#endif
