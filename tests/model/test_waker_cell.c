/* SPDX-License-Identifier: MIT */
/* test_waker_cell.c - src/future/waker_cell.c: a poller and two events that come when they like. No
 * wake is lost, which would leave the poller parked, and each reference to the waker is dropped. */
#include "model/model.h"

#include "base/atomic.h"
#include "harness.h"
#include "sched/idle.h"

#include <sinew/errno.h>
#include <sinew/future.h>

static sn_waker_cell cell;
static struct sni_parker parker;
static SNI_ATOMIC(uint32_t) happened[2];
static struct model_data written[2];
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
    MODEL_CHECK(references > 0);
    sni_parker_unpark(data);
    return 0;
}

static int wake(void *data)
{
    int rc = wake_by_ref(data);
    drop_reference(data);
    return rc;
}

static const sn_waker_vtable vtable = {
    .clone = add_reference, .wake = wake, .wake_by_ref = wake_by_ref, .drop = drop_reference};

static void reset(void)
{
    cell = (sn_waker_cell)SN_WAKER_CELL_INIT;
    sni_parker_init(&parker);
    for (int i = 0; i < 2; i++) {
        sni_atomic_store(&happened[i], 0, relaxed);
        written[i] = (struct model_data){0};
    }
    references = 1; /* the poller's own */
}

static bool poll_for(int events)
{
    sn_waker waker = {.vt = &vtable, .data = &parker};
    MODEL_CHECK(sn_waker_cell_arm(&cell, &waker) == 0);
    for (int i = 0; i < events; i++) {
        if (sni_atomic_load(&happened[i], acquire) == 0)
            return false;
        model_read(&written[i]);
    }
    return true;
}

static void await(int events)
{
    while (!poll_for(events)) {
        sni_parker_park(&parker, INT64_MAX);
        model_yield(); /* an arm that meets a wake under way polls again until that is over */
    }
    sn_waker_cell_disarm(&cell);
    sn_waker waker = {.vt = &vtable, .data = &parker};
    sn_waker_drop(&waker);
}

static void await_one(void)
{
    await(1);
}

static void await_two(void)
{
    await(2);
}

static void event(int which)
{
    model_write(&written[which]);
    sni_atomic_store(&happened[which], 1, release);
    int rc = sn_waker_cell_wake(&cell);
    MODEL_CHECK(rc == 0 || rc == -ESRCH);
}

static void first_event(void)
{
    event(0);
}

static void second_event(void)
{
    event(1);
}

static void check_references(void)
{
    MODEL_CHECK(references == 0);
}

static const struct model one_event = {reset, {await_one, first_event}, check_references};
static const struct model two_events = {
    reset, {await_two, first_event, second_event}, check_references};

TEST(waker_cell_poller_against_one_event)
{
    model_holds(&one_event, &(struct model_options){.preemptions = 5});
    model_holds(&one_event, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

TEST(waker_cell_poller_against_two_events)
{
    model_holds(&two_events, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&two_events, &(struct model_options){.store_buffers = true, .random = 5000});
}

/* The mistake that the order of arm and look is there to prevent. */
static void await_in_the_wrong_order(void)
{
    sn_waker waker = {.vt = &vtable, .data = &parker};
    if (sni_atomic_load(&happened[0], acquire) == 0) {
        MODEL_CHECK(sn_waker_cell_arm(&cell, &waker) == 0);
        sni_parker_park(&parker, INT64_MAX);
    }
}

TEST(waker_cell_planted_look_before_the_arm_loses_a_wake)
{
    static const struct model model = {reset, {await_in_the_wrong_order, first_event}, NULL};
    model_finds(&model, &(struct model_options){0}, "deadlock");
}

TEST(waker_cell_planted_take_without_exchange_is_found)
{
    struct model_options options = {.plant = MODEL_PLANT_SPLIT_RMW,
                                    .function = "sni_waker_cell_take"};
    model_finds(&two_events, &options, "");
}
