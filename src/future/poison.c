/* SPDX-License-Identifier: MIT */
/* poison.c - makes a local kept across an await show itself (builds with SINEW_POISON_STACK).
 *
 * A coroutine's body is entered afresh at every poll, so its C locals start as whatever lies
 * on the stack: very often still the value of the poll before, which hides the mistake until
 * another call happens to come between. Overwriting the region where the body's frame is
 * about to stand turns "works by luck" into a value nobody mistakes for data. */
#include "future/future_priv.h"

/* Enough for the frames of a body and what it calls; small enough for a microcontroller. */
#ifndef SINEW_POISON_BYTES
#define SINEW_POISON_BYTES 1024
#endif

#ifdef SINEW_POISON_STACK
__attribute__((noinline, no_sanitize("address"))) void sni_poison_stack(void)
{
    volatile unsigned char dead[SINEW_POISON_BYTES];
    for (unsigned i = 0; i < sizeof(dead); i++)
        dead[i] = 0xA5;
}
#else
typedef int sni_poison_is_off; /* ISO C wants a declaration in every file */
#endif
