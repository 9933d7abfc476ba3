/* SPDX-License-Identifier: MIT */
/* test_sanitizer.c - a sanitizer's report is a failure and its summary the reason. */
#include "selftest.h"

#include <string.h>

TEST(a_sanitizer_report_fails_the_test_with_its_summary)
{
    struct command c = victims("trips_the_sanitizer");
    CHECK_STR_HAS(c.output, "FAIL  trips_the_sanitizer: exited with status ");
    CHECK_EQ(c.status, 1);
    *strchr(c.output, '\n') = '\0';
    if (strstr(c.output, "signed integer overflow") == NULL)
        CHECK_STR_HAS(c.output, "Sanitizer: ");
    command_finish(&c);
}
