/* SPDX-License-Identifier: MIT */
/* barrier.c - nobody goes on before all have come.
 *
 * The word of the gate is how many have come and wait. The last one lets the others pass, and the
 * next ones begin with none. A guest whose time is up has not come after all, and is taken off;
 * unless the last one was quicker, then it has passed. */
#include "sync/gate.h"

#include <sinew/errno.h>

#include <assert.h>

static_assert(sizeof(sn_barrier) == 24, "sn_barrier has grown");

static int enter(struct sni_guest *guest)
{
    sn_barrier *barrier = guest->object;
    uint64_t word = sni_gate_lock(&barrier->gate_);
    if (sni_gate_count(word) + 1 >= barrier->parties_) {
        sni_gate_pass_all(&barrier->gate_, 0, 0);
        return 1;
    }
    int rc = SNI_GATE_QUEUED;
    if (guest->until.ns == SN_NOWAIT.ns) {
        rc = -ETIMEDOUT;
    } else {
        sni_gate_push(&barrier->gate_, guest);
        word += SNI_GATE_UNIT;
    }
    sni_gate_unlock(&barrier->gate_, word);
    return rc;
}

static void left(struct sni_guest *guest, uint64_t word)
{
    sn_barrier *barrier = guest->object;
    sni_gate_unlock(&barrier->gate_, word - SNI_GATE_UNIT);
}

static const struct sni_gate_kind barrier_kind = {.enter = enter, .left = left, .name = "barrier"};

int sn_barrier_wait(sn_barrier *barrier, sn_deadline until)
{
    struct sni_guest guest;
    sni_guest_init(&guest, &barrier_kind, &barrier->gate_, barrier, 0);
    return sni_guest_wait(&guest, until);
}

sn_future *sn_barrier_wait_op(sn_sync_state *state, sn_barrier *barrier)
{
    return sni_guest_op(state, &barrier_kind, &barrier->gate_, barrier, 0);
}

int sn_barrier_finish(sn_barrier *barrier)
{
    return sni_gate_finish(&barrier->gate_, true, 0);
}
