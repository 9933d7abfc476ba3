/* SPDX-License-Identifier: MIT */
/* test_await.c - src/wait/await.c: a poller, which changes its waker as it likes, and a claimer. No
 * wake is lost, which would leave the poller parked; each reference to a waker is dropped; and
 * when the poller finds the wait to be over, the claimer has let go of the operation (R10, R43). */
#include "model/model.h"

#include "base/atomic.h"
#include "harness.h"
#include "sched/idle.h"
#include "wait/await.h"

static struct sni_await await;
static struct sni_waiter waiter;
static struct sni_parker parker;
static struct model_data written;
static int references;

static void *add_reference(void *data)
{
    references++;
    return data;
}

static void drop_reference(void *data)
{
    (void)data;
    references--;
}

static int wake_by_ref(void *data)
{
    (void)data;
    sni_parker_unpark(&parker);
    return 0;
}

static const sn_waker_vtable vtable = {
    .clone = add_reference, .wake_by_ref = wake_by_ref, .drop = drop_reference};

static void reset(void)
{
    await = (struct sni_await){.stage = {0}};
    sni_parker_init(&parker);
    written = (struct model_data){0};
    references = 0;
}

static void claim(void)
{
    model_write(&written);
    MODEL_CHECK(sni_wait_claim(&waiter, 0));
}

/* Each poll comes with another waker, so that it has something to change. */
static bool poll_once(int nth)
{
    sn_waker waker = {.vt = &vtable, .data = (void *)(uintptr_t)(16 + nth)};
    sn_cx cx = {&waker};
    return sni_await_poll(&await, &waiter, &cx);
}

static void poll_until_over(void)
{
    for (int nth = 1; !poll_once(nth); nth++) {
        sni_parker_park(&parker, INT64_MAX);
        model_yield(); /* a poll that meets the claimer wakes itself until that one is done */
    }
    model_read(&written);
    sni_await_finish(&await);
}

static SNI_ATOMIC(uint32_t) known;

static void reset_unknown(void)
{
    reset();
    sni_atomic_store(&known, 0, relaxed);
}

static void claim_when_known(void)
{
    while (sni_atomic_load(&known, acquire) == 0)
        model_yield();
    claim();
}

static void poll_without_a_waker_at_first(void)
{
    sni_await_begin(&await, &waiter);
    sni_atomic_store(&known, 1, release);
    (void)sni_await_published(&await, &waiter);
    poll_until_over();
}

static void poll_armed(void)
{
    sn_waker waker = {.vt = &vtable, .data = (void *)(uintptr_t)16};
    sn_cx cx = {&waker};
    sni_await_begin_armed(&await, &waiter, &cx);
    sni_atomic_store(&known, 1, release);
    if (!sni_await_published(&await, &waiter) && model_choose(2) == 0)
        sni_parker_park(&parker, INT64_MAX); /* as usual: no poll before the wake */
    poll_until_over();
}

static void check_references(void)
{
    MODEL_CHECK(references == 0);
}

static const struct model unarmed = {
    reset_unknown, {poll_without_a_waker_at_first, claim_when_known}, check_references};
static const struct model armed = {reset_unknown, {poll_armed, claim_when_known}, check_references};

TEST(a_poller_without_a_waker_meets_a_claimer)
{
    model_holds(&unarmed, &(struct model_options){.preemptions = 5});
    model_holds(&unarmed, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

TEST(a_poller_that_left_its_waker_meets_a_claimer)
{
    model_holds(&armed, &(struct model_options){.preemptions = 5});
    model_holds(&armed, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

TEST(await_planted_poll_without_compare_and_swap_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_await_poll"};
    model_finds(&unarmed, &options, "");
}

TEST(await_planted_relaxed_resume_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_RELAXED, .function = "let_go"};
    model_finds(&armed, &options, "race");
}
