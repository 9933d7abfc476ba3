/* SPDX-License-Identifier: MIT */
/* Select (R92): one case takes place and the others have done nothing; fair, ordered, with default
 * branch; among fibers, threads and coroutines. Several of the tests ask what the programs in Go's
 * test/chan ask: fairness, double select, non-blocking, closed and nil channels, the sieve. */
#include "unit/task/with_runtime.h"

#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static sn_chan *make(size_t bytes, size_t capacity)
{
    sn_chan *ch = NULL;
    CHECK_EQ(sn_chan_create(&ch, bytes, capacity, NULL), 0);
    return ch;
}

static int send_int(sn_chan *ch, int v, sn_deadline until)
{
    return sn_chan_send(ch, &v, until);
}

static int recv_int(sn_chan *ch, sn_deadline until)
{
    int v = -1;
    int rc = sn_chan_recv(ch, &v, until);
    return rc < 0 ? rc : v;
}

/* ---- without waiting ------------------------------------------------------------------------ */

TEST(the_default_branch_is_taken_when_nothing_can_happen)
{
    sn_chan *full = make(sizeof(int), 1), *empty = make(sizeof(int), 1);
    int v = 1, w = 2;
    CHECK_EQ(send_int(full, 7, SN_NOWAIT), 0);
    sn_case cases[] = {sn_case_send(full, &v), sn_case_recv(empty, &w)};
    CHECK_EQ(sn_select(cases, 2, 0, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_select(cases, 2, 0, sn_after(SN_MS(1))), -ETIMEDOUT);
    CHECK_EQ(sn_chan_len(full), 1);
    CHECK_EQ(w, 2);
    CHECK_EQ(recv_int(full, SN_NOWAIT), 7);
    CHECK_EQ(sn_select(cases, 2, 0, SN_NOWAIT), 0);
    CHECK_EQ(cases[0].result, 0);
    CHECK_EQ(recv_int(full, SN_NOWAIT), 1);
    CHECK_EQ(send_int(empty, 9, SN_NOWAIT), 0);
    CHECK_EQ(send_int(full, 7, SN_NOWAIT), 0);
    CHECK_EQ(sn_select(cases, 2, 0, SN_FOREVER), 1);
    CHECK_EQ(w, 9);
    CHECK_EQ(sn_chan_destroy(full) | sn_chan_destroy(empty), 0);
}

TEST(a_select_of_nothing_times_out)
{
    CHECK_EQ(sn_select(NULL, 0, 0, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_select(NULL, 0, 0, sn_after(SN_MS(1))), -ETIMEDOUT);
}

TEST(what_is_no_case_is_refused)
{
    sn_chan *ch = make(sizeof(int), 1);
    int v;
    sn_case cases[SN_SELECT_MAX + 1];
    for (int i = 0; i <= SN_SELECT_MAX; i++)
        cases[i] = sn_case_recv(ch, &v);
    CHECK_EQ(sn_select(cases, SN_SELECT_MAX + 1, 0, SN_NOWAIT), -EINVAL);
    CHECK_EQ(sn_select(cases, SN_SELECT_MAX, 0, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_select(cases, 1, 8, SN_NOWAIT), -EINVAL);
    CHECK_EQ(sn_select(NULL, 1, 0, SN_NOWAIT), -EINVAL);
    memset(cases, 0, sizeof(cases));
    CHECK_EQ(sn_select(cases, 1, 0, SN_NOWAIT), -EINVAL);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

TEST(a_case_without_a_channel_never_takes_place)
{
    sn_chan *ch = make(sizeof(int), 1);
    int v = 3;
    sn_case cases[] = {sn_case_send(NULL, &v), sn_case_recv(NULL, &v), sn_case_send(ch, &v)};
    CHECK_EQ(sn_select(cases, 2, 0, sn_after(SN_MS(1))), -ETIMEDOUT);
    CHECK_EQ(sn_select(cases, 3, 0, SN_FOREVER), 2);
    CHECK_EQ(sn_select(cases, 3, 0, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

TEST(a_closed_channel_takes_place_with_epipe)
{
    sn_chan *ch = make(sizeof(int), 2), *other = make(sizeof(int), 0);
    int v = 3, w = 4;
    CHECK_EQ(send_int(ch, 1, SN_NOWAIT), 0);
    CHECK_EQ(sn_chan_close(ch), 0);
    sn_case recv[] = {sn_case_recv(ch, &v), sn_case_recv(other, &w)};
    CHECK_EQ(sn_select(recv, 2, 0, SN_FOREVER), 0);
    CHECK_EQ(recv[0].result, 0);
    CHECK_EQ(v, 1);
    CHECK_EQ(sn_select(recv, 2, 0, SN_FOREVER), 0);
    CHECK_EQ(recv[0].result, -EPIPE);
    sn_case send[] = {sn_case_recv(other, &w), sn_case_send(ch, &v)};
    CHECK_EQ(sn_select(send, 2, 0, SN_FOREVER), 1);
    CHECK_EQ(send[1].result, -EPIPE);
    CHECK_EQ(sn_chan_destroy(ch) | sn_chan_destroy(other), 0);
}

TEST(of_several_that_can_each_is_chosen_as_often)
{
    enum { N = 5, ROUNDS = 20000 };
    sn_chan *ch[N];
    sn_case cases[N];
    int count[N] = {0}, v = 0;
    for (int i = 0; i < N; i++) {
        ch[i] = make(sizeof(int), 1);
        cases[i] = sn_case_recv(ch[i], &v);
    }
    for (int i = 1; i < N; i++) /* the first never can: its share goes to all others alike */
        CHECK_EQ(send_int(ch[i], i, SN_NOWAIT), 0);
    for (int k = 0; k < ROUNDS; k++) {
        int i = sn_select(cases, N, 0, SN_NOWAIT);
        CHECK_EQ(i, v);
        count[i]++;
        CHECK_EQ(send_int(ch[i], i, SN_NOWAIT), 0);
    }
    CHECK_EQ(count[0], 0);
    for (int i = 1; i < N; i++) /* 5000 each, with a deviation of 61: eight of them are allowed */
        CHECK(count[i] > 4500 && count[i] < 5500);
    for (int i = 0; i < N; i++)
        CHECK_EQ(sn_chan_destroy(ch[i]), 0);
}

TEST(in_order_the_first_that_can_is_chosen)
{
    sn_chan *a = make(sizeof(int), 100), *b = make(sizeof(int), 100);
    int v;
    sn_case cases[] = {sn_case_recv(a, &v), sn_case_recv(b, &v)};
    for (int i = 0; i < 100; i++)
        CHECK_EQ(send_int(a, i, SN_NOWAIT) | send_int(b, i, SN_NOWAIT), 0);
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(sn_select(cases, 2, SN_SELECT_ORDERED, SN_NOWAIT), i / 100);
        CHECK_EQ(v, i % 100);
    }
    CHECK_EQ(sn_chan_destroy(a) | sn_chan_destroy(b), 0);
}

TEST(a_select_does_not_meet_itself)
{
    sn_chan *ch = make(sizeof(int), 0);
    int v = 1, w = 2;
    sn_case cases[] = {sn_case_send(ch, &v), sn_case_recv(ch, &w), sn_case_send(ch, &v),
                       sn_case_recv(ch, &w)};
    CHECK_EQ(sn_select(cases, 4, 0, sn_after(SN_MS(1))), -ETIMEDOUT);
    CHECK_EQ(w, 2);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

#ifndef SINEW_DEBUG
TEST(a_select_with_a_channel_that_is_gone_is_an_error)
{
    sn_chan *ch = make(sizeof(int), 1);
    int v;
    sn_case c = sn_case_recv(ch, &v);
    CHECK_EQ(sn_chan_destroy(ch), 0);
    CHECK_EQ(sn_select(&c, 1, 0, SN_NOWAIT), -EBADF);
}
#endif

TEST(a_oneshot_in_a_select_closes_for_all_who_wait)
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    sn_chan *ch;
    sn_chan_op op[2];
    int v = 6, got[2] = {0, 0};
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), 1, &(sn_chan_options){.oneshot = true}), 0);
    for (int i = 0; i < 2; i++)
        CHECK(sn_poll_pending(sn_future_poll(sn_chan_recv_op(&op[i], ch, &got[i]), &cx)));
    sn_case c = sn_case_send(ch, &v);
    CHECK_EQ(sn_select(&c, 1, 0, SN_NOWAIT), 0);
    CHECK_EQ(c.result, 0);
    CHECK_EQ(sn_future_poll(&op[0].future_, &cx).value, 0);
    CHECK_EQ(sn_future_poll(&op[1].future_, &cx).value, -EPIPE);
    CHECK_EQ(got[0], 6);
    CHECK_EQ(sn_select(&c, 1, 0, SN_NOWAIT), 0);
    CHECK_EQ(c.result, -EPIPE);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

/* ---- waiting -------------------------------------------------------------------------------- */

struct pair {
    sn_chan *a, *b;
    int from, to, result;
};

static int send_one(void *arg)
{
    struct pair *p = arg;
    return send_int(p->a, p->from, SN_FOREVER);
}

TASK_TEST(a_select_that_waits_is_served_by_one_of_its_cases)
{
    (void)arg;
    for (int k = 0; k < 20; k++) {
        sn_chan *ch[3] = {make(sizeof(int), 0), make(sizeof(int), 1), make(sizeof(int), 0)};
        struct pair p = {.a = ch[k % 3], .from = k};
        int v = -1;
        sn_case cases[] = {sn_case_recv(ch[0], &v), sn_case_recv(ch[1], &v),
                           sn_case_recv(ch[2], &v)};
        sn_task *t = sn_spawn(send_one, &p);
        CHECK_EQ(sn_select(cases, 3, 0, SN_FOREVER), k % 3);
        CHECK_EQ(v, k);
        CHECK_EQ(sn_join(t, NULL), 0);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(send_int(ch[i], 5, SN_NOWAIT), i == 1 ? 0 : -ETIMEDOUT); /* no trace */
            CHECK_EQ(sn_chan_destroy(ch[i]), 0);
        }
    }
    return 0;
}

static int close_it(void *arg)
{
    return sn_chan_close(arg);
}

TASK_TEST(a_close_ends_a_select_that_waits)
{
    (void)arg;
    sn_chan *a = make(sizeof(int), 0), *b = make(sizeof(int), 0);
    int v = 1;
    sn_case cases[] = {sn_case_recv(a, &v), sn_case_send(b, &v)};
    sn_task *t = sn_spawn(close_it, b);
    CHECK_EQ(sn_select(cases, 2, 0, SN_FOREVER), 1);
    CHECK_EQ(cases[1].result, -EPIPE);
    CHECK_EQ(sn_join(t, NULL), 0);
    CHECK_EQ(sn_chan_destroy(a) | sn_chan_destroy(b), 0);
    return 0;
}

/* Each of the two sends on one channel and receives on the other, whichever comes first. */
static int send_or_receive(void *arg)
{
    struct pair *p = arg;
    int received = 0, sent = 0;
    while (sent < p->to || received < p->to) {
        int v = -1;
        sn_case cases[] = {sn_case_send(sent < p->to ? p->a : NULL, &sent),
                           sn_case_recv(received < p->to ? p->b : NULL, &v)};
        int i = sn_select(cases, 2, 0, SN_FOREVER);
        CHECK_EQ(cases[i].result, 0);
        if (i == 0)
            sent++;
        else
            CHECK_EQ(v, received++);
    }
    return 0;
}

TASK_TEST(two_selects_meet_from_both_sides)
{
    (void)arg;
    for (size_t capacity = 0; capacity < 3; capacity++) {
        sn_chan *a = make(sizeof(int), capacity), *b = make(sizeof(int), capacity);
        struct pair p = {a, b, 0, 300, 0}, q = {b, a, 0, 300, 0};
        sn_task *t = sn_spawn(send_or_receive, &p);
        sn_task *u = sn_spawn(send_or_receive, &q);
        CHECK_EQ(sn_join(t, NULL), 0);
        CHECK_EQ(sn_join(u, NULL), 0);
        CHECK_EQ(sn_chan_destroy(a) | sn_chan_destroy(b), 0);
    }
    return 0;
}

/* All send and receive on the same rendezvous, so that each meets another one. */
enum { DANCERS = 10, DANCES = 100 };

static atomic_int danced[DANCERS * DANCES];

static int dance(void *arg)
{
    struct pair *p = arg;
    int sent = 0, received = 0;
    while (sent < DANCES) {
        int v = -1, mine = p->from * DANCES + sent;
        sn_case cases[] = {sn_case_send(p->a, &mine), sn_case_recv(p->a, &v)};
        int i = sn_select(cases, 2, 0, sn_after(SN_MS(100)));
        if (i == -ETIMEDOUT)
            continue; /* the last ones have nobody to dance with */
        CHECK_EQ(cases[i].result, 0);
        if (i == 0) {
            sent++;
        } else {
            atomic_fetch_add(&danced[v], 1);
            received++;
        }
    }
    p->result = received;
    for (;;) { /* until all have sent */
        int v = recv_int(p->a, SN_FOREVER);
        if (v == -EPIPE)
            return 0;
        atomic_fetch_add(&danced[v], 1);
    }
}

TASK_TEST(selects_on_both_sides_of_one_rendezvous_meet_each_other)
{
    (void)arg;
    sn_chan *ch = make(sizeof(int), 0);
    struct pair p[DANCERS];
    sn_task *t[DANCERS];
    for (int i = 0; i < DANCERS * DANCES; i++)
        atomic_store(&danced[i], 0);
    for (int i = 0; i < DANCERS; i++) {
        p[i] = (struct pair){.a = ch, .from = i};
        t[i] = sn_spawn(dance, &p[i]);
    }
    for (;;) {
        int sum = 0;
        for (int i = 0; i < DANCERS * DANCES; i++)
            sum += atomic_load(&danced[i]);
        if (sum == DANCERS * DANCES)
            break;
        int v = recv_int(ch, sn_after(SN_MS(1)));
        if (v >= 0)
            atomic_fetch_add(&danced[v], 1);
    }
    CHECK_EQ(sn_chan_close(ch), 0);
    for (int i = 0; i < DANCERS; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    for (int i = 0; i < DANCERS * DANCES; i++)
        CHECK_EQ(atomic_load(&danced[i]), 1);
    CHECK_EQ(sn_chan_destroy(ch), 0);
    return 0;
}

/* ---- double select: a value sent by a select over four channels goes to one of them --------- */

enum { DOUBLES = 500 };

struct four {
    sn_chan *ch[4], *out;
};

static int send_to_one_of_four(void *arg)
{
    struct four *f = arg;
    for (int i = 0; i < DOUBLES; i++) {
        sn_case cases[4];
        for (int k = 0; k < 4; k++)
            cases[k] = sn_case_send(f->ch[k], &i);
        CHECK(sn_select(cases, 4, 0, SN_FOREVER) >= 0);
    }
    for (int k = 0; k < 4; k++)
        CHECK_EQ(sn_chan_close(f->ch[k]), 0);
    return 0;
}

static int pass_on(void *arg)
{
    struct pair *p = arg;
    int v;
    while ((v = recv_int(p->a, SN_FOREVER)) >= 0)
        CHECK_EQ(send_int(p->b, v, SN_FOREVER), 0);
    return sn_chan_release(p->b, SN_CHAN_SENDER);
}

TASK_TEST(a_value_sent_by_a_select_arrives_once)
{
    (void)arg;
    struct four f = {.out = make(sizeof(int), 0)};
    struct pair p[4];
    sn_task *t[5];
    int seen[DOUBLES] = {0}, v;
    for (int k = 0; k < 4; k++) {
        f.ch[k] = make(sizeof(int), 0);
        CHECK_EQ(sn_chan_acquire(f.out, SN_CHAN_SENDER), 0);
        p[k] = (struct pair){.a = f.ch[k], .b = f.out};
        t[k] = sn_spawn(pass_on, &p[k]);
    }
    CHECK_EQ(sn_chan_release(f.out, SN_CHAN_SENDER), 0);
    t[4] = sn_spawn(send_to_one_of_four, &f);
    while ((v = recv_int(f.out, SN_FOREVER)) >= 0)
        seen[v]++;
    for (int i = 0; i < DOUBLES; i++)
        CHECK_EQ(seen[i], 1);
    for (int k = 0; k < 5; k++)
        CHECK_EQ(sn_join(t[k], NULL), 0);
    for (int k = 0; k < 4; k++)
        CHECK_EQ(sn_chan_destroy(f.ch[k]), 0);
    CHECK_EQ(sn_chan_release(f.out, SN_CHAN_RECEIVER), 0);
    return 0;
}

/* ---- the sieve ------------------------------------------------------------------------------ */

static int count_up(void *arg)
{
    for (int i = 2;; i++)
        if (send_int(arg, i, SN_FOREVER) < 0)
            return 0;
}

static int strain(void *arg)
{
    struct pair *p = arg;
    int v;
    while ((v = recv_int(p->a, SN_FOREVER)) >= 0)
        if (v % p->from != 0 && send_int(p->b, v, SN_FOREVER) < 0)
            break;
    (void)sn_chan_close(p->a);
    return 0;
}

TASK_TEST(a_sieve_of_channels_finds_the_primes)
{
    (void)arg;
    enum { N = 40 };
    static const int last = 173; /* the fortieth */
    struct pair p[N];
    sn_task *t[N + 1];
    sn_chan *ch[N + 1];
    ch[0] = make(sizeof(int), 0);
    t[N] = sn_spawn(count_up, ch[0]);
    int prime = 0;
    for (int i = 0; i < N; i++) {
        prime = recv_int(ch[i], SN_FOREVER);
        ch[i + 1] = make(sizeof(int), 0);
        p[i] = (struct pair){.a = ch[i], .b = ch[i + 1], .from = prime};
        t[i] = sn_spawn(strain, &p[i]);
    }
    CHECK_EQ(prime, last);
    CHECK_EQ(sn_chan_close(ch[N]), 0);
    for (int i = 0; i <= N; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    for (int i = 0; i <= N; i++)
        CHECK_EQ(sn_chan_destroy(ch[i]), 0);
    return 0;
}

/* ---- coroutines ----------------------------------------------------------------------------- */

typedef struct merger {
    sn_coro coro;
    sn_chan *from[2], *to;
    sn_case cases[2];
    sn_select_state select;
    sn_chan_op op;
    int value, open;
} merger;

/* Merge two channels into one, until both are closed. */
SN_CORO(merger, self)
{
    int i, rc;
    SN_BEGIN(self);
    for (self->open = 2; self->open > 0;) {
        for (i = 0; i < 2; i++)
            self->cases[i] = sn_case_recv(self->from[i], &self->value);
        SN_AWAIT_INTO(i, sn_select_op(&self->select, self->cases, 2, 0));
        if (i < 0)
            SN_RETURN(i);
        if (self->cases[i].result == -EPIPE) {
            self->from[i] = NULL;
            self->open--;
            continue;
        }
        SN_AWAIT_INTO(rc, sn_chan_send_op(&self->op, self->to, &self->value));
        if (rc < 0)
            SN_RETURN(rc);
    }
    sn_chan_close(self->to);
    SN_END();
}

static int send_some(void *arg)
{
    struct pair *p = arg;
    for (int i = p->from; i < p->to; i++)
        CHECK_EQ(send_int(p->a, i, SN_FOREVER), 0);
    return sn_chan_close(p->a);
}

TASK_TEST(a_coroutine_merges_two_channels)
{
    (void)arg;
    enum { N = 200 };
    for (size_t capacity = 0; capacity < 3; capacity++) {
        merger frame = {.from = {make(sizeof(int), capacity), make(sizeof(int), capacity)},
                        .to = make(sizeof(int), capacity)};
        struct pair p[2] = {{.a = frame.from[0], .to = N},
                            {.a = frame.from[1], .from = N, .to = 2 * N}};
        sn_task *t[3] = {sn_spawn(send_some, &p[0]), sn_spawn(send_some, &p[1]),
                         sn_spawn_coro(merger, &frame)};
        int seen[2 * N] = {0}, v;
        while ((v = recv_int(frame.to, SN_FOREVER)) >= 0)
            seen[v]++;
        for (int i = 0; i < 2 * N; i++)
            CHECK_EQ(seen[i], 1);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(sn_join(t[i], NULL), 0);
        CHECK_EQ(sn_chan_destroy(frame.from[0]) | sn_chan_destroy(frame.from[1]), 0);
        CHECK_EQ(sn_chan_destroy(frame.to), 0);
    }
    return 0;
}

TEST(a_select_that_is_dropped_leaves_no_trace_or_says_what_it_did)
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    sn_chan *a = make(sizeof(int), 0), *b = make(sizeof(int), 0);
    int v = 1, w = 2;
    sn_case cases[] = {sn_case_send(a, &v), sn_case_recv(b, &w)};
    sn_select_state s;
    CHECK(sn_poll_pending(sn_future_poll(sn_select_op(&s, cases, 2, 0), &cx)));
    CHECK_EQ(sn_future_drop(&s.future_), 0);
    CHECK_EQ(s.result, -ECANCELED);
    CHECK_EQ(recv_int(a, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(send_int(b, 4, SN_NOWAIT), -ETIMEDOUT);

    CHECK(sn_poll_pending(sn_future_poll(sn_select_op(&s, cases, 2, 0), &cx)));
    CHECK_EQ(send_int(b, 4, SN_NOWAIT), 0);
    CHECK_EQ(recv_int(a, SN_NOWAIT), -ETIMEDOUT); /* it has lost */
    CHECK_EQ(sn_future_drop(&s.future_), 0);
    CHECK_EQ(s.result, 1);
    CHECK_EQ(w, 4);
    CHECK_EQ(sn_future_drop(sn_select_op(&s, cases, 2, 0)), 0);

    CHECK(sn_poll_pending(sn_future_poll(sn_select_op(&s, cases, 2, 0), &cx)));
    CHECK_EQ(sn_chan_close(a), 0);
    CHECK_EQ(sn_future_poll(&s.future_, &cx).value, 0);
    CHECK_EQ(cases[0].result, -EPIPE);
    CHECK_EQ(sn_future_poll(sn_select_op(&s, cases, 65, 0), &cx).value, -EINVAL);
    CHECK_EQ(sn_chan_destroy(a) | sn_chan_destroy(b), 0);
}

/* ---- a storm -------------------------------------------------------------------------------- */

enum { CHANNELS = 4, FIBERS = 24, THREADS = 8, ACTORS = FIBERS + THREADS, VALUES = 300 };

static sn_chan *storm[CHANNELS];
static atomic_uchar sent[ACTORS * VALUES];
static atomic_uchar received[ACTORS * VALUES];
static atomic_int left;

/* Select over all channels, on both sides, now patient and now not; what is received is counted,
 * what was sent too. At the end, drain. */
static int act(void *arg)
{
    int me = (int)(intptr_t)arg, i = 0, next = 0;
    while (next < VALUES) {
        int mine = me * VALUES + next, got = -1;
        sn_case cases[2 * CHANNELS];
        for (int k = 0; k < CHANNELS; k++) {
            cases[2 * k] = sn_case_send(storm[(k + me) % CHANNELS], &mine);
            cases[2 * k + 1] = sn_case_recv(storm[k], &got); /* all into one place */
        }
        sn_deadline until = i % 3 == 0 ? SN_NOWAIT : sn_after(SN_US(20 * (i % 7)));
        int rc = sn_select(cases, 2 * CHANNELS, 0, until);
        i++;
        if (rc == -ETIMEDOUT) {
            if (i % 5 == 0)
                next++; /* never sent */
            sn_yield();
            continue;
        }
        CHECK(rc >= 0);
        if (rc % 2 == 1) {
            if (cases[rc].result == 0)
                atomic_fetch_add(&received[got], 1);
        } else if (cases[rc].result == 0) {
            atomic_fetch_add(&sent[mine], 1);
            next++;
        }
    }
    if (atomic_fetch_sub(&left, 1) == 1)
        for (int k = 0; k < CHANNELS; k++)
            CHECK_EQ(sn_chan_close(storm[k]), 0);
    for (int k = 0; k < CHANNELS; k++) {
        int v;
        while ((v = recv_int(storm[k], SN_FOREVER)) >= 0)
            atomic_fetch_add(&received[v], 1);
        CHECK_EQ(v, -EPIPE);
    }
    return 0;
}

static void *act_as_thread(void *arg)
{
    CHECK_EQ(act(arg), 0);
    return NULL;
}

static int storm_body(void *arg)
{
    (void)arg;
    sn_task *t[FIBERS];
    pthread_t thread[THREADS];
    for (int i = 0; i < FIBERS; i++)
        t[i] = sn_spawn(act, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, act_as_thread, (void *)(intptr_t)(FIBERS + i)),
                 0);
    for (int i = 0; i < FIBERS; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    return 0;
}

static void weather(const sn_runtime_options *opts)
{
    static const size_t capacities[CHANNELS] = {0, 0, 1, SN_CHAN_UNBOUNDED};
    memset((void *)sent, 0, sizeof(sent));
    memset((void *)received, 0, sizeof(received));
    atomic_store(&left, ACTORS);
    for (int k = 0; k < CHANNELS; k++)
        storm[k] = make(sizeof(int), capacities[k]);
    CHECK_EQ(run_with(opts, storm_body, NULL), 0);
    for (int v = 0; v < ACTORS * VALUES; v++)
        if (sent[v] != received[v] || sent[v] > 1)
            FAIL("value %d: sent %d times, received %d times", v, sent[v], received[v]);
    for (int k = 0; k < CHANNELS; k++)
        CHECK_EQ(sn_chan_destroy(storm[k]), 0);
}

TEST(a_storm_of_selects_conserves_values_with_two_workers, .limit_s = 60)
{
    weather(&(sn_runtime_options){.workers = 2});
}

TEST(a_storm_of_selects_conserves_values_with_four_workers, .limit_s = 60)
{
    weather(&(sn_runtime_options){.workers = 4});
}

TEST(a_storm_of_selects_conserves_values_single_threaded, .limit_s = 60)
{
    weather(&(sn_runtime_options){.single_threaded = true});
}
