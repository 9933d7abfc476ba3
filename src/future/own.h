/* SPDX-License-Identifier: MIT */
/* own.h - futures made of futures: what it means to own the others. */
#ifndef SINEW_FUTURE_OWN_H
#define SINEW_FUTURE_OWN_H

#include <sinew/combine.h>

/* Drop the unfinished ones of `count` futures, in order. */
void sni_drop_futures(sn_future **items, size_t count);

/* The `drop` of every kind that begins with sn_fut_members_, sn_fut_wrapper_. */
void sni_drop_members(sn_future *fut);
void sni_drop_wrapped(sn_future *fut);

/* A poll of `fut`, or of what it is made of, is left for good: drop what hangs on it. */
void sni_future_abandon(sn_future *fut);

#endif
