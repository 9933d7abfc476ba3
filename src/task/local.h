/* SPDX-License-Identifier: MIT */
/* local.h - the values of a task, between the files of this room. */
#ifndef SINEW_TASK_LOCAL_H
#define SINEW_TASK_LOCAL_H

#include <sinew/local.h>

struct sni_exec;
struct sni_guard;
struct sni_task;

/* Give `child`, which is new, what it inherits from `parent`.
 *
 * Returns  0, -ENOMEM; then the child has nothing */
int sni_local_inherit(struct sni_task *child, const struct sni_task *parent);

/* Give the running task another value for `key`, without destroying the one before.
 *
 * Returns  0; -ENOMEM if it had none */
int sni_local_replace(const sn_local *key, void *value);

/* For executors: sni_exec_ops.guard and unguard. */
void sni_local_guard(struct sni_exec *exec, struct sni_guard *guard);
void sni_local_unguard(struct sni_exec *exec, struct sni_guard *guard);

/* The innermost guard of the running task, or NULL. */
const struct sni_guard *sni_local_guarded(void);

/* Who panics: undo what guards stand for, the innermost first, but for `outer` and those around it;
 * NULL: all. */
void sni_local_undo(struct sni_task *task, const struct sni_guard *outer);

/* Destroy all values of a task that ends, the last one first. */
void sni_local_drop_all(struct sni_task *task);

#endif
