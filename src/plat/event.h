/* SPDX-License-Identifier: MIT */
/* event.h - descriptors that become readable, so that a foreign event loop can wait for us. */
#ifndef SINEW_PLAT_EVENT_H
#define SINEW_PLAT_EVENT_H

#include <stdint.h>

/* A new one, not readable.
 *
 * Returns  the descriptor; -EMFILE, -ENFILE, -ENOMEM */
int sni_plat_event_open(void);

/* Make it readable; any thread, also signal handlers. Twice is once. */
void sni_plat_event_set(int fd);

/* Make it not readable. */
void sni_plat_event_clear(int fd);

void sni_plat_event_close(int fd);

/* Several descriptors as one, which is readable while one of them is or a time has come. */
struct sni_gather {
    int fd;    /* for whoever waits  */
    int timer; /* one of the several */
};

/* A new one. Returns 0; -EMFILE, -ENFILE, -ENOMEM */
int sni_plat_gather_open(struct sni_gather *gather);

/* Add a descriptor. Returns 0; -ENOMEM, -ENOSPC */
int sni_plat_gather_add(struct sni_gather *gather, int fd);

/* Be readable from `at_ns` (of sni_plat_now_ns) on; INT64_MAX: not by itself. */
void sni_plat_gather_alarm(struct sni_gather *gather, int64_t at_ns);

void sni_plat_gather_close(struct sni_gather *gather);

#endif
