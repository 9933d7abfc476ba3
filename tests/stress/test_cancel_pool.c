/* SPDX-License-Identifier: MIT */
/* A storm of cancels over a pool of workers that share locks, counters and events, and have
 * children (R61, R62, R90). Locks exclude, and are free at the end; all units are back; a signal
 * that was given to who is cancelled goes to another; a child ends before who has made it. */
#include "cancel_storm.h"

#include <stdio.h>

enum { UNITS = 6 };

static struct {
    sn_mutex mutex, fair, guard;
    sn_cond changed;
    sn_rwlock rwlock;
    sn_sem sem;
    sn_event one;
    int in_mutex, in_fair, written[2]; /* guarded by what their names say                     */
    int tokens, waiting;               /* by guard                                             */
    atomic_int units_out, children;
    atomic_long sets, passes, puts, takes, joined, joins_cancelled;
} all;

static bool worked(int rc)
{
    if (rc != 0 && rc != -ECANCELED && rc != -ETIMEDOUT)
        FAIL("a wait ended with %d", rc);
    return rc == 0;
}

static void linger(struct dice *d)
{
    for (uint32_t i = roll(d) % 4; i == 0; i++)
        sn_yield();
}

/* ---- what workers do ------------------------------------------------------------------------- */

static void use_mutex(struct dice *d, sn_mutex *m, int *inside)
{
    sn_sync_state state;
    bool by_future = roll(d) % 4 == 0;
    int rc;
    if (by_future) {
        sn_future *fut = sn_mutex_lock_op(&state, m);
        rc = sn_await(fut, some_time(d));
        CHECK_EQ(sn_future_drop(fut), 0); /* unless it has it, it gives up its place */
    } else {
        rc = sn_mutex_lock(m, some_time(d));
    }
    if (!worked(rc))
        return;
    CHECK_EQ((*inside)++, 0);
    linger(d);
    CHECK_EQ(--*inside, 0);
    CHECK_EQ(sn_mutex_unlock(m), 0);
}

static void use_rwlock(struct dice *d)
{
    bool writes = roll(d) % 3 == 0;
    if (!worked(writes ? sn_rwlock_lock(&all.rwlock, some_time(d))
                       : sn_rwlock_lock_shared(&all.rwlock, some_time(d))))
        return;
    if (writes) {
        all.written[0]++;
        linger(d);
        all.written[1]++;
        CHECK_EQ(all.written[0], all.written[1]);
        CHECK_EQ(sn_rwlock_unlock(&all.rwlock), 0);
        return;
    }
    CHECK_EQ(all.written[0], all.written[1]);
    linger(d);
    CHECK_EQ(sn_rwlock_unlock_shared(&all.rwlock), 0);
}

static void use_sem(struct dice *d)
{
    uint32_t units = 1 + roll(d) % UNITS;
    if (!worked(sn_sem_acquire(&all.sem, units, some_time(d))))
        return;
    CHECK_LE(atomic_fetch_add(&all.units_out, (int)units) + (int)units, UNITS);
    linger(d);
    atomic_fetch_sub(&all.units_out, (int)units);
    CHECK_EQ(sn_sem_release(&all.sem, units), 0);
}

static void put_token(struct dice *d)
{
    if (!worked(sn_mutex_lock(&all.guard, some_time(d))))
        return;
    all.tokens++;
    atomic_fetch_add(&all.puts, 1);
    CHECK_EQ(sn_cond_signal(&all.changed), 0);
    CHECK_EQ(sn_mutex_unlock(&all.guard), 0);
}

/* A wait that says it was signalled takes what there is, cancelled or not. */
static void take_token(struct dice *d)
{
    if (!worked(sn_mutex_lock(&all.guard, some_time(d))))
        return;
    int rc = 0;
    all.waiting++;
    while (rc == 0 && all.tokens == 0)
        rc = sn_cond_wait(&all.changed, &all.guard, SN_FOREVER);
    all.waiting--;
    if (worked(rc)) {
        CHECK_GT(all.tokens, 0);
        all.tokens--;
        atomic_fetch_add(&all.takes, 1);
    }
    CHECK_EQ(sn_mutex_unlock(&all.guard), 0);
}

static void use_event(struct dice *d)
{
    if (roll(d) % 2 == 0) {
        atomic_fetch_add(&all.sets, 1);
        CHECK_EQ(sn_event_set(&all.one), 0);
    } else if (worked(sn_event_wait(&all.one, sn_after(SN_US(roll(d) % 300))))) {
        atomic_fetch_add(&all.passes, 1);
    }
}

/* ---- children -------------------------------------------------------------------------------- */

static int be_a_child(void *arg)
{
    struct dice d = *(struct dice *)arg;
    int rc = 0;
    atomic_fetch_add(&all.children, 1);
    if (roll(&d) % 2 == 0)
        use_sem(&d);
    if (roll(&d) % 4 == 0)
        rc = sn_sleep(SN_US(roll(&d) % 200));
    atomic_fetch_sub(&all.children, 1);
    return rc;
}

/* Who is cancelled while it joins still has the handle, and ends the child. */
static void have_a_child(struct dice *d)
{
    struct dice of_child = {roll(d)};
    sn_exit how;
    if (roll(d) % 3 == 0) {
        int rc = sn_timeout(be_a_child, &of_child, SN_US(roll(d) % 200));
        (void)worked(rc);
        return;
    }
    /* volatile: compilers are told that a join uses it up, not when it does not */
    sn_task *volatile child = sn_spawn(be_a_child, &of_child);
    CHECK(child != NULL);
    int rc = sn_join(child, &how);
    if (rc == -ECANCELED && how.kind == SN_EXIT_NONE) {
        atomic_fetch_add(&all.joins_cancelled, 1);
        rc = sn_cancel(child, NULL);
        CHECK(rc == 0 || rc == -ECANCELED);
        return;
    }
    CHECK_EQ(rc, 0);
    atomic_fetch_add(&all.joined, 1);
}

/* ---- the storm ------------------------------------------------------------------------------- */

static int work(void *arg)
{
    struct dice d = *(struct dice *)arg;
    while (!sn_cancelled()) {
        switch (roll(&d) % 8) {
        case 0:
            use_mutex(&d, &all.mutex, &all.in_mutex);
            break;
        case 1:
            use_mutex(&d, &all.fair, &all.in_fair);
            break;
        case 2:
            use_rwlock(&d);
            break;
        case 3:
            use_sem(&d);
            break;
        case 4:
            put_token(&d);
            break;
        case 5:
            take_token(&d);
            break;
        case 6:
            use_event(&d);
            break;
        default:
            have_a_child(&d);
        }
    }
    return -ECANCELED;
}

static sn_task *spawn_one(int slot, uint32_t dice)
{
    struct dice d = {dice};
    (void)slot;
    return sn_spawn(work, &d, .copy_bytes = sizeof(d));
}

/* Somebody waits although there is something to take: a signal is still on its way, or lost, and
 * then this waits for ever. */
static void await_signals(void)
{
    for (bool is_quiet = false; !is_quiet;) {
        sn_yield();
        CHECK_EQ(sn_mutex_lock(&all.guard, SN_FOREVER), 0);
        is_quiet = all.waiting == 0 || all.tokens == 0;
        CHECK_EQ(sn_mutex_unlock(&all.guard), 0);
    }
}

static void after_each(void)
{
    static atomic_uint turn;
    if (atomic_fetch_add(&turn, 1) % 64 == 0)
        await_signals();
}

static void check_all_is_free(void)
{
    CHECK_EQ(all.in_mutex + all.in_fair + all.waiting, 0);
    CHECK_EQ(all.written[0], all.written[1]);
    CHECK_EQ(atomic_load(&all.units_out) + atomic_load(&all.children), 0);
    CHECK_EQ(sn_sem_get(&all.sem), UNITS);
    CHECK_EQ(atomic_load(&all.puts) - atomic_load(&all.takes), all.tokens);
    CHECK_LE(atomic_load(&all.passes), atomic_load(&all.sets));
    CHECK_GT(atomic_load(&all.joined), 0);
    CHECK_EQ(sn_mutex_finish(&all.mutex) | sn_mutex_finish(&all.fair), 0);
    CHECK_EQ(sn_mutex_finish(&all.guard) | sn_cond_finish(&all.changed), 0);
    CHECK_EQ(sn_rwlock_finish(&all.rwlock) | sn_sem_finish(&all.sem), 0);
    CHECK_EQ(sn_event_finish(&all.one), 0);
}

static int blow(void *arg)
{
    struct storm storm = {
        .spawn = spawn_one, .after_each = after_each, .cancels = *(int *)arg / STORM_SLOW};
    all.mutex = all.guard = (sn_mutex)SN_MUTEX_INIT;
    all.fair = (sn_mutex)SN_MUTEX_FAIR_INIT;
    all.changed = (sn_cond)SN_COND_INIT;
    all.rwlock = (sn_rwlock)SN_RWLOCK_INIT;
    all.sem = (sn_sem)SN_SEM_INIT(UNITS);
    all.one = (sn_event)SN_EVENT_ONE_INIT;
    storm_blow(&storm);
    printf("%ld taken, %ld passed, %ld joined, %ld joins cancelled\n", (long)all.takes,
           (long)all.passes, (long)all.joined, (long)all.joins_cancelled);
    check_all_is_free();
    return 0;
}

TEST(a_storm_of_cancels_over_a_pool_on_many_workers, .limit_s = 120)
{
    int cancels = 25000;
    storm_run((sn_runtime_options){.workers = 4}, blow, &cancels);
}

TEST(a_storm_of_cancels_over_a_pool_on_one_thread, .limit_s = 120)
{
    int cancels = 15000;
    storm_run((sn_runtime_options){.single_threaded = true, .seed = test_seed() | 1}, blow,
              &cancels);
}
