/* SPDX-License-Identifier: MIT */
/* victims_fail_test.c - FAIL_TESTs that get what they want and that do not, and two tests that must
 * meet. A file of its own also shows that tests of several files come together. */
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

FAIL_TEST(wanted_abort, "famous last words")
{
    fputs("these are my famous last words", stderr);
    abort();
}

FAIL_TEST(wanted_exit_on_stdout, "famous last words", .limit_s = 5)
{
    fputs("these are my famous last words", stdout);
    exit(3);
}

FAIL_TEST(unwanted_words, "famous last words")
{
    fputs("something else", stderr);
    abort();
}

FAIL_TEST(unwanted_return, "famous last words")
{
    fputs("famous last words", stderr);
}

FAIL_TEST(unwanted_status_0, "famous last words")
{
    fputs("famous last words", stderr);
    exit(0);
}

FAIL_TEST(unwanted_hang, "famous last words", .limit_s = 1)
{
    fputs("famous last words", stderr);
    for (;;)
        pause();
}

FAIL_TEST(unwanted_check, "CHECK_EQ")
{
    CHECK_EQ(1, 2);
}
FAIL_TEST(wanted_death_skipped, "no moon")
{
    SKIP("no moon");
}

/* Each makes its own file in VICTIM_DIR and waits for the other's: together, or never. */
static void meet(const char *mine, const char *other)
{
    char path[1024];
    const char *dir = getenv("VICTIM_DIR");
    CHECK(dir != NULL);
    snprintf(path, sizeof path, "%s/%s", dir, mine);
    close(open(path, O_CREAT | O_WRONLY, 0666));
    snprintf(path, sizeof path, "%s/%s", dir, other);
    while (access(path, F_OK) < 0)
        usleep(1000);
}

TEST(meets_his_twin, .limit_s = 1)
{
    meet("his", "her");
}
TEST(meets_her_twin, .limit_s = 1)
{
    meet("her", "his");
}
