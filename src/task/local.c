/* SPDX-License-Identifier: MIT */
/* local.c - values that belong to a task: a list of pairs, the newest first.
 *
 * A task has few of them, so a list beats a table: no registry of keys, no limit, and a task
 * without any costs one pointer. Only the task itself, and whoever makes it, touch its list.
 *
 * Guards (wait/guard.h) stand in the same list. They lie on the task's stack, and are not freed. */
#include "task/local.h"

#include "task/task.h"
#include "wait/guard.h"

#include <sinew/errno.h>
#include <sinew/local.h>
#include <stdlib.h>

static void destroy(struct sni_local_value *pair)
{
    if (pair->key->destroy != NULL && pair->value != NULL)
        pair->key->destroy(pair->value);
}

static struct sni_local_value *find(const struct sni_task *task, const sn_local *key)
{
    struct sni_local_value *pair = task->locals;
    while (pair != NULL && pair->key != key)
        pair = pair->next;
    return pair;
}

static int add(struct sni_task *task, const sn_local *key, void *value)
{
    struct sni_local_value *pair = malloc(sizeof(*pair));
    if (pair == NULL)
        return -ENOMEM;
    *pair = (struct sni_local_value){.next = task->locals, .key = key, .value = value};
    task->locals = pair;
    return 0;
}

int sn_local_set(const sn_local *key, void *value)
{
    struct sni_task *task = sni_task_running(sni_exec_current());
    if (task == NULL)
        return -EPERM;
    struct sni_local_value *pair = find(task, key);
    if (pair == NULL)
        return value != NULL ? add(task, key, value) : 0;
    struct sni_local_value before = *pair;
    pair->value = value;
    destroy(&before);
    return 0;
}

int sni_local_replace(const sn_local *key, void *value)
{
    struct sni_task *task = sni_task_running(sni_exec_current());
    struct sni_local_value *pair = find(task, key);
    if (pair == NULL)
        return value != NULL ? add(task, key, value) : 0;
    pair->value = value;
    return 0;
}

void *sn_local_get(const sn_local *key)
{
    struct sni_task *task = sni_task_running(sni_exec_current());
    struct sni_local_value *pair = task != NULL ? find(task, key) : NULL;
    return pair != NULL ? pair->value : NULL;
}

int sni_local_inherit(struct sni_task *child, const struct sni_task *parent)
{
    for (struct sni_local_value *pair = parent->locals; pair != NULL; pair = pair->next) {
        if (pair->key->inherit == NULL || pair->value == NULL)
            continue;
        void *value = pair->key->inherit(pair->value);
        if (add(child, pair->key, value) < 0) {
            destroy(&(struct sni_local_value){.key = pair->key, .value = value});
            sni_local_drop_all(child);
            return -ENOMEM;
        }
    }
    return 0;
}

/* ---- guards ----------------------------------------------------------------------------- */

/* The key of all of them. */
static const sn_local guards = SN_LOCAL_INIT(NULL, NULL);

void sni_local_guard(struct sni_exec *exec, struct sni_guard *guard)
{
    struct sni_task *task = sni_task_running(exec);
    guard->place = (struct sni_local_value){.next = task->locals, .key = &guards};
    task->locals = &guard->place;
}

void sni_local_unguard(struct sni_exec *exec, struct sni_guard *guard)
{
    struct sni_local_value **at = &sni_task_running(exec)->locals;
    while (*at != &guard->place) /* the first, unless a value was set meanwhile */
        at = &(*at)->next;
    *at = guard->place.next;
}

/* Where the innermost one is linked, if there is any. */
static struct sni_local_value **first_guard(struct sni_task *task)
{
    struct sni_local_value **at = &task->locals;
    while (*at != NULL && (*at)->key != &guards)
        at = &(*at)->next;
    return at;
}

static struct sni_guard *guard_at(struct sni_local_value *pair)
{
    return pair != NULL ? sni_container_of(pair, struct sni_guard, place) : NULL;
}

const struct sni_guard *sni_local_guarded(void)
{
    struct sni_task *task = sni_task_running(sni_exec_current());
    return task != NULL ? guard_at(*first_guard(task)) : NULL;
}

void sni_local_undo(struct sni_task *task, const struct sni_guard *outer)
{
    for (;;) {
        struct sni_local_value **at = first_guard(task);
        struct sni_guard *guard = guard_at(*at);
        if (guard == outer || guard == NULL)
            return;
        *at = (*at)->next; /* first: as below */
        guard->undo(guard);
    }
}

void sni_local_drop_all(struct sni_task *task)
{
    while (task->locals != NULL) {
        struct sni_local_value *pair = task->locals;
        task->locals = pair->next; /* first: what destroy calls must find it gone */
        if (sni_unlikely(pair->key == &guards)) {
            guard_at(pair)->undo(guard_at(pair));
            continue;
        }
        destroy(pair);
        free(pair);
    }
}
