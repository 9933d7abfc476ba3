/* SPDX-License-Identifier: MIT */
/* model_priv.h - what the three parts of the explorer know of each other.
 *
 *     search.c    which decisions come next: depth first, random, or from a schedule
 *     machine.c   one execution: virtual threads, who can run, parking
 *     memory.c    what an operation reads and writes, store buffers, what orders promise */
#ifndef SINEW_TESTS_MODEL_PRIV_H
#define SINEW_TESTS_MODEL_PRIV_H

#include "model/model.h"

/* Who can make the next step: a thread, or the buffer of thread t as MODEL_BUFFER + t. */
enum {
    MODEL_NOBODY = -1,
    MODEL_BUFFER = MODEL_THREADS_MAX,
    MODEL_ACTORS_MAX = 2 * MODEL_THREADS_MAX,
    MODEL_STEPS_MAX = 20000,
};

/* search.c: the next actor of `count` ones. If `current_goes_on`, the first one is who made the
 * last step, and any other is a preemption. */
int model_decide(const int *actors, unsigned count, bool current_goes_on);
unsigned model_decide_value(unsigned count);

/* machine.c: one execution of the model; true if it did not fail. */
bool model_run(const struct model *model, const struct model_options *options,
               struct model_result *result);

/* A step begins: let others go first, if the search says so. */
void model_step(void);

/* Something was written that all can see: those who wait for that may look again. */
void model_memory_changed(void);

/* The running thread, or MODEL_NOBODY in setup and check, where nothing is explored. */
int model_running(void);

/* Whether `at` is on the stack of the running thread. */
bool model_owns(const void *at);

const struct model_options *model_options(void);

/* memory.c */
void model_memory_reset(void);
bool model_buffer_used(int thread);
void model_buffer_flush_one(int thread);
void model_buffer_flush(int thread);
bool model_is_planted(enum model_plant plant, const char *function);

#endif
