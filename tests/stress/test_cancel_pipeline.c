/* SPDX-License-Identifier: MIT */
/* A storm of cancels over a pipeline of channels (R61, R91): a rendezvous, two bounded ones and an
 * unbounded one in a ring, and tokens that go round in it, passed on by tasks that are cancelled
 * wherever they are. A token is with one task, in one channel, or was kept by who was cancelled
 * before it could pass it on: the law of conservation is that each of them is in one place, at each
 * step, and that all of them are there at the end. */
#include "cancel_storm.h"

#include <stdio.h>

enum { STAGES = 4, TOKENS = 40, MANY = 3 };

static struct {
    sn_chan *ch[STAGES];
    atomic_int held[TOKENS]; /* 1: by a task        */
    atomic_int kept[TOKENS]; /* 1: by who has gone  */
    atomic_long passed[STAGES], kept_times, got_when_dropped, sent_when_dropped;
} all;

static void take(int token)
{
    CHECK(token >= 0 && token < TOKENS);
    CHECK_EQ(atomic_exchange(&all.held[token], 1), 0);
}

static void let_go(int token)
{
    CHECK_EQ(atomic_exchange(&all.held[token], 0), 1);
}

static void keep(int token)
{
    CHECK_EQ(atomic_exchange(&all.kept[token], 1), 0);
    atomic_fetch_add(&all.kept_times, 1);
}

static sn_chan *next_of(int stage)
{
    return all.ch[(stage + 1) % STAGES];
}

/* What was kept goes into the unbounded one. */
static void bring_back(void)
{
    for (int i = 0; i < TOKENS; i++)
        if (atomic_load(&all.kept[i]) == 1 && atomic_exchange(&all.kept[i], 0) == 1)
            CHECK_EQ(sn_chan_send(all.ch[STAGES - 1], &i, SN_NOWAIT), 0);
}

/* ---- fibers ---------------------------------------------------------------------------------- */

static bool is_an_end(ptrdiff_t rc)
{
    return rc == -ECANCELED || rc == -ETIMEDOUT;
}

/* A future that is awaited, and dropped if that was in vain: it may have done it all the same. */
static int await_and_drop(sn_future *fut, const sn_chan_op *op, atomic_long *when_dropped,
                          sn_deadline until)
{
    int rc = sn_await(fut, until);
    if (sn_future_finished(fut))
        return rc;
    CHECK_EQ(sn_future_drop(fut), 0);
    if (op->result == 0)
        atomic_fetch_add(when_dropped, 1);
    return op->result == 0 ? 0 : rc;
}

static ptrdiff_t receive(struct dice *d, sn_chan *from, int *token)
{
    sn_chan_op op;
    sn_case cases[2];
    int rc;
    switch (roll(d) % 4) {
    case 0:
        return sn_chan_recv_n(from, token, MANY, some_time(d));
    case 1:
        cases[0] = sn_case_recv(from, token);
        cases[1] = sn_case_deadline(sn_after(SN_US(roll(d) % 500)));
        rc = sn_select(cases, 2, 0, SN_FOREVER);
        return rc == 0 ? 1 : rc == 1 ? -ETIMEDOUT : rc;
    case 2:
        rc = await_and_drop(sn_chan_recv_op(&op, from, token), &op, &all.got_when_dropped,
                            some_time(d));
        return rc == 0 ? 1 : rc;
    default:
        rc = sn_chan_recv(from, token, some_time(d));
        return rc == 0 ? 1 : rc;
    }
}

/* Returns how many have gone, or an error: none. */
static ptrdiff_t send(struct dice *d, sn_chan *to, const int *token, size_t n)
{
    sn_chan_op op;
    sn_case cases[2];
    int rc;
    switch (roll(d) % 4) {
    case 0:
        return sn_chan_send_n(to, token, n, some_time(d));
    case 1:
        cases[0] = sn_case_send(to, token);
        cases[1] = sn_case_send(NULL, token);
        rc = sn_select(cases, 2, 0, some_time(d));
        return rc == 0 ? 1 : rc;
    case 2:
        rc = await_and_drop(sn_chan_send_op(&op, to, token), &op, &all.sent_when_dropped,
                            some_time(d));
        return rc == 0 ? 1 : rc;
    default:
        rc = sn_chan_send(to, token, some_time(d));
        return rc == 0 ? 1 : rc;
    }
}

struct worker {
    struct dice dice;
    int stage;
};

static int pass_on(void *arg)
{
    struct worker w = *(struct worker *)arg;
    while (!sn_cancelled()) {
        int token[MANY];
        ptrdiff_t n = receive(&w.dice, all.ch[w.stage], token);
        CHECK(n > 0 || is_an_end(n));
        for (ptrdiff_t i = 0; i < n; i++)
            take(token[i]);
        if (roll(&w.dice) % 4 == 0)
            sn_yield();
        for (ptrdiff_t i = 0; i < n; i++)
            let_go(token[i]);
        ptrdiff_t sent = n > 0 ? send(&w.dice, next_of(w.stage), token, (size_t)n) : 0;
        CHECK(sent >= 0 || is_an_end(sent));
        for (ptrdiff_t i = sent > 0 ? sent : 0; i < n; i++)
            keep(token[i]);
        atomic_fetch_add(&all.passed[w.stage], sent > 0 ? sent : 0);
    }
    return -ECANCELED;
}

/* ---- coroutines ------------------------------------------------------------------------------ */

typedef struct passer {
    sn_coro coro;
    struct worker w;
    sn_chan_op op;
    int rc, token;
    enum { RECEIVES, HAS, SENDS } state;
} passer;

SN_CORO(passer, self)
{
    SN_BEGIN(self);
    for (;;) {
        self->state = RECEIVES;
        SN_AWAIT_INTO(self->rc, sn_chan_recv_op(&self->op, all.ch[self->w.stage], &self->token));
        CHECK_EQ(self->rc, 0);
        self->state = HAS;
        take(self->token);
        if (roll(&self->w.dice) % 4 == 0)
            SN_YIELD();
        let_go(self->token);
        self->state = SENDS;
        SN_AWAIT_INTO(self->rc, sn_chan_send_op(&self->op, next_of(self->w.stage), &self->token));
        CHECK_EQ(self->rc, 0);
        atomic_fetch_add(&all.passed[self->w.stage], 1);
    }
    SN_FINALLY();
    if (self->state == RECEIVES && self->op.result == 0) {
        atomic_fetch_add(&all.got_when_dropped, 1);
        take(self->token);
        self->state = HAS;
    }
    if (self->state == HAS) {
        let_go(self->token);
        keep(self->token);
    } else if (self->state == SENDS && self->op.result == 0) {
        atomic_fetch_add(&all.sent_when_dropped, 1);
    } else if (self->state == SENDS) {
        keep(self->token);
    }
    SN_END();
}

/* ---- the storm ------------------------------------------------------------------------------- */

static sn_task *spawn_one(int slot, uint32_t dice)
{
    struct worker w = {.dice = {dice}, .stage = slot % STAGES};
    passer frame = {.w = w};
    return slot / STAGES % 3 == 0 ? sn_spawn_coro(passer, &frame)
                                  : sn_spawn(pass_on, &w, .copy_bytes = sizeof(w));
}

static void check_tokens(void)
{
    int seen[TOKENS] = {0}, token;
    for (int s = 0; s < STAGES; s++) {
        while (sn_chan_recv(all.ch[s], &token, SN_NOWAIT) == 0)
            seen[token]++;
        CHECK_EQ(sn_chan_len(all.ch[s]), 0);
        CHECK_GT(atomic_load(&all.passed[s]), 0);
    }
    for (int i = 0; i < TOKENS; i++) {
        if (seen[i] != 1 || atomic_load(&all.held[i]) != 0)
            FAIL("token %d is in %d channels and held by %d", i, seen[i], (int)all.held[i]);
    }
}

static int blow(void *arg)
{
    static const size_t capacity[STAGES] = {0, 1, 5, SN_CHAN_UNBOUNDED};
    struct storm storm = {
        .spawn = spawn_one, .after_each = bring_back, .cancels = *(int *)arg / STORM_SLOW};
    for (int s = 0; s < STAGES; s++)
        CHECK_EQ(sn_chan_create(&all.ch[s], sizeof(int), capacity[s], NULL), 0);
    for (int i = 0; i < TOKENS; i++)
        keep(i);
    bring_back();
    storm_blow(&storm);
    bring_back();
    printf("passed on %ld, kept %ld; dropped: %ld got, %ld sent\n", (long)all.passed[0],
           (long)all.kept_times, (long)all.got_when_dropped, (long)all.sent_when_dropped);
    check_tokens();
    for (int s = 0; s < STAGES; s++)
        CHECK_EQ(sn_chan_destroy(all.ch[s]), 0);
    return 0;
}

TEST(a_storm_of_cancels_over_a_pipeline_on_many_workers, .limit_s = 120)
{
    int cancels = 15000;
    storm_run((sn_runtime_options){.workers = 4}, blow, &cancels);
}

TEST(a_storm_of_cancels_over_a_pipeline_on_one_thread, .limit_s = 120)
{
    int cancels = 15000;
    storm_run((sn_runtime_options){.single_threaded = true, .seed = test_seed() | 1}, blow,
              &cancels);
}
