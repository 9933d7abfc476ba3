/* SPDX-License-Identifier: MIT */
/* ensure.c - hooks that are called at the end of a task or a group, and panics on their way there.
 *
 * The hooks of a task are one of its local values (local.c): so a task without any pays nothing,
 * not even a field. They are called when its function has returned or panicked, before the other
 * values go, on its own stack. One is forgotten before it is called: whatever it does, it is not
 * called again.
 *
 * A hook of a fiber is called in a shield, which also is where its panic comes to: the shield has a
 * `catcher`, and sni_panic_unwind, which leaves the scopes of whoever panics, goes there. A
 * coroutine's hook that panics ends the task as any panic of it does, with the hooks that are left
 * called first. */
#include "task/ensure.h"

#include "task/local.h"
#include "task/scope.h"
#include "task/task.h"

#include <sinew/cancel.h>
#include <sinew/errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void forget_all(void *list)
{
    struct sni_hook *hook = list;
    while (hook != NULL) {
        struct sni_hook *next = hook->next;
        free(hook);
        hook = next;
    }
}

static const sn_local hooks_of_task = SN_LOCAL_INIT(forget_all, NULL);

int sni_hook_add(struct sni_hook **first, sn_task_fn *fn, void *arg)
{
    struct sni_hook *hook = fn != NULL ? malloc(sizeof(*hook)) : NULL;
    if (hook == NULL)
        return fn != NULL ? -ENOMEM : -EINVAL;
    *hook = (struct sni_hook){.next = *first, .fn = fn, .arg = arg};
    *first = hook;
    return 0;
}

static void tell_of(const char *what)
{
    const char *name = sn_task_name();
    const char *at = sn_task_spawned_at();
    fprintf(stderr, "sinew: a hook of task %llu%s%s%s, spawned at %s, failed: %s\n",
            (unsigned long long)sn_task_id(), name != NULL ? " \"" : "", name != NULL ? name : "",
            name != NULL ? "\"" : "", at != NULL ? at : "?", what);
}

static void call_plainly(const struct sni_hook *hook)
{
    int rc = hook->fn(hook->arg);
    if (rc < 0)
        tell_of(strerror(-rc));
}

static void call_shielded(const struct sni_hook *hook)
{
    struct sni_catcher catcher = {.guard = sni_local_guarded()};
    struct sni_scope shield = {.group = NULL};
    if (sni_scope_enter(&shield, SNI_SCOPE_SHIELD, SN_FOREVER) < 0) {
        call_plainly(hook); /* a coroutine's */
        return;
    }
    shield.catcher = &catcher;
    if (_setjmp(catcher.out) == 0)
        call_plainly(hook);
    sni_scope_leave(&shield);
}

void sni_hooks_call(struct sni_hook **first)
{
    while (*first != NULL) {
        struct sni_hook hook = **first;
        free(*first);
        *first = hook.next;
        call_shielded(&hook);
    }
}

/* sn_local_set would free the list. */
static int keep(struct sni_hook *first)
{
    return sni_local_replace(&hooks_of_task, first);
}

int sn_ensure(sn_task_fn *fn, void *arg)
{
    if (sni_task_running(sni_exec_current()) == NULL)
        return -EPERM;
    struct sni_hook *first = sn_local_get(&hooks_of_task);
    int rc = sni_hook_add(&first, fn, arg);
    if (rc < 0)
        return rc;
    rc = keep(first);
    if (rc < 0)
        free(first);
    return rc;
}

void sni_hooks_run(struct sni_task *task)
{
    (void)task;
    for (struct sni_hook *first = sn_local_get(&hooks_of_task); first != NULL;
         first = sn_local_get(&hooks_of_task)) {
        struct sni_hook hook = *first;
        (void)keep(first->next); /* there is a place for it already */
        free(first);
        call_shielded(&hook);
    }
}

void sni_panic_unwind(struct sni_task *task, char *text)
{
    struct sni_scope *to = sni_scope_unwind();
    if (to != NULL) {
        tell_of(text != NULL ? text : "it panicked");
        free(text);
        _longjmp(to->catcher->out, 1);
    }
    sni_task_finish_up(task);
}
