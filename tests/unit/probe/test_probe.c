/* SPDX-License-Identifier: MIT */
/* Counters of workers (R40-R43 are watched by them): they add up, and may be read at any time. */
#include "harness.h"
#include "plat/thread.h"
#include "probe/probe.h"

#include <string.h>

TEST(a_zeroed_probe_counts_from_nothing_and_each_counter_for_itself)
{
    struct sni_probe p = {0};
    for (int i = 0; i < SNI_PROBE_COUNTERS_N; i++)
        for (int k = 0; k <= i; k++)
            sni_probe_count(&p, (enum sni_probe_counter)i);
    sni_probe_add(&p, SNI_PROBE_tasks_stolen, 1000);
    for (int i = 0; i < SNI_PROBE_COUNTERS_N; i++)
        CHECK_EQ(sni_probe_get(&p, (enum sni_probe_counter)i),
                 i + 1 + (i == SNI_PROBE_tasks_stolen ? 1000 : 0));
}

TEST(every_counter_has_a_name_of_its_own_and_a_phrase)
{
    for (int i = 0; i < SNI_PROBE_COUNTERS_N; i++) {
        const char *name = sni_probe_name((enum sni_probe_counter)i);
        CHECK_GT(strlen(name), 3);
        CHECK_GT(strlen(sni_probe_text((enum sni_probe_counter)i)), strlen(name));
        for (int k = 0; k < i; k++)
            CHECK_NE(strcmp(name, sni_probe_name((enum sni_probe_counter)k)), 0);
    }
    CHECK_STR_EQ(sni_probe_name(SNI_PROBE_steals_won), "steals_won");
    CHECK_STR_EQ(sni_probe_name(SNI_PROBE_wakes_local), "wakes_local");
    CHECK_PTR_EQ(sni_probe_name(SNI_PROBE_COUNTERS_N), NULL);
    CHECK_PTR_EQ(sni_probe_text(SNI_PROBE_COUNTERS_N), NULL);
}

/* ---- workers --------------------------------------------------------------------------- */

enum { WORKERS = 4, EVENTS = 30000 };

struct worker {
    struct sni_thread thread;
    char padding[24]; /* so that probes do not lie at multiples of their size */
    struct sni_probe probe;
    SNI_ATOMIC(uint32_t) done;
};

static void work(void *arg)
{
    struct worker *w = arg;
    for (int i = 0; i < EVENTS; i++) {
        sni_probe_count(&w->probe, SNI_PROBE_spawns);
        sni_probe_count(&w->probe, (enum sni_probe_counter)(i % SNI_PROBE_COUNTERS_N));
        sni_probe_add(&w->probe, SNI_PROBE_tasks_stolen, 3);
    }
    /* release: pairs with the acquire in all_done */
    sni_atomic_store(&w->done, 1, release);
}

static bool all_done(struct worker *workers)
{
    bool done = true;
    for (int i = 0; i < WORKERS; i++)
        done &= sni_atomic_load(&workers[i].done, acquire) != 0; /* pairs with work's release */
    return done;
}

/* Look on while they count: no counter of the sum goes back. */
static void watch(struct worker *workers, struct sni_probe_sum *last)
{
    bool done = false;
    while (!done) {
        done = all_done(workers);
        struct sni_probe_sum now;
        sni_probe_total(&now, &workers[0].probe, WORKERS, sizeof(workers[0]));
        for (int i = 0; i < SNI_PROBE_COUNTERS_N; i++)
            CHECK_GE(now.count[i], last->count[i]);
        *last = now;
    }
}

TEST(counters_of_many_workers_add_up_and_never_go_back_for_who_watches)
{
    static struct worker workers[WORKERS];
    struct sni_probe_sum sum = {{0}};
    for (int i = 0; i < WORKERS; i++)
        CHECK_EQ(sni_plat_thread_start(&workers[i].thread, work, &workers[i], "worker", 0), 0);
    watch(workers, &sum);
    for (int i = 0; i < WORKERS; i++)
        CHECK_EQ(sni_plat_thread_join(&workers[i].thread), 0);

    uint64_t all = 0;
    for (int i = 0; i < SNI_PROBE_COUNTERS_N; i++)
        all += sum.count[i];
    CHECK_EQ(all, (uint64_t)WORKERS * EVENTS * 5);
    CHECK_GE(sum.count[SNI_PROBE_spawns], WORKERS * EVENTS);
    CHECK_GE(sum.count[SNI_PROBE_tasks_stolen], 3 * WORKERS * EVENTS);
}

TEST(a_sum_over_no_worker_is_nothing)
{
    struct sni_probe p = {0};
    struct sni_probe_sum sum = {{99}};
    sni_probe_count(&p, SNI_PROBE_spawns);
    sni_probe_total(&sum, &p, 0, sizeof(p));
    CHECK_EQ(sum.count[SNI_PROBE_spawns], 0);
}
