/* SPDX-License-Identifier: MIT */
/* The clock of the house (R43, R46 build on it): the system's monotonic one, for all threads. */
#include "harness.h"
#include "plat/clock.h"
#include "plat/thread.h"

#include <time.h>

static int64_t system_now_ns(void)
{
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &t), 0);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

TEST(the_clock_is_the_monotonic_one_of_the_system)
{
    for (int i = 0; i < 1000; i++) {
        int64_t before = system_now_ns();
        int64_t now = sni_plat_now_ns();
        CHECK_LE(before, now);
        CHECK_LE(now, system_now_ns());
        CHECK_GT(now, 0);
    }
}

TEST(the_clock_never_goes_back_and_does_not_stand_still)
{
    int64_t begin = sni_plat_now_ns();
    int64_t last = begin;
    for (int i = 0; i < 100000; i++) {
        int64_t now = sni_plat_now_ns();
        CHECK_GE(now, last);
        last = now;
    }
    CHECK_GT(last, begin);
}

TEST(the_clock_measures_a_sleep)
{
    struct timespec nap = {.tv_nsec = 20000000};
    int64_t begin = sni_plat_now_ns();
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL), 0);
    CHECK_GE(sni_plat_now_ns() - begin, 20000000);
}

/* Two threads hand the latest time to each other: neither may read an earlier one. */
struct relay {
    struct sni_mutex mutex;
    int64_t latest; /* guarded by mutex */
};

static void relay_run(void *p)
{
    struct relay *r = p;
    for (int i = 0; i < 20000; i++) {
        sni_mutex_lock(&r->mutex);
        int64_t now = sni_plat_now_ns();
        CHECK_GE(now, r->latest);
        r->latest = now;
        sni_mutex_unlock(&r->mutex);
    }
}

TEST(all_threads_have_the_same_clock)
{
    struct relay r = {.latest = 0};
    struct sni_thread t;
    CHECK_EQ(sni_plat_thread_start(&t, relay_run, &r, NULL, 0), 0);
    relay_run(&r);
    CHECK_EQ(sni_plat_thread_join(&t), 0);
}

TEST(the_counter_goes_on_while_the_clock_does_where_there_is_one)
{
    if (!sni_plat_has_counter())
        return;
    for (int i = 0; i < 1000; i++) {
        uint64_t before = sni_plat_counter();
        for (int64_t begin = sni_plat_now_ns(); sni_plat_now_ns() - begin < 1000;)
            continue;
        CHECK_GT((int64_t)(sni_plat_counter() - before), 500); /* half a gigahertz, at least */
    }
}
