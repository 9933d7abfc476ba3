/* SPDX-License-Identifier: MIT */
/* Cancelling a task that waits (R61): whatever it waits at, it learns -ECANCELED, again and again;
 * what it waited at is as if it had never come, and works for others. As a fiber and as a
 * coroutine; asked while it waits, before it waits, and at any moment in between. */
#include "base/atomic.h"
#include "unit/task/with_runtime.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* One thing to wait at, prepared so that a wait does not end by itself. */
static struct {
    sn_chan *empty, *full, *nobody;
    sn_broadcast *air;
    sn_subscription sub;
    sn_watch *watch;
    uint64_t version;
    sn_mutex mutex, free_mutex;
    sn_cond cond;
    sn_rwlock read, written;
    sn_sem sem;
    sn_event event;
    sn_wait_group group;
    sn_latch latch;
    sn_barrier barrier;
    sn_once once;
    sn_conn *pair[2];
    sn_dgram *dgram;
    sn_listener *listener;
    int fds[2];
    sn_task *endless;
} at;

static int never_ends(void *arg)
{
    return sn_event_wait(arg, SN_FOREVER);
}

static sn_event the_end;

static void prepare(void)
{
    memset(&at, 0, sizeof(at));
    the_end = (sn_event)SN_EVENT_INIT;
    CHECK_EQ(sn_chan_create(&at.empty, sizeof(int), 4, NULL), 0);
    CHECK_EQ(sn_chan_create(&at.full, sizeof(int), 1, NULL), 0);
    CHECK_EQ(sn_chan_send(at.full, &(int){1}, SN_NOWAIT), 0);
    CHECK_EQ(sn_chan_create(&at.nobody, sizeof(int), 0, NULL), 0);
    CHECK_EQ(sn_broadcast_create(&at.air, sizeof(int), 4), 0);
    CHECK_EQ(sn_broadcast_subscribe(at.air, &at.sub), 0);
    CHECK_EQ(sn_watch_create(&at.watch, sizeof(int), &(int){0}), 0);
    CHECK_EQ(sn_watch_get(at.watch, &(int){0}, &at.version), 0);
    at.mutex = at.free_mutex = (sn_mutex)SN_MUTEX_INIT;
    CHECK_EQ(sn_mutex_lock(&at.mutex, SN_NOWAIT), 0);
    at.cond = (sn_cond)SN_COND_INIT;
    at.read = at.written = (sn_rwlock)SN_RWLOCK_INIT;
    CHECK_EQ(sn_rwlock_lock_shared(&at.read, SN_NOWAIT), 0);
    CHECK_EQ(sn_rwlock_lock(&at.written, SN_NOWAIT), 0);
    at.sem = (sn_sem)SN_SEM_INIT(2);
    at.event = (sn_event)SN_EVENT_INIT;
    at.group = (sn_wait_group)SN_WAIT_GROUP_INIT;
    CHECK_EQ(sn_wait_group_add(&at.group, 1), 0);
    at.latch = (sn_latch)SN_LATCH_INIT(1);
    at.barrier = (sn_barrier)SN_BARRIER_INIT(2);
    at.once = (sn_once)SN_ONCE_INIT;
    CHECK_EQ(sn_once_begin(&at.once, SN_NOWAIT), 1);
    CHECK_EQ(sn_conn_pair(at.pair), 0);
    CHECK_EQ(sn_dgram_open(&at.dgram, "127.0.0.1:0"), 0);
    CHECK_EQ(sn_listen(&at.listener, "127.0.0.1:0", NULL), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, at.fds), 0);
    at.endless = sn_spawn(never_ends, &the_end);
}

/* Everything works as if nobody had waited, and is given back. */
static void check_and_finish(void)
{
    int v = 0;
    uint64_t version = at.version;
    char byte = 0;
    CHECK_EQ(sn_chan_len(at.empty), 0);
    CHECK_EQ(sn_chan_send(at.empty, &(int){5}, SN_NOWAIT), 0);
    CHECK_EQ(sn_chan_recv(at.empty, &v, SN_NOWAIT), 0);
    CHECK_EQ(v, 5);
    CHECK_EQ(sn_chan_recv(at.full, &v, SN_NOWAIT), 0);
    CHECK_EQ(v, 1);
    CHECK_EQ(sn_chan_recv(at.full, &v, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_chan_send(at.nobody, &v, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_chan_recv(at.nobody, &v, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_broadcast_send(at.air, &(int){6}), 0);
    CHECK_EQ(sn_broadcast_recv(&at.sub, &v, SN_NOWAIT), 0);
    CHECK_EQ(v, 6);
    CHECK_EQ(sn_watch_set(at.watch, &(int){7}), 0);
    CHECK_EQ(sn_watch_recv(at.watch, &v, &version, SN_NOWAIT), 0);
    CHECK_EQ(v, 7);
    CHECK_EQ(sn_mutex_unlock(&at.mutex), 0);
    CHECK_EQ(sn_rwlock_unlock_shared(&at.read), 0);
    CHECK_EQ(sn_rwlock_unlock(&at.written), 0);
    CHECK_EQ(sn_sem_get(&at.sem), 2);
    CHECK_EQ(sn_wait_group_done(&at.group), 0);
    CHECK_EQ(sn_latch_arrive(&at.latch, 1), 0);
    CHECK_EQ(sn_once_end(&at.once, 0), 0);
    CHECK_EQ(sn_write_all(at.pair[0], "x", 1, NULL, SN_FOREVER), 0);
    CHECK_EQ(sn_read(at.pair[1], &byte, 1, SN_FOREVER), 1);
    CHECK_EQ(byte, 'x');
    CHECK_EQ(sn_event_set(&the_end), 0);
    CHECK_EQ(sn_join(at.endless, NULL), 0);
    CHECK_EQ(sn_mutex_finish(&at.mutex) | sn_mutex_finish(&at.free_mutex), 0);
    CHECK_EQ(sn_cond_finish(&at.cond) | sn_rwlock_finish(&at.read), 0);
    CHECK_EQ(sn_rwlock_finish(&at.written) | sn_sem_finish(&at.sem), 0);
    CHECK_EQ(sn_event_finish(&at.event) | sn_wait_group_finish(&at.group), 0);
    CHECK_EQ(sn_latch_finish(&at.latch) | sn_barrier_finish(&at.barrier), 0);
    CHECK_EQ(sn_once_finish(&at.once), 0);
    CHECK_EQ(sn_chan_destroy(at.empty) | sn_chan_destroy(at.full), 0);
    CHECK_EQ(sn_chan_destroy(at.nobody) | sn_broadcast_destroy(at.air), 0);
    CHECK_EQ(sn_watch_destroy(at.watch) | sn_close(at.pair[0]) | sn_close(at.pair[1]), 0);
    CHECK_EQ(sn_dgram_close(at.dgram) | sn_listener_close(at.listener), 0);
    CHECK_EQ(close(at.fds[0]) | close(at.fds[1]), 0);
}

/* ---- the waits of fibers --------------------------------------------------------------------- */

static int w_recv(void)
{
    return sn_chan_recv(at.empty, &(int){0}, SN_FOREVER);
}

static int w_send(void)
{
    return sn_chan_send(at.full, &(int){2}, SN_FOREVER);
}

static int w_meet(void)
{
    return sn_chan_send(at.nobody, &(int){2}, sn_after(SN_S(3600)));
}

static int w_recv_n(void)
{
    int v[3];
    return (int)sn_chan_recv_n(at.empty, v, 3, SN_FOREVER);
}

static int w_select(void)
{
    int v;
    sn_case cases[] = {sn_case_recv(at.empty, &v), sn_case_send(at.full, &v),
                       sn_case_recv(at.nobody, &v)};
    return sn_select(cases, 3, 0, SN_FOREVER);
}

static int w_select_outside(void)
{
    int v;
    sn_sleep_state sleep;
    sn_future *fut = sn_sleep_op(&sleep, sn_after(SN_S(3600)));
    sn_case cases[] = {sn_case_recv(at.empty, &v), sn_case_fd(at.fds[0], SN_READABLE),
                       sn_case_join(at.endless), sn_case_deadline(sn_after(SN_S(3600))),
                       sn_case_future(fut)};
    int rc = sn_select(cases, 5, 0, SN_FOREVER);
    CHECK_EQ(sn_future_drop(fut), 0);
    return rc;
}

static int w_await(void)
{
    sn_sleep_state sleep;
    sn_future *fut = sn_sleep_op(&sleep, sn_after(SN_S(3600)));
    int rc = sn_await(fut, SN_FOREVER);
    CHECK_EQ(sn_future_drop(fut), 0);
    return rc;
}

static int w_broadcast(void)
{
    return sn_broadcast_recv(&at.sub, &(int){0}, SN_FOREVER);
}

static int w_watch(void)
{
    uint64_t version = at.version;
    return sn_watch_recv(at.watch, &(int){0}, &version, SN_FOREVER);
}

static int w_mutex(void)
{
    return sn_mutex_lock(&at.mutex, SN_FOREVER);
}

static int w_cond(void)
{
    CHECK_EQ(sn_mutex_lock(&at.free_mutex, SN_NOWAIT), 0);
    int rc = sn_cond_wait(&at.cond, &at.free_mutex, SN_FOREVER);
    CHECK_EQ(sn_mutex_unlock(&at.free_mutex), 0); /* it was held again */
    return rc;
}

static int w_write_lock(void)
{
    return sn_rwlock_lock(&at.read, SN_FOREVER);
}

static int w_read_lock(void)
{
    return sn_rwlock_lock_shared(&at.written, SN_FOREVER);
}

static int w_sem(void)
{
    return sn_sem_acquire(&at.sem, 3, SN_FOREVER);
}

static int w_event(void)
{
    return sn_event_wait(&at.event, sn_after(SN_S(3600)));
}

static int w_group(void)
{
    return sn_wait_group_wait(&at.group, SN_FOREVER);
}

static int w_latch(void)
{
    return sn_latch_wait(&at.latch, SN_FOREVER);
}

static int w_barrier(void)
{
    return sn_barrier_wait(&at.barrier, SN_FOREVER);
}

static int w_once(void)
{
    return sn_once_begin(&at.once, SN_FOREVER);
}

static int w_sleep(void)
{
    return sn_sleep(SN_S(3600));
}

static int w_join(void)
{
    sn_exit how;
    int rc = sn_join(at.endless, &how);
    CHECK_EQ(how.kind, SN_EXIT_NONE);
    return rc;
}

static int w_read(void)
{
    char buf[16];
    return (int)sn_read(at.pair[0], buf, sizeof(buf), SN_FOREVER);
}

static int w_read_until(void)
{
    char buf[16];
    size_t done = 99;
    int rc = sn_read_exact(at.pair[0], buf, sizeof(buf), &done, sn_after(SN_S(3600)));
    CHECK_EQ(done, 0);
    return rc;
}

static int w_conn_wait(void)
{
    return sn_conn_wait(at.pair[0], SN_READABLE, SN_FOREVER);
}

static int w_accept(void)
{
    sn_conn *conn;
    return sn_accept(at.listener, &conn, NULL, SN_FOREVER);
}

static int w_dgram(void)
{
    char buf[16];
    return (int)sn_recv_from(at.dgram, buf, sizeof(buf), NULL, SN_FOREVER);
}

static int w_fd(void)
{
    return sn_wait_fd(at.fds[0], SN_READABLE, SN_FOREVER);
}

static int sleep_in_vain(void *arg)
{
    (void)arg;
    return sn_sleep(SN_S(3600));
}

static int w_timeout(void)
{
    return sn_timeout(sleep_in_vain, NULL, SN_S(1800));
}

static const struct {
    const char *name;
    int (*wait)(void);
} waits[] = {
    {"recv", w_recv},
    {"send", w_send},
    {"meet", w_meet},
    {"recv_n", w_recv_n},
    {"select", w_select},
    {"select outside", w_select_outside},
    {"await", w_await},
    {"broadcast", w_broadcast},
    {"watch", w_watch},
    {"mutex", w_mutex},
    {"cond", w_cond},
    {"write lock", w_write_lock},
    {"read lock", w_read_lock},
    {"sem", w_sem},
    {"event", w_event},
    {"wait group", w_group},
    {"latch", w_latch},
    {"barrier", w_barrier},
    {"once", w_once},
    {"sleep", w_sleep},
    {"join", w_join},
    {"read", w_read},
    {"read_exact", w_read_until},
    {"conn_wait", w_conn_wait},
    {"accept", w_accept},
    {"recv_from", w_dgram},
    {"wait_fd", w_fd},
    {"timeout", w_timeout},
};

enum { WAITS = sizeof(waits) / sizeof(waits[0]) };

/* How often the task lets others run before it waits, and its canceller before it cancels: who is
 * first, and by how much. */
struct visit {
    int which, before;
    SNI_ATOMIC(uint32_t) began;
};

static int wait_and_tell(void *arg)
{
    struct visit *v = arg;
    sni_atomic_store(&v->began, 1, release); /* release: pairs with cancel_after */
    for (int i = 0; i < v->before; i++)
        sn_yield();
    int rc = waits[v->which].wait();
    if (rc != -ECANCELED || !sn_cancelled())
        FAIL("%s: %d", waits[v->which].name, rc);
    rc = waits[v->which].wait(); /* once more: the task is cancelled, not the call */
    if (rc != -ECANCELED)
        FAIL("%s, again: %d", waits[v->which].name, rc);
    return rc;
}

static void cancel_after(int which, int before, int turns)
{
    struct visit v = {.which = which, .before = before};
    sn_exit how;
    sn_task *t = sn_spawn(wait_and_tell, &v);
    while (sni_atomic_load(&v.began, acquire) == 0) /* acquire: pairs with wait_and_tell */
        sn_yield();
    for (int i = 0; i < turns; i++)
        sn_yield();
    CHECK_EQ(sn_cancel(t, &how), -ECANCELED);
    CHECK_EQ(how.kind, SN_EXIT_CANCELED);
}

TASK_TEST(whoever_waits_learns_of_its_cancellation_and_leaves_no_trace)
{
    (void)arg;
    prepare();
    for (int which = 0; which < WAITS; which++)
        for (int turns = 0; turns < 6; turns++)
            cancel_after(which, turns % 3, turns);
    check_and_finish();
    return 0;
}

/* On two workers and on each driver: who waits, who waits not yet, who is just woken. */
static int cancel_at_any_time(void *arg)
{
    (void)arg;
    prepare();
    for (int round = 0; round < 40; round++)
        for (int which = 0; which < WAITS; which++) {
            struct visit v = {.which = which, .before = round % 3};
            sn_task *t = sn_spawn(wait_and_tell, &v);
            for (volatile int spin = 0; spin < round * 40; spin++)
                continue;
            CHECK_EQ(sn_cancel(t, NULL), -ECANCELED);
        }
    check_and_finish();
    return 0;
}

static void on_driver(const char *name)
{
    CHECK_EQ(setenv("SINEW_IO", name, 1), 0);
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 2}, cancel_at_any_time, NULL), 0);
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, cancel_at_any_time, NULL), 0);
}

TEST(cancelling_at_any_time_leaves_no_trace_with_epoll, .limit_s = 60)
{
    on_driver("epoll");
}

TEST(cancelling_at_any_time_leaves_no_trace_with_poll, .limit_s = 60)
{
    on_driver("poll");
}

TEST(cancelling_at_any_time_leaves_no_trace_with_the_best_driver, .limit_s = 60)
{
    CHECK_EQ(unsetenv("SINEW_IO"), 0);
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 2}, cancel_at_any_time, NULL), 0);
}

/* ---- what is not cancelled ------------------------------------------------------------------- */

/* Who is cancelled while it cancels another one waits for that one's end all the same. */
static int slow_to_go(void *arg)
{
    bool *gone = arg;
    while (!sn_cancelled())
        sn_yield();
    for (int i = 0; i < 5; i++)
        sn_yield();
    *gone = true;
    return 3;
}

static int cancel_another(void *arg)
{
    bool *gone = arg;
    sn_task *t = sn_spawn(slow_to_go, gone);
    CHECK_EQ(sn_cancel(t, NULL), 3);
    CHECK(*gone);
    return sn_sleep(SN_S(3600)); /* and is not shielded any more */
}

TASK_TEST(a_cancel_waits_for_the_end_although_it_is_cancelled_itself)
{
    (void)arg;
    bool gone = false;
    sn_task *t = sn_spawn(cancel_another, &gone);
    sn_yield();
    CHECK_EQ(sn_cancel(t, NULL), -ECANCELED);
    CHECK(gone);
    return 0;
}

/* Whose wait for a condition is cancelled gets the mutex back, also if it must wait for that. */
static sn_mutex shared_mutex;
static sn_cond never_signalled;

static int wait_for_condition(void *arg)
{
    (void)arg;
    if (sn_mutex_lock(&shared_mutex, SN_FOREVER) < 0)
        return -ECANCELED; /* the other one was faster, and so was who cancels */
    int rc = sn_cond_wait(&never_signalled, &shared_mutex, SN_FOREVER);
    CHECK_EQ(sn_mutex_unlock(&shared_mutex), 0);
    return rc;
}

static int hold_for_some_turns(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_mutex_lock(&shared_mutex, SN_FOREVER), 0);
    for (int i = 0; i < 50; i++)
        sn_yield();
    return sn_mutex_unlock(&shared_mutex);
}

TASK_TEST(who_is_cancelled_at_a_condition_waits_for_its_mutex)
{
    (void)arg;
    shared_mutex = (sn_mutex)SN_MUTEX_INIT;
    never_signalled = (sn_cond)SN_COND_INIT;
    sn_task *waiter = sn_spawn(wait_for_condition, NULL);
    for (int i = 0; i < 5; i++)
        sn_yield();
    sn_task *holder = sn_spawn(hold_for_some_turns, NULL);
    for (int i = 0; i < 5; i++)
        sn_yield();
    CHECK_EQ(sn_cancel(waiter, NULL), -ECANCELED);
    return sn_join(holder, NULL);
}

/* What need not wait takes place. */
static int use_what_is_there(void *arg)
{
    sn_chan *ch = arg;
    int v = 0;
    while (!sn_cancelled())
        sn_yield();
    CHECK_EQ(sn_chan_send(ch, &(int){4}, SN_FOREVER), 0);
    CHECK_EQ(sn_chan_recv(ch, &v, SN_FOREVER), 0);
    CHECK_EQ(v, 4);
    return sn_chan_recv(ch, &v, SN_FOREVER);
}

TASK_TEST(a_cancelled_task_may_use_what_is_there)
{
    (void)arg;
    sn_chan *ch;
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), 1, NULL), 0);
    CHECK_EQ(sn_cancel(sn_spawn(use_what_is_there, ch), NULL), -ECANCELED);
    CHECK_EQ(sn_chan_destroy(ch), 0);
    return 0;
}

/* The one who waits next gets what a cancelled one had been given, or was about to. */
static int lock_and_hold(void *arg)
{
    int rc = sn_mutex_lock(arg, SN_FOREVER);
    return rc < 0 ? rc : sn_mutex_unlock(arg);
}

TASK_TEST(a_lock_that_was_handed_to_a_cancelled_one_goes_to_the_next)
{
    (void)arg;
    for (int turns = 0; turns < 6; turns++) {
        sn_mutex m = turns % 2 == 0 ? (sn_mutex)SN_MUTEX_INIT : (sn_mutex)SN_MUTEX_FAIR_INIT;
        CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
        sn_task *first = sn_spawn(lock_and_hold, &m);
        for (int i = 0; i < turns; i++)
            sn_yield();
        sn_task *second = sn_spawn(lock_and_hold, &m);
        for (int i = 0; i < turns; i++)
            sn_yield();
        CHECK_EQ(sn_mutex_unlock(&m), 0);
        int rc = sn_cancel(first, NULL);
        CHECK(rc == 0 || rc == -ECANCELED);
        CHECK_EQ(sn_join(second, NULL), 0);
        CHECK_EQ(sn_mutex_finish(&m), 0);
    }
    return 0;
}

/* ---- coroutines ------------------------------------------------------------------------------ */

static SNI_ATOMIC(uint32_t) has_begun; /* what has not begun has nothing to clean up */

typedef struct waits_long {
    sn_coro coro;
    int which, rc;
    bool *cleaned;
    union {
        sn_chan_op chan;
        sn_sync_state sync;
        sn_sleep_state sleep;
        sn_io_state io;
        sn_join_state join;
    } op;
    char buf[8];
    int v;
} waits_long;

static sn_future *nth_op(waits_long *self)
{
    switch (self->which) {
    case 0:
        return sn_chan_recv_op(&self->op.chan, at.empty, &self->v);
    case 1:
        return sn_mutex_lock_op(&self->op.sync, &at.mutex);
    case 2:
        return sn_sleep_op(&self->op.sleep, sn_after(SN_S(3600)));
    case 3:
        return sn_read_op(&self->op.io, at.pair[0], self->buf, sizeof(self->buf));
    case 4:
        return sn_join_op(&self->op.join, at.endless, NULL);
    default:
        return sn_event_wait_op(&self->op.sync, &at.event);
    }
}

SN_CORO(waits_long, self)
{
    SN_BEGIN(self);
    sni_atomic_store(&has_begun, 1, release); /* release: pairs with who cancels it */
    SN_AWAIT_INTO(self->rc, nth_op(self));
    FAIL("it went on with %d", self->rc);
    SN_FINALLY();
    *self->cleaned = true;
    SN_END();
}

TASK_TEST(a_coroutine_that_waits_is_cancelled_and_cleans_up)
{
    (void)arg;
    prepare();
    for (int which = 0; which < 6; which++)
        for (int turns = 1; turns < 4; turns++) {
            bool cleaned = false;
            sn_exit how;
            waits_long frame = {.which = which, .cleaned = &cleaned};
            sni_atomic_store(&has_begun, 0, relaxed); /* relaxed: it is not spawned yet */
            sn_task *t = sn_spawn_coro(waits_long, &frame);
            while (sni_atomic_load(&has_begun, acquire) ==
                   0) /* acquire: pairs with the coroutine */
                sn_yield();
            for (int i = 1; i < turns; i++)
                sn_yield();
            CHECK_EQ(sn_cancel(t, &how), -ECANCELED);
            CHECK_EQ(how.kind, SN_EXIT_CANCELED);
            CHECK(cleaned);
        }
    check_and_finish();
    return 0;
}
