/* SPDX-License-Identifier: MIT */
/* nudge.h - a waker for who waits by a waiter: a fiber or a plain thread that polls futures.
 *
 *     sni_nudge_begin(n);            // what was woken before is forgotten
 *     poll, with sni_nudge_waker(n)
 *     if (sni_nudge_bind(n, &w))     // false: woken since, poll again
 *         commit;                    // a wake claims w with SNI_SAYS_AGAIN
 *     sni_nudge_unbind(n);
 *
 * Wakers may be kept longer than anybody waits, so what they point to is not on a stack: it is a
 * record with references, the only thing that waiting for a future takes from the heap. A lock
 * keeps a wake and the end of a wait apart. */
#ifndef SINEW_SYNC_NUDGE_H
#define SINEW_SYNC_NUDGE_H

#include "wait/case.h"

struct sni_nudge;

/* Returns 0, -ENOMEM */
int sni_nudge_create(struct sni_nudge **out);

/* Give it up: wakers that are left wake nobody. NULL is fine. */
void sni_nudge_finish(struct sni_nudge *nudge);

/* Borrowed: to be cloned by who keeps it. */
const sn_waker *sni_nudge_waker(const struct sni_nudge *nudge);

void sni_nudge_begin(struct sni_nudge *nudge);
bool sni_nudge_bind(struct sni_nudge *nudge, struct sni_waiter *w);
void sni_nudge_unbind(struct sni_nudge *nudge);

#endif
