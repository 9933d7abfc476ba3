/* SPDX-License-Identifier: MIT */
/* latch.c - a number that goes down to 0, once, and those who wait for that.
 *
 * The word of the gate is the number. Whoever makes it 0 lets all guests pass; it stays 0. */
#include "sync/gate.h"

#include <sinew/errno.h>

#include <assert.h>

static_assert(sizeof(sn_latch) == 16, "sn_latch has grown");

static const struct sni_gate_kind latch_kind = {.enter = sni_gate_enter_at_zero, .name = "latch"};

int sn_latch_arrive(sn_latch *latch, uint32_t n)
{
    uint64_t less = (uint64_t)n * SNI_GATE_UNIT;
    /* relaxed: a guess */
    uint64_t word = sni_atomic_load(&latch->gate_.word_, relaxed);
    while ((word & SNI_GATE_BITS) == 0 && sni_gate_count(word) >= n)
        /* acq_rel: what all wrote before they came is there for those who wait */
        if (sni_likely(sni_atomic_cas(&latch->gate_.word_, &word, word - less, acq_rel, relaxed)))
            return 0;
    word = sni_gate_lock(&latch->gate_);
    if (sni_gate_count(word) < n) {
        sni_gate_unlock(&latch->gate_, word);
        return sni_misuse(-ERANGE, "more have arrived at a latch than it was made for");
    }
    word -= less;
    if (sni_gate_count(word) == 0)
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
