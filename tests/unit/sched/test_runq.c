/* SPDX-License-Identifier: MIT */
/* The run queue of a worker (R40): FIFO, stolen by half, overflow of half, held by its owner, the
 * slot and its budget; then owner and thieves on real threads, which must take each link exactly
 * once. That all their interleavings are right is tests/model's to show. */
#include "harness.h"
#include "plat/thread.h"
#include "sched/inject.h"
#include "sched/runq.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CAPACITY = 8 };

static struct sni_runlink links[64];
static struct sni_runq q;
static sni_runq_cell cells[CAPACITY];
static struct sni_runq other;
static sni_runq_cell other_cells[CAPACITY];

/* Both empty, their indices at `start`. */
static void start_at(uint32_t start)
{
    sni_runq_init(&q, cells, CAPACITY);
    sni_runq_init(&other, other_cells, CAPACITY);
    struct sni_runq *both[] = {&q, &other};
    for (int i = 0; i < 2; i++) {
        both[i]->head_.raw_ = (uint64_t)start << 32 | start;
        both[i]->tail_.raw_ = start;
        both[i]->head_seen_ = start;
    }
}

static void push(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++)
        CHECK(sni_runq_push(&q, &links[i]));
}

static void check_pops(struct sni_runq *from, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++)
        CHECK_PTR_EQ(sni_runq_pop(from), &links[i]);
    CHECK_PTR_EQ(sni_runq_pop(from), NULL);
}

TEST(a_new_runq_is_empty)
{
    start_at(0);
    CHECK_PTR_EQ(sni_runq_pop(&q), NULL);
    CHECK_EQ(sni_runq_len(&q), 0);
    struct sni_runlink *first = NULL;
    CHECK_EQ(sni_runq_steal(&q, &other, UINT32_MAX, &first), 0);
    CHECK_PTR_EQ(first, NULL);
}

TEST(a_runq_is_first_in_first_out_and_has_an_end)
{
    start_at(0);
    push(0, CAPACITY);
    CHECK_EQ(sni_runq_len(&q), CAPACITY);
    CHECK(!sni_runq_push(&q, &links[CAPACITY]));
    CHECK_EQ(sni_runq_len(&q), CAPACITY);
    check_pops(&q, 0, CAPACITY);
}

TEST(a_runq_goes_on_when_its_indices_wrap)
{
    for (uint32_t before = 0; before < 2 * CAPACITY; before++) {
        start_at(UINT32_MAX - before);
        for (int round = 0; round < 4; round++) {
            push(0, CAPACITY);
            CHECK(!sni_runq_push(&q, &links[40]));
            CHECK_EQ(sni_runq_len(&q), CAPACITY);
            CHECK_PTR_EQ(sni_runq_pop(&q), &links[0]);
            struct sni_runlink *first = NULL;
            CHECK_EQ(sni_runq_steal(&q, &other, UINT32_MAX, &first), 4);
            CHECK_PTR_EQ(first, &links[1]);
            check_pops(&other, 2, 3);
            check_pops(&q, 5, 3);
        }
    }
}

/* `alone`: without thieves. */
static void pop_and_see_the_rest(uint32_t start, bool alone)
{
    struct sni_runq_rest rest = {77, 77};
    start_at(start);
    if (alone)
        sni_runq_set_alone(&q);
    CHECK_EQ(sni_runq_is_held(&q), alone);
    push(0, CAPACITY);
    for (unsigned i = 0; i < CAPACITY; i++) {
        CHECK_PTR_EQ(sni_runq_pop_rest(&q, &rest), &links[i]);
        CHECK_EQ(rest.n, CAPACITY - 1 - i);
        for (unsigned nth = 0; nth < rest.n; nth++)
            CHECK_PTR_EQ(sni_runq_peek(&q, &rest, nth), &links[i + 1 + nth]);
    }
    rest.n = 77;
    CHECK_PTR_EQ(sni_runq_pop_rest(&q, &rest), NULL);
    CHECK_EQ(rest.n, 0);
}

TEST(a_runq_tells_what_is_left_and_shows_it)
{
    static const uint32_t starts[] = {0, UINT32_MAX - 2};
    for (int k = 0; k < 2; k++) {
        pop_and_see_the_rest(starts[k], true);
        pop_and_see_the_rest(starts[k], false);
    }
}

TEST(a_thief_takes_the_older_half_rounded_up)
{
    for (unsigned queued = 1; queued <= CAPACITY; queued++) {
        start_at(0);
        push(0, queued);
        unsigned half = queued - queued / 2;
        struct sni_runlink *first = NULL;
        CHECK_EQ(sni_runq_steal(&q, &other, UINT32_MAX, &first), half);
        CHECK_PTR_EQ(first, &links[0]);
        CHECK_EQ(sni_runq_len(&other), half - 1);
        check_pops(&other, 1, half - 1);
        check_pops(&q, half, queued - half);
    }
}

TEST(a_thief_takes_only_what_fits)
{
    start_at(0);
    for (unsigned i = 0; i < CAPACITY - 1; i++)
        CHECK(sni_runq_push(&other, &links[20 + i]));
    push(0, CAPACITY);
    struct sni_runlink *first = NULL;
    CHECK_EQ(sni_runq_steal(&q, &other, UINT32_MAX, &first),
             2); /* one cell, and the one to be run */
    CHECK_PTR_EQ(first, &links[0]);
    CHECK_EQ(sni_runq_steal(&q, &other, UINT32_MAX, &first), 1);
    CHECK_PTR_EQ(first, &links[2]);
    check_pops(&q, 3, CAPACITY - 3);
}

TEST(a_thief_takes_no_more_than_it_wants)
{
    start_at(0);
    push(0, CAPACITY);
    struct sni_runlink *first = NULL;
    CHECK_EQ(sni_runq_steal(&q, &other, 1, &first), 1);
    CHECK_PTR_EQ(first, &links[0]);
    CHECK_EQ(sni_runq_len(&other), 0);
    CHECK_EQ(sni_runq_steal(&q, &other, 2, &first), 2);
    CHECK_PTR_EQ(first, &links[1]);
    check_pops(&other, 2, 1);
    check_pops(&q, 3, CAPACITY - 3);
}

/* A thief that has claimed and not completed: others find nothing to steal, the owner pops on, and
 * does not come round to the claimed cells. */
TEST(a_steal_under_way_keeps_its_cells_and_other_thieves_out)
{
    start_at(0);
    push(0, CAPACITY);
    q.head_.raw_ = (uint64_t)0 << 32 | 3; /* claimed 0, 1 and 2 */
    struct sni_runlink *first = NULL;
    CHECK_EQ(sni_runq_steal(&q, &other, UINT32_MAX, &first), 0);
    CHECK_PTR_EQ(sni_runq_pop(&q), &links[3]);
    CHECK(!sni_runq_push(&q, &links[8]));
    CHECK_EQ(sni_runq_len(&q), 4);

    struct sni_inject inject;
    sni_inject_init(&inject);
    CHECK_EQ(sni_runq_overflow(&q, &links[8], &inject, SNI_PRIO_HIGH), 1); /* does not wait */
    CHECK_PTR_EQ(sni_inject_pop(&inject), &links[8]);

    q.head_.raw_ = (uint64_t)4 << 32 | 4;                                  /* completed */
    CHECK_EQ(sni_runq_overflow(&q, &links[9], &inject, SNI_PRIO_HIGH), 0); /* fits now */
    CHECK_EQ(sni_inject_len(&inject), 0);
    for (unsigned i = 4; i < 8; i++)
        CHECK_PTR_EQ(sni_runq_pop(&q), &links[i]);
    CHECK_PTR_EQ(sni_runq_pop(&q), &links[9]);
}

TEST(an_overflow_moves_the_older_half_and_the_new_link_to_all)
{
    start_at(UINT32_MAX - 2);
    push(0, CAPACITY);
    struct sni_inject inject;
    sni_inject_init(&inject);
    CHECK_EQ(sni_runq_overflow(&q, &links[8], &inject, SNI_PRIO_LOW), CAPACITY / 2 + 1);
    CHECK_EQ(sni_inject_len(&inject), CAPACITY / 2 + 1);
    for (unsigned i = 0; i < CAPACITY / 2; i++)
        CHECK_PTR_EQ(sni_inject_pop(&inject), &links[i]);
    CHECK_PTR_EQ(sni_inject_pop(&inject), &links[8]);
    CHECK_PTR_EQ(sni_inject_pop(&inject), NULL);
    check_pops(&q, CAPACITY / 2, CAPACITY / 2);
}

/* ---- wider --------------------------------------------------------------------------------- */

/* For each place in a ring of two at which the first link may be: in the order of their coming,
 * nothing leaves for the queue of all before all cells are used. */
TEST(a_narrow_runq_becomes_wider_and_keeps_its_order)
{
    struct sni_inject inject;
    sni_inject_init(&inject);
    for (uint32_t start = UINT32_MAX - 10; start != 10; start++) {
        start_at(start);
        memset(cells, 0, sizeof(cells));
        sni_runq_narrow(&q, 2);
        for (unsigned i = 0; i < CAPACITY; i++) {
            if (sni_runq_push(&q, &links[i]))
                continue;
            CHECK(i == 2 || i == 4);
            CHECK(cells[i].raw_ == NULL); /* not used before it was needed */
            CHECK_EQ(sni_runq_overflow(&q, &links[i], &inject, SNI_PRIO_NORMAL), 0);
        }
        CHECK(!sni_runq_push(&q, &links[CAPACITY]));
        CHECK_EQ(sni_runq_overflow(&q, &links[CAPACITY], &inject, SNI_PRIO_NORMAL),
                 CAPACITY / 2 + 1);
        for (unsigned i = 0; i < CAPACITY / 2; i++)
            CHECK_PTR_EQ(sni_inject_pop(&inject), &links[i]);
        CHECK_PTR_EQ(sni_inject_pop(&inject), &links[CAPACITY]);
        check_pops(&q, CAPACITY / 2, CAPACITY / 2);
    }
}

TEST(a_narrow_runq_with_a_thief_at_work_overflows_and_becomes_wider_later)
{
    start_at(0);
    sni_runq_narrow(&q, 4);
    push(0, 4);
    q.head_.raw_ = (uint64_t)0 << 32 | 2; /* claimed 0 and 1 */
    struct sni_inject inject;
    sni_inject_init(&inject);
    CHECK_EQ(sni_runq_overflow(&q, &links[4], &inject, SNI_PRIO_NORMAL), 1);
    CHECK_PTR_EQ(sni_inject_pop(&inject), &links[4]);
    q.head_.raw_ = (uint64_t)2 << 32 | 2; /* completed */
    push(4, 2);
    CHECK_EQ(sni_runq_overflow(&q, &links[6], &inject, SNI_PRIO_NORMAL), 0);
    push(7, 3);
    CHECK(!sni_runq_push(&q, &links[10]));
    check_pops(&q, 2, CAPACITY);
}

TEST(a_thief_with_a_narrow_runq_makes_room_for_what_it_takes)
{
    start_at(UINT32_MAX - 1);
    sni_runq_narrow(&other, 2);
    push(0, CAPACITY);
    struct sni_runlink *first = NULL;
    CHECK_EQ(sni_runq_steal(&q, &other, UINT32_MAX, &first), CAPACITY / 2);
    CHECK_PTR_EQ(first, &links[0]);
    check_pops(&other, 1, CAPACITY / 2 - 1);
    check_pops(&q, CAPACITY / 2, CAPACITY / 2);
}

/* ---- held ---------------------------------------------------------------------------------- */

static void hold(void)
{
    sni_runq_hold(&q);
    CHECK(sni_runq_is_held(&q));
}

static bool has_fence(void)
{
    return sni_plat_fence_all_prepare(true) == 0;
}

TEST(a_held_runq_is_first_in_first_out_and_goes_round)
{
    for (uint32_t before = 0; before < 2 * CAPACITY; before++) {
        start_at(UINT32_MAX - before);
        push(0, 3);
        hold();
        uint32_t moves = sni_runq_moves(&q);
        push(3, CAPACITY - 3);
        CHECK(!sni_runq_push(&q, &links[40]));
        CHECK_EQ(sni_runq_len(&q), CAPACITY);
        check_pops(&q, 0, CAPACITY);
        CHECK_EQ(sni_runq_moves(&q) - moves, 2 * CAPACITY - 3);
        CHECK_EQ(sni_runq_len(&q), 0);
        push(0, CAPACITY);
        check_pops(&q, 0, CAPACITY);
        CHECK(sni_runq_is_held(&q));
    }
}

TEST(a_thief_of_a_held_runq_has_it_shared)
{
    if (!has_fence())
        SKIP("no fence in all threads here");
    start_at(UINT32_MAX - 3);
    push(0, 2);
    hold();
    CHECK_PTR_EQ(sni_runq_pop(&q), &links[0]);
    push(2, 4);
    struct sni_runlink *first = NULL;
    uint32_t moves = sni_runq_moves(&q);
    CHECK_EQ(sni_runq_steal(&q, &other, UINT32_MAX, &first), 3); /* of 1 to 5 */
    CHECK_EQ(sni_runq_moves(&q) - moves, 3);
    CHECK_PTR_EQ(first, &links[1]);
    check_pops(&other, 2, 2);
    CHECK(!sni_runq_is_held(&q));
    CHECK_EQ(sni_runq_len(&q), 2);
    CHECK_PTR_EQ(sni_runq_pop(&q), &links[4]);
    hold(); /* again */
    check_pops(&q, 5, 1);
}

TEST(a_held_runq_that_is_empty_is_not_asked_for)
{
    start_at(0);
    hold();
    struct sni_runlink *first = NULL;
    CHECK_EQ(sni_runq_steal(&q, &other, UINT32_MAX, &first), 0);
    CHECK(sni_runq_is_held(&q));
}

TEST(a_runq_is_not_held_while_a_thief_is_at_it)
{
    start_at(0);
    push(0, CAPACITY);
    q.head_.raw_ = (uint64_t)0 << 32 | 3; /* claimed 0, 1 and 2 */
    sni_runq_hold(&q);
    CHECK(!sni_runq_is_held(&q));
    check_pops(&q, 3, CAPACITY - 3);
}

TEST(an_overflow_of_a_held_runq_shares_it)
{
    start_at(UINT32_MAX - 2);
    hold();
    push(0, CAPACITY);
    struct sni_inject inject;
    sni_inject_init(&inject);
    CHECK_EQ(sni_runq_overflow(&q, &links[8], &inject, SNI_PRIO_LOW), CAPACITY / 2 + 1);
    CHECK(!sni_runq_is_held(&q));
    check_pops(&q, CAPACITY / 2, CAPACITY / 2);
}

FAIL_TEST(a_runq_of_three_cells_is_refused, "power of two")
{
    sni_runq_init(&q, cells, 3);
}

/* ---- the slot ------------------------------------------------------------------------------ */

TEST(the_slot_gives_back_what_it_displaces)
{
    start_at(0);
    CHECK(!sni_runq_slot_full(&q));
    CHECK_PTR_EQ(sni_runq_slot_take(&q), NULL);
    CHECK_PTR_EQ(sni_runq_slot_swap(&q, &links[0]), NULL);
    CHECK(sni_runq_slot_full(&q));
    CHECK_PTR_EQ(sni_runq_slot_swap(&q, &links[1]), &links[0]);
    CHECK_PTR_EQ(sni_runq_slot_take(&q), &links[1]);
    CHECK_PTR_EQ(sni_runq_slot_take(&q), NULL);
}

TEST(the_slot_refuses_after_three_uses_in_a_row_until_the_ring_had_a_turn)
{
    start_at(0);
    push(10, 1);
    for (unsigned i = 0; i < SNI_RUNQ_SLOT_BUDGET; i++) {
        CHECK_PTR_EQ(sni_runq_slot_swap(&q, &links[i]), NULL);
        CHECK_PTR_EQ(sni_runq_slot_take(&q), &links[i]);
    }
    CHECK_PTR_EQ(sni_runq_slot_swap(&q, &links[5]), &links[5]); /* to the ring with it */
    CHECK(!sni_runq_slot_full(&q));
    CHECK_PTR_EQ(sni_runq_pop(&q), &links[10]);
    CHECK_PTR_EQ(sni_runq_slot_swap(&q, &links[5]), NULL);
    CHECK_PTR_EQ(sni_runq_slot_take(&q), &links[5]);

    q.slot_uses_ = SNI_RUNQ_SLOT_BUDGET;
    sni_runq_slot_reset(&q); /* a task from the inject queue is a turn, too */
    CHECK_PTR_EQ(sni_runq_slot_swap(&q, &links[6]), NULL);
}

TEST(the_slot_can_be_stolen_but_a_steal_of_the_ring_leaves_it)
{
    start_at(0);
    CHECK_PTR_EQ(sni_runq_slot_steal(&q), NULL);
    CHECK_PTR_EQ(sni_runq_slot_swap(&q, &links[0]), NULL);
    struct sni_runlink *first = NULL;
    CHECK_EQ(sni_runq_steal(&q, &other, UINT32_MAX, &first), 0);
    CHECK_PTR_EQ(sni_runq_slot_steal(&q), &links[0]);
    CHECK_PTR_EQ(sni_runq_slot_take(&q), NULL);
}

/* ---- threads ------------------------------------------------------------------------------- */

enum { WORKERS = 4, SMALL = 32, HOLD_EACH = 50 };

struct item {
    struct sni_runlink link;
    unsigned value; /* written by the maker, read by the taker: order is checked by TSan */
    unsigned taken;
};

static struct {
    struct sni_runq ring;
    sni_runq_cell cells[SMALL];
} workers[WORKERS];
static struct sni_inject inject_all;
static struct item *items;
static SNI_ATOMIC(uint32_t) taken;
static unsigned made = 400000;
static bool holds;      /* the maker, now and then */
static bool are_narrow; /* the rings, at first     */

static void take(struct sni_runlink *link)
{
    struct item *item = sni_container_of(link, struct item, link);
    CHECK_EQ(item->value, (unsigned)(item - items));
    item->taken++;
    sni_atomic_fetch_add(&taken, 1, relaxed);
}

static void *work_for_others(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    struct sni_runq *own = &workers[me].ring;
    while (sni_atomic_load(&taken, relaxed) < made) {
        struct sni_runlink *link = sni_runq_pop(own);
        if (link == NULL)
            link = sni_inject_pop(&inject_all);
        for (unsigned i = 1; link == NULL && i < WORKERS; i++) {
            struct sni_runq *victim = &workers[(me + i) % WORKERS].ring;
            if (sni_runq_steal(victim, own, UINT32_MAX, &link) == 0)
                link = sni_runq_slot_steal(victim);
        }
        if (link != NULL)
            take(link);
    }
    return NULL;
}

/* Worker 0 makes all the work: pushes bursts, uses its slot, pops some itself. */
static void *make_work(void *arg)
{
    struct sni_runq *own = &workers[0].ring;
    for (unsigned i = 0; i < made; i++) {
        items[i].value = i;
        struct sni_runlink *link = &items[i].link;
        if (holds && i % HOLD_EACH == 0)
            sni_runq_hold(own);
        if (i % 3 == 0)
            link = sni_runq_slot_swap(own, link);
        if (link != NULL && !sni_runq_push(own, link))
            (void)sni_runq_overflow(own, link, &inject_all, i % SNI_PRIO_COUNT);
        if (i % 5 == 0 && (link = sni_runq_pop(own)) != NULL)
            take(link);
        if (i % 7 == 0 && (link = sni_runq_slot_take(own)) != NULL)
            take(link);
    }
    struct sni_runlink *link = sni_runq_slot_take(own);
    if (link != NULL)
        take(link);
    return work_for_others(arg);
}

static void take_each_once(void)
{
    items = calloc(made, sizeof(*items));
    CHECK(items != NULL);
    sni_inject_init(&inject_all);
    sni_atomic_store(&taken, 0, relaxed);
    for (unsigned i = 0; i < WORKERS; i++) {
        sni_runq_init(&workers[i].ring, workers[i].cells, SMALL);
        if (are_narrow)
            sni_runq_narrow(&workers[i].ring, 2);
        uint32_t start = UINT32_MAX - 1000; /* wraps on the way */
        workers[i].ring.head_.raw_ = (uint64_t)start << 32 | start;
        workers[i].ring.tail_.raw_ = start;
        workers[i].ring.head_seen_ = start;
    }
    pthread_t threads[WORKERS];
    for (uintptr_t i = 0; i < WORKERS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, i == 0 ? make_work : work_for_others, (void *)i),
                 0);
    for (unsigned i = 0; i < WORKERS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < made; i++)
        CHECK_EQ(items[i].taken, 1);
    free(items);
}

TEST(each_link_is_taken_once_by_owner_or_thieves, .limit_s = 60)
{
    take_each_once();
}

TEST(each_link_of_a_runq_that_is_held_is_taken_once, .limit_s = 60)
{
    if (!has_fence())
        SKIP("no fence in all threads here");
    holds = true;
    take_each_once();
}

/* A ring becomes wider four times and never again, so this is done many times with fewer links. */
TEST(each_link_of_runqs_that_become_wider_is_taken_once, .limit_s = 60)
{
    are_narrow = true;
    made = 500;
    for (int round = 0; round < 400; round++) {
        holds = round % 2 == 1 && has_fence();
        take_each_once();
    }
}
