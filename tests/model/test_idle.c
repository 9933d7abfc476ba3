/* SPDX-License-Identifier: MIT */
/* test_idle.c - src/sched/idle.c, all interleavings (R43): whoever sleeps is woken when there is
 * work, and a token is never lost.
 *
 * The model of the protocol: two workers in the loop that idle.h prescribes, over real run queues,
 * and a third that is stuck in a long task: it pushes to its own queue and tells, but never looks
 * for work itself. So each link must be stolen by one of the two, and a lost wake-up is a deadlock.
 *
 * That a worker runs the link in the end is not all the invariant says: while one worker is busy,
 * the other must come for the next link. So the first link runs until the second has been run. */
#include "model/items.h"
#include "model/model.h"

#include "base/atomic.h"
#include "harness.h"
#include "plat/thread.h"
#include "sched/idle.h"

enum { WORKERS_MAX = 3, SUBMITTER = WORKERS_MAX, RINGS = WORKERS_MAX + 1, CAPACITY = 4 };

static struct sni_idle idle;
static struct sni_parker parkers[WORKERS_MAX];
static struct sni_runq rings[RINGS];
static struct sni_hush hush; /* the submitter's */
static sni_runq_cell cells[RINGS][CAPACITY];
static SNI_ATOMIC(uint32_t) run; /* links that were run */
static unsigned links;           /* to be run in all */
static unsigned workers = 2;
static int unparks;

/* How the worker's loop is broken, on purpose. */
static enum {
    RIGHT,
    NO_LOOK_BEFORE_PARK,     /* the re-check is forgotten */
    NO_LOOK_UNLESS_SEARCHED, /* a sleeper that was not searching does not look */
    NO_LOOK_AT_END,          /* the last searcher finds work and tells nobody */
    NO_FENCE_IN_ALL,         /* a hush ends, and nobody executes a fence */
    NO_LOOK_BEHIND_PUSH,     /* whether the hush has ended */
    HUSH_NEVER_ENDS,         /* although the one who promised to stay sleeps */
} mistake;
static bool hushes; /* whoever searches does that first */
static bool first_needs_second;
static bool first_park_is_timed;

static void reset(void)
{
    items_reset();
    sni_idle_init(&idle, workers);
    for (int i = 0; i < WORKERS_MAX; i++)
        sni_parker_init(&parkers[i]);
    for (int i = 0; i < RINGS; i++)
        sni_runq_init(&rings[i], cells[i], CAPACITY);
    if (hushes) /* as the worker that is hushed does with its own */
        sni_runq_hold(&rings[SUBMITTER]);
    sni_hush_init(&hush, true);
    sni_atomic_store(&run, 0, relaxed);
    unparks = 0;
}

static void wake_one(void)
{
    int index = sni_idle_submit(&idle);
    if (index < 0)
        return;
    unparks++;
    sni_parker_unpark(&parkers[index]);
}

static bool work_queued(void)
{
    if (sni_runq_len(&rings[SUBMITTER]) > 0)
        return true;
    for (unsigned i = 0; i < workers; i++) {
        if (sni_runq_len(&rings[i]) > 0)
            return true;
    }
    return false;
}

static void run_link(struct sni_runlink *link)
{
    int number = item_take(link);
    if (number == 0 && first_needs_second) {
        while (sni_atomic_load(&run, acquire) == 0) /* the other worker is to run the second */
            (void)sni_plat_park(&run.raw_, 0, INT64_MAX);
    }
    uint32_t before = sni_atomic_fetch_add(&run, 1, acq_rel);
    sni_plat_unpark(&run.raw_, 1);
    if (before + 1 < links)
        return;
    for (unsigned i = 0; i < workers; i++) /* the end of the model: everybody may go home */
        sni_parker_unpark(&parkers[i]);
}

static struct sni_runlink *search(unsigned me)
{
    struct sni_runlink *link = NULL;
    if (sni_runq_steal(&rings[SUBMITTER], &rings[me], UINT32_MAX, &link) > 0)
        return link;
    for (unsigned i = 1; i < workers && link == NULL; i++)
        (void)sni_runq_steal(&rings[(me + i) % workers], &rings[me], UINT32_MAX, &link);
    return link;
}

static void end_hush(void)
{
    sni_hush_end(&hush);
    if (mistake != NO_FENCE_IN_ALL)
        MODEL_CHECK(sni_plat_fence_all() == 0);
}

/* The search of one that lets the submitter hurry before it steals. */
static struct sni_runlink *search_late(unsigned me)
{
    sni_hush_begin(&hush);
    if (mistake != HUSH_NEVER_ENDS)
        end_hush();
    return search(me);
}

/* Sleep until there is a reason not to. */
static void sleep_once(unsigned me, bool searching, bool timed)
{
    bool look = sni_idle_sleep(&idle, me, searching);
    if (mistake == NO_LOOK_BEFORE_PARK || (mistake == NO_LOOK_UNLESS_SEARCHED && !searching))
        look = false;
    if (!look || !work_queued())
        (void)sni_parker_park(&parkers[me], timed ? 1 : INT64_MAX);
    sni_idle_woken(&idle, me);
}

static void worker(void)
{
    unsigned me = model_self();
    bool searching = false;
    bool timed = first_park_is_timed;
    while (sni_atomic_load(&run, acquire) < links) {
        struct sni_runlink *link = sni_runq_pop(&rings[me]);
        if (link == NULL) {
            searching = searching || sni_idle_begin_search(&idle, me);
            if (searching)
                link = hushes ? search_late(me) : search(me);
        }
        if (link == NULL) {
            sleep_once(me, searching, timed);
            timed = false;
            searching = true;
            continue;
        }
        if (searching && sni_idle_end_search(&idle, me) && mistake != NO_LOOK_AT_END &&
            work_queued())
            wake_one();
        searching = false;
        run_link(link);
    }
    if (searching && sni_idle_end_search(&idle, me) && work_queued())
        wake_one();
}

static void submit_all(void)
{
    for (unsigned i = 0; i < links; i++) {
        MODEL_CHECK(sni_runq_push(&rings[SUBMITTER], item_make()));
        wake_one();
    }
}

/* As a worker does. */
static void submit_fenced(struct sni_runlink *link)
{
    MODEL_CHECK(sni_runq_push_fenced(&rings[SUBMITTER], link));
    int index = sni_idle_lacks_searcher(&idle) ? sni_idle_choose(&idle) : -1;
    if (index < 0)
        return;
    unparks++;
    sni_parker_unpark(&parkers[index]);
}

static void submit_all_fenced(void)
{
    for (unsigned i = 0; i < links; i++)
        submit_fenced(item_make());
}

/* As a worker does that may be hushed. */
static void submit_all_hushed(void)
{
    for (unsigned i = 0; i < links; i++) {
        if (!sni_hush_is_on(&hush)) {
            submit_fenced(item_make());
            continue;
        }
        MODEL_CHECK(sni_runq_push(&rings[SUBMITTER], item_make()));
        if (mistake != NO_LOOK_BEHIND_PUSH && !sni_hush_was_on(&hush))
            wake_one();
    }
}

static void check_all_run(void)
{
    items_check();
    MODEL_CHECK(sni_idle_searching(&idle) == 0);
    MODEL_CHECK(sni_idle_sleeping(&idle) == 0);
    MODEL_CHECK(unparks <= (int)(links + workers));
}

static const struct model submitted = {reset, {worker, worker, submit_all}, check_all_run};
static const struct model told = {reset, {worker, worker, submit_all_fenced}, check_all_run};
static const struct model hushed = {reset, {worker, worker, submit_all_hushed}, check_all_run};

TEST(idle_work_is_run_by_somebody, .limit_s = 60)
{
    links = 1;
    model_holds(&submitted, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&submitted, &(struct model_options){.store_buffers = true, .random = 20000});
    model_holds(&told, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&told, &(struct model_options){.store_buffers = true, .random = 20000});
}

TEST(idle_two_links_are_run_at_once_by_two_workers, .limit_s = 60)
{
    links = 2;
    first_needs_second = true;
    model_holds(&submitted, &(struct model_options){.random = 50000});
    model_holds(&submitted, &(struct model_options){.store_buffers = true, .random = 50000});
    model_holds(&told, &(struct model_options){.store_buffers = true, .random = 50000});
}

TEST(idle_three_workers_run_two_links_at_once, .limit_s = 60)
{
    static const struct model model = {reset, {worker, worker, worker, submit_all}, check_all_run};
    workers = 3;
    links = 2;
    first_needs_second = true;
    model_holds(&model, &(struct model_options){.preemptions = 1, .random = 50000});
    model_holds(&model,
                &(struct model_options){.preemptions = 1, .store_buffers = true, .random = 50000});
}

TEST(idle_sleepers_may_leave_by_themselves, .limit_s = 120)
{
    links = 2;
    first_needs_second = true;
    first_park_is_timed = true;
    model_holds(&submitted, &(struct model_options){.random = 50000});
    model_holds(&submitted, &(struct model_options){.preemptions = 1, .store_buffers = true});
}

TEST(idle_hushed_submitters_need_no_fence, .limit_s = 120)
{
    hushes = true;
    links = 1;
    model_holds(&hushed, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&hushed, &(struct model_options){.store_buffers = true, .random = 50000});
    links = 2;
    first_needs_second = true;
    model_holds(&hushed, &(struct model_options){.random = 50000});
    model_holds(&hushed, &(struct model_options){.store_buffers = true, .random = 50000});
}

/* ---- planted mistakes ---------------------------------------------------------------------- */

TEST(idle_planted_submit_without_fence_loses_a_wake)
{
    links = 1;
    struct model_options options = {.plant = MODEL_PLANT_NO_FENCE, .function = "sni_idle_submit"};
    model_holds(&submitted, &options); /* sequentially consistent memory does not need it */
    options.store_buffers = true;
    model_finds(&submitted, &options, "deadlock");
}

TEST(idle_planted_push_by_a_late_store_loses_a_wake)
{
    links = 1;
    struct model_options options = {.plant = MODEL_PLANT_BUFFERED,
                                    .function = "sni_runq_push_fenced"};
    model_holds(&told, &options); /* as above */
    options.store_buffers = true;
    model_finds(&told, &options, "deadlock");
}

TEST(idle_planted_push_that_publishes_nothing_is_found)
{
    links = 1;
    struct model_options options = {.plant = MODEL_PLANT_RELAXED,
                                    .function = "sni_runq_push_fenced"};
    model_finds(&told, &options, "a race");
}

/* Sequentially consistent memory needs no fence, but it needs the look. */
TEST(idle_planted_end_of_a_hush_without_fence_loses_a_wake)
{
    hushes = true;
    links = 1;
    mistake = NO_FENCE_IN_ALL;
    model_holds(&hushed, &(struct model_options){0});
    model_finds(&hushed, &(struct model_options){.store_buffers = true}, "deadlock");
}

TEST(idle_planted_hushed_push_without_look_loses_a_wake)
{
    hushes = true;
    links = 1;
    mistake = NO_LOOK_BEHIND_PUSH;
    model_finds(&hushed, &(struct model_options){0}, "deadlock");
}

TEST(idle_planted_hush_by_one_who_sleeps_loses_a_wake)
{
    hushes = true;
    links = 1;
    mistake = HUSH_NEVER_ENDS;
    model_finds(&hushed, &(struct model_options){0}, "deadlock");
}

TEST(idle_planted_sleep_without_look_loses_a_wake)
{
    links = 1;
    mistake = NO_LOOK_BEFORE_PARK;
    model_finds(&submitted, &(struct model_options){0}, "deadlock");
}

TEST(idle_planted_sleep_of_a_refused_searcher_without_look_loses_a_wake)
{
    links = 2;
    first_needs_second = true;
    mistake = NO_LOOK_UNLESS_SEARCHED;
    model_finds(&submitted, &(struct model_options){.preemptions = 3}, "deadlock");
}

TEST(idle_planted_end_of_search_without_look_loses_a_wake)
{
    links = 2;
    first_needs_second = true;
    mistake = NO_LOOK_AT_END;
    model_finds(&submitted, &(struct model_options){0}, "deadlock");
}

/* ---- parker -------------------------------------------------------------------------------- */

static struct sni_parker parker;
static struct model_data data;
static SNI_ATOMIC(uint32_t) reasons;
static SNI_ATOMIC(uint32_t) driver; /* what a worker sleeps on that waits for I/O */

static void reset_parker(void)
{
    sni_parker_init(&parker);
    data = (struct model_data){0};
    sni_atomic_store(&reasons, 0, relaxed);
    sni_atomic_store(&driver, 0, relaxed);
}

static void park_once(void)
{
    MODEL_CHECK(sni_parker_park(&parker, INT64_MAX));
    model_read(&data);
}

static void unpark_once(void)
{
    model_write(&data);
    sni_parker_unpark(&parker);
}

TEST(parker_keeps_the_token_and_passes_data)
{
    static const struct model model = {reset_parker, {park_once, unpark_once}, NULL};
    model_holds(&model, &(struct model_options){.preemptions = 6});
    model_holds(&model, &(struct model_options){.preemptions = 4, .store_buffers = true});
    struct model_options options = {.plant = MODEL_PLANT_RELAXED, .function = "sni_parker_notify"};
    model_finds(&model, &options, "a race");
    options.function = "sni_parker_end";
    model_finds(&model, &options, "a race");
}

static void park_for_two_reasons(void)
{
    while (sni_atomic_load(&reasons, relaxed) != 3)
        (void)sni_parker_park(&parker, INT64_MAX);
}

static void give_reason(void)
{
    sni_atomic_fetch_or(&reasons, model_self(), relaxed); /* thread 1 or 2 */
    sni_parker_unpark(&parker);
}

TEST(parker_merges_tokens_and_loses_none)
{
    static const struct model model = {
        reset_parker, {park_for_two_reasons, give_reason, give_reason}, NULL};
    model_holds(&model, &(struct model_options){.preemptions = 4, .random = 2000});
    struct model_options options = {.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_parker_begin"};
    model_finds(&model, &options, "");
}

static void park_with_a_deadline_and_again(void)
{
    if (!sni_parker_park(&parker, 1))
        MODEL_CHECK(sni_parker_park(&parker, INT64_MAX)); /* the token is still to come */
    model_read(&data);
}

TEST(parker_keeps_the_token_when_the_time_passes)
{
    static const struct model model = {
        reset_parker, {park_with_a_deadline_and_again, unpark_once}, NULL};
    model_holds(&model, &(struct model_options){.preemptions = 6});
}

static void wait_in_driver(void)
{
    while (sni_atomic_load(&reasons, relaxed) != 1) {
        if (!sni_parker_begin(&parker))
            continue;
        while (sni_atomic_exchange(&driver, 0, relaxed) == 0)
            (void)sni_plat_park(&driver.raw_, 0, INT64_MAX);
        (void)sni_parker_end(&parker);
    }
}

static void notify_driver(void)
{
    sni_atomic_fetch_or(&reasons, 1, relaxed);
    if (!sni_parker_notify(&parker))
        return;
    sni_atomic_store(&driver, 1, seq_cst);
    sni_plat_unpark(&driver.raw_, 1);
}

TEST(parker_halves_wake_a_driver)
{
    static const struct model model = {reset_parker, {wait_in_driver, notify_driver}, NULL};
    model_holds(&model, &(struct model_options){.preemptions = 5, .random = 2000});
    model_holds(&model, &(struct model_options){.store_buffers = true});
}
