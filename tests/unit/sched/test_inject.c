/* SPDX-License-Identifier: MIT */
/* The inject queue (R40) and the policy of the four priority classes (R44): each class that has
 * work is served within its bound, whatever the others have. */
#include "harness.h"
#include "sched/inject.h"

#include <pthread.h>
#include <stdlib.h>

static struct sni_runlink links[64];
static struct sni_inject q;

static void push(unsigned index, unsigned prio)
{
    sni_inject_push(&q, &links[index], prio);
}

TEST(a_zeroed_inject_queue_is_empty)
{
    CHECK_EQ(sni_inject_len(&q), 0);
    CHECK_PTR_EQ(sni_inject_pop(&q), NULL);
    struct sni_runlink *chain = &links[0];
    CHECK_EQ(sni_inject_pop_chain(&q, 8, &chain), 0);
    CHECK_PTR_EQ(chain, NULL);
}

TEST(a_class_is_first_in_first_out)
{
    sni_inject_init(&q);
    for (unsigned i = 0; i < 5; i++)
        push(i, SNI_PRIO_NORMAL);
    CHECK_EQ(sni_inject_len(&q), 5);
    for (unsigned i = 0; i < 5; i++)
        CHECK_PTR_EQ(sni_inject_pop(&q), &links[i]);
    CHECK_PTR_EQ(sni_inject_pop(&q), NULL);
    CHECK_EQ(sni_inject_len(&q), 0);
}

TEST(chains_go_in_and_come_out)
{
    sni_inject_init(&q);
    for (unsigned i = 0; i < 9; i++)
        links[i].next = &links[i + 1];
    push(20, SNI_PRIO_NORMAL);
    sni_inject_push_chain(&q, &links[0], &links[9], 10, SNI_PRIO_NORMAL);
    push(21, SNI_PRIO_NORMAL);
    CHECK_EQ(sni_inject_len(&q), 12);
    CHECK_PTR_EQ(sni_inject_pop(&q), &links[20]);

    struct sni_runlink *chain = NULL;
    CHECK_EQ(sni_inject_pop_chain(&q, 4, &chain), 4);
    for (unsigned i = 0; i < 4; i++, chain = chain->next)
        CHECK_PTR_EQ(chain, &links[i]);
    CHECK_PTR_EQ(chain, NULL);
    CHECK_EQ(sni_inject_pop_chain(&q, 100, &chain), 7);
    for (unsigned i = 4; i < 10; i++, chain = chain->next)
        CHECK_PTR_EQ(chain, &links[i]);
    CHECK_PTR_EQ(chain, &links[21]);
    CHECK_PTR_EQ(chain->next, NULL);
    CHECK_EQ(sni_inject_len(&q), 0);
}

TEST(urgent_work_comes_first)
{
    sni_inject_init(&q);
    for (unsigned prio = SNI_PRIO_COUNT; prio-- > 0;)
        push(prio, prio);
    CHECK_PTR_EQ(sni_inject_pop(&q), &links[SNI_PRIO_CRITICAL]);
    CHECK_PTR_EQ(sni_inject_pop(&q), &links[SNI_PRIO_HIGH]);
    CHECK_PTR_EQ(sni_inject_pop(&q), &links[SNI_PRIO_NORMAL]);
    CHECK_PTR_EQ(sni_inject_pop(&q), &links[SNI_PRIO_LOW]);
}

FAIL_TEST(a_fifth_priority_class_is_refused, "priority class")
{
    push(0, SNI_PRIO_COUNT);
}

/* ---- the policy, for all its cases (R44) --------------------------------------------------- */

static const uint32_t bounds[SNI_PRIO_COUNT] = {2, SNI_PRIO_HIGH_TURN, SNI_PRIO_NORMAL_TURN,
                                                SNI_PRIO_LOW_TURN};

TEST(a_pick_is_always_a_class_that_has_work)
{
    for (unsigned waiting = 0; waiting < 1u << SNI_PRIO_COUNT; waiting++) {
        for (uint32_t tick = 0; tick < 4096; tick++) {
            enum sni_prio prio = sni_prio_pick(tick, waiting);
            CHECK(waiting == 0 ? prio == SNI_PRIO_COUNT : (waiting >> prio & 1) == 1);
        }
    }
}

/* The others may have work or not at each pick, as an adversary likes: only the class's own turns
 * count, and those do not depend on the others. */
TEST(a_class_that_has_work_is_served_within_its_bound)
{
    for (unsigned prio = 0; prio < SNI_PRIO_COUNT; prio++) {
        for (unsigned others = 0; others < 1u << SNI_PRIO_COUNT; others++) {
            unsigned waiting = others | 1u << prio;
            uint32_t passed_over = 0;
            for (uint32_t i = 0; i < 4096; i++) {
                uint32_t tick = UINT32_MAX - 2048 + i; /* wraps in the middle */
                passed_over = sni_prio_pick(tick, waiting) == prio ? 0 : passed_over + 1;
                CHECK_LT(passed_over, bounds[prio]);
            }
        }
    }
}

TEST(critical_work_gets_its_share_under_full_load)
{
    unsigned served[SNI_PRIO_COUNT] = {0};
    for (uint32_t tick = 0; tick < 32; tick++)
        served[sni_prio_pick(tick, 15)]++;
    CHECK_EQ(served[SNI_PRIO_CRITICAL], 21);
    CHECK_EQ(served[SNI_PRIO_HIGH], 8);
    CHECK_EQ(served[SNI_PRIO_NORMAL], 2);
    CHECK_EQ(served[SNI_PRIO_LOW], 1);
}

TEST(low_work_is_run_while_critical_work_never_ends)
{
    sni_inject_init(&q);
    push(40, SNI_PRIO_LOW);
    push(41, SNI_PRIO_NORMAL);
    push(0, SNI_PRIO_CRITICAL);
    unsigned normal_at = 0;
    unsigned low_at = 0;
    for (unsigned pops = 1; pops <= SNI_PRIO_LOW_TURN; pops++) {
        struct sni_runlink *link = sni_inject_pop(&q);
        if (link == &links[40])
            low_at = pops;
        else if (link == &links[41])
            normal_at = pops;
        else
            sni_inject_push(&q, link, SNI_PRIO_CRITICAL); /* back again */
    }
    CHECK(normal_at > 0 && normal_at <= SNI_PRIO_NORMAL_TURN);
    CHECK(low_at > 0 && low_at <= SNI_PRIO_LOW_TURN);
}

/* ---- threads ------------------------------------------------------------------------------- */

enum { SIDES = 2, MADE = 100000, BATCH = 7 };

struct item {
    struct sni_runlink link;
    unsigned value;
    unsigned taken;
};

static struct item *items;
static SNI_ATOMIC(uint32_t) taken;

static void *produce(void *arg)
{
    struct item *mine = items + (uintptr_t)arg * MADE;
    for (unsigned i = 0; i < MADE;) {
        unsigned count = i + BATCH <= MADE && i % 2 == 0 ? BATCH : 1;
        for (unsigned j = 0; j < count; j++) {
            mine[i + j].value = i + j;
            mine[i + j].link.next = j + 1 < count ? &mine[i + j + 1].link : NULL;
        }
        sni_inject_push_chain(&q, &mine[i].link, &mine[i + count - 1].link, count,
                              i % SNI_PRIO_COUNT);
        i += count;
    }
    return NULL;
}

static void *consume(void *arg)
{
    (void)arg;
    while (sni_atomic_load(&taken, relaxed) < SIDES * MADE) {
        struct sni_runlink *chain = NULL;
        size_t count = sni_inject_pop_chain(&q, 5, &chain);
        for (size_t i = 0; i < count; i++) {
            struct item *item = sni_container_of(chain, struct item, link);
            CHECK_EQ(item->value, (unsigned)(item - items) % MADE);
            item->taken++;
            chain = chain->next;
        }
        CHECK_PTR_EQ(chain, NULL);
        sni_atomic_fetch_add(&taken, (uint32_t)count, relaxed);
    }
    return NULL;
}

TEST(each_injected_link_is_taken_once, .limit_s = 60)
{
    items = calloc(SIDES * MADE, sizeof(*items));
    CHECK(items != NULL);
    sni_inject_init(&q);
    pthread_t threads[2 * SIDES];
    for (uintptr_t i = 0; i < 2 * SIDES; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, i < SIDES ? produce : consume, (void *)i), 0);
    for (unsigned i = 0; i < 2 * SIDES; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(sni_inject_len(&q), 0);
    for (unsigned i = 0; i < SIDES * MADE; i++)
        CHECK_EQ(items[i].taken, 1);
    free(items);
}
