/* SPDX-License-Identifier: MIT */
/* version.h - which Sinew this is. The build reads the three numbers from here. */
#ifndef SINEW_VERSION_H
#define SINEW_VERSION_H

#include <sinew/annotate.h>

/* The version of the headers a program was compiled against. */
#define SN_VERSION_MAJOR 0
#define SN_VERSION_MINOR 1
#define SN_VERSION_PATCH 0

/* The three numbers as one that compares: 0x00MMmmpp. */
#define SN_VERSION ((SN_VERSION_MAJOR << 16) | (SN_VERSION_MINOR << 8) | SN_VERSION_PATCH)

SN_BEGIN_DECLS

/* The version of the library that is really linked; compare it with SN_VERSION.
 *
 * Suspends: no.   Threads: any, also interrupt handlers.
 * Returns  0x00MMmmpp */
SN_API int sn_version(void);

SN_END_DECLS

#endif
