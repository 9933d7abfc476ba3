/* SPDX-License-Identifier: MIT */
/* report.h - what a runtime tells people: overflowed stacks, tasks and handles left over. */
#ifndef SINEW_RUNTIME_REPORT_H
#define SINEW_RUNTIME_REPORT_H

#include "sched/sched.h"

/* Name the task when a fiber overflows its stack, from now on until as many removes. */
int sni_report_install(void);
void sni_report_remove(void);

/* List the tasks of `sched`, which has stopped, that are still alive, unless that `was_told`
 * before, and the handles that nobody used up; free their records. Returns the number of tasks that
 * were alive. */
int sni_report_leftovers(struct sni_sched *sched, bool was_told);

#endif
