/* SPDX-License-Identifier: MIT */
/* assert.h - where the library goes when it finds itself misused or broken. */
#ifndef SINEW_ASSERT_H
#define SINEW_ASSERT_H

#include <sinew/annotate.h>

SN_BEGIN_DECLS

/* Called with a sentence that names the probable cause: for broken contracts in debug
 * builds of the library, for broken invariants in all. The default prints the sentence and
 * aborts; where there is no operating system it stops in a trap. An application may define
 * a function of this name itself; it must not return.
 *
 * Suspends: no.   Threads: any, also interrupt handlers. */
SN_NORETURN SN_API void sn_assert_failed(const char *sentence, const char *file, int line);

SN_END_DECLS

#endif
