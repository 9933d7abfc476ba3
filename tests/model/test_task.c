/* SPDX-License-Identifier: MIT */
/* test_task.c - src/task/task.c, all interleavings (R21, R22): the state word of a task between
 * those who run it, join it, cancel it, let it go, and those whose handle is stale.
 *
 * In each model a worker runs a fiber to its end while others use its handle. Whatever the order:
 * one of them wins, the rest get an error; the winner sees what the task wrote; the record is freed
 * once, by whoever is last, and nothing that anybody did with it is unordered before that. */
#include "model/model.h"
#include "model/task_home.h"

#include "harness.h"

#include <sinew/errno.h>

enum { NOT_YET = 7777 };

static struct sni_task *task;
static sn_task *handle;
static int results[MODEL_THREADS_MAX]; /* what each thread's call returned */
static struct sni_task fiber;          /* who joins, where that is a fiber */

static int never(void *arg)
{
    (void)arg;
    model_fail("a fiber ran that nobody should have begun");
}

static void forget(void)
{
    for (int i = 0; i < MODEL_THREADS_MAX; i++)
        results[i] = NOT_YET;
    fiber = (struct sni_task){.acting = NULL};
}

static void reset(void)
{
    forget();
    home_reset(NULL);
    task = home_fiber(never, true);
    handle = sni_task_handle(task);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void worker(void)
{
    home_run_to_end(task, HOME_RESULT);
}

static void learn(int result)
{
    struct life *life = life_of(task);
    results[model_self()] = result;
    if (result == HOME_RESULT)
        model_read(&life->result);
}

static void joiner(void)
{
    learn(sn_join(handle, NULL));
}

static void joining_fiber(void)
{
    struct sni_task_exec me = home_exec(&fiber);
    sni_exec_set(&me.exec);
    learn(sn_join(handle, NULL));
    sni_exec_set(NULL);
}

static void detacher(void)
{
    results[model_self()] = sn_detach(handle);
}

/* ---- a join and the end meet ----------------------------------------------------------------- */

static void check_joined(void)
{
    home_check_over(life_of(task));
    MODEL_CHECK(results[1] == HOME_RESULT);
}

static const struct model join_by_thread = {reset, {worker, joiner}, check_joined};
static const struct model join_by_fiber = {reset, {worker, joining_fiber}, check_joined};

TEST(task_a_join_and_the_end_meet, .limit_s = 60)
{
    model_holds(&join_by_thread, &(struct model_options){.preemptions = 5, .random = 5000});
    model_holds(&join_by_thread, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

TEST(task_a_fiber_that_joins_is_resumed_once, .limit_s = 60)
{
    model_holds(&join_by_fiber, &(struct model_options){.preemptions = 5, .random = 5000});
    model_holds(&join_by_fiber, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

/* Thread 0 is the worker; of the others one had `good`, and the rest -ESRCH. */
static void check_one_winner(int users, int good, int other_good)
{
    int winners = 0;
    home_check_over(life_of(task));
    for (int i = 1; i <= users; i++) {
        if (results[i] == good || results[i] == other_good)
            winners++;
        else
            MODEL_CHECK(results[i] == -ESRCH);
    }
    MODEL_CHECK(winners == 1);
}

static void check_one_of_two(void)
{
    check_one_winner(2, HOME_RESULT, 0);
}

TEST(task_of_two_that_join_with_one_handle_one_wins, .limit_s = 60)
{
    static const struct model model = {reset, {worker, joiner, joiner}, check_one_of_two};
    model_holds(&model, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&model, &(struct model_options){.store_buffers = true, .random = 20000});
}

static const struct model join_and_detach = {reset, {worker, joiner, detacher}, check_one_of_two};

TEST(task_of_a_join_and_a_detach_one_wins, .limit_s = 60)
{
    model_holds(&join_and_detach, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&join_and_detach, &(struct model_options){.store_buffers = true, .random = 20000});
}

static void check_detached(void)
{
    home_check_over(life_of(task));
    MODEL_CHECK(results[1] == 0);
}

static const struct model detach = {reset, {worker, detacher}, check_detached};

TEST(task_a_detach_and_the_end_leave_one_to_free, .limit_s = 60)
{
    model_holds(&detach, &(struct model_options){.preemptions = 6, .random = 5000});
    model_holds(&detach, &(struct model_options){.preemptions = 4, .store_buffers = true});
}

/* ---- a task that has not begun --------------------------------------------------------------- */

static SNI_ATOMIC(uint32_t) queued;
static int runs;

static int run_once(void *arg)
{
    (void)arg;
    runs++;
    model_write(&life_of(task)->result);
    return HOME_RESULT;
}

static bool take_from_queue(struct sni_task *t)
{
    MODEL_CHECK(t == task);
    return sni_atomic_exchange(&queued, 0, acq_rel) == 1; /* acq_rel: as a queue would */
}

static void reset_queued(void)
{
    forget();
    home_reset(&(struct home_hooks){.take_unstarted = take_from_queue});
    task = home_fiber(run_once, true);
    handle = sni_task_handle(task);
    sni_atomic_store(&queued, 1, relaxed); /* relaxed: nobody is there yet */
    runs = 0;
}

static void worker_of_queue(void)
{
    if (!take_from_queue(task))
        return;
    runs++;
    home_run_to_end(task, HOME_RESULT);
}

static void check_run_once(void)
{
    check_joined();
    MODEL_CHECK(runs == 1);
}

TEST(task_that_has_not_begun_is_run_once_by_its_joiner_or_a_worker, .limit_s = 60)
{
    static const struct model model = {
        reset_queued, {worker_of_queue, joining_fiber}, check_run_once};
    model_holds(&model, &(struct model_options){.preemptions = 5, .random = 5000});
    model_holds(&model, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

/* ---- cancelling ------------------------------------------------------------------------------ */

/* A task that looks once whether it was asked to end, and one that waits for it. */
static void worker_that_looks(void)
{
    results[0] = sni_task_is_canceled(task) ? -ECANCELED : HOME_RESULT;
    home_run_to_end(task, results[0]);
}

static void worker_that_waits_to_be_cancelled(void)
{
    while (!sni_task_is_canceled(task))
        model_yield();
    results[0] = -ECANCELED;
    home_run_to_end(task, -ECANCELED);
}

static void canceller(void)
{
    learn(sn_cancel(handle, NULL));
}

static void check_told_the_same(void)
{
    home_check_over(life_of(task));
    MODEL_CHECK(results[0] == results[1]);
}

TEST(task_that_is_cancelled_may_end_before_it_notices, .limit_s = 60)
{
    static const struct model model = {reset, {worker_that_looks, canceller}, check_told_the_same};
    model_holds(&model, &(struct model_options){.preemptions = 5, .random = 5000});
    model_holds(&model, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

TEST(task_that_waits_to_be_cancelled_is_told, .limit_s = 60)
{
    static const struct model model = {
        reset, {worker_that_waits_to_be_cancelled, canceller}, check_told_the_same};
    model_holds(&model, &(struct model_options){.preemptions = 4, .random = 5000});
    model_holds(&model, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

/* ---- stale handles --------------------------------------------------------------------------- */

static struct sni_task *second;
static sn_task *second_handle;
static unsigned reuses; /* in all executions: the second task got the record of the first */

static void reset_two_lives(void)
{
    reset();
    second = NULL;
}

/* Joins the first task and makes a second one, in the same record if that is free by now. */
static void owner(void)
{
    learn(sn_join(handle, NULL));
    second = home_fiber(never, true);
    second_handle = sni_task_handle(second);
}

static void check_second_untouched(void)
{
    const struct life *first = &life_of(second)[-1];
    int winners = (results[1] == HOME_RESULT) + (results[2] == 0);
    MODEL_CHECK(winners == 1);
    MODEL_CHECK(results[1] == HOME_RESULT || results[1] == -ESRCH);
    MODEL_CHECK(results[2] == 0 || results[2] == -ESRCH);
    MODEL_CHECK(first->ended == 1);
    reuses += first->task == second;
    MODEL_CHECK(sni_task_has_handle(second));
    home_run_to_end(second, HOME_RESULT + 1);
    MODEL_CHECK(sn_join(second_handle, NULL) == HOME_RESULT + 1);
    home_check_over(life_of(second));
}

static const struct model stale = {
    reset_two_lives, {worker, owner, detacher}, check_second_untouched};

TEST(task_a_stale_handle_never_touches_the_next_life_of_the_record, .limit_s = 60)
{
    model_holds(&stale, &(struct model_options){.preemptions = 3, .random = 20000});
    CHECK_GT(reuses, 0);
    model_holds(&stale, &(struct model_options){.store_buffers = true, .random = 20000});
}

/* ---- a spawn that fails ---------------------------------------------------------------------- */

/* Its record is found by who walks over all of them for a report. */
static const struct life *failed, *next;

static void reset_unspawned(void)
{
    reset();
    sni_task_end(NULL, task, HOME_RESULT);
    MODEL_CHECK(sn_detach(handle) == 0); /* its record is the next to be used */
}

static void spawner(void)
{
    failed = life_of(home_fiber(never, false));
    MODEL_CHECK(failed->task == task);
    sni_task_unspawn(NULL, task);
    next = life_of(home_fiber(never, false));
    home_run_to_end(next->task, HOME_RESULT);
}

static void inspector(void)
{
    if (!sni_task_find(task))
        return;
    model_read(&life_of(task)->memory);
    sni_task_unref(NULL, task);
}

/* Whether the second one got the record of the first depends on who was last. */
static void check_both_over(void)
{
    uint32_t lives = failed->task == next->task ? 2 : 1;
    MODEL_CHECK(failed->ended == 0);
    MODEL_CHECK(task->record.generation.raw_ == failed->born + 2 * lives - 1);
    home_check_over(next);
}

TEST(task_that_is_not_spawned_after_all_is_freed_once, .limit_s = 60)
{
    static const struct model model = {reset_unspawned, {spawner, inspector}, check_both_over};
    model_holds(&model, &(struct model_options){.preemptions = 4, .random = 5000});
    model_holds(&model, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

/* ---- planted mistakes ------------------------------------------------------------------------ */

TEST(task_planted_end_without_read_modify_write_is_found)
{
    model_finds(&join_by_thread,
                &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "end_task"},
                "deadlock");
}

TEST(task_planted_watch_without_compare_and_swap_is_found)
{
    model_finds(
        &join_by_thread,
        &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_task_watch"},
        "deadlock");
}

TEST(task_planted_end_that_releases_nothing_is_found)
{
    model_finds(&join_by_thread,
                &(struct model_options){.plant = MODEL_PLANT_RELAXED, .function = "end_task"},
                "a race");
}

TEST(task_planted_use_of_a_handle_without_compare_and_swap_has_two_winners)
{
    model_finds(&join_and_detach,
                &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "use_up"}, "");
}

TEST(task_planted_use_of_a_stale_handle_without_compare_and_swap_is_found)
{
    model_finds(&stale,
                &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "use_up"}, "");
}

TEST(task_planted_unref_without_read_modify_write_is_found)
{
    model_finds(
        &detach,
        &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_task_unref"},
        "generation");
}

TEST(task_planted_unref_without_order_frees_what_is_in_use)
{
    model_finds(&detach,
                &(struct model_options){.plant = MODEL_PLANT_RELAXED, .function = "sni_task_unref"},
                "a race");
}
