/* SPDX-License-Identifier: MIT */
/* selftest.h - what the files of test_harness share: running the victims and looking at the report.
 *
 * Each test of test_harness runs harness_victims, whose tests misbehave in every way the harness
 * promises to notice, and checks what is said about them. */
#ifndef SINEW_TESTS_HARNESS_SELFTEST_H
#define SINEW_TESTS_HARNESS_SELFTEST_H

#include "harness.h"

/* The start of a command without the SINEW_TEST_* variables around us; assignments may follow. */
#define CLEAN_ENVIRONMENT \
    "env -u SINEW_TEST_SEED -u SINEW_TEST_TIME_FACTOR -u SINEW_TEST_LOG -u SINEW_TEST_STRICT"

/* Run harness_victims in a clean environment with the formatted arguments, as the shell splits
 * them; leading words NAME=VALUE set variables. */
struct command victims(const char *fmt, ...) HARNESS_PRINTF_(1, 2);

/* The arguments make harness_victims end with `status` and print `text`. */
void victims_say(int status, const char *text, const char *arguments);

/* How often `needle` stands in `haystack`. */
int occurrences(const char *haystack, const char *needle);

/* The process has ended, or does so within five seconds. */
bool process_is_gone(int pid);

#endif
