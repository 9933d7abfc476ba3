/* SPDX-License-Identifier: MIT */
/* local.h - the values of a task, between the files of this room. */
#ifndef SINEW_TASK_LOCAL_H
#define SINEW_TASK_LOCAL_H

#include <sinew/local.h>

struct sni_task;

/* Give `child`, which is new, what it inherits from `parent`.
 *
 * Returns  0, -ENOMEM; then the child has nothing */
int sni_local_inherit(struct sni_task *child, const struct sni_task *parent);

/* Give the running task another value for `key`, without destroying the one before.
 *
 * Returns  0; -ENOMEM if it had none */
int sni_local_replace(const sn_local *key, void *value);

/* Destroy all values of a task that ends, the last one first. */
void sni_local_drop_all(struct sni_task *task);

#endif
