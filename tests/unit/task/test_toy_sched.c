/* SPDX-License-Identifier: MIT */
/* Another scheduler, plugged in through the two tables that a task knows (R45): sni_home_ops, what
 * tasks want of their home, and sni_exec_ops, what a fiber wants of whoever runs it.
 *
 * It is a toy: one thread, one list, first come, first served, and a switch through the main
 * context each time. The public interface works in it as in the real one: spawn, join, yield,
 * panics, coroutine tasks, local values. */
#include "harness.h"

#include "task/task.h"

#include <sinew/sinew.h>
#include <stdint.h>

static struct toy {
    struct sni_task_exec exec; /* first: it is what sni_exec_current() gives */
    struct sni_home home;
    struct sni_context main;
    struct sni_record_cache records;
    struct sni_stack_pool pool;
    struct sni_stack_cache stacks;
    struct sni_runlink *first, *last;
    struct sni_waiter *parked; /* these three: what the fiber that came back wants done */
    struct sni_task *yielded;
    struct sni_task *ended;
    int result; /* of that one                              */
    uint64_t ids;
    int alive;
} toy;

/* ---- what tasks want of their home -------------------------------------------------------- */

static int new_record(struct sni_home *home, struct sni_exec *exec, size_t bytes,
                      struct sni_record **out, uint64_t *id)
{
    CHECK_PTR_EQ(home, &toy.home);
    (void)exec;
    *id = ++toy.ids;
    int rc = sni_record_get(&toy.records, bytes, out);
    toy.alive += rc == 0;
    return rc;
}

static void unspawned(struct sni_home *home, struct sni_exec *exec)
{
    (void)home;
    (void)exec;
    toy.alive--;
}

static void free_record(struct sni_home *home, struct sni_exec *exec, struct sni_record *record)
{
    (void)home;
    (void)exec;
    sni_record_put(&toy.records, record);
}

static void ready(struct sni_task *task)
{
    task->link.next = NULL;
    if (toy.first == NULL)
        toy.first = &task->link;
    else
        toy.last->next = &task->link;
    toy.last = &task->link;
}

static void spawned(struct sni_exec *exec, struct sni_task *task)
{
    (void)exec;
    ready(task);
}

static void ended(struct sni_exec *exec, struct sni_task *task)
{
    (void)exec;
    (void)task;
    toy.alive--;
}

_Noreturn static void leave_with(struct sni_task *task, int result)
{
    toy.result = result;
    toy.ended = task;
    sni_context_exit(&task->context, &toy.main, NULL);
}

static void leave(struct sni_task *task)
{
    leave_with(task, -ECONNABORTED);
}

static void back_to_main(void)
{
    struct sni_task *me = toy.exec.exec.fiber;
    (void)sni_context_switch(&me->context, &toy.main, NULL);
}

static bool take_unstarted(struct sni_task *task)
{
    (void)task;
    return false; /* a toy always waits */
}

static const struct sni_home_ops home_ops = {
    .new_record = new_record,
    .unspawned = unspawned,
    .free_record = free_record,
    .spawned = spawned,
    .ready = ready,
    .ended = ended,
    .leave = leave,
    .take_unstarted = take_unstarted,
};

/* ---- what a fiber wants of whoever runs it ------------------------------------------------- */

static void suspend(struct sni_exec *exec, struct sni_waiter *waiter)
{
    (void)exec;
    toy.parked = waiter;
    back_to_main();
}

static void resume(void *fiber)
{
    ready(fiber);
}

static void give_way(struct sni_exec *exec)
{
    toy.yielded = exec->fiber;
    back_to_main();
}

static const struct sni_exec_ops exec_ops = {
    .suspend = suspend,
    .resume = resume,
    .resume_last = resume,
    .give_way = give_way,
    .lent_at = offsetof(struct sni_task, lent),
    .wait_at = offsetof(struct sni_task, wait),
};

/* ---- the loop ------------------------------------------------------------------------------- */

static void fiber_main(void *pass)
{
    (void)pass;
    struct sni_task *task = toy.exec.exec.fiber;
    sn_task_fn *fn = task->fn;
    task->acting = NULL;
    int result = fn(task->arg);
    leave_with(task, result);
}

/* The fiber is off its stack: do what it wanted. */
static void after_switch(void)
{
    if (toy.parked != NULL && sni_task_parked(toy.parked->fiber))
        ready(toy.parked->fiber);
    if (toy.yielded != NULL)
        ready(toy.yielded);
    if (toy.ended != NULL) {
        sni_stack_put(&toy.stacks, toy.ended->stack);
        sni_task_end(&toy.exec.exec, toy.ended, toy.result);
    }
    toy.parked = NULL;
    toy.yielded = NULL;
    toy.ended = NULL;
}

static void run_fiber(struct sni_task *task)
{
    if (task->stack == NULL) {
        CHECK_EQ(sni_stack_get(&toy.stacks, 0, &task->stack), 0);
        CHECK_EQ(sni_context_make(&task->context, task->stack->lo, task->stack->hi, fiber_main), 0);
    }
    toy.exec.exec.fiber = task;
    (void)sni_context_switch(&toy.main, &task->context, NULL);
    toy.exec.exec.fiber = NULL;
    after_switch();
}

static void run_coroutine(struct sni_task *task)
{
    if (sni_task_poll(&toy.exec, task))
        ready(task);
}

static void run_until_empty(void)
{
    while (toy.first != NULL) {
        struct sni_task *task = sni_container_of(toy.first, struct sni_task, link);
        toy.first = toy.first->next;
        if (task->kind == SNI_TASK_FIBER)
            run_fiber(task);
        else
            run_coroutine(task);
    }
}

/* Run `fn` as the first task of a toy; gives its result. */
static int run_in_toy(sn_task_fn *fn, void *arg)
{
    struct sni_arena *arena;
    CHECK_EQ(sni_arena_get(&arena), 0);
    toy =
        (struct toy){.exec = {.exec = {.ops = &exec_ops}, .home = &toy.home}, .home = {&home_ops}};
    sni_record_cache_init(&toy.records, arena);
    CHECK_EQ(sni_stack_pool_init(&toy.pool, NULL), 0);
    sni_stack_cache_init(&toy.stacks, &toy.pool);

    sn_spawn_options opts = {.at_ = "toy", .name = "main"};
    struct sni_spawn what = {.kind = SNI_TASK_FIBER, .fn = fn, .arg = arg, .opts = &opts};
    struct sni_task *task;
    CHECK_EQ(sni_task_new(&toy.home, NULL, &what, true, &task), 0);
    sn_task *handle = sni_task_handle(task);
    ready(task);
    sni_exec_set(&toy.exec.exec);
    run_until_empty();
    sni_exec_set(NULL);
    CHECK_EQ(toy.alive, 0);
    int result = sn_join(handle, NULL);

    sni_record_cache_finish(&toy.records);
    sni_stack_cache_finish(&toy.stacks);
    sni_stack_pool_finish(&toy.pool);
    return result;
}

/* ---- programs in it -------------------------------------------------------------------------- */

static int fib(void *arg)
{
    int n = (int)(intptr_t)arg;
    if (n < 2)
        return n;
    sn_task *left = sn_spawn(fib, (void *)(intptr_t)(n - 1));
    sn_yield();
    sn_task *right = sn_spawn(fib, (void *)(intptr_t)(n - 2));
    return sn_join(left, NULL) + sn_join(right, NULL);
}

TEST(tasks_run_on_another_scheduler)
{
    CHECK_EQ(run_in_toy(fib, (void *)12), 144);
}

typedef struct counter {
    sn_coro coro;
    int n;
} counter;

SN_CORO(counter, self)
{
    SN_BEGIN(self);
    for (; self->n < 5; self->n++)
        SN_YIELD();
    SN_RETURN(self->n);
    SN_END();
}

static int panic_now(void *arg)
{
    sn_panic("%s", (const char *)arg);
}

static int mixture(void *arg)
{
    (void)arg;
    sn_exit how;
    counter frame = {.n = 0};
    sn_task *t = sn_spawn_coro(counter, &frame);
    CHECK_EQ(sn_join(sn_spawn(panic_now, "toys break"), &how), -ECONNABORTED);
    CHECK_STR_EQ(how.message, "toys break");
    CHECK_STR_EQ(sn_task_name(), "main");
    return sn_join(t, NULL);
}

TEST(panics_and_coroutine_tasks_work_on_another_scheduler)
{
    CHECK_EQ(run_in_toy(mixture, NULL), 5);
}
