/* SPDX-License-Identifier: MIT */
/* test_runq.c - src/sched/runq.c, all interleavings (R40): each link is taken exactly once, whoever
 * takes it, also by steals, by overflow, over reused cells and wrapping indices, out of a ring that
 * is held, and out of the slot. */
#include "model/items.h"
#include "model/model.h"

#include "harness.h"
#include "sched/inject.h"
#include "sched/runq.h"

enum { CAPACITY = 4, RINGS = 3 };

static struct sni_runq rings[RINGS];
static sni_runq_cell cells[RINGS][CAPACITY];
static struct sni_inject inject;

/* Ring 0 is the owner's and begins near the end of its indices; 1 and 2 are the thieves'. */
static void reset(void)
{
    items_reset();
    sni_inject_init(&inject);
    for (int i = 0; i < RINGS; i++)
        sni_runq_init(&rings[i], cells[i], CAPACITY);
    uint32_t start = UINT32_MAX - 1;
    rings[0].head_.raw_ = (uint64_t)start << 32 | start;
    rings[0].tail_.raw_ = start;
    rings[0].head_seen_ = start;
}

static void reset_held(void)
{
    reset();
    sni_runq_hold(&rings[0]);
    MODEL_CHECK(sni_runq_is_held(&rings[0]));
}

static void reset_narrow(void)
{
    reset();
    sni_runq_narrow(&rings[0], 2);
    sni_runq_narrow(&rings[1], 2);
}

static void reset_narrow_held(void)
{
    reset_held();
    sni_runq_narrow(&rings[0], 2);
    sni_runq_narrow(&rings[1], 2);
}

static void drain(void)
{
    struct sni_runlink *link;
    for (int i = 0; i < RINGS; i++) {
        while ((link = sni_runq_pop(&rings[i])) != NULL)
            item_take(link);
        item_take(sni_runq_slot_take(&rings[i]));
    }
    while ((link = sni_inject_pop(&inject)) != NULL)
        item_take(link);
    items_check();
}

static void steal(unsigned into)
{
    struct sni_runlink *first = NULL;
    size_t n = sni_runq_steal(&rings[0], &rings[into], UINT32_MAX, &first);
    MODEL_CHECK((n == 0) == (first == NULL));
    item_take(first);
    if (n > 1)
        item_take(sni_runq_pop(&rings[into]));
}

static void thief_1(void)
{
    steal(1);
}

static void thief_2(void)
{
    steal(2);
}

static void thief_of_thief(void)
{
    struct sni_runlink *first = NULL;
    (void)sni_runq_steal(&rings[1], &rings[2], UINT32_MAX, &first);
    item_take(first);
}

static void push_and_pop(void)
{
    for (int i = 0; i < 3; i++)
        MODEL_CHECK(sni_runq_push(&rings[0], item_make()));
    item_take(sni_runq_pop(&rings[0]));
    item_take(sni_runq_pop(&rings[0]));
}

static const struct model one_thief = {reset, {push_and_pop, thief_1}, drain};

TEST(runq_owner_against_one_thief)
{
    model_holds(&one_thief, &(struct model_options){.preemptions = 3, .random = 2000});
    model_holds(&one_thief, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

TEST(runq_owner_against_two_thieves)
{
    static const struct model model = {reset, {push_and_pop, thief_1, thief_2}, drain};
    model_holds(&model, &(struct model_options){.random = 5000});
    model_holds(&model, &(struct model_options){.store_buffers = true, .random = 5000});
}

TEST(runq_owner_against_thief_of_whom_is_stolen)
{
    static const struct model model = {reset, {push_and_pop, thief_1, thief_of_thief}, drain};
    model_holds(&model, &(struct model_options){.random = 5000});
    model_holds(&model, &(struct model_options){.store_buffers = true});
}

/* The owner comes round to the cells that a thief is still copying. */
static void refill(void)
{
    for (int i = 0; i < 7; i++) {
        struct sni_runlink *link = item_make();
        if (!sni_runq_push(&rings[0], link))
            item_take(link);
        if (i >= 3)
            item_take(sni_runq_pop(&rings[0]));
    }
}

TEST(runq_cells_are_not_reused_while_they_are_copied)
{
    static const struct model model = {reset, {refill, thief_1}, drain};
    model_holds(&model, &(struct model_options){.preemptions = 3, .random = 2000});
    model_holds(&model, &(struct model_options){.store_buffers = true, .random = 2000});
}

static void pop_quickly(void)
{
    struct sni_runq_rest rest;
    item_take(sni_runq_pop_rest(&rings[0], &rest));
}

static void push_over(void)
{
    for (int i = 0; i < CAPACITY + 1; i++) {
        struct sni_runlink *link = item_make();
        if (!sni_runq_push(&rings[0], link))
            (void)sni_runq_overflow(&rings[0], link, &inject, SNI_PRIO_NORMAL);
    }
    item_take(sni_runq_pop(&rings[0]));
}

/* A pop that was given up since a thief asks; then so much is pushed that the ring overflows before
 * the owner has settled. */
static void push_over_unsettled(void)
{
    for (int i = 0; i < 2 * CAPACITY; i++) {
        if (i == 2)
            pop_quickly();
        struct sni_runlink *link = item_make();
        if (!sni_runq_push(&rings[0], link))
            (void)sni_runq_overflow(&rings[0], link, &inject, SNI_PRIO_NORMAL);
    }
}

/* Between the owner's finding the ring full and its overflow, so much may be stolen that less than
 * the half is left. */
static void thief_twice(void)
{
    steal(1);
    steal(1);
}

static void take_injected(void)
{
    item_take(sni_inject_pop(&inject));
}

TEST(runq_overflow_against_thief_and_injected_work, .limit_s = 120)
{
    static const struct model one = {reset, {push_over, thief_1}, drain};
    model_holds(&one, &(struct model_options){.preemptions = 3, .random = 2000});
    static const struct model greedy = {reset, {push_over, thief_twice}, drain};
    model_holds(&greedy, &(struct model_options){.random = 2000});
    model_holds(&greedy, &(struct model_options){.store_buffers = true});
    static const struct model two = {reset, {push_over, thief_1, take_injected}, drain};
    model_holds(&two, &(struct model_options){.random = 2000});
    model_holds(&two, &(struct model_options){.store_buffers = true});
}

/* The ring becomes wider while a thief copies, claims, or has asked for it. */
TEST(runq_narrow_against_thieves, .limit_s = 120)
{
    static const struct model one = {reset_narrow, {push_over, thief_twice}, drain};
    model_holds(&one, &(struct model_options){.preemptions = 3, .random = 2000});
    model_holds(&one, &(struct model_options){.store_buffers = true, .random = 2000});
    static const struct model two = {reset_narrow, {push_over, thief_1, thief_2}, drain};
    model_holds(&two, &(struct model_options){.random = 5000});
    static const struct model held = {reset_narrow_held, {push_over, thief_twice}, drain};
    model_holds(&held, &(struct model_options){.random = 20000});
    model_holds(&held, &(struct model_options){.preemptions = 1, .store_buffers = true});
    static const struct model unsettled = {
        reset_narrow_held, {push_over_unsettled, thief_1}, drain};
    model_holds(&unsettled, &(struct model_options){.random = 20000});
}

/* Whatever comes to mind: too many executions for the depth-first search, so only random ones. */
static void do_anything(void)
{
    for (int i = 0; i < 9; i++) {
        struct sni_runlink *link = NULL;
        switch (model_choose(6)) {
        case 5:
            pop_quickly();
            break;
        case 4:
            sni_runq_hold(&rings[0]);
            break;
        case 0:
            item_take(sni_runq_pop(&rings[0]));
            break;
        case 1:
            link = sni_runq_slot_swap(&rings[0], item_make());
            break;
        case 2:
            link = sni_runq_slot_take(&rings[0]);
            break;
        default:
            link = item_make();
            break;
        }
        if (link != NULL && !sni_runq_push(&rings[0], link))
            (void)sni_runq_overflow(&rings[0], link, &inject, SNI_PRIO_NORMAL);
    }
}

static void steal_anything(void)
{
    unsigned me = model_self();
    for (int i = 0; i < 3; i++) {
        steal(me);
        item_take(sni_runq_slot_steal(&rings[0]));
        item_take(sni_inject_pop(&inject));
    }
}

TEST(runq_random_operations, .limit_s = 120)
{
    static const struct model model = {reset, {do_anything, steal_anything, steal_anything}, drain};
    struct model_options options = {.executions_max = 1, .random = 100000};
    model_endures(&model, &options);
    options.store_buffers = true;
    model_endures(&model, &options);
    static const struct model narrow = {
        reset_narrow, {do_anything, steal_anything, steal_anything}, drain};
    model_endures(&narrow, &options);
}

static void look_at_length(void)
{
    for (int i = 0; i < 2; i++)
        MODEL_CHECK(sni_runq_len(&rings[0]) <= CAPACITY);
}

TEST(runq_length_is_never_absurd)
{
    static const struct model model = {reset, {push_and_pop, thief_1, look_at_length}, drain};
    model_holds(&model, &(struct model_options){.random = 2000});
}

/* ---- a ring that is held -------------------------------------------------------------------- */

static const struct model held = {reset_held, {push_and_pop, thief_1}, drain};

TEST(runq_held_owner_against_one_thief)
{
    model_holds(&held, &(struct model_options){.preemptions = 3, .random = 2000});
    model_holds(&held, &(struct model_options){.store_buffers = true, .random = 20000});
}

TEST(runq_held_owner_against_two_thieves, .limit_s = 120)
{
    static const struct model model = {reset_held, {push_and_pop, thief_1, thief_2}, drain};
    model_holds(&model, &(struct model_options){.random = 5000});
    model_holds(&model,
                &(struct model_options){.preemptions = 1, .store_buffers = true, .random = 20000});
}

/* Held anew after it was asked, perhaps in the middle of a steal. */
static void hold_again(void)
{
    for (int i = 0; i < 3; i++) {
        MODEL_CHECK(sni_runq_push(&rings[0], item_make()));
        sni_runq_hold(&rings[0]);
    }
    item_take(sni_runq_pop(&rings[0]));
    sni_runq_hold(&rings[0]);
    item_take(sni_runq_pop(&rings[0]));
}

static void taste(void)
{
    struct sni_runlink *first = NULL;
    (void)sni_runq_steal(&rings[0], &rings[1], 1, &first);
    item_take(first);
}

TEST(runq_held_again_and_again_against_one_who_tastes, .limit_s = 120)
{
    static const struct model model = {reset, {hold_again, taste}, drain};
    model_holds(&model, &(struct model_options){.preemptions = 3, .random = 2000});
    model_holds(&model, &(struct model_options){.store_buffers = true, .random = 2000});
    static const struct model two = {reset, {hold_again, taste, thief_2}, drain};
    model_holds(&two, &(struct model_options){.random = 5000});
    model_holds(&two,
                &(struct model_options){.preemptions = 1, .store_buffers = true, .random = 20000});
}

/* A pop passes the cells that the head of a held ring says are in use, and a push comes round. */
TEST(runq_held_cells_are_not_reused_while_they_are_copied)
{
    static const struct model model = {reset_held, {refill, thief_1}, drain};
    model_holds(&model, &(struct model_options){.preemptions = 3, .random = 2000});
    model_holds(&model,
                &(struct model_options){.preemptions = 1, .store_buffers = true, .random = 20000});
}

TEST(runq_held_overflow_against_thief, .limit_s = 120)
{
    static const struct model one = {reset_held, {push_over, thief_1}, drain};
    model_holds(&one, &(struct model_options){.preemptions = 3, .random = 2000});
    static const struct model greedy = {reset_held, {push_over, thief_twice}, drain};
    model_holds(&greedy, &(struct model_options){.random = 2000});
    model_holds(&greedy, &(struct model_options){.store_buffers = true});
}

TEST(runq_held_overflow_before_it_is_settled, .limit_s = 120)
{
    static const struct model model = {reset_held, {push_over_unsettled, thief_1}, drain};
    model_holds(&model, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&model,
                &(struct model_options){.preemptions = 1, .store_buffers = true, .random = 20000});
}

TEST(runq_held_length_is_never_absurd)
{
    static const struct model model = {reset_held, {push_and_pop, thief_1, look_at_length}, drain};
    model_holds(&model, &(struct model_options){.random = 2000});
}

/* ---- the slot ------------------------------------------------------------------------------ */

static void swap_and_take(void)
{
    for (int i = 0; i < 3; i++) {
        struct sni_runlink *link = sni_runq_slot_swap(&rings[0], item_make());
        if (link != NULL)
            item_take(link);
        if (i > 0)
            item_take(sni_runq_slot_take(&rings[0]));
    }
}

static void steal_slot(void)
{
    item_take(sni_runq_slot_steal(&rings[0]));
    if (sni_runq_slot_full(&rings[0]))
        item_take(sni_runq_slot_steal(&rings[0]));
}

static const struct model slot = {reset, {swap_and_take, steal_slot}, drain};

TEST(runq_slot_against_two_thieves)
{
    static const struct model model = {reset, {swap_and_take, steal_slot, steal_slot}, drain};
    model_holds(&model, &(struct model_options){.preemptions = 3, .random = 2000});
    model_holds(&model, &(struct model_options){.store_buffers = true});
}

/* ---- planted mistakes ---------------------------------------------------------------------- */

TEST(runq_planted_pop_without_compare_and_swap_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_SPLIT_RMW,
                                    .function = "sni_runq_pop_among_"};
    model_finds(&one_thief, &options, "taken == 1");
}

/* Sequentially consistent memory needs no fence. */
TEST(runq_planted_thief_of_a_held_ring_without_fence_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_NO_FENCE,
                                    .function = "sni_plat_fence_all"};
    model_holds(&held, &options);
    options.store_buffers = true;
    model_finds(&held, &options, "taken == 1");
}

TEST(runq_planted_thief_that_asks_without_compare_and_swap_is_found)
{
    static const struct model two = {reset, {hold_again, taste, thief_2}, drain};
    struct model_options options = {.plant = MODEL_PLANT_SPLIT_RMW, .function = "ask"};
    options.random = 200000;
    model_finds(&two, &options, "");
}

TEST(runq_planted_wider_ring_without_compare_and_swap_is_found)
{
    static const struct model narrow = {reset_narrow, {push_over, thief_twice}, drain};
    struct model_options options = {.plant = MODEL_PLANT_SPLIT_RMW, .function = "widen"};
    model_finds(&narrow, &options, "");
}

TEST(runq_planted_claim_without_compare_and_swap_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_SPLIT_RMW, .function = "claim"};
    model_finds(&one_thief, &options, "");
}

TEST(runq_planted_completion_without_compare_and_swap_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_SPLIT_RMW, .function = "complete"};
    model_finds(&one_thief, &options, "");
}

TEST(runq_planted_push_without_release_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_RELAXED, .function = "sni_runq_push"};
    model_finds(&one_thief, &options, "a race");
}

TEST(runq_planted_steal_without_acquire_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_RELAXED, .function = "claim"};
    model_finds(&one_thief, &options, "a race");
}

TEST(runq_planted_steal_without_release_to_its_own_ring_is_found)
{
    static const struct model model = {reset, {push_and_pop, thief_1, thief_of_thief}, drain};
    struct model_options options = {.plant = MODEL_PLANT_RELAXED, .function = "sni_runq_steal"};
    options.random = 200000;
    model_finds(&model, &options, "a race");
}

TEST(runq_planted_slot_without_release_or_exchange_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_RELAXED, .function = "sni_runq_slot_swap"};
    model_finds(&slot, &options, "a race");
    options.plant = MODEL_PLANT_SPLIT_RMW;
    options.function = "sni_runq_slot_take";
    model_finds(&slot, &options, "taken == 1");
}
