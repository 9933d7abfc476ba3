/* SPDX-License-Identifier: MIT */
/* victims_address.c - what the address sanitizer reports must fail a test. */
#include "harness.h"

#include <stdlib.h>

TEST(trips_the_sanitizer)
{
    volatile char *block = malloc(8);
    volatile int index = 8;
    block[index] = 1;
    free((void *)block);
}
