/* SPDX-License-Identifier: MIT */
/* x.h - comments may come first. */
#ifndef SINEW_X_H
#define SINEW_X_H

SN_BEGIN_DECLS

/* Does it.
 *
 * Suspends: no.   Threads: any.
 * Returns  0  done */
SN_API int sn_x(void);

SN_END_DECLS

#endif
