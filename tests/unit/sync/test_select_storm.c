/* SPDX-License-Identifier: MIT */
/* Selects over all kinds at once, under stress (R92): fibers, threads and coroutines whose selects
 * race with senders, time-outs, ends of tasks and closes. What was sent is received once, by a case
 * or by a future that lost some rounds before. */
#include "unit/task/with_runtime.h"

#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { FIBERS = 8, THREADS = 3, COROS = 6, SENDERS = 4, VALUES = 1500, TOTAL = SENDERS * VALUES };

static sn_chan *by_case, *by_future, *back;
static sn_broadcast *cast;
static sn_watch *watch;
static int fds[2];
static atomic_uchar received[TOTAL];

static void note(int v)
{
    CHECK(v >= 0 && v < TOTAL);
    atomic_fetch_add(&received[v], 1);
}

static int short_task(void *arg)
{
    sn_yield();
    return (int)(intptr_t)arg;
}

enum { RECV, FUTURE, SEND, CAST, WATCH, FD, TIME, END, CASES };

/* What one selector has, whatever it is. */
struct selector {
    sn_case cases[CASES];
    int got, by_op, sent;
    sn_chan_op op;
    sn_future *fut;
    sn_subscription sub;
    uint64_t version;
    int value, state;
    sn_task *task;
    unsigned rounds;
    bool may_spawn;
    bool case_closed, future_closed;
};

static void set_up(struct selector *s)
{
    if (s->fut == NULL && !s->future_closed)
        s->fut = sn_chan_recv_op(&s->op, by_future, &s->by_op);
    if (s->task == NULL && s->may_spawn)
        s->task = sn_spawn(short_task, (void *)(intptr_t)4);
    s->rounds++;
    s->cases[RECV] = sn_case_recv(s->case_closed ? NULL : by_case, &s->got);
    s->cases[FUTURE] = sn_case_future(s->fut);
    s->cases[SEND] = sn_case_send(s->rounds % 4 == 0 ? back : NULL, &s->sent);
    s->cases[CAST] = sn_case_broadcast(s->rounds % 3 == 0 ? &s->sub : NULL, &s->value);
    s->cases[WATCH] = sn_case_watch(s->rounds % 3 == 1 ? watch : NULL, &s->state, &s->version);
    s->cases[FD] = sn_case_fd(s->rounds % 5 == 0 ? fds[0] : -1, SN_READABLE);
    s->cases[TIME] = sn_case_deadline(sn_after(SN_US(10 * (s->rounds % 40))));
    s->cases[END] = sn_case_join(s->rounds % 2 == 0 ? s->task : NULL);
}

/* Case `i` took place. */
static void go_on(struct selector *s, int i)
{
    char byte;
    CHECK(i >= 0 && i < CASES);
    int rc = s->cases[i].result;
    switch (i) {
    case RECV:
        if (rc == 0)
            note(s->got);
        s->case_closed = rc == -EPIPE;
        break;
    case FUTURE:
        if (rc == 0)
            note(s->by_op);
        s->future_closed = rc == -EPIPE;
        s->fut = NULL;
        break;
    case CAST:
    case WATCH:
        CHECK(rc >= 0);
        break;
    case FD:
        CHECK(rc > 0);
        if (s->rounds % 2 == 0)
            (void)!read(fds[0], &byte, 1);
        break;
    case END:
        CHECK_EQ(rc, 0);
        CHECK_EQ(sn_join(s->task, NULL), 4);
        s->task = NULL;
        break;
    default:
        CHECK_EQ(rc, 0);
        break;
    }
}

static bool is_over(const struct selector *s)
{
    return s->case_closed && s->future_closed;
}

static void begin(struct selector *s, bool may_spawn)
{
    memset(s, 0, sizeof(*s));
    s->may_spawn = may_spawn;
    CHECK_EQ(sn_broadcast_subscribe(cast, &s->sub), 0);
}

static int act(void *arg)
{
    struct selector s;
    begin(&s, arg != NULL);
    while (!is_over(&s)) {
        set_up(&s);
        sn_deadline until = s.rounds % 7 == 0 ? SN_NOWAIT : sn_after(SN_US(20 * (s.rounds % 11)));
        int i = sn_select(s.cases, CASES, s.rounds % 2, until);
        if (i != -ETIMEDOUT)
            go_on(&s, i);
        else
            sn_yield();
    }
    if (s.task != NULL)
        CHECK_EQ(sn_join(s.task, NULL), 4);
    return 0;
}

static void *act_as_thread(void *arg)
{
    CHECK_EQ(act(arg), 0);
    return NULL;
}

typedef struct actor {
    sn_coro coro;
    struct selector *s;
    sn_select_state select;
    sn_join_state join;
} actor;

SN_CORO(actor, self)
{
    int i;
    SN_BEGIN(self);
    begin(self->s, true);
    while (!is_over(self->s)) {
        set_up(self->s);
        SN_AWAIT_INTO(i, sn_select_op(&self->select, self->s->cases, CASES, 0));
        go_on(self->s, i);
    }
    if (self->s->task != NULL) {
        SN_AWAIT_INTO(i, sn_join_op(&self->join, self->s->task, NULL));
        CHECK_EQ(i, 4);
    }
    SN_END();
}

static int send_all(void *arg)
{
    int me = (int)(intptr_t)arg;
    for (int k = 0; k < VALUES; k++) {
        int v = me * VALUES + k, got;
        CHECK_EQ(sn_chan_send(k % 2 == 0 ? by_case : by_future, &v, SN_FOREVER), 0);
        (void)!sn_chan_recv(back, &got, SN_NOWAIT);
        if (k % 3 == 0)
            CHECK_EQ(sn_broadcast_send(cast, &v) | sn_watch_set(watch, &v), 0);
        if (k % 4 == 0)
            (void)!write(fds[1], "x", 1);
        if (k % 64 == 0)
            CHECK_EQ(sn_sleep(SN_US(50)), 0);
    }
    return 0;
}

static int storm_body(void *arg)
{
    (void)arg;
    static struct selector states[COROS];
    sn_task *t[FIBERS + COROS], *senders[SENDERS];
    pthread_t thread[THREADS];
    for (int i = 0; i < FIBERS; i++)
        t[i] = sn_spawn(act, &states);
    for (int i = 0; i < COROS; i++) {
        actor frame = {.s = &states[i]};
        t[FIBERS + i] = sn_spawn_coro(actor, &frame);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, act_as_thread, NULL), 0);
    for (int i = 0; i < SENDERS; i++)
        senders[i] = sn_spawn(send_all, (void *)(intptr_t)i);
    for (int i = 0; i < SENDERS; i++)
        CHECK_EQ(sn_join(senders[i], NULL), 0);
    CHECK_EQ(sn_chan_close(by_case) | sn_chan_close(by_future), 0);
    for (int i = 0; i < FIBERS + COROS; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    return 0;
}

static void weather(const sn_runtime_options *opts)
{
    int v = 0;
    memset((void *)received, 0, sizeof(received));
    CHECK_EQ(sn_chan_create(&by_case, sizeof(int), 0, NULL), 0);
    CHECK_EQ(sn_chan_create(&by_future, sizeof(int), 1, NULL), 0);
    CHECK_EQ(sn_chan_create(&back, sizeof(int), 0, NULL), 0);
    CHECK_EQ(sn_broadcast_create(&cast, sizeof(int), 8), 0);
    CHECK_EQ(sn_watch_create(&watch, sizeof(int), &v), 0);
    CHECK_EQ(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    CHECK_EQ(run_with(opts, storm_body, NULL), 0);
    for (int i = 0; i < TOTAL; i++)
        if (received[i] != 1)
            FAIL("value %d was received %d times", i, received[i]);
    close(fds[0]);
    close(fds[1]);
    CHECK_EQ(sn_watch_destroy(watch) | sn_broadcast_destroy(cast), 0);
    CHECK_EQ(sn_chan_destroy(by_case) | sn_chan_destroy(by_future) | sn_chan_destroy(back), 0);
}

TEST(a_storm_of_all_kinds_loses_nothing_single_threaded, .limit_s = 60)
{
    weather(&(sn_runtime_options){.single_threaded = true});
}

TEST(a_storm_of_all_kinds_loses_nothing_with_epoll, .limit_s = 60)
{
    weather(&(sn_runtime_options){.workers = 4, .io = SN_IO_EPOLL});
}

TEST(a_storm_of_all_kinds_loses_nothing_with_poll, .limit_s = 60)
{
    weather(&(sn_runtime_options){.workers = 2, .io = SN_IO_POLL});
}

TEST(a_storm_of_all_kinds_loses_nothing_with_what_is_best, .limit_s = 60)
{
    weather(&(sn_runtime_options){.workers = 3});
}
