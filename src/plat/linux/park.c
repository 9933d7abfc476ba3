/* SPDX-License-Identifier: MIT */
/* park.c (linux) - sleeping on a word by futex, and the mutex made of it.
 *
 * Park: FUTEX_WAIT_BITSET is taken for its deadline, which is absolute and of the monotonic
 * clock; the older FUTEX_WAIT takes a duration, which a signal would restart. The futexes are
 * private, that is, keyed by address alone: cheaper, and a wake of memory that is gone is harmless.
 *
 * Signals: an interrupted sleep is resumed, so nobody above needs to know EINTR. In between we
 * wait for nothing by a call that the thread sanitizer knows: it keeps handlers back until then,
 * and does not know futexes, so that the handler of a parked thread would never run.
 *
 * The mutex, with the three values of thread.h:
 *
 *     lock     FREE -> HELD, one compare and swap. Else spin a while. Else exchange WANTED in:
 *              who finds FREE has it, who does not parks while the word is WANTED, and repeats.
 *     unlock   exchange FREE in; who takes out WANTED unparks one.
 *
 * Invariant: a thread is parked => the word is WANTED, or the one who took WANTED out is about to
 * unpark, or an unparked thread is about to exchange WANTED in. So nobody is left behind: a thread
 * that has parked locks by WANTED, never by HELD, since it cannot know that it was alone. The
 * price is one unpark too many when a crowd disperses.
 *
 * Order: whoever exchanges FREE out acquires what the exchange that put FREE in released. Park and
 * unpark order nothing and need not.
 *
 * Spinning: a wake costs some 30 us here when the other processor sleeps (FACTS, P6), and the house
 * holds a mutex for far less, so looking again for some 20 us nearly always saves the sleep; ever
 * more rarely, see sni_plat_back_off: a channel between two cores takes 25 ns per message so, and
 * 65 otherwise. Once per lock only: who has slept parks again, else waiters on a long-held mutex
 * would burn.
 *
 * Rejected: a lock for some instructions that nobody sleeps on, whose unlock is a plain store (no
 * faster where it was tried, channels; and a holder that loses its processor costs the others a
 * sleep too long); pthread_mutex (40 bytes, an opaque call on the fast path, unknown to the model
 * explorer); a fair queue (convoys; nobody here needs fairness for some instructions' work). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "plat/thread.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sinew/errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    PAUSES = 4,        /* of the first round                                            */
    PAUSE_ROUNDS = 8,  /* each twice as long as the one before: 20 us in all            */
    YIELD_ROUNDS = 64, /* then turns for other threads, before sleeps of SLEEP_NS       */
    SLEEP_NS = 50000,
};

/* Systems of 32 bits have a call of its own for 64 bits of time, those of 64 bits have one. */
#ifdef SYS_futex_time64
enum { FUTEX_CALL = SYS_futex_time64 };
#else
enum { FUTEX_CALL = SYS_futex };
#endif

/* As the kernel reads it. */
struct deadline {
    int64_t s;
    int64_t ns;
};

SNI_NEVER_INLINE int sni_plat_park(uint32_t *word, uint32_t expected, int64_t until_ns)
{
    const int64_t second_ns = 1000000000;
    struct deadline until = {0, 0}; /* has passed; the kernel refuses negative ones */
    if (until_ns > 0)
        until = (struct deadline){until_ns / second_ns, until_ns % second_ns};
    const struct deadline *limit = until_ns == INT64_MAX ? NULL : &until;

    for (;;) {
        if (syscall(FUTEX_CALL, word, FUTEX_WAIT_BITSET_PRIVATE, expected, limit, NULL,
                    FUTEX_BITSET_MATCH_ANY) == 0)
            return 0;
        switch (errno) {
        case EAGAIN: /* the word differed */
            return 0;
        case ETIMEDOUT:
            return -ETIMEDOUT;
        default: /* a signal: the deadline is absolute, so sleep on */
            sni_assert(errno == EINTR, "a thread parked on memory that is no aligned word");
            (void)poll(NULL, 0, 0); /* see "Signals" */
        }
    }
}

void sni_plat_unpark(uint32_t *word, int n)
{
    sni_assert_debug(n > 0, "an unpark that may wake nobody");
    (void)syscall(FUTEX_CALL, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* Twice as long each time: whoever works with what a lock guards does so ten times as fast while
 * nobody else touches it, and gets through many turns while we wait for one. */
void sni_plat_back_off(unsigned round)
{
    if (round < PAUSE_ROUNDS) {
        sni_cpu_pauses(PAUSES << round);
    } else if (round < YIELD_ROUNDS) {
        (void)sched_yield();
    } else {
        (void)nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    }
}

/* The mutex became free while we looked at it, and we got it. */
static bool spin(struct sni_mutex *m)
{
    for (unsigned round = 0; round < PAUSE_ROUNDS; round++) {
        sni_plat_back_off(round);
        /* relaxed: only a hint, the acquire is in trylock */
        if (sni_atomic_load(&m->word_, relaxed) == SNI_MUTEX_FREE && sni_mutex_trylock(m))
            return true;
    }
    return false;
}

SNI_COLD void sni_mutex_lock_slow(struct sni_mutex *m)
{
    if (spin(m))
        return;
    /* acquire: pairs with the release in sni_mutex_unlock */
    while (sni_atomic_exchange(&m->word_, SNI_MUTEX_WANTED, acquire) != SNI_MUTEX_FREE)
        (void)sni_plat_park(&m->word_.raw_, SNI_MUTEX_WANTED, INT64_MAX);
}

SNI_COLD void sni_mutex_unlock_slow(struct sni_mutex *m)
{
    sni_plat_unpark(&m->word_.raw_, 1);
}
