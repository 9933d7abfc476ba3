/* SPDX-License-Identifier: MIT */
/* Cancelling a task that waits (R61): what is particular to some calls. What holds for all of them
 * is the law, see law.h. */
#include "unit/task/with_runtime.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- a descriptor, where there is none ------------------------------------------------------- */

static sn_listener *listener;

/* An accept that waits for a descriptor sleeps, now and then, and is cancelled there. */
static int accept_in_vain(void *arg)
{
    sn_conn *conn;
    bool when_cancelled = *(bool *)arg;
    while (when_cancelled && !sn_cancelled())
        sn_yield();
    return sn_accept(listener, &conn, NULL, SN_FOREVER);
}

static void connect_to_listener(sn_conn **out)
{
    sn_addr where;
    char text[SN_ADDR_TEXT_MAX];
    CHECK_EQ(sn_listener_addr(listener, &where), 0);
    CHECK_GT(sn_addr_format(&where, text, sizeof(text)), 0);
    CHECK_EQ(sn_connect(out, text, SN_FOREVER), 0);
}

static int cancel_without_descriptors(void *arg)
{
    (void)arg;
    sn_conn *near, *far;
    struct rlimit before;
    CHECK_EQ(sn_listen(&listener, "127.0.0.1:0", NULL), 0);
    CHECK_EQ(sn_accept(listener, &far, NULL, sn_after(SN_MS(1))), -ETIMEDOUT);
    connect_to_listener(&near);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(0);
    CHECK_EQ(close(next), 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next, before.rlim_max}), 0);
    for (int i = 0; i < 6; i++) {
        bool when_cancelled = i % 2 == 0;
        sn_task *t = sn_spawn(accept_in_vain, &when_cancelled);
        CHECK_EQ(sn_sleep(SN_US(300) * i), 0);
        CHECK_EQ(sn_cancel(t, NULL), -ECANCELED);
    }
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_EQ(sn_accept(listener, &far, NULL, SN_FOREVER), 0); /* nothing was lost */
    CHECK_EQ(sn_close(near) | sn_close(far) | sn_listener_close(listener), 0);
    return 0;
}

TEST(who_accepts_is_cancelled_also_while_there_is_no_descriptor_left, .limit_s = 30)
{
    const sn_io_driver drivers[] = {SN_IO_AUTO, SN_IO_EPOLL, SN_IO_POLL};
    for (int i = 0; i < 3; i++) {
        const sn_runtime_options one = {.io = drivers[i], .single_threaded = true};
        const sn_runtime_options two = {.io = drivers[i], .workers = 2};
        CHECK_EQ(run_with(&one, cancel_without_descriptors, NULL), 0);
        CHECK_EQ(run_with(&two, cancel_without_descriptors, NULL), 0);
    }
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

/* ---- a runtime that goes away ---------------------------------------------------------------- */

/* R151: a thread cancels tasks while their runtime is shut down without waiting for them. */
static sn_group *cancelled_late;
static sn_task *early_sleeper;

static int sleep_long(void *arg)
{
    (void)arg;
    return sn_sleep(SN_S(3600));
}

static int join_the_early_one(void *arg)
{
    (void)arg;
    return sn_join(early_sleeper, NULL);
}

static int join_a_late_one(void *arg)
{
    return sn_join(sn_spawn(sleep_long, arg), NULL);
}

static int own_two_who_join(void *arg)
{
    (void)arg;
    SN_SCOPE(g) {
        cancelled_late = g;
        (void)sn_group_spawn(g, join_the_early_one, NULL);
        (void)sn_group_spawn(g, join_a_late_one, NULL);
    }
    return 0;
}

static int leave_two_who_join(void *arg)
{
    early_sleeper = sn_spawn(sleep_long, arg);
    CHECK_EQ(sn_spawn_detached(own_two_who_join, arg), 0);
    for (int i = 0; i < 4; i++)
        sn_yield();
    return 0;
}

/* Their joins are cancelled, and they never learn it; the handles are good again, and nobody's. */
TEST(joins_that_are_cancelled_and_given_up_keep_nothing)
{
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true}), 0);
    CHECK_EQ(sn_runtime_block_on(rt, leave_two_who_join, NULL), 0);
    sn_group_cancel(cancelled_late, NULL);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_NOWAIT), 5);
    sn_runtime_destroy(rt);
    CHECK_EQ(sn_detach(early_sleeper), -ESRCH);
}

enum { LEFT = 12 };

static sn_chan *silent;
static sn_task *left[LEFT];
static atomic_int go;

static int receive_nothing(void *arg)
{
    int v;
    (void)arg;
    return sn_chan_recv(silent, &v, SN_FOREVER);
}

static int join_a_sleeper(void *arg)
{
    sn_task *volatile t = sn_spawn(sleep_long, arg); /* compilers would object to its second use */
    int rc = sn_join(t, NULL);
    return rc == -ECANCELED ? sn_cancel(t, NULL) : rc;
}

typedef struct receiver {
    sn_coro coro;
    sn_chan_op op;
    int v, rc;
} receiver;

SN_CORO(receiver, self)
{
    SN_BEGIN(self);
    SN_AWAIT_INTO(self->rc, sn_chan_recv_op(&self->op, silent, &self->v));
    SN_RETURN(self->rc);
    SN_END();
}

static int leave_many(void *arg)
{
    static sn_task_fn *const fns[] = {sleep_long, receive_nothing, join_a_sleeper};
    (void)arg;
    for (int i = 0; i < LEFT; i++)
        left[i] =
            i % 4 == 3 ? sn_spawn_coro(receiver, &(receiver){.rc = 0}) : sn_spawn(fns[i % 4], NULL);
    for (int i = 0; i < 4; i++)
        sn_yield();
    return 0;
}

static void *cancel_all_that_are_left(void *arg)
{
    (void)arg;
    while (atomic_load(&go) == 0) {
    }
    for (int i = 0; i < LEFT; i++) {
        int rc = sn_cancel(left[i], NULL);
        if (rc != -ECANCELED && rc != -ESRCH)
            return left[i];
    }
    return NULL;
}

TEST(a_thread_may_cancel_tasks_that_their_runtime_gives_up, .limit_s = 60)
{
    CHECK_EQ(sn_chan_create(&silent, sizeof(int), 0, NULL), 0);
    for (int round = 0; round < 60; round++) {
        sn_runtime *rt;
        pthread_t thread;
        void *wrong = &rt;
        atomic_store(&go, 0);
        CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
        CHECK_EQ(sn_runtime_block_on(rt, leave_many, NULL), 0);
        CHECK_EQ(pthread_create(&thread, NULL, cancel_all_that_are_left, NULL), 0);
        atomic_store(&go, 1);
        for (volatile int i = 0; i < round * 200; i++) {
        }
        CHECK_GE(sn_runtime_shutdown(rt, SN_NOWAIT), 0);
        sn_runtime_destroy(rt);
        CHECK_EQ(pthread_join(thread, &wrong), 0);
        CHECK(wrong == NULL);
    }
    CHECK_EQ(sn_chan_destroy(silent), 0);
}
