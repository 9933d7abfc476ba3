/* SPDX-License-Identifier: MIT */
/* A failed assertion: what the default says, and that long texts are cut, not overrun. */
#include "harness.h"

#include <sinew/assert.h>
#include <string.h>

FAIL_TEST(a_failed_assertion_prints_its_sentence_and_place,
          "sinew: the cat is on the mat (mat.c:2048)\n")
{
    sn_assert_failed("the cat is on the mat", "mat.c", 2048);
}

FAIL_TEST(a_failed_assertion_in_line_0_has_a_place_too, "sinew: odd (x.c:0)\n")
{
    sn_assert_failed("odd", "x.c", 0);
}

FAIL_TEST(a_sentence_of_any_length_is_printed_as_far_as_it_fits, "sinew: aaaaaaaa")
{
    static char sentence[4096];
    memset(sentence, 'a', sizeof(sentence) - 1);
    sn_assert_failed(sentence, "long.c", 1);
}
