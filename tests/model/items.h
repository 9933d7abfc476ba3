/* SPDX-License-Identifier: MIT */
/* items.h - things to queue that notice when they are taken twice, never, or without order. */
#ifndef SINEW_TESTS_MODEL_ITEMS_H
#define SINEW_TESTS_MODEL_ITEMS_H

#include "base/runlink.h"

enum { ITEMS_MAX = 16 };

/* In setup: none is made. */
void items_reset(void);

/* Make the next one, which the caller then queues. */
struct sni_runlink *item_make(void);

/* The caller has this one from a queue: alone, and sees what its maker wrote. NULL is fine. Returns
 * its number in the order of making, or -1. */
int item_take(struct sni_runlink *link);

/* How many were taken. */
unsigned items_taken(void);

/* In check: each that was made has been taken. */
void items_check(void);

#endif
