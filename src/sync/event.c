/* SPDX-License-Identifier: MIT */
/* event.c - something that has happened, or not yet.
 *
 * The word of the gate:
 *
 *     SET    it has happened
 *     ONE    each time that it happens is for one guest, which takes SET away
 *
 * An event for all stays set until it is reset, and everybody who waits, or comes meanwhile,
 * passes. An event for one that is set while somebody waits is given to the first directly, and is
 * not SET at all; to set it again before anybody came for it changes nothing. */
#include "sync/gate.h"

#include <sinew/errno.h>

#include <assert.h>

#define SET 4u
#define ONE 8u

static_assert(sizeof(sn_event) == 16, "sn_event has grown");
static_assert(SN_EVENT_ONE_ == ONE, "the initialiser says what event.c does");

/* The event as this waiter leaves it. */
static uint64_t after(uint64_t word)
{
    return (word & ONE) != 0 ? word & ~(uint64_t)SET : word;
}

static int enter(struct sni_guest *guest)
{
    sn_event *event = guest->object;
    uint64_t word = sni_gate_lock(&event->gate_);
    int rc = SNI_GATE_QUEUED;
    if ((word & SET) != 0) {
        word = after(word);
        rc = 0;
    } else if (guest->until.ns == SN_NOWAIT.ns) {
        rc = -ETIMEDOUT;
    } else {
        sni_gate_push(&event->gate_, guest);
    }
    sni_gate_unlock(&event->gate_, word);
    return rc;
}

static void refuse(struct sni_guest *guest, int result)
{
    sn_event *event = guest->object;
    /* relaxed: it never changes */
    if (result >= 0 && (sni_atomic_load(&event->gate_.word_, relaxed) & ONE) != 0)
        (void)sn_event_set(event);
}

static const struct sni_gate_kind event_kind = {.enter = enter, .refuse = refuse, .name = "event"};

int sn_event_wait(sn_event *event, sn_deadline until)
{
    (void)sni_spend_as_self(until.ns);
    /* acquire: pairs with the release in sn_event_set */
    uint64_t word = sni_atomic_load(&event->gate_.word_, acquire);
    if ((word & (SET | ONE)) == SET)
        return 0;
    while (word == (SET | ONE)) /* acquire: as above */
        if (sni_atomic_cas(&event->gate_.word_, &word, ONE, acquire, acquire))
            return 0;
    struct sni_guest guest;
    sni_guest_init(&guest, &event_kind, &event->gate_, event, 0);
    return sni_guest_wait(&guest, until);
}

sn_future *sn_event_wait_op(sn_sync_state *state, sn_event *event)
{
    return sni_guest_op(state, &event_kind, &event->gate_, event, 0);
}

/* With the gate locked: it has happened for one. */
static void set_for_one(sn_event *event, uint64_t word)
{
    struct sni_wakes wakes;
    sni_wakes_init(&wakes);
    struct sni_guest *guest;
    word |= SET;
    while ((word & SET) != 0 && (guest = sni_gate_first(&event->gate_)) != NULL) {
        wakes = (struct sni_wakes){0};
        if (sni_gate_claim(&event->gate_, guest, 0, &wakes))
            word &= ~(uint64_t)SET;
    }
    sni_gate_unlock(&event->gate_, word);
    sni_wakes_send(&wakes);
}

int sn_event_set(sn_event *event)
{
    /* relaxed: a guess; release: pairs with the acquire of who finds it set */
    uint64_t word = sni_atomic_load(&event->gate_.word_, relaxed);
    while ((word & SNI_GATE_BITS) == 0)
        if (sni_atomic_cas(&event->gate_.word_, &word, word | SET, release, relaxed))
            return 0;
    word = sni_gate_lock(&event->gate_);
    if ((word & ONE) != 0)
        set_for_one(event, word);
    else
        sni_gate_pass_all(&event->gate_, word | SET, 0);
    return 0;
}

int sn_event_reset(sn_event *event)
{
    uint64_t word = sni_gate_lock(&event->gate_);
    sni_gate_unlock(&event->gate_, word & ~(uint64_t)SET);
    return 0;
}

bool sn_event_get(const sn_event *event)
{
    /* acquire: pairs with the release in sn_event_set */
    return (sni_atomic_load(&event->gate_.word_, acquire) & SET) != 0;
}

int sn_event_finish(sn_event *event)
{
    return sni_gate_finish(&event->gate_, true, 0);
}
