/* SPDX-License-Identifier: MIT */
/* deadlock.h - telling people who waits for whom; and what to do when all are asleep. */
#ifndef SINEW_RUNTIME_DEADLOCK_H
#define SINEW_RUNTIME_DEADLOCK_H

#include "runtime/inspect.h"

#include <sinew/observe.h>

/* What is said about a node. */
sn_stuck sni_stuck_of(const struct sni_snapshot *snap, const struct sni_node *node);

/* Call `tell` for each task of each cycle, which sni_snapshot_cycles has numbered. */
void sni_each_in_cycles(struct sni_snapshot *snap, unsigned cycles, sn_stuck_fn *tell, void *arg);

/* Print "task 3 "name"" on standard error. */
void sni_print_task(const struct sni_node *node);

/* List a node on standard error, in a line. `more` may say more behind each place; or NULL. */
void sni_print_node(const struct sni_snapshot *snap, const struct sni_node *node,
                    sni_place_fn *more, void *arg);

/* List the cycles. */
void sni_print_cycles(struct sni_snapshot *snap, unsigned cycles);

/* As sni_sched_config.all_asleep: the first reports only, the second ends the run as well. */
enum sni_verdict sni_report_asleep(struct sni_sched *sched, struct sni_worker *w);
enum sni_verdict sni_end_asleep(struct sni_sched *sched, struct sni_worker *w);

#endif
