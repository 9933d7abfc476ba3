/* SPDX-License-Identifier: MIT */
/* waker_cell.h - what the house may do with a waker cell beyond the public interface. */
#ifndef SINEW_FUTURE_WAKER_CELL_H
#define SINEW_FUTURE_WAKER_CELL_H

#include <sinew/future.h>

/* Take the waker out without waking it, for callers that must not touch the cell any more when
 * they wake. Empty if there is none, or if somebody else is at it: `busy` tells, and then an arm
 * under way will wake by itself, or another take has the waker. */
sn_waker sni_waker_cell_take(sn_waker_cell *cell, bool *busy);

#endif
