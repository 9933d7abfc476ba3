/* SPDX-License-Identifier: MIT */
/* go_lines.h - for the tests that say in lines what channels do, as tests/go does with Go's. */
#ifndef SINEW_TESTS_GO_LINES_H
#define SINEW_TESTS_GO_LINES_H

/* Add a line, printf-wise, without its end. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Add a line for each of the power series, with `terms` coefficients. In a task. */
void say_series(int terms);

#endif
