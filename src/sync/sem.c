/* SPDX-License-Identifier: MIT */
/* sem.c - a number of units that are taken and given back, some at a time.
 *
 * The word of the gate is the number of free units. Guests are served strictly in their order: one
 * that wants many is not overtaken by those that want few, and so does not starve. While anybody
 * waits, all go through the gate's lock: a release serves as many as it can, from the front.
 *
 * A guest that leaves the queue was perhaps the one that the others stood behind, so they are
 * served then, too. Units that were given to an operation that was dropped are released. */
#include "sync/gate.h"

#include <sinew/errno.h>

#include <assert.h>

#define COUNT_MAX UINT32_MAX

static_assert(sizeof(sn_sem) == 16, "sn_sem has grown");

/* With the gate locked: serve those whose turn it is. Unlocks. */
static void serve(sn_sem *sem, uint64_t word)
{
    struct sni_wakes wakes;
    sni_wakes_init(&wakes);
    struct sni_guest *guest;
    while ((guest = sni_gate_first(&sem->gate_)) != NULL && guest->units <= sni_gate_count(word)) {
        uint64_t units = guest->units;
        if (sni_gate_claim(&sem->gate_, guest, 0, &wakes))
            word -= units * SNI_GATE_UNIT;
    }
    sni_gate_unlock(&sem->gate_, word);
    sni_wakes_send(&wakes);
}

static int enter(struct sni_guest *guest)
{
    sn_sem *sem = guest->object;
    uint64_t word = sni_gate_lock(&sem->gate_);
    int rc = SNI_GATE_QUEUED;
    if (sni_gate_first(&sem->gate_) == NULL && sni_gate_count(word) >= guest->units) {
        word -= (uint64_t)guest->units * SNI_GATE_UNIT;
        rc = 0;
    } else if (guest->until.ns == SN_NOWAIT.ns) {
        rc = -ETIMEDOUT;
    } else {
        sni_gate_push(&sem->gate_, guest);
    }
    sni_gate_unlock(&sem->gate_, word);
    return rc;
}

static void left(struct sni_guest *guest, uint64_t word)
{
    serve(guest->object, word);
}

static void refuse(struct sni_guest *guest, int result)
{
    if (result >= 0)
        (void)sn_sem_release(guest->object, guest->units);
}

static const struct sni_gate_kind sem_kind = {
    .enter = enter, .left = left, .refuse = refuse, .name = "semaphore"};

int sn_sem_acquire(sn_sem *sem, uint32_t units, sn_deadline until)
{
    (void)sni_spend_as_self(until.ns);
    /* relaxed: a guess; acquire: pairs with the release of who gave the units back */
    uint64_t word = sni_atomic_load(&sem->gate_.word_, relaxed);
    while ((word & SNI_GATE_BITS) == 0 && sni_gate_count(word) >= units)
        if (sni_likely(sni_atomic_cas(&sem->gate_.word_, &word,
                                      word - (uint64_t)units * SNI_GATE_UNIT, acquire, relaxed)))
            return 0;
    struct sni_guest guest;
    sni_guest_init(&guest, &sem_kind, &sem->gate_, sem, units);
    return sni_guest_wait(&guest, until);
}

sn_future *sn_sem_acquire_op(sn_sync_state *state, sn_sem *sem, uint32_t units)
{
    return sni_guest_op(state, &sem_kind, &sem->gate_, sem, units);
}

int sn_sem_release(sn_sem *sem, uint32_t units)
{
    /* relaxed: a guess; release: pairs with the acquire of who takes the units */
    uint64_t word = sni_atomic_load(&sem->gate_.word_, relaxed);
    while ((word & SNI_GATE_BITS) == 0 && sni_gate_count(word) + units <= COUNT_MAX)
        if (sni_likely(sni_atomic_cas(&sem->gate_.word_, &word,
                                      word + (uint64_t)units * SNI_GATE_UNIT, release, relaxed)))
            return 0;
    word = sni_gate_lock(&sem->gate_);
    if (sni_gate_count(word) + units > COUNT_MAX) {
        sni_gate_unlock(&sem->gate_, word);
        return sni_misuse(-EOVERFLOW, "a semaphore is given back more than it can count");
    }
    serve(sem, word + (uint64_t)units * SNI_GATE_UNIT);
    return 0;
}

uint32_t sn_sem_get(const sn_sem *sem)
{
    return (uint32_t)sni_gate_count(
        sni_atomic_load(&sem->gate_.word_, relaxed)); /* relaxed: a number */
}

int sn_sem_finish(sn_sem *sem)
{
    return sni_gate_finish(&sem->gate_, true, 0);
}
