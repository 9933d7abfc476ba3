/* SPDX-License-Identifier: MIT */
/* fault.h - catching the touch of a page that must not be touched.
 *
 * A stack overflow leaves no stack to report it on, so each thread that runs fibers keeps a
 * second one for signals, and one handler per process asks a function of the house whether a
 * fault is ours. What is not ours goes on to whoever handled it before, or ends the process
 * just as it would have without us. */
#ifndef SINEW_PLAT_FAULT_H
#define SINEW_PLAT_FAULT_H

#include <stdbool.h>
#include <stddef.h>

/* Judges a fault at `addr`; `frame` is the machine's state for sni_plat_fault_sp. Runs in a
 * signal handler on the thread that faulted, on its alternate stack: async-signal-safe calls
 * only. It may end the process, or leave for another context for ever.
 *
 * Returns  0   not ours: the handler that was there before decides
 *          1   ours and dealt with: the instruction that faulted is tried again */
typedef int (*sni_fault_fn)(void *addr, void *frame);

/* Have `fn` asked about each SIGSEGV and SIGBUS of the process from now on. Calls nest and each
 * is undone by one sni_plat_fault_remove.
 *
 * Threads: any.
 * Returns  0        it is asked
 *          -EBUSY   another function is in place */
int sni_plat_fault_install(sni_fault_fn fn);

/* The last one puts the handlers back that were there before, unless somebody has since
 * installed others. */
void sni_plat_fault_remove(void);

/* The alternate signal stack of one thread. */
struct sni_fault_thread {
    void *base_; /* NULL: the thread had one already, which is used as it is */
    size_t bytes_;
};

/* Give the calling thread an alternate signal stack, unless it has one.
 *
 * Returns  0         it has one
 *          -ENOMEM   no memory for it
 * Owns: `t` until sni_plat_fault_thread_finish, on the same thread. */
int sni_plat_fault_thread_init(struct sni_fault_thread *t);

/* Take it away again. Fine on a zeroed `t`. */
void sni_plat_fault_thread_finish(struct sni_fault_thread *t);

/* The stack pointer, and the program counter, at the fault. */
void *sni_plat_fault_sp(const void *frame);
void *sni_plat_fault_pc(const void *frame);

#endif
