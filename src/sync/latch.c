/* SPDX-License-Identifier: MIT */
/* latch.c - a number that goes down to 0, once, and those who wait for that.
 *
 * The word of the gate is the number. Whoever makes it 0 lets all guests pass; it stays 0. */
#include "sync/gate.h"

#include <sinew/errno.h>

#include <assert.h>

#define UNIT     (1u << 2)
#define COUNT(w) ((w) >> 2)

static_assert(sizeof(sn_latch) == 16, "sn_latch has grown");

static int enter(struct sni_guest *guest)
{
    sn_latch *latch = guest->object;
    uint64_t word = sni_gate_lock(&latch->gate_);
    int rc = SNI_GATE_QUEUED;
    if (COUNT(word) == 0)
        rc = 0;
    else if (guest->until.ns == SN_NOWAIT.ns)
        rc = -ETIMEDOUT;
    else
        sni_gate_push(&latch->gate_, guest);
    sni_gate_unlock(&latch->gate_, word);
    return rc;
}

static const struct sni_gate_kind latch_kind = {.enter = enter, .name = "latch"};

int sn_latch_arrive(sn_latch *latch, uint32_t n)
{
    uint64_t less = (uint64_t)n * UNIT;
    /* relaxed: a guess */
    uint64_t word = sni_atomic_load(&latch->gate_.word_, relaxed);
    while ((word & SNI_GATE_BITS) == 0 && COUNT(word) >= n)
        /* acq_rel: what all wrote before they came is there for those who wait */
        if (sni_likely(sni_atomic_cas(&latch->gate_.word_, &word, word - less, acq_rel, relaxed)))
            return 0;
    word = sni_gate_lock(&latch->gate_);
    if (COUNT(word) < n) {
        sni_gate_unlock(&latch->gate_, word);
        return sni_misuse(-ERANGE, "more have arrived at a latch than it was made for");
    }
    word -= less;
    if (COUNT(word) == 0)
        sni_gate_pass_all(&latch->gate_, word, 0);
    else
        sni_gate_unlock(&latch->gate_, word);
    return 0;
}

int sn_latch_wait(sn_latch *latch, sn_deadline until)
{
    /* acquire: pairs with the release in sn_latch_arrive */
    if (sni_atomic_load(&latch->gate_.word_, acquire) == 0)
        return 0;
    struct sni_guest guest;
    sni_guest_init(&guest, &latch_kind, &latch->gate_, latch, 0);
    return sni_guest_wait(&guest, until);
}

sn_future *sn_latch_wait_op(sn_sync_state *state, sn_latch *latch)
{
    return sni_guest_op(state, &latch_kind, &latch->gate_, latch, 0);
}

int sn_latch_finish(sn_latch *latch)
{
    return sni_gate_finish(&latch->gate_, true, 0);
}
