/* SPDX-License-Identifier: MIT */
/* victims_undefined.c - what the undefined behaviour sanitizer reports must fail a test. */
#include "harness.h"

#include <limits.h>

TEST(trips_the_sanitizer)
{
    volatile int most = INT_MAX;
    most = most + 1;
}
