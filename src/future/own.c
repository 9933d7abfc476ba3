/* SPDX-License-Identifier: MIT */
/* own.c - dropping what a combinator owns.
 *
 * A finished member is left alone: its owner may be the program, which looks at its result
 * or starts it again. */
#include "future/own.h"

void sni_drop_futures(sn_future **items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!sn_future_finished(items[i]))
            (void)sn_future_drop(items[i]);
}

void sni_drop_members(sn_future *fut)
{
    sn_fut_members_ *self = (sn_fut_members_ *)(void *)fut;
    sni_drop_futures(self->items, self->count);
}

void sni_drop_wrapped(sn_future *fut)
{
    sni_drop_futures(&((sn_fut_wrapper_ *)(void *)fut)->inner, 1);
}
