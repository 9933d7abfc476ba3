/* SPDX-License-Identifier: MIT */
/* Crowds (R2, R92, R151): a hundred who wait at one object, fibers and coroutines of three runtimes
 * and plain threads, are served or refused in one go, while one of the runtimes is shut down
 * without waiting. Wakes are kept and paid in portions of 16, so a crowd meets what few do not.
 *
 * The laws: whoever was not abandoned goes on once, with what all of them were given; who was
 * abandoned has taken nothing with it: units and locks are there for others. */
#include "harness.h"

#include <pthread.h>
#include <sinew/sinew.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    ROUNDS = 9, /* of each kind, and each runtime is the victim in turn */
    RUNTIMES = 3,
    FIBERS = 24, /* of each runtime */
    COROS = 8,
    TASKS = FIBERS + COROS,
    THREADS = 6,
    CROWD = RUNTIMES * TASKS + THREADS,
    UNSERVED = 1000,
};

enum kind {
    AT_EVENT,
    AT_LATCH,
    AT_WAIT_GROUP,
    AT_SEM,
    AT_MUTEX,
    AT_RWLOCK,
    AT_COND,
    AT_RECV,
    AT_SEND,
    AT_WATCH,
    KINDS,
};

static struct {
    enum kind kind;
    sn_event event;
    sn_latch latch;
    sn_wait_group wait_group;
    sn_sem sem;
    sn_mutex mutex;
    sn_rwlock rwlock;
    sn_cond cond;   /* with `mutex` */
    bool is_passed; /* under `mutex`: what the condition is about */
    int guarded;    /* by `mutex` */
    sn_chan *ch;    /* a rendezvous */
    sn_watch *watch;
    atomic_int arrived;
    atomic_int result[CROWD];
    atomic_int served[CROWD]; /* how often */
} all;

static int expected(void)
{
    return all.kind == AT_RECV || all.kind == AT_SEND ? -EPIPE : 0;
}

/* ---- who waits ------------------------------------------------------------------------------- */

static void go_on(int who, int rc)
{
    atomic_store(&all.result[who], rc);
    atomic_fetch_add(&all.served[who], 1);
}

/* Nobody waits who has it: see test_two_runtimes.c. */
static int use_mutex(int rc)
{
    if (rc == 0) {
        CHECK_EQ(all.guarded++, 0);
        CHECK_EQ(--all.guarded, 0);
        CHECK_EQ(sn_mutex_unlock(&all.mutex), 0);
    }
    return rc;
}

static int wait_at_cond(void)
{
    int rc = sn_mutex_lock(&all.mutex, SN_FOREVER);
    while (rc == 0 && !all.is_passed)
        rc = sn_cond_wait(&all.cond, &all.mutex, SN_FOREVER);
    return use_mutex(rc);
}

static int wait_at_rwlock(void)
{
    int rc = sn_rwlock_lock_shared(&all.rwlock, SN_FOREVER);
    if (rc == 0)
        CHECK_EQ(sn_rwlock_unlock_shared(&all.rwlock), 0);
    return rc;
}

static int wait_there(void)
{
    int value = 0;
    uint64_t version = 1;
    switch (all.kind) {
    case AT_EVENT:
        return sn_event_wait(&all.event, SN_FOREVER);
    case AT_LATCH:
        return sn_latch_wait(&all.latch, SN_FOREVER);
    case AT_WAIT_GROUP:
        return sn_wait_group_wait(&all.wait_group, SN_FOREVER);
    case AT_SEM:
        return sn_sem_acquire(&all.sem, 1, SN_FOREVER);
    case AT_MUTEX:
        return use_mutex(sn_mutex_lock(&all.mutex, SN_FOREVER));
    case AT_RWLOCK:
        return wait_at_rwlock();
    case AT_COND:
        return wait_at_cond();
    case AT_RECV:
        return sn_chan_recv(all.ch, &value, SN_FOREVER);
    case AT_SEND:
        return sn_chan_send(all.ch, &value, SN_FOREVER);
    default:
        return sn_watch_recv(all.watch, &value, &version, SN_FOREVER);
    }
}

static int wait_as_fiber(void *arg)
{
    atomic_fetch_add(&all.arrived, 1);
    go_on((int)(intptr_t)arg, wait_there());
    return 0;
}

static void *wait_as_thread(void *arg)
{
    (void)wait_as_fiber(arg);
    return NULL;
}

typedef struct guest {
    sn_coro coro;
    int who;
    int rc;
    int value;
    uint64_t version;
    union {
        sn_sync_state sync;
        sn_chan_op chan;
        sn_news_op news;
    } op;
} guest;

/* One that waits for a condition has come a little late: it waits for what that needs. */
static sn_future *begin_wait(guest *self)
{
    sn_sync_state *sync = &self->op.sync;
    switch (all.kind) {
    case AT_EVENT:
        return sn_event_wait_op(sync, &all.event);
    case AT_LATCH:
        return sn_latch_wait_op(sync, &all.latch);
    case AT_WAIT_GROUP:
        return sn_wait_group_wait_op(sync, &all.wait_group);
    case AT_SEM:
        return sn_sem_acquire_op(sync, &all.sem, 1);
    case AT_MUTEX:
    case AT_COND:
        return sn_mutex_lock_op(sync, &all.mutex);
    case AT_RWLOCK:
        return sn_rwlock_lock_shared_op(sync, &all.rwlock);
    case AT_RECV:
        return sn_chan_recv_op(&self->op.chan, all.ch, &self->value);
    case AT_SEND:
        return sn_chan_send_op(&self->op.chan, all.ch, &self->value);
    default:
        self->version = 1;
        return sn_watch_recv_op(&self->op.news, all.watch, &self->value, &self->version);
    }
}

static void end_wait(guest *self)
{
    if (all.kind == AT_MUTEX || all.kind == AT_COND)
        (void)use_mutex(self->rc);
    else if (all.kind == AT_RWLOCK && self->rc == 0)
        CHECK_EQ(sn_rwlock_unlock_shared(&all.rwlock), 0);
    go_on(self->who, self->rc);
}

SN_CORO(guest, self)
{
    SN_BEGIN(self);
    atomic_fetch_add(&all.arrived, 1);
    SN_AWAIT_INTO(self->rc, begin_wait(self));
    end_wait(self);
    SN_RETURN(0);
    SN_END();
}

/* ---- who serves them ------------------------------------------------------------------------- */

static void begin_round(void)
{
    int value = 0;
    all.event = (sn_event)SN_EVENT_INIT;
    all.latch = (sn_latch)SN_LATCH_INIT(1);
    all.wait_group = (sn_wait_group)SN_WAIT_GROUP_INIT;
    CHECK_EQ(sn_wait_group_add(&all.wait_group, 1), 0);
    all.sem = (sn_sem)SN_SEM_INIT(0);
    all.mutex = (sn_mutex)SN_MUTEX_INIT;
    all.rwlock = (sn_rwlock)SN_RWLOCK_INIT;
    all.cond = (sn_cond)SN_COND_INIT;
    all.is_passed = false;
    CHECK_EQ(sn_chan_create(&all.ch, sizeof(int), 0, NULL), 0);
    CHECK_EQ(sn_watch_create(&all.watch, sizeof(int), &value), 0);
    if (all.kind == AT_MUTEX)
        CHECK_EQ(sn_mutex_lock(&all.mutex, SN_FOREVER), 0);
    if (all.kind == AT_RWLOCK)
        CHECK_EQ(sn_rwlock_lock(&all.rwlock, SN_FOREVER), 0);
    atomic_store(&all.arrived, 0);
    for (int i = 0; i < CROWD; i++) {
        atomic_store(&all.result[i], UNSERVED);
        atomic_store(&all.served[i], 0);
    }
}

static int pass_condition(void)
{
    int rc = sn_mutex_lock(&all.mutex, SN_FOREVER);
    all.is_passed = true;
    if (rc == 0)
        rc = sn_mutex_unlock(&all.mutex);
    return rc < 0 ? rc : sn_cond_broadcast(&all.cond);
}

static int serve_all(void)
{
    int value = 1;
    switch (all.kind) {
    case AT_EVENT:
        return sn_event_set(&all.event);
    case AT_LATCH:
        return sn_latch_arrive(&all.latch, 1);
    case AT_WAIT_GROUP:
        return sn_wait_group_done(&all.wait_group);
    case AT_SEM:
        return sn_sem_release(&all.sem, CROWD);
    case AT_MUTEX:
        return sn_mutex_unlock(&all.mutex);
    case AT_RWLOCK:
        return sn_rwlock_unlock(&all.rwlock);
    case AT_COND:
        return pass_condition();
    case AT_WATCH:
        return sn_watch_set(all.watch, &value);
    default:
        return sn_chan_close(all.ch);
    }
}

/* Nobody waits any more, nor has anything. */
static void end_round(void)
{
    unsigned served = 0;
    for (int i = 0; i < CROWD; i++)
        served += all.result[i] != UNSERVED;
    if (all.kind == AT_SEM)
        CHECK_EQ(sn_sem_get(&all.sem), CROWD - served);
    if (all.kind == AT_RWLOCK) {
        CHECK_EQ(sn_rwlock_lock(&all.rwlock, SN_NOWAIT), 0);
        CHECK_EQ(sn_rwlock_unlock(&all.rwlock), 0);
    }
    CHECK_EQ(sn_event_finish(&all.event), 0);
    CHECK_EQ(sn_latch_finish(&all.latch), 0);
    CHECK_EQ(sn_sem_finish(&all.sem), 0);
    CHECK_EQ(sn_cond_finish(&all.cond), 0);
    CHECK_EQ(sn_mutex_finish(&all.mutex), 0);
    CHECK_EQ(sn_rwlock_finish(&all.rwlock), 0);
    CHECK_EQ(sn_chan_destroy(all.ch), 0);
    CHECK_EQ(sn_watch_destroy(all.watch), 0);
}

/* ---- the crowd ------------------------------------------------------------------------------- */

static int populate(void *arg)
{
    int first = (int)(intptr_t)arg;
    for (int i = 0; i < TASKS; i++) {
        guest frame = {.who = first + i};
        sn_task *t = i < COROS ? sn_spawn_coro(guest, &frame)
                               : sn_spawn(wait_as_fiber, (void *)(intptr_t)(first + i));
        CHECK(t != NULL);
        CHECK_EQ(sn_detach(t), 0);
    }
    return 0;
}

static atomic_int at_the_start; /* so that service and shutdown meet */

static void meet(void)
{
    atomic_fetch_add(&at_the_start, 1);
    for (int i = 0; i < 1000 && atomic_load(&at_the_start) < 2; i++)
        sn_yield();
}

static void *shut_down(void *rt)
{
    meet();
    CHECK_GE(sn_runtime_shutdown(rt, SN_NOWAIT), 0);
    sn_runtime_destroy(rt);
    return NULL;
}

/* All of them wait, or are just about to. */
static void await_crowd(void)
{
    while (atomic_load(&all.arrived) < CROWD)
        CHECK_EQ(sn_sleep(SN_US(50)), 0);
    CHECK_EQ(sn_sleep(SN_US(200)), 0);
}

static void check_served(int victim)
{
    for (int i = 0; i < CROWD; i++) {
        bool is_victim = i < RUNTIMES * TASKS && i / TASKS == victim;
        CHECK_EQ(all.served[i], is_victim && all.result[i] == UNSERVED ? 0 : 1);
        if (!is_victim || all.result[i] != UNSERVED)
            CHECK_EQ(all.result[i], expected());
    }
}

static void gather(enum kind kind, int victim)
{
    sn_runtime *rt[RUNTIMES];
    pthread_t thread[THREADS + 1];
    all.kind = kind;
    atomic_store(&at_the_start, 0);
    begin_round();
    for (int i = 0; i < RUNTIMES; i++) {
        CHECK_EQ(sn_runtime_create(&rt[i], &(sn_runtime_options){.workers = 1 + (unsigned)i % 2}),
                 0);
        sn_task *t = sn_runtime_spawn(rt[i], populate, (void *)(intptr_t)(i * TASKS));
        CHECK_EQ(sn_join(t, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, wait_as_thread,
                                (void *)(intptr_t)(RUNTIMES * TASKS + i)),
                 0);
    await_crowd();
    CHECK_EQ(pthread_create(&thread[THREADS], NULL, shut_down, rt[victim]), 0);
    meet();
    CHECK_EQ(serve_all(), 0);
    for (int i = 0; i < RUNTIMES; i++) {
        if (i == victim)
            continue;
        CHECK_EQ(sn_runtime_shutdown(rt[i], SN_FOREVER), 0);
        sn_runtime_destroy(rt[i]);
    }
    for (int i = 0; i <= THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    check_served(victim);
    end_round();
}

TEST(a_crowd_at_one_object_is_served_while_a_runtime_goes_away, .limit_s = 120)
{
    const char *seconds = getenv("SINEW_STORM_S");
    int64_t end_ns = sn_now() + (seconds != NULL ? SN_S(atoi(seconds)) : 0);
    for (int round = 0; round < ROUNDS || sn_now() < end_ns; round++)
        for (int kind = 0; kind < KINDS; kind++)
            gather((enum kind)kind, round % RUNTIMES);
}
