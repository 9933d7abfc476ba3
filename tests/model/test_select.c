/* SPDX-License-Identifier: MIT */
/* test_select.c - select.c, nudge.c and the relays of case.c, all interleavings of a few calls
 * (R92): a future, a task and a channel in one select. Whatever wins, the others have lost nothing;
 * no wake is lost, and nobody touches what is gone.
 *
 * A wait that is never ended shows as a deadlock. A deadline comes when the search likes. */
#include "model/model.h"
#include "model/task_home.h"

#include "harness.h"
#include "sync/nudge.h"

#include <sinew/await.h>
#include <sinew/chan.h>
#include <sinew/combine.h>
#include <sinew/errno.h>
#include <sinew/select.h>

enum { NOT_YET = 7777, VALUE = 5, AMOUNT = 3 };

static sn_chan *ch;
static sn_signal signal_;
static sn_task *handle;
static struct sni_task *task;
static int value, amount, result, sent; /* what was received, signalled, joined, and sent */

#define LATER sn_deadline_at_(2) /* a deadline; the search decides when it has come */

/* So many records as will be needed are at hand, in the first execution as in all others. */
static void warm_up(void)
{
    struct sni_nudge *nudges[4];
    for (int i = 0; i < 4; i++)
        MODEL_CHECK(sni_nudge_create(&nudges[i]) == 0);
    for (int i = 0; i < 4; i++)
        sni_nudge_finish(nudges[i]);
}

static void reset(void)
{
    (void)sn_chan_destroy(ch); /* of the last execution; all its threads have ended */
    warm_up();
    ch = NULL;
    MODEL_CHECK(sn_chan_create(&ch, sizeof(int), 0, NULL) == 0);
    signal_ = (sn_signal)SN_SIGNAL_INIT;
    value = amount = result = sent = NOT_YET;
}

static int never(void *arg)
{
    (void)arg;
    model_fail("a fiber ran that nobody should have begun");
}

static void reset_with_task(void)
{
    reset();
    home_reset(NULL);
    task = home_fiber(never, true);
    handle = sni_task_handle(task);
}

static void send(void)
{
    int v = VALUE;
    sent = sn_chan_send(ch, &v, SN_FOREVER);
}

static void send_or_give_up(void)
{
    int v = VALUE;
    sent = sn_chan_send(ch, &v, LATER);
}

static void give_signal(void)
{
    (void)sn_signal_send(&signal_, AMOUNT);
}

static void end_task(void)
{
    home_run_to_end(task, HOME_RESULT);
}

/* ---- a future ------------------------------------------------------------------------------- */

static void await_signal(void)
{
    amount = sn_await(sn_signal_recv_op(&signal_), SN_FOREVER);
}

static void check_signal(void)
{
    MODEL_CHECK(amount == AMOUNT);
}

static const struct model awaited = {reset, {await_signal, give_signal}, check_signal};

TEST(await_no_wake_is_lost, .limit_s = 60)
{
    model_holds(&awaited, &(struct model_options){.preemptions = 4, .random = 20000});
    model_holds(&awaited, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

/* Wait for both, one after the other, whichever comes first. */
static void select_then_the_other(void)
{
    int v = -1;
    sn_future *fut = sn_signal_recv_op(&signal_);
    sn_case cases[2] = {sn_case_future(fut), sn_case_recv(ch, &v)};
    int i = sn_select(cases, 2, SN_SELECT_ORDERED, SN_FOREVER);
    MODEL_CHECK(i == 0 || i == 1);
    if (i == 0) {
        amount = cases[0].result;
        MODEL_CHECK(sn_chan_recv(ch, &v, SN_FOREVER) == 0);
    } else {
        amount = sn_await(fut, SN_FOREVER);
    }
    value = v;
}

static void check_both(void)
{
    MODEL_CHECK(amount == AMOUNT && value == VALUE && sent == 0);
}

static const struct model future_and_value = {
    reset, {select_then_the_other, send, give_signal}, check_both};

TEST(select_a_future_and_a_value_both_arrive, .limit_s = 120)
{
    model_holds(&future_and_value, &(struct model_options){.preemptions = 2, .random = 50000});
}

/* Give up if neither comes; what was not taken is still to be had. */
static void select_or_give_up(void)
{
    int v = -1;
    sn_future *fut = sn_signal_recv_op(&signal_);
    sn_case cases[2] = {sn_case_future(fut), sn_case_recv(ch, &v)};
    int i = sn_select(cases, 2, SN_SELECT_ORDERED, LATER);
    if (i == 0)
        amount = cases[0].result;
    else if (i == 1)
        value = v;
    else
        MODEL_CHECK(i == -ETIMEDOUT);
    (void)sn_future_drop(fut);
}

static void check_one_or_none(void)
{
    MODEL_CHECK((value == VALUE) == (sent == 0));
    MODEL_CHECK(amount == NOT_YET || value == NOT_YET);
    sn_future *fut = sn_signal_recv_op(&signal_);
    MODEL_CHECK(sn_await(fut, SN_NOWAIT) == (amount == AMOUNT ? -ETIMEDOUT : AMOUNT));
    (void)sn_future_drop(fut);
}

static const struct model impatient = {
    reset, {select_or_give_up, send_or_give_up, give_signal}, check_one_or_none};

TEST(select_of_a_future_and_a_value_at_most_one_is_taken, .limit_s = 120)
{
    model_holds(&impatient, &(struct model_options){.preemptions = 2, .random = 50000});
}

/* ---- a task --------------------------------------------------------------------------------- */

static void select_task_or_value(void)
{
    int v = -1;
    sn_case cases[2] = {sn_case_join(handle), sn_case_recv(ch, &v)};
    int i = sn_select(cases, 2, SN_SELECT_ORDERED, SN_FOREVER);
    MODEL_CHECK(i == 0 || i == 1);
    MODEL_CHECK(cases[i].result == 0);
    if (i == 0)
        MODEL_CHECK(sn_chan_recv(ch, &v, SN_FOREVER) == 0);
    value = v;
    result = sn_join(handle, NULL); /* the handle is good, in either case */
}

static void check_task_and_value(void)
{
    home_check_over(life_of(task));
    MODEL_CHECK(result == HOME_RESULT && value == VALUE && sent == 0);
}

static const struct model task_and_value = {
    reset_with_task, {end_task, select_task_or_value, send}, check_task_and_value};

TEST(select_a_task_and_a_value_both_arrive, .limit_s = 120)
{
    model_holds(&task_and_value, &(struct model_options){.preemptions = 2, .random = 50000});
}

static void select_task_or_give_up(void)
{
    sn_case c = sn_case_join(handle);
    int i = sn_select(&c, 1, 0, LATER);
    MODEL_CHECK(i == -ETIMEDOUT || (i == 0 && c.result == 0));
    result = sn_join(handle, NULL);
}

static void check_joined(void)
{
    home_check_over(life_of(task));
    MODEL_CHECK(result == HOME_RESULT);
}

static const struct model late_end = {
    reset_with_task, {end_task, select_task_or_give_up}, check_joined};

TEST(select_a_task_that_ends_too_late_can_still_be_joined, .limit_s = 60)
{
    model_holds(&late_end, &(struct model_options){.preemptions = 4, .random = 20000});
    model_holds(&late_end, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

/* ---- planted -------------------------------------------------------------------------------- */

TEST(select_a_mixed_claim_without_compare_and_swap_is_found, .limit_s = 60, .leaks_memory = true)
{
    model_finds(
        &impatient,
        &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_wait_take_"}, "");
}
