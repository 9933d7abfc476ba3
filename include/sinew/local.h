/* SPDX-License-Identifier: MIT */
/* local.h - values that belong to a task, as thread-local variables belong to a thread.
 *
 *     static sn_local request = SN_LOCAL_INIT(free, NULL);
 *     ...
 *     sn_local_set(&request, strdup(text));      // freed when the task ends
 *     const char *text = sn_local_get(&request);
 *
 * A key is a variable of yours that lives as long as any task uses it. Thread-local variables
 * do not work for this: a fiber may go on on another thread after every suspension. */
#ifndef SINEW_LOCAL_H
#define SINEW_LOCAL_H

#include <sinew/annotate.h>
#include <sinew/errno.h>

SN_BEGIN_DECLS

/* A key, and what to do with its values.
 *
 * destroy  called with the value when it is replaced and when its task ends, however it ends;
 *          must not suspend. NULL: nothing
 * inherit  called with the parent's value when a task is spawned; gives the child's. NULL: the
 *          child begins without */
typedef struct sn_local {
    void (*destroy)(void *value);
    void *(*inherit)(void *value);
} sn_local;

/* A key with the two functions. */
#define SN_LOCAL_INIT(destroy_fn, inherit_fn) {(destroy_fn), (inherit_fn)}

/* Give this task a value for `key`; NULL takes it away. The value before is destroyed.
 *
 * Suspends: no.   Threads: inside a task.
 * Returns  0
 *          -EPERM   called outside a task
 *          -ENOMEM  no memory; the value before stays, the new one is still the caller's
 * Owns: the value is the task's from now on. */
SN_API SN_MUST_USE int sn_local_set(const sn_local *key, void *value);

/* This task's value for `key`.
 *
 * Suspends: no.   Threads: any.
 * Returns  the value; NULL if there is none, or outside a task */
SN_API void *sn_local_get(const sn_local *key);

SN_END_DECLS

#endif
