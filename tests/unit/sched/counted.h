/* SPDX-License-Identifier: MIT */
/* counted.h - what the workers of a scheduler have counted, for tests. */
#ifndef SINEW_TESTS_COUNTED_H
#define SINEW_TESTS_COUNTED_H

#include "sched/sched.h"

/* Over all workers of the scheduler that this task runs on. */
static inline uint64_t counted(enum sni_probe_counter counter)
{
    const struct sni_sched *sched = sni_worker_current()->sched;
    uint64_t sum = 0;
    for (unsigned i = 0; i < sched->workers_n; i++)
        sum += sni_probe_get(&sched->workers[i].probe, counter);
    return sum;
}

#endif
