/* SPDX-License-Identifier: MIT */
/* wait_group.c - wait until all that was begun is done.
 *
 * The word of the gate is how much is not done yet. Whoever makes it 0 lets all guests pass; work
 * may be added again afterwards, and is for those who wait then. */
#include "sync/gate.h"

#include <sinew/errno.h>

#include <assert.h>

#define COUNT_MAX UINT32_MAX

static_assert(sizeof(sn_wait_group) == 16, "sn_wait_group has grown");

static const struct sni_gate_kind group_kind = {.enter = sni_gate_enter_at_zero,
                                                .name = "wait group"};

int sn_wait_group_add(sn_wait_group *group, uint32_t n)
{
    uint64_t more = (uint64_t)n * SNI_GATE_UNIT;
    /* relaxed: a guess, and adding publishes nothing */
    uint64_t word = sni_atomic_load(&group->gate_.word_, relaxed);
    while ((word & SNI_GATE_LOCKED) == 0 && sni_gate_count(word) + n <= COUNT_MAX)
        if (sni_likely(sni_atomic_cas(&group->gate_.word_, &word, word + more, relaxed, relaxed)))
            return 0;
    word = sni_gate_lock(&group->gate_);
    bool fits = sni_gate_count(word) + n <= COUNT_MAX;
    sni_gate_unlock(&group->gate_, fits ? word + more : word);
    return fits ? 0 : sni_misuse(-EOVERFLOW, "a wait group is given more than it can count");
}

static int done_slow(sn_wait_group *group)
{
    uint64_t word = sni_gate_lock(&group->gate_);
    if (sni_gate_count(word) == 0) {
        sni_gate_unlock(&group->gate_, word);
        return sni_misuse(-ERANGE, "more was done than a wait group was told of");
    }
    word -= SNI_GATE_UNIT;
    if (sni_gate_count(word) == 0)
        sni_gate_pass_all(&group->gate_, word, 0);
    else
        sni_gate_unlock(&group->gate_, word);
    return 0;
}

int sn_wait_group_done(sn_wait_group *group)
{
    /* relaxed: a guess */
    uint64_t word = sni_atomic_load(&group->gate_.word_, relaxed);
    while ((word & SNI_GATE_LOCKED) == 0 &&
           sni_gate_count(word) > ((word & SNI_GATE_WAITED) != 0 ? 1 : 0))
        /* acq_rel: what was done before, by all, is there for the one who waits */
        if (sni_likely(
                sni_atomic_cas(&group->gate_.word_, &word, word - SNI_GATE_UNIT, acq_rel, relaxed)))
            return 0;
    return done_slow(group);
}

int sn_wait_group_wait(sn_wait_group *group, sn_deadline until)
{
    /* acquire: pairs with the release in sn_wait_group_done */
    uint64_t word = sni_atomic_load(&group->gate_.word_, acquire);
    if ((word & SNI_GATE_LOCKED) == 0 && sni_gate_count(word) == 0)
        return 0;
    struct sni_guest guest;
    sni_guest_init(&guest, &group_kind, &group->gate_, group, 0);
    return sni_guest_wait(&guest, until);
}

sn_future *sn_wait_group_wait_op(sn_sync_state *state, sn_wait_group *group)
{
    return sni_guest_op(state, &group_kind, &group->gate_, group, 0);
}

int sn_wait_group_finish(sn_wait_group *group)
{
    /* acquire: pairs with the release in sn_wait_group_done */
    uint64_t word = sni_atomic_load(&group->gate_.word_, acquire);
    return sni_gate_finish(&group->gate_, sni_gate_count(word) == 0, 0);
}
