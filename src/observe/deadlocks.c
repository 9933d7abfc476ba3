/* SPDX-License-Identifier: MIT */
/* deadlocks.c - sn_deadlocks: the cycles of a runtime that runs.
 *
 * What is found is copied first, and told when nothing is held any more: who is told may do
 * whatever a task may. */
#include "runtime/deadlock.h"
#include "runtime/runtime.h"

#include <sinew/errno.h>

int sn_deadlocks(sn_runtime *rt, sn_stuck_fn *tell, void *arg)
{
    struct sni_sched *sched = sni_runtime_sched(rt);
    if (sched == NULL)
        return -EINVAL;
    struct sni_snapshot snap;
    unsigned cycles = 0;
    sni_mutex_lock(&sched->inspection);
    int rc = sni_snapshot_take(&snap, sched);
    if (rc == 0)
        cycles = sni_snapshot_cycles(&snap, false);
    sni_mutex_unlock(&sched->inspection);
    if (rc == 0 && tell != NULL)
        sni_each_in_cycles(&snap, cycles, tell, arg);
    else if (rc == 0)
        sni_print_cycles(&snap, cycles);
    sni_snapshot_finish(&snap);
    return rc < 0 ? rc : (int)cycles;
}
