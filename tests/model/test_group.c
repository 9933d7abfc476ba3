/* SPDX-License-Identifier: MIT */
/* test_group.c - a group whose members end while its owner closes it (R60), all interleavings:
 * src/task/group.c and src/task/scope.c.
 *
 * Whatever the order: the owner goes on when both have ended, each result is there, a failure has
 * cancelled the other one or came after its end, and nobody touches the group afterwards: its
 * memory is overwritten at once. */
#include "model/model.h"
#include "model/task_home.h"

#include "harness.h"
#include "plat/thread.h"
#include "task/scope.h"
#include "task/state.h"

#include <sinew/errno.h>
#include <sinew/group.h>
#include <string.h>

enum { MEMBERS = 2, GONE = 0xEE };

static struct sni_task fiber; /* the owner */
static struct sni_stack stack;
static struct sni_task *members[MEMBERS];
static SNI_ATOMIC(uint32_t) spawned;
static sn_group group;
static int results[MEMBERS];
static int closed;        /* what it came to */
static int first_returns; /* what the first member returns */
static bool second_was_cancelled, second_is_background;

static void ready(struct sni_task *task)
{
    MODEL_CHECK(task == &fiber);
    home_resume();
}

static void note_member(struct sni_task *task)
{
    members[members[0] != NULL] = task;
}

static const struct home_hooks hooks = {.ready = ready, .spawned = note_member};

static void reset(void)
{
    home_reset(&hooks);
    home_have_records(sizeof(struct sni_task) + sizeof(struct sni_member));
    fiber = (struct sni_task){.kind = SNI_TASK_FIBER, .stack = &stack};
    /* relaxed, all: in setup */
    sni_atomic_store(&fiber.home_, home_exec(NULL).home, relaxed);
    sni_atomic_store(&fiber.wait, SNI_WAIT_CLAIMED, relaxed);
    sni_atomic_store(&fiber.state, REF, relaxed);
    sni_atomic_store(&spawned, 0, relaxed);
    memset(members, 0, sizeof(members));
    results[0] = results[1] = closed = 7777;
    first_returns = 0;
    second_was_cancelled = second_is_background = false;
}

static void reset_failing(void)
{
    reset();
    first_returns = -EIO;
}

static void reset_background(void)
{
    reset();
    second_is_background = true;
}

static int never(void *arg)
{
    (void)arg;
    model_fail("a fiber ran that nobody should have begun");
}

static void owner(void)
{
    struct sni_task_exec me = home_exec(&fiber);
    sni_exec_set(&me.exec);
    MODEL_CHECK(sn_group_open(&group, .results = results, .results_max = MEMBERS) == 0);
    for (int i = 0; i < MEMBERS; i++)
        MODEL_CHECK(
            sn_group_spawn(&group, never, NULL, .background = i == 1 && second_is_background) == i);
    sni_atomic_store(&spawned, 1, release); /* release: pairs with await_spawn */
    sni_plat_unpark(&spawned.raw_, MEMBERS);
    closed = sn_group_close(&group);
    memset(&group, GONE, sizeof(group));
    sni_exec_set(NULL);
}

static void await_spawn(void)
{
    while (sni_atomic_load(&spawned, acquire) == 0) /* acquire: pairs with the owner's release */
        (void)sni_plat_park(&spawned.raw_, 0, INT64_MAX);
}

static void first(void)
{
    await_spawn();
    home_run_to_end(members[0], first_returns);
}

static void second(void)
{
    await_spawn();
    second_was_cancelled = sni_task_is_canceled(members[1]);
    home_run_to_end(members[1], second_was_cancelled ? -ECANCELED : 1);
}

static void check(void)
{
    MODEL_CHECK(closed == first_returns);
    MODEL_CHECK(results[0] == first_returns);
    MODEL_CHECK(results[1] == (second_was_cancelled ? -ECANCELED : 1));
    const unsigned char *byte = (const unsigned char *)&group;
    for (size_t i = 0; i < sizeof(group); i++)
        MODEL_CHECK(byte[i] == GONE);
    /* relaxed: all have ended */
    MODEL_CHECK(sni_atomic_load(&fiber.state, relaxed) == REF);
}

static const struct model ending = {reset, {owner, first, second}, check};
static const struct model failing = {reset_failing, {owner, first, second}, check};
static const struct model background = {reset_background, {owner, first, second}, check};

/* ---- given up -------------------------------------------------------------------------------- */

/* A shutdown comes to a member first, and somebody cancels the owner before it comes to that. */
static void owner_is_cancelled_after_its_member_was_given_up(void)
{
    struct sni_task_exec me = home_exec(&fiber);
    sni_exec_set(&me.exec);
    MODEL_CHECK(sn_group_open(&group, .policy = SN_COLLECT_ALL) == 0);
    MODEL_CHECK(sn_group_spawn(&group, never, NULL) == 0);
    sni_exec_set(NULL);
    MODEL_CHECK(sni_task_hold(members[0], me.home));
    sni_task_abandon(members[0]);
    sni_scope_cancel_task(&fiber, -ECANCELED);
}

static void check_given_up(void)
{
    MODEL_CHECK(members[0]->record.generation.raw_ == life_of(members[0])->born + 1);
}

TEST(group_does_not_reach_a_member_that_was_given_up)
{
    static const struct model model = {
        reset, {owner_is_cancelled_after_its_member_was_given_up}, check_given_up};
    model_holds(&model, &(struct model_options){.preemptions = 1});
}

/* ---- closing --------------------------------------------------------------------------------- */

TEST(group_is_closed_when_its_members_have_ended, .limit_s = 60)
{
    model_holds(&ending, &(struct model_options){.preemptions = 2, .random = 5000});
    model_holds(&ending, &(struct model_options){.preemptions = 1, .store_buffers = true});
}

TEST(group_a_failure_cancels_the_other_or_comes_after_its_end, .limit_s = 60)
{
    model_holds(&failing, &(struct model_options){.preemptions = 2, .random = 5000});
    model_holds(&failing, &(struct model_options){.preemptions = 1, .store_buffers = true});
}

TEST(group_is_closed_when_those_in_the_background_have_ended_too, .limit_s = 60)
{
    model_holds(&background, &(struct model_options){.preemptions = 2, .random = 5000});
    model_holds(&background, &(struct model_options){.preemptions = 1, .store_buffers = true});
}
