/* SPDX-License-Identifier: MIT */
/* test_deque.c - src/sched/deque.c, all interleavings (R41): each link is taken exactly once, and
 * the fight over the last one has one winner, also with store buffers, which is where a deque
 * without its fences fails. */
#include "model/items.h"
#include "model/model.h"

#include "harness.h"
#include "sched/deque.h"
#include "sched/inject.h"

enum { CAPACITY = 2 };

static struct sni_deque deque;
static sni_runq_cell cells[CAPACITY];
static struct sni_inject inject;

static void reset(void)
{
    items_reset();
    sni_inject_init(&inject);
    sni_deque_init(&deque, cells, CAPACITY);
    uint64_t start = UINT64_MAX; /* the indices wrap at the second push */
    deque.top_.raw_ = deque.bottom_.raw_ = deque.top_seen_ = start;
}

static void drain(void)
{
    struct sni_runlink *link;
    while ((link = sni_deque_pop(&deque)) != NULL)
        item_take(link);
    while ((link = sni_inject_pop(&inject)) != NULL)
        item_take(link);
    items_check();
}

static void thief(void)
{
    bool busy = true;
    struct sni_runlink *link = sni_deque_steal(&deque, &busy);
    MODEL_CHECK(!(link != NULL && busy));
    item_take(link);
}

static void push_and_pop_one(void)
{
    MODEL_CHECK(sni_deque_push(&deque, item_make()));
    item_take(sni_deque_pop(&deque));
}

static void push_and_pop(void)
{
    MODEL_CHECK(sni_deque_push(&deque, item_make()));
    MODEL_CHECK(sni_deque_push(&deque, item_make()));
    item_take(sni_deque_pop(&deque));
    item_take(sni_deque_pop(&deque));
    item_take(sni_deque_pop(&deque));
}

static void push_over(void)
{
    for (int i = 0; i < CAPACITY + 2; i++) {
        struct sni_runlink *link = item_make();
        if (!sni_deque_push(&deque, link))
            (void)sni_deque_overflow(&deque, link, &inject, SNI_PRIO_NORMAL);
    }
    item_take(sni_deque_pop(&deque));
}

static const struct model last = {reset, {push_and_pop_one, thief}, drain};
static const struct model two_thieves = {reset, {push_and_pop, thief, thief}, drain};

TEST(deque_pop_against_steal_of_the_last_link)
{
    model_holds(&last, &(struct model_options){.preemptions = 6});
    model_holds(&last, &(struct model_options){.preemptions = 4, .store_buffers = true});
}

TEST(deque_owner_against_two_thieves)
{
    model_holds(&two_thieves, &(struct model_options){.preemptions = 3, .random = 5000});
    model_holds(&two_thieves, &(struct model_options){.store_buffers = true, .random = 20000});
}

TEST(deque_overflow_against_thief)
{
    static const struct model model = {reset, {push_over, thief}, drain};
    model_holds(&model, &(struct model_options){.preemptions = 3, .random = 2000});
    model_holds(&model, &(struct model_options){.store_buffers = true});
}

/* Whatever comes to mind: too many executions for the depth-first search, so only random ones. */
static void do_anything(void)
{
    for (int i = 0; i < 9; i++) {
        if (model_choose(2) == 0) {
            item_take(sni_deque_pop(&deque));
            continue;
        }
        struct sni_runlink *link = item_make();
        if (!sni_deque_push(&deque, link))
            (void)sni_deque_overflow(&deque, link, &inject, SNI_PRIO_NORMAL);
    }
}

static void steal_anything(void)
{
    for (int i = 0; i < 3; i++) {
        MODEL_CHECK(sni_deque_len(&deque) <= CAPACITY);
        thief();
        item_take(sni_inject_pop(&inject));
    }
}

TEST(deque_random_operations, .limit_s = 120)
{
    static const struct model model = {reset, {do_anything, steal_anything, steal_anything}, drain};
    struct model_options options = {.executions_max = 1, .random = 100000};
    model_endures(&model, &options);
    options.store_buffers = true;
    model_endures(&model, &options);
}

/* ---- planted mistakes ---------------------------------------------------------------------- */

TEST(deque_planted_pop_by_a_late_store_is_found_with_store_buffers)
{
    struct model_options options = {.plant = MODEL_PLANT_BUFFERED, .function = "sni_deque_pop"};
    model_holds(&two_thieves, &options); /* sequentially consistent memory does not need it */
    options.store_buffers = true;
    model_finds(&two_thieves, &options, "taken == 1");
}

TEST(deque_planted_last_pop_without_compare_and_swap_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_SPLIT_RMW, .function = "pop_last"};
    options.preemptions = 3;
    model_finds(&last, &options, "taken == 1");
}

TEST(deque_planted_push_without_release_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_RELAXED, .function = "set_bottom"};
    model_finds(&last, &options, "a race");
}
