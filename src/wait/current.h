/* SPDX-License-Identifier: MIT */
/* current.h - what runs on this thread: the only thread-local of the library.
 *
 * An *executor* is whoever runs fibers on a thread: a scheduler's worker, or another one that
 * was plugged in. A thread outside every runtime has none.
 *
 * A fiber may go on on another thread after every suspension. Code that read the thread-local
 * before and uses it after would act on the wrong executor, and a compiler that sees the read
 * (inlining, link-time optimisation) may even keep the thread pointer itself in a register.
 * So it is read anew each time, in a way that no compiler sees through: by a function that is
 * never inlined, or, where we know how (plat/tls.h), by two instructions of assembly in its place.
 * A call costs little by itself, but its caller must save around it what it has in registers: to
 * lock a mutex takes a third less without. */
#ifndef SINEW_WAIT_CURRENT_H
#define SINEW_WAIT_CURRENT_H

#include "base/compiler.h"
#include "plat/tls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sni_waiter;
struct sni_exec;
struct sni_clockwork;
struct sni_guard;
struct sni_driver;

/* What a fiber that waits has lent to others, and who takes it back if it never goes on. Lies on
 * its stack. */
struct sni_lent {
    void (*take_back)(struct sni_lent *lent);
    struct sni_waiter *waiter; /* of a wait that is held (sni_wait_hold)  */
};

/* What an executor can do for a fiber that waits. */
struct sni_exec_ops {
    /* Leave the running fiber until `waiter` is claimed. Called by the fiber itself. The
     * executor calls sni_wait_published() when the fiber's registers are saved. */
    void (*suspend)(struct sni_exec *exec, struct sni_waiter *waiter);

    /* The same, and interrupt the wait (sni_wait_interrupt) when `until_ns` has come. NULL: this
     * executor keeps no time. */
    void (*suspend_until)(struct sni_exec *exec, struct sni_waiter *waiter, int64_t until_ns);

    /* Make a suspended fiber runnable: soon, or behind all that is runnable already. Any
     * thread. */
    void (*resume)(void *fiber);
    void (*resume_last)(void *fiber);
    bool resumes_late; /* `resume` may be called after the locks under which it was claimed */

    /* Where a fiber, whose address `fiber` is, keeps a struct sni_lent * for what it has lent
     * (sni_wait_lend), in bytes: if the fiber is abandoned, whoever does that takes it back. 0:
     * never are any. */
    size_t lent_at;

    /* Where it keeps the state of its waits, a sni_wait_word, so that they can be cancelled; then
     * it has a place for what it lends, too. 0: nowhere, and they cannot. */
    size_t wait_at;

    /* Let others have a turn before the running fiber goes on. NULL: nobody else is there. */
    void (*give_way)(struct sni_exec *exec);

    /* Have `guard` undo what it stands for if the running task ends before it is taken out; and
     * take it out. NULL, both: nobody would. */
    void (*guard)(struct sni_exec *exec, struct sni_guard *guard);
    void (*unguard)(struct sni_exec *exec, struct sni_guard *guard);

    /* The time, if the executor has a clock of its own; NULL: the machine's. */
    int64_t (*now)(struct sni_exec *exec);

    /* Whom to give operations on descriptors, made if there is none yet. NULL: nobody.
     *
     * Returns  0, and *out; or -errno */
    int (*driver)(struct sni_exec *exec, struct sni_driver **out);
};

struct sni_exec {
    const struct sni_exec_ops *ops;
    void *fiber; /* the fiber that runs now; NULL while the executor runs something else */
    struct sni_clockwork *clockwork; /* for alarms; immutable, NULL if there is none        */
    int budget; /* operations that the running task may still do without giving way; the executor
                   sets it to SNI_BUDGET when it begins to run a task                          */
    uint32_t draws; /* how often selects drew lots here; this thread only                      */
};

enum {
    SNI_BUDGET = 128, /* operations in a row that did not have to wait */
};

/* The executor of this thread, or NULL. */
#if defined(SNI_TLS_LOAD) && !defined(SNI_MODEL)
#define SNI_EXEC_INLINE
static inline struct sni_exec *sni_exec_current(void)
{
    struct sni_exec *exec;
    SNI_TLS_LOAD(exec, sni_exec_here);
    return exec;
}
#else
struct sni_exec *sni_exec_current(void);
#endif

/* What a thread outside every runtime is called (sni_exec_self): where its thread-local is. */
#ifdef SNI_EXEC_INLINE
static inline uintptr_t sni_exec_thread(void)
{
    uintptr_t self;
    SNI_TLS_ADDRESS(self, sni_exec_here);
    return self;
}
#else
uintptr_t sni_exec_thread(void);
#endif

/* The time, by the clock of this thread's executor or of the machine. */
int64_t sni_now_ns(void);

/* The budget of `exec` is used up: let the running fiber give way, if it is one, and if what it
 * called could have waited until `until_ns`. Who cannot give way now stays without any. */
void sni_exec_rest(struct sni_exec *exec, int64_t until_ns);

/* `n` operations succeeded without waiting, by calls that could have waited until `until_ns`. A
 * fiber that has done many such in a row gives way, so that one whose data is always there does not
 * keep the others waiting. A call that was not to wait does not give way either, it leaves that to
 * the next one. */
static inline void sni_spend_many(int n, int64_t until_ns)
{
    struct sni_exec *exec = sni_exec_current();
    if (exec != NULL && sni_unlikely((exec->budget -= n) < 0))
        sni_exec_rest(exec, until_ns);
}

/* The same for one, by a fiber. */
static inline void sni_spend(void)
{
    struct sni_exec *exec = sni_exec_current();
    if (exec != NULL && exec->fiber != NULL && sni_unlikely(--exec->budget < 0))
        sni_exec_rest(exec, INT64_MAX);
}

/* The same for `n` by a coroutine: true if it must give way now. Its poll then wakes itself and is
 * pending. */
static inline bool sni_is_spent_by(int n)
{
    struct sni_exec *exec = sni_exec_current();
    return exec != NULL && exec->fiber == NULL && sni_unlikely((exec->budget -= n) < 0);
}

static inline bool sni_is_spent(void)
{
    return sni_is_spent_by(1);
}

enum { SNI_SELF_CORO = 8 };

/* Who runs: a number that differs between fibers and threads that live at the same time, a multiple
 * of 8, never 0. All coroutines are SNI_SELF_CORO: one task may poll several. */
static inline uintptr_t sni_exec_self(void)
{
    const struct sni_exec *exec = sni_exec_current();
    if (sni_unlikely(exec == NULL))
        return sni_exec_thread();
    return exec->fiber != NULL ? (uintptr_t)exec->fiber : SNI_SELF_CORO;
}

/* The same, and one operation is spent. 0: that was one too many; then sni_exec_spent gives way, as
 * sni_spend_many, and tells. */
static inline uintptr_t sni_exec_spend(void)
{
    struct sni_exec *exec = sni_exec_current();
    if (sni_unlikely(exec == NULL))
        return sni_exec_thread();
    if (sni_unlikely(--exec->budget < 0))
        return 0;
    return exec->fiber != NULL ? (uintptr_t)exec->fiber : SNI_SELF_CORO;
}

uintptr_t sni_exec_spent(int64_t until_ns);

/* Before a lock is taken, so that nobody waits for it while its new holder gives way. */
static inline uintptr_t sni_spend_as_self(int64_t until_ns)
{
    uintptr_t self = sni_exec_spend();
    return sni_likely(self != 0) ? self : sni_exec_spent(until_ns);
}

/* For reports of debug builds: where `who` (sni_exec_self) was spawned, "file.c:42"; NULL: that is
 * not known, as always of a thread. Whoever makes fibers tells how to find out. */
const char *sni_exec_place(uintptr_t who);
void sni_exec_set_place(const char *(*place)(uintptr_t who));

/* Make `exec` (or NULL) the executor of this thread. */
void sni_exec_set(struct sni_exec *exec);

#endif
