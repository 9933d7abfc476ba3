/* SPDX-License-Identifier: MIT */
/* Misused locks (R90): the error in release builds; in debug builds a sentence that says where both
 * were spawned, the one that has the lock or waits for it, and the one that misuses it. */
#include "unit/sync/guests.h"

#define OWNER  "owner.c:11"
#define CALLER "caller.c:22"
#define BOTH   " a task spawned at " OWNER ", used by a task spawned at " CALLER

static sn_mutex m;
static sn_rwlock rw;
static sn_once once;
static sn_cond cond;
static sn_sem sem;
static sn_event event;
static sn_event done; /* never set */

/* Spawn at a place of our choice. */
static sn_task *spawn_at(const char *at, sn_task_fn *fn)
{
    sn_task *t = sn_spawn_(fn, NULL, &(sn_spawn_options){.at_ = at});
    CHECK(t != NULL);
    return t;
}

struct scene {
    sn_task_fn *owner, *caller;
    sn_gate_ *waits_at; /* not NULL: the owner waits there */
};

static int play(void *arg)
{
    const struct scene *scene = arg;
    sn_task *owner = spawn_at(OWNER, scene->owner);
    if (scene->waits_at != NULL)
        until_guests(scene->waits_at, 1);
    else
        until_guests(&done.gate_, 1); /* it has what it wants */
    int rc = sn_join(spawn_at(CALLER, scene->caller), NULL);
    CHECK_EQ(sn_event_set(&done), 0);
    if (scene->waits_at == &event.gate_)
        CHECK_EQ(sn_event_set(&event), 0);
    if (scene->waits_at == &sem.gate_)
        CHECK_EQ(sn_sem_release(&sem, 1), 0);
    CHECK_EQ(sn_join(owner, NULL), 0);
    return rc;
}

static int misuse(struct scene scene)
{
    m = (sn_mutex)SN_MUTEX_INIT;
    rw = (sn_rwlock)SN_RWLOCK_INIT;
    once = (sn_once)SN_ONCE_INIT;
    cond = (sn_cond)SN_COND_INIT;
    sem = (sn_sem)SN_SEM_INIT(0);
    event = done = (sn_event)SN_EVENT_INIT;
    return run_with(&(sn_runtime_options){.single_threaded = true}, play, &scene);
}

/* ---- the one that has it -------------------------------------------------------------------- */

static int hold_mutex(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    CHECK_EQ(sn_event_wait(&done, SN_FOREVER), 0);
    return sn_mutex_unlock(&m);
}

static int unlock_mutex(void *arg)
{
    (void)arg;
    return sn_mutex_unlock(&m);
}

MISUSE_TEST(who_unlocks_a_mutex_of_another_is_told_where_both_come_from, -EPERM,
            "does not hold it; held by" BOTH)
{
    return misuse((struct scene){hold_mutex, unlock_mutex, NULL});
}

static int finish_mutex(void *arg)
{
    (void)arg;
    return sn_mutex_finish(&m);
}

MISUSE_TEST(who_finishes_a_locked_mutex_is_told_where_both_come_from, -EBUSY,
            "in use, or waited for; held by" BOTH)
{
    return misuse((struct scene){hold_mutex, finish_mutex, NULL});
}

static int wait_without_mutex(void *arg)
{
    (void)arg;
    return sn_cond_wait(&cond, &m, SN_FOREVER);
}

MISUSE_TEST(who_waits_with_a_mutex_of_another_is_told_where_both_come_from, -EPERM,
            "does not hold its mutex; held by" BOTH)
{
    return misuse((struct scene){hold_mutex, wait_without_mutex, NULL});
}

static int hold_to_write(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_rwlock_lock(&rw, SN_FOREVER), 0);
    CHECK_EQ(sn_event_wait(&done, SN_FOREVER), 0);
    return sn_rwlock_unlock(&rw);
}

static int unlock_to_write(void *arg)
{
    (void)arg;
    return sn_rwlock_unlock(&rw);
}

static int unlock_to_read(void *arg)
{
    (void)arg;
    return sn_rwlock_unlock_shared(&rw);
}

MISUSE_TEST(who_stops_the_writing_of_another_is_told_where_both_come_from, -EPERM,
            "does not write under it; held by" BOTH)
{
    return misuse((struct scene){hold_to_write, unlock_to_write, NULL});
}

MISUSE_TEST(who_stops_to_read_while_another_writes_is_told_where_both_come_from, -EPERM,
            "nobody reads under; held by" BOTH)
{
    return misuse((struct scene){hold_to_write, unlock_to_read, NULL});
}

static int begin_and_fail(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_once_begin(&once, SN_FOREVER), 1);
    CHECK_EQ(sn_event_wait(&done, SN_FOREVER), 0);
    return sn_once_end(&once, -EIO);
}

static int end_once(void *arg)
{
    (void)arg;
    return sn_once_end(&once, 0);
}

MISUSE_TEST(who_ends_what_another_has_begun_is_told_where_both_come_from, -EPERM,
            "had not begun it; begun by" BOTH)
{
    return misuse((struct scene){begin_and_fail, end_once, NULL});
}

/* ---- the one that waits --------------------------------------------------------------------- */

static int wait_for_event(void *arg)
{
    (void)arg;
    return sn_event_wait(&event, SN_FOREVER);
}

static int finish_event(void *arg)
{
    (void)arg;
    return sn_event_finish(&event);
}

MISUSE_TEST(who_finishes_an_event_that_is_waited_for_is_told_by_whom, -EBUSY,
            "in use, or waited for; waited for by" BOTH)
{
    return misuse((struct scene){wait_for_event, finish_event, &event.gate_});
}

static int wait_for_unit(void *arg)
{
    (void)arg;
    return sn_sem_acquire(&sem, 1, SN_FOREVER);
}

static int finish_sem(void *arg)
{
    (void)arg;
    return sn_sem_finish(&sem);
}

MISUSE_TEST(who_finishes_a_semaphore_that_is_waited_for_is_told_by_whom, -EBUSY,
            "in use, or waited for; waited for by" BOTH)
{
    return misuse((struct scene){wait_for_unit, finish_sem, &sem.gate_});
}

/* ---- itself, and others that have no place --------------------------------------------------- */

static int lock_again(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    int rc = sn_mutex_lock(&m, SN_FOREVER);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    return rc;
}

static int lock_again_in_a_task(void *arg)
{
    (void)arg;
    sn_task *t = spawn_at(CALLER, lock_again);
    sn_yield(); /* so that it runs for itself, and not as who joins it */
    return sn_join(t, NULL);
}

MISUSE_TEST(who_locks_its_own_mutex_again_is_told_where_it_comes_from, -EDEADLK,
            "held by a task spawned at " CALLER ", used by a task spawned at " CALLER)
{
    m = (sn_mutex)SN_MUTEX_INIT;
    return run_with(&(sn_runtime_options){.single_threaded = true}, lock_again_in_a_task, NULL);
}

static int hold_for_ever(void *arg)
{
    (void)arg;
    return sn_mutex_lock(&m, SN_FOREVER);
}

static int unlock_later(void *arg)
{
    CHECK_EQ(sn_event_wait(&event, SN_FOREVER), 0);
    return unlock_mutex(arg);
}

static int unlock_what_another_has_left(void *arg)
{
    (void)arg;
    event = (sn_event)SN_EVENT_INIT;
    sn_task *caller = spawn_at(CALLER, unlock_later); /* it lives, so its record is its own */
    until_guests(&event.gate_, 1);
    sn_task *owner = spawn_at(OWNER, hold_for_ever);
    while (sni_atomic_load(&m.gate_.word_, relaxed) == 0) /* relaxed: one thread */
        sn_yield();
    CHECK_EQ(sn_join(owner, NULL), 0);
    CHECK_EQ(sn_event_set(&event), 0);
    return sn_join(caller, NULL);
}

MISUSE_TEST(of_a_holder_that_has_ended_no_place_is_told, -EPERM,
            "a task that has ended, used by a task spawned at " CALLER)
{
    m = (sn_mutex)SN_MUTEX_INIT;
    sn_runtime_options opts = {.single_threaded = true};
    return run_with(&opts, unlock_what_another_has_left, NULL);
}

MISUSE_TEST(a_thread_is_called_a_thread, -EBUSY, "a task that has ended, used by a thread")
{
    m = (sn_mutex)SN_MUTEX_INIT;
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    return sn_mutex_finish(&m);
}
