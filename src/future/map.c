/* SPDX-License-Identifier: MIT */
/* map.c - a future's result passed through a function.
 *
 * The function runs once, inside the poll that finds the inner future ready. */
#include "future/future_priv.h"
#include "future/own.h"

#include "base/compiler.h"

#include <sinew/combine.h>

static sn_poll poll_map(sn_future *fut, sn_cx *cx)
{
    sn_fut_map *self = sni_container_of(fut, sn_fut_map, wrapper_.future);
    sn_poll p = sn_future_poll(self->wrapper_.inner, cx);
    return sn_poll_pending(p) ? p : SN_READY(self->fn_(p.value, self->arg_));
}

static const sn_future_vtable map_vtable = {
    .poll = poll_map,
    .drop = sni_drop_wrapped,
    .name = SNI_NAME("map"),
};

sn_future *sn_fut_map_init(sn_fut_map *self, sn_future *inner, int (*fn)(int result, void *arg),
                           void *arg)
{
    self->wrapper_.inner = inner;
    self->fn_ = fn;
    self->arg_ = arg;
    return sn_future_init(&self->wrapper_.future, &map_vtable);
}
