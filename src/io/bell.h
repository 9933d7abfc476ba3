/* SPDX-License-Identifier: MIT */
/* bell.h - how the owner of a driver is woken while it sleeps in it.
 *
 * One token: ringing leaves it, the end of a sleep consumes it. So ringing first and sleeping then
 * does not sleep, and ringing twice is ringing once. A system call is made only if the owner
 * really sleeps. The owner sleeps either in the kernel together with other descriptors, which
 * needs a descriptor here too, or on the word of the bell, which needs none. */
#ifndef SINEW_IO_BELL_H
#define SINEW_IO_BELL_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>

struct sni_bell {
    SNI_ATOMIC(uint32_t) word; /* any thread, RMW only; values in bell.c                       */
    int fd;                    /* -1, or see plat/event.h: written under the driver's lock, once;
                                  read under it, or after sni_bell_begin by who finds its word  */
};

void sni_bell_init(struct sni_bell *bell);

/* Get it a descriptor, if it has none yet.
 *
 * Returns  0, -EMFILE, -ENFILE, -ENOMEM */
int sni_bell_open(struct sni_bell *bell);

void sni_bell_finish(struct sni_bell *bell);

/* Owner: from here on, ringing makes bell->fd readable; sleep. It must have a descriptor.
 *
 * Returns  false if it was rung already: do not sleep, and do not call sni_bell_end */
bool sni_bell_begin(struct sni_bell *bell);

/* Owner: the sleep is over. `told`: the kernel said that bell->fd is readable. */
void sni_bell_end(struct sni_bell *bell, bool told);

/* Owner: sleep until it is rung or `until_ns` has passed, without a descriptor. */
void sni_bell_sleep(struct sni_bell *bell, int64_t until_ns);

/* Owner: do not sleep; consume the token if there is one. */
void sni_bell_pass(struct sni_bell *bell);

/* Any thread, also signal handlers; the caller knows that the bell is alive. */
void sni_bell_ring(struct sni_bell *bell);

#endif
