/* SPDX-License-Identifier: MIT */
/* assert.c (no operating system) - a failed assertion where nobody can be told: stop at once,
 * in a trap that a debugger shows. Boards with a console define their own function. */
#include <sinew/assert.h>

SN_REPLACEABLE void sn_assert_failed(const char *sentence, const char *file, int line)
{
    (void)sentence;
    (void)file;
    (void)line;
    __builtin_trap();
}
