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

struct sni_waiter;
struct sni_exec;

/* What an executor can do for a fiber that waits. */
struct sni_exec_ops {
    /* Leave the running fiber until `waiter` is claimed. Called by the fiber itself. The
     * executor calls sni_wait_published() when the fiber's registers are saved. */
    void (*suspend)(struct sni_exec *exec, struct sni_waiter *waiter);

    /* Make a suspended fiber runnable: soon, or behind all that is runnable already. Any
     * thread. */
    void (*resume)(void *fiber);
    void (*resume_last)(void *fiber);
};

struct sni_exec {
    const struct sni_exec_ops *ops;
    void *fiber; /* the fiber that runs now; NULL while the executor runs something else */
};

/* The executor of this thread, or NULL. */
struct sni_exec *sni_exec_current(void);

/* Make `exec` (or NULL) the executor of this thread. */
void sni_exec_set(struct sni_exec *exec);

#endif
