/* SPDX-License-Identifier: MIT */
/* local.c - values that belong to a task: a list of pairs, the newest first.
 *
 * A task has few of them, so a list beats a table: no registry of keys, no limit, and a task
 * without any costs one pointer. Only the task itself, and whoever makes it, touch its list. */
#include "task/local.h"

#include "task/task.h"

#include <sinew/errno.h>
#include <sinew/local.h>
#include <stdlib.h>

struct sni_local_value {
    struct sni_local_value *next;
    const sn_local *key;
    void *value;
};

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

void sni_local_drop_all(struct sni_task *task)
{
    while (task->locals != NULL) {
        struct sni_local_value *pair = task->locals;
        task->locals = pair->next; /* first: what destroy calls must find it gone */
        destroy(pair);
        free(pair);
    }
}
