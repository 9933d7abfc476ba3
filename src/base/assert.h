/* SPDX-License-Identifier: MIT */
/* assert.h - what is checked, when, and what then happens.
 *
 * sni_assert(cond, sentence)        always on: cheap, and going on would corrupt memory
 * sni_assert_debug(cond, sentence)  debug builds
 * sni_misuse(code, sentence)        the caller broke a contract: debug builds stop with the
 *                                   sentence, release builds give `code`, which the caller of
 *                                   the macro returns
 *
 * A sentence is written for the person who will read it: it names the probable cause. */
#ifndef SINEW_BASE_ASSERT_H
#define SINEW_BASE_ASSERT_H

#include "base/compiler.h"

#include <sinew/assert.h>

#define sni_assert(cond, sentence)                            \
    do {                                                      \
        if (sni_unlikely(!(cond)))                            \
            sn_assert_failed((sentence), __FILE__, __LINE__); \
    } while (0)

#ifdef SINEW_DEBUG
#define sni_assert_debug(cond, sentence) sni_assert(cond, sentence)
#define sni_misuse(code, sentence)       (sn_assert_failed((sentence), __FILE__, __LINE__), (code))
#else
#define sni_assert_debug(cond, sentence) ((void)sizeof(!(cond)))
#define sni_misuse(code, sentence)       (code)
#endif

#endif
