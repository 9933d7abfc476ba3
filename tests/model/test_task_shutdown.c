/* SPDX-License-Identifier: MIT */
/* test_task_shutdown.c - src/task/task.c, all interleavings (R151): a runtime goes away while a
 * thread outside still uses a handle of its. After sni_task_hold and sni_task_abandon nobody calls
 * the home, which is then freed; the record is freed once; who joins learns how it ended. */
#include "model/model.h"
#include "model/task_home.h"

#include "harness.h"

#include <sinew/errno.h>

static struct sni_task *task;
static sn_task *handle;
static int result;

static int never(void *arg)
{
    (void)arg;
    model_fail("a fiber ran that nobody should have begun");
}

static void reset_alive(void)
{
    home_reset(NULL);
    task = home_fiber(never, true);
    handle = sni_task_handle(task);
    result = 1;
}

static void reset_ended(void)
{
    reset_alive();
    sni_task_end(NULL, task, HOME_RESULT);
}

/* What a runtime does with each of its records, when its workers have stopped. */
static void stop_home(void)
{
    if (sni_atomic_load(&task->record.generation, acquire) == life_of(task)->born &&
        sni_task_hold(task, home_exec(NULL).home))
        sni_task_abandon(task);
    home_is_gone();
}

/* The task may end before the workers stop. */
static void end_and_stop(void)
{
    home_run_to_end(task, HOME_RESULT);
    stop_home();
}

static void joiner(void)
{
    result = sn_join(handle, NULL);
}

static void detacher(void)
{
    result = sn_detach(handle);
}

static void check_freed(void)
{
    MODEL_CHECK(task->record.generation.raw_ == life_of(task)->born + 1);
}

static void check_joined(void)
{
    check_freed();
    MODEL_CHECK(result == HOME_RESULT || result == -ECANCELED || result == -ESRCH);
}

static void check_detached(void)
{
    check_freed();
    MODEL_CHECK(result == 0 || result == -ESRCH);
}

static void explore(const struct model *model)
{
    model_holds(model, &(struct model_options){.preemptions = 4, .random = 5000});
    model_holds(model, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

TEST(task_is_joined_while_its_runtime_gives_it_up, .limit_s = 60)
{
    static const struct model alive = {reset_alive, {stop_home, joiner}, check_joined};
    static const struct model ended = {reset_ended, {stop_home, joiner}, check_joined};
    static const struct model ending = {reset_alive, {end_and_stop, joiner}, check_joined};
    explore(&alive);
    explore(&ended);
    explore(&ending);
}

TEST(task_is_detached_while_its_runtime_gives_it_up, .limit_s = 60)
{
    static const struct model alive = {reset_alive, {stop_home, detacher}, check_detached};
    static const struct model ended = {reset_ended, {stop_home, detacher}, check_detached};
    explore(&alive);
    explore(&ended);
}

/* ---- records that had another home before ---------------------------------------------------- */

/* A runtime that has stopped walks over all records, while another makes tasks of those that were
 * once its own: until then they say that they still are. */
static const struct sni_home stopped = {NULL};
static struct sni_record *record;
static bool is_held;

static void reset_reused(void)
{
    home_reset(NULL);
    record = &home_fiber(never, false)->record;
    sni_task_end(NULL, (struct sni_task *)(void *)record, HOME_RESULT);
    sni_atomic_store(&((struct sni_task *)(void *)record)->home_,
                     (struct sni_home *)(uintptr_t)&stopped, relaxed); /* relaxed: in setup */
    is_held = false;
}

static void spawner(void)
{
    task = home_fiber(never, true);
    MODEL_CHECK(&task->record == record);
    home_run_to_end(task, HOME_RESULT);
    result = sn_join(sni_task_handle(task), NULL);
}

static void walker(void)
{
    /* acquire: as the walk has it */
    is_held = sni_atomic_load(&record->generation, acquire) % 2 != 0 &&
              sni_task_hold((struct sni_task *)(void *)record, &stopped);
    if (is_held)
        sni_task_abandon((struct sni_task *)(void *)record);
}

static void check_left_alone(void)
{
    check_freed();
    MODEL_CHECK(!is_held);
    MODEL_CHECK(result == HOME_RESULT);
}

TEST(task_of_another_runtime_is_left_alone, .limit_s = 60)
{
    static const struct model reused = {reset_reused, {spawner, walker}, check_left_alone};
    explore(&reused);
}
