/* SPDX-License-Identifier: MIT */
/* join.c - wait for all of several futures.
 *
 * Which members are done is not written down twice: each future knows. Only the first pass
 * polls every member regardless, so that one that had finished before it was handed over is
 * answered with its misuse instead of being taken for a result. */
#include "future/future_priv.h"
#include "future/own.h"

#include "base/compiler.h"

#include <sinew/combine.h>

static void note_result(sn_fut_join *self, size_t index, int result)
{
    if (self->results_ != NULL)
        self->results_[index] = result;
    if (result < 0 && self->first_error_ == 0)
        self->first_error_ = result;
}

static sn_poll poll_join(sn_future *fut, sn_cx *cx)
{
    sn_fut_join *self = sni_container_of(fut, sn_fut_join, members_.future);
    bool all_done = true;
    for (size_t i = 0; i < self->members_.count; i++) {
        sn_future *member = self->members_.items[i];
        if (self->begun_ && sn_future_finished(member))
            continue;
        sn_poll p = sn_future_poll(member, cx);
        if (sn_poll_pending(p))
            all_done = false;
        else
            note_result(self, i, p.value);
    }
    self->begun_ = true;
    return all_done ? SN_READY(self->first_error_) : SN_PENDING;
}

static const sn_future_vtable join_vtable = {
    .poll = poll_join,
    .drop = sni_drop_members,
    .name = SNI_NAME("join"),
};

sn_future *sn_fut_join_init(sn_fut_join *self, sn_future **items, size_t count, int *results)
{
    self->members_.items = items;
    self->members_.count = count;
    self->results_ = results;
    self->first_error_ = 0;
    self->begun_ = false;
    return sn_future_init(&self->members_.future, &join_vtable);
}

sn_future *sn_fut_join2_init(sn_fut_join2 *self, sn_future *a, sn_future *b)
{
    self->items_[0] = a;
    self->items_[1] = b;
    return sn_fut_join_init(&self->join, self->items_, 2, self->results);
}
