/* SPDX-License-Identifier: MIT */
/* runtime.h - where tasks run: workers, their life, and how main() gets inside.
 *
 *     int main(void) { return sn_run(app, NULL); }
 *
 * sn_run is enough for most programs. The rest is for those that embed Sinew, want several
 * runtimes, or choose sizes. Options that are 0 or NULL take their default; the environment
 * (SINEW_WORKERS, SINEW_STACK_BYTES, SINEW_SEED, SINEW_IO, SINEW_DEADLOCK) overrides the default,
 * never what a program set. */
#ifndef SINEW_RUNTIME_H
#define SINEW_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/clock.h>
#include <sinew/task.h>

SN_BEGIN_DECLS

/* Workers, and what they share. */
typedef struct sn_runtime sn_runtime;

/* How workers wait for descriptors (R80). */
typedef enum sn_io_driver {
    SN_IO_AUTO,  /* the best there is; not io_uring under valgrind, which cannot see into a ring */
    SN_IO_URING, /* Linux's io_uring  */
    SN_IO_EPOLL,
    SN_IO_POLL,
} sn_io_driver;

/* What happens when no task can ever run again.
 *
 * That is so when tasks are alive, all of them wait, and nobody is there to wake one: no deadline
 * is set in the runtime, no operation on a descriptor is under way; the process has no threads but
 * the runtime's own and those that wait in sn_runtime_block_on, or for the end of all tasks; and it
 * catches no signals but those that its own instructions raise, and SIGPROF. If one of these is in
 * doubt, nothing happens. In SINEW_DEADLOCK the words are off, report and end. */
typedef enum sn_deadlock_policy {
    SN_DEADLOCK_DEFAULT, /* SINEW_DEADLOCK; else: end in sn_run, off in sn_runtime_create       */
    SN_DEADLOCK_OFF,
    SN_DEADLOCK_REPORT, /* all tasks and what they wait at are listed on standard error, once   */
    SN_DEADLOCK_END,    /* and who waits for the runtime stops that, with -EDEADLK               */
} sn_deadlock_policy;

/* What a program wants to be told, each NULL or a function, called with `arg`. They run on the
 * worker's thread, in the middle of its work, or on that of who spawns from outside: they must be
 * short, and neither wait nor spawn. */
typedef struct sn_hooks {
    void (*thread_started)(unsigned worker, void *arg); /* before it runs the first task      */
    void (*thread_stops)(unsigned worker, void *arg);   /* after the last                     */
    void (*task_spawned)(uint64_t id, const char *name, const char *at, void *arg);
    void (*task_ended)(uint64_t id, const char *name, const char *at, void *arg);
    void *arg;
} sn_hooks;

/* What a runtime may be told when it is made. */
typedef struct sn_runtime_options {
    unsigned workers;        /* threads that run tasks; default: the processors this process
                              may use (affinity mask and cgroup quota)                        */
    bool single_threaded;    /* Level 1: no threads; tasks run on the thread in block_on        */
    bool no_steal;           /* a task stays on the worker that made it runnable                */
    bool pin;                /* each worker stays on one processor                              */
    bool lifo;               /* fork-join: a worker runs its newest task first, others steal its
                              oldest, and a join may run the task itself (sn_join); default:
                              first come, first served                                        */
    uint64_t seed;           /* single-threaded: every choice of what runs next is drawn from
                              this number, and the same one gives the same order; for tests.
                              0: first come, first served                                     */
    bool virtual_time;       /* single-threaded: the clock stands still while a task can run, and
                              jumps to the next deadline when none can; for tests             */
    int64_t timer_tick_ns;   /* how exact deadlines are, at most SN_S(1); default 16384 ns. Rounded
                              up to a power of two                                            */
    size_t stack_bytes;      /* of a fiber that asks for nothing; default 64 KiB                */
    unsigned queue_capacity; /* tasks in a worker's own queue, a power of two from 2 to 65,536;
                              default 1024. What is more goes to the queue of all              */
    bool measure_stacks;     /* keep how deep the stacks of fibers were, by the place of their
                              spawn, see sn_runtime_stacks; costs microseconds per fiber      */
    sn_hooks hooks;          /* who wants to be told                                            */
    sn_io_driver io;         /* default: SINEW_IO, else SN_IO_AUTO                             */
    bool sqpoll;             /* io_uring: a thread of the kernel looks for submissions, one for each
                              worker; burns a processor to save system calls                  */
    const char *name;        /* of its threads; default "sinew"                                 */
    sn_deadlock_policy deadlock; /* when no task can ever run again                             */
} sn_runtime_options;

/* Make a runtime. `opts` may be NULL.
 *
 * Suspends: no.   Threads: any.
 * Returns  0
 *          -EINVAL  an option or an environment variable is out of range; a sentence that
 *                   names it goes to standard error
 *          -ENOMEM  no memory or address space
 *          -ENOSYS, -EPERM, ...  the option io, or SINEW_IO, asks for what this system refuses
 *          -EAGAIN  a thread was refused
 * Owns: the caller destroys what it gets. */
SN_API SN_MUST_USE int sn_runtime_create(sn_runtime **out, const sn_runtime_options *opts);

/* Run `fn(arg)` as a task of `rt` and wait for its end.
 *
 * Suspends: blocks the thread.   Threads: any outside a runtime; with `single_threaded` one
 * at a time, and that thread runs all tasks.
 * Returns  the function's result
 *          -ECONNABORTED  it panicked
 *          -EDEADLK  no task can ever run again (SN_DEADLOCK_END), and the report is written; or
 *                    called inside a runtime (misuse)
 *          -EBUSY    another thread drives this single-threaded runtime (misuse)
 *          -EPERM    the runtime is shutting down
 *          -ECANCELED  it was shut down meanwhile, and has not waited for the task
 *          -ENOMEM   no memory for the task */
SN_API SN_MUST_USE int sn_runtime_block_on(sn_runtime *rt, sn_task_fn *fn, void *arg);

/* Run `fn(arg)` as a task of `rt`, from outside: sn_runtime_spawn(rt, fn, arg, .name = "x").
 *
 * Suspends: no.   Threads: any.
 * Returns  as sn_spawn; -EPERM once the runtime is shutting down */
#define sn_runtime_spawn(...) SN_RUNTIME_SPAWN_(__VA_ARGS__, )

/* For programs with an event loop of their own: run the tasks of a single-threaded runtime
 * that can run now, on this thread, until none can or `until` has passed, and come back. One of
 * them has its turn in any case, with SN_NOWAIT that one only. On virtual time, when none can, it
 * goes on to the next deadline, once in a turn.
 *
 * Suspends: no, but runs tasks.   Threads: one at a time.
 * Returns  the number of tasks alive, at most INT32_MAX; 0: there is nothing left to do
 *          -EINVAL   the runtime has threads of its own
 *          -EPERM    the runtime was shut down
 *          -EDEADLK  called inside a runtime (misuse)
 *          -EBUSY    another thread drives this runtime (misuse) */
SN_API SN_MUST_USE int sn_runtime_turn(sn_runtime *rt, sn_deadline until);

/* A descriptor for poll, epoll or another loop: readable when sn_runtime_turn has something to
 * do. It stays the runtime's.
 *
 * Suspends: no.   Threads: any.
 * Returns  the descriptor
 *          -EINVAL   the runtime has threads of its own
 *          -EMFILE, -ENFILE, -ENOMEM  the system gives none */
SN_API SN_MUST_USE int sn_runtime_fd(sn_runtime *rt);

/* How deep stacks were, if the option measure_stacks was set: `tell` is called for each place of a
 * spawn, in no order, with the deepest use of any fiber from there that has ended, in whole pages,
 * and the number of such fibers. `at` is NULL for all places that found no room in the table.
 *
 * Suspends: no.   Threads: any.
 * Returns  the number of places */
SN_API int sn_runtime_stacks(sn_runtime *rt,
                             void (*tell)(const char *at, size_t bytes, uint64_t fibers, void *arg),
                             void *arg);

/* Wait until all tasks of `rt` have ended, but not past `until`, nor after it was reported that
 * none of them can ever run again (SN_DEADLOCK_END); then stop its workers. Tasks
 * that are still alive, and handles that nobody used up, are listed on standard error with
 * the place of their spawn. If another thread drives a single-threaded runtime, it goes on until it
 * is through, or `until` has passed; a task that runs is waited for.
 *
 * Tasks still alive never run again. Threads, and tasks of other runtimes, that join or cancel them
 * learn -ECANCELED; those that wake them, by a waker, by what they wait at or by ending what they
 * join, may do so meanwhile and later, and wake nobody. What they wait at is left by them as if
 * they had been cancelled, so it must be there until this returns; a value that one of them was
 * just given, and did not come to use, is gone with it, and what it holds it keeps: a mutex stays
 * locked.
 *
 * Suspends: blocks the thread.   Threads: any outside a runtime, once.
 * Returns  the number of tasks that were still alive
 *          -EDEADLK  called inside a runtime (misuse) */
SN_API int sn_runtime_shutdown(sn_runtime *rt, sn_deadline until);

/* Shut down, waiting for all tasks unless that was done before, and free. NULL is fine.
 *
 * Suspends: blocks the thread.   Threads: any outside a runtime, once. */
SN_API void sn_runtime_destroy(sn_runtime *rt) SN_USES_UP(1);

/* Make a runtime with defaults, run `fn(arg)` in it, wait for all other tasks, destroy it. If no
 * task can ever run again, that is reported and ends the wait (SN_DEADLOCK_END).
 *
 * Suspends: blocks the thread.   Threads: any outside a runtime.
 * Returns  as sn_runtime_create, then as sn_runtime_block_on; -EDEADLK also if the function has
 *          returned, and other tasks can never run again. From main() that is status 221 */
SN_API int sn_run(sn_task_fn *fn, void *arg);

/* ---- behind the macros ---------------------------------------------------------------- */

#define SN_RUNTIME_SPAWN_(rt, fn, arg, ...) \
    (sn_runtime_spawn_((rt), (fn), (arg), &(sn_spawn_options){.at_ = SN_HERE_, __VA_ARGS__}))

SN_API SN_MUST_USE sn_task *sn_runtime_spawn_(sn_runtime *rt, sn_task_fn *fn, void *arg,
                                              const sn_spawn_options *opts) SN_GIVES_TASK_;

SN_END_DECLS

#endif
