/* SPDX-License-Identifier: MIT */
/* source.h - what tasks and a select wait at: a lock, and lists of those who wait.
 *
 * Words
 *   source   a channel, or what else can be waited at
 *   party    somebody who waits at a source, in one of its lists. A plain call is one party; a
 *            select is one for each of its cases, all with one waiter: who claims that, serves it
 *
 * Rules
 *   1. A party is linked, unlinked and looked at under its source's lock.
 *   2. Who serves a party unlinks it first. A claim that fails is a party that is over (served
 *      elsewhere, timed out, cancelled): it stays unlinked, and the next one is tried.
 *   3. Who was served needs the lock no more, except a select. Who was not takes the lock, to
 *      unlink itself and to wait for whoever is just looking at it, before its frame goes away. */
#ifndef SINEW_SYNC_SOURCE_H
#define SINEW_SYNC_SOURCE_H

#include "plat/thread.h"
#include "wait/wait.h"

#include <sinew/errno.h>

enum {
    SNI_CASES_MAX = 64, /* of a select */
};

struct sni_source {
    struct sni_mutex lock;
    uint32_t draws; /* under the lock: for selects, how often they drew lots here */
};

struct sni_party {
    struct sni_list link;      /* rule 1 */
    struct sni_waiter *waiter; /* these: immutable while it is linked */
    void *value;               /* where the element goes to or comes from */
    uint16_t index;            /* what a claim says: 0, or the case of a select */
    bool is_case;              /* of a select: others may write to `value`, so claim first; the
                                  owner takes the lock before it looks */
};

/* Unlinked: serve it. False: it was over. */
static inline bool sni_party_claim(struct sni_party *p, struct sni_wake *wake)
{
    return sni_wait_claim_locked(p->waiter, p->index, wake);
}

/* Unlinked: tell it that the source is closed. */
static inline bool sni_party_refuse(struct sni_party *p, struct sni_wake *wake)
{
    return sni_wait_claim_locked(p->waiter, p->is_case ? p->index + SNI_CASES_MAX : -EPIPE, wake);
}

#endif
