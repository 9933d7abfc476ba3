/* SPDX-License-Identifier: MIT */
/* The timer wheel against a model of it (R70): millions of random operations on times that were
 * chosen to hurt. The model is a table that is searched from end to end, and knows ticks only by
 * division; after each operation the wheel must agree with it on what is armed, what is popped, and
 * when to wake. A failure names its seed: run again with --seed. */
#include "base/rand.h"
#include "harness.h"
#include "timer/wheel.h"

#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLOW
#endif
#endif
#if defined(SINEW_DEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOW
#endif

enum {
    TIMERS = 40,
    STEPS = 300, /* of one wheel; each is one operation, or a run of pops */
#ifdef SLOW
    ROUNDS = 1000,
#else
    ROUNDS = 12000,
#endif
};

/* Times are biased by 2^63, so that they are never negative and ticks are plain quotients. */
struct entry {
    struct sni_timer timer;
    bool armed;
    bool never;
    uint64_t tick;     /* in which it is due                                  */
    uint64_t sequence; /* which addition this was                             */
    uint64_t added_at; /* the time when it was added                          */
};

struct model {
    struct sni_rand rand;
    struct sni_wheel wheel;
    struct sni_wheel_slots slots;
    uint64_t tick_ns;
    uint64_t now;
    uint64_t additions;
    uint64_t run_began; /* additions when it was last decided what is due */
    bool running;
    struct entry entry[TIMERS];
    uint64_t operations;
};

static uint64_t biased(int64_t ns)
{
    return (uint64_t)ns + (UINT64_C(1) << 63);
}

static int64_t plain(uint64_t time)
{
    return (int64_t)(time - (UINT64_C(1) << 63));
}

static uint32_t below(struct model *m, uint32_t n)
{
    return sni_rand_below(&m->rand, n);
}

/* -1, 0 or 1 */
static uint64_t nudge(struct model *m)
{
    return (uint64_t)below(m, 3) - 1;
}

/* 64^0 to 64^7; the wheel's levels end with the sixth. */
static uint64_t power(struct model *m)
{
    return UINT64_C(1) << 6 * below(m, 8);
}

/* ---- the model ------------------------------------------------------------------------------ */

static void model_init(struct model *m, int64_t now_ns, int64_t tick_ns)
{
    sni_wheel_init(&m->wheel, &m->slots, now_ns, tick_ns);
    m->tick_ns = 1;
    while (m->tick_ns < (uint64_t)tick_ns && m->tick_ns < UINT64_C(1) << 62)
        m->tick_ns *= 2;
    CHECK_EQ(sni_wheel_tick_ns(&m->wheel), m->tick_ns);
    m->now = biased(now_ns);
    m->additions = 0;
    m->run_began = 0;
    m->running = false;
    for (int i = 0; i < TIMERS; i++) {
        m->entry[i] = (struct entry){.armed = false};
        sni_timer_init(&m->entry[i].timer);
    }
}

static void add(struct model *m, struct entry *e, uint64_t at)
{
    uint64_t tick = at / m->tick_ns + (at % m->tick_ns != 0);
    e->armed = true;
    e->never = at == UINT64_MAX || tick > UINT64_MAX / m->tick_ns;
    e->tick = at <= m->now ? m->now / m->tick_ns : tick;
    e->sequence = m->additions++;
    e->added_at = m->now;
    int64_t due_ns = sni_wheel_add(&m->wheel, &e->timer, plain(at));
    CHECK_EQ(e->timer.at_ns, plain(at));
    if (e->never)
        CHECK_EQ(due_ns, INT64_MAX);
    else
        CHECK_EQ(due_ns, plain(at <= m->now ? m->now : tick * m->tick_ns));
}

static bool earlier(const struct entry *a, const struct entry *b)
{
    return a->tick != b->tick ? a->tick < b->tick : a->sequence < b->sequence;
}

/* The one to be popped at m->now, which the model disarms, or NULL. */
static struct entry *expected(struct model *m, bool new_tick)
{
    if (!m->running || new_tick)
        m->run_began = m->additions;
    struct entry *first = NULL;
    for (struct entry *e = m->entry; e < m->entry + TIMERS; e++) {
        bool due = e->armed && !e->never && e->tick <= m->now / m->tick_ns;
        if (due && e->sequence < m->run_began && (first == NULL || earlier(e, first)))
            first = e;
    }
    m->running = first != NULL;
    if (first != NULL)
        first->armed = false;
    return first;
}

static struct entry *pop(struct model *m, uint64_t now)
{
    uint64_t before = m->now;
    if (now > m->now)
        m->now = now;
    struct entry *e = expected(m, m->now / m->tick_ns > before / m->tick_ns);
    CHECK_PTR_EQ(sni_wheel_pop(&m->wheel, plain(now)), e == NULL ? NULL : &e->timer);
    if (e != NULL) {
        CHECK(!sni_timer_is_armed(&e->timer));
        CHECK_LE(e->timer.at_ns, plain(m->now));
    }
    return e;
}

/* Where the slot of `tick` begins by the book: it keeps its digits to the base of 64 down to the
 * first in which it differs from the tick of now. 0 for ticks beyond all levels. */
static uint64_t slot_begin(const struct model *m, uint64_t tick)
{
    uint64_t unit = 1;
    for (int level = 0; level < SNI_WHEEL_LEVELS; level++, unit *= 64)
        if (tick / unit / 64 == m->now / m->tick_ns / unit / 64)
            return tick / unit * unit;
    return 0;
}

static void check_next(const struct model *m)
{
    const struct entry *first = NULL;
    int waiting = 0;
    for (const struct entry *e = m->entry; e < m->entry + TIMERS; e++) {
        if (!e->armed || e->never)
            continue;
        waiting++;
        if (first == NULL || earlier(e, first))
            first = e;
    }
    uint64_t next = biased(sni_wheel_next_ns(&m->wheel));
    if (first == NULL) {
        CHECK_EQ(next, UINT64_MAX);
    } else if (first->tick <= m->now / m->tick_ns) {
        CHECK_EQ(next, m->now);
    } else {
        CHECK(next > m->now);
        CHECK(next <= first->tick * m->tick_ns);
        CHECK(next >= slot_begin(m, first->tick) * m->tick_ns);
        if (waiting == 1)
            CHECK_EQ(next, first->tick * m->tick_ns);
    }
}

static void check_all(struct model *m)
{
    size_t armed = 0;
    for (struct entry *e = m->entry; e < m->entry + TIMERS; e++) {
        CHECK(sni_timer_is_armed(&e->timer) == e->armed);
        armed += e->armed;
    }
    CHECK_EQ(sni_wheel_count(&m->wheel), armed);
    check_next(m);
    m->operations++;
}

/* ---- times that hurt ------------------------------------------------------------------------ */

static uint64_t some_deadline(struct model *m)
{
    uint64_t tick = m->now / m->tick_ns;
    uint64_t unit = power(m);
    switch (below(m, 14)) {
    case 0: /* in a few ticks */
        return m->now + sni_rand_next64(&m->rand) % m->tick_ns * 4;
    case 1: /* in few different ticks */
        return (tick + below(m, 4)) * m->tick_ns;
    case 2: /* around a boundary of some level */
        return ((tick / unit + below(m, 3)) * unit + nudge(m)) * m->tick_ns + nudge(m);
    case 3: /* around the distance that a level spans */
        return (tick + unit + nudge(m)) * m->tick_ns + nudge(m);
    case 4: /* around the last slot of a level, and its wrap */
        return (tick + unit * (62 + below(m, 4)) + nudge(m)) * m->tick_ns;
    case 5: /* the past, near or far */
        return m->now - (sni_rand_next64(&m->rand) >> below(m, 64));
    case 6: /* the end of time, and just before it */
        return UINT64_MAX - (below(m, 2) ? below(m, 3) : sni_rand_next64(&m->rand) % m->tick_ns);
    case 7: /* the beginning of time */
        return below(m, 3);
    case 8: /* the future, near or far */
        return m->now + (sni_rand_next64(&m->rand) >> below(m, 64));
    case 9: /* any time at all */
        return sni_rand_next64(&m->rand);
    case 10: /* that of another, armed or not */
        return biased(m->entry[below(m, TIMERS)].timer.at_ns);
    case 11: /* beyond the top level, in few different spans */
        return (tick + ((uint64_t)below(m, 4) << 36) + below(m, 100)) * m->tick_ns;
    case 12: /* around where the sign changes */
        return (UINT64_C(1) << 63) + nudge(m) * m->tick_ns + nudge(m);
    default:
        return m->now;
    }
}

static uint64_t some_now(struct model *m)
{
    uint64_t tick = m->now / m->tick_ns;
    uint64_t next = biased(sni_wheel_next_ns(&m->wheel));
    uint64_t unit = power(m);
    if (next == UINT64_MAX)
        next = m->now;
    switch (below(m, 64)) {
    case 0: /* a jump */
        return m->now + (sni_rand_next64(&m->rand) >> below(m, 64));
    case 1: /* around a far boundary */
        return ((tick / unit + 1) * unit + nudge(m)) * m->tick_ns + nudge(m);
    case 2: /* over several spans of the whole wheel */
        return m->now + ((uint64_t)below(m, 4) << 36) * m->tick_ns;
    default:
        break;
    }
    switch (below(m, 8)) {
    case 0:
        return m->now;
    case 1: /* backward */
        return m->now - (sni_rand_next64(&m->rand) >> below(m, 64));
    case 2:
        return m->now + sni_rand_next64(&m->rand) % m->tick_ns;
    case 3: /* some ticks */
        return (tick + below(m, 67)) * m->tick_ns + nudge(m);
    case 4:
        return next - 1;
    case 5: /* around a near boundary */
        return (tick / 64 + 1) * 64 * m->tick_ns + nudge(m);
    case 6: /* late */
        return next + sni_rand_next64(&m->rand) % m->tick_ns * 3;
    default:
        return next;
    }
}

static int64_t some_tick_ns(struct model *m)
{
    static const int64_t ticks[] = {1,    2,       3,       7,
                                    1000, 64000,   65536,   65537,
                                    999,  1000000, 1 << 20, INT64_C(1) << 36,
                                    50,   1000000, 1 << 20, (INT64_C(1) << 61) + 1,
                                    1,    1000000, 64000,   INT64_MAX};
    return ticks[below(m, sizeof(ticks) / sizeof(ticks[0]))];
}

static int64_t some_start(struct model *m)
{
    switch (below(m, 8)) {
    case 0:
        return 0;
    case 1:
        return -(int64_t)below(m, 5000);
    case 2:
        return INT64_MIN + below(m, 2);
    case 3:
        return INT64_MAX - below(m, 1000000);
    case 4: /* just before a span of the whole wheel ends, if a tick is a nanosecond or 2^20 */
        return (INT64_C(5) << 36) - below(m, 5000);
    case 5:
        return (INT64_C(5) << 56) - (int64_t)below(m, 5000) * 1000000;
    case 6:
        return INT64_C(1000000000) * below(m, UINT32_MAX);
    default:
        return plain(sni_rand_next64(&m->rand));
    }
}

/* ---- operations ----------------------------------------------------------------------------- */

/* Add what is not armed; of the rest, remove half. */
static void touch_some_timer(struct model *m)
{
    struct entry *e = &m->entry[below(m, TIMERS)];
    if (!e->armed && below(m, 8) != 0) {
        add(m, e, some_deadline(m));
    } else if (!e->armed || below(m, 2) == 0) {
        CHECK(sni_wheel_remove(&m->wheel, &e->timer) == e->armed);
        e->armed = false;
        CHECK(!sni_wheel_remove(&m->wheel, &e->timer));
    }
    check_all(m);
}

/* Pop to the end, or not quite, and let what is popped disturb. */
static void run_of_pops(struct model *m)
{
    uint64_t now = some_now(m);
    struct entry *e;
    while ((e = pop(m, now)) != NULL) {
        check_all(m);
        switch (below(m, 8)) {
        case 0: /* again, at once */
            add(m, e, biased(e->timer.at_ns));
            break;
        case 1: /* periodic, perhaps too fast */
            add(m, e, biased(e->timer.at_ns) + m->tick_ns * below(m, 3) / 2);
            break;
        case 2:
        case 3:
            touch_some_timer(m);
            break;
        case 4: /* the clock is read anew, and may go back */
            if (below(m, 8) == 0)
                now = some_now(m);
            break;
        case 5: /* no time for the rest */
            if (below(m, 8) == 0)
                return;
            break;
        default:
            break;
        }
    }
    check_all(m);
}

TEST(a_wheel_does_what_its_model_does, .limit_s = 60)
{
    struct model *m = malloc(sizeof(*m));
    sni_rand_init(&m->rand, test_seed());
    m->operations = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start = some_start(m);
        model_init(m, start, some_tick_ns(m));
        uint32_t share = 2 + below(m, 20); /* of the steps are additions, less one */
        for (int step = 0; step < STEPS; step++) {
            if (below(m, share) == 0)
                run_of_pops(m);
            else
                touch_some_timer(m);
        }
    }
    CHECK_GT(m->operations, (uint64_t)ROUNDS * STEPS / 2);
    free(m);
}

/* ---- who sleeps by sni_wheel_next_ns alone -------------------------------------------------- */

/* Each run is at the time the wheel asked for, or `late_max` later at most. */
static void sleep_and_run(struct model *m, uint64_t late_max, int runs)
{
    uint64_t idle_runs = 0;
    for (int run = 0; run < runs; run++) {
        int more = (int)below(m, 4);
        for (int i = 0; i < more; i++)
            touch_some_timer(m);
        uint64_t next = biased(sni_wheel_next_ns(&m->wheel));
        if (next == UINT64_MAX)
            continue;
        uint64_t late = late_max == 0 ? 0 : sni_rand_next64(&m->rand) % (late_max + 1);
        if (late > UINT64_MAX - next)
            late = UINT64_MAX - next;
        uint64_t now = next + late;
        struct entry *e = pop(m, now);
        idle_runs += e == NULL;
        for (; e != NULL; e = pop(m, now)) {
            uint64_t at = biased(e->timer.at_ns);
            uint64_t since = e->added_at > at ? e->added_at : at;
            CHECK(m->now - since < m->tick_ns + late);
            if (below(m, 4) == 0)
                add(m, e, some_deadline(m));
        }
        check_all(m);
    }
    CHECK_LE(idle_runs, SNI_WHEEL_LEVELS * m->additions);
}

static void sleepers(uint64_t late_ticks)
{
    struct model *m = malloc(sizeof(*m));
    sni_rand_init(&m->rand, test_seed());
    m->operations = 0;
    for (int round = 0; round < ROUNDS / 4; round++) {
        int64_t start = some_start(m);
        model_init(m, start, some_tick_ns(m));
        if (m->tick_ns < UINT64_C(1) << 40)
            sleep_and_run(m, m->tick_ns * late_ticks, STEPS);
    }
    CHECK_GT(m->operations, (uint64_t)ROUNDS * STEPS / 8);
    free(m);
}

TEST(a_sleeper_that_wakes_only_when_told_misses_nothing, .limit_s = 60)
{
    sleepers(0);
}

TEST(a_sleeper_is_never_later_than_a_tick_and_its_own_lateness, .limit_s = 60)
{
    sleepers(3);
}

/* With nothing but time-outs that are a little away, all wheels go round many times. */
TEST(every_level_wraps_and_no_timer_is_late, .limit_s = 60)
{
    struct model *m = malloc(sizeof(*m));
    sni_rand_init(&m->rand, test_seed());
    m->operations = 0;
    for (unsigned level = 0; level <= SNI_WHEEL_LEVELS; level++) {
        model_init(m, -(INT64_C(1) << 44), 1);
        uint64_t reach = UINT64_C(1) << 6 * level;
        for (int run = 0; run < ROUNDS * 4; run++) {
            struct entry *e = &m->entry[below(m, TIMERS)];
            if (!e->armed)
                add(m, e, m->now + sni_rand_next64(&m->rand) % (reach * 3) + 1);
            uint64_t next = biased(sni_wheel_next_ns(&m->wheel));
            while ((e = pop(m, next)) != NULL)
                CHECK_EQ(e->timer.at_ns, plain(m->now));
            check_all(m);
        }
        CHECK(m->now - biased(-(INT64_C(1) << 44)) > reach * 64);
    }
    free(m);
}

/* ---- many ----------------------------------------------------------------------------------- */

enum { MANY = ROUNDS * 8 };

struct sorted {
    struct sni_timer timer;
    int64_t tick;
    int number;
};

static int by_tick_and_number(const void *a, const void *b)
{
    const struct sorted *x = *(struct sorted *const *)a;
    const struct sorted *y = *(struct sorted *const *)b;
    if (x->tick != y->tick)
        return x->tick < y->tick ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Slots with thousands in them; either popped at one time, or at those that the wheel names. */
static void in_order_of_a_sort(bool jump)
{
    struct sni_wheel *wheel = malloc(sizeof(*wheel));
    struct sni_wheel_slots *slots = malloc(sizeof(*slots));
    struct sorted *all = malloc(sizeof(*all) * MANY);
    struct sorted **order = malloc(sizeof(struct sorted *) * MANY);
    struct sni_rand rand;
    sni_rand_init(&rand, test_seed());
    sni_wheel_init(wheel, slots, 0, 1024);
    for (int i = 0; i < MANY; i++) {
        int64_t at = 1 + (int64_t)(sni_rand_next64(&rand) >> 4 >> sni_rand_below(&rand, 56));
        all[i].number = i;
        all[i].tick = (at + 1023) / 1024;
        sni_timer_init(&all[i].timer);
        sni_wheel_add(wheel, &all[i].timer, at);
    }
    int left = 0;
    for (int i = 0; i < MANY; i++) {
        if (sni_rand_below(&rand, 3) == 0)
            CHECK(sni_wheel_remove(wheel, &all[i].timer));
        else
            order[left++] = &all[i];
    }
    qsort(order, (size_t)left, sizeof(struct sorted *), by_tick_and_number);
    int64_t now = jump ? INT64_MAX : 0;
    for (int i = 0; i < left; i++) {
        struct sni_timer *timer;
        while ((timer = sni_wheel_pop(wheel, now)) == NULL)
            now = sni_wheel_next_ns(wheel);
        CHECK_PTR_EQ(timer, &order[i]->timer);
        CHECK(jump || now == order[i]->tick * 1024);
    }
    CHECK_EQ(sni_wheel_count(wheel), 0);
    free(order);
    free(all);
    free(slots);
    free(wheel);
}

TEST(many_timers_come_in_the_order_of_a_sort_at_one_time)
{
    in_order_of_a_sort(true);
}

TEST(many_timers_come_in_the_order_of_a_sort_each_at_its_tick)
{
    in_order_of_a_sort(false);
}
