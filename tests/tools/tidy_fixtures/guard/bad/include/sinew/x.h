/* SPDX-License-Identifier: MIT */
#ifndef SINEW_X_H
#define SINEW_X_H

/* Does it.
 *
 * Suspends: no.   Threads: any.
 * Returns  0  done */
SN_API int sn_x(void);

#endif
