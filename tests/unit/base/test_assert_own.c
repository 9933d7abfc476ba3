/* SPDX-License-Identifier: MIT */
/* A program that brings its own sn_assert_failed, as firmware with a console does: it links,
 * and the library calls it. */
#include "harness.h"

#include <sinew/sinew.h>
#include <stdio.h>
#include <stdlib.h>

void sn_assert_failed(const char *sentence, const char *file, int line)
{
    fprintf(stderr, "my own: %s at %s:%d\n", sentence, file, line);
    exit(3);
}

FAIL_TEST(a_program_may_replace_the_assertion_handler, "my own: by hand at here.c:1\n")
{
    sn_assert_failed("by hand", "here.c", 1);
}

#ifdef SINEW_DEBUG
FAIL_TEST(the_library_calls_the_program_s_handler, "my own: NULL was cancelled at src/future/")
{
    (void)sn_future_cancel(NULL);
}
#endif
