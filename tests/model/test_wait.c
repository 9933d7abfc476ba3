/* SPDX-License-Identifier: MIT */
/* test_wait.c - src/wait/wait.c: an owner that goes to sleep and claimers that come when they like.
 * One claim wins, its result is what the owner gets, and a sleeper is resumed exactly once. */
#include "model/model.h"

#include "harness.h"
#include "plat/thread.h"
#include "wait/wait.h"

#include <sinew/errno.h>

/* Whoever yields its thread waits for another one. */
void sni_plat_thread_yield(void)
{
    model_yield();
}

static struct sni_waiter waiter;
static struct model_data gift[2];
static int winner;
static int result;
static int resumed;

static void reset(void)
{
    for (int i = 0; i < 2; i++)
        gift[i] = (struct model_data){0};
    winner = -1;
    result = 0;
    resumed = 0;
    sni_wait_begin(&waiter); /* and published: claimers know it from the start */
}

/* ---- a thread that sleeps ------------------------------------------------------------------- */

static void sleeping_thread(void)
{
    result = sni_wait_commit(&waiter, SN_FOREVER);
    if (result == 1 || result == 2)
        model_read(&gift[result - 1]); /* what the winner wrote is there */
}

static void impatient_thread(void)
{
    result =
        sni_wait_commit(&waiter, sn_deadline_at_(1)); /* the explorer decides when it is over */
}

static void claim_as(int me)
{
    model_write(&gift[me]);
    if (sni_wait_claim(&waiter, me + 1)) {
        MODEL_CHECK(winner == -1);
        winner = me;
    }
}

static void first_claimer(void)
{
    claim_as(0);
}

static void second_claimer(void)
{
    claim_as(1);
}

static void check_winner(void)
{
    MODEL_CHECK(winner >= 0 && result == winner + 1);
}

static void check_winner_or_deadline(void)
{
    MODEL_CHECK(winner >= 0 ? result == winner + 1 : result == -ETIMEDOUT);
}

static const struct model two_claimers = {
    .setup = reset,
    .threads = {sleeping_thread, first_claimer, second_claimer},
    .check = check_winner,
};

static const struct model claim_and_deadline = {
    .setup = reset,
    .threads = {impatient_thread, first_claimer},
    .check = check_winner_or_deadline,
};

TEST(a_thread_that_waits_gets_the_result_of_the_one_claim_that_wins, .limit_s = 60)
{
    model_holds(&two_claimers, &(struct model_options){.preemptions = 3, .random = 2000});
    model_holds(&two_claimers, &(struct model_options){.store_buffers = true, .random = 2000});
}

TEST(a_claim_and_a_deadline_have_one_winner, .limit_s = 60)
{
    model_holds(&claim_and_deadline, &(struct model_options){.preemptions = 4, .random = 2000});
    model_holds(&claim_and_deadline, &(struct model_options){.store_buffers = true});
}

/* ---- a fiber whose executor saves it -------------------------------------------------------- */

static void resume(void *who)
{
    MODEL_CHECK(who == &resumed);
    resumed++;
}

static const struct sni_exec_ops ops = {.resume = resume, .resume_last = resume};

/* What an executor does: the waiter is published first, the registers are saved, and only then
 * may the fiber be resumed: by a claimer, or, if one came before, by the executor itself. */
static void executor(void)
{
    if (sni_wait_published(&waiter))
        resumed++;
}

static void reset_fiber(void)
{
    reset();
    sni_wait_begin_with(&waiter, &ops, &resumed);
}

static void check_resumed_once(void)
{
    MODEL_CHECK(resumed == 1);
    MODEL_CHECK(winner >= 0);
}

static const struct model fiber_model = {
    .setup = reset_fiber,
    .threads = {executor, first_claimer, second_claimer},
    .check = check_resumed_once,
};

TEST(a_fiber_is_resumed_exactly_once_and_never_before_it_is_saved, .limit_s = 60)
{
    model_holds(&fiber_model, &(struct model_options){.preemptions = 3, .random = 2000});
    model_holds(&fiber_model, &(struct model_options){.store_buffers = true});
}

/* ---- planted ------------------------------------------------------------------------------- */

TEST(a_claim_without_compare_and_swap_is_found, .limit_s = 60)
{
    model_finds(
        &two_claimers,
        &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_wait_take_"},
        "winner");
}

TEST(a_claim_that_releases_nothing_is_found, .limit_s = 60)
{
    model_finds(&two_claimers,
                &(struct model_options){.plant = MODEL_PLANT_RELAXED, .function = "sni_wait_take_"},
                "race");
}

TEST(publishing_without_compare_and_swap_is_found, .limit_s = 60)
{
    model_finds(
        &fiber_model,
        &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_wait_park"}, "");
}
