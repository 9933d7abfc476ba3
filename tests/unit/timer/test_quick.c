/* SPDX-License-Identifier: MIT */
/* The quick now: never before the clock, hardly behind it, in order; and what it does not believe
 * (R71). The counter and the clock are a simulated machine's, in which the kernel changes the
 * clock's slope whenever it likes, threads are interrupted, and counters jump. */
#include "unit/task/with_runtime.h"

#include "base/rand.h"
#include "fiber/sanitize.h"
#include "plat/clock.h"
#include "timer/alarm.h"
#include "wait/current.h"

#include <string.h>

/* ---- a machine ----------------------------------------------------------------------------- */

struct machine {
    uint64_t count;        /* its counter                                              */
    double clock_ns;       /* its clock                                                */
    double nominal;        /* ns per count                                             */
    double slope;          /* what the kernel makes of it now                          */
    uint64_t read_counts;  /* how long reading the clock takes                    */
    uint64_t early_counts; /* the counter is read too early by less than that     */
    uint64_t read_at;      /* the last reading                                          */
    struct sni_rand rand;
    struct sni_quick q;
    unsigned quick; /* results without the clock */
    unsigned asked; /* and with it               */
    int64_t latest_ns;
};

static void init(struct machine *m, uint64_t seed, double ghz)
{
    memset(m, 0, sizeof(*m));
    sni_rand_init(&m->rand, seed);
    m->count = sni_rand_next64(&m->rand) >> 8;
    m->read_at = m->count;
    m->clock_ns = 1e12;
    m->nominal = 1 / ghz;
    m->slope = m->nominal;
    m->read_counts = 60;
    sni_quick_begin(&m->q);
}

static void pass(struct machine *m, uint64_t counts)
{
    m->count += counts;
    m->clock_ns += (double)counts * m->slope;
}

static void pass_ns(struct machine *m, double ns)
{
    pass(m, (uint64_t)(ns / m->slope));
}

/* As sn_after does it. The result, not yet compared with anything. */
static int64_t ask(struct machine *m)
{
    int64_t ns;
    uint64_t count = m->count;
    if (m->early_counts > 0)
        count -= sni_rand_below(&m->rand, (uint32_t)m->early_counts);
    if ((int64_t)(count - m->read_at) < 0) /* but not before it was read the last time */
        count = m->read_at;
    m->read_at = count;
    if (sni_quick_is_known(&m->q) && sni_quick_read(&m->q, count, &ns)) {
        m->quick++;
        return ns;
    }
    m->asked++;
    bool wants = sni_quick_wants_pair(&m->q);
    uint64_t before = m->count;
    pass(m, m->read_counts);
    int64_t now_ns = (int64_t)m->clock_ns;
    if (!wants)
        return sni_quick_plain(&m->q, now_ns);
    pass(m, m->read_counts);
    m->read_at = m->count;
    return sni_quick_pair(&m->q, before, now_ns, m->count);
}

/* What holds always: the clock at the moment of the call is not behind the result, the clock
 * afterwards is hardly before it, and results are in order. */
static void ask_and_check(struct machine *m)
{
    double at_ns = m->clock_ns;
    int64_t ns = ask(m);
    CHECK_GE(ns, (int64_t)at_ns);
    CHECK_LT(ns, (int64_t)m->clock_ns + SNI_QUICK_AHEAD_NS);
    CHECK_GE(ns, m->latest_ns);
    m->latest_ns = ns;
}

/* Until it gives results of its own. */
static void teach(struct machine *m)
{
    for (int i = 0; i < 1000000 && !sni_quick_is_known(&m->q); i++) {
        pass_ns(m, 100);
        ask_and_check(m);
    }
    CHECK(sni_quick_is_known(&m->q));
}

/* ---- the usual ------------------------------------------------------------------------------ */

TEST(a_quick_now_that_was_not_begun_asks_the_clock)
{
    struct machine m;
    init(&m, 1, 2.4);
    memset(&m.q, 0, sizeof(m.q));
    for (int i = 0; i < 100000; i++) {
        pass_ns(&m, 50);
        CHECK(!sni_quick_wants_pair(&m.q));
        ask_and_check(&m);
        CHECK_EQ(m.latest_ns, (int64_t)m.clock_ns);
    }
    CHECK_EQ(m.quick, 0);
}

TEST(a_quick_now_hardly_asks_the_clock_where_many_timers_are_set)
{
    struct machine m;
    init(&m, 2, 2.4);
    teach(&m);
    m.quick = m.asked = 0;
    for (int i = 0; i < 100000; i++) {
        pass_ns(&m, 25);
        ask_and_check(&m);
    }
    CHECK_GT(m.quick, 100 * m.asked);
    CHECK_GT(m.asked, 0);
}

TEST(a_quick_now_learns_counters_of_half_to_sixteen_gigahertz)
{
    static const double ghz[] = {0.51, 1, 1.7, 2.45, 5, 15.9};
    for (size_t i = 0; i < sizeof(ghz) / sizeof(ghz[0]); i++) {
        struct machine m;
        init(&m, i, ghz[i]);
        teach(&m);
    }
}

TEST(a_quick_now_does_not_believe_in_slower_and_faster_counters)
{
    static const double ghz[] = {0.001, 0.024, 0.4, 17, 1000};
    for (size_t i = 0; i < sizeof(ghz) / sizeof(ghz[0]); i++) {
        struct machine m;
        init(&m, i, ghz[i]);
        m.read_counts = 1;
        for (int k = 0; k < 100000; k++) {
            pass_ns(&m, 1000);
            ask_and_check(&m);
        }
        CHECK_EQ(m.quick, 0);
    }
}

TEST(a_quick_now_is_given_up_for_a_while_by_who_asks_rarely)
{
    struct machine m;
    init(&m, 3, 2.4);
    teach(&m);
    unsigned wanted = 0;
    for (int i = 0; i < 6400; i++) {
        pass_ns(&m, 100000);
        ask_and_check(&m);
        wanted += sni_quick_is_known(&m.q);
    }
    CHECK_GE(wanted, 90); /* it tries again */
    CHECK_LE(wanted, 110);
    m.quick = 0;
    for (int i = 0; i < 100; i++) {
        pass_ns(&m, 25);
        ask_and_check(&m);
    }
    CHECK_GE(m.quick, 30); /* and is there again when it is of use */
}

/* ---- what the world does to it --------------------------------------------------------------- */

/* Also from one to the other limit of what a kernel does, within a window. */
TEST(a_quick_now_is_never_early_however_the_kernel_slews)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct machine m;
        init(&m, seed, 0.6 + (double)seed / 8);
        double widest = seed % 2 == 0 ? 0.0005 : 0.1005;
        m.early_counts = seed % 3 == 0 ? 0 : (uint64_t)(900 / m.nominal);
        for (int i = 0; i < 20000; i++) {
            uint32_t what = sni_rand_below(&m.rand, 100);
            double by = (double)sni_rand_below(&m.rand, 2001) / 1000 - 1;
            if (what < 5)
                m.slope = m.nominal * (1 + widest * by);
            else if (what < 8)
                m.slope = m.nominal * (1 + (by < 0 ? -widest : widest));
            pass_ns(&m, what == 99 ? 3e6 * (1 + by) : 200 * (1 + by));
            ask_and_check(&m);
        }
        CHECK_GT(m.quick, m.asked);
    }
}

TEST(a_quick_now_is_not_early_at_the_end_of_a_window_after_the_widest_slew)
{
    struct machine m;
    init(&m, 7, 2.4);
    m.slope = m.nominal * 0.8995;
    teach(&m);
    m.slope = m.nominal * 1.1005;
    for (int i = 0; i < 3000; i++) {
        pass(&m, 17);
        ask_and_check(&m);
    }
    CHECK_GT(m.quick, 2900);
}

/* Interrupted anywhere: between two calls, and between the counter and the clock. */
TEST(a_quick_now_learns_nothing_from_a_pair_that_was_interrupted)
{
    struct machine m;
    init(&m, 8, 2.4);
    for (int i = 0; i < 200000; i++) {
        uint32_t what = sni_rand_below(&m.rand, 300);
        m.read_counts = what == 0 ? 1100 + sni_rand_below(&m.rand, 1000000) : 60;
        if (what < 100) /* a pair that is hardly one */
            m.read_counts = 1000 + what / 2;
        pass_ns(&m, 30);
        ask_and_check(&m);
    }
    CHECK_GT(m.quick, 0);
    m.read_counts = 1100; /* always: there is no base any more, and none is learned */
    pass_ns(&m, 1e5);
    ask_and_check(&m);
    m.quick = 0;
    for (int i = 0; i < 10000; i++) {
        pass_ns(&m, 30);
        ask_and_check(&m);
    }
    CHECK_EQ(m.quick, 0);
}

/* The counter jumps and the clock does not: after a suspend, or when it is not what the clock is
 * made of. From the jump until the next pair nothing can be known; it must be gone then. */
static void jump(struct machine *m, uint64_t by)
{
    teach(m);
    pass_ns(m, 1000);
    ask_and_check(m);
    m->count += by;
    m->read_at = m->count;
    unsigned quick = m->quick;
    ask_and_check(m);
    CHECK_EQ(m->quick, quick); /* the clock was asked */
    teach(m);
}

TEST(a_quick_now_asks_the_clock_when_the_counter_jumps)
{
    struct machine m;
    init(&m, 9, 2.4);
    static const uint64_t by[] = {1000000, UINT64_C(1) << 40, UINT64_C(1) << 63};
    for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
        jump(&m, by[i]);
        jump(&m, (uint64_t)0 - by[i]);
    }
}

TEST(a_quick_now_lives_through_a_wrap_of_the_counter)
{
    struct machine m;
    init(&m, 10, 2.4);
    m.count = (uint64_t)0 - 10000000;
    m.read_at = m.count;
    m.quick = 0;
    for (int i = 0; i < 400000; i++) {
        pass_ns(&m, 30);
        ask_and_check(&m);
    }
    CHECK_LT(m.count, UINT64_C(1) << 40);
    CHECK_GT(m.quick, 30 * m.asked / 10);
}

TEST(a_counter_that_takes_another_rate_is_learned_anew)
{
    struct machine m;
    init(&m, 11, 2.4);
    teach(&m);
    m.nominal *= 2; /* of another machine: results may be early now, until the next pair */
    m.slope = m.nominal;
    for (int i = 0; i < 40; i++) {
        pass_ns(&m, 1000);
        (void)ask(&m);
    }
    CHECK(!sni_quick_is_known(&m.q));
    m.latest_ns = 0;
    teach(&m);
    m.quick = m.asked = 0;
    for (int i = 0; i < 10000; i++) {
        pass_ns(&m, 30);
        ask_and_check(&m);
    }
    CHECK_GT(m.quick, 10 * m.asked);
}

/* While it is learned, the machine is suspended: the counter goes on and the clock does not. */
TEST(a_rate_is_not_learned_over_a_suspend)
{
    struct machine m;
    init(&m, 12, 2.4);
    pass_ns(&m, 1000);
    ask_and_check(&m); /* the first pair */
    m.count += 1000000000;
    pass_ns(&m, 5e8);
    for (int i = 0; i < 200; i++) {
        pass_ns(&m, 100);
        ask_and_check(&m);
    }
    CHECK(!sni_quick_is_known(&m.q));
    teach(&m);
}

TEST(a_clock_that_went_back_is_believed)
{
    struct machine m;
    init(&m, 13, 2.4);
    teach(&m);
    m.clock_ns -= 1e9;
    m.count += 1000000;
    m.latest_ns = 0;
    for (int i = 0; i < 100000; i++) {
        pass_ns(&m, 100);
        ask_and_check(&m);
    }
    CHECK_GT(m.quick, 0);
}

/* ---- this machine -------------------------------------------------------------------------- */

enum { LONG_NS = 1000000000, ROUND_NS = 20000000 };

/* For some milliseconds, so that it is learned, where there is a counter. */
TASK_TEST(a_deadline_from_now_is_never_early_and_hardly_late)
{
    (void)arg;
    int64_t begin_ns = sn_now();
    int64_t latest_ns = 0;
    while (sn_now() - begin_ns < ROUND_NS) {
        int64_t before_ns = sn_now();
        int64_t soon_ns = sn_after(LONG_NS).ns - LONG_NS;
        int64_t after_ns = sn_now();
        CHECK_GE(soon_ns, before_ns);
        CHECK_LT(soon_ns, after_ns + SNI_QUICK_AHEAD_NS);
        CHECK_GE(soon_ns, latest_ns);
        latest_ns = soon_ns;
    }
    return 0;
}

TASK_TEST(a_deadline_of_no_time_from_now_has_come)
{
    (void)arg;
    for (int64_t begin_ns = sn_now(); sn_now() - begin_ns < ROUND_NS;) {
        (void)sn_after(LONG_NS);
        sn_deadline now = sn_after(0);
        sn_deadline before = sn_after(-1);
        CHECK_LE(now.ns, sn_now());
        CHECK_LT(before.ns, sn_now());
    }
    return 0;
}

/* Whether the clock is read fast enough for a pair, at best: not where reading a counter traps. */
static bool is_fast(void)
{
    for (int i = 0; i < 1000; i++) {
        uint64_t before = sni_plat_counter();
        (void)sn_now();
        if (sni_plat_counter() - before < SNI_QUICK_GAP_COUNTS / 2)
            return true;
    }
    return false;
}

TASK_TEST(the_counter_is_used_where_there_is_one)
{
    (void)arg;
    const struct sni_quick *quick = &sni_exec_current()->clockwork->quick;
    bool was_known = false;
    for (int64_t begin_ns = sn_now(); !was_known && sn_now() - begin_ns < LONG_NS;) {
        for (int i = 0; i < 1000; i++)
            (void)sn_after(LONG_NS);
        was_known = sni_quick_is_known(quick);
    }
    CHECK_EQ(was_known, sni_plat_has_counter() && !sni_valgrind_active() && is_fast());
    return 0;
}
