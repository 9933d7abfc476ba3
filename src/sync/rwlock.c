/* SPDX-License-Identifier: MIT */
/* rwlock.c - one who writes, or many who read.
 *
 * The word of the gate:
 *
 *     WRITER    somebody writes; the upper bits say who (sni_exec_self)
 *     READER    otherwise: how many read, in units of this
 *
 * Guests are served in order of arrival; readers that stand one behind the other go in together.
 * While anybody waits, who comes queues. So a writer waits for those who came before it and no
 * others, however many readers come; and a reader waits for the writers before it, never for those
 * that come later.
 *
 * A guest that leaves the queue was perhaps a writer that kept readers out, so the queue is served
 * then, too. To downgrade is to become the first of the readers, before anybody else can write.
 *
 * Rejected: a strict precedence of writers (readers starve), or of readers (writers do). */
#include "sync/gate.h"

#include <sinew/errno.h>

#include <assert.h>

#define WRITER 4u
#define READER 8u
#define OWNER  (~(uint64_t)7)

enum { TO_READ, TO_WRITE }; /* what a guest wants: its units */

static_assert(sizeof(sn_rwlock) == 16, "sn_rwlock has grown");

/* Who writes; 0: nobody does. Readers are not known by name. */
static uintptr_t writer_of(uint64_t word)
{
    return (word & WRITER) != 0 ? word & OWNER : 0;
}

/* Let a guest in, if that is possible now. */
static bool admit(sn_rwlock *lock, struct sni_guest *guest, uint64_t *word, struct sni_wakes *wakes)
{
    bool writes = guest->units == TO_WRITE;
    uint64_t next = writes ? (guest->who | WRITER) : *word + READER;
    if (writes ? *word != 0 : (*word & WRITER) != 0)
        return false;
    if (sni_gate_claim(&lock->gate_, guest, 0, wakes))
        *word = next;
    return true;
}

/* With the gate locked: serve those whose turn it is. Unlocks. */
static void serve(sn_rwlock *lock, uint64_t word)
{
    struct sni_wakes wakes;
    sni_wakes_init(&wakes);
    struct sni_guest *guest;
    while ((guest = sni_gate_first(&lock->gate_)) != NULL && admit(lock, guest, &word, &wakes))
        ;
    sni_gate_unlock(&lock->gate_, word);
    sni_wakes_send(&wakes);
}

static int enter(struct sni_guest *guest)
{
    sn_rwlock *lock = guest->object;
    uint64_t word = sni_gate_lock(&lock->gate_);
    bool writes = guest->units == TO_WRITE;
    bool may = sni_gate_first(&lock->gate_) == NULL && (writes ? word == 0 : (word & WRITER) == 0);
    int rc = SNI_GATE_QUEUED;
    if (may) {
        word = writes ? (guest->who | WRITER) : word + READER;
        rc = 0;
    } else if (guest->until.ns == SN_NOWAIT.ns) {
        rc = -ETIMEDOUT;
    } else if (word == (guest->who | WRITER) && guest->until.ns == SN_FOREVER.ns &&
               !sni_guest_is_coroutine(guest)) {
        rc = -EDEADLK;
    } else {
        sni_gate_push(&lock->gate_, guest);
    }
    sni_gate_unlock(&lock->gate_, word);
    if (rc == -EDEADLK)
        return sni_gate_misuse(-EDEADLK, "a lock is wanted by who writes under it, and never free",
                               "held by", guest->who);
    return rc;
}

static void left(struct sni_guest *guest, uint64_t word)
{
    serve(guest->object, word);
}

/* With the gate locked: one reader less. */
static void stop_reading(sn_rwlock *lock, uint64_t word)
{
    word -= READER;
    if (word == 0)
        serve(lock, word);
    else
        sni_gate_unlock(&lock->gate_, word);
}

static void refuse(struct sni_guest *guest, int result)
{
    sn_rwlock *lock = guest->object;
    if (result < 0)
        return;
    uint64_t word = sni_gate_lock(&lock->gate_);
    if (guest->units == TO_WRITE)
        serve(lock, 0);
    else
        stop_reading(lock, word);
}

static uintptr_t holder(const struct sni_guest *guest)
{
    const sn_rwlock *lock = guest->object;
    return writer_of(sni_atomic_load(&lock->gate_.word_, relaxed)); /* relaxed: for people */
}

static const struct sni_gate_kind rwlock_kind = {
    .enter = enter, .left = left, .refuse = refuse, .name = "rwlock", .holder = holder};

/* ---- writing ------------------------------------------------------------------------------ */

int sn_rwlock_lock(sn_rwlock *lock, sn_deadline until)
{
    uint64_t self = sni_spend_as_self(until.ns);
    uint64_t found = 0;
    /* acquire: pairs with the release of whoever wrote or read last */
    if (sni_likely(sni_atomic_cas(&lock->gate_.word_, &found, self | WRITER, acquire, relaxed)))
        return 0;
    struct sni_guest guest;
    sni_guest_init(&guest, &rwlock_kind, &lock->gate_, lock, TO_WRITE);
    return sni_guest_wait(&guest, until);
}

sn_future *sn_rwlock_lock_op(sn_sync_state *state, sn_rwlock *lock)
{
    return sni_guest_op(state, &rwlock_kind, &lock->gate_, lock, TO_WRITE);
}

/* Whoever writes stops to, and the word becomes `next`. */
static int stop_writing(sn_rwlock *lock, uint64_t next)
{
    uint64_t self = sni_exec_self();
    uint64_t found = self | WRITER;
    /* release: pairs with the acquire of whoever writes or reads next */
    if (sni_likely(sni_atomic_cas(&lock->gate_.word_, &found, next, release, relaxed)))
        return 0;
    uint64_t word = sni_gate_lock(&lock->gate_);
    if ((word & WRITER) == 0 || ((word & OWNER) != self && (word & OWNER) != SNI_SELF_CORO)) {
        sni_gate_unlock(&lock->gate_, word);
        return sni_gate_misuse(-EPERM,
                               "a lock was given up by somebody who does not write under it",
                               "held by", writer_of(word));
    }
    serve(lock, next);
    return 0;
}

int sn_rwlock_unlock(sn_rwlock *lock)
{
    return stop_writing(lock, 0);
}

int sn_rwlock_downgrade(sn_rwlock *lock)
{
    return stop_writing(lock, READER);
}

/* ---- reading ------------------------------------------------------------------------------ */

int sn_rwlock_lock_shared(sn_rwlock *lock, sn_deadline until)
{
    (void)sni_spend_as_self(until.ns);
    /* relaxed: a guess; acquire: pairs with the release of whoever wrote last */
    uint64_t word = sni_atomic_load(&lock->gate_.word_, relaxed);
    while ((word & (SNI_GATE_BITS | WRITER)) == 0)
        if (sni_likely(sni_atomic_cas(&lock->gate_.word_, &word, word + READER, acquire, relaxed)))
            return 0;
    struct sni_guest guest;
    sni_guest_init(&guest, &rwlock_kind, &lock->gate_, lock, TO_READ);
    return sni_guest_wait(&guest, until);
}

sn_future *sn_rwlock_lock_shared_op(sn_sync_state *state, sn_rwlock *lock)
{
    return sni_guest_op(state, &rwlock_kind, &lock->gate_, lock, TO_READ);
}

int sn_rwlock_unlock_shared(sn_rwlock *lock)
{
    /* relaxed: a guess; release: pairs with the acquire of whoever writes next */
    uint64_t word = sni_atomic_load(&lock->gate_.word_, relaxed);
    while ((word & (SNI_GATE_BITS | WRITER)) == 0 && word >= READER)
        if (sni_likely(sni_atomic_cas(&lock->gate_.word_, &word, word - READER, release, relaxed)))
            return 0;
    word = sni_gate_lock(&lock->gate_);
    if ((word & WRITER) != 0 || word == 0) {
        sni_gate_unlock(&lock->gate_, word);
        return sni_gate_misuse(-EPERM, "a lock was given up that nobody reads under", "held by",
                               writer_of(word));
    }
    stop_reading(lock, word);
    return 0;
}

int sn_rwlock_finish(sn_rwlock *lock)
{
    /* acquire: pairs with the release of whoever wrote or read last */
    uint64_t word = sni_atomic_load(&lock->gate_.word_, acquire);
    return sni_gate_finish(&lock->gate_, word == 0, writer_of(word));
}
