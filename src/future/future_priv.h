/* SPDX-License-Identifier: MIT */
/* future_priv.h - what the files of this room share: the states of a future (see future.c)
 * and the stack poison (see poison.c). */
#ifndef SINEW_FUTURE_PRIV_H
#define SINEW_FUTURE_PRIV_H

#include "base/compiler.h"

#include <stddef.h>

#include <sinew/coro.h>
#include <sinew/future.h>

enum {
    SNI_FUTURE_NEW,
    SNI_FUTURE_SUSPENDED,
    SNI_FUTURE_POLLING,
    SNI_FUTURE_EMITTED,
    SNI_FUTURE_CANCELED,
    SNI_FUTURE_DONE,
    SNI_FUTURE_DROPPED,
};

/* What sn_noop_waker gives. */
extern const sn_waker sni_noop;

/* The name of a kind of future. Builds for small flash leave the texts out. */
#ifdef SINEW_NAMES
#define SNI_NAME(text) text
#else
#define SNI_NAME(text) NULL
#endif

#ifdef SINEW_POISON_STACK
void sni_poison_stack(void);
#else
#define sni_poison_stack() ((void)0)
#endif

/* sn_future_poll, in the place of a caller that has a future and an sn_cx. */
static inline sn_poll sni_future_poll(sn_future *fut, sn_cx *cx)
{
    if (sni_unlikely(fut->state_ > SNI_FUTURE_SUSPENDED || fut->vt == NULL))
        return sn_future_poll(fut, cx); /* which says why not */
    sni_poison_stack();
    fut->state_ = SNI_FUTURE_POLLING;
    sn_poll p = fut->vt->poll(fut, cx);
    if (sn_poll_pending(p) || fut->state_ == SNI_FUTURE_EMITTED)
        fut->state_ = SNI_FUTURE_SUSPENDED;
    else
        fut->state_ = SNI_FUTURE_DONE;
    return p;
}

/* sn_coro_start_, in the place of its caller. */
static inline sn_future *sni_coro_start(sn_coro *co, const sn_future_vtable *vt)
{
    co->awaiting_ = NULL;
    co->resume_ = 0;
    co->value_ = 0;
    co->future.vt = vt;
    co->future.state_ = SNI_FUTURE_NEW;
    return &co->future;
}

#endif
