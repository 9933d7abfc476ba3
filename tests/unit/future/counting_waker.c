/* SPDX-License-Identifier: MIT */
/* counting_waker.c - see the header. */
#include "unit/future/counting_waker.h"

static void *clone(void *data)
{
    struct counting_waker *counter = data;
    atomic_fetch_add(&counter->refs, 1);
    atomic_fetch_add(&counter->clones, 1);
    return data;
}

static int wake_by_ref(void *data)
{
    struct counting_waker *counter = data;
    atomic_fetch_add(&counter->wakes, 1);
    return 0;
}

static void drop(void *data)
{
    struct counting_waker *counter = data;
    atomic_fetch_sub(&counter->refs, 1);
}

static const sn_waker_vtable vtable = {.clone = clone, .wake_by_ref = wake_by_ref, .drop = drop};

sn_waker counting_waker_init(struct counting_waker *counter)
{
    atomic_init(&counter->refs, 1);
    atomic_init(&counter->wakes, 0);
    atomic_init(&counter->clones, 0);
    return (sn_waker){&vtable, counter};
}
