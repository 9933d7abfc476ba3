/* SPDX-License-Identifier: MIT */
/* What the programs in Go's test/chan ask of channels and select, asked of ours in our own words
 * (R91, R92): first in, first out, through chains; one select, one value, however many channels and
 * however often the same one; nobody is starved; what must wait waits, and what need not does not;
 * a select that waits costs no memory; a close reaches everybody. test_go_lines.c has the part that
 * can be said in lines. */
#include "unit/task/with_runtime.h"

#include "harness.h"

#include <stdatomic.h>
#include <string.h>

static sn_chan *make(size_t capacity)
{
    sn_chan *ch = NULL;
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), capacity, NULL), 0);
    return ch;
}

static void send_int(sn_chan *ch, int v)
{
    CHECK_EQ(sn_chan_send(ch, &v, SN_FOREVER), 0);
}

static int recv_int(sn_chan *ch)
{
    int v = -1, rc = sn_chan_recv(ch, &v, SN_FOREVER);
    return rc < 0 ? rc : v;
}

/* ---- first in, first out --------------------------------------------------------------------- */

enum { IN_A_ROW = 10 };

TASK_TEST(what_is_sent_first_comes_out_first)
{
    (void)arg;
    sn_chan *ch = make(IN_A_ROW);
    for (int i = 0; i < IN_A_ROW; i++)
        send_int(ch, i);
    for (int i = 0; i < IN_A_ROW; i++)
        CHECK_EQ(recv_int(ch), i);
    return sn_chan_destroy(ch);
}

struct link {
    sn_chan *in, *out, *values;
    int number;
};

/* Takes its value when the one before it has. */
static int take_in_turn(void *arg)
{
    struct link *l = arg;
    CHECK_EQ(recv_int(l->in), l->number);
    CHECK_EQ(recv_int(l->values), l->number);
    send_int(l->out, l->number + 1);
    return 0;
}

TASK_TEST(a_chain_hands_on_whose_turn_it_is)
{
    (void)arg;
    sn_chan *values = make(0), *turn[IN_A_ROW + 1];
    struct link l[IN_A_ROW];
    sn_task *t[IN_A_ROW];
    turn[0] = make(0);
    for (int i = 0; i < IN_A_ROW; i++) {
        turn[i + 1] = make(0);
        l[i] = (struct link){turn[i], turn[i + 1], values, i};
        t[i] = sn_spawn(take_in_turn, &l[i]);
    }
    send_int(turn[0], 0);
    for (int i = 0; i < IN_A_ROW; i++)
        send_int(values, i);
    CHECK_EQ(recv_int(turn[IN_A_ROW]), IN_A_ROW);
    for (int i = 0; i < IN_A_ROW; i++)
        CHECK_EQ(sn_join(t[i], NULL) | sn_chan_destroy(turn[i]), 0);
    return sn_chan_destroy(turn[IN_A_ROW]) | sn_chan_destroy(values);
}

/* ---- fairness -------------------------------------------------------------------------------- */

struct supply {
    sn_chan *ch, *stop;
    int value;
};

/* Sends for ever, until it is told to stop by a close. */
static int supply(void *arg)
{
    const struct supply *s = arg;
    for (;;) {
        sn_case cases[] = {sn_case_send(s->ch, &s->value), sn_case_recv(s->stop, NULL)};
        int which = sn_select(cases, 2, 0, SN_FOREVER);
        if (which != 0)
            return which == 1 && cases[1].result == -EPIPE ? 0 : -EINVAL;
    }
}

/* Two channels with busy suppliers: none is forgotten for the other. */
static int be_fair(void *arg)
{
    size_t capacity = *(size_t *)arg;
    enum { ROUNDS = 2000 };
    sn_chan *stop = make(0);
    struct supply s[2] = {{make(capacity), stop, 0}, {make(capacity), stop, 1}};
    sn_task *t[2] = {sn_spawn(supply, &s[0]), sn_spawn(supply, &s[1])};
    int got[2] = {0, 0};
    for (int i = 0; i < ROUNDS; i++) {
        int v = -1;
        sn_yield(); /* so that both have something, and it is the select that chooses */
        sn_case cases[] = {sn_case_recv(s[0].ch, &v), sn_case_recv(s[1].ch, &v)};
        int which = sn_select(cases, 2, 0, SN_FOREVER);
        CHECK_EQ(v, which);
        got[which]++;
    }
    CHECK_EQ(got[0] + got[1], ROUNDS);
    CHECK(got[0] > ROUNDS * 4 / 10 && got[1] > ROUNDS * 4 / 10); /* 9 deviations */
    CHECK_EQ(sn_chan_close(stop), 0);
    CHECK_EQ(sn_join(t[0], NULL) | sn_join(t[1], NULL), 0);
    return sn_chan_destroy(s[0].ch) | sn_chan_destroy(s[1].ch) | sn_chan_destroy(stop);
}

/* On one worker, first come, first served: else it is the scheduler that a supplier must get past,
 * before the select sees it. */
TEST(a_select_is_fair_to_rendezvous_with_busy_suppliers)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, be_fair, &(size_t){0}), 0);
}

TEST(a_select_is_fair_to_full_channels)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, be_fair, &(size_t){10}), 0);
}

/* Its own channel, always ready for both: sent and received about as often. */
TEST(a_select_that_could_send_and_receive_does_both)
{
    enum { ROUNDS = 4000, ROOM = ROUNDS };
    sn_chan *ch = make(2 * ROOM);
    int counts[2] = {0, 0};
    for (int i = 0; i < ROOM; i++)
        send_int(ch, i);
    for (int i = 0; i < ROUNDS; i++) {
        int v = i, w = -1;
        sn_case cases[] = {sn_case_send(ch, &v), sn_case_recv(ch, &w)};
        int which = sn_select(cases, 2, 0, SN_NOWAIT);
        CHECK(which == 0 || which == 1);
        counts[which]++;
    }
    CHECK(counts[0] > ROUNDS * 4 / 10 && counts[1] > ROUNDS * 4 / 10); /* 12 deviations */
    CHECK_EQ(sn_chan_len(ch), ROOM + counts[0] - counts[1]);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

/* ---- double select --------------------------------------------------------------------------- */

enum { VALUES = 2000, WAYS = 4 };

struct many_ways {
    sn_chan *way[WAYS], *all;
    int differ; /* how many of the ways are different channels */
};

static int send_some_way(void *arg)
{
    struct many_ways *m = arg;
    for (int v = 0; v < VALUES; v++) {
        sn_case cases[WAYS];
        for (int i = 0; i < WAYS; i++)
            cases[i] = sn_case_send(m->way[i % m->differ], &v);
        int which = sn_select(cases, WAYS, 0, SN_FOREVER);
        CHECK(which >= 0 && cases[which].result == 0);
    }
    for (int i = 0; i < m->differ; i++)
        CHECK_EQ(sn_chan_close(m->way[i]), 0);
    return 0;
}

struct mouth {
    sn_chan *from, *to;
};

static int forward(void *arg)
{
    const struct mouth *m = arg;
    int v;
    while ((v = recv_int(m->from)) >= 0)
        send_int(m->to, v);
    return sn_chan_release(m->to, SN_CHAN_SENDER);
}

/* One value is offered at four places at once, and taken at one of them. */
static int take_double(int differ, int mouths)
{
    struct many_ways m = {.all = make(0), .differ = differ};
    struct mouth mouth[2 * WAYS];
    sn_task *t[2 * WAYS + 1];
    static unsigned char seen[VALUES];
    for (int i = 0; i < differ; i++)
        m.way[i] = make(0);
    for (int i = 0; i < mouths; i++) {
        mouth[i] = (struct mouth){m.way[i % differ], m.all};
        CHECK_EQ(sn_chan_acquire(m.all, SN_CHAN_SENDER), 0);
        t[i] = sn_spawn(forward, &mouth[i]);
    }
    t[mouths] = sn_spawn(send_some_way, &m);
    CHECK_EQ(sn_chan_release(m.all, SN_CHAN_SENDER), 0);
    memset(seen, 0, sizeof(seen));
    int v, count = 0;
    while ((v = recv_int(m.all)) >= 0) {
        CHECK_EQ(seen[v]++, 0);
        count++;
    }
    CHECK_EQ(v, -EPIPE);
    CHECK_EQ(count, VALUES);
    for (int i = 0; i <= mouths; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    for (int i = 0; i < differ; i++)
        CHECK_EQ(sn_chan_destroy(m.way[i]), 0);
    return sn_chan_release(m.all, SN_CHAN_RECEIVER);
}

TASK_TEST(a_value_offered_by_four_channels_is_taken_once)
{
    (void)arg;
    return take_double(4, 4);
}

TASK_TEST(a_value_offered_four_times_by_one_channel_is_taken_once)
{
    (void)arg;
    return take_double(1, 4);
}

TASK_TEST(a_value_offered_by_two_channels_twice_is_taken_once)
{
    (void)arg;
    return take_double(2, 8);
}

/* ---- a select that lost leaves nothing behind ------------------------------------------------ */

struct three {
    sn_chan *a, *b, *done;
};

static int take_from_either(void *arg)
{
    const struct three *c = arg;
    int v = -1;
    sn_case cases[] = {sn_case_recv(c->a, &v), sn_case_recv(c->a, &v), sn_case_recv(c->b, &v)};
    int which = sn_select(cases, 3, 0, SN_FOREVER);
    CHECK_EQ(which, 2); /* only that one is ever sent to */
    send_int(c->done, v);
    return 0;
}

static int take_from_the_first(void *arg)
{
    const struct three *c = arg;
    send_int(c->done, 100 + recv_int(c->a));
    return 0;
}

/* The select stands twice in the line of `a` and between others; when it has gone by `b`, those
 * others are still there. */
TASK_TEST(one_that_leaves_a_line_leaves_the_others_in_it)
{
    (void)arg;
    for (int round = 0; round < 20; round++) {
        struct three c = {make(0), make(0), make(8)};
        sn_task *t[4];
        t[0] = sn_spawn(take_from_the_first, &c);
        t[1] = sn_spawn(take_from_either, &c);
        t[2] = sn_spawn(take_from_the_first, &c);
        t[3] = sn_spawn(take_from_the_first, &c);
        for (int i = 0; i < round; i++)
            sn_yield();
        send_int(c.b, 1);
        CHECK_EQ(recv_int(c.done), 1);
        for (int i = 0; i < 3; i++)
            send_int(c.a, i);
        int sum = 0;
        for (int i = 0; i < 3; i++)
            sum += recv_int(c.done);
        CHECK_EQ(sum, 303);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(sn_join(t[i], NULL), 0);
        CHECK_EQ(sn_chan_destroy(c.a) | sn_chan_destroy(c.b) | sn_chan_destroy(c.done), 0);
    }
    return 0;
}

#ifdef SINEW_HARNESS_WRAP
struct steady {
    sn_chan *busy, *silent, *answer;
    int rounds;
};

static int echo_steadily(void *arg)
{
    const struct steady *s = arg;
    for (int i = 0; i < s->rounds; i++) {
        int v = -1, w = -1;
        sn_case cases[] = {sn_case_recv(s->silent, &w), sn_case_recv(s->busy, &v)};
        CHECK_EQ(sn_select(cases, 2, 0, SN_FOREVER), 1);
        send_int(s->answer, v);
    }
    return 0;
}

/* Thousands of selects that waited at a channel where nothing ever happens. */
static int wait_in_vain(void *arg)
{
    (void)arg;
    struct steady s = {make(0), make(0), make(0), 5000};
    sn_task *t = sn_spawn(echo_steadily, &s);
    uint64_t before = 0;
    for (int i = 0; i < s.rounds; i++) {
        if (i == 100)
            before = alloc_count();
        send_int(s.busy, i);
        CHECK_EQ(recv_int(s.answer), i);
    }
    CHECK_EQ(alloc_count(), before);
    CHECK_EQ(sn_join(t, NULL), 0);
    return sn_chan_destroy(s.busy) | sn_chan_destroy(s.silent) | sn_chan_destroy(s.answer);
}

TEST(selects_that_wait_in_vain_at_a_channel_cost_no_memory)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, wait_in_vain, NULL), 0);
}
#endif

/* ---- who waits and who need not -------------------------------------------------------------- */

enum how { SEND, RECV, SELECT_SEND, SELECT_RECV, SELECT_BOTH };

struct attempt {
    sn_chan *ch;
    enum how how;
    int rc;
};

static int attempt(void *arg)
{
    struct attempt *a = arg;
    int v = 1, w = -1;
    sn_deadline until = sn_after(SN_S(1)); /* of a clock that jumps when nobody can go on */
    sn_case send = sn_case_send(a->ch, &v), recv = sn_case_recv(a->ch, &w);
    sn_case both[] = {send, recv};
    switch (a->how) {
    case SEND:
        a->rc = sn_chan_send(a->ch, &v, until);
        break;
    case RECV:
        a->rc = sn_chan_recv(a->ch, &w, until);
        break;
    case SELECT_SEND:
        a->rc = sn_select(&send, 1, 0, until);
        break;
    case SELECT_RECV:
        a->rc = sn_select(&recv, 1, 0, until);
        break;
    default:
        a->rc = sn_select(both, 2, 0, until);
    }
    return 0;
}

static bool waits(sn_chan *ch, enum how how)
{
    struct attempt a = {ch, how, 0};
    sn_task *t = sn_spawn(attempt, &a);
    CHECK_EQ(sn_join(t, NULL), 0);
    CHECK(a.rc == -ETIMEDOUT || a.rc >= 0 || a.rc == -EPIPE);
    return a.rc == -ETIMEDOUT;
}

static int wait_or_not(void *arg)
{
    (void)arg;
    sn_chan *meet = make(0), *full = make(1), *empty = make(1), *over = make(1);
    send_int(full, 0);
    CHECK_EQ(sn_chan_close(over), 0);
    for (unsigned k = SEND; k <= SELECT_BOTH; k++) {
        enum how how = (enum how)k;
        bool sends = how == SEND || how == SELECT_SEND;
        bool receives = how == RECV || how == SELECT_RECV;
        CHECK(waits(meet, how)); /* also for itself */
        CHECK(!waits(over, how));
        CHECK_EQ(waits(full, how), sends);
        if (how != SEND && !sends)
            CHECK_EQ(sn_chan_len(full), 0);
        while (sn_chan_len(full) == 0)
            send_int(full, 0);
        CHECK_EQ(waits(empty, how), receives);
        while (sn_chan_len(empty) > 0)
            CHECK_EQ(recv_int(empty), 1);
        if (how >= SELECT_SEND)
            CHECK(waits(NULL, how)); /* for ever, were there no deadline */
    }
    return sn_chan_destroy(meet) | sn_chan_destroy(full) | sn_chan_destroy(empty) |
           sn_chan_destroy(over);
}

TEST(what_must_wait_waits_and_what_need_not_does_not)
{
    sn_runtime_options opts = {.single_threaded = true, .virtual_time = true};
    CHECK_EQ(run_with(&opts, wait_or_not, NULL), 0);
}

/* ---- all variants of one meeting ------------------------------------------------------------- */

struct meeting {
    sn_chan *ch, *idle;
    int variant, value;
};

/* Plain, by a select of one, of two, or trying again and again. */
static int meet_as_sender(void *arg)
{
    struct meeting *m = arg;
    sn_case one = sn_case_send(m->ch, &m->value);
    sn_case two[] = {sn_case_recv(m->idle, NULL), one};
    switch (m->variant) {
    case 0:
        return sn_chan_send(m->ch, &m->value, SN_FOREVER);
    case 1:
        return sn_select(&one, 1, 0, SN_FOREVER);
    case 2:
        return sn_select(two, 2, 0, SN_FOREVER) - 1;
    default:
        while (sn_chan_send(m->ch, &m->value, SN_NOWAIT) == -ETIMEDOUT)
            sn_yield();
        return 0;
    }
}

static int meet_as_receiver(struct meeting *m)
{
    int v = -1, rc;
    sn_case one = sn_case_recv(m->ch, &v);
    sn_case two[] = {sn_case_recv(m->idle, NULL), one};
    switch (m->variant) {
    case 0:
        rc = sn_chan_recv(m->ch, &v, SN_FOREVER);
        break;
    case 1:
        rc = sn_select(&one, 1, 0, SN_FOREVER);
        break;
    case 2:
        rc = sn_select(two, 2, 0, SN_FOREVER) - 1;
        break;
    default:
        while ((rc = sn_chan_recv(m->ch, &v, SN_NOWAIT)) == -ETIMEDOUT)
            sn_yield();
    }
    CHECK_EQ(rc, 0);
    return v;
}

TASK_TEST(all_kinds_of_senders_meet_all_kinds_of_receivers)
{
    (void)arg;
    enum { KINDS = 4 };
    for (size_t capacity = 0; capacity <= 1; capacity++)
        for (int k = 0; k < KINDS * KINDS; k++) {
            if (capacity == 0 && k == KINDS * KINDS - 1)
                continue; /* two who only try may miss each other for ever */
            sn_chan *ch = make(capacity), *idle = make(0);
            struct meeting s = {ch, idle, k / KINDS, 40 + k}, r = {ch, idle, k % KINDS, 0};
            sn_task *t = sn_spawn(meet_as_sender, &s);
            CHECK_EQ(meet_as_receiver(&r), 40 + k);
            CHECK_EQ(sn_join(t, NULL), 0);
            CHECK_EQ(sn_chan_destroy(ch) | sn_chan_destroy(idle), 0);
        }
    return 0;
}

/* ---- many cases, and a close ----------------------------------------------------------------- */

static atomic_int closed_at[SN_SELECT_MAX];

struct crowd {
    sn_chan *ch[SN_SELECT_MAX];
};

/* Waits at all channels, a closed one is switched off, until none is left. */
static int wait_for_all(void *arg)
{
    const struct crowd *c = arg;
    int v[SN_SELECT_MAX];
    sn_case cases[SN_SELECT_MAX];
    for (int i = 0; i < SN_SELECT_MAX; i++) {
        v[i] = 0;
        cases[i] = i % 2 == 0 ? sn_case_recv(c->ch[i], &v[i]) : sn_case_send(c->ch[i], &v[i]);
    }
    for (int left = SN_SELECT_MAX; left > 0; left--) {
        int i = sn_select(cases, SN_SELECT_MAX, 0, SN_FOREVER);
        CHECK(i >= 0);
        CHECK_EQ(cases[i].result, -EPIPE);
        atomic_fetch_add(&closed_at[i], 1);
        cases[i] = sn_case_recv(NULL, NULL);
    }
    CHECK_EQ(sn_select(cases, SN_SELECT_MAX, 0, SN_NOWAIT), -ETIMEDOUT);
    return 0;
}

TASK_TEST(a_select_of_many_cases_hears_of_every_close)
{
    (void)arg;
    enum { WAITERS = 5 };
    struct crowd c;
    sn_task *t[WAITERS];
    for (int i = 0; i < SN_SELECT_MAX; i++) {
        c.ch[i] = make(0);
        atomic_store(&closed_at[i], 0);
    }
    for (int i = 0; i < WAITERS; i++)
        t[i] = sn_spawn(wait_for_all, &c, .stack_bytes = 128 << 10);
    for (int i = 0; i < SN_SELECT_MAX; i++) {
        if (i % 3 == 0)
            sn_yield();
        CHECK_EQ(sn_chan_close(c.ch[(i * 37) % SN_SELECT_MAX]), 0);
    }
    for (int i = 0; i < WAITERS; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    for (int i = 0; i < SN_SELECT_MAX; i++) {
        CHECK_EQ(atomic_load(&closed_at[i]), WAITERS);
        CHECK_EQ(sn_chan_destroy(c.ch[i]), 0);
    }
    return 0;
}

/* ---- what is no channel ---------------------------------------------------------------------- */

#ifndef SINEW_DEBUG
TEST(a_channel_that_is_null_is_refused_by_all_plain_calls)
{
    int v = 0;
    CHECK_EQ(sn_chan_send(NULL, &v, SN_NOWAIT), -EBADF);
    CHECK_EQ(sn_chan_recv(NULL, &v, SN_NOWAIT), -EBADF);
    CHECK_EQ(sn_chan_send_n(NULL, &v, 1, SN_NOWAIT), -EBADF);
    CHECK_EQ(sn_chan_recv_n(NULL, &v, 1, SN_NOWAIT), -EBADF);
    CHECK_EQ(sn_chan_close(NULL), -EBADF);
    CHECK_EQ(sn_chan_len(NULL), 0);
    CHECK_EQ(sn_chan_cap(NULL), 0);
}
#endif
