/* SPDX-License-Identifier: MIT */
/* atomic_step.h - included before waker_cell.c: each atomic operation first asks the test. */
#ifndef SINEW_TESTS_ATOMIC_STEP_H
#define SINEW_TESTS_ATOMIC_STEP_H

void test_atomic_step(void);
#define SNI_ATOMIC_STEP() test_atomic_step()

#endif
