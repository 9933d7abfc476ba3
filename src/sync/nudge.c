/* SPDX-License-Identifier: MIT */
/* nudge.c - from a waker to a waiter that may be gone.
 *
 * A wake takes the lock, notes that it has come, and claims the waiter if one is bound; an unbind
 * takes the same lock. So a waiter is claimed only while it is bound, and after the unbind nobody
 * looks at it. A fiber is made runnable under the lock, a thread is unparked after it, by an
 * address only (wait.h).
 *
 * No wake is lost: one that comes between the begin, which precedes all polls, and the bind has
 * left its mark, and the bind says so.
 *
 * Rejected: to keep it in the record of the fiber. Plain threads have none; a task would grow by
 * two words, for all; and a waker would keep a fiber's record alive. */
#include "sync/nudge.h"

#include "mem/arena.h"

#include <sinew/errno.h>

struct sni_nudge {
    struct sni_record record;
    SNI_ATOMIC(uint32_t) references; /* its maker, and each waker */
    sn_waker waker;                  /* immutable */
    struct sni_mutex lock;           /* guards what follows */
    struct sni_waiter *waiter;       /* bound, or NULL */
    bool is_woken;                   /* since the begin */
    bool is_over;                    /* its maker is gone */
};

static void release(void *data)
{
    struct sni_nudge *n = data;
    /* acq_rel: all use of it happens before its end */
    if (sni_atomic_fetch_sub(&n->references, 1, acq_rel) == 1)
        sni_record_give(&n->record);
}

static void *acquire(void *data)
{
    struct sni_nudge *n = data;
    sni_atomic_fetch_add(&n->references, 1, relaxed); /* relaxed: made from one that is held */
    return n;
}

static int wake_by_ref(void *data)
{
    struct sni_nudge *n = data;
    struct sni_wake wake = {NULL, NULL};
    sni_mutex_lock(&n->lock);
    n->is_woken = true;
    int rc = n->is_over ? -ESRCH : 0;
    if (n->waiter != NULL)
        (void)sni_wait_claim_locked(n->waiter, SNI_SAYS_AGAIN, &wake);
    sni_mutex_unlock(&n->lock);
    sni_wait_wake(wake);
    return rc;
}

static const sn_waker_vtable waker_vtable = {
    .clone = acquire, .wake_by_ref = wake_by_ref, .drop = release};

int sni_nudge_create(struct sni_nudge **out)
{
    struct sni_record *record;
    int rc = sni_record_take(sizeof(struct sni_nudge), &record);
    if (rc < 0)
        return rc;
    struct sni_nudge *n = (struct sni_nudge *)(void *)record;
    sni_atomic_store(&n->references, 1, relaxed); /* relaxed: nobody else knows it yet */
    n->waker = (sn_waker){&waker_vtable, n};
    n->lock = (struct sni_mutex)SNI_MUTEX_INIT;
    n->waiter = NULL;
    n->is_woken = false;
    n->is_over = false;
    *out = n;
    return 0;
}

void sni_nudge_finish(struct sni_nudge *n)
{
    if (n == NULL)
        return;
    sni_mutex_lock(&n->lock);
    n->waiter = NULL;
    n->is_over = true;
    sni_mutex_unlock(&n->lock);
    release(n);
}

const sn_waker *sni_nudge_waker(const struct sni_nudge *n)
{
    return &n->waker;
}

void sni_nudge_begin(struct sni_nudge *n)
{
    sni_mutex_lock(&n->lock);
    n->is_woken = false;
    sni_mutex_unlock(&n->lock);
}

bool sni_nudge_bind(struct sni_nudge *n, struct sni_waiter *w)
{
    sni_mutex_lock(&n->lock);
    bool may_wait = !n->is_woken;
    if (may_wait)
        n->waiter = w;
    sni_mutex_unlock(&n->lock);
    return may_wait;
}

void sni_nudge_unbind(struct sni_nudge *n)
{
    sni_mutex_lock(&n->lock);
    n->waiter = NULL;
    sni_mutex_unlock(&n->lock);
}
