/* SPDX-License-Identifier: MIT */
/* The deque of a worker (R41): last in first out for the owner, oldest first for thieves, bounded;
 * then all of them on real threads. */
#include "harness.h"
#include "sched/deque.h"
#include "sched/inject.h"

#include <pthread.h>
#include <stdlib.h>

enum { CAPACITY = 8 };

static struct sni_runlink links[32];
static struct sni_deque d;
static sni_runq_cell cells[CAPACITY];

static void start_at(uint64_t start)
{
    sni_deque_init(&d, cells, CAPACITY);
    d.top_.raw_ = d.bottom_.raw_ = d.top_seen_ = start;
}

static void push(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++)
        CHECK(sni_deque_push(&d, &links[i]));
}

TEST(a_new_deque_is_empty)
{
    start_at(0);
    bool busy = true;
    CHECK_PTR_EQ(sni_deque_pop(&d), NULL);
    CHECK_PTR_EQ(sni_deque_steal(&d, &busy), NULL);
    CHECK(!busy);
    CHECK_EQ(sni_deque_len(&d), 0);
}

TEST(a_deque_pops_the_newest_and_is_stolen_from_at_the_oldest)
{
    for (uint64_t before = 0; before < 2 * CAPACITY; before++) {
        start_at(UINT64_MAX - before); /* the indices wrap on the way */
        for (int round = 0; round < 4; round++) {
            push(0, CAPACITY);
            CHECK_EQ(sni_deque_len(&d), CAPACITY);
            CHECK(!sni_deque_push(&d, &links[9]));
            CHECK_PTR_EQ(sni_deque_steal(&d, NULL), &links[0]);
            CHECK_PTR_EQ(sni_deque_pop(&d), &links[7]);
            CHECK_PTR_EQ(sni_deque_steal(&d, NULL), &links[1]);
            for (unsigned i = 6; i >= 2; i--)
                CHECK_PTR_EQ(sni_deque_pop(&d), &links[i]);
            CHECK_PTR_EQ(sni_deque_pop(&d), NULL);
            CHECK_PTR_EQ(sni_deque_steal(&d, NULL), NULL);
            CHECK_EQ(sni_deque_len(&d), 0);
        }
    }
}

/* Without thieves as with them: half of it goes to all, the rest is popped. */
static void overflow_and_pop(void)
{
    push(0, CAPACITY);
    struct sni_inject inject;
    sni_inject_init(&inject);
    CHECK_EQ(sni_deque_overflow(&d, &links[8], &inject, SNI_PRIO_NORMAL), CAPACITY / 2);
    for (unsigned i = 0; i < CAPACITY / 2; i++)
        CHECK_PTR_EQ(sni_inject_pop(&inject), &links[i]);
    CHECK_PTR_EQ(sni_inject_pop(&inject), NULL);
    for (unsigned i = 8; i >= CAPACITY / 2; i--)
        CHECK_PTR_EQ(sni_deque_pop(&d), &links[i]);
    CHECK_PTR_EQ(sni_deque_pop(&d), NULL);
    CHECK_EQ(sni_deque_overflow(&d, &links[0], &inject, SNI_PRIO_NORMAL), 0); /* it fits */
    CHECK_PTR_EQ(sni_deque_pop(&d), &links[0]);
    CHECK_PTR_EQ(sni_deque_pop(&d), NULL);
}

TEST(a_deque_overflow_gives_the_oldest_half_to_all)
{
    start_at(0);
    overflow_and_pop();
}

TEST(a_deque_without_thieves_pops_the_newest_too)
{
    start_at(UINT64_MAX - CAPACITY / 2);
    sni_deque_set_alone(&d);
    for (int round = 0; round < 4; round++)
        overflow_and_pop();
}

/* ---- threads ------------------------------------------------------------------------------- */

enum { THIEVES = 3, MADE = 400000 };

struct item {
    struct sni_runlink link;
    unsigned value;
    unsigned taken;
};

static struct item *items;
static struct sni_inject inject_all;
static SNI_ATOMIC(uint32_t) taken;

static void take(struct sni_runlink *link)
{
    if (link == NULL)
        return;
    struct item *item = sni_container_of(link, struct item, link);
    CHECK_EQ(item->value, (unsigned)(item - items));
    item->taken++;
    sni_atomic_fetch_add(&taken, 1, relaxed);
}

static void *thief(void *arg)
{
    (void)arg;
    while (sni_atomic_load(&taken, relaxed) < MADE) {
        take(sni_deque_steal(&d, NULL));
        take(sni_inject_pop(&inject_all));
    }
    return NULL;
}

/* Pushes up to three, pops one or two: the deque is often empty, sometimes full. */
static void own(void)
{
    for (unsigned i = 0; i < MADE; i++) {
        items[i].value = i;
        if (!sni_deque_push(&d, &items[i].link))
            (void)sni_deque_overflow(&d, &items[i].link, &inject_all, SNI_PRIO_NORMAL);
        if (i % 3 == 2 || i % 1000 < 300)
            take(sni_deque_pop(&d));
        if (i % 4 == 3)
            take(sni_deque_pop(&d));
    }
    while (sni_atomic_load(&taken, relaxed) < MADE)
        take(sni_deque_pop(&d));
}

TEST(each_link_of_a_deque_is_taken_once_by_owner_or_thieves, .limit_s = 60)
{
    items = calloc(MADE, sizeof(*items));
    CHECK(items != NULL);
    sni_inject_init(&inject_all);
    start_at(UINT64_MAX - 1000);
    pthread_t threads[THIEVES];
    for (unsigned i = 0; i < THIEVES; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, thief, NULL), 0);
    own();
    for (unsigned i = 0; i < THIEVES; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < MADE; i++)
        CHECK_EQ(items[i].taken, 1);
    free(items);
}
