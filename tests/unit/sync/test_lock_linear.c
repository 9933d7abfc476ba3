/* SPDX-License-Identifier: MIT */
/* Are locks linearizable? (R90) Two fibers and two threads lock and unlock a mutex, a semaphore, or
 * a lock for reading and writing, without waiting, for some microseconds or as long as it takes,
 * and note when each call began and ended by a common counter; linear.c looks for an order. */
#include "unit/sync/linear.h"
#include "unit/task/with_runtime.h"

#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    ACTORS = 4,
    CALLS = 5, /* of each; the last one may be needed to unlock */
    UNITS = 3,
    ROUNDS = 300,
};

/* ---- the checker checked -------------------------------------------------------------------- */

/* Of actor `who`. Those that fail have not waited. */
#define LOCKED(who, from, to)   {LINEAR_LOCK, true, 1, 0, from, to, who}
#define TAKEN(n, from, to)      {LINEAR_LOCK, true, n, 0, from, to, 0}
#define GIVEN(n, from, to)      {LINEAR_UNLOCK, false, n, 0, from, to, 0}
#define UNLOCKED(who, from, to) {LINEAR_UNLOCK, false, 1, 0, from, to, who}
#define REFUSED(who, from, to)  {LINEAR_LOCK, false, 1, -ETIMEDOUT, from, to, who}
#define READS(who, from, to)    {LINEAR_LOCK_SHARED, false, 0, 0, from, to, who}
#define READ(who, from, to)     {LINEAR_UNLOCK_SHARED, false, 0, 0, from, to, who}
#define LOWERED(who, from, to)  {LINEAR_DOWNGRADE, false, 0, 0, from, to, who}

#define HISTORY(kind, size, ...)                                                         \
    (&(struct linear_history){                                                           \
        {__VA_ARGS__},                                                                   \
        (int)(sizeof((struct linear_call[]){__VA_ARGS__}) / sizeof(struct linear_call)), \
        kind,                                                                            \
        size})

TEST(the_checker_accepts_what_locks_can_do)
{
    CHECK(is_linearizable(HISTORY(LINEAR_MUTEX, 0, LOCKED(0, 1, 2), REFUSED(1, 3, 4),
                                  LOCKED(1, 5, 8), UNLOCKED(0, 6, 7), UNLOCKED(1, 9, 10))));
    CHECK(is_linearizable(HISTORY(LINEAR_SEM, 2, TAKEN(1, 1, 2), TAKEN(1, 3, 4), TAKEN(2, 5, 10),
                                  GIVEN(1, 6, 7), GIVEN(1, 8, 9))));
    /* one unit is free, but another waits for two */
    CHECK(is_linearizable(
        HISTORY(LINEAR_SEM, 2, TAKEN(1, 1, 2), TAKEN(2, 3, 8), REFUSED(0, 4, 5), GIVEN(1, 6, 7))));
    CHECK(is_linearizable(HISTORY(LINEAR_RWLOCK, 0, LOCKED(0, 1, 2), LOWERED(0, 3, 4),
                                  READS(1, 5, 6), READ(0, 7, 8), READ(1, 9, 10))));
}

TEST(the_checker_refuses_what_no_mutex_can_do)
{
    CHECK(!is_linearizable(
        HISTORY(LINEAR_MUTEX, 0, LOCKED(0, 1, 2), LOCKED(1, 3, 4), UNLOCKED(0, 5, 6))));
    CHECK(!is_linearizable(HISTORY(LINEAR_MUTEX, 0, LOCKED(0, 1, 2), UNLOCKED(1, 3, 4))));
    CHECK(!is_linearizable(
        HISTORY(LINEAR_MUTEX, 0, LOCKED(0, 1, 2), UNLOCKED(0, 3, 4), REFUSED(1, 5, 6))));
    CHECK(!is_linearizable(HISTORY(LINEAR_MUTEX, 0, LOCKED(0, 2, 3), UNLOCKED(0, 4, 5),
                                   LOCKED(1, 1, 8), LOCKED(2, 6, 7))));
}

TEST(the_checker_refuses_what_no_semaphore_can_do)
{
    CHECK(!is_linearizable(HISTORY(LINEAR_SEM, 2, TAKEN(1, 1, 2), TAKEN(2, 3, 4))));
    CHECK(!is_linearizable(HISTORY(LINEAR_SEM, 2, TAKEN(2, 1, 2), GIVEN(1, 3, 4), TAKEN(2, 5, 6))));
    CHECK(!is_linearizable(HISTORY(LINEAR_SEM, 2, TAKEN(1, 1, 2), REFUSED(0, 3, 4))));
}

TEST(the_checker_refuses_what_no_rwlock_can_do)
{
    CHECK(!is_linearizable(HISTORY(LINEAR_RWLOCK, 0, READS(0, 1, 2), LOCKED(1, 3, 4))));
    CHECK(!is_linearizable(HISTORY(LINEAR_RWLOCK, 0, LOCKED(0, 1, 2), READS(1, 3, 4))));
    CHECK(!is_linearizable(HISTORY(LINEAR_RWLOCK, 0, LOCKED(0, 1, 2), LOWERED(0, 3, 4),
                                   LOCKED(1, 5, 6), READ(0, 7, 8))));
    CHECK(
        !is_linearizable(HISTORY(LINEAR_RWLOCK, 0, READS(0, 1, 2), READ(0, 3, 4), READ(1, 5, 6))));
}

/* ---- histories ------------------------------------------------------------------------------ */

static struct {
    enum linear_kind kind;
    sn_mutex mutex;
    sn_sem sem;
    sn_rwlock rwlock;
    atomic_uint_fast64_t ticks;
    atomic_int at_the_start;
    struct linear_call book[ACTORS][CALLS];
    int made[ACTORS];
    uint64_t seed;
} all;

static uint64_t next_number(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static int call_lock(const struct linear_call *c, sn_deadline until)
{
    switch (c->what) {
    case LINEAR_LOCK:
        return sn_rwlock_lock(&all.rwlock, until);
    case LINEAR_LOCK_SHARED:
        return sn_rwlock_lock_shared(&all.rwlock, until);
    case LINEAR_UNLOCK:
        return sn_rwlock_unlock(&all.rwlock);
    case LINEAR_UNLOCK_SHARED:
        return sn_rwlock_unlock_shared(&all.rwlock);
    default:
        return sn_rwlock_downgrade(&all.rwlock);
    }
}

static void make_call(struct linear_call *c, sn_deadline until)
{
    bool locks = c->what == LINEAR_LOCK;
    c->began = atomic_fetch_add(&all.ticks, 1);
    if (all.kind == LINEAR_MUTEX)
        c->rc = locks ? sn_mutex_lock(&all.mutex, until) : sn_mutex_unlock(&all.mutex);
    else if (all.kind == LINEAR_SEM)
        c->rc = locks ? sn_sem_acquire(&all.sem, (uint32_t)c->value, until)
                      : sn_sem_release(&all.sem, (uint32_t)c->value);
    else
        c->rc = call_lock(c, until);
    c->ended = atomic_fetch_add(&all.ticks, 1);
}

/* What to call next, having had `last` before, or nothing to give back. */
static enum linear_what choose(const struct linear_call *last, bool must_end, uint64_t lot)
{
    if (last == NULL)
        return all.kind == LINEAR_RWLOCK && lot % 2 == 0 ? LINEAR_LOCK_SHARED : LINEAR_LOCK;
    if (last->what != LINEAR_LOCK)
        return LINEAR_UNLOCK_SHARED;
    if (all.kind == LINEAR_RWLOCK && !must_end && lot % 2 == 0)
        return LINEAR_DOWNGRADE;
    return LINEAR_UNLOCK;
}

static int act(void *arg)
{
    int me = (int)(intptr_t)arg, i = 0;
    uint64_t lots = all.seed * ACTORS + (uint64_t)me;
    const struct linear_call *last = NULL;
    (void)next_number(&lots);
    atomic_fetch_add(&all.at_the_start, 1);
    for (int k = 0; atomic_load(&all.at_the_start) < ACTORS && k < 1000; k++)
        sn_yield(); /* so that they begin at about the same time */
    while (i < CALLS - 1 || (last != NULL && i < CALLS)) {
        uint64_t lot = next_number(&lots);
        struct linear_call *c = &all.book[me][i];
        *c = (struct linear_call){.what = choose(last, i >= CALLS - 2, lot / 8), .actor = me};
        c->value = last != NULL ? last->value : 1 + (int)(lot / 32 % UNITS);
        c->is_patient = last == NULL && lot % 3 != 0;
        make_call(c, !c->is_patient ? SN_NOWAIT
                     : lot % 3 == 1 ? sn_after(SN_US(lot / 64 % 50 + 1))
                                    : SN_FOREVER);
        bool has_it = last == NULL ? c->rc == 0 : c->what == LINEAR_DOWNGRADE;
        last = has_it ? c : NULL;
        i++;
        for (uint64_t k = lot / 512 % 8; k > 0; k--)
            sn_yield(); /* with the lock or without: so that they get in each other's way */
    }
    all.made[me] = i;
    return 0;
}

static void *act_as_thread(void *arg)
{
    CHECK_EQ(act(arg), 0);
    return NULL;
}

static int record(void *arg)
{
    (void)arg;
    pthread_t thread[2];
    sn_task *t[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, act_as_thread, (void *)(intptr_t)(2 + i)), 0);
    for (int i = 0; i < 2; i++)
        t[i] = sn_spawn(act, (void *)(intptr_t)i);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    return 0;
}

static struct linear_history collect(void)
{
    struct linear_history h = {.kind = all.kind, .size = UNITS};
    for (int me = 0; me < ACTORS; me++)
        for (int i = 0; i < all.made[me]; i++)
            h.calls[h.n++] = all.book[me][i];
    return h;
}

static void check_histories(enum linear_kind kind, const sn_mutex *mutex)
{
    sn_runtime *rt = NULL;
    int in_vain = 0;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
    all.kind = kind;
    all.seed = test_seed();
    for (int i = 0; i < ROUNDS; i++, all.seed++) {
        all.mutex = *mutex;
        all.sem = (sn_sem)SN_SEM_INIT(UNITS);
        all.rwlock = (sn_rwlock)SN_RWLOCK_INIT;
        atomic_store(&all.at_the_start, 0);
        CHECK_EQ(sn_runtime_block_on(rt, record, NULL), 0);
        CHECK_EQ(sn_mutex_finish(&all.mutex) | sn_rwlock_finish(&all.rwlock), 0);
        CHECK_EQ(sn_sem_get(&all.sem), UNITS);
        struct linear_history h = collect();
        for (int k = 0; k < h.n; k++)
            in_vain += h.calls[k].rc == -ETIMEDOUT;
        if (!is_linearizable(&h)) {
            linear_print(&h);
            FAIL("history %d is not linearizable", i);
        }
    }
    CHECK_GT(in_vain, 0); /* they did get in each other's way */
    sn_runtime_destroy(rt);
}

TEST(what_happens_to_a_mutex_is_linearizable, .limit_s = 60)
{
    check_histories(LINEAR_MUTEX, &(sn_mutex)SN_MUTEX_INIT);
}

TEST(what_happens_to_a_fair_mutex_is_linearizable, .limit_s = 60)
{
    check_histories(LINEAR_MUTEX, &(sn_mutex)SN_MUTEX_FAIR_INIT);
}

TEST(what_happens_to_a_semaphore_is_linearizable, .limit_s = 60)
{
    check_histories(LINEAR_SEM, &(sn_mutex)SN_MUTEX_INIT);
}

TEST(what_happens_to_a_rwlock_is_linearizable, .limit_s = 60)
{
    check_histories(LINEAR_RWLOCK, &(sn_mutex)SN_MUTEX_INIT);
}
