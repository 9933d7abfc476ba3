/* SPDX-License-Identifier: MIT */
/* victims.h - from whom a worker steals first (R46).
 *
 * Memory of another node is slower to reach, and a task's data lies where it last ran: so those
 * on the thief's own node come first, and only then the others. */
#ifndef SINEW_SCHED_VICTIMS_H
#define SINEW_SCHED_VICTIMS_H

#include <stdint.h>

/* Fill `list` with the numbers of all `n` workers but `me`: first those whose node is that of
 * `me`, then the others, each part in the order of numbers. A negative node is not known, and is
 * near to nobody but other unknown ones.
 *
 * Returns  how many are near */
unsigned sni_victims_sort(uint16_t *list, const int *nodes, unsigned n, unsigned me);

#endif
