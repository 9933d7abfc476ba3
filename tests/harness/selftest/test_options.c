/* SPDX-License-Identifier: MIT */
/* test_options.c - the command line and the environment do what --help says. */
#include "selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(help_names_every_option)
{
    struct command c = victims("--help");
    const char *names[] = {"--filter", "--list", "-j N",      "-v",     "--tap",         "--junit",
                           "--repeat", "--seed", "--no-fork", "--help", "SINEW_TEST_LOG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        CHECK_STR_HAS(c.output, names[i]);
    CHECK_EQ(c.status, 0);
    command_finish(&c);
}

TEST(wrong_calls_get_a_sentence_and_status_2)
{
    victims_say(2, "unknown option '--moon'", "--moon");
    victims_say(2, "unknown option '-x'", "-x");
    victims_say(2, "needs a value", "--junit");
    victims_say(2, "-j must be a number from 1 to 1024, not '0'", "-j 0");
    victims_say(2, "--seed must be a number", "--seed moon");
    victims_say(2, "--repeat must be a number", "--repeat -1");
    victims_say(2, "no test matches 'moonlight'", "passes moonlight");
    victims_say(2, "no test is named 'passe'", "--no-fork passe");
    victims_say(2, "cannot write /no/such/dir/x", "--junit /no/such/dir/x passes");
    victims_say(2, "cannot write /no/such/dir/x", "SINEW_TEST_LOG=/no/such/dir/x passes");
    victims_say(2, "SINEW_TEST_TIME_FACTOR must be", "SINEW_TEST_TIME_FACTOR=no passes");
    victims_say(2, "SINEW_TEST_SEED must be", "SINEW_TEST_SEED=no passes");
}

TEST(list_prints_names_and_runs_nothing)
{
    struct command c = victims("--list --repeat 3 'passes*' 'hang*'");
    CHECK_STR_EQ(c.output, "passes\npasses_too\nhangs\nhangs_with_a_descendant\n");
    CHECK_EQ(c.status, 0);
    command_finish(&c);
}

TEST(patterns_are_globs_or_parts_of_names)
{
    victims_say(0, "2 passed, ", "asse");
    victims_say(0, "1 passed, ", "'*asses'");
    victims_say(0, "1 passed, ", "'passes_?o?'");
    victims_say(0, "1 passed, ", "--filter=es_too");
    victims_say(0, "1 passed, ", "passes");
    victims_say(0, "3 passed, ", "asses --filter 'has_*'");
}

TEST(tests_run_side_by_side)
{
    struct command c =
        victims("SINEW_TEST_TIME_FACTOR=10 VICTIM_DIR=%s -j 2 'meets_*'", temp_dir());
    CHECK_STR_HAS(c.output, "2 passed, 0 failed, 0 skipped\n");
    command_finish(&c);
}

/* The first waits in vain for the second, which then finds what the first has left. */
TEST(one_at_a_time_is_one_at_a_time, .limit_s = 15)
{
    struct command c = victims("VICTIM_DIR=%s -j 1 'meets_*'", temp_dir());
    CHECK_STR_HAS(c.output, "FAIL  meets_his_twin: timed out after ");
    CHECK_STR_HAS(c.output, "1 passed, 1 failed, 0 skipped\n");
    command_finish(&c);
}

TEST(repeat_runs_each_test_so_often)
{
    struct command c = victims("--repeat 5 'passes'");
    CHECK_STR_HAS(c.output, "ok    passes [5/5] (");
    CHECK_STR_HAS(c.output, "5 passed, 0 failed, 0 skipped\n");
    command_finish(&c);
}

TEST(output_of_passing_tests_is_shown_only_on_demand)
{
    struct command c = victims("'passes'");
    CHECK(strstr(c.output, "the passing test prints this") == NULL);
    command_finish(&c);
    victims_say(0, "| the passing test prints this\n", "-v 'passes'");
}

TEST(a_seed_comes_from_option_or_environment_and_is_named_for_replay)
{
    victims_say(1, "seed was 4711\n", "--seed 4711 fails_with_a_seed");
    victims_say(1, "seed was 4712\n", "SINEW_TEST_SEED=4712 fails_with_a_seed");
    victims_say(1, "seed was 1\n", "SINEW_TEST_SEED=4712 --seed 1 fails_with_a_seed");
    victims_say(1, "replay with: harness_victims --seed 4714 fails_with_a_seed\n",
                "--seed 4711 --repeat 4 fails_with_a_seed");
    struct command c = victims("--seed 4711 'fails_check'");
    CHECK(strstr(c.output, "4711") == NULL);
    command_finish(&c);
}

/* Run once without a seed, then replay with the one that was named. */
TEST(a_random_seed_can_be_replayed)
{
    struct command c = victims("fails_with_a_seed");
    const char *found = strstr(c.output, "--seed ");
    CHECK(found != NULL);
    unsigned long long seed = strtoull(found + strlen("--seed "), NULL, 10);
    char expected[64];
    snprintf(expected, sizeof expected, "seed was %llu\n", seed);
    CHECK_STR_HAS(c.output, expected);
    command_finish(&c);
    c = victims("--seed %llu fails_with_a_seed", seed);
    CHECK_STR_HAS(c.output, expected);
    command_finish(&c);
}

TEST(no_fork_runs_one_test_in_the_process_itself)
{
    struct command c = victims("--no-fork passes");
    CHECK_STR_EQ(c.output, "the passing test prints this\nok    passes\n");
    CHECK_EQ(c.status, 0);
    command_finish(&c);
    victims_say(76, "CHECK_NE(5, 5): left is 5, right is 5\n", "--no-fork fails_check_ne");
    victims_say(128 + 6, "", "--no-fork dies_of_sigabrt");
}
