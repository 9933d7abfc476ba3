/* SPDX-License-Identifier: MIT */
/* Alarms (R70): they ring once, not early, and not after they were cleared. */
#include "harness.h"

#include "base/compiler.h"
#include "base/rand.h"
#include "timer/alarm.h"

#include <limits.h>
#include <pthread.h>

struct bell {
    struct sni_alarm alarm;
    int rung;
};

static void ring(struct sni_alarm *alarm)
{
    sni_container_of(alarm, struct bell, alarm)->rung++;
}

static struct sni_clockwork cw;
static struct sni_wheel_slots slots;

static void begin(void)
{
    sni_clockwork_init(&cw, &slots, 1000, 1);
}

TEST(an_alarm_rings_once_when_its_time_has_come)
{
    begin();
    struct bell b = {.rung = 0};
    sni_alarm_init(&b.alarm, ring);
    CHECK_EQ(sni_clockwork_next(&cw), INT64_MAX);
    sni_alarm_set(&b.alarm, &cw, 2000);
    CHECK_LE(sni_clockwork_next(&cw), 2000);
    CHECK_EQ(sni_clockwork_run(&cw, 1999, UINT_MAX), 0);
    CHECK_EQ(b.rung, 0);
    CHECK_EQ(sni_clockwork_run(&cw, 2000, UINT_MAX), 1);
    CHECK_EQ(b.rung, 1);
    CHECK_EQ(sni_clockwork_run(&cw, 3000, UINT_MAX), 0);
    CHECK_EQ(sni_clockwork_next(&cw), INT64_MAX);
    CHECK(!sni_alarm_clear(&b.alarm));
}

TEST(a_cleared_alarm_does_not_ring_and_nobody_wakes_up_for_it)
{
    begin();
    struct bell b = {.rung = 0};
    sni_alarm_init(&b.alarm, ring);
    CHECK(!sni_alarm_clear(&b.alarm)); /* never set */
    sni_alarm_set(&b.alarm, &cw, 2000);
    CHECK(sni_alarm_clear(&b.alarm));
    CHECK_EQ(sni_clockwork_next(&cw), INT64_MAX);
    CHECK_EQ(sni_clockwork_run(&cw, 5000, UINT_MAX), 0);
    CHECK_EQ(b.rung, 0);
}

TEST(an_earlier_alarm_moves_the_next_run_forward)
{
    begin();
    struct bell late = {.rung = 0}, early = {.rung = 0};
    sni_alarm_init(&late.alarm, ring);
    sni_alarm_init(&early.alarm, ring);
    sni_alarm_set(&late.alarm, &cw, 9000);
    sni_alarm_set(&early.alarm, &cw, 1500);
    CHECK_LE(sni_clockwork_next(&cw), 1500);
    CHECK_EQ(sni_clockwork_run(&cw, 1500, UINT_MAX), 1);
    CHECK_EQ(early.rung, 1);
    CHECK_LE(sni_clockwork_next(&cw), 9000);
    CHECK_EQ(sni_clockwork_run(&cw, 9000, UINT_MAX), 1);
    CHECK_EQ(late.rung, 1);
}

TEST(a_thousand_alarms_of_one_moment_all_ring_in_one_run)
{
    begin();
    static struct bell b[1000];
    for (int i = 0; i < 1000; i++) {
        sni_alarm_init(&b[i].alarm, ring);
        sni_alarm_set(&b[i].alarm, &cw, 1500);
    }
    CHECK_EQ(sni_clockwork_run(&cw, 1500, UINT_MAX), 1000);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(b[i].rung, 1);
}

TEST(a_run_ends_when_enough_have_rung_and_the_rest_stays_due_in_order)
{
    begin();
    static struct bell b[1000];
    for (int i = 0; i < 1000; i++) {
        sni_alarm_init(&b[i].alarm, ring);
        sni_alarm_set(&b[i].alarm, &cw, 1500 + i);
    }
    unsigned rang = sni_clockwork_run(&cw, 3000, 100);
    CHECK(rang >= 100 && rang < 500);
    CHECK_LE(sni_clockwork_next(&cw), 3000); /* there is more to do now */
    for (unsigned i = 0; i < 1000; i++)
        CHECK_EQ(b[i].rung, i < rang);
    while (rang < 1000) {
        unsigned more = sni_clockwork_run(&cw, 3000, 100);
        CHECK(more > 0);
        rang += more;
    }
    CHECK_EQ(sni_clockwork_next(&cw), INT64_MAX);
    for (unsigned i = 0; i < 1000; i++)
        CHECK_EQ(b[i].rung, 1);
}

TEST(an_alarm_alone_is_waited_for_until_the_very_tick_at_which_it_rings)
{
    static const int64_t far_ns[] = {1, 63, 64, 65, 4096, 300000, INT64_C(1) << 43};
    for (size_t i = 0; i < sizeof(far_ns) / sizeof(far_ns[0]); i++) {
        struct bell b = {.rung = 0};
        sni_clockwork_init(&cw, &slots, 1000, 64);
        sni_alarm_init(&b.alarm, ring);
        sni_alarm_set(&b.alarm, &cw, 1000 + far_ns[i]);
        int64_t next_ns = sni_clockwork_next(&cw);
        CHECK_GE(next_ns, 1000 + far_ns[i]);
        CHECK_LT(next_ns, 1000 + far_ns[i] + 64);
        CHECK_EQ(sni_clockwork_run(&cw, next_ns - 1, UINT_MAX), 0);
        CHECK_EQ(sni_clockwork_next(&cw), next_ns);
        CHECK_EQ(sni_clockwork_run(&cw, next_ns, UINT_MAX), 1);
        CHECK_EQ(b.rung, 1);
    }
}

TEST(an_alarm_that_is_never_due_lets_everybody_sleep)
{
    begin();
    struct bell b = {.rung = 0};
    sni_alarm_init(&b.alarm, ring);
    sni_alarm_set(&b.alarm, &cw, INT64_MAX);
    CHECK_EQ(sni_clockwork_next(&cw), INT64_MAX);
    CHECK(sni_alarm_clear(&b.alarm));
}

TEST(an_alarm_whose_time_has_passed_is_worth_a_run_at_once)
{
    begin();
    struct bell b = {.rung = 0};
    CHECK_EQ(sni_clockwork_run(&cw, 5000, UINT_MAX), 0);
    sni_alarm_init(&b.alarm, ring);
    sni_alarm_set(&b.alarm, &cw, 7);
    CHECK_LE(sni_clockwork_next(&cw), 5000);
    CHECK_EQ(sni_clockwork_run(&cw, 5000, UINT_MAX), 1);
    CHECK_EQ(sni_clockwork_next(&cw), INT64_MAX);
}

TEST(an_alarm_that_is_held_and_let_go_of_is_as_it_was)
{
    begin();
    struct bell b = {.rung = 0};
    sni_alarm_init(&b.alarm, ring);
    sni_alarm_set(&b.alarm, &cw, 2000);
    CHECK(sni_alarm_hold(&b.alarm));
    sni_alarm_let_go(&b.alarm);
    CHECK_EQ(sni_clockwork_run(&cw, 2000, UINT_MAX), 1);
    CHECK(!sni_alarm_hold(&b.alarm));
    sni_alarm_let_go(&b.alarm);
    CHECK(!sni_alarm_clear(&b.alarm));
}

/* Whoever sleeps by sni_clockwork_next alone, while alarms are set and cleared, rings each in the
 * tick of its time. */
TEST(who_sleeps_by_the_next_time_rings_nothing_late)
{
    enum { BELLS = 20, STEPS = 20000, TICK_NS = 16 };
    static struct bell bells[BELLS];
    struct sni_rand rand;
    int64_t now_ns = 1000;
    sni_rand_init(&rand, 7);
    sni_clockwork_init(&cw, &slots, now_ns, TICK_NS);
    for (int i = 0; i < BELLS; i++)
        sni_alarm_init(&bells[i].alarm, ring);
    for (int step = 0; step < STEPS; step++) {
        struct bell *b = &bells[sni_rand_below(&rand, BELLS)];
        (void)sni_alarm_clear(&b->alarm);
        b->rung = 0;
        int64_t far_ns = INT64_C(1) << sni_rand_below(&rand, 30);
        sni_alarm_set(&b->alarm, &cw, now_ns + sni_rand_below(&rand, (uint32_t)far_ns));
        if (sni_rand_below(&rand, 4) != 0)
            continue;
        int64_t next_ns = sni_clockwork_next(&cw);
        now_ns = next_ns > now_ns ? next_ns : now_ns;
        (void)sni_clockwork_run(&cw, now_ns, UINT_MAX);
        for (int i = 0; i < BELLS; i++)
            if (sni_timer_is_armed(&bells[i].alarm.timer))
                CHECK_GT(bells[i].alarm.timer.at_ns, now_ns - TICK_NS);
        CHECK_GT(sni_clockwork_next(&cw), now_ns);
    }
}

/* ---- a ring against a clear on another thread --------------------------------------------- */

enum { ROUNDS = 3000 };

static SNI_ATOMIC(uint32_t) phase;

/* The other one may need our processor to get there. */
static void wait_for(uint32_t what)
{
    for (unsigned round = 0; sni_atomic_load(&phase, acquire) != what; round++)
        sni_plat_back_off(round);
}

static void *clearer(void *arg)
{
    struct bell *b = arg;
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        wait_for(2 * i - 1);
        bool cleared = sni_alarm_clear(&b->alarm);
        CHECK_EQ(b->rung, cleared ? 0 : 1); /* the ring is over: a plain read is no race */
        b->rung = 0;
        sni_atomic_store(&phase, 2 * i, release);
    }
    return NULL;
}

TEST(a_clear_on_another_thread_waits_for_the_ring)
{
    begin();
    struct bell b = {.rung = 0};
    pthread_t thread;
    sni_alarm_init(&b.alarm, ring);
    sni_alarm_set(&b.alarm, &cw, 1001);
    CHECK_EQ(pthread_create(&thread, NULL, clearer, &b), 0);
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        sni_atomic_store(&phase, 2 * i - 1, release);
        (void)sni_clockwork_run(&cw, 1000 + (int64_t)i, UINT_MAX);
        wait_for(2 * i);
        sni_alarm_init(&b.alarm, ring);
        sni_alarm_set(&b.alarm, &cw, 1000 + (int64_t)i + 1);
    }
    pthread_join(thread, NULL);
}
