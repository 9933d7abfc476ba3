/* SPDX-License-Identifier: MIT */
/* gate.h - what all the primitives of sync.h are made of: a word, and a queue of those who wait.
 *
 * Words
 *   gate    the word and the queue, 16 bytes; it lies in the primitive
 *   locked  a bit of the word: whoever set it alone may change the word and the queue
 *   guest   one who waits at a gate: a fiber or a thread, in its frame, or a coroutine's operation
 *
 * The upper 62 bits of the word belong to the primitive. While nobody waits and the gate is not
 * locked, they are changed by one compare and swap: that is the fast path, it expects both lower
 * bits to be 0. Everybody else locks the gate.
 *
 * A primitive is a *kind*: what a guest must do to enter, and what to do if it is gone. From that
 * gate.c makes the three ways to wait. See gate.c for who may touch a guest when. */
#ifndef SINEW_SYNC_GATE_H
#define SINEW_SYNC_GATE_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/list.h"
#include "wait/await.h"
#include "wait/place.h"
#include "wait/wait.h"

#include <sinew/sync.h>

enum {
    SNI_GATE_LOCKED = 1,
    SNI_GATE_WAITED = 2, /* the queue is not empty */
    SNI_GATE_BITS = 3,   /* both                   */
    SNI_GATE_UNIT = 4,   /* of a word that counts: sni_gate_count */

    SNI_GATE_QUEUED = 1 << 20, /* from enter: it waits now  */
    SNI_GATE_AGAIN,            /* from a claim: enter again */
};

/* Wakes that are remembered here, and not in guests or not at all: see gate.c. */
#ifndef SNI_GATE_WAKES_MAX
#define SNI_GATE_WAKES_MAX 16
#endif

struct sni_guest;

/* What a primitive does. Results of at least 0 are good. */
struct sni_gate_kind {
    /* Lock the gate, take what is wanted or sni_gate_push, unlock it.
     *
     * Returns  SNI_GATE_QUEUED, or a result: also that which a guest gets that cannot wait */
    int (*enter)(struct sni_guest *guest);

    /* A guest has left the queue before its turn. With the gate locked, the word as it was; must
     * unlock it. NULL: nothing but that. */
    void (*left)(struct sni_guest *guest, uint64_t word);

    /* A guest does not exist any more: pass on what it was given by a claim with `result`; if that
     * is negative, it was given nothing in the queue where it stood last. NULL: nothing. */
    void (*refuse)(struct sni_guest *guest, int result);

    const char *name; /* of the future, and for reports */

    /* For reports: who has it at this moment (sni_exec_self), so that no other can let a guest in;
     * 0: nobody, or that is not known. NULL: never is. */
    uintptr_t (*holder)(const struct sni_guest *guest);
};

struct sni_guest {
    struct sni_waiter waiter;
    const struct sni_gate_kind *kind; /* these four: immutable while it is queued            */
    void *object;
    uintptr_t who;               /* sni_exec_self                                           */
    sn_deadline until;           /* SN_NOWAIT: does not wait; a coroutine's: SN_FOREVER     */
    SNI_ATOMIC(sn_gate_ *) gate; /* where it is queued; changes under the locks of both     */
    struct sni_lent lent;        /* a fiber's                                               */
    const sn_gate_ *home;        /* immutable: where it came first                          */
    sn_mutex *mutex;             /* immutable: that of a condition                          */
    uintptr_t sender;            /* a coroutine's that was claimed: who will wake it        */
    uint32_t units;              /* the kind's: how much it wants                           */
    uint16_t losses;             /* how often it was woken for a mutex that was taken again */
    bool is_queued;              /* these four: under the gate's lock                       */
    bool is_passed;              /* claimed or not: what it waited for has come to pass     */
    bool is_woken;               /* it was told to try for the mutex                        */
    bool is_signalled;           /* its condition was signalled                             */
};

/* ---- the lock --------------------------------------------------------------------------- */

/* The rare half: it is locked. */
uint64_t sni_gate_lock_slow(sn_gate_ *gate);

/* Lock the gate, for a few instructions. Returns the word, without the lower bits. */
static inline uint64_t sni_gate_lock(sn_gate_ *gate)
{
    /* relaxed: a first guess; acquire: pairs with the release in sni_gate_unlock */
    uint64_t word = sni_atomic_load(&gate->word_, relaxed);
    if (sni_likely((word & SNI_GATE_LOCKED) == 0 &&
                   sni_atomic_cas(&gate->word_, &word, word | SNI_GATE_LOCKED, acquire, relaxed)))
        return word & ~(uint64_t)SNI_GATE_BITS;
    return sni_gate_lock_slow(gate);
}

/* Unlock it; the word becomes `word`, whose lower bits are 0. The gate may be gone afterwards. */
static inline void sni_gate_unlock(sn_gate_ *gate, uint64_t word)
{
    word |= gate->first_ != NULL ? SNI_GATE_WAITED : 0;
    /* release: pairs with the acquire of whoever locks it, or finds it as it now is */
    sni_atomic_store(&gate->word_, word, release);
}

/* Of a primitive whose word is a number. */
static inline uint64_t sni_gate_count(uint64_t word)
{
    return word / SNI_GATE_UNIT;
}

/* sni_gate_kind.enter of one that waits until that number is 0. */
int sni_gate_enter_at_zero(struct sni_guest *guest);

/* ---- the queue, with the gate locked ------------------------------------------------------ */

/* What is left to do when the gate is unlocked. */
struct sni_wakes {
    unsigned n;
    struct sni_list *more; /* guests of coroutines, in a ring without a head; NULL: none */
    struct sni_wake list[SNI_GATE_WAKES_MAX]; /* the first `n` */
};

/* There is nothing to do yet. */
static inline void sni_wakes_init(struct sni_wakes *wakes)
{
    wakes->n = 0;
    wakes->more = NULL;
}

/* The guest that is served next, or NULL. */
static inline struct sni_guest *sni_gate_first(const sn_gate_ *gate)
{
    struct sni_list *link = gate->first_;
    return link == NULL ? NULL : sni_container_of(link, struct sni_guest, waiter.link);
}

void sni_gate_push(sn_gate_ *gate, struct sni_guest *guest);
void sni_gate_push_front(sn_gate_ *gate, struct sni_guest *guest);
void sni_gate_remove(sn_gate_ *gate, struct sni_guest *guest);

/* Take a guest out and give it `result`. Must not be touched afterwards, whatever the outcome.
 *
 * Returns  false if its time was up before: it gets nothing */
bool sni_gate_claim(sn_gate_ *gate, struct sni_guest *guest, int result, struct sni_wakes *wakes);

/* After the gate was unlocked. */
void sni_wakes_send(const struct sni_wakes *wakes);

/* Everybody who waits now gets `result`; the word becomes `word`. Unlocks the gate, and does not
 * touch it afterwards. */
void sni_gate_pass_all(sn_gate_ *gate, uint64_t word, int result);

/* ---- waiting ------------------------------------------------------------------------------ */

/* A guest of `kind` at `gate`, for the caller. */
void sni_guest_init(struct sni_guest *guest, const struct sni_gate_kind *kind, sn_gate_ *gate,
                    void *object, uint32_t units);

/* Enter, and wait if need be.
 *
 * Returns  the result; -ETIMEDOUT, -ECANCELED; -EDEADLK in a coroutine (misuse) */
int sni_guest_wait(struct sni_guest *guest, sn_deadline until);

/* Take the guest out of the queue.
 *
 * Returns  `why`; or what it has been given before, and must now be used or refused */
int sni_guest_leave(struct sni_guest *guest, int why);

/* The same for a coroutine: enters at the first poll. */
sn_future *sni_guest_op(sn_sync_state *state, const struct sni_gate_kind *kind, sn_gate_ *gate,
                        void *object, uint32_t units);

/* The same for the mutex of `m`, or a condition with it. */
sn_future *sni_guest_op_on(sn_sync_state *state, const struct sni_gate_kind *kind, sn_gate_ *gate,
                           void *object, sn_mutex *m);

/* For reports: how guests wait. */
extern const struct sni_wait_kind sni_gate_waits;

/* Is the caller one who must not be made to wait by a call? */
bool sni_guest_is_coroutine(const struct sni_guest *guest);

/* The end of a primitive that nobody uses (`is_idle`), or waits for. `holder` is for the report:
 * sni_exec_self of who has it, or 0.
 *
 * Returns  0; -EBUSY (misuse) */
int sni_gate_finish(sn_gate_ *gate, bool is_idle, uintptr_t holder);

/* sni_misuse, of something that `who` (sni_exec_self, 0: nobody) has to do with: debug builds stop
 * with the sentence, then "; <role> <who>, used by <the caller>", and where both were spawned. */
#ifdef SINEW_DEBUG
#define sni_gate_misuse(code, sentence, role, who) \
    (sni_gate_report((sentence), (role), (who), __FILE__, __LINE__), (code))
#else
#define sni_gate_misuse(code, sentence, role, who) (code)
#endif

_Noreturn void sni_gate_report(const char *sentence, const char *role, uintptr_t who,
                               const char *file, int line);

#endif
