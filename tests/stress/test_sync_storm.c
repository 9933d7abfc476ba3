/* SPDX-License-Identifier: MIT */
/* A storm on locks, counters and events (R90): 64 tasks of two runtimes, a quarter of them
 * coroutines that drop their operations, and 8 plain threads, all with deadlines that pass at any
 * moment. Each lock excludes, no unit and no lock is lost, nobody sleeps for ever; and nothing is
 * left behind when all have gone. */
#include "harness.h"

#include <pthread.h>
#include <sinew/sinew.h>
#include <stdatomic.h>
#include <stdint.h>

enum {
    TASKS = 32, /* of each runtime */
    CORO_EVERY = 4,
    THREADS = 8,
    ROUNDS = 400,
    UNITS = 5,
};

static struct {
    sn_mutex mutex, fair;
    sn_rwlock rwlock;
    sn_sem sem;
    sn_mutex guard;
    sn_cond changed;
    sn_event one;
    sn_wait_group group;
    int in_mutex, in_fair, written[2], tokens; /* guarded by what their names say; tokens: guard */
    atomic_int units_out;
    atomic_int mutex_times, fair_times, writes;
    int mutex_count, fair_count; /* guarded, compared with the times */
    atomic_int sets, passes;
} all;

static void reset(void)
{
    all.mutex = (sn_mutex)SN_MUTEX_INIT;
    all.fair = (sn_mutex)SN_MUTEX_FAIR_INIT;
    all.rwlock = (sn_rwlock)SN_RWLOCK_INIT;
    all.sem = (sn_sem)SN_SEM_INIT(UNITS);
    all.guard = (sn_mutex)SN_MUTEX_INIT;
    all.changed = (sn_cond)SN_COND_INIT;
    all.one = (sn_event)SN_EVENT_ONE_INIT;
    all.group = (sn_wait_group)SN_WAIT_GROUP_INIT;
}

struct actor {
    uint32_t dice;
};

static uint32_t roll(struct actor *a)
{
    a->dice ^= a->dice << 13;
    a->dice ^= a->dice >> 17;
    a->dice ^= a->dice << 5;
    return a->dice;
}

static sn_deadline some_time(struct actor *a)
{
    switch (roll(a) % 4) {
    case 0:
        return SN_NOWAIT;
    case 1:
        return SN_FOREVER;
    default:
        return sn_after(SN_US(roll(a) % 200));
    }
}

static bool worked(int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT);
    return rc == 0;
}

static void linger(struct actor *a)
{
    if (roll(a) % 4 == 0)
        sn_yield();
}

/* ---- what is done under each ---------------------------------------------------------------- */

static void use_mutex(struct actor *a, bool fair)
{
    sn_mutex *m = fair ? &all.fair : &all.mutex;
    int *in = fair ? &all.in_fair : &all.in_mutex;
    if (!worked(sn_mutex_lock(m, some_time(a))))
        return;
    CHECK_EQ((*in)++, 0);
    linger(a);
    CHECK_EQ(--*in, 0);
    ++*(fair ? &all.fair_count : &all.mutex_count);
    atomic_fetch_add(fair ? &all.fair_times : &all.mutex_times, 1);
    CHECK_EQ(sn_mutex_unlock(m), 0);
}

static void use_rwlock(struct actor *a)
{
    bool writes = roll(a) % 3 == 0;
    sn_deadline until = some_time(a);
    if (!worked(writes ? sn_rwlock_lock(&all.rwlock, until)
                       : sn_rwlock_lock_shared(&all.rwlock, until)))
        return;
    if (writes) {
        all.written[0]++;
        linger(a);
        all.written[1]++;
        atomic_fetch_add(&all.writes, 1);
    }
    CHECK_EQ(all.written[0], all.written[1]);
    if (writes && roll(a) % 2 == 0) {
        CHECK_EQ(sn_rwlock_unlock(&all.rwlock), 0);
        return;
    }
    if (writes)
        CHECK_EQ(sn_rwlock_downgrade(&all.rwlock), 0);
    linger(a);
    CHECK_EQ(all.written[0], all.written[1]);
    CHECK_EQ(sn_rwlock_unlock_shared(&all.rwlock), 0);
}

static void use_sem(struct actor *a)
{
    uint32_t units = 1 + roll(a) % UNITS;
    if (!worked(sn_sem_acquire(&all.sem, units, some_time(a))))
        return;
    CHECK_LE(atomic_fetch_add(&all.units_out, (int)units) + (int)units, UNITS);
    linger(a);
    atomic_fetch_sub(&all.units_out, (int)units);
    CHECK_EQ(sn_sem_release(&all.sem, units), 0);
}

/* Put a token, or wait for one, but not for ever. */
static void use_cond(struct actor *a)
{
    bool puts = roll(a) % 2 == 0;
    sn_deadline until = sn_after(SN_US(roll(a) % 300));
    CHECK_EQ(sn_mutex_lock(&all.guard, SN_FOREVER), 0);
    if (puts) {
        all.tokens++;
        CHECK_EQ(roll(a) % 8 == 0 ? sn_cond_broadcast(&all.changed) : sn_cond_signal(&all.changed),
                 0);
    }
    int rc = 0;
    while (!puts && rc == 0 && all.tokens == 0)
        rc = sn_cond_wait(&all.changed, &all.guard, until);
    if (!puts && worked(rc))
        all.tokens--;
    CHECK_GE(all.tokens, 0);
    CHECK_EQ(sn_mutex_unlock(&all.guard), 0);
}

static void use_event(struct actor *a)
{
    if (roll(a) % 2 == 0) {
        atomic_fetch_add(&all.sets, 1);
        CHECK_EQ(sn_event_set(&all.one), 0);
    } else if (worked(sn_event_wait(&all.one, sn_after(SN_US(roll(a) % 200))))) {
        atomic_fetch_add(&all.passes, 1);
    }
}

static void act(struct actor *a)
{
    for (int i = 0; i < ROUNDS; i++) {
        switch (roll(a) % 6) {
        case 0:
            use_mutex(a, false);
            break;
        case 1:
            use_mutex(a, true);
            break;
        case 2:
            use_rwlock(a);
            break;
        case 3:
            use_sem(a);
            break;
        case 4:
            use_cond(a);
            break;
        default:
            use_event(a);
        }
    }
    CHECK_EQ(sn_wait_group_done(&all.group), 0);
}

static int act_as_fiber(void *arg)
{
    act(arg);
    return 0;
}

static void *act_as_thread(void *arg)
{
    act(arg);
    return NULL;
}

/* ---- coroutines, which race each wait with a nap and drop the loser ------------------------- */

typedef struct racer {
    sn_coro coro;
    struct actor actor;
    int i;
    uint32_t what;
    sn_sync_state wait;
    sn_sleep_state nap;
    sn_fut_race2 race;
} racer;

static sn_future *begin_wait(racer *self)
{
    switch (self->what) {
    case 0:
        return sn_mutex_lock_op(&self->wait, &all.mutex);
    case 1:
        return sn_mutex_lock_op(&self->wait, &all.fair);
    case 2:
        return sn_rwlock_lock_op(&self->wait, &all.rwlock);
    case 3:
        return sn_rwlock_lock_shared_op(&self->wait, &all.rwlock);
    case 4:
        return sn_sem_acquire_op(&self->wait, &all.sem, 2);
    default:
        return sn_event_wait_op(&self->wait, &all.one);
    }
}

static void end_wait(racer *self)
{
    switch (self->what) {
    case 0:
        all.mutex_count++;
        atomic_fetch_add(&all.mutex_times, 1);
        CHECK_EQ(sn_mutex_unlock(&all.mutex), 0);
        return;
    case 1:
        all.fair_count++;
        atomic_fetch_add(&all.fair_times, 1);
        CHECK_EQ(sn_mutex_unlock(&all.fair), 0);
        return;
    case 2:
        all.written[0]++;
        all.written[1]++;
        atomic_fetch_add(&all.writes, 1);
        CHECK_EQ(sn_rwlock_unlock(&all.rwlock), 0);
        return;
    case 3:
        CHECK_EQ(all.written[0], all.written[1]);
        CHECK_EQ(sn_rwlock_unlock_shared(&all.rwlock), 0);
        return;
    case 4:
        CHECK_EQ(sn_sem_release(&all.sem, 2), 0);
        return;
    default:
        atomic_fetch_add(&all.passes, 1);
    }
}

SN_CORO(racer, self)
{
    SN_BEGIN(self);
    for (self->i = 0; self->i < ROUNDS; self->i++) {
        self->what = roll(&self->actor) % 6;
        SN_AWAIT(
            sn_fut_race2_init(&self->race, begin_wait(self),
                              sn_sleep_op(&self->nap, sn_after(SN_US(roll(&self->actor) % 200)))));
        if (self->race.race.winner == 0)
            end_wait(self);
    }
    CHECK_EQ(sn_wait_group_done(&all.group), 0);
    SN_RETURN(0);
    SN_END();
}

/* ---- the storm ------------------------------------------------------------------------------ */

static int act_all(void *arg)
{
    static struct actor actors[2 * TASKS];
    uint32_t which = *(uint32_t *)arg;
    sn_task *task[TASKS];
    for (uint32_t i = 0; i < TASKS; i++) {
        struct actor *a = &actors[which * TASKS + i];
        *a = (struct actor){(uint32_t)test_seed() * 2654435761u + which * 1000 + i + 1};
        racer frame = {.actor = *a};
        task[i] = i % CORO_EVERY == 0 ? sn_spawn_coro(racer, &frame) : sn_spawn(act_as_fiber, a);
    }
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    return 0;
}

static void *run_second(void *arg)
{
    sn_runtime *rt = NULL;
    uint32_t which = 1;
    CHECK_EQ(sn_runtime_create(&rt, arg), 0);
    CHECK_EQ(sn_runtime_block_on(rt, act_all, &which), 0);
    sn_runtime_destroy(rt);
    return NULL;
}

TEST(a_storm_on_locks_and_events_loses_nothing, .limit_s = 120)
{
    static struct actor actors[THREADS];
    pthread_t thread[THREADS + 1];
    sn_runtime *rt = NULL;
    uint32_t which = 0;
    reset();
    CHECK_EQ(sn_wait_group_add(&all.group, 2 * TASKS + THREADS), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        actors[i] = (struct actor){(uint32_t)test_seed() + 77 * (i + 1)};
        CHECK_EQ(pthread_create(&thread[i], NULL, act_as_thread, &actors[i]), 0);
    }
    sn_runtime_options alone = {.single_threaded = true};
    CHECK_EQ(pthread_create(&thread[THREADS], NULL, run_second, &alone), 0);
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 4}), 0);
    CHECK_EQ(sn_runtime_block_on(rt, act_all, &which), 0);
    CHECK_EQ(sn_wait_group_wait(&all.group, SN_FOREVER), 0);
    for (int i = 0; i <= THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    sn_runtime_destroy(rt);
    CHECK_EQ(all.mutex_count, all.mutex_times);
    CHECK_EQ(all.fair_count, all.fair_times);
    CHECK_EQ(all.written[0], all.writes);
    CHECK_EQ(sn_sem_get(&all.sem), UNITS);
    CHECK_LE(all.passes, all.sets);
    CHECK_EQ(sn_mutex_finish(&all.mutex) + sn_mutex_finish(&all.fair) + sn_mutex_finish(&all.guard),
             0);
    CHECK_EQ(sn_rwlock_finish(&all.rwlock) + sn_sem_finish(&all.sem), 0);
    CHECK_EQ(sn_cond_finish(&all.changed) + sn_event_finish(&all.one), 0);
    CHECK_EQ(sn_wait_group_finish(&all.group), 0);
}
