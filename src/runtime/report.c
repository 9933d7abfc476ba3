/* SPDX-License-Identifier: MIT */
/* report.c - what a runtime tells people.
 *
 * An overflow is reported from a signal handler, on the alternate stack, by one write of a
 * text that is put together by hand: nothing else is safe there. */
#include "runtime/report.h"

#include "base/text.h"
#include "plat/fault.h"

#include <sinew/errno.h>
#include <stdio.h>
#include <unistd.h>

/* ---- overflow --------------------------------------------------------------------------- */

static void tell_overflow(const struct sni_task *task, const struct sni_stack_overflow *what)
{
    struct sni_text t = {.used = 0};
    sni_text_put(&t, "sinew: stack overflow in task ");
    sni_text_put_number(&t, task->id);
    sni_text_put(&t, " \"");
    sni_text_put(&t, task->name != NULL ? task->name : "");
    sni_text_put(&t, "\", spawned at ");
    sni_text_put(&t, task->at);
    sni_text_put(&t, ": its stack has ");
    sni_text_put_number(&t, what->had_bytes);
    sni_text_put(&t, " bytes; try .stack_bytes = ");
    sni_text_put_number(&t, what->next_bytes);
    sni_text_put(&t, "\n");
    ssize_t written = write(STDERR_FILENO, t.bytes, t.used);
    (void)written;
}

static int judge_fault(void *addr, void *frame)
{
    (void)frame;
    struct sni_exec *exec = sni_exec_current();
    struct sni_task *task = exec != NULL ? exec->fiber : NULL;
    struct sni_stack_overflow what;
    if (task == NULL || task->stack == NULL || !sni_stack_is_guard_hit(task->stack, addr, &what))
        return 0;
    tell_overflow(task, &what);
    return 0; /* the process ends as it would have: by SIGSEGV, with a core */
}

int sni_report_install(void)
{
    return sni_plat_fault_install(judge_fault);
}

void sni_report_remove(void)
{
    sni_plat_fault_remove();
}

/* ---- leftovers -------------------------------------------------------------------------- */

struct leftovers {
    struct sni_sched *sched;
    bool was_told; /* which tasks are alive */
    bool ended;    /* it is about those that have ended, then, and their handles */
    int alive;
};

static void tell_leftover(struct sni_record *record, void *arg)
{
    struct leftovers *left = arg;
    struct sni_task *task = (struct sni_task *)(void *)record;
    /* acquire: pairs with the end of its life, before which its runtime was used, and not after */
    if (sni_atomic_load(&record->generation, acquire) % 2 == 0 ||
        !sni_task_hold(task, &left->sched->home))
        return;
    bool complete = sni_task_is_complete(task);
    if (complete && !left->ended) {
        sni_task_unref(NULL, task);
        return;
    }
    const char *what = complete ? "was neither joined nor detached" : "is still alive";
    if (complete ? sni_task_has_handle(task) : !left->was_told)
        fprintf(stderr, "sinew: task %llu \"%s\", spawned at %s, %s\n",
                (unsigned long long)task->id, task->name != NULL ? task->name : "", task->at, what);
    left->alive += !complete;
    sni_task_abandon(task);
}

/* First those that are alive, so that whoever waits for them learns of it; when those threads have
 * gone, the handles that are left are nobody's. */
int sni_report_leftovers(struct sni_sched *sched, bool was_told)
{
    struct leftovers left = {.sched = sched, .was_told = was_told};
    sni_arena_each(sched->arena, tell_leftover, &left);
    sni_sched_await_callers(sched);
    left.ended = true;
    sni_arena_each(sched->arena, tell_leftover, &left);
    return left.alive;
}
