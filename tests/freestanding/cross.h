/* SPDX-License-Identifier: MIT */
/* cross.h - building the tree for another target from within a test.
 *
 * Every build goes into the test's own temporary directory, so that tests may run side by
 * side and leave nothing behind. */
#ifndef SINEW_TESTS_CROSS_H
#define SINEW_TESTS_CROSS_H

#include "harness.h"

/* Run a shell command that must succeed; a failure shows the command and what it said. Gives
 * its output, to be freed by the caller. */
char *run_well(const char *fmt, ...) HARNESS_PRINTF_(1, 2);

/* Configure the preset `preset` with more `options` for CMake and build it. Skips the test
 * where the tools of the target are missing. Gives the build directory, to be freed. */
char *cross_build(const char *preset, const char *options);

#endif
