/* SPDX-License-Identifier: MIT */
/* law_sync.c - the rows of locks, counters and events. See law.h. */
#include "unit/cancel/law.h"

static struct {
    sn_mutex mutex;
    sn_cond cond;
    sn_rwlock rwlock;
    sn_sem sem;
    sn_event event;
    sn_wait_group group;
    sn_latch latch;
    sn_barrier barrier;
    sn_sync_state partner; /* of another future than that of the row */
    sn_task *behind;       /* who waits at the condition, too          */
    bool is_behind;        /* by the mutex                             */
    sn_once once;
    int runs;
} at;

static void must(int rc)
{
    CHECK_EQ(rc, 0);
}

/* ---- a mutex that the master has locked ------------------------------------------------------ */

static void open_mutex(void)
{
    at.mutex = (sn_mutex)SN_MUTEX_INIT;
    must(sn_mutex_lock(&at.mutex, SN_NOWAIT));
}

static void open_fair(void)
{
    at.mutex = (sn_mutex)SN_MUTEX_FAIR_INIT;
    must(sn_mutex_lock(&at.mutex, SN_NOWAIT));
}

static void unlock(void)
{
    must(sn_mutex_unlock(&at.mutex));
}

static void close_mutex(bool let, bool took)
{
    (void)took; /* who took it has given it back */
    if (!let)
        unlock();
    must(sn_mutex_lock(&at.mutex, SN_NOWAIT));
    unlock();
    must(sn_mutex_finish(&at.mutex));
}

static const struct law_place locked = {.open = open_mutex, .let = unlock, .close = close_mutex};
static const struct law_place locked_fair = {
    .open = open_fair, .let = unlock, .close = close_mutex};

static ptrdiff_t lock(sn_deadline until)
{
    return sn_mutex_lock(&at.mutex, until);
}

static sn_future *lock_op(union law_memory *m)
{
    return sn_mutex_lock_op(&m->sync, &at.mutex);
}

/* ---- a condition: always waits, and has its mutex back --------------------------------------- */

static void open_cond(void)
{
    at.event = (sn_event)SN_EVENT_INIT;
    at.mutex = (sn_mutex)SN_MUTEX_INIT;
    at.cond = (sn_cond)SN_COND_INIT;
}

static void close_cond(bool let, bool took)
{
    (void)let, (void)took;
    must(sn_cond_signal(&at.cond)); /* nobody is there to hear it */
    must(sn_mutex_lock(&at.mutex, SN_NOWAIT));
    CHECK_EQ(sn_cond_wait(&at.cond, &at.mutex, SN_NOWAIT), -ETIMEDOUT);
    unlock();
    must(sn_cond_finish(&at.cond));
    must(sn_mutex_finish(&at.mutex));
}

static const struct law_place never_signalled = {.open = open_cond, .close = close_cond};

static ptrdiff_t wait_cond(sn_deadline until)
{
    must(sn_mutex_lock(&at.mutex, SN_NOWAIT));
    int rc = sn_cond_wait(&at.cond, &at.mutex, until);
    unlock(); /* it is held, however the wait has ended */
    return rc;
}

/* Dropped, the mutex is not held. Futures wait with what a future has locked. */
static sn_future *cond_op(union law_memory *m)
{
    must(sn_await(sn_mutex_lock_op(&at.partner, &at.mutex), SN_NOWAIT));
    return sn_cond_wait_op(&m->sync, &at.cond, &at.mutex);
}

/* ---- a condition that is signalled once, with another one in the queue ----------------------- */

/* Of the two one gets the signal, whoever is cancelled meanwhile. The master holds the mutex for a
 * while, so that the first has the signal, and not yet the mutex. */
static int wait_behind(void *arg)
{
    (void)arg;
    must(sn_mutex_lock(&at.mutex, SN_FOREVER));
    at.is_behind = true;
    int rc = sn_cond_wait(&at.cond, &at.mutex, SN_FOREVER);
    unlock();
    return rc;
}

static void let_signalled(void)
{
    at.is_behind = false;
    at.behind = sn_spawn(wait_behind, NULL);
    must(sn_mutex_lock(&at.mutex, SN_FOREVER));
    while (!at.is_behind) {
        unlock();
        sn_yield();
        must(sn_mutex_lock(&at.mutex, SN_FOREVER));
    }
    must(sn_cond_signal(&at.cond));
    for (int i = 0; i < 3; i++)
        sn_yield();
    unlock();
}

static void close_signalled(bool let, bool took)
{
    CHECK(let || !took);
    if (let)
        CHECK_EQ(took ? sn_cancel(at.behind, NULL) : sn_join(at.behind, NULL),
                 took ? -ECANCELED : 0);
    close_cond(let, took);
}

static const struct law_place signalled_once = {
    .open = open_cond, .let = let_signalled, .close = close_signalled};

static ptrdiff_t wait_signal(sn_deadline until)
{
    int rc = sn_mutex_lock(&at.mutex, SN_FOREVER);
    if (rc < 0)
        return rc;
    rc = sn_cond_wait(&at.cond, &at.mutex, until);
    unlock();
    return rc;
}

/* If the master was quicker, it does not come at all. */
static sn_future *signal_op(union law_memory *m)
{
    static sn_sync_state lock;
    sn_future *fut = sn_mutex_lock_op(&lock, &at.mutex);
    if (sn_await(fut, SN_NOWAIT) == 0)
        return sn_cond_wait_op(&m->sync, &at.cond, &at.mutex);
    must(sn_future_drop(fut));
    return sn_event_wait_op(&m->sync, &at.event);
}

/* ---- read and written ------------------------------------------------------------------------ */

static void open_read(void)
{
    at.rwlock = (sn_rwlock)SN_RWLOCK_INIT;
    must(sn_rwlock_lock_shared(&at.rwlock, SN_NOWAIT));
}

static void let_read(void)
{
    must(sn_rwlock_unlock_shared(&at.rwlock));
}

static void open_written(void)
{
    at.rwlock = (sn_rwlock)SN_RWLOCK_INIT;
    must(sn_rwlock_lock(&at.rwlock, SN_NOWAIT));
}

static void let_written(void)
{
    must(sn_rwlock_unlock(&at.rwlock));
}

static void close_read(bool let, bool took)
{
    (void)took;
    if (!let) {
        must(sn_rwlock_lock_shared(&at.rwlock, SN_NOWAIT)); /* no writer waits any more */
        let_read();
        let_read();
    }
    must(sn_rwlock_lock(&at.rwlock, SN_NOWAIT));
    let_written();
    must(sn_rwlock_finish(&at.rwlock));
}

static void close_written(bool let, bool took)
{
    (void)took;
    if (!let)
        let_written();
    must(sn_rwlock_lock(&at.rwlock, SN_NOWAIT));
    let_written();
    must(sn_rwlock_finish(&at.rwlock));
}

static const struct law_place read_locked = {
    .open = open_read, .let = let_read, .close = close_read};
static const struct law_place write_locked = {
    .open = open_written, .let = let_written, .close = close_written};

static ptrdiff_t lock_to_write(sn_deadline until)
{
    return sn_rwlock_lock(&at.rwlock, until);
}

static ptrdiff_t lock_to_read(sn_deadline until)
{
    return sn_rwlock_lock_shared(&at.rwlock, until);
}

static sn_future *write_op(union law_memory *m)
{
    return sn_rwlock_lock_op(&m->sync, &at.rwlock);
}

static sn_future *read_op(union law_memory *m)
{
    return sn_rwlock_lock_shared_op(&m->sync, &at.rwlock);
}

/* ---- a semaphore that has too few ------------------------------------------------------------ */

static void open_sem(void)
{
    at.sem = (sn_sem)SN_SEM_INIT(2);
}

static void let_sem(void)
{
    must(sn_sem_release(&at.sem, 1));
}

static void close_sem(bool let, bool took)
{
    (void)took;
    CHECK_EQ(sn_sem_get(&at.sem), let ? 3 : 2);
    must(sn_sem_acquire(&at.sem, 2, SN_NOWAIT)); /* nobody waits before us */
    must(sn_sem_finish(&at.sem));
}

static const struct law_place too_few = {.open = open_sem, .let = let_sem, .close = close_sem};

static ptrdiff_t acquire(sn_deadline until)
{
    return sn_sem_acquire(&at.sem, 3, until);
}

static sn_future *acquire_op(union law_memory *m)
{
    return sn_sem_acquire_op(&m->sync, &at.sem, 3);
}

static void release(void)
{
    must(sn_sem_release(&at.sem, 3));
}

/* ---- events ---------------------------------------------------------------------------------- */

static void open_event(void)
{
    at.event = (sn_event)SN_EVENT_INIT;
}

static void open_one(void)
{
    at.event = (sn_event)SN_EVENT_ONE_INIT;
}

static void let_event(void)
{
    must(sn_event_set(&at.event));
}

static void close_event(bool let, bool took)
{
    CHECK(let || !took);
    CHECK_EQ(sn_event_get(&at.event), let);
    must(sn_event_finish(&at.event));
}

static void close_one(bool let, bool took)
{
    CHECK_EQ(sn_event_get(&at.event), let && !took);
    if (!let || took)
        let_event();
    must(sn_event_wait(&at.event, SN_NOWAIT));
    CHECK_EQ(sn_event_wait(&at.event, SN_NOWAIT), -ETIMEDOUT);
    must(sn_event_finish(&at.event));
}

static const struct law_place not_yet = {
    .open = open_event, .let = let_event, .close = close_event};
static const struct law_place for_one = {.open = open_one, .let = let_event, .close = close_one};

static ptrdiff_t wait_event(sn_deadline until)
{
    return sn_event_wait(&at.event, until);
}

static sn_future *event_op(union law_memory *m)
{
    return sn_event_wait_op(&m->sync, &at.event);
}

/* ---- wait group and latch -------------------------------------------------------------------- */

static void open_group(void)
{
    at.group = (sn_wait_group)SN_WAIT_GROUP_INIT;
    must(sn_wait_group_add(&at.group, 1));
}

static void let_group(void)
{
    must(sn_wait_group_done(&at.group));
}

static void close_group(bool let, bool took)
{
    CHECK(let || !took);
    if (!let)
        let_group();
    must(sn_wait_group_wait(&at.group, SN_NOWAIT));
    must(sn_wait_group_finish(&at.group));
}

static const struct law_place under_way = {
    .open = open_group, .let = let_group, .close = close_group};

static ptrdiff_t wait_group(sn_deadline until)
{
    return sn_wait_group_wait(&at.group, until);
}

static sn_future *group_op(union law_memory *m)
{
    return sn_wait_group_wait_op(&m->sync, &at.group);
}

static void open_latch(void)
{
    at.latch = (sn_latch)SN_LATCH_INIT(1);
}

static void let_latch(void)
{
    must(sn_latch_arrive(&at.latch, 1));
}

static void close_latch(bool let, bool took)
{
    CHECK(let || !took);
    if (!let)
        let_latch();
    must(sn_latch_wait(&at.latch, SN_NOWAIT));
    must(sn_latch_finish(&at.latch));
}

static const struct law_place latched = {
    .open = open_latch, .let = let_latch, .close = close_latch};

static ptrdiff_t wait_latch(sn_deadline until)
{
    return sn_latch_wait(&at.latch, until);
}

static sn_future *latch_op(union law_memory *m)
{
    return sn_latch_wait_op(&m->sync, &at.latch);
}

/* ---- a barrier; the other one is a future that was polled once ------------------------------- */

static void open_barrier(void)
{
    at.barrier = (sn_barrier)SN_BARRIER_INIT(2);
}

static void let_barrier(void)
{
    (void)sn_await(sn_barrier_wait_op(&at.partner, &at.barrier), SN_NOWAIT);
}

static void close_barrier(bool let, bool took)
{
    if (let && took)
        CHECK(sn_future_finished(&at.partner.future_) ||
              sn_await(&at.partner.future_, SN_FOREVER) >= 0);
    else if (let)
        must(sn_future_drop(&at.partner.future_));
    sn_sync_state first, second; /* two pass, and a third one does not */
    CHECK_EQ(sn_await(sn_barrier_wait_op(&first, &at.barrier), SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_await(sn_barrier_wait_op(&second, &at.barrier), SN_NOWAIT), 1);
    must(sn_await(&first.future_, SN_FOREVER));
    CHECK_EQ(sn_barrier_wait(&at.barrier, SN_NOWAIT), -ETIMEDOUT);
    must(sn_barrier_finish(&at.barrier));
}

static const struct law_place first_to_come = {
    .open = open_barrier, .let = let_barrier, .close = close_barrier};

/* 1: it was the last. In a race of the two it may have been the first as well. */
static ptrdiff_t wait_barrier(sn_deadline until)
{
    int rc = sn_barrier_wait(&at.barrier, until);
    return rc == 0 ? 1 : rc;
}

static int any_passes(int rc, void *arg)
{
    (void)arg;
    return rc == 0 ? 1 : rc;
}

static sn_future *barrier_op(union law_memory *m)
{
    static sn_fut_map map;
    return sn_fut_map_init(&map, sn_barrier_wait_op(&m->sync, &at.barrier), any_passes, NULL);
}

/* ---- what is done once, and the master is at it ---------------------------------------------- */

static int count_run(void *arg)
{
    (void)arg;
    at.runs++;
    return 0;
}

static void open_once(void)
{
    at.runs = 0;
    at.once = (sn_once)SN_ONCE_INIT;
    CHECK_EQ(sn_once_begin(&at.once, SN_NOWAIT), 1);
}

static void let_once(void)
{
    must(sn_once_end(&at.once, 0));
}

static void close_once(bool let, bool took)
{
    CHECK(let || !took);
    if (!let)
        let_once();
    must(sn_once_run(&at.once, count_run, NULL, SN_NOWAIT));
    CHECK_EQ(at.runs, 0);
    must(sn_once_finish(&at.once));
}

/* The master gives up: whoever waits is to do it, and if that is cancelled, the next. */
static void let_fail(void)
{
    must(sn_once_end(&at.once, -EIO));
}

static void close_failed(bool let, bool took)
{
    if (!let)
        let_fail();
    CHECK_EQ(at.runs, took);
    must(sn_once_run(&at.once, count_run, NULL, SN_NOWAIT));
    CHECK_EQ(at.runs, 1);
    must(sn_once_finish(&at.once));
}

static const struct law_place begun = {.open = open_once, .let = let_once, .close = close_once};
static const struct law_place failing = {.open = open_once, .let = let_fail, .close = close_failed};

static ptrdiff_t begin_once(sn_deadline until)
{
    return sn_once_begin(&at.once, until);
}

static void end_once(void)
{
    at.runs++;
    must(sn_once_end(&at.once, 0));
}

static sn_future *once_op(union law_memory *m)
{
    return sn_once_begin_op(&m->sync, &at.once);
}

static ptrdiff_t run_once(sn_deadline until)
{
    return sn_once_run(&at.once, count_run, NULL, until);
}

/* ---- the rows -------------------------------------------------------------------------------- */

static const struct law_row rows[] = {
    LAW(sn_mutex_lock, .place = &locked, .plain = lock, .give_back = unlock),
    LAW(sn_mutex_lock, .variant = "fair", .place = &locked_fair, .plain = lock,
        .give_back = unlock),
    LAW(sn_mutex_lock_op, .place = &locked, .op = lock_op, .give_back = unlock),
    LAW(sn_mutex_lock_op, .variant = "fair", .place = &locked_fair, .op = lock_op,
        .give_back = unlock),
    LAW(sn_cond_wait, .place = &never_signalled, .plain = wait_cond),
    LAW(sn_cond_wait_op, .place = &never_signalled, .op = cond_op),
    LAW(sn_cond_wait, .variant = "signalled", .place = &signalled_once, .plain = wait_signal,
        .flags = LAW_WAITS),
    LAW(sn_cond_wait_op, .variant = "signalled", .place = &signalled_once, .op = signal_op,
        .give_back = unlock, .flags = LAW_WAITS),
    LAW(sn_rwlock_lock, .place = &read_locked, .plain = lock_to_write, .give_back = let_written),
    LAW(sn_rwlock_lock_op, .place = &read_locked, .op = write_op, .give_back = let_written),
    LAW(sn_rwlock_lock_shared, .place = &write_locked, .plain = lock_to_read,
        .give_back = let_read),
    LAW(sn_rwlock_lock_shared_op, .place = &write_locked, .op = read_op, .give_back = let_read),
    LAW(sn_sem_acquire, .place = &too_few, .plain = acquire, .give_back = release),
    LAW(sn_sem_acquire_op, .place = &too_few, .op = acquire_op, .give_back = release),
    LAW(sn_event_wait, .place = &not_yet, .plain = wait_event),
    LAW(sn_event_wait, .variant = "for one", .place = &for_one, .plain = wait_event),
    LAW(sn_event_wait_op, .place = &not_yet, .op = event_op),
    LAW(sn_event_wait_op, .variant = "for one", .place = &for_one, .op = event_op),
    LAW(sn_wait_group_wait, .place = &under_way, .plain = wait_group),
    LAW(sn_wait_group_wait_op, .place = &under_way, .op = group_op),
    LAW(sn_latch_wait, .place = &latched, .plain = wait_latch),
    LAW(sn_latch_wait_op, .place = &latched, .op = latch_op),
    LAW(sn_barrier_wait, .place = &first_to_come, .plain = wait_barrier, .takes = 1),
    LAW(sn_barrier_wait_op, .place = &first_to_come, .op = barrier_op, .takes = 1),
    LAW(sn_once_begin, .place = &begun, .plain = begin_once),
    LAW(sn_once_begin, .variant = "the first fails", .place = &failing, .plain = begin_once,
        .give_back = end_once, .takes = 1),
    LAW(sn_once_begin_op, .place = &begun, .op = once_op),
    LAW(sn_once_begin_op, .variant = "the first fails", .place = &failing, .op = once_op,
        .give_back = end_once, .takes = 1),
    LAW(sn_once_run, .place = &begun, .plain = run_once),
    LAW(sn_once_run, .variant = "the first fails", .place = &failing, .plain = run_once),
};

const struct law_rows law_of_locks = {rows, sizeof(rows) / sizeof(rows[0])};
