/* SPDX-License-Identifier: MIT */
/* test_commands.c - commands, files, paths and directories, used as a test uses them. */
#include "selftest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(a_command_gives_its_status_and_both_outputs_in_order)
{
    struct command c = run_command("echo %s; echo err >&2; printf last; exit %d", "out", 7);
    CHECK_STR_EQ(c.output, "out\nerr\nlast");
    CHECK_EQ(c.output_bytes, 12);
    CHECK_EQ(c.status, 7);
    command_finish(&c);
    CHECK_PTR_EQ(c.output, NULL);
    command_finish(&c);
}

TEST(a_command_killed_by_a_signal_gives_128_and_its_number)
{
    struct command c = run_command("kill -TERM $$");
    CHECK_EQ(c.status, 128 + 15);
    command_finish(&c);
}

TEST(a_command_that_is_not_there_gives_127)
{
    struct command c = run_command("no-such-program-xyz");
    CHECK_EQ(c.status, 127);
    command_finish(&c);
}

TEST(a_command_does_not_wait_for_what_it_leaves_behind, .limit_s = 5)
{
    struct command c = run_command("sleep 1000 & echo started");
    CHECK_STR_EQ(c.output, "started\n");
    command_finish(&c);
}

TEST(a_command_may_print_mebibytes)
{
    struct command c = run_command("head -c 3000000 /dev/zero | tr '\\0' y");
    CHECK_EQ(c.output_bytes, 3000000);
    CHECK_EQ(strlen(c.output), 3000000);
    command_finish(&c);
}

TEST(a_file_is_read_whole_even_from_proc)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/file", temp_dir());
    struct command c = run_command("seq 100000 > '%s'; cat '%s'", path, path);
    char *text = read_file(path);
    CHECK_STR_EQ(text, c.output);
    free(text);
    command_finish(&c);
    text = read_file("/proc/self/status");
    CHECK_STR_HAS(text, "\nPid:");
    free(text);
}

TEST(a_file_that_is_absent_fails_the_test_with_a_sentence)
{
    victims_say(1, "FAIL  reads_a_file_that_is_absent: cannot open /no/such/file: No such file",
                "reads_a_file");
}

TEST(the_temporary_directory_is_empty_writable_and_of_this_test)
{
    struct stat st;
    CHECK_EQ(stat(temp_dir(), &st), 0);
    CHECK(S_ISDIR(st.st_mode));
    CHECK_EQ(st.st_nlink, 2);
    CHECK_EQ(access(temp_dir(), W_OK), 0);
    CHECK_STR_EQ(temp_dir(), temp_dir());
}

TEST(the_temporary_directory_is_removed_even_after_a_crash)
{
    char told[1024];
    snprintf(told, sizeof told, "%s/told", temp_dir());
    struct command c = victims("VICTIM_FILE=%s crashes_with_a_full", told);
    CHECK_STR_HAS(c.output, "killed by SIGABRT");
    char *path = read_file(told);
    CHECK_STR_HAS(path, "/sinew-test-");
    CHECK_EQ(access(path, F_OK), -1);
    free(path);
    command_finish(&c);
}

TEST(the_paths_are_absolute_and_the_environment_overrides_them)
{
    char path[4096];
    CHECK_EQ(source_path()[0], '/');
    CHECK_EQ(build_path()[0], '/');
    snprintf(path, sizeof path, "%s", build_path());
    CHECK_EQ(access(path, F_OK), 0);
    setenv("SINEW_SOURCE_DIR", "/some/source", 1);
    setenv("SINEW_BUILD_DIR", "/some/build", 1);
    CHECK_STR_EQ(source_path(), "/some/source");
    CHECK_STR_EQ(build_path(), "/some/build");
}
