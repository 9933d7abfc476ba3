/* SPDX-License-Identifier: MIT */
/* test_endings.c - however a test ends, it is named, leaves no process, and the others go on. */
#include "selftest.h"

#include <stdio.h>
#include <stdlib.h>

/* The pid a victim wrote to `path`. */
static int told_pid(const char *path)
{
    char *text = read_file(path);
    int pid = atoi(text);
    CHECK_GT(pid, 1);
    free(text);
    return pid;
}

TEST(a_crash_is_named_by_its_signal)
{
    victims_say(1, "FAIL  dies_of_sigsegv: killed by SIGSEGV\n", "dies_of_sigsegv");
    victims_say(1, "FAIL  dies_of_sigabrt: killed by SIGABRT\n", "dies_of_sigabrt");
    victims_say(1, "FAIL  dies_of_sigkill: killed by SIGKILL\n", "dies_of_sigkill");
    victims_say(1, "FAIL  dies_of_a_realtime_signal: killed by signal 40\n", "dies_of_a_real");
}

TEST(a_crash_loses_no_output)
{
    victims_say(1, "| last words without a newline\n", "dies_of_sigsegv");
}

TEST(leaving_by_exit_is_a_failure_whatever_the_status)
{
    victims_say(1, "exits_with_status_0: exited with status 0 before its body returned\n",
                "exits_with_status_0");
    victims_say(1, "exits_with_status_3: exited with status 3\n", "exits_with_status_3");
    victims_say(1, "FAIL  exits_with_status_77_unasked: exited with status 77\n", "77_unasked");
}

TEST(a_hang_is_cut_and_named, .limit_s = 15)
{
    victims_say(1, "FAIL  hangs: timed out after ", "'hangs'");
}

TEST(the_time_factor_stretches_and_shrinks_limits)
{
    victims_say(1, "timed out after ", "SINEW_TEST_TIME_FACTOR=0.1 is_slow");
    victims_say(0, "1 passed, ", "SINEW_TEST_TIME_FACTOR=50 is_slow");
}

TEST(a_hang_takes_its_descendants_along, .limit_s = 15)
{
    char told[1024];
    snprintf(told, sizeof told, "%s/told", temp_dir());
    struct command c = victims("VICTIM_FILE=%s hangs_with_a_descendant", told);
    CHECK_STR_HAS(c.output, "FAIL  hangs_with_a_descendant: timed out after ");
    CHECK(process_is_gone(told_pid(told)));
    command_finish(&c);
}

TEST(a_process_left_behind_is_killed_after_the_test)
{
    char told[1024];
    snprintf(told, sizeof told, "%s/told", temp_dir());
    struct command c = victims("VICTIM_FILE=%s leaves_a_process_behind", told);
    CHECK_STR_HAS(c.output, "1 passed, 0 failed, 0 skipped\n");
    CHECK(process_is_gone(told_pid(told)));
    command_finish(&c);
}

/* The shell starts the runner, waits until its test has told the pid, and kills the runner. */
static void kill_runner(const char *signal_option, const char *expected)
{
    char told[1024];
    snprintf(told, sizeof told, "%s/told%s", temp_dir(), signal_option);
    struct command c =
        run_command(CLEAN_ENVIRONMENT " VICTIM_FILE='%s' '%s' tells_its_pid & runner=$!; "
                                      "until [ -s '%s' ]; do sleep 0.01; done; "
                                      "kill %s $runner; wait $runner; echo status $?",
                    told, HARNESS_VICTIMS, told, signal_option);
    CHECK_STR_HAS(c.output, expected);
    CHECK(process_is_gone(told_pid(told)));
    command_finish(&c);
}

TEST(a_runner_that_is_stopped_leaves_no_process)
{
    kill_runner("-TERM", "stopped by SIGTERM\nstatus 143\n");
    kill_runner("-KILL", "status 137\n");
}

TEST(a_descriptor_leak_is_named_by_number_and_target)
{
    victims_say(1, "FAIL  leaks_a_descriptor: fd 3 (/dev/zero) was left open\n",
                "'leaks_a_descriptor'");
    victims_say(1, "FAIL  closes_stdin: fd 0 was open before the test and is now closed\n",
                "closes_stdin");
}

TEST(leaks_with_leave_pass)
{
    victims_say(0, "2 passed, 0 failed, 0 skipped\n", "_with_leave");
}

TEST(memory_that_is_freed_is_no_leak)
{
    victims_say(0, "1 passed, 0 failed, 0 skipped\n", "frees_what_it_allocates");
}

TEST(a_test_finds_nothing_on_its_stdin_and_no_descriptor_but_the_usual)
{
    struct command c =
        run_command("echo words | " CLEAN_ENVIRONMENT " '%s' finds_an_empty_stdin 9</dev/zero",
                    HARNESS_VICTIMS);
    CHECK_STR_HAS(c.output, "1 passed, 0 failed, 0 skipped\n");
    command_finish(&c);
}

TEST(other_tests_go_on_after_a_crash)
{
    struct command c = victims("-j 1 'dies_of_sig*' 'passes*'");
    CHECK_STR_HAS(c.output, "ok    passes (");
    CHECK_STR_HAS(c.output, "ok    passes_too (");
    CHECK_STR_HAS(c.output, "2 passed, 3 failed, 0 skipped\n");
    CHECK_EQ(c.status, 1);
    command_finish(&c);
}

TEST(mebibytes_of_output_block_nobody)
{
    victims_say(0, "1 passed, 0 failed, 0 skipped\n", "prints_three_mebibytes");
}

TEST(a_wanted_death_passes)
{
    victims_say(0, "2 passed, 0 failed, 1 skipped\n", "'wanted_*'");
}

TEST(an_unwanted_end_of_a_fail_test_fails, .limit_s = 15)
{
    struct command c = victims("'unwanted_*'");
    CHECK_STR_HAS(c.output, "FAIL  unwanted_words: killed by SIGABRT, as it should, but without "
                            "saying \"famous last words\"\n");
    CHECK_STR_HAS(c.output, "returned normally; it had to die saying \"famous last words\"\n");
    CHECK_STR_HAS(c.output, "FAIL  unwanted_status_0: exited with status 0; it had to die");
    CHECK_STR_HAS(c.output, "FAIL  unwanted_hang: timed out after ");
    CHECK_STR_HAS(c.output, "CHECK_EQ(1, 2): left is 1, right is 2\n");
    CHECK_STR_HAS(c.output, "0 passed, 5 failed, 0 skipped\n");
    CHECK_EQ(c.status, 1);
    command_finish(&c);
}

/* The checks of this very process, without run_command in between. */
FAIL_TEST(a_fail_test_sees_what_its_body_printed, "these words")
{
    fputs("these words", stderr);
    abort();
}

TEST(output_without_end_is_cut)
{
    victims_say(1, "FAIL  prints_without_end: wrote more than 64 MiB of output\n",
                "prints_without_end");
}
