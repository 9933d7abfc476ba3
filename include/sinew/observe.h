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
                           of sn_leaks also the only one that has the other end; 0: none, several,
                           or not known                                                      */
    unsigned cycle;     /* which cycle it is in, from 1; 0: in none                           */
    unsigned owners;    /* how many tasks there are that `owner` could be; of a select, for each of
                           its cases, unless it is one and the same                          */
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
 * waits that any of several others could end, at channels, semaphores, conditions and so on: these
 * have no owner, and whoever reaches them may end the wait. Who can reach them is found out by
 * sn_leaks.
 *
 * Suspends: no.   Threads: any; `rt` must not be shut down meanwhile.
 * Returns  the number of cycles
 *          -EINVAL  `rt` is NULL, and the caller is no task
 *          -ENOMEM  no memory to look at all tasks */
SN_API int sn_deadlocks(sn_runtime *rt, sn_stuck_fn *tell, void *arg);

/* Find tasks of `rt` (as above) that wait and can never be woken, because all that could wake them
 * is known to themselves and other such tasks only. `tell` is called for each of them; NULL: they
 * are listed on standard error, each with who has the other end of what it waits at.
 *
 * A task is listed if it waits without a deadline, and not for a descriptor or a future, and nobody
 * has its handle any more to cancel it, and, each of these that it waits at:
 *
 *   - a channel, broadcast or watch whose handle is in no memory but that of such tasks;
 *   - the end of such a task;
 *   - a lock that such a task holds, or that a task held when it ended;
 *   - anything on the stack of such a task, with no pointer into that stack in other memory.
 *
 * So they wait for each other, and those that do so in a cycle are told together, with its number
 * in `cycle`: each of them waits at something that another one of it has, or holds, or is; or it
 * waits at what it alone has, which is a cycle of one. Those who wait for a cycle, or for a lock
 * that was kept, come last and have 0. Who waits at something itself, and nowhere else, counts as
 * one that has it only if nobody else does. What somebody has is a handle of the channel, or a
 * pointer into the stack or the copied argument where the semaphore, the event and so on lies; that
 * it would use it is not said, but nobody else can.
 *
 * To find out, all memory that the program can write is searched for handles and pointers while the
 * workers stand still: some milliseconds, and more with a large heap. What it says is so, as long
 * as handles are kept as they are, at multiples of 8 bytes, and not in files or other processes.
 * What it does not see: tasks whose handles are still in memory that nobody will read, such as a
 * block that was not freed; and those that wait at locks, events and so on in static variables or
 * on the heap, where there may be ways to get at them that no word of memory shows.
 *
 * Wants some 16 KiB of stack, of which the default has enough.
 *
 * Suspends: no, but other tasks stand still; and its thread sleeps, for two seconds at most, while
 * another has called sn_runtime_block_on and not yet come to wait there.
 * Threads: any; `rt` must not be shut down meanwhile.
 * Returns  the number of tasks
 *          -EINVAL   `rt` is NULL, and the caller is no task
 *          -EBUSY    the process has threads that are neither the runtime's nor wait for it in
 *                    sn_runtime_block_on or sn_runtime_shutdown, so their registers cannot be seen;
 *                    or a task has run for seconds without giving way; or somebody else asks, too
 *          -ENOMEM   no memory
 *          -ENOTSUP  there is a mapping of more than 256 GiB, or the system does not let a process
 *                    look at its own memory (also -EACCES, -EPERM, -ENOENT) */
SN_API int sn_leaks(sn_runtime *rt, sn_stuck_fn *tell, void *arg);

SN_END_DECLS

#endif
