/* SPDX-License-Identifier: MIT */
/* select_priv.h - between select.c, the phases and the call, and select_op.c, the future. */
#ifndef SINEW_SYNC_SELECT_PRIV_H
#define SINEW_SYNC_SELECT_PRIV_H

#include "sync/nudge.h"
#include "sync/source.h"

#include <sinew/select.h>

struct sni_select {
    struct sni_vigil vigil;       /* with the waiter, and the cases */
    struct sni_nudge *nudge;      /* for futures that a fiber or a thread polls; or NULL */
    unsigned inside;              /* cases that have a source */
    uint8_t outside;              /* cases that have none, and may take place */
    uint8_t n;                    /* all cases */
    bool has_futures;             /* some of these are futures */
    bool is_hasty;                /* a future was woken before anybody could wait for it */
    bool is_ordered;              /* SN_SELECT_ORDERED */
    uint8_t order[SNI_CASES_MAX]; /* the inside ones, by the addresses of their sources */
};

/* Find all sources. Returns 0, -EINVAL, -EBADF */
int sni_select_prepare(struct sni_select *s, sn_case *cases, size_t n, unsigned flags);

/* Look at all cases, each by itself. Nobody knows of the select. Futures are polled with `waker`.
 * Returns the case that took place, or -EAGAIN */
int sni_select_look(struct sni_select *s, const sn_waker *waker);

/* Get what the outside cases need; before the waiter is begun. Returns 0, or -errno, and then it is
 * as if nothing had happened */
int sni_select_get_ready(struct sni_select *s, int64_t until_ns, bool is_awaited);

/* The waiter is begun: attempt the inside cases, and if none takes place, wait for all. Returns the
 * case that took place, and then nobody knows of the select; or -EAGAIN */
int sni_select_begin(struct sni_select *s);

/* Afterwards nobody claims any more, and who has claimed has done its part. */
void sni_select_end(struct sni_select *s, bool abandoned);

/* For reports: each case that may take place. */
void sni_select_tell(const struct sni_select *s, sni_place_fn *each, void *arg);

/* What a claim said. Returns the case, or -errno; -EAGAIN: it was nothing, wait again */
int sni_select_outcome(struct sni_select *s, int said);

#endif
