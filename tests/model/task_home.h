/* SPDX-License-Identifier: MIT */
/* task_home.h - a home for tasks under the explorer: the smallest scheduler that sni_home_ops
 * allows, which notices when a task ends twice, is freed twice, or is used by somebody whom nothing
 * orders before its free.
 *
 * Records come from the real arena, in a region of the model's own that outlives executions. There
 * is one shelf of free records for all, so that a new task gets the record that was freed last: a
 * stale handle then meets the next life of the very record it named. */
#ifndef SINEW_TESTS_MODEL_TASK_HOME_H
#define SINEW_TESTS_MODEL_TASK_HOME_H

#include "model/model.h"

#include "task/task.h"

enum { HOME_TASKS_MAX = 4, HOME_RESULT = 42 };

/* What is known of a task, also after its end. */
struct life {
    struct sni_task *task;
    uint32_t born;            /* the record's generation                                    */
    unsigned ended;           /* how often                                                  */
    struct model_data memory; /* the record: written by its free                            */
    struct model_data joiner; /* rule 2 of task.h: who joins writes it, who ends reads it   */
    struct model_data result; /* rule 3                                                     */
};

/* What a model decides about its tasks; NULL: never asked (ready), never done (spawned), nothing to
 * add (ended), no (take_unstarted). */
struct home_hooks {
    void (*spawned)(struct sni_task *task);
    void (*ready)(struct sni_task *task);
    void (*ended)(struct sni_task *task);
    bool (*take_unstarted)(struct sni_task *task);
};

/* In setup: no tasks yet. */
void home_reset(const struct home_hooks *hooks);

/* In setup: threads will spawn tasks of that size. Else the first execution, which fills the shelf,
 * would be longer than the others. */
void home_have_records(size_t bytes);

/* A new task, in setup or by a thread. */
struct sni_task *home_fiber(sn_task_fn *fn, bool handle);
struct sni_task *home_coroutine(sn_future *future, size_t bytes, bool handle);

struct life *life_of(const struct sni_task *task);

/* Run the fiber `task` to its end with `result`, as a worker does: on the calling thread. */
void home_run_to_end(struct sni_task *task, int result);

/* The runtime is gone: from here on no operation of the home may be called. */
void home_is_gone(void);

/* In check: the task ended once and its record was freed once, and not used again. */
void home_check_over(const struct life *life);

/* The executor of a thread that runs `fiber`, or polls if that is NULL. A fiber that waits sleeps
 * where it is. */
struct sni_task_exec home_exec(struct sni_task *fiber);

/* As it is in life: when a fiber waits, somebody else parks it, while others may resume it already.
 * In setup; then one thread is the parker, until it is told to quit by the fiber's. */
void home_has_parker(void);
void home_parker(struct sni_task *fiber);
void home_quit_parker(void);

/* The fiber that waits goes on: for a model's own hook `ready`. */
void home_resume(void);

#endif
