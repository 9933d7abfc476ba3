/* SPDX-License-Identifier: MIT */
/* current.h - what runs on this thread: the only thread-local of the library.
 *
 * An *executor* is whoever runs fibers on a thread: a scheduler's worker, or another one that
 * was plugged in. A thread outside every runtime has none.
 *
 * A fiber may go on on another thread after every suspension. Code that read the thread-local
 * before and uses it after would act on the wrong executor, and a compiler that sees the read
 * (inlining, link-time optimisation) may even keep the thread pointer itself in a register.
 * So it is read through one function that is never inlined, each time anew. */
#ifndef SINEW_WAIT_CURRENT_H
#define SINEW_WAIT_CURRENT_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sni_waiter;
struct sni_exec;
struct sni_clockwork;
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
struct sni_exec *sni_exec_current(void);

/* The time, by the clock of this thread's executor or of the machine. */
int64_t sni_now_ns(void);

/* An operation succeeded without waiting. A fiber that has done many such in a row gives way, so
 * that one whose data is always there does not keep the others waiting. */
void sni_spend(void);

/* The same for `n` of them at once, by calls that could have waited until `until_ns`: one that was
 * not to wait does not give way either, it leaves that to the next one. */
void sni_spend_many(int n, int64_t until_ns);

/* The same for a coroutine: true if it must give way now. Its poll then wakes itself and is
 * pending. */
bool sni_is_spent(void);

/* The same for `n` operations at once. */
bool sni_is_spent_by(int n);

enum { SNI_SELF_CORO = 8, SNI_SELF_SPENT = 1 };

/* Who runs: a number that differs between fibers and threads that live at the same time, a multiple
 * of 8, never 0. All coroutines are SNI_SELF_CORO: one task may poll several. */
uintptr_t sni_exec_self(void);

/* The same, and one operation is spent; with SNI_SELF_SPENT in it if that was one too many. The
 * second half then gives way, as sni_spend_many, and takes that out again. */
uintptr_t sni_exec_spend(void);
uintptr_t sni_exec_give_way(uintptr_t self, int64_t until_ns);

/* Before a lock is taken, so that nobody waits for it while its new holder gives way. */
static inline uintptr_t sni_spend_as_self(int64_t until_ns)
{
    uintptr_t self = sni_exec_spend();
    return sni_likely((self & SNI_SELF_SPENT) == 0) ? self : sni_exec_give_way(self, until_ns);
}

/* For reports of debug builds: where `who` (sni_exec_self) was spawned, "file.c:42"; NULL: that is
 * not known, as always of a thread. Whoever makes fibers tells how to find out. */
const char *sni_exec_place(uintptr_t who);
void sni_exec_set_place(const char *(*place)(uintptr_t who));

/* Make `exec` (or NULL) the executor of this thread. */
void sni_exec_set(struct sni_exec *exec);

#endif
