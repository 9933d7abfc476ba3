/* SPDX-License-Identifier: MIT */
/* mutex.c - the lock that tasks and threads share.
 *
 * The word of its gate (gate.h):
 *
 *     OWNER    who holds it (sni_exec_self), 0: nobody. All coroutines are one owner
 *     WOKEN    a guest was told to try, and has not yet: nobody else needs to be told
 *
 * To lock is to change 0 to self, to unlock is to change self to 0: one read-modify-write each, and
 * the second finds out in passing whether it is the owner that unlocks. While a guest that was told
 * is on its way, both still are, with the other bits as they are. Everything else is done with the
 * gate locked.
 *
 * Unlocking frees the mutex and tells the first guest to try. Whoever comes meanwhile may take it
 * first (*barging*): a task that locks and unlocks many times in its turn does so at full speed,
 * and a mutex is not idle while the one that was told is on its way. The guest that loses so queues
 * again, in front; when it has lost LOSSES_MAX times, the next unlock makes it the owner. So are
 * all guests of a fair mutex: first come, first served.
 *
 * Invariant: guests are queued and nobody owns the mutex => WOKEN. Only the guest that was told
 * clears it: having taken the mutex, whose unlock will see to the others; or queued again behind an
 * owner whose unlock will; or gone, by passing it on (sni_mutex_refuse).
 *
 * Before it queues, a guest looks some times whether the mutex has become free, ever more rarely:
 * each look takes the word away from the owner's processor. If the owner does not run on another
 * one, looking is for nothing. Which one it is, the past tells: looks that were of use earn a mutex
 * credit, those that were not cost it.
 *
 * Owning is a matter of fibers and threads. A child that runs on the stack of who joins it counts
 * as the joiner. If it wants a lock that the joiner holds, both wait for each other anyway.
 *
 * Orders: taking the mutex acquires, leaving it releases, in the same word. A guest that is made
 * the owner gets the same from its claim. */
#include "sync/mutex.h"

#include <sinew/errno.h>

#include <assert.h>

#define WOKEN 4u
#define OWNER (~(uint64_t)7)

enum {
    LOSSES_MAX = 3,
    CREDIT_MAX = 16,  /* of looking                            */
    CREDIT_TRY = 16,  /* without credit: one of so many looks  */
    PAUSES_MAX = 128, /* before the last look                   */
};

/* Before the first look. */
#ifndef SNI_MUTEX_PAUSES
#define SNI_MUTEX_PAUSES 16
#endif

static_assert(sizeof(sn_mutex) == 24, "sn_mutex has grown");

/* Nobody owns it: tell the next, or make it the owner. Returns the word. */
static uint64_t pass_on(sn_mutex *m, uint64_t word, struct sni_wakes *wakes)
{
    struct sni_guest *guest;
    while ((guest = sni_gate_first(&m->gate_)) != NULL) {
        uintptr_t who = guest->who;
        if (m->fair_ != 0 || guest->losses >= LOSSES_MAX) {
            if (sni_gate_claim(&m->gate_, guest, 0, wakes))
                return word | who;
        } else if ((word & WOKEN) != 0) {
            return word;
        } else {
            guest->is_woken = true;
            if (sni_gate_claim(&m->gate_, guest, SNI_GATE_AGAIN, wakes))
                return word | WOKEN;
        }
    }
    return word;
}

/* With the gate locked: the owner lets go. */
static void release(sn_mutex *m, uint64_t word)
{
    struct sni_wakes wakes;
    sni_wakes_init(&wakes);
    word = pass_on(m, word & ~OWNER, &wakes);
    sni_gate_unlock(&m->gate_, word);
    sni_wakes_send(&wakes);
}

int sni_mutex_enter(struct sni_guest *guest)
{
    sn_mutex *m = guest->mutex;
    uint64_t word = sni_gate_lock(&m->gate_);
    bool was_told = guest->is_woken;
    int rc = 0;
    if (was_told)
        word &= ~(uint64_t)WOKEN;
    if ((word & OWNER) == 0) {
        word |= guest->who;
    } else if (guest->until.ns == SN_NOWAIT.ns) {
        rc = -ETIMEDOUT;
    } else if ((word & OWNER) == guest->who && guest->until.ns == SN_FOREVER.ns &&
               !sni_guest_is_coroutine(guest)) {
        rc = -EDEADLK;
    } else {
        guest->is_woken = false;
        guest->losses = (uint16_t)(guest->losses + was_told);
        if (was_told)
            sni_gate_push_front(&m->gate_, guest);
        else
            sni_gate_push(&m->gate_, guest);
        rc = SNI_GATE_QUEUED;
    }
    sni_gate_unlock(&m->gate_, word);
    if (rc == -EDEADLK)
        return sni_gate_misuse(-EDEADLK,
                               "a mutex is locked by who holds it, and would never be free",
                               "held by", guest->who);
    return rc;
}

void sni_mutex_refuse(struct sni_guest *guest, int result)
{
    sn_mutex *m = guest->mutex;
    if (result < 0)
        return;
    uint64_t word = sni_gate_lock(&m->gate_);
    if (result == SNI_GATE_AGAIN)
        word &= ~(uint64_t)WOKEN;
    if (result == SNI_GATE_AGAIN && (word & OWNER) != 0)
        sni_gate_unlock(&m->gate_, word);
    else
        release(m, word);
}

void sni_mutex_adopt(sn_mutex *m, struct sni_guest *guest, struct sni_wakes *wakes)
{
    uint64_t word = sni_gate_lock(&m->gate_);
    sni_gate_push(&m->gate_, guest);
    if ((word & OWNER) == 0)
        word = pass_on(m, word, wakes);
    sni_gate_unlock(&m->gate_, word);
}

static const struct sni_gate_kind mutex_kind = {
    .enter = sni_mutex_enter, .refuse = sni_mutex_refuse, .name = "mutex"};

/* ---- locking ---------------------------------------------------------------------------- */

/* Look for some time, and ever more rarely. True: it is ours. */
static bool spin(sn_mutex *m, uintptr_t self)
{
    for (int pauses = SNI_MUTEX_PAUSES; pauses <= PAUSES_MAX; pauses *= 2) {
        sni_cpu_pauses(pauses);
        /* relaxed: a guess; acquire: pairs with the release of whoever held it */
        uint64_t word = sni_atomic_load(&m->gate_.word_, relaxed);
        if ((word & (OWNER | SNI_GATE_LOCKED)) == 0 &&
            sni_atomic_cas(&m->gate_.word_, &word, word | self, acquire, relaxed))
            return true;
    }
    return false;
}

/* Whether to look at all; and what came of it is remembered. Numbers that are a little wrong, when
 * two write at once, do no harm. */
static bool spin_if_it_pays(sn_mutex *m, uintptr_t self)
{
    int32_t credit = sni_atomic_load(&m->credit_, relaxed); /* relaxed: a hint, here and below */
    if (credit < 0) {
        sni_atomic_store(&m->credit_, credit + 1, relaxed); /* relaxed: as above */
        return false;
    }
    bool ours = spin(m, self);
    if (ours)
        credit = credit < CREDIT_MAX ? credit + 1 : credit;
    else
        credit = credit > 1 ? credit - 2 : -CREDIT_TRY;
    sni_atomic_store(&m->credit_, credit, relaxed); /* relaxed: as above */
    return ours;
}

/* At once, if nobody owns it and the gate is not locked. acquire: pairs with the release of whoever
 * held it */
static inline bool take_free(sn_mutex *m, uintptr_t self, uint64_t *found)
{
    return sni_atomic_cas(&m->gate_.word_, found, *found | self, acquire, relaxed);
}

/* Not inline, so that the usual case has nothing to save. */
static SNI_NEVER_INLINE int lock_slow(sn_mutex *m, uintptr_t self, sn_deadline until)
{
    if (self == 0)
        self = sni_exec_spent(until.ns);
    uint64_t found = 0;
    do {
        if (take_free(m, self, &found))
            return 0;
    } while ((found & (OWNER | SNI_GATE_LOCKED)) == 0);
    if (until.ns != SN_NOWAIT.ns && self != SNI_SELF_CORO && !sni_mutex_is_held_by(m, self) &&
        spin_if_it_pays(m, self))
        return 0;
    struct sni_guest guest;
    sni_guest_init(&guest, &mutex_kind, &m->gate_, m, 0);
    guest.mutex = m;
    return sni_guest_wait(&guest, until);
}

int sn_mutex_lock(sn_mutex *m, sn_deadline until)
{
    uintptr_t self = sni_exec_spend();
    uint64_t found = 0;
    if (sni_likely(self != 0 && take_free(m, self, &found)))
        return 0;
    return lock_slow(m, self, until);
}

sn_future *sn_mutex_lock_op(sn_sync_state *state, sn_mutex *m)
{
    return sni_guest_op_on(state, &mutex_kind, &m->gate_, m, m);
}

bool sni_mutex_is_held_by(const sn_mutex *m, uintptr_t who)
{
    /* relaxed: only who holds it can find itself there */
    return (sni_atomic_load(&m->gate_.word_, relaxed) & OWNER) == who;
}

uintptr_t sni_mutex_holder(const sn_mutex *m)
{
    return sni_atomic_load(&m->gate_.word_, relaxed) & OWNER; /* relaxed: for people */
}

/* ---- unlocking -------------------------------------------------------------------------- */

/* As lock_slow. */
static SNI_NEVER_INLINE int unlock_slow(sn_mutex *m, uintptr_t self)
{
    uint64_t word = sni_gate_lock(&m->gate_); /* who was just made the owner is there only now */
    uint64_t owner = word & OWNER;
    if (owner == 0 || (owner != self && owner != SNI_SELF_CORO)) {
        sni_gate_unlock(&m->gate_, word);
        return sni_gate_misuse(-EPERM, "a mutex was unlocked by somebody who does not hold it",
                               "held by", owner);
    }
    release(m, word);
    return 0;
}

int sni_mutex_unlock_as(sn_mutex *m, uintptr_t who)
{
    uint64_t found = who;
    /* release: pairs with the acquire of whoever takes it next */
    if (sni_likely(sni_atomic_cas(&m->gate_.word_, &found, 0, release, relaxed)))
        return 0;
    while ((found & ~(uint64_t)SNI_GATE_WAITED) == (who | WOKEN)) {
        /* release: as above */
        if (sni_atomic_cas(&m->gate_.word_, &found, found & ~OWNER, release, relaxed))
            return 0;
    }
    return unlock_slow(m, who);
}

int sn_mutex_unlock(sn_mutex *m)
{
    return sni_mutex_unlock_as(m, sni_exec_self());
}

int sn_mutex_finish(sn_mutex *m)
{
    /* acquire: pairs with the release of whoever held it last */
    uint64_t word = sni_atomic_load(&m->gate_.word_, acquire);
    return sni_gate_finish(&m->gate_, (word & OWNER) == 0, word & OWNER);
}
