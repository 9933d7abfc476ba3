/* SPDX-License-Identifier: MIT */
/* waker.c - wakers: one reference to whoever polls, whatever that is.
 *
 * A vtable may leave out everything but wake_by_ref; the defaults are here, so that a waker
 * without a reference count costs neither code nor time. Waking and dropping empty the
 * waker, which is how a second use is noticed instead of freeing a task twice. */
#include "future/future_priv.h"

#include "base/assert.h"
#include "base/compiler.h"

#include <sinew/future.h>

static int wake_nobody(void *data)
{
    (void)data;
    return 0;
}

static const sn_waker_vtable noop_vtable = {.wake_by_ref = wake_nobody};
const sn_waker sni_noop = {.vt = &noop_vtable};

sn_waker sn_noop_waker(void)
{
    return sni_noop;
}

static inline bool is_empty(const sn_waker *waker)
{
    return waker == NULL || waker->vt == NULL;
}

static SNI_COLD int refuse_empty(void)
{
    return sni_misuse(-EINVAL, "an empty waker was used: it was woken or dropped before");
}

sn_waker sn_waker_clone(const sn_waker *waker)
{
    if (sni_unlikely(is_empty(waker))) {
        (void)refuse_empty();
        return (sn_waker){0};
    }
    sn_waker copy = *waker;
    if (copy.vt->clone != NULL)
        copy.data = copy.vt->clone(copy.data);
    return copy;
}

static void release(const sn_waker_vtable *vt, void *data)
{
    if (vt->drop != NULL)
        vt->drop(data);
}

int sn_waker_wake(sn_waker *waker)
{
    if (sni_unlikely(is_empty(waker)))
        return refuse_empty();
    sn_waker taken = *waker;
    *waker = (sn_waker){0};
    if (taken.vt->wake != NULL)
        return taken.vt->wake(taken.data);
    int rc = taken.vt->wake_by_ref(taken.data);
    release(taken.vt, taken.data);
    return rc;
}

int sn_waker_wake_by_ref(const sn_waker *waker)
{
    if (sni_unlikely(is_empty(waker)))
        return refuse_empty();
    return waker->vt->wake_by_ref(waker->data);
}

void sn_waker_drop(sn_waker *waker)
{
    if (is_empty(waker))
        return;
    sn_waker taken = *waker;
    *waker = (sn_waker){0};
    release(taken.vt, taken.data);
}

bool sn_waker_same(const sn_waker *a, const sn_waker *b)
{
    return a->vt == b->vt && a->data == b->data;
}
