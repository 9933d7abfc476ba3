/* SPDX-License-Identifier: MIT */
/* test_cancel.c - cancelling a fiber that waits (R61), all interleavings: src/wait/wait.c and
 * src/task/scope.c between who waits, who would end the wait, and who cancels.
 *
 * Whatever the order: the wait ends once, the fiber is resumed once, and a cancellation is never
 * lost, be it that it came before the wait, in its middle, or just after another had ended it. */
#include "model/model.h"
#include "model/task_home.h"

#include "harness.h"
#include "plat/thread.h"
#include "task/scope.h"
#include "task/state.h"

#include <sinew/chan.h>
#include <sinew/errno.h>

enum { NOT_YET = 7777, SERVED = 5 };

static struct sni_task fiber; /* who waits */
static struct sni_stack stack;
static struct sni_mutex lock;
static struct sni_waiter *listed; /* under the lock: at something that serves one */
static int first, second;         /* what the waits returned */

static void ready(struct sni_task *task)
{
    MODEL_CHECK(task == &fiber);
    home_resume();
}

static const struct home_hooks hooks = {.ready = ready};

static void reset(void)
{
    home_reset(&hooks);
    fiber = (struct sni_task){.kind = SNI_TASK_FIBER};
    sni_atomic_store(&fiber.home_, home_exec(NULL).home, relaxed); /* relaxed, both: in setup */
    sni_atomic_store(&fiber.wait, SNI_WAIT_CLAIMED, relaxed);
    sni_atomic_store(&fiber.state, REF, relaxed);
    fiber.stack = &stack;
    lock = (struct sni_mutex)SNI_MUTEX_INIT;
    listed = NULL;
    first = second = NOT_YET;
}

static void canceller(void)
{
    sni_scope_cancel_task(&fiber, -ECANCELED);
}

/* ---- a wait that is claimed ------------------------------------------------------------------ */

/* As a channel has it: in a list under a lock, and out of it before the frame goes. */
static int wait_to_be_served(void)
{
    struct sni_waiter w;
    sni_wait_begin(&w);
    sni_mutex_lock(&lock);
    listed = &w;
    sni_mutex_unlock(&lock);
    int rc = sni_wait_commit(&w, SN_FOREVER);
    sni_mutex_lock(&lock);
    MODEL_CHECK(rc < 0 || listed == NULL);
    listed = NULL;
    sni_mutex_unlock(&lock);
    return rc;
}

static void server(void)
{
    sni_mutex_lock(&lock);
    struct sni_waiter *w = listed;
    listed = NULL;
    if (w != NULL)
        (void)sni_wait_claim(w, SERVED);
    sni_mutex_unlock(&lock);
}

static void waits_twice(void)
{
    struct sni_task_exec me = home_exec(&fiber);
    sni_exec_set(&me.exec);
    first = wait_to_be_served();
    second = wait_to_be_served();
    sni_exec_set(NULL);
}

static void check_cancelled(void)
{
    MODEL_CHECK(first == SERVED || first == -ECANCELED);
    MODEL_CHECK(second == -ECANCELED || (first != SERVED && second == SERVED));
}

static const struct model served_or_cancelled = {
    reset, {waits_twice, server, canceller}, check_cancelled};

static const struct model cancelled = {reset, {waits_twice, canceller}, check_cancelled};

TEST(cancel_a_wait_is_served_or_cancelled_and_the_next_one_is_cancelled, .limit_s = 60)
{
    model_holds(&cancelled, &(struct model_options){.preemptions = 5, .random = 5000});
    model_holds(&cancelled, &(struct model_options){.preemptions = 3, .store_buffers = true});
    model_holds(&served_or_cancelled, &(struct model_options){.preemptions = 2, .random = 5000});
}

TEST(cancel_of_two_who_cancel_one_resumes, .limit_s = 60)
{
    static const struct model model = {reset, {waits_twice, canceller, canceller}, check_cancelled};
    model_holds(&model, &(struct model_options){.preemptions = 2, .random = 5000});
}

/* ---- a wait that is asked to end ------------------------------------------------------------- */

static struct sni_task *task;
static sn_task *handle;

static int never(void *arg)
{
    (void)arg;
    model_fail("a fiber ran that nobody should have begun");
}

static void reset_join(void)
{
    reset();
    task = home_fiber(never, true);
    handle = sni_task_handle(task);
}

static void ender(void)
{
    home_run_to_end(task, HOME_RESULT);
}

/* A join that is cancelled leaves the handle good. */
static void joins(void)
{
    struct sni_task_exec me = home_exec(&fiber);
    sni_exec_set(&me.exec);
    first = sn_join(handle, NULL);
    if (first == -ECANCELED)
        MODEL_CHECK(sn_detach(handle) == 0);
    sni_exec_set(NULL);
}

static void check_joined(void)
{
    home_check_over(life_of(task));
    MODEL_CHECK(first == HOME_RESULT || first == -ECANCELED);
}

static const struct model join_or_cancel = {reset_join, {ender, joins, canceller}, check_joined};

TEST(cancel_a_join_learns_of_the_end_or_keeps_its_handle, .limit_s = 60)
{
    model_holds(&join_or_cancel, &(struct model_options){.preemptions = 2, .random = 20000});
    model_holds(&join_or_cancel, &(struct model_options){.store_buffers = true, .random = 5000});
}

/* ---- a scope that is left -------------------------------------------------------------------- */

static struct sni_scope scope;
static bool is_open; /* under the lock */
static SNI_ATOMIC(uint32_t) has_begun;

static void reset_scope(void)
{
    reset();
    is_open = true;
    home_has_parker();
    sni_atomic_store(&has_begun, 0, relaxed); /* relaxed: in setup */
}

/* In the scope it may be cancelled, behind it no more. */
static void waits_in_scope_and_behind(void)
{
    struct sni_task_exec me = home_exec(&fiber);
    sni_exec_set(&me.exec);
    scope.group = NULL;
    MODEL_CHECK(sni_scope_enter(&scope, SNI_SCOPE_OPEN, SN_FOREVER) == 0);
    sni_atomic_store(&has_begun, 1, release); /* release: pairs with who cancels */
    sni_plat_unpark(&has_begun.raw_, 1);
    first = wait_to_be_served();
    sni_mutex_lock(&lock);
    is_open = false;
    sni_mutex_unlock(&lock);
    sni_scope_leave(&scope);
    struct sni_waiter w;
    sni_wait_begin(&w);
    (void)sni_wait_claim(&w, SERVED);
    second = sni_wait_commit(&w, SN_FOREVER);
    sni_exec_set(NULL);
    home_quit_parker();
}

static void cancels_scope(void)
{
    while (sni_atomic_load(&has_begun, acquire) == 0) /* acquire: pairs with the above */
        (void)sni_plat_park(&has_begun.raw_, 0, INT64_MAX);
    sni_mutex_lock(&lock);
    if (is_open)
        sni_scope_cancel(&scope, -ECANCELED, NULL);
    sni_mutex_unlock(&lock);
}

static void parker(void)
{
    home_parker(&fiber);
}

static void check_left(void)
{
    MODEL_CHECK(first == SERVED || first == -ECANCELED);
    MODEL_CHECK(second == SERVED);
    /* relaxed: all have ended */
    MODEL_CHECK(sni_atomic_load(&fiber.state, relaxed) == REF);
}

static const struct model scope_left = {
    reset_scope, {waits_in_scope_and_behind, parker, server, cancels_scope}, check_left};

TEST(cancel_of_a_scope_ends_no_wait_behind_it, .limit_s = 60)
{
    model_holds(&scope_left, &(struct model_options){.preemptions = 2});
    model_holds(&scope_left, &(struct model_options){.preemptions = 1, .store_buffers = true});
}

/* ---- a fiber at a channel -------------------------------------------------------------------- */

/* A fiber is served there by the quick way, which the models of test_chan.c, whose parties are
 * threads, do not take (R91). */
static sn_chan *ch;
static int got; /* what was received */

static void reset_chan(size_t capacity)
{
    reset();
    got = NOT_YET;
    MODEL_CHECK(sn_chan_create(&ch, sizeof(int), capacity, NULL) == 0);
}

static void reset_one_place(void)
{
    reset_chan(1);
}

static void reset_no_place(void)
{
    reset_chan(0);
}

static void receives(void)
{
    struct sni_task_exec me = home_exec(&fiber);
    int v = NOT_YET;
    sni_exec_set(&me.exec);
    first = sn_chan_recv(ch, &v, SN_FOREVER);
    if (first == 0)
        got = v;
    sni_exec_set(NULL);
}

static void sends(void)
{
    struct sni_task_exec me = home_exec(&fiber);
    int v = SERVED;
    sni_exec_set(&me.exec);
    first = sn_chan_send(ch, &v, SN_FOREVER);
    v = NOT_YET; /* the frame is used for something else */
    sni_exec_set(NULL);
}

static void thread_sends(void)
{
    int v = SERVED;
    second = sn_chan_send(ch, &v, SN_FOREVER);
}

static void thread_receives(void)
{
    int v = NOT_YET;
    second = sn_chan_recv(ch, &v, sn_deadline_at_(1)); /* when the search likes */
    if (second == 0)
        got = v;
}

/* Not in setup: an execution that failed may have left it locked. */
static void destroy_chan(void)
{
    MODEL_CHECK(sn_chan_destroy(ch) == 0);
}

static void check_served(void)
{
    MODEL_CHECK(second == 0);
    MODEL_CHECK(first == 0 || first == -ECANCELED);
    MODEL_CHECK(got == (first == 0 ? SERVED : NOT_YET));
    MODEL_CHECK(sn_chan_len(ch) == (first == 0 ? 0u : 1u));
    destroy_chan();
}

static void check_met(void)
{
    MODEL_CHECK(first == 0 || first == -ECANCELED);
    MODEL_CHECK(second == (first == 0 ? 0 : -ETIMEDOUT));
    MODEL_CHECK(got == (first == 0 ? SERVED : NOT_YET));
    destroy_chan();
}

static const struct model served_at_a_channel = {
    reset_one_place, {receives, thread_sends, canceller}, check_served};

static const struct model met_at_a_channel = {
    reset_no_place, {sends, thread_receives, canceller}, check_met};

TEST(cancel_a_fiber_at_a_channel_has_its_element_or_leaves_it, .limit_s = 60, .leaks_memory = true)
{
    model_holds(&served_at_a_channel, &(struct model_options){.preemptions = 3, .random = 5000});
    model_holds(&served_at_a_channel,
                &(struct model_options){.preemptions = 2, .store_buffers = true});
    model_holds(&met_at_a_channel, &(struct model_options){.preemptions = 3, .random = 5000});
}

/* ---- planted --------------------------------------------------------------------------------- */

TEST(cancel_planted_park_without_compare_and_swap_is_found)
{
    model_finds(
        &join_or_cancel,
        &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_wait_park"},
        "deadlock");
}

TEST(cancel_planted_claim_without_compare_and_swap_is_found)
{
    model_finds(&cancelled,
                &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW,
                                        .function = "sni_wait_cancel",
                                        .preemptions = 3},
                "");
}

TEST(cancel_planted_lock_of_scopes_without_compare_and_swap_is_found)
{
    model_finds(&scope_left,
                &(struct model_options){
                    .plant = MODEL_PLANT_SPLIT_RMW, .function = "lock_if_alive", .preemptions = 3},
                "");
}

TEST(cancel_planted_quick_claim_without_compare_and_swap_is_found, .leaks_memory = true)
{
    model_finds(
        &met_at_a_channel,
        &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_wait_take_"}, "");
}
