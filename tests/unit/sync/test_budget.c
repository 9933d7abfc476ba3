/* SPDX-License-Identifier: MIT */
/* The budget (R140): one that never has to wait, because its channel is never empty or its lock
 * always free, does not keep the others of its worker waiting. Each of them works until another
 * one has had a turn; had it none, it would work for ever. */
#include "unit/sync/guests.h"

enum {
    TURNS = 3,         /* that the other one must have had */
    CALLS_MAX = 10000, /* meanwhile, and a time limit for those that hang */
    PLENTY = 2 * CALLS_MAX + 2,
};

static struct {
    int turns; /* these two: one worker, so nobody else runs meanwhile */
    bool is_over;
    int held_when_away; /* how often the mutex was held when the other one ran */
    sn_chan *ch;
    sn_mutex mutex;
    sn_rwlock rwlock;
    sn_sem sem;
    sn_event event;
    sn_broadcast *air;
    sn_watch *watch;
} all;

/* The other one. */
static int look_around(void *arg)
{
    (void)arg;
    while (!all.is_over) {
        all.turns++;
        if (sn_mutex_lock(&all.mutex, SN_NOWAIT) == 0)
            CHECK_EQ(sn_mutex_unlock(&all.mutex), 0);
        else
            all.held_when_away++;
        sn_yield();
    }
    return 0;
}

/* Call again and again, until the other one had its turns. */
static int work(void *arg)
{
    int (*call)(int i) = *(int (**)(int))arg;
    all.turns = 0;
    all.is_over = false;
    sn_task *other = sn_spawn(look_around, NULL);
    int calls = 0;
    for (; all.turns < TURNS && calls < CALLS_MAX; calls++)
        CHECK_EQ(call(calls), 0);
    all.is_over = true;
    CHECK_EQ(sn_join(other, NULL), 0);
    CHECK_LT(calls, CALLS_MAX);
    CHECK_GT(calls, 2 * TURNS); /* nor at each call */
    CHECK_EQ(all.held_when_away, 0);
    return 0;
}

static void work_alone(int (*call)(int i))
{
    all.held_when_away = 0;
    all.mutex = (sn_mutex)SN_MUTEX_INIT;
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, work, &call), 0);
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 1}, work, &call), 0);
}

/* ---- channels -------------------------------------------------------------------------------- */

static void fill(size_t capacity)
{
    CHECK_EQ(sn_chan_create(&all.ch, sizeof(int), capacity, NULL), 0);
    for (int i = 0; i < PLENTY; i++)
        CHECK_EQ(sn_chan_send(all.ch, &i, SN_NOWAIT), 0);
}

static int receive(int i)
{
    (void)i;
    int v;
    return sn_chan_recv(all.ch, &v, SN_FOREVER);
}

TEST(one_that_receives_from_a_channel_that_is_never_empty_gives_way)
{
    static const size_t capacities[] = {SN_CHAN_UNBOUNDED, PLENTY};
    for (int k = 0; k < 2; k++) {
        fill(capacities[k]);
        work_alone(receive);
        CHECK_EQ(sn_chan_destroy(all.ch), 0);
    }
}

static int choose(int i)
{
    int v;
    sn_case cases[] = {sn_case_recv(all.ch, &v), sn_case_recv(NULL, &v)};
    return sn_select(cases, 2, i % 2 == 0 ? SN_SELECT_ORDERED : 0, SN_FOREVER);
}

TEST(one_whose_select_never_has_to_wait_gives_way)
{
    fill(SN_CHAN_UNBOUNDED);
    work_alone(choose);
    CHECK_EQ(sn_chan_destroy(all.ch), 0);
}

static int send(int i)
{
    return sn_chan_send(all.ch, &i, SN_FOREVER);
}

TEST(one_that_sends_to_a_channel_that_is_never_full_gives_way)
{
    static const size_t capacities[] = {SN_CHAN_UNBOUNDED, PLENTY};
    for (int k = 0; k < 2; k++) {
        CHECK_EQ(sn_chan_create(&all.ch, sizeof(int), capacities[k], NULL), 0);
        work_alone(send);
        CHECK_EQ(sn_chan_destroy(all.ch), 0);
    }
}

static int send_and_receive_many(int i)
{
    int v[3] = {i, i, i};
    ptrdiff_t n = i % 2 == 0 ? sn_chan_send_n(all.ch, v, 3, SN_FOREVER)
                             : sn_chan_recv_n(all.ch, v, 3, SN_FOREVER);
    return n == 3 ? 0 : -EIO;
}

TEST(one_that_sends_and_receives_many_at_a_time_gives_way)
{
    CHECK_EQ(sn_chan_create(&all.ch, sizeof(int), 7, NULL), 0);
    work_alone(send_and_receive_many);
    CHECK_EQ(sn_chan_destroy(all.ch), 0);
}

static int hear(int i)
{
    sn_subscription sub;
    int v = -1;
    CHECK_EQ(sn_broadcast_subscribe(all.air, &sub), 0);
    CHECK_EQ(sn_broadcast_send(all.air, &i), 0);
    int rc = sn_broadcast_recv(&sub, &v, SN_FOREVER);
    CHECK_EQ(v, i);
    return rc;
}

TEST(one_that_hears_a_broadcast_without_end_gives_way)
{
    CHECK_EQ(sn_broadcast_create(&all.air, sizeof(int), 4), 0);
    work_alone(hear);
    CHECK_EQ(sn_broadcast_destroy(all.air), 0);
}

static int watch(int i)
{
    int v = i;
    uint64_t version = 0;
    return sn_watch_recv(all.watch, &v, &version, SN_FOREVER);
}

TEST(one_that_watches_what_always_changes_gives_way)
{
    CHECK_EQ(sn_watch_create(&all.watch, sizeof(int), &(int){0}), 0);
    work_alone(watch);
    CHECK_EQ(sn_watch_destroy(all.watch), 0);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static int lock_and_unlock(int i)
{
    (void)i;
    int rc = sn_mutex_lock(&all.mutex, SN_FOREVER);
    return rc < 0 ? rc : sn_mutex_unlock(&all.mutex);
}

TEST(one_that_locks_a_mutex_again_and_again_gives_way_without_it)
{
    work_alone(lock_and_unlock);
}

static int read_and_write(int i)
{
    int rc = i % 2 == 0 ? sn_rwlock_lock(&all.rwlock, SN_FOREVER)
                        : sn_rwlock_lock_shared(&all.rwlock, SN_FOREVER);
    if (rc < 0)
        return rc;
    return i % 2 == 0 ? sn_rwlock_unlock(&all.rwlock) : sn_rwlock_unlock_shared(&all.rwlock);
}

TEST(one_that_reads_and_writes_again_and_again_gives_way)
{
    all.rwlock = (sn_rwlock)SN_RWLOCK_INIT;
    work_alone(read_and_write);
}

static int take_a_unit(int i)
{
    (void)i;
    return sn_sem_acquire(&all.sem, 1, SN_FOREVER);
}

TEST(one_that_takes_units_that_are_always_there_gives_way)
{
    all.sem = (sn_sem)SN_SEM_INIT(4 * CALLS_MAX);
    work_alone(take_a_unit);
}

static int pass_an_event(int i)
{
    (void)i;
    return sn_event_wait(&all.event, SN_FOREVER);
}

TEST(one_that_passes_an_event_again_and_again_gives_way)
{
    all.event = (sn_event)SN_EVENT_INIT;
    CHECK_EQ(sn_event_set(&all.event), 0);
    work_alone(pass_an_event);
}

/* ---- without waiting, and other threads ------------------------------------------------------ */

/* A call that must not wait does not give way; the next one that may does it for all of them. */
static int try_again_and_again(void *arg)
{
    (void)arg;
    all.turns = 0;
    all.is_over = false;
    sn_task *other = sn_spawn(look_around, NULL);
    int v;
    for (int i = 0; i < CALLS_MAX; i++) {
        CHECK_EQ(sn_chan_recv(all.ch, &v, SN_NOWAIT), 0);
        CHECK_EQ(sn_mutex_lock(&all.mutex, SN_NOWAIT), 0);
        CHECK_EQ(sn_mutex_unlock(&all.mutex), 0);
    }
    CHECK_EQ(all.turns, 0);
    CHECK_EQ(sn_mutex_lock(&all.mutex, SN_FOREVER), 0);
    CHECK_EQ(sn_mutex_unlock(&all.mutex), 0);
    CHECK_EQ(all.turns, 1);
    all.is_over = true;
    return sn_join(other, NULL);
}

TEST(who_must_not_wait_does_not_give_way)
{
    fill(SN_CHAN_UNBOUNDED);
    all.mutex = (sn_mutex)SN_MUTEX_INIT;
    sn_runtime_options opts = {.single_threaded = true};
    CHECK_EQ(run_with(&opts, try_again_and_again, NULL), 0);
    CHECK_EQ(sn_chan_destroy(all.ch), 0);
}

/* ---- coroutines ------------------------------------------------------------------------------ */

enum appetite {
    RECEIVES,
    SELECTS,
    LOCKS,
    HEARS,
    WATCHES,
};

typedef struct glutton {
    sn_coro coro;
    int i, v, rc;
    enum appetite appetite;
    sn_case cases[1];
    sn_subscription sub;
    uint64_t version;
    union {
        sn_chan_op chan;
        sn_news_op news;
        sn_select_state select;
        sn_sync_state sync;
    } op;
} glutton;

SN_CORO(glutton, self)
{
    SN_BEGIN(self);
    for (self->i = 0; all.turns < TURNS && self->i < CALLS_MAX; self->i++) {
        if (self->appetite == LOCKS) {
            SN_AWAIT_INTO(self->rc, sn_mutex_lock_op(&self->op.sync, &all.mutex));
            CHECK_EQ(sn_mutex_unlock(&all.mutex), 0);
        } else if (self->appetite == SELECTS) {
            self->cases[0] = sn_case_recv(all.ch, &self->v);
            SN_AWAIT_INTO(self->rc, sn_select_op(&self->op.select, self->cases, 1, 0));
        } else if (self->appetite == HEARS) {
            CHECK_EQ(sn_broadcast_send(all.air, &self->i), 0);
            SN_AWAIT_INTO(self->rc, sn_broadcast_recv_op(&self->op.news, &self->sub, &self->v));
        } else if (self->appetite == WATCHES) {
            self->version = 0;
            SN_AWAIT_INTO(self->rc,
                          sn_watch_recv_op(&self->op.news, all.watch, &self->v, &self->version));
        } else {
            SN_AWAIT_INTO(self->rc, sn_chan_recv_op(&self->op.chan, all.ch, &self->v));
        }
        CHECK_EQ(self->rc, 0);
    }
    CHECK_LT(self->i, CALLS_MAX);
    CHECK_GT(self->i, 2 * TURNS);
    SN_END();
}

static int feed(void *arg)
{
    all.turns = 0;
    all.is_over = false;
    all.held_when_away = 0;
    glutton frame = {.appetite = *(enum appetite *)arg};
    CHECK_EQ(sn_broadcast_subscribe(all.air, &frame.sub), 0);
    sn_task *t = sn_spawn_coro(glutton, &frame);
    sn_task *other = sn_spawn(look_around, NULL);
    CHECK_EQ(sn_join(t, NULL), 0);
    all.is_over = true;
    CHECK_EQ(all.held_when_away, 0);
    return sn_join(other, NULL);
}

TEST(a_coroutine_that_never_has_to_wait_gives_way)
{
    sn_runtime_options opts = {.single_threaded = true};
    fill(SN_CHAN_UNBOUNDED);
    all.mutex = (sn_mutex)SN_MUTEX_INIT;
    CHECK_EQ(sn_broadcast_create(&all.air, sizeof(int), 4), 0);
    CHECK_EQ(sn_watch_create(&all.watch, sizeof(int), &(int){0}), 0);
    for (enum appetite a = RECEIVES; a <= WATCHES; a++)
        CHECK_EQ(run_with(&opts, feed, &a), 0);
    CHECK_EQ(sn_watch_destroy(all.watch), 0);
    CHECK_EQ(sn_broadcast_destroy(all.air), 0);
    CHECK_EQ(sn_chan_destroy(all.ch), 0);
}
