/* SPDX-License-Identifier: MIT */
/* law_chan.c - the rows of channels, selects and futures. See law.h. */
#include "unit/cancel/law.h"

static struct {
    sn_chan *chan;
    sn_broadcast *air;
    sn_subscription sub;
    sn_watch *watch;
    uint64_t version;
    sn_signal signal;
    sn_chan_op partner; /* of who waits on the other side of a rendezvous */
    int theirs;         /* its value                                      */
    int value;          /* of the call                                    */
    int many[5];
} at;

static void must(int rc)
{
    CHECK_EQ(rc, 0);
}

/* ---- an empty channel ------------------------------------------------------------------------ */

static void open_empty(void)
{
    at.value = 0;
    must(sn_chan_create(&at.chan, sizeof(int), 4, NULL));
}

static void let_empty(void)
{
    must(sn_chan_send(at.chan, &(int){41}, SN_NOWAIT));
}

static void close_empty(bool let, bool took)
{
    int v = 0;
    if (took)
        CHECK_EQ(at.value, 41);
    if (let && !took) {
        must(sn_chan_recv(at.chan, &v, SN_NOWAIT));
        CHECK_EQ(v, 41);
    }
    CHECK_EQ(sn_chan_recv(at.chan, &v, SN_NOWAIT), -ETIMEDOUT);
    must(sn_chan_send(at.chan, &(int){5}, SN_NOWAIT));
    must(sn_chan_recv(at.chan, &v, SN_NOWAIT));
    CHECK_EQ(v, 5);
    must(sn_chan_destroy(at.chan));
}

static const struct law_place empty = {.open = open_empty, .let = let_empty, .close = close_empty};

static ptrdiff_t recv_one(sn_deadline until)
{
    return sn_chan_recv(at.chan, &at.value, until);
}

static ptrdiff_t recv_many(sn_deadline until)
{
    ptrdiff_t n = sn_chan_recv_n(at.chan, at.many, 5, until);
    at.value = n > 0 ? at.many[0] : 0;
    return n;
}

static sn_future *recv_op(union law_memory *m)
{
    return sn_chan_recv_op(&m->chan, at.chan, &at.value);
}

static ptrdiff_t select_one(sn_deadline until)
{
    sn_case cases[] = {sn_case_deadline(SN_FOREVER), sn_case_recv(at.chan, &at.value),
                       sn_case_join(NULL)};
    int rc = sn_select(cases, 3, 0, until);
    if (rc >= 0)
        must(cases[rc].result);
    return rc;
}

static sn_future *select_op(union law_memory *m)
{
    m->select.cases[0] = sn_case_recv(NULL, NULL);
    m->select.cases[1] = sn_case_recv(at.chan, &at.value);
    return sn_select_op(&m->select.state, m->select.cases, 2, 0);
}

/* With a future among the cases, and a time. */
static ptrdiff_t select_future(sn_deadline until)
{
    sn_chan_op op;
    sn_future *fut = sn_chan_recv_op(&op, at.chan, &at.value);
    sn_case cases[] = {sn_case_deadline(sn_after(SN_S(3600))), sn_case_future(fut)};
    int rc = sn_select(cases, 2, 0, until);
    must(sn_future_drop(fut));
    return op.result == 0 ? 1 : rc; /* it may have got it just before it was dropped */
}

/* ---- a full one ------------------------------------------------------------------------------ */

static void open_full(void)
{
    must(sn_chan_create(&at.chan, sizeof(int), 1, NULL));
    must(sn_chan_send(at.chan, &(int){1}, SN_NOWAIT));
}

static void let_full(void)
{
    int v = 0;
    must(sn_chan_recv(at.chan, &v, SN_NOWAIT));
    CHECK_EQ(v, 1);
}

static void close_full(bool let, bool took)
{
    int v = 0;
    CHECK(let || !took);
    if (!let)
        let_full();
    if (took) {
        must(sn_chan_recv(at.chan, &v, SN_NOWAIT));
        CHECK_EQ(v, 42);
    }
    CHECK_EQ(sn_chan_recv(at.chan, &v, SN_NOWAIT), -ETIMEDOUT);
    must(sn_chan_send(at.chan, &(int){5}, SN_NOWAIT));
    CHECK_EQ(sn_chan_send(at.chan, &(int){5}, SN_NOWAIT), -ETIMEDOUT);
    must(sn_chan_destroy(at.chan));
}

static const struct law_place full = {.open = open_full, .let = let_full, .close = close_full};

static ptrdiff_t send_one(sn_deadline until)
{
    return sn_chan_send(at.chan, &(int){42}, until);
}

static ptrdiff_t send_many(sn_deadline until)
{
    return sn_chan_send_n(at.chan, &(int){42}, 1, until);
}

static sn_future *send_op(union law_memory *m)
{
    at.value = 42;
    return sn_chan_send_op(&m->chan, at.chan, &at.value);
}

static ptrdiff_t select_send(sn_deadline until)
{
    sn_case cases[] = {sn_case_send(at.chan, &(int){42}), sn_case_deadline(SN_FOREVER)};
    return sn_select(cases, 2, SN_SELECT_ORDERED, until);
}

/* ---- one with room for some, of those that are sent at once ---------------------------------- */

static void open_some(void)
{
    must(sn_chan_create(&at.chan, sizeof(int), 2, NULL));
}

static void close_some(bool let, bool took)
{
    int v = 0;
    (void)let, (void)took;
    for (int i = 0; i < 2; i++) { /* the first two, and no other one */
        must(sn_chan_recv(at.chan, &v, SN_NOWAIT));
        CHECK_EQ(v, 60 + i);
    }
    CHECK_EQ(sn_chan_recv(at.chan, &v, SN_NOWAIT), -ETIMEDOUT);
    must(sn_chan_destroy(at.chan));
}

static const struct law_place some_room = {.open = open_some, .close = close_some};

static ptrdiff_t send_five(sn_deadline until)
{
    return sn_chan_send_n(at.chan, (int[]){60, 61, 62, 63, 64}, 5, until);
}

/* ---- a rendezvous; who comes to it is a future that was polled once -------------------------- */

static void open_meeting(void)
{
    must(sn_chan_create(&at.chan, sizeof(int), 0, NULL));
}

static void let_meet_receiver(void)
{
    at.theirs = 0;
    (void)sn_await(sn_chan_recv_op(&at.partner, at.chan, &at.theirs), SN_NOWAIT);
}

static void let_meet_sender(void)
{
    at.theirs = 41;
    (void)sn_await(sn_chan_send_op(&at.partner, at.chan, &at.theirs), SN_NOWAIT);
}

static void close_meeting(bool let, bool took)
{
    int v;
    CHECK(let || !took);
    if (took && !sn_future_finished(&at.partner.future_))
        must(sn_await(&at.partner.future_, SN_FOREVER));
    else if (let)
        must(sn_future_drop(&at.partner.future_));
    if (let)
        CHECK_EQ(at.partner.result, took ? 0 : -ECANCELED);
    CHECK_EQ(sn_chan_send(at.chan, &(int){5}, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_chan_recv(at.chan, &v, SN_NOWAIT), -ETIMEDOUT);
    must(sn_chan_destroy(at.chan));
}

static void close_receiver(bool let, bool took)
{
    close_meeting(let, took);
    if (took)
        CHECK_EQ(at.theirs, 42); /* else what is there means nothing */
}

static void close_sender(bool let, bool took)
{
    close_meeting(let, took);
    if (took)
        CHECK_EQ(at.value, 41);
}

static const struct law_place meets_receiver = {
    .open = open_meeting, .let = let_meet_receiver, .close = close_receiver};
static const struct law_place meets_sender = {
    .open = open_meeting, .let = let_meet_sender, .close = close_sender};

/* ---- broadcast and watch --------------------------------------------------------------------- */

static void open_air(void)
{
    must(sn_broadcast_create(&at.air, sizeof(int), 4));
    must(sn_broadcast_subscribe(at.air, &at.sub));
}

static void let_air(void)
{
    must(sn_broadcast_send(at.air, &(int){6}));
}

static void close_air(bool let, bool took)
{
    if (!let)
        let_air();
    if (!took)
        must(sn_broadcast_recv(&at.sub, &at.value, SN_NOWAIT));
    CHECK_EQ(at.value, 6);
    CHECK_EQ(sn_broadcast_recv(&at.sub, &at.value, SN_NOWAIT), -ETIMEDOUT);
    must(sn_broadcast_destroy(at.air));
}

static const struct law_place air = {.open = open_air, .let = let_air, .close = close_air};

static ptrdiff_t hear(sn_deadline until)
{
    return sn_broadcast_recv(&at.sub, &at.value, until);
}

static sn_future *hear_op(union law_memory *m)
{
    return sn_broadcast_recv_op(&m->news, &at.sub, &at.value);
}

static void open_watch(void)
{
    at.version = 0;
    must(sn_watch_create(&at.watch, sizeof(int), &(int){3}));
    must(sn_watch_get(at.watch, &at.value, &at.version));
    CHECK_EQ(at.version, 1);
}

static void let_watch(void)
{
    must(sn_watch_set(at.watch, &(int){7}));
}

static void close_watch(bool let, bool took)
{
    CHECK_EQ(at.version, took ? 2 : 1);
    if (!let)
        let_watch();
    if (!took)
        must(sn_watch_recv(at.watch, &at.value, &at.version, SN_NOWAIT));
    CHECK_EQ(at.value, 7);
    CHECK_EQ(sn_watch_recv(at.watch, &at.value, &at.version, SN_NOWAIT), -ETIMEDOUT);
    must(sn_watch_destroy(at.watch));
}

static const struct law_place watched = {
    .open = open_watch, .let = let_watch, .close = close_watch};

static ptrdiff_t watch_one(sn_deadline until)
{
    return sn_watch_recv(at.watch, &at.value, &at.version, until);
}

static sn_future *watch_op(union law_memory *m)
{
    return sn_watch_recv_op(&m->news, at.watch, &at.value, &at.version);
}

/* ---- a signal, and the wait for any future --------------------------------------------------- */

static void open_signal(void)
{
    at.signal = (sn_signal)SN_SIGNAL_INIT;
}

static void let_signal(void)
{
    must(sn_signal_send(&at.signal, 8));
}

static void close_signal(bool let, bool took)
{
    if (!took) {
        if (!let)
            let_signal();
        CHECK_EQ(sn_await(sn_signal_recv_op(&at.signal), SN_NOWAIT), 8);
    }
    sn_future *fut = sn_signal_recv_op(&at.signal);
    CHECK_EQ(sn_await(fut, SN_NOWAIT), -ETIMEDOUT);
    must(sn_future_drop(fut));
}

static const struct law_place signalled = {
    .open = open_signal, .let = let_signal, .close = close_signal};

static ptrdiff_t await_signal(sn_deadline until)
{
    sn_future *fut = sn_signal_recv_op(&at.signal);
    int rc = sn_await(fut, until);
    CHECK_EQ(sn_future_finished(fut), rc > 0);
    must(sn_future_drop(fut));
    return rc;
}

static sn_future *signal_op(union law_memory *m)
{
    (void)m;
    return sn_signal_recv_op(&at.signal);
}

/* ---- the rows -------------------------------------------------------------------------------- */

static const struct law_row rows[] = {
    LAW(sn_chan_recv, .place = &empty, .plain = recv_one),
    LAW(sn_chan_recv, .variant = "rendezvous", .place = &meets_sender, .plain = recv_one),
    LAW(sn_chan_recv_n, .place = &empty, .plain = recv_many, .takes = 1),
    LAW(sn_chan_recv_op, .place = &empty, .op = recv_op, .flags = LAW_OF_CHANNELS),
    LAW(sn_chan_recv_op, .variant = "rendezvous", .place = &meets_sender, .op = recv_op,
        .flags = LAW_OF_CHANNELS),
    LAW(sn_chan_send, .place = &full, .plain = send_one),
    LAW(sn_chan_send, .variant = "rendezvous", .place = &meets_receiver, .plain = send_one),
    LAW(sn_chan_send_n, .place = &full, .plain = send_many, .takes = 1),
    LAW(sn_chan_send_n, .variant = "room for some", .place = &some_room, .plain = send_five,
        .partly = 2, .flags = LAW_PARTLY),
    LAW(sn_chan_send_op, .place = &full, .op = send_op, .flags = LAW_OF_CHANNELS),
    LAW(sn_chan_send_op, .variant = "rendezvous", .place = &meets_receiver, .op = send_op,
        .flags = LAW_OF_CHANNELS),
    LAW(sn_select, .place = &empty, .plain = select_one, .takes = 1),
    LAW(sn_select, .variant = "send", .place = &full, .plain = select_send),
    LAW(sn_select, .variant = "a future", .place = &empty, .plain = select_future, .takes = 1),
    LAW(sn_select_op, .place = &empty, .op = select_op, .takes = 1, .flags = LAW_OF_CHANNELS),
    LAW(sn_broadcast_recv, .place = &air, .plain = hear),
    LAW(sn_broadcast_recv_op, .place = &air, .op = hear_op),
    LAW(sn_watch_recv, .place = &watched, .plain = watch_one),
    LAW(sn_watch_recv_op, .place = &watched, .op = watch_op),
    LAW(sn_await, .place = &signalled, .plain = await_signal, .takes = 8),
    LAW(sn_signal_recv_op, .place = &signalled, .op = signal_op, .takes = 8),
};

const struct law_rows law_of_channels = {rows, sizeof(rows) / sizeof(rows[0])};
