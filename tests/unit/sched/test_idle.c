/* SPDX-License-Identifier: MIT */
/* Who sleeps, searches and wakes whom (R43): one wake per burst, throttled; no wake lost on real
 * threads; the parker's token; and no processor time spent asleep. */
#include "harness.h"
#include "plat/clock.h"
#include "plat/thread.h"
#include "sched/idle.h"
#include "sched/inject.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct sni_idle idle;

TEST(nobody_is_woken_while_all_are_awake)
{
    sni_idle_init(&idle, 4);
    CHECK_EQ(sni_idle_submit(&idle), -1);
    CHECK_EQ(sni_idle_searching(&idle), 0);
    CHECK_EQ(sni_idle_sleeping(&idle), 0);
}

TEST(a_submission_wakes_one_sleeper_and_only_if_nobody_searches)
{
    sni_idle_init(&idle, 4);
    CHECK(sni_idle_sleep(&idle, 3, false)); /* nobody searches: look once more */
    CHECK(sni_idle_sleep(&idle, 1, false));
    CHECK_EQ(sni_idle_sleeping(&idle), 2);
    CHECK_EQ(sni_idle_submit(&idle), 1); /* the lower one; it counts as searching at once */
    CHECK_EQ(sni_idle_searching(&idle), 1);
    CHECK_EQ(sni_idle_sleeping(&idle), 1);
    CHECK_EQ(sni_idle_submit(&idle), -1); /* throttled */
    sni_idle_woken(&idle, 1);
    CHECK_EQ(sni_idle_searching(&idle), 1);
    CHECK(sni_idle_end_search(&idle, 1)); /* the last one: look, and wake the next */
    CHECK_EQ(sni_idle_submit(&idle), 3);
    CHECK_EQ(sni_idle_sleeping(&idle), 0);
    sni_idle_woken(&idle, 3);
    CHECK(sni_idle_end_search(&idle, 3));
    CHECK_EQ(sni_idle_submit(&idle), -1);
}

TEST(at_most_half_of_the_workers_and_at_least_one_may_begin_to_search)
{
    for (unsigned workers = 1; workers <= 9; workers++) {
        sni_idle_init(&idle, workers);
        unsigned searching = 0;
        for (unsigned i = 0; i < workers; i++)
            searching += sni_idle_begin_search(&idle, i);
        CHECK_EQ(searching, (workers + 1) / 2);
        for (unsigned i = 0; i < searching; i++)
            CHECK_EQ(sni_idle_end_search(&idle, i), i + 1 == searching);
    }
}

TEST(only_the_last_searcher_looks_once_more)
{
    sni_idle_init(&idle, 4);
    CHECK(sni_idle_begin_search(&idle, 0));
    CHECK(sni_idle_begin_search(&idle, 1));
    CHECK(!sni_idle_sleep(&idle, 0, true));
    CHECK(!sni_idle_sleep(&idle, 2, false)); /* 1 still searches and will look */
    CHECK(sni_idle_sleep(&idle, 1, true));
    CHECK_EQ(sni_idle_sleeping(&idle), 3);
}

TEST(a_sleeper_that_leaves_by_itself_is_not_chosen)
{
    sni_idle_init(&idle, 4);
    CHECK(sni_idle_sleep(&idle, 0, false));
    CHECK(sni_idle_sleep(&idle, 2, false));
    sni_idle_woken(&idle, 0);
    CHECK_EQ(sni_idle_searching(&idle), 1);
    CHECK_EQ(sni_idle_sleeping(&idle), 1);
    CHECK(sni_idle_end_search(&idle, 0));
    CHECK_EQ(sni_idle_submit(&idle), 2);
}

TEST(the_largest_number_of_workers_sleeps_and_is_woken)
{
    sni_idle_init(&idle, SNI_WORKERS_MAX);
    for (unsigned i = 0; i < SNI_WORKERS_MAX; i++)
        CHECK(sni_idle_sleep(&idle, SNI_WORKERS_MAX - 1 - i, false));
    CHECK_EQ(sni_idle_sleeping(&idle), SNI_WORKERS_MAX);
    for (unsigned i = 0; i < SNI_WORKERS_MAX; i++) {
        CHECK_EQ(sni_idle_submit(&idle), (int)i);
        sni_idle_woken(&idle, i);
        CHECK(sni_idle_end_search(&idle, i));
    }
    CHECK_EQ(sni_idle_submit(&idle), -1);
}

FAIL_TEST(sleeping_twice_is_noticed, "twice")
{
    sni_idle_init(&idle, 2);
    (void)sni_idle_sleep(&idle, 0, false);
    (void)sni_idle_sleep(&idle, 0, false);
}

/* ---- parker -------------------------------------------------------------------------------- */

static struct sni_parker parker;

TEST(a_token_that_comes_first_makes_the_park_return_at_once)
{
    sni_parker_init(&parker);
    sni_parker_unpark(&parker);
    sni_parker_unpark(&parker); /* the same token */
    CHECK(sni_parker_park(&parker, INT64_MAX));
    CHECK(!sni_parker_park(&parker, 0)); /* there was one */
    int64_t until = sni_plat_now_ns() + 2000000;
    CHECK(!sni_parker_park(&parker, until));
    CHECK_GE(sni_plat_now_ns(), until);
}

TEST(the_halves_say_who_must_wake_the_driver)
{
    sni_parker_init(&parker);
    CHECK(sni_parker_begin(&parker));
    CHECK(sni_parker_notify(&parker));  /* the first one wakes */
    CHECK(!sni_parker_notify(&parker)); /* the second need not: one system call per wake */
    CHECK(sni_parker_end(&parker));
    CHECK(sni_parker_begin(&parker));
    CHECK(!sni_parker_end(&parker));
    CHECK(!sni_parker_notify(&parker)); /* awake: the token waits */
    CHECK(!sni_parker_begin(&parker));
    CHECK(sni_parker_begin(&parker));
}

static struct sni_parker ping;
static struct sni_parker pong;
static unsigned ball; /* plain: passed by the tokens alone */

enum { STROKES = 20000 };

static void *play_pong(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < STROKES; i++) {
        CHECK(sni_parker_park(&pong, INT64_MAX));
        CHECK_EQ(ball, 2 * i + 1);
        ball++;
        sni_parker_unpark(&ping);
    }
    return NULL;
}

TEST(tokens_pass_between_threads_with_what_was_written, .limit_s = 60)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, play_pong, NULL), 0);
    for (unsigned i = 0; i < STROKES; i++) {
        ball++;
        sni_parker_unpark(&pong);
        CHECK(sni_parker_park(&ping, INT64_MAX));
        CHECK_EQ(ball, 2 * i + 2);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* ---- workers on threads -------------------------------------------------------------------- */

enum { WORKERS = 3, SUBMITTERS = 2, MADE = 20000 };

struct item {
    struct sni_runlink link;
    unsigned taken;
};

static struct item *items;
static struct sni_inject inject;
static struct sni_parker parkers[WORKERS];
static SNI_ATOMIC(uint32_t) taken;
static SNI_ATOMIC(uint32_t) over;
static SNI_ATOMIC(uint32_t) wakes;

static void wake_one(void)
{
    int index = sni_idle_submit(&idle);
    if (index < 0)
        return;
    sni_atomic_fetch_add(&wakes, 1, relaxed);
    sni_parker_unpark(&parkers[index]);
}

/* The loop of idle.h, over the inject queue alone. */
static void *worker(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    bool searching = false;
    while (sni_atomic_load(&over, acquire) == 0) {
        searching = searching || sni_idle_begin_search(&idle, me);
        struct sni_runlink *link = searching ? sni_inject_pop(&inject) : NULL;
        if (link == NULL) {
            if (!sni_idle_sleep(&idle, me, searching) || sni_inject_len(&inject) == 0)
                (void)sni_parker_park(&parkers[me],
                                      me == 0 ? sni_plat_now_ns() + 50000 : INT64_MAX);
            sni_idle_woken(&idle, me);
            searching = true;
            continue;
        }
        if (sni_idle_end_search(&idle, me) && sni_inject_len(&inject) > 0)
            wake_one();
        searching = false;
        sni_container_of(link, struct item, link)->taken++;
        sni_atomic_fetch_add(&taken, 1, release);
    }
    return NULL;
}

static void *submitter(void *arg)
{
    struct item *mine = items + (uintptr_t)arg * MADE;
    for (unsigned i = 0; i < MADE; i++) {
        sni_inject_push(&inject, &mine[i].link, SNI_PRIO_NORMAL);
        wake_one();
        if (i % 64 == 0) { /* let them fall asleep */
            int64_t until = sni_plat_now_ns() + 20000;
            while (sni_plat_now_ns() < until)
                sni_plat_thread_yield();
        }
    }
    return NULL;
}

TEST(all_submitted_work_is_run_by_workers_that_sleep, .limit_s = 60)
{
    items = calloc(SUBMITTERS * MADE, sizeof(*items));
    CHECK(items != NULL);
    sni_inject_init(&inject);
    sni_idle_init(&idle, WORKERS);
    pthread_t threads[WORKERS];
    for (uintptr_t i = 0; i < WORKERS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, worker, (void *)i), 0);
    pthread_t makers[SUBMITTERS];
    for (uintptr_t i = 0; i < SUBMITTERS; i++)
        CHECK_EQ(pthread_create(&makers[i], NULL, submitter, (void *)i), 0);
    for (unsigned i = 0; i < SUBMITTERS; i++)
        CHECK_EQ(pthread_join(makers[i], NULL), 0);
    while (sni_atomic_load(&taken, acquire) < SUBMITTERS * MADE) /* a lost wake hangs here */
        sni_plat_thread_yield();
    sni_atomic_store(&over, 1, release);
    for (unsigned i = 0; i < WORKERS; i++)
        sni_parker_unpark(&parkers[i]);
    for (unsigned i = 0; i < WORKERS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < SUBMITTERS * MADE; i++)
        CHECK_EQ(items[i].taken, 1);
    CHECK_LE(sni_atomic_load(&wakes, relaxed), 2 * SUBMITTERS * MADE);
    free(items);
}

static int64_t cpu_ns(void)
{
    struct timespec used;
    CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static SNI_ATOMIC(int) sleepers[WORKERS]; /* as the kernel numbers them; 0: has not begun */

/* Whether the kernel says that it sleeps: its letter is S, behind its name in brackets. */
static bool is_asleep(int thread)
{
    if (thread == 0)
        return false;
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
    char *stat = read_file(path);
    const char *end = strrchr(stat, ')');
    CHECK(end != NULL);
    bool is = strncmp(end, ") S ", 4) == 0;
    free(stat);
    return is;
}

static void until_all_sleep(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    while (sni_idle_sleeping(&idle) < WORKERS)
        nanosleep(&moment, NULL);
    for (int i = 0; i < WORKERS; i++)
        while (!is_asleep(sni_atomic_load(&sleepers[i], acquire))) /* acquire: of sleeper */
            nanosleep(&moment, NULL);
}

static void *sleeper(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    sni_atomic_store(&sleepers[me], (int)sni_plat_thread_id(), release); /* to until_all_sleep */
    (void)sni_idle_sleep(&idle, me, false);
    (void)sni_parker_park(&parkers[me], INT64_MAX);
    sni_idle_woken(&idle, me);
    return NULL;
}

TEST(idle_workers_use_no_processor_time)
{
    sni_idle_init(&idle, WORKERS);
    pthread_t threads[WORKERS];
    for (uintptr_t i = 0; i < WORKERS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, sleeper, (void *)i), 0);
    until_all_sleep();
    int64_t before = cpu_ns();
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    CHECK_LT(cpu_ns() - before, 30000000);
    for (unsigned i = 0; i < WORKERS; i++)
        sni_parker_unpark(&parkers[i]);
    for (unsigned i = 0; i < WORKERS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(sni_idle_sleeping(&idle), 0);
    CHECK_EQ(sni_idle_searching(&idle), WORKERS);
}

/* ---- hush ----------------------------------------------------------------------------------- */

TEST(idle_a_hush_lasts_until_the_last_searcher_has_ended_it)
{
    struct sni_hush hush;
    sni_hush_init(&hush, true);
    CHECK(!sni_hush_is_on(&hush) && !sni_hush_was_on(&hush));
    sni_hush_begin(&hush);
    CHECK(sni_hush_is_on(&hush) && sni_hush_was_on(&hush));
    sni_hush_begin(&hush);
    sni_hush_end(&hush);
    CHECK(sni_hush_is_on(&hush) && sni_hush_was_on(&hush));
    sni_hush_end(&hush);
    CHECK(!sni_hush_is_on(&hush) && !sni_hush_was_on(&hush));
}

TEST(idle_one_without_others_is_hushed_for_ever)
{
    struct sni_hush hush;
    sni_hush_init(&hush, false);
    CHECK(sni_hush_is_on(&hush) && sni_hush_was_on(&hush));
}
