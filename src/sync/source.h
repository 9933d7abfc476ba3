/* SPDX-License-Identifier: MIT */
/* source.h - waiting at a source, in one of its lines; wait/case.h has the words and rules. */
#ifndef SINEW_SYNC_SOURCE_H
#define SINEW_SYNC_SOURCE_H

#include "wait/case.h"
#include "wait/place.h"

/* Unlinked: serve it. False: it was over. */
static inline bool sni_party_claim(struct sni_party *p, struct sni_wake *wake)
{
    return sni_wait_claim_locked(p->waiter, p->index, wake);
}

/* The same for a fiber's plain call: nothing is left to do after the unlock. */
static inline bool sni_party_claim_quick(struct sni_party *p)
{
    return sni_wait_claim_quick(p->waiter, 0);
}

/* Unlinked: tell it that the source is closed. */
static inline bool sni_party_refuse(struct sni_party *p, struct sni_wake *wake)
{
    return sni_wait_claim_locked(p->waiter, p->is_case ? p->index + SNI_SAYS_CLOSED : -EPIPE, wake);
}

/* Wait in `list` of `source` until served, with `value` for whoever serves. Under the lock, which
 * is given back.
 *
 * Returns  what the claim said: 0 served, -EPIPE closed; -ETIMEDOUT, -EDEADLK (misuse),
 *          -ECANCELED */
int sni_source_wait(struct sni_source *source, struct sni_list *list, void *value,
                    sn_deadline until);

/* For reports: a place of that name at `source`, by the handle of the record in which that is. */
struct sni_place sni_source_place(const struct sni_source *source, const char *what);

/* For reports: how plain calls, selects and futures wait. */
extern const struct sni_wait_kind sni_source_waits;
extern const struct sni_wait_kind sni_select_waits;
extern const struct sni_wait_kind sni_chan_op_waits;
extern const struct sni_wait_kind sni_news_op_waits;
extern const struct sni_wait_kind sni_select_op_waits;

/* Serve, or refuse, all who are in `list` now. Under the lock, which is given back. */
void sni_source_wake_all(struct sni_source *source, struct sni_list *list, bool refuse);

#endif
