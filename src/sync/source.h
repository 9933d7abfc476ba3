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

/* A case of a select, as the public sn_case holds it. */
struct sni_case {
    const struct sni_case_kind *kind;
    void *at;    /* what the user named; NULL: never takes place */
    void *value; /* what goes with it */
    int result;
    struct sni_source *source; /* of `at`, found when the select begins; NULL as above */
    struct sni_party party;
};

/* What a select must know of a kind of source. A new kind is a new table, and a function that makes
 * a case of it. */
struct sni_case_kind {
    /* The source of c->at, which is not NULL; NULL: it is gone, or was none. */
    struct sni_source *(*find)(struct sni_case *c);

    /* Under its lock: do it without waiting. -EAGAIN: it must wait; else the case has taken place
     * with this result, and *wake may be owed. */
    int (*attempt)(struct sni_case *c, struct sni_wake *wake);

    /* Under its lock: the line to wait in. Who serves it there claims by sni_party_claim and only
     * then writes to `value`, before the unlock; or claims by sni_party_refuse. */
    struct sni_list *(*line)(struct sni_case *c);

    /* Without the lock: what an attempt that took place has left to do. NULL: nothing. */
    void (*after)(struct sni_case *c);
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

/* Wait in `list` of `source` until served, with `value` for whoever serves. Under the lock, which
 * is given back.
 *
 * Returns  what the claim said: 0 served, -EPIPE closed; -ETIMEDOUT, -EDEADLK (misuse),
 *          -ECANCELED */
int sni_source_wait(struct sni_source *source, struct sni_list *list, void *value,
                    sn_deadline until);

/* Serve, or refuse, all who are in `list` now. Under the lock, which is given back. */
void sni_source_wake_all(struct sni_source *source, struct sni_list *list, bool refuse);

#endif
