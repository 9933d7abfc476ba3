/* SPDX-License-Identifier: MIT */
/* thread.h - threads of the operating system, the mutex of the house, and how a thread sleeps.
 *
 * This is a contract with one folder of code per platform. Results are 0 or a negative errno.
 * Nothing here allocates, and nothing here knows tasks: what these functions stop is the whole
 * thread, so a fiber calls sni_mutex_lock only for a few instructions' work and never suspends
 * before it has unlocked. */
#ifndef SINEW_PLAT_THREAD_H
#define SINEW_PLAT_THREAD_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- threads -------------------------------------------------------------------------- */

enum { SNI_THREAD_NAME_BYTES = 16 }; /* with the final NUL; what Linux keeps */

/* A thread that was started. The memory is the caller's and stays where it is until the join,
 * because the new thread takes its first orders from here: so a start needs no allocation. */
struct sni_thread {
    uintptr_t handle_[2]; /* the system's name for it; size proved in thread.c */
    void (*fn_)(void *);  /* these three: written before the start, then constant */
    void *arg_;
    char name_[SNI_THREAD_NAME_BYTES];
};

/* Run fn(arg) on a new thread. `name` (NULL: none) is what top, gdb and perf show, cut to 15
 * characters. `stack_bytes` is rounded up to what the system wants; 0 is its default.
 *
 * The new thread blocks every signal but those that its own instructions raise (SEGV, BUS, FPE,
 * ILL, TRAP, ABRT, SYS) and SIGPROF. So a signal for the process is delivered to a thread of
 * the application, as before it used Sinew; and a profiler, whose SIGPROF goes to whoever burns
 * the processor, still sees the workers. The caller's own mask is as before on return.
 *
 * Threads: any.
 * Returns  0         it runs, and must be joined
 *          -EAGAIN   the system gives no more threads, or no memory for its stack
 *          -ENOMEM   the same, as some systems say it
 * Owns: `t` until the join; on an error nothing is left behind. `name` is copied. */
int sni_plat_thread_start(struct sni_thread *t, void (*fn)(void *), void *arg, const char *name,
                          size_t stack_bytes);

/* Wait until the thread has ended. What it wrote is visible afterwards. Exactly once per
 * started thread.
 *
 * Returns  0          it has ended and is gone
 *          -EDEADLK   a thread would wait for itself */
int sni_plat_thread_join(struct sni_thread *t);

/* The lowest address of a thread's stack, whoever gave it: of one that was started and is not
 * joined, or (NULL) of the caller, where a fiber asks for the thread that it runs on. May allocate.
 *
 * Returns  0, -ENOMEM, or another -errno: the system does not tell */
int sni_plat_thread_stack(const struct sni_thread *t, uintptr_t *low);

/* The system's number of the calling thread, as tools show it. A system call: ask once, keep. */
uint64_t sni_plat_thread_id(void);

/* Is the caller the only thread of the process, as far as is known without asking the system? False
 * is also said when there were others before. A hint, for what is cheaper while one is alone. */
bool sni_plat_thread_is_alone(void);

/* How many threads the process has beside `known` of them: those that the kernel made for itself,
 * and a sanitizer's, are not counted. One or a few system calls.
 *
 * Returns  the number, 0 or more; -errno: that cannot be found out */
int sni_plat_threads_beside(unsigned known);

/* Whether the program catches a signal that others, or the kernel by a clock, may send: not those
 * that its own instructions raise, SIGPROF, nor the two that the C library keeps to itself.
 *
 * Returns  0, 1; -errno: that cannot be found out */
int sni_plat_catches_signals(void);

/* How much time the calling thread has had on a processor, in nanoseconds. A system call; -1 where
 * the system does not tell. */
int64_t sni_plat_thread_cpu_ns(void);

/* Let another thread have this processor for now, if one wants it. */
void sni_plat_thread_yield(void);

/* Keep the calling thread on one processor (numbers as in cpu.h).
 *
 * Returns  0         from now on it runs there only
 *          -EINVAL   no such processor, or it is not ours to use */
int sni_plat_thread_pin(int cpu);

/* ---- park ----------------------------------------------------------------------------- */

/* Sleep while *word == expected, until somebody unparks the word, or the deadline.
 *
 * The comparison and falling asleep are one step for unparkers: who first changes the word and
 * then unparks is never missed. `until_ns` is absolute, of sni_plat_now_ns(); INT64_MAX is for
 * ever; what has passed, 0 or negative numbers included, does not sleep. Signals do not end the
 * sleep. A sleep may end late by the thread's timer slack (50 us unless changed).
 *
 * The word is of an SNI_ATOMIC(uint32_t): pass &w.raw_. Parking orders no memory; the caller's
 * operations on the word do. Costs a system call, and waking an idle processor tens of us.
 *
 * Returns  0            unparked, or the word differed, or for no reason: look again
 *          -ETIMEDOUT   `until_ns` has passed */
int sni_plat_park(uint32_t *word, uint32_t expected, int64_t until_ns);

/* Wake at most `n` of the threads parked on the word; INT_MAX for all. One system call. Only the
 * address counts: the memory may already be gone, which happens when the sleeper saw the changed
 * word by itself and went on, so a parked stranger may be woken for no reason. */
void sni_plat_unpark(uint32_t *word, int n);

/* ---- a fence in all threads ------------------------------------------------------------- */

/* Ask the system for sni_plat_fence_all: once in a process, but it may be called again. That takes
 * some microseconds while the process has one thread, and 10 to 25 ms if it has more: then it is
 * done only if the caller is `patient`.
 *
 * Threads: any.
 * Returns  0         it was granted, now or before
 *          -EBUSY    there are other threads, and the caller is not patient
 *          -ENOSYS   the system knows no such thing
 *          -EPERM    it does not let us */
int sni_plat_fence_all_prepare(bool patient);

/* Every other thread of the process executes a seq_cst fence at some moment of this call, and the
 * caller one at its beginning and at its end. So of two threads that each store and then look at
 * what the other stored, one may do without a fence of its own, if the other calls this in between;
 * the first then needs sni_atomic_half_fence, so that its compiler keeps the order. Takes about a
 * microsecond, and interrupts the threads that run, so that they also do what work the kernel has
 * put off for them.
 *
 * Returns  0
 *          -EPERM    it was not prepared, or is forbidden: there was no fence
 *          -ENOSYS   the same, as some systems say it */
int sni_plat_fence_all(void);

/* ---- waiting for some instructions ------------------------------------------------------- */

/* Wait a little for another thread to do some instructions' work. `round` counts the waits for the
 * same thing, from 0. Each is longer than the one before: pauses; then turns for other threads; at
 * last short sleeps, so that whoever is waited for comes to its end, whatever its priority. */
void sni_plat_back_off(unsigned round);

/* ---- mutex ---------------------------------------------------------------------------- */

enum {
    SNI_MUTEX_FREE = 0,
    SNI_MUTEX_HELD = 1,
    SNI_MUTEX_WANTED = 2, /* held, and somebody may be parked on it */
};

/* Excludes threads from each other. Zeroed is unlocked; it needs no finish. Neither fair nor
 * recursive. The protocol is told in linux/park.c. */
struct sni_mutex {
    SNI_ATOMIC(uint32_t) word_;
};

#define SNI_MUTEX_INIT     \
    {                      \
        {                  \
            SNI_MUTEX_FREE \
        }                  \
    }

/* The two rare halves: somebody else holds it; somebody may be parked. */
void sni_mutex_lock_slow(struct sni_mutex *m);
void sni_mutex_unlock_slow(struct sni_mutex *m);

/* True if the mutex was free and is now the caller's. */
static inline bool sni_mutex_trylock(struct sni_mutex *m)
{
    uint32_t found = SNI_MUTEX_FREE;
    /* acquire: pairs with the release in sni_mutex_unlock; relaxed: a failure tells nothing */
    return sni_atomic_cas(&m->word_, &found, SNI_MUTEX_HELD, acquire, relaxed);
}

static inline void sni_mutex_lock(struct sni_mutex *m)
{
    if (sni_unlikely(!sni_mutex_trylock(m)))
        sni_mutex_lock_slow(m);
}

static inline void sni_mutex_unlock(struct sni_mutex *m)
{
    /* release: pairs with the acquire of whoever locks next */
    uint32_t found = sni_atomic_exchange(&m->word_, SNI_MUTEX_FREE, release);
    sni_assert_debug(found != SNI_MUTEX_FREE, "a mutex was unlocked that nobody had locked");
    if (sni_unlikely(found == SNI_MUTEX_WANTED))
        sni_mutex_unlock_slow(m);
}

/* ---- brief lock ------------------------------------------------------------------------- */

/* The same for what is held for some instructions only: to unlock is a plain store, the last touch
 * of it, and nobody sleeps on it; who finds it locked backs off. So a pair has one locked
 * instruction instead of two, and that waits only for the stores before it, not for those under the
 * lock, which go on while the processor does. Zeroed is unlocked. */
struct sni_brief {
    SNI_ATOMIC(uint32_t) word_;
};

/* True if the lock was free and is now the caller's. */
static inline bool sni_brief_try(struct sni_brief *b)
{
    /* acquire: pairs with the release in sni_brief_unlock */
    return sni_atomic_exchange(&b->word_, 1, acquire) == 0;
}

/* The rare half: somebody else holds it. */
static inline void sni_brief_lock_slow(struct sni_brief *b)
{
    /* relaxed: a guess, the acquire is in sni_brief_try */
    for (unsigned round = 0; sni_atomic_load(&b->word_, relaxed) != 0 || !sni_brief_try(b); round++)
        sni_plat_back_off(round);
}

static inline void sni_brief_lock(struct sni_brief *b)
{
    if (sni_unlikely(!sni_brief_try(b)))
        sni_brief_lock_slow(b);
}

static inline void sni_brief_unlock(struct sni_brief *b)
{
    sni_atomic_store(&b->word_, 0, release); /* release: pairs with the acquire above */
}

#endif
