/* SPDX-License-Identifier: MIT */
/* The suspension protocol (R5), for threads: one claim wins, none is lost. Fibers go through it
 * in the tests of tasks. */
#include "harness.h"

#include "plat/clock.h"
#include "wait/wait.h"

#include <pthread.h>
#include <sinew/errno.h>
#include <stdatomic.h>

TEST(a_wait_that_was_claimed_before_it_began_to_sleep_returns_at_once)
{
    struct sni_waiter w;
    sni_wait_begin(&w);
    CHECK(sni_wait_claim(&w, 17));
    CHECK_EQ(sni_wait_commit(&w, SN_FOREVER), 17);
}

TEST(only_the_first_claim_wins)
{
    struct sni_waiter w;
    sni_wait_begin(&w);
    CHECK(sni_wait_claim(&w, -5));
    CHECK(!sni_wait_claim(&w, 6));
    CHECK_EQ(sni_wait_commit(&w, SN_FOREVER), -5);
    CHECK(!sni_wait_claim(&w, 7));
}

TEST(a_claim_without_hurry_is_a_claim_like_any_other)
{
    struct sni_waiter w;
    sni_wait_begin(&w);
    CHECK(sni_wait_claim_last(&w, 3));
    CHECK(!sni_wait_claim(&w, 4));
    CHECK_EQ(sni_wait_commit(&w, SN_FOREVER), 3);
}

TEST(results_of_all_sizes_come_through)
{
    int results[] = {0, 1, -1, (1 << 25) - 1, -(1 << 25), -ECANCELED};
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        struct sni_waiter w;
        sni_wait_begin(&w);
        CHECK(sni_wait_claim(&w, results[i]));
        CHECK_EQ(sni_wait_commit(&w, SN_FOREVER), results[i]);
    }
}

TEST(a_deadline_in_the_past_ends_the_wait)
{
    struct sni_waiter w;
    sni_wait_begin(&w);
    CHECK_EQ(sni_wait_commit(&w, SN_NOWAIT), -ETIMEDOUT);
    CHECK(!sni_wait_claim(&w, 0)); /* too late: the deadline was a claim too */
}

TEST(a_deadline_in_the_future_is_waited_for)
{
    struct sni_waiter w;
    int64_t until = sni_plat_now_ns() + SN_MS(5);
    sni_wait_begin(&w);
    CHECK_EQ(sni_wait_commit(&w, sn_deadline_at_(until)), -ETIMEDOUT);
    CHECK_GE(sni_plat_now_ns(), until);
}

enum {
    ROUNDS = 5000,
};

static _Atomic(struct sni_waiter *) published;
static atomic_int won[2];

static void *claim_rounds(void *arg)
{
    int me = (int)(intptr_t)arg;
    for (;;) {
        struct sni_waiter *w = atomic_load(&published);
        if (w == (void *)&published)
            return NULL;
        /* The waiter is on the other's stack: take it out before touching it. */
        if (w != NULL && atomic_compare_exchange_strong(&published, &w, NULL)) {
            if (sni_wait_claim(w, me + 1))
                atomic_fetch_add(&won[me], 1);
        }
    }
}

TEST(threads_that_wait_and_threads_that_claim_always_meet, .limit_s = 60)
{
    pthread_t thread[2];
    for (intptr_t i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, claim_rounds, (void *)i), 0);
    int got[3] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        struct sni_waiter w;
        sni_wait_begin(&w);
        atomic_store(&published, &w);
        int rc = sni_wait_commit(&w, SN_FOREVER);
        CHECK(rc == 1 || rc == 2);
        got[rc]++;
    }
    atomic_store(&published, (void *)&published);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    CHECK_EQ(got[1], won[0]);
    CHECK_EQ(got[2], won[1]);
}

static struct sni_waiter raced;
static atomic_int turn;

static void *claim_when_told(void *arg)
{
    int *wins = arg;
    for (int i = 1; i <= ROUNDS; i++) {
        while (atomic_load(&turn) != i)
            ;
        *wins += sni_wait_claim(&raced, 9);
        atomic_store(&turn, -i);
    }
    return NULL;
}

TEST(a_claim_and_a_deadline_at_the_same_time_have_one_winner, .limit_s = 60)
{
    int wins = 0, waits_won = 0;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, claim_when_told, &wins), 0);
    for (int i = 1; i <= ROUNDS; i++) {
        sni_wait_begin(&raced);
        atomic_store(&turn, i);
        int rc = sni_wait_commit(&raced, SN_NOWAIT);
        CHECK(rc == 9 || rc == -ETIMEDOUT);
        waits_won += rc == 9;
        while (atomic_load(&turn) != -i)
            ;
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(waits_won, wins);
}
