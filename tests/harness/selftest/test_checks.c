/* SPDX-License-Identifier: MIT */
/* test_checks.c - each check fails when it must, says why, and never when it must not. */
#include "selftest.h"

#include <string.h>

static void victim_says(const char *name, const char *why)
{
    struct command c = victims("%s", name);
    CHECK_STR_HAS(c.output, why);
    CHECK_STR_HAS(c.output, "victims.c:");
    CHECK_EQ(c.status, 1);
    command_finish(&c);
}

TEST(checks_that_hold_say_nothing_and_evaluate_once)
{
    victims_say(0, "1 passed, 0 failed, 0 skipped\n", "all_checks_hold");
}

TEST(a_failing_check_names_place_expression_and_values)
{
    victim_says("fails_check", "CHECK(1 + 1 == 3) does not hold\n");
    victim_says("fails_check_eq", "CHECK_EQ(left, 4U): left is -3, right is 4\n");
    victim_says("fails_check_ne", "CHECK_NE(5, 5): left is 5, right is 5\n");
    victim_says("fails_check_lt", "CHECK_LT(5, 5): left is 5, right is 5\n");
    victim_says("fails_check_le", "CHECK_LE(6, 5): left is 6, right is 5\n");
    victim_says("fails_check_gt", "CHECK_GT(5, 5): left is 5, right is 5\n");
    victim_says("fails_check_ge", "CHECK_GE(4, 5): left is 4, right is 5\n");
    victim_says("fails_check_ptr_eq", "left is 0x10, right is 0x0\n");
    victim_says("fails_check_str_eq", "left is \"one\", right is \"two\"\n");
    victim_says("fails_check_str_eq_null", "left is \"one\", right is NULL\n");
    victim_says("fails_check_str_has", "\"needle\" is not in \"haystack\"\n");
    victim_says("fails_check_mem_eq", "byte 9 differs, left is 6a, right is 4a");
    victim_says("fails_with_a_reason", "the moon is new, 100%\n");
}

TEST(a_failing_check_ends_the_test_at_once)
{
    struct command c = victims("'fails_check'");
    CHECK(strstr(c.output, "not reached") == NULL);
    command_finish(&c);
}

TEST(the_place_is_given_below_the_source_tree)
{
    char here[] = __FILE__;
    *strrchr(here, '/') = '\0';
    struct command c = victims("SINEW_SOURCE_DIR=%s fails_check_ne", here);
    CHECK_STR_HAS(c.output, "FAIL  fails_check_ne: victims.c:");
    command_finish(&c);
    victims_say(1, "/selftest/victims.c:", "SINEW_SOURCE_DIR=/nowhere fails_check_ne");
}

TEST(a_check_in_another_thread_or_process_fails_the_test)
{
    victim_says("fails_in_a_thread", "CHECK_EQ(1, 2): left is 1, right is 2\n");
    victim_says("fails_in_many_threads", "CHECK_EQ(1, 2): left is 1, right is 2\n");
    victim_says("fails_in_a_forked_process", "CHECK_EQ(10, 20): left is 10, right is 20\n");
    victim_says("fails_in_a_forked_process_and_itself", "CHECK_EQ(10, 20)");
}

TEST(a_skip_is_an_outcome_of_its_own)
{
    struct command c = victims("'skips'");
    CHECK_STR_HAS(c.output, "skip  skips: no moon here\n");
    CHECK_STR_HAS(c.output, "0 passed, 0 failed, 1 skipped\n");
    CHECK_EQ(c.status, 0);
    command_finish(&c);
}

TEST(a_missing_tool_skips_and_names_the_command_that_brings_it)
{
    victims_say(0,
                "skip  skips_for_want_of_a_tool: needs no-such-program-xyz; "
                "enable with: tools/setup moon\n",
                "skips_for_want_of_a_tool");
    victims_say(0, "1 passed, 0 failed, 0 skipped\n", "has_its_tool");
}
