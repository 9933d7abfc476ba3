/* SPDX-License-Identifier: MIT */
/* things.h - for tests of select: one thing of each kind, that can be made ready, and be asked
 * whether anything was taken from it. */
#ifndef SINEW_TESTS_THINGS_H
#define SINEW_TESTS_THINGS_H

#include "unit/task/with_runtime.h"

#include "harness.h"

#include <fcntl.h>
#include <unistd.h>

enum thing_kind {
    THING_RECV,
    THING_SEND,
    THING_BROADCAST,
    THING_WATCH,
    THING_DEADLINE,
    THING_JOIN,
    THING_FD,
    THING_FUTURE, /* of the runtime: a receive */
    THING_SIGNAL, /* of Level 0 */
    THING_KINDS,
};

struct thing {
    enum thing_kind kind;
    sn_chan *ch;
    sn_broadcast *cast;
    sn_subscription sub;
    sn_watch *watch;
    uint64_t version;
    sn_deadline at;
    sn_task *task;
    int fds[2];
    sn_chan_op op;
    sn_signal signal;
    sn_future *fut;
    int in, out;
};

static inline int thing_wait_for_go(void *arg)
{
    struct thing *t = arg;
    int v;
    return sn_chan_recv(t->ch, &v, SN_FOREVER) < 0 ? -1 : 7;
}

/* Something that is not ready. Of a task: inside a runtime. */
static inline void thing_open(struct thing *t, enum thing_kind kind)
{
    *t = (struct thing){.kind = kind, .in = 5, .out = -1, .at = sn_after(SN_S(3600))};
    CHECK_EQ(sn_chan_create(&t->ch, sizeof(int), 1, NULL), 0);
    switch (kind) {
    case THING_SEND:
        CHECK_EQ(sn_chan_send(t->ch, &t->in, SN_NOWAIT), 0);
        break;
    case THING_BROADCAST:
        CHECK_EQ(sn_broadcast_create(&t->cast, sizeof(int), 4), 0);
        CHECK_EQ(sn_broadcast_subscribe(t->cast, &t->sub), 0);
        break;
    case THING_WATCH:
        CHECK_EQ(sn_watch_create(&t->watch, sizeof(int), &t->in), 0);
        t->version = 1;
        break;
    case THING_JOIN:
        t->task = sn_spawn(thing_wait_for_go, t);
        CHECK(t->task != NULL);
        break;
    case THING_FD:
        CHECK_EQ(pipe2(t->fds, O_CLOEXEC | O_NONBLOCK), 0);
        break;
    case THING_FUTURE:
        t->fut = sn_chan_recv_op(&t->op, t->ch, &t->out);
        break;
    case THING_SIGNAL:
        t->fut = sn_signal_recv_op(&t->signal);
        break;
    default:
        break;
    }
}

static inline sn_case thing_case(struct thing *t)
{
    switch (t->kind) {
    case THING_RECV:
        return sn_case_recv(t->ch, &t->out);
    case THING_SEND:
        return sn_case_send(t->ch, &t->in);
    case THING_BROADCAST:
        return sn_case_broadcast(&t->sub, &t->out);
    case THING_WATCH:
        return sn_case_watch(t->watch, &t->out, &t->version);
    case THING_DEADLINE:
        return sn_case_deadline(t->at);
    case THING_JOIN:
        return sn_case_join(t->task);
    case THING_FD:
        return sn_case_fd(t->fds[0], SN_READABLE);
    default:
        return sn_case_future(t->fut);
    }
}

/* Make it ready; from any thread or task. A deadline: before its case is made. */
static inline void thing_fire(struct thing *t)
{
    int v = 9;
    switch (t->kind) {
    case THING_SEND:
        CHECK_EQ(sn_chan_recv(t->ch, &v, SN_NOWAIT), 0);
        break;
    case THING_BROADCAST:
        CHECK_EQ(sn_broadcast_send(t->cast, &v), 0);
        break;
    case THING_WATCH:
        CHECK_EQ(sn_watch_set(t->watch, &v), 0);
        break;
    case THING_DEADLINE:
        t->at = sn_after(0);
        break;
    case THING_FD:
        CHECK_EQ(write(t->fds[1], "x", 1), 1);
        break;
    case THING_SIGNAL:
        CHECK_EQ(sn_signal_send(&t->signal, 9), 0);
        break;
    default: /* a value: to be received, or for the task to end */
        CHECK_EQ(sn_chan_send(t->ch, &v, SN_NOWAIT), 0);
        break;
    }
}

/* Its case took place, with `result`: take what is to be taken, and see that it was there, once. */
static inline void thing_won(struct thing *t, int result)
{
    char byte = 0;
    int v = -1;
    switch (t->kind) {
    case THING_RECV:
    case THING_BROADCAST:
    case THING_WATCH:
    case THING_FUTURE:
        CHECK_EQ(result, 0);
        CHECK_EQ(t->out, 9);
        break;
    case THING_SEND:
        CHECK_EQ(result, 0);
        CHECK_EQ(sn_chan_recv(t->ch, &v, SN_NOWAIT), 0);
        CHECK_EQ(v, 5);
        break;
    case THING_DEADLINE:
        CHECK_EQ(result, 0);
        break;
    case THING_JOIN:
        CHECK_EQ(result, 0);
        CHECK_EQ(sn_join(t->task, NULL), 7);
        t->task = NULL;
        break;
    case THING_FD:
        CHECK_EQ(result, SN_READABLE);
        CHECK_EQ(read(t->fds[0], &byte, 1), 1);
        break;
    default:
        CHECK_EQ(result, 9);
        break;
    }
}

/* Its case lost, and it was not fired: it is as it was, and good for another time. */
static inline void thing_lost(struct thing *t)
{
    sn_case c = thing_case(t);
    CHECK_EQ(sn_select(&c, 1, 0, SN_NOWAIT), -ETIMEDOUT);
    thing_fire(t);
    do { /* what was fired may take a while: a task must end */
        c = thing_case(t);
        sn_yield();
    } while (sn_select(&c, 1, 0, SN_NOWAIT) == -ETIMEDOUT);
    thing_won(t, c.result);
}

static inline void thing_close(struct thing *t)
{
    if (t->fut != NULL)
        CHECK_EQ(sn_future_drop(t->fut), 0);
    if (t->task != NULL) {
        CHECK_EQ(sn_chan_close(t->ch), 0);
        (void)sn_join(t->task, NULL);
    }
    if (t->kind == THING_FD) {
        close(t->fds[0]);
        close(t->fds[1]);
    }
    CHECK_EQ(sn_broadcast_destroy(t->cast), 0);
    CHECK_EQ(sn_watch_destroy(t->watch), 0);
    CHECK_EQ(sn_chan_destroy(t->ch), 0);
}

#endif
