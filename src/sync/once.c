/* SPDX-License-Identifier: MIT */
/* once.c - what is to be done once, by the first who needs it.
 *
 * The word of the gate:
 *
 *     DONE     it is done, for good
 *     OWNER    otherwise: who is doing it (sni_exec_self), 0: nobody
 *
 * Whoever finds nobody at it begins; the others wait. If it was done, they all pass. If it failed,
 * the next in the queue begins in its turn. */
#include "sync/gate.h"

#include <sinew/errno.h>

#include <assert.h>

#define DONE  4u
#define OWNER (~(uint64_t)7)

enum { PASS = 0, BEGIN = 1 }; /* what a guest is told */

static_assert(sizeof(sn_once) == 16, "sn_once has grown");

static int enter(struct sni_guest *guest)
{
    sn_once *once = guest->object;
    uint64_t word = sni_gate_lock(&once->gate_);
    int rc = SNI_GATE_QUEUED;
    if ((word & DONE) != 0) {
        rc = PASS;
    } else if ((word & OWNER) == 0) {
        word = guest->who;
        rc = BEGIN;
    } else if (guest->until.ns == SN_NOWAIT.ns) {
        rc = -ETIMEDOUT;
    } else if (word == guest->who && guest->until.ns == SN_FOREVER.ns &&
               !sni_guest_is_coroutine(guest)) {
        rc = -EDEADLK;
    } else {
        sni_gate_push(&once->gate_, guest);
    }
    sni_gate_unlock(&once->gate_, word);
    if (rc == -EDEADLK)
        return sni_gate_misuse(-EDEADLK, "what is done once waits for itself to be done",
                               "begun by", guest->who);
    return rc;
}

/* With the gate locked: it was not done, and the next one begins. */
static void pass_on(sn_once *once)
{
    struct sni_wakes wakes;
    sni_wakes_init(&wakes);
    struct sni_guest *guest;
    uint64_t word = 0;
    while (word == 0 && (guest = sni_gate_first(&once->gate_)) != NULL) {
        uintptr_t who = guest->who;
        wakes = (struct sni_wakes){0};
        if (sni_gate_claim(&once->gate_, guest, BEGIN, &wakes))
            word = who;
    }
    sni_gate_unlock(&once->gate_, word);
    sni_wakes_send(&wakes);
}

static void refuse(struct sni_guest *guest, int result)
{
    sn_once *once = guest->object;
    if (result != BEGIN)
        return;
    (void)sni_gate_lock(&once->gate_);
    pass_on(once);
}

static uintptr_t holder(const struct sni_guest *guest)
{
    const sn_once *once = guest->object;
    uint64_t word = sni_atomic_load(&once->gate_.word_, relaxed); /* relaxed: for people */
    return (word & DONE) != 0 ? 0 : word & OWNER;
}

static const struct sni_gate_kind once_kind = {
    .enter = enter, .refuse = refuse, .name = "once", .holder = holder};

int sn_once_begin(sn_once *once, sn_deadline until)
{
    /* acquire: pairs with the release in sn_once_end */
    if (sni_likely((sni_atomic_load(&once->gate_.word_, acquire) & DONE) != 0))
        return PASS;
    struct sni_guest guest;
    sni_guest_init(&guest, &once_kind, &once->gate_, once, 0);
    return sni_guest_wait(&guest, until);
}

sn_future *sn_once_begin_op(sn_sync_state *state, sn_once *once)
{
    return sni_guest_op(state, &once_kind, &once->gate_, once, 0);
}

int sn_once_end(sn_once *once, int result)
{
    uint64_t word = sni_gate_lock(&once->gate_);
    uint64_t owner = word & OWNER;
    if ((word & DONE) != 0 || owner == 0 || (owner != sni_exec_self() && owner != SNI_SELF_CORO)) {
        sni_gate_unlock(&once->gate_, word);
        return sni_gate_misuse(-EPERM, "something was ended by somebody who had not begun it",
                               "begun by", owner);
    }
    if (result < 0)
        pass_on(once);
    else
        sni_gate_pass_all(&once->gate_, DONE, PASS);
    return 0;
}

int sn_once_run(sn_once *once, sn_once_fn *fn, void *arg, sn_deadline until)
{
    int rc = sn_once_begin(once, until);
    if (rc != BEGIN)
        return rc;
    rc = fn(arg);
    int ended = sn_once_end(once, rc);
    if (ended < 0)
        return ended;
    return rc < 0 ? rc : 0;
}

int sn_once_finish(sn_once *once)
{
    /* acquire: pairs with the release in sn_once_end */
    uint64_t word = sni_atomic_load(&once->gate_.word_, acquire);
    return sni_gate_finish(&once->gate_, (word & OWNER) == 0, word & OWNER);
}
