/* SPDX-License-Identifier: MIT */
/* test_highwater.c - src/fiber/highwater.c, all interleavings (R51): threads that add to one site,
 * or to two that want the same slot, lose neither mark nor count, and each site has one slot. */
#include "model/model.h"

#include "fiber/highwater.h"
#include "fiber/stack.h"
#include "harness.h"

enum { SITES = 8 * SNI_HIGHWATER_SITES };

static struct sni_highwater table;
static char texts[SITES];
static const char *one;     /* two sites, */
static const char *another; /* of which the second finds the slot of the first on its way */

/* Not part of the model: nobody measures a stack here. */
size_t sni_stack_high_water_take(struct sni_stack *stack)
{
    (void)stack;
    model_fail("a stack was measured");
}

static size_t slot_of(const char *at)
{
    for (size_t i = 0; i < SNI_HIGHWATER_SITES; i++)
        if (table.slots[i].at.raw_ == at)
            return i;
    return SNI_HIGHWATER_SITES;
}

/* Two texts of the same home: found by adding each to an empty table. */
static void find_sites(void)
{
    one = texts;
    sni_highwater_init(&table);
    sni_highwater_add(&table, one, 1);
    size_t home = slot_of(one);
    for (another = texts + 1; another < texts + SITES; another++) {
        sni_highwater_init(&table);
        sni_highwater_add(&table, another, 1);
        if (slot_of(another) == home)
            return;
    }
    model_fail("no two sites have the same home");
}

static void reset(void)
{
    if (one == NULL)
        find_sites();
    sni_highwater_init(&table);
}

static void add_deep_and_shallow(void)
{
    sni_highwater_add(&table, one, 300);
    sni_highwater_add(&table, another, 100);
}

static void add_shallow_and_deep(void)
{
    sni_highwater_add(&table, another, 400);
    sni_highwater_add(&table, one, 200);
}

static void check_marks(void)
{
    struct sni_highwater_mark mark;
    int marks = 0;
    for (size_t cursor = 0; sni_highwater_next(&table, &cursor, &mark); marks++) {
        MODEL_CHECK(mark.at == one || mark.at == another);
        MODEL_CHECK(mark.bytes == (mark.at == one ? 300u : 400u));
        MODEL_CHECK(mark.stacks == 2);
    }
    MODEL_CHECK(marks == 2);
}

static const struct model two = {reset, {add_deep_and_shallow, add_shallow_and_deep}, check_marks};

TEST(highwater_threads_lose_neither_a_mark_nor_a_count, .limit_s = 60)
{
    model_holds(&two, &(struct model_options){.preemptions = 4, .random = 5000});
    model_holds(&two, &(struct model_options){.store_buffers = true});
}

TEST(highwater_planted_claim_of_a_slot_without_compare_and_swap_is_found)
{
    model_finds(&two,
                &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "slot_of"}, "");
}

TEST(highwater_planted_rise_of_a_mark_without_compare_and_swap_is_found)
{
    model_finds(
        &two,
        &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_highwater_add"},
        "");
}
