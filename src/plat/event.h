/* SPDX-License-Identifier: MIT */
/* event.h - a descriptor that becomes readable, so that a foreign event loop can wait for us. */
#ifndef SINEW_PLAT_EVENT_H
#define SINEW_PLAT_EVENT_H

/* A new one, not readable.
 *
 * Returns  the descriptor; -EMFILE, -ENFILE, -ENOMEM */
int sni_plat_event_open(void);

/* Make it readable; any thread, also signal handlers. Twice is once. */
void sni_plat_event_set(int fd);

/* Make it not readable. */
void sni_plat_event_clear(int fd);

void sni_plat_event_close(int fd);

#endif
