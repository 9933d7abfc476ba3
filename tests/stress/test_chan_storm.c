/* SPDX-License-Identifier: MIT */
/* A storm over channels of all kinds (R91, R92): 64 tasks of two runtimes, a quarter of them
 * coroutines that drop their operations, and 8 plain threads, send and receive at the same time,
 * one and many, plainly and by selects over several channels, with deadlines that pass at any
 * moment, in tasks that are cancelled, and ask each other for replies by oneshot channels, until
 * everything is closed under their hands.
 *
 * The law of conservation: each value that was sent was received exactly once, or was dropped by
 * the channel that was destroyed with it inside; and what was not sent is still its sender's.
 *
 * SINEW_STORM_S=<seconds> makes each storm so long; otherwise it is a breeze of half a second. */
#include "harness.h"

#include <pthread.h>
#include <sinew/sinew.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    TASKS = 32, /* of each runtime */
    CORO_EVERY = 4,
    THREADS = 8,
    CHANNELS = 3,
    BATCH = 6,
    VALUES = 1 << 17, /* of one round, which is over when half of them were used */
    ROUND_MS = 250,   /* or after so long, if it was a storm by then             */
    LEAST = 2000,     /* values make a storm                                     */
    PATIENCE = 40,    /* as many times as long, and as many rounds, if need be   */
    CHILD_CALLS = 20,
};

enum what { SENT, RECEIVED, SENT_MANY, RECEIVED_MANY, SELECTED, REPLIED, CANCELED, DROPPED, WHATS };

static struct {
    sn_chan *ch[CHANNELS]; /* a rendezvous, a bounded, an unbounded one */
    sn_chan *requests;     /* of channels to reply to                   */
    atomic_bool is_over;
    atomic_uint next; /* value */
    atomic_uchar sent[VALUES];
    atomic_uchar received[VALUES];
    atomic_uchar dropped[VALUES];
    atomic_int times[WHATS];
    sn_wait_group actors;
} all;

struct actor {
    uint32_t dice;
    bool is_child; /* is cancelled, so never waits without a deadline */
};

static uint32_t roll(struct actor *a)
{
    a->dice ^= a->dice << 13;
    a->dice ^= a->dice >> 17;
    a->dice ^= a->dice << 5;
    return a->dice;
}

static sn_deadline some_time(struct actor *a)
{
    switch (roll(a) % 4) {
    case 0:
        return SN_NOWAIT;
    case 1:
        return a->is_child ? SN_NOWAIT : SN_FOREVER;
    default:
        return sn_after(SN_US(roll(a) % 200));
    }
}

static sn_chan *some_channel(struct actor *a)
{
    return all.ch[roll(a) % CHANNELS];
}

/* ---- the books ------------------------------------------------------------------------------ */

/* A value that nobody has had yet; false: there is none left. */
static bool new_values(uint32_t *first, uint32_t n)
{
    *first = atomic_load(&all.next) < VALUES - 1024 ? atomic_fetch_add(&all.next, n) : VALUES;
    return *first + n <= VALUES;
}

static bool note_sent(uint32_t value, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -EPIPE || rc == -ECANCELED);
    if (rc == 0)
        CHECK_EQ(atomic_fetch_add(&all.sent[value], 1), 0);
    return rc == 0;
}

static bool note_received(uint32_t value, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -EPIPE || rc == -ECANCELED);
    if (rc == 0) {
        CHECK_LT(value, VALUES);
        CHECK_EQ(atomic_fetch_add(&all.received[value], 1), 0);
    }
    return rc == 0;
}

static void count(enum what what, bool worked)
{
    if (worked)
        atomic_fetch_add(&all.times[what], 1);
}

static void drop_value(void *element, void *arg)
{
    uint32_t value;
    memcpy(&value, element, sizeof(value));
    CHECK_PTR_EQ(arg, &all);
    CHECK_EQ(atomic_fetch_add(&all.dropped[value], 1), 0);
}

/* Nobody will reply: who waits for that learns it. */
static void drop_request(void *element, void *arg)
{
    sn_chan *reply;
    (void)arg;
    memcpy(&reply, element, sizeof(reply));
    CHECK_EQ(sn_chan_release(reply, SN_CHAN_SENDER), 0);
}

/* ---- what is done --------------------------------------------------------------------------- */

static void send_one(struct actor *a)
{
    uint32_t value;
    if (new_values(&value, 1))
        count(SENT, note_sent(value, sn_chan_send(some_channel(a), &value, some_time(a))));
}

static void receive_one(struct actor *a)
{
    uint32_t value = VALUES;
    int rc = sn_chan_recv(some_channel(a), &value, some_time(a));
    count(RECEIVED, note_received(value, rc));
}

static void send_many(struct actor *a)
{
    uint32_t values[BATCH], first;
    if (!new_values(&first, BATCH))
        return;
    for (uint32_t i = 0; i < BATCH; i++)
        values[i] = first + i;
    ptrdiff_t n = sn_chan_send_n(some_channel(a), values, BATCH, some_time(a));
    CHECK(n != 0 && n <= BATCH);
    for (uint32_t i = 0; i < BATCH; i++)
        (void)note_sent(first + i, (ptrdiff_t)i < n ? 0 : n < 0 ? (int)n : -ETIMEDOUT);
    count(SENT_MANY, n > 1);
}

static void receive_many(struct actor *a)
{
    uint32_t values[BATCH] = {VALUES, VALUES, VALUES, VALUES, VALUES, VALUES};
    ptrdiff_t n = sn_chan_recv_n(some_channel(a), values, BATCH, some_time(a));
    CHECK(n != 0 && n <= BATCH);
    if (n < 0)
        (void)note_received(VALUES, (int)n);
    for (ptrdiff_t i = 0; i < n; i++)
        (void)note_received(values[i], 0);
    count(RECEIVED_MANY, n > 1);
}

/* The same value is offered twice, and two values may come to one place. */
struct choice {
    uint32_t out, in;
    sn_case cases[4];
};

static bool choose(struct actor *a, struct choice *c)
{
    if (!new_values(&c->out, 1))
        return false;
    c->in = VALUES;
    c->cases[0] = sn_case_send(some_channel(a), &c->out);
    c->cases[1] = sn_case_recv(some_channel(a), &c->in);
    c->cases[2] = sn_case_send(some_channel(a), &c->out);
    c->cases[3] = sn_case_recv(roll(a) % 4 == 0 ? NULL : some_channel(a), &c->in);
    return true;
}

static void note_choice(const struct choice *c, int which)
{
    if (which < 0) {
        (void)note_received(VALUES, which);
        return;
    }
    int rc = c->cases[which].result;
    CHECK(rc == 0 || rc == -EPIPE);
    count(SELECTED, which % 2 == 0 ? note_sent(c->out, rc) : note_received(c->in, rc));
}

static void select_some(struct actor *a)
{
    struct choice c;
    if (choose(a, &c))
        note_choice(&c, sn_select(c.cases, 4, 0, some_time(a)));
}

/* Ask somebody for a value, which comes by a channel of its own. */
static void ask(struct actor *a)
{
    sn_chan *reply = NULL;
    sn_chan_options once = {.oneshot = true, .drop = drop_value, .drop_arg = &all};
    CHECK_EQ(sn_chan_create(&reply, sizeof(uint32_t), 1, &once), 0);
    int rc = sn_chan_send(all.requests, &reply, some_time(a));
    if (rc == 0) {
        uint32_t value = VALUES;
        rc = sn_chan_recv(reply, &value, some_time(a));
        count(REPLIED, note_received(value, rc));
    } else {
        CHECK(rc == -ETIMEDOUT || rc == -EPIPE || rc == -ECANCELED);
        CHECK_EQ(sn_chan_release(reply, SN_CHAN_SENDER), 0);
    }
    CHECK_EQ(sn_chan_release(reply, SN_CHAN_RECEIVER), 0);
}

/* Returns false if there will be no more requests. */
static bool answer(struct actor *a)
{
    sn_chan *reply = NULL;
    uint32_t value;
    int rc = sn_chan_recv(all.requests, &reply, some_time(a));
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -EPIPE || rc == -ECANCELED);
    if (rc == 0) {
        if (new_values(&value, 1))
            (void)note_sent(value, sn_chan_send(reply, &value, some_time(a)));
        CHECK_EQ(sn_chan_release(reply, SN_CHAN_SENDER), 0);
    }
    return rc != -EPIPE;
}

static void do_something(struct actor *a)
{
    switch (roll(a) % 8) {
    case 0:
        send_one(a);
        break;
    case 1:
        receive_one(a);
        break;
    case 2:
        send_many(a);
        break;
    case 3:
        receive_many(a);
        break;
    case 4:
    case 5:
        select_some(a);
        break;
    case 6:
        ask(a);
        break;
    default:
        (void)answer(a);
    }
}

/* ---- who does it ---------------------------------------------------------------------------- */

/* Until it is cancelled, which may be before it has begun. */
static int act_as_child(void *arg)
{
    struct actor *a = arg;
    while (!sn_cancelled() && !atomic_load(&all.is_over))
        do_something(a);
    return 0;
}

static void act_with_a_child(struct actor *a)
{
    struct actor child = {.dice = roll(a), .is_child = true};
    sn_task *t = sn_spawn(act_as_child, &child);
    CHECK(t != NULL);
    for (int i = 0; i < CHILD_CALLS; i++)
        do_something(a);
    count(CANCELED, sn_cancel(t, NULL) == 0);
}

static void act(struct actor *a, bool is_task)
{
    while (!atomic_load(&all.is_over)) {
        if (is_task && roll(a) % 64 == 0)
            act_with_a_child(a);
        else
            do_something(a);
        if (roll(a) % 16 == 0)
            sn_yield();
    }
    CHECK_EQ(sn_wait_group_done(&all.actors), 0);
}

static int act_as_fiber(void *arg)
{
    act(arg, true);
    return 0;
}

static void *act_as_thread(void *arg)
{
    act(arg, false);
    return NULL;
}

/* A coroutine races each operation with a nap, or polls it once; then it is dropped. */
typedef struct racer {
    sn_coro coro;
    struct actor actor;
    int what;
    uint32_t value;
    struct choice choice;
    union {
        sn_chan_op chan;
        sn_select_state select;
    } op;
    sn_sleep_state nap;
    sn_fut_race2 race;
} racer;

static sn_future *begin_something(racer *self)
{
    struct actor *a = &self->actor;
    self->what = (int)(roll(a) % 3);
    if (self->what == 0 && new_values(&self->value, 1))
        return sn_chan_send_op(&self->op.chan, some_channel(a), &self->value);
    if (self->what == 2 && choose(a, &self->choice))
        return sn_select_op(&self->op.select, self->choice.cases, 4, 0);
    self->what = 1;
    self->value = VALUES;
    return sn_chan_recv_op(&self->op.chan, some_channel(a), &self->value);
}

/* Whether it was over or dropped: what has come of it. */
static void end_something(racer *self)
{
    if (self->what == 0)
        count(DROPPED, !note_sent(self->value, self->op.chan.result));
    else if (self->what == 1)
        count(DROPPED, !note_received(self->value, self->op.chan.result));
    else
        note_choice(&self->choice, self->op.select.result);
}

SN_CORO(racer, self)
{
    SN_BEGIN(self);
    while (!atomic_load(&all.is_over)) {
        if (roll(&self->actor) % 4 == 0) {
            sn_future *once = begin_something(self);
            if (sn_poll_pending(sn_future_poll(once, SN_CX)))
                (void)sn_future_drop(once);
        } else {
            SN_AWAIT(sn_fut_race2_init(
                &self->race, begin_something(self),
                sn_sleep_op(&self->nap, sn_after(SN_US(roll(&self->actor) % 200)))));
        }
        end_something(self);
        if (roll(&self->actor) % 16 == 0)
            SN_YIELD();
    }
    SN_RETURN(sn_wait_group_done(&all.actors));
    SN_END();
}

/* ---- the storm ------------------------------------------------------------------------------ */

static uint32_t some_dice(uint32_t which)
{
    return ((uint32_t)test_seed() + which) * 2654435761u | 1;
}

static int act_all(void *arg)
{
    static struct actor actors[2 * TASKS];
    uint32_t which = *(uint32_t *)arg;
    sn_task *task[TASKS];
    for (uint32_t i = 0; i < TASKS; i++) {
        struct actor *a = &actors[which * TASKS + i];
        *a = (struct actor){.dice = some_dice(which * TASKS + i)};
        racer frame = {.actor = *a};
        task[i] = i % CORO_EVERY == 0 ? sn_spawn_coro(racer, &frame) : sn_spawn(act_as_fiber, a);
        CHECK(task[i] != NULL);
    }
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    return 0;
}

struct home {
    sn_runtime_options opts;
    uint32_t which;
};

static void *run_home(void *arg)
{
    struct home *home = arg;
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, &home->opts), 0);
    CHECK_EQ(sn_runtime_block_on(rt, act_all, &home->which), 0);
    sn_runtime_destroy(rt);
    return NULL;
}

/* One after the other, with some time in between; and what is left then is received here, so that
 * nobody waits for a reply for ever. */
static void calm_down(void)
{
    struct actor me = {.dice = some_dice(99), .is_child = true};
    for (int i = 0; i < CHANNELS; i++) {
        CHECK_EQ(sn_chan_close(all.ch[(i + (int)(roll(&me) % 3)) % CHANNELS]), 0);
        CHECK_EQ(sn_sleep(SN_MS(1)), 0);
    }
    atomic_store(&all.is_over, true);
    for (int i = 0; i < CHANNELS; i++)
        CHECK_EQ(sn_chan_close(all.ch[i]), 0);
    CHECK_EQ(sn_chan_close(all.requests), 0);
    while (answer(&me))
        ;
    CHECK_EQ(sn_wait_group_wait(&all.actors, SN_FOREVER), 0);
}

static void begin_round(void)
{
    static const size_t capacities[CHANNELS] = {0, 7, SN_CHAN_UNBOUNDED};
    sn_chan_options values = {.drop = drop_value, .drop_arg = &all};
    sn_chan_options requests = {.drop = drop_request};
    memset((void *)all.sent, 0, sizeof(all.sent));
    memset((void *)all.received, 0, sizeof(all.received));
    memset((void *)all.dropped, 0, sizeof(all.dropped));
    atomic_store(&all.next, 0);
    atomic_store(&all.is_over, false);
    for (int i = 0; i < CHANNELS; i++)
        CHECK_EQ(sn_chan_create(&all.ch[i], sizeof(uint32_t), capacities[i], &values), 0);
    CHECK_EQ(sn_chan_create(&all.requests, sizeof(sn_chan *), 3, &requests), 0);
    CHECK_EQ(sn_wait_group_add(&all.actors, 2 * TASKS + THREADS), 0);
}

static void end_round(void)
{
    for (int i = 0; i < CHANNELS; i++)
        CHECK_EQ(sn_chan_destroy(all.ch[i]), 0);
    CHECK_EQ(sn_chan_destroy(all.requests), 0);
    unsigned through = 0;
    for (uint32_t v = 0; v < VALUES; v++) {
        if (all.sent[v] != all.received[v] + all.dropped[v])
            FAIL("value %u: sent %d times, received %d times, dropped %d times", v, all.sent[v],
                 all.received[v], all.dropped[v]);
        through += all.received[v];
    }
    CHECK_GT(through, 100);
}

/* Until much has happened; on a busy machine that may take its time. */
static void let_it_blow(void)
{
    for (int ms = 0; ms < PATIENCE * ROUND_MS; ms += 5) {
        unsigned used = atomic_load(&all.next);
        if (used >= VALUES / 2 || (ms >= ROUND_MS && used >= LEAST))
            return;
        CHECK_EQ(sn_sleep(SN_MS(5)), 0);
    }
}

static void blow(struct home homes[2], int round)
{
    static struct actor actors[THREADS];
    pthread_t thread[THREADS + 2];
    begin_round();
    for (uint32_t i = 0; i < THREADS; i++) {
        actors[i] = (struct actor){.dice = some_dice(1000 + (uint32_t)round * THREADS + i)};
        CHECK_EQ(pthread_create(&thread[i], NULL, act_as_thread, &actors[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&thread[THREADS + i], NULL, run_home, &homes[i]), 0);
    let_it_blow();
    calm_down();
    for (int i = 0; i < THREADS + 2; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    end_round();
}

/* A kind of call that has not worked so far, or WHATS. */
static int missing_kind(void)
{
    int i = 0;
    while (i < WHATS && atomic_load(&all.times[i]) > 0)
        i++;
    return i;
}

static void storm(sn_runtime_options first, sn_runtime_options second)
{
    struct home homes[2] = {{first, 0}, {second, 1}};
    const char *seconds = getenv("SINEW_STORM_S");
    int64_t end_ns = sn_now() + (seconds == NULL ? SN_MS(500) : SN_S(atoi(seconds)));
    for (int i = 0; i < 2 || sn_now() < end_ns || (i < PATIENCE && missing_kind() < WHATS); i++)
        blow(homes, i);
    if (missing_kind() < WHATS)
        FAIL("in all the storm there was none of kind %d", missing_kind());
    CHECK_EQ(sn_wait_group_finish(&all.actors), 0);
}

TEST(a_storm_over_channels_of_all_kinds_conserves_values, .limit_s = 120)
{
    storm((sn_runtime_options){.workers = 4}, (sn_runtime_options){.single_threaded = true});
}

TEST(a_storm_over_channels_conserves_values_in_lifo_order, .limit_s = 120)
{
    storm((sn_runtime_options){.workers = 2, .lifo = true},
          (sn_runtime_options){.workers = 3, .no_steal = true});
}
