/* SPDX-License-Identifier: MIT */
/* ensure.h - hooks, and what a panic does before its task is left. */
#ifndef SINEW_TASK_ENSURE_H
#define SINEW_TASK_ENSURE_H

#include <sinew/task.h>

struct sni_task;

/* Something to call at an end. */
struct sni_hook {
    struct sni_hook *next; /* the one that was given before */
    sn_task_fn *fn;
    void *arg;
};

/* A new hook in front of `*first`.
 *
 * Returns  0, -EINVAL, -ENOMEM */
int sni_hook_add(struct sni_hook **first, sn_task_fn *fn, void *arg);

/* Call them and forget them. In a fiber. */
void sni_hooks_call(struct sni_hook **first);

/* The running task panics because of `text`: leave its scopes, and call its hooks. If the one that
 * panics is a hook, it goes on behind that one, and this does not return. */
void sni_panic_unwind(struct sni_task *task, char *text);

#endif
