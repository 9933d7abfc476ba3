/* SPDX-License-Identifier: MIT */
#ifndef SINEW_X_H
#define SINEW_X_H

SN_BEGIN_DECLS

/* Does it.
 *
 * Suspends: no.   Threads: any.
 * Returns  0  done */
SN_API int sn_used(void);
SN_API int sn_used_too(void);
SN_API int sn_hidden_(void);

SN_END_DECLS

#endif
