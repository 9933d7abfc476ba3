/* SPDX-License-Identifier: MIT */
/* model.h - explores how a few threads can interleave, over the real code.
 *
 * A model is some virtual threads that run the code under test. That code is compiled with
 * SNI_MODEL="model/model_atomic.h", so each atomic operation is a *step* at which the explorer
 * decides who goes on. An execution is a sequence of such decisions and nothing else, so it can be
 * repeated: on failure the report names a schedule, and
 *
 *     SINEW_MODEL_REPLAY=<schedule> <test executable> <test>
 *
 * runs exactly that one, in a debugger if you like. A schedule reads: `2:` the second exploration
 * of the test, `a5` thread 0 makes five steps, `B2` two stores of thread 1 leave its store buffer,
 * `=1` a choice came out as 1.
 *
 * What is explored
 *   - all executions with at most `preemptions` preemptions, depth first; a switch away from a
 *     thread that cannot go on (parked, done) is free. Most bugs need one or two;
 *   - then `random` executions with random priorities that change at random steps (PCT);
 *   - sequentially consistent memory; with `store_buffers` that of x86: a store that is not seq_cst
 *     waits in its thread's buffer, in order, and becomes visible to others at any later time, at
 *     the latest at the thread's next RMW, seq_cst store or fence;
 *   - in both, what the orders promise: model_read and model_write mark accesses to plain data, and
 *     two of them that no acquire of a release orders are reported as a race. So an order that is
 *     too weak is found although no load is ever reordered here.
 *
 * What is not: reordering as weaker processors do it (loads among loads, stores among stores)
 * beyond that race check; more threads than a handful; time. */
#ifndef SINEW_TESTS_MODEL_H
#define SINEW_TESTS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MODEL_THREADS_MAX = 5,
    MODEL_MESSAGE_BYTES = 512,
    MODEL_SCHEDULE_BYTES = 4096,
};

struct model {
    void (*setup)(void);                      /* before each execution */
    void (*threads[MODEL_THREADS_MAX])(void); /* as many as are not NULL */
    void (*check)(void);                      /* after all threads have ended; NULL: nothing */
};

/* A mistake that is put into the code under test, at the operations of one function. */
enum model_plant {
    MODEL_PLANT_NOTHING,
    MODEL_PLANT_NO_FENCE,  /* its fences are forgotten */
    MODEL_PLANT_BUFFERED,  /* its seq_cst stores may be as late as others */
    MODEL_PLANT_SPLIT_RMW, /* its RMWs are a load, and later a store */
    MODEL_PLANT_RELAXED,   /* its orders are all relaxed */
};

struct model_options {
    unsigned preemptions;    /* 0: the default of 2 */
    bool store_buffers;      /* memory of x86 instead of sequential consistency */
    uint64_t executions_max; /* of the depth-first search; 0: 2,000,000 */
    uint64_t random;         /* random executions afterwards */
    enum model_plant plant;
    const char *function; /* where it is planted */
};

struct model_result {
    bool failed;
    bool exhausted; /* the depth-first search came to its end */
    uint64_t executions;
    uint64_t steps;
    char message[MODEL_MESSAGE_BYTES];
    char schedule[MODEL_SCHEDULE_BYTES];
};

/* Explore until something fails or nothing is left. The result is static, good until the next. */
const struct model_result *model_explore(const struct model *model,
                                         const struct model_options *options);

/* One execution by a schedule. */
const struct model_result *model_replay(const struct model *model,
                                        const struct model_options *options, const char *schedule);

/* For tests: explore, print what was explored, and fail the test with the schedule if the model
 * fails, or if the search did not come to its end. */
void model_holds(const struct model *model, const struct model_options *options);

/* The same for models that are too large to be searched to the end. */
void model_endures(const struct model *model, const struct model_options *options);

/* For planted mistakes: explore, and fail the test unless the model fails with `words` in the
 * message, and does so again when its schedule is replayed. */
void model_finds(const struct model *model, const struct model_options *options, const char *words);

/* ---- for the threads of a model -------------------------------------------------------------- */

/* The number of the running thread, from 0. */
unsigned model_self(void);

/* The condition holds, or the execution has failed. */
#define MODEL_CHECK(...) \
    ((__VA_ARGS__) ? (void)0 : model_fail("%s:%d: %s", __FILE__, __LINE__, #__VA_ARGS__))

_Noreturn void model_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A number below `count`: all are explored. */
unsigned model_choose(unsigned count);

/* A step that gives others precedence; for loops that wait for another thread. */
void model_yield(void);

/* Plain data, and accesses to it that must be ordered. Zeroed is untouched. */
struct model_data {
    uint32_t written[MODEL_THREADS_MAX]; /* per thread, its time at its last access + 1 */
    uint32_t read[MODEL_THREADS_MAX];
};

void model_read(struct model_data *data);
void model_write(struct model_data *data);

#endif
