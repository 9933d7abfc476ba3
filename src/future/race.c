/* SPDX-License-Identifier: MIT */
/* race.c - wait for the first of several futures, drop the others.
 *
 * The order is what makes losing safe: members are polled one by one and the first that is
 * ready ends the pass. Those before it were pending in this very pass, those behind it were
 * pending in an earlier one or never polled; a pending poll has consumed nothing. */
#include "future/future_priv.h"
#include "future/own.h"

#include "base/assert.h"
#include "base/compiler.h"

#include <sinew/combine.h>

static sn_poll poll_race(sn_future *fut, sn_cx *cx)
{
    sn_fut_race *self = sni_container_of(fut, sn_fut_race, members_.future);
    sn_future **items = self->members_.items;
    size_t count = self->members_.count;
    if (count == 0)
        return SN_READY(sni_misuse(-EINVAL, "a race of no futures can never complete"));
    for (size_t i = 0; i < count; i++) {
        sn_poll p = sn_future_poll(items[i], cx);
        if (sn_poll_pending(p))
            continue;
        self->winner = i;
        sni_drop_futures(items, i);
        sni_drop_futures(items + i + 1, count - i - 1);
        return p;
    }
    return SN_PENDING;
}

static const sn_future_vtable race_vtable = {
    .poll = poll_race,
    .drop = sni_drop_members,
    .name = SNI_NAME("race"),
};

sn_future *sn_fut_race_init(sn_fut_race *self, sn_future **items, size_t count)
{
    self->members_.items = items;
    self->members_.count = count;
    self->winner = count;
    return sn_future_init(&self->members_.future, &race_vtable);
}

sn_future *sn_fut_race2_init(sn_fut_race2 *self, sn_future *a, sn_future *b)
{
    self->items_[0] = a;
    self->items_[1] = b;
    return sn_fut_race_init(&self->race, self->items_, 2);
}
