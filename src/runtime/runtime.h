/* SPDX-License-Identifier: MIT */
/* runtime.h - what rooms above may ask a runtime for. */
#ifndef SINEW_RUNTIME_RUNTIME_H
#define SINEW_RUNTIME_RUNTIME_H

#include "sched/sched.h"

/* The scheduler of `rt`; of NULL, that of the running task, or NULL. */
struct sni_sched *sni_runtime_sched(sn_runtime *rt);

#endif
