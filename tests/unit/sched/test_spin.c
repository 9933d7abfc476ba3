/* SPDX-License-Identifier: MIT */
/* test_spin.c - src/sched/spin.h: how often a worker looks before it sleeps (R43, R80): long enough
 * for who answers at once, and not long for who does not. */
#include "sched/spin.h"

#include "harness.h"

static struct sni_spin fresh(void)
{
    struct sni_spin spin;
    sni_spin_init(&spin);
    return spin;
}

/* Something comes at that look, each time. */
static void answer_at(struct sni_spin *spin, int look, int times)
{
    for (int i = 0; i < times; i++)
        sni_spin_found(spin, look);
}

TEST(the_first_try_is_as_long_as_any)
{
    struct sni_spin spin = fresh();
    for (int i = 1; i < SNI_SPIN_TRY; i++)
        CHECK(sni_spin_looks(&spin) == 1);
    CHECK(sni_spin_looks(&spin) == SNI_SPIN_MAX);
}

TEST(who_never_finds_anything_looks_long_only_now_and_then)
{
    struct sni_spin spin = fresh();
    int tries = 0;
    for (int i = 0; i < 10 * SNI_SPIN_TRY; i++) {
        tries += sni_spin_looks(&spin) > 1;
        sni_spin_missed(&spin);
    }
    CHECK(tries == 10);
}

TEST(who_finds_something_at_once_soon_looks_little_longer)
{
    struct sni_spin spin = fresh();
    answer_at(&spin, 3, 100);
    CHECK(sni_spin_looks(&spin) == 2 * 3 + SNI_SPIN_MORE);
}

TEST(one_late_answer_is_remembered_at_once)
{
    struct sni_spin spin = fresh();
    answer_at(&spin, 3, 100);
    answer_at(&spin, 12, 1);
    CHECK(sni_spin_looks(&spin) == 2 * 12 + SNI_SPIN_MORE);
}

TEST(sleeps_that_were_short_make_it_look_longer_up_to_the_limit)
{
    struct sni_spin spin = fresh();
    answer_at(&spin, 1, 100);
    int before = sni_spin_looks(&spin);
    for (int i = 0; i < 10; i++) {
        sni_spin_slept_short(&spin);
        int looks = sni_spin_looks(&spin);
        CHECK(looks > before || looks == SNI_SPIN_MAX);
        before = looks;
    }
    CHECK(before == SNI_SPIN_MAX);
}

TEST(what_the_first_look_finds_tells_nothing)
{
    struct sni_spin spin = fresh();
    answer_at(&spin, 0, 100);
    CHECK(spin.credit == 0);
    CHECK(spin.usual == SNI_SPIN_USUAL_MAX);
}

TEST(some_misses_do_not_end_what_has_paid)
{
    struct sni_spin spin = fresh();
    answer_at(&spin, 5, 20);
    for (int i = 0; i < SNI_SPIN_CREDIT_MAX; i++) {
        CHECK(sni_spin_looks(&spin) > 1);
        sni_spin_missed(&spin);
    }
    CHECK(sni_spin_looks(&spin) == 1);
}

enum { BEGUN_NS = 1000000, PERIOD_NS = SNI_CROWD_ASK_NS };

/* Asked once at BEGUN_NS, and once a period later, of which it slept and lost so much. */
static struct sni_crowd after_losing(int64_t slept_ns, int64_t lost_ns)
{
    struct sni_crowd crowd = {0};
    sni_crowd_ask(&crowd, BEGUN_NS, 0);
    sni_crowd_slept(&crowd, slept_ns);
    CHECK(!sni_crowd_is_due(&crowd, BEGUN_NS + PERIOD_NS - 1));
    CHECK(sni_crowd_is_due(&crowd, BEGUN_NS + PERIOD_NS));
    sni_crowd_ask(&crowd, BEGUN_NS + PERIOD_NS, PERIOD_NS - slept_ns - lost_ns);
    return crowd;
}

TEST(who_lost_a_good_part_of_its_time_to_others_is_shy_for_a_while)
{
    struct sni_crowd crowd = after_losing(0, PERIOD_NS / 4);
    CHECK(sni_crowd_makes_shy(&crowd, BEGUN_NS + PERIOD_NS));
    CHECK(sni_crowd_makes_shy(&crowd, BEGUN_NS + PERIOD_NS + SNI_CROWD_SHY_NS - 1));
    CHECK(!sni_crowd_makes_shy(&crowd, BEGUN_NS + PERIOD_NS + SNI_CROWD_SHY_NS));
}

TEST(who_lost_little_or_slept_is_not_shy)
{
    struct sni_crowd crowd = after_losing(0, PERIOD_NS / 10);
    CHECK(!sni_crowd_makes_shy(&crowd, BEGUN_NS + PERIOD_NS));
    crowd = after_losing(PERIOD_NS / 2, 0);
    CHECK(!sni_crowd_makes_shy(&crowd, BEGUN_NS + PERIOD_NS));
    crowd = after_losing(PERIOD_NS / 2, PERIOD_NS / 8); /* of what it was awake */
    CHECK(sni_crowd_makes_shy(&crowd, BEGUN_NS + PERIOD_NS));
}

TEST(what_was_before_the_first_question_and_what_is_not_known_make_nobody_shy)
{
    struct sni_crowd crowd = {0};
    sni_crowd_ask(&crowd, PERIOD_NS, 0);
    CHECK(!sni_crowd_makes_shy(&crowd, PERIOD_NS));
    sni_crowd_ask(&crowd, 2 * PERIOD_NS, -1);
    sni_crowd_ask(&crowd, 3 * PERIOD_NS, -1);
    CHECK(!sni_crowd_makes_shy(&crowd, 3 * PERIOD_NS));
}
