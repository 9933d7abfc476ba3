/* SPDX-License-Identifier: MIT */
/* cond.c - wait until something that a mutex guards has changed.
 *
 * A guest queues here and unlocks the mutex, in this order: who changes the state afterwards holds
 * the mutex, so it finds the guest, and no signal is lost.
 *
 * To signal is to move the first guest from this queue to that of its mutex, with both gates locked
 * (this one first): there it waits for the mutex like any other, which it must have before it can
 * go on. So a broadcast with the mutex held wakes nobody who would only go back to sleep, and one
 * without wakes one, whose unlock wakes the next.
 *
 * From the move on the guest *is signalled*: when its time is up later, its wait was a success all
 * the same. One whose time was up before is not moved; the signal goes to the next. A guest that is
 * signalled and dropped signals in its place.
 *
 * Who must not wait does not let go of the mutex: it might have to wait for that afterwards. */
#include "sync/mutex.h"

#include <sinew/errno.h>

#include <assert.h>

static_assert(sizeof(sn_cond) == 16, "sn_cond has grown");

/* Returns  0: the guest holds its mutex; -EPERM (misuse) */
static int check_held(const struct sni_guest *guest)
{
    if (sni_mutex_is_held_by(guest->mutex, guest->who))
        return 0;
    return sni_gate_misuse(-EPERM, "a condition is waited for by who does not hold its mutex",
                           "held by", sni_mutex_holder(guest->mutex));
}

static int enter(struct sni_guest *guest)
{
    sn_cond *cond = guest->object;
    if (guest->is_signalled) {
        guest->until = SN_FOREVER; /* it is a success already */
        return sni_mutex_enter(guest);
    }
    int rc = check_held(guest);
    if (rc < 0)
        return rc;
    uint64_t word = sni_gate_lock(&cond->gate_);
    sni_gate_push(&cond->gate_, guest);
    sni_gate_unlock(&cond->gate_, word);
    rc = sni_mutex_unlock_as(guest->mutex, guest->who);
    sni_assert(rc == 0, "a mutex was taken away from who held it");
    return SNI_GATE_QUEUED;
}

static void refuse(struct sni_guest *guest, int result)
{
    sni_mutex_refuse(guest, result);
    if (guest->is_signalled)
        (void)sn_cond_signal(guest->object);
}

static const struct sni_gate_kind cond_kind = {
    .enter = enter, .refuse = refuse, .name = "condition"};

int sn_cond_wait(sn_cond *cond, sn_mutex *m, sn_deadline until)
{
    struct sni_guest guest;
    sni_guest_init(&guest, &cond_kind, &cond->gate_, cond, 0);
    guest.mutex = m;
    int rc;
    if (until.ns == SN_NOWAIT.ns) {
        rc = check_held(&guest);
        return rc < 0 ? rc : -ETIMEDOUT;
    }
    rc = sni_guest_wait(&guest, until);
    if (rc == 0 || rc == -EPERM || rc == -EDEADLK)
        return rc;
    bool was_shielded = sni_wait_shield(true); /* who is cancelled gets its mutex back, too */
    int locked = sn_mutex_lock(m, SN_FOREVER);
    (void)sni_wait_shield(was_shielded);
    if (locked < 0)
        return locked;
    return guest.is_signalled ? 0 : rc;
}

sn_future *sn_cond_wait_op(sn_sync_state *state, sn_cond *cond, sn_mutex *m)
{
    return sni_guest_op_on(state, &cond_kind, &cond->gate_, cond, m);
}

/* relaxed: who has held the mutex since a guest unlocked it has acquired that it had queued. */
static bool is_waited_for(const sn_cond *cond)
{
    return sni_atomic_load(&cond->gate_.word_, relaxed) != 0;
}

/* With the gate locked: move the first guest to its mutex. False: its time was up. */
static bool move_first(sn_cond *cond, struct sni_wakes *wakes)
{
    struct sni_guest *guest = sni_gate_first(&cond->gate_);
    sni_gate_remove(&cond->gate_, guest);
    if (sni_wait_is_over(&guest->waiter))
        return false;
    guest->is_signalled = true;
    sni_mutex_adopt(guest->mutex, guest, wakes);
    return true;
}

int sn_cond_signal(sn_cond *cond)
{
    if (!is_waited_for(cond))
        return 0;
    struct sni_wakes wakes;
    sni_wakes_init(&wakes);
    uint64_t word = sni_gate_lock(&cond->gate_);
    while (sni_gate_first(&cond->gate_) != NULL && !move_first(cond, &wakes))
        ;
    sni_gate_unlock(&cond->gate_, word);
    sni_wakes_send(&wakes);
    return 0;
}

int sn_cond_broadcast(sn_cond *cond)
{
    if (!is_waited_for(cond))
        return 0;
    struct sni_wakes wakes;
    sni_wakes_init(&wakes);
    uint64_t word = sni_gate_lock(&cond->gate_);
    while (sni_gate_first(&cond->gate_) != NULL)
        (void)move_first(cond, &wakes);
    sni_gate_unlock(&cond->gate_, word);
    sni_wakes_send(&wakes);
    return 0;
}

int sn_cond_finish(sn_cond *cond)
{
    return sni_gate_finish(&cond->gate_, true, 0);
}
