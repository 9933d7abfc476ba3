/* SPDX-License-Identifier: MIT */
/* A storm over several runtimes that come and go (R2, R151): two or three of them, and plain
 * threads, share channels, locks, a semaphore, an event, a condition and a connection, and join,
 * cancel and detach each other's tasks, have groups and cancel them, while each runtime is shut
 * down again and again, gracefully, with a deadline, or without waiting, and created anew.
 *
 * A *life* is what a runtime does from its creation to its end. Its dice are drawn from the seed,
 * the round, its place and its number, so the same seed asks for the same; threads decide the rest.
 *
 * The laws, when all lives are over:
 *   - a value was received once at most; if its send succeeded, it was received, or dropped with
 *     its channel, or given to a task that was abandoned while it received, of which there were as
 *     many; if its send failed, it was not; if its sender was abandoned, both are right;
 *   - what a lock guards was changed by one at a time, and each lock is free;
 *   - all units of the semaphore are there;
 *   - a join ends with what the task returned, or says that it was cancelled or is gone.
 *
 * SINEW_STORM_S=<seconds> makes each storm so long; otherwise it has a few rounds. */
#include "harness.h"

#include <pthread.h>
#include <sinew/sinew.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 20,
    PATIENCE = 60, /* as many rounds if something has not happened yet */
    LIVES = 6,     /* of each place, in a round */
    PLACES = 3,
    FIBERS = 10, /* of a life, at its beginning */
    COROS = 4,
    THREADS = 3,
    CHANNELS = 3,
    BOARD = 8, /* handles that anybody may take */
    UNITS = 5,
    CHILD_CALLS = 6,
    CHILD_RESULT = 7,
    VALUES = 1 << 15,
    STEPS = 600, /* of a life, then it ends; or after */
    NAPS = 40,   /* naps of */
    NAP_US = 100,
};

enum what {
    SENT,
    RECEIVED,
    SELECTED,
    LOCKED,
    ACQUIRED,
    WAITED,
    READ,
    CLOSED, /* under the hands of who read */
    GROUPED,
    JOINED,
    CANCELED,
    LOST,
    WHATS
};

/* How far a value has come, as its sender sees it. */
enum { OFFERED = 1, GONE, BACK };

static struct {
    sn_chan *ch[CHANNELS]; /* a rendezvous, a bounded, an unbounded one */
    sn_mutex mutex;
    sn_mutex fair;
    sn_rwlock rwlock;
    sn_cond cond; /* with `mutex` */
    sn_sem sem;
    sn_event event;
    int guarded[3]; /* by the three locks */
    int written;    /* by whoever has `rwlock` alone, twice: they are equal */
    int written_again;
    _Atomic(sn_conn *) conn[2]; /* the ends of a connection, which is closed and made anew */
    _Atomic(sn_task *) board[BOARD];
    atomic_bool is_over;
    atomic_uint next;     /* value */
    atomic_int receiving; /* calls, or operations, that have begun and not ended */
    atomic_uchar offered[VALUES];
    atomic_uchar received[VALUES];
    atomic_uchar dropped[VALUES];
    atomic_int times[WHATS];
} all;

struct life {
    uint32_t dice;
    bool is_patient; /* waits may be without end: it is not waited for */
    atomic_bool is_over;
    atomic_int steps;
    atomic_uint actors; /* so that each has dice of its own */
};

struct actor {
    struct life *life;
    uint32_t dice;
    bool is_child; /* never waits without end, and joins nobody */
};

static uint32_t roll_on(uint32_t *dice)
{
    *dice ^= *dice << 13;
    *dice ^= *dice >> 17;
    *dice ^= *dice << 5;
    return *dice;
}

static uint32_t roll(struct actor *a)
{
    return roll_on(&a->dice);
}

static struct actor new_actor(struct life *life, bool is_child)
{
    uint32_t n = atomic_fetch_add(&life->actors, 1) + 1;
    return (struct actor){
        .life = life, .dice = (life->dice + n * 2654435761u) | 1, .is_child = is_child};
}

static sn_deadline some_time(struct actor *a)
{
    switch (roll(a) % 4) {
    case 0:
        return SN_NOWAIT;
    case 1:
        if (a->life->is_patient && !a->is_child)
            return SN_FOREVER;
        return sn_after(SN_MS(1));
    default:
        return sn_after(SN_US(roll(a) % 300));
    }
}

static bool worked(enum what what, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (rc == 0)
        atomic_fetch_add(&all.times[what], 1);
    return rc == 0;
}

/* ---- values --------------------------------------------------------------------------------- */

static sn_chan *some_channel(struct actor *a)
{
    return all.ch[roll(a) % CHANNELS];
}

/* A value that nobody has had yet; false: there is none left. */
static bool new_value(uint32_t *value)
{
    *value = atomic_load(&all.next) < VALUES - 1024 ? atomic_fetch_add(&all.next, 1) : VALUES;
    if (*value >= VALUES)
        return false;
    atomic_store(&all.offered[*value], OFFERED);
    return true;
}

static void note_sent(uint32_t value, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -EPIPE || rc == -ECANCELED);
    atomic_store(&all.offered[value], rc == 0 ? GONE : BACK);
    atomic_fetch_add(&all.times[SENT], rc == 0);
}

static void note_received(uint32_t value, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -EPIPE || rc == -ECANCELED);
    if (rc == 0) {
        CHECK_LT(value, VALUES);
        CHECK_EQ(atomic_fetch_add(&all.received[value], 1), 0);
        atomic_fetch_add(&all.times[RECEIVED], 1);
    }
    atomic_fetch_sub(&all.receiving, 1);
}

static void drop_value(void *element, void *arg)
{
    uint32_t value;
    (void)arg;
    memcpy(&value, element, sizeof(value));
    CHECK_EQ(atomic_fetch_add(&all.dropped[value], 1), 0);
}

static void send_one(struct actor *a)
{
    uint32_t value;
    if (new_value(&value))
        note_sent(value, sn_chan_send(some_channel(a), &value, some_time(a)));
}

static void receive_one(struct actor *a)
{
    uint32_t value = VALUES;
    atomic_fetch_add(&all.receiving, 1);
    int rc = sn_chan_recv(some_channel(a), &value, some_time(a));
    note_received(value, rc);
}

/* ---- the board ------------------------------------------------------------------------------ */

static sn_task *take_from_board(struct actor *a)
{
    return atomic_exchange(&all.board[roll(a) % BOARD], NULL);
}

static void put_on_board(struct actor *a, sn_task *task)
{
    sn_task *before = atomic_exchange(&all.board[roll(a) % BOARD], task);
    if (before != NULL)
        (void)sn_detach(before); /* its runtime may be gone */
}

static void check_end(int rc)
{
    CHECK(rc == CHILD_RESULT || rc == -ECANCELED || rc == -ETIMEDOUT || rc == -ESRCH);
    atomic_fetch_add(&all.times[JOINED], rc == CHILD_RESULT);
    atomic_fetch_add(&all.times[LOST], rc == -ESRCH);
}

static void join_somebody(struct actor *a)
{
    sn_task *task = take_from_board(a);
    if (task == NULL)
        return;
    sn_task *volatile still = task; /* compilers take a handle that was joined for freed memory */
    sn_exit how = {.kind = SN_EXIT_NONE};
    int rc = sn_join(task, &how);
    check_end(rc);
    if (rc != -ESRCH && how.kind == SN_EXIT_NONE) /* it is us who were cancelled */
        put_on_board(a, still);
}

static void cancel_somebody(struct actor *a)
{
    sn_task *task = take_from_board(a);
    if (task == NULL)
        return;
    int rc = sn_cancel(task, NULL);
    check_end(rc);
    atomic_fetch_add(&all.times[CANCELED], rc == -ECANCELED);
}

/* A value sent, or one received, or the end of a task. */
static void select_some(struct actor *a)
{
    uint32_t sent, got = VALUES;
    if (!new_value(&sent))
        return;
    sn_task *task = a->is_child ? NULL : take_from_board(a);
    sn_case cases[] = {sn_case_send(some_channel(a), &sent), sn_case_recv(some_channel(a), &got),
                       sn_case_join(task)};
    atomic_fetch_add(&all.receiving, 1);
    int rc = sn_select(cases, 3, 0, some_time(a));
    CHECK(rc >= 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    note_sent(sent, rc == 0 ? cases[0].result : -ETIMEDOUT);
    note_received(got, rc == 1 ? cases[1].result : -ETIMEDOUT);
    atomic_fetch_add(&all.times[SELECTED], rc >= 0);
    if (task != NULL)
        put_on_board(a, task); /* whether it has ended or not */
}

/* ---- locks and the like --------------------------------------------------------------------- */

/* Who has a lock does not wait: one that was abandoned then would have it for ever. */
static void use_mutex(struct actor *a)
{
    bool fair = roll(a) % 2 == 0;
    sn_mutex *m = fair ? &all.fair : &all.mutex;
    if (!worked(LOCKED, sn_mutex_lock(m, some_time(a))))
        return;
    CHECK_EQ(all.guarded[fair]++, 0);
    CHECK_EQ(--all.guarded[fair], 0);
    CHECK_EQ(sn_mutex_unlock(m), 0);
}

static void use_cond(struct actor *a)
{
    if (!worked(LOCKED, sn_mutex_lock(&all.mutex, some_time(a))))
        return;
    CHECK_EQ(all.guarded[0]++, 0);
    CHECK_EQ(--all.guarded[0], 0);
    if (roll(a) % 2 == 0) {
        CHECK_EQ(roll(a) % 4 == 0 ? sn_cond_broadcast(&all.cond) : sn_cond_signal(&all.cond), 0);
    } else {
        (void)worked(WAITED, sn_cond_wait(&all.cond, &all.mutex, sn_after(SN_US(300))));
        CHECK_EQ(all.guarded[0]++, 0);
        CHECK_EQ(--all.guarded[0], 0);
    }
    CHECK_EQ(sn_mutex_unlock(&all.mutex), 0);
}

static void use_rwlock(struct actor *a)
{
    if (roll(a) % 3 != 0) {
        if (!worked(LOCKED, sn_rwlock_lock_shared(&all.rwlock, some_time(a))))
            return;
        CHECK_EQ(all.written, all.written_again);
        CHECK_EQ(sn_rwlock_unlock_shared(&all.rwlock), 0);
        return;
    }
    if (!worked(LOCKED, sn_rwlock_lock(&all.rwlock, some_time(a))))
        return;
    all.written++;
    CHECK_EQ(all.written, ++all.written_again);
    CHECK_EQ(sn_rwlock_unlock(&all.rwlock), 0);
}

static void use_sem(struct actor *a)
{
    uint32_t units = 1 + roll(a) % UNITS;
    if (worked(ACQUIRED, sn_sem_acquire(&all.sem, units, some_time(a))))
        CHECK_EQ(sn_sem_release(&all.sem, units), 0);
}

static void use_event(struct actor *a)
{
    switch (roll(a) % 4) {
    case 0:
        CHECK_EQ(sn_event_set(&all.event), 0);
        break;
    case 1:
        if (!atomic_load(&all.is_over))
            CHECK_EQ(sn_event_reset(&all.event), 0);
        break;
    default:
        (void)worked(WAITED, sn_event_wait(&all.event, sn_after(SN_US(300))));
    }
}

/* ---- a connection --------------------------------------------------------------------------- */

static void check_io(ptrdiff_t rc)
{
    CHECK(rc >= 0 || rc == -ETIMEDOUT || rc == -ECANCELED || rc == -EBADF || rc == -EPIPE ||
          rc == -ECONNRESET);
    atomic_fetch_add(&all.times[READ], rc > 0);
    atomic_fetch_add(&all.times[CLOSED], rc == -EBADF);
}

/* Who comes late finds a handle that is none any more. */
static void close_conn(void)
{
    sn_conn *pair[2] = {NULL, NULL};
    if (!atomic_load(&all.is_over))
        CHECK_EQ(sn_conn_pair(pair), 0);
    for (int i = 0; i < 2; i++) {
        sn_conn *before = atomic_exchange(&all.conn[i], pair[i]);
        if (before != NULL)
            CHECK_EQ(sn_close(before), 0);
    }
}

static void use_conn(struct actor *a)
{
    char buf[8] = {0};
    sn_conn *conn = atomic_load(&all.conn[roll(a) % 2]);
    sn_deadline until = a->life->is_patient ? some_time(a) : sn_after(SN_US(roll(a) % 300));
    if (conn == NULL)
        return;
    switch (roll(a) % 8) {
    case 0:
        close_conn();
        break;
    case 1:
    case 2:
    case 3:
        check_io(sn_write(conn, buf, 1 + roll(a) % 8, until));
        break;
    case 4:
        check_io(sn_conn_wait(conn, SN_READABLE, until));
        break;
    default:
        check_io(sn_read(conn, buf, 1 + roll(a) % 8, until));
    }
}

/* ---- who does it ---------------------------------------------------------------------------- */

static void do_something(struct actor *a)
{
    atomic_fetch_add(&a->life->steps, 1);
    switch (roll(a) % 12) {
    case 0:
    case 1:
        send_one(a);
        break;
    case 2:
    case 3:
        receive_one(a);
        break;
    case 4:
        select_some(a);
        break;
    case 5:
        use_mutex(a);
        break;
    case 6:
        use_cond(a);
        break;
    case 7:
        use_rwlock(a);
        break;
    case 8:
        use_sem(a);
        break;
    case 9:
    case 10:
        use_conn(a);
        break;
    default:
        use_event(a);
    }
}

static int act_as_child(void *arg)
{
    struct actor a = new_actor(arg, true);
    for (int i = 0; i < CHILD_CALLS && !sn_cancelled(); i++)
        do_something(&a);
    return sn_cancelled() ? -ECANCELED : CHILD_RESULT;
}

static int act_in_group(void *arg)
{
    struct actor a = new_actor(arg, true);
    for (int i = 0; i < 2 && !sn_cancelled(); i++)
        do_something(&a);
    return 0;
}

/* The children are done with, in whatever way, when the group is closed. */
static void use_group(struct actor *a)
{
    sn_group group;
    CHECK_EQ(sn_group_open(&group, .limit = 2), 0);
    for (int i = 0; i < 4; i++) {
        int rc = sn_group_spawn(&group, act_in_group, a->life);
        CHECK(rc >= 0 || rc == -ECANCELED);
        if (roll(a) % 8 == 0)
            sn_group_cancel(&group, "on a whim");
    }
    int rc = sn_group_close(&group);
    CHECK(rc == 0 || rc == -ECANCELED);
    atomic_fetch_add(&all.times[GROUPED], rc == 0);
}

static bool is_over(const struct actor *a)
{
    return atomic_load(&a->life->is_over) || atomic_load(&all.is_over);
}

static void act(struct actor *a, bool is_task)
{
    while (!is_over(a)) {
        uint32_t what = roll(a) % 8;
        if (what == 0 && is_task && roll(a) % 4 == 0)
            use_group(a);
        else if (what == 0 && is_task)
            put_on_board(a, sn_spawn(act_as_child, a->life));
        else if (what == 1)
            join_somebody(a);
        else if (what == 2 && roll(a) % 2 == 0)
            cancel_somebody(a);
        else
            do_something(a);
        if (roll(a) % 16 == 0)
            sn_yield();
    }
}

static int act_as_fiber(void *arg)
{
    struct actor a = new_actor(arg, false);
    act(&a, true);
    return 0;
}

static void *act_as_thread(void *arg)
{
    struct actor a = new_actor(arg, false);
    act(&a, false);
    return NULL;
}

/* A coroutine races each operation with a nap, after which it is dropped. */
typedef struct racer {
    sn_coro coro;
    struct actor actor;
    int what;
    uint32_t value;
    sn_task *task;
    union {
        sn_chan_op chan;
        sn_sync_state sync;
        sn_join_state join;
        sn_io_state io;
    } op;
    char buf[8];
    sn_sleep_state nap;
    sn_fut_race2 race;
    int rc;
} racer;

enum { SENDS, RECEIVES, JOINS, LOCKS, ACQUIRES, WAITS, READS, KINDS };

static sn_future *begin_something(racer *self)
{
    struct actor *a = &self->actor;
    atomic_fetch_add(&a->life->steps, 1);
    self->what = (int)(roll(a) % KINDS);
    sn_conn *conn = self->what == READS ? atomic_load(&all.conn[roll(a) % 2]) : NULL;
    self->task = self->what == JOINS ? take_from_board(a) : NULL;
    if (self->what == SENDS && new_value(&self->value))
        return sn_chan_send_op(&self->op.chan, some_channel(a), &self->value);
    if (self->task != NULL)
        return sn_join_op(&self->op.join, self->task, NULL);
    if (self->what == LOCKS)
        return sn_mutex_lock_op(&self->op.sync, &all.fair);
    if (self->what == ACQUIRES)
        return sn_sem_acquire_op(&self->op.sync, &all.sem, 2);
    if (self->what == WAITS)
        return sn_event_wait_op(&self->op.sync, &all.event);
    if (conn != NULL)
        return sn_read_op(&self->op.io, conn, self->buf, sizeof(self->buf));
    self->what = RECEIVES;
    self->value = VALUES;
    atomic_fetch_add(&all.receiving, 1);
    return sn_chan_recv_op(&self->op.chan, some_channel(a), &self->value);
}

/* Whether it was over or dropped: what has come of it. */
static void end_something(racer *self, int winner, int rc)
{
    if (self->what == SENDS)
        note_sent(self->value, self->op.chan.result);
    else if (self->what == RECEIVES)
        note_received(self->value, self->op.chan.result);
    else if (self->what == JOINS && winner != 0)
        put_on_board(&self->actor, self->task);
    else if (self->what == JOINS)
        check_end(rc);
    else if (self->what == LOCKS && winner == 0)
        CHECK_EQ(sn_mutex_unlock(&all.fair), 0);
    else if (self->what == ACQUIRES && winner == 0)
        CHECK_EQ(sn_sem_release(&all.sem, 2), 0);
    else if (self->what == READS && winner == 0)
        check_io(rc);
}

SN_CORO(racer, self)
{
    SN_BEGIN(self);
    while (!is_over(&self->actor)) {
        SN_AWAIT_INTO(
            self->rc,
            sn_fut_race2_init(&self->race, begin_something(self),
                              sn_sleep_op(&self->nap, sn_after(SN_US(roll(&self->actor) % 300)))));
        end_something(self, (int)self->race.race.winner, self->rc);
        if (roll(&self->actor) % 16 == 0)
            SN_YIELD();
    }
    SN_RETURN(0);
    SN_END();
}

/* ---- lives ---------------------------------------------------------------------------------- */

static int populate(void *arg)
{
    struct life *life = arg;
    for (int i = 0; i < FIBERS; i++)
        CHECK_EQ(sn_detach(sn_spawn(act_as_fiber, life)), 0);
    for (int i = 0; i < COROS; i++) {
        racer frame = {.actor = new_actor(life, true)};
        CHECK_EQ(sn_detach(sn_spawn_coro(racer, &frame)), 0);
    }
    return 0;
}

/* Until much has happened, or nothing does: they may all wait for each other. */
static void let_live(struct life *life, sn_runtime *rt, bool is_turned)
{
    for (int i = 0; i < NAPS && atomic_load(&life->steps) < STEPS; i++) {
        if (is_turned)
            CHECK_GE(sn_runtime_turn(rt, sn_after(SN_US(NAP_US))), 0);
        else
            CHECK_EQ(sn_sleep(SN_US(NAP_US)), 0);
    }
}

static void live(struct life *life)
{
    static const sn_io_driver drivers[] = {SN_IO_AUTO, SN_IO_EPOLL, SN_IO_POLL};
    uint32_t kind = roll_on(&life->dice);
    bool single = kind % 4 == 0;
    sn_runtime_options opts = {.single_threaded = single,
                               .workers = single ? 0 : 1 + kind / 4 % 2,
                               .lifo = kind / 8 % 4 == 0,
                               .io = drivers[kind / 32 % 3]};
    uint32_t end = roll_on(&life->dice) % 4;
    life->is_patient = end >= 2;
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, &opts), 0);
    sn_task *first = sn_runtime_spawn(rt, populate, life);
    CHECK(first != NULL);
    CHECK_EQ(sn_detach(first), 0);
    let_live(life, rt, single);
    if (end == 0 || end == 2)
        atomic_store(&life->is_over, true);
    if (end == 0)
        CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    else
        CHECK_GE(sn_runtime_shutdown(rt, end == 1 ? sn_after(SN_MS(1)) : SN_NOWAIT), 0);
    sn_runtime_destroy(rt);
}

struct place {
    struct life lives[LIVES];
    pthread_t thread;
};

static void *live_again_and_again(void *arg)
{
    struct place *place = arg;
    for (int i = 0; i < LIVES; i++)
        live(&place->lives[i]);
    return NULL;
}

/* ---- rounds --------------------------------------------------------------------------------- */

static void begin_round(void)
{
    static const size_t capacities[CHANNELS] = {0, 3, SN_CHAN_UNBOUNDED};
    sn_chan_options values = {.drop = drop_value};
    memset((void *)all.offered, 0, sizeof(all.offered));
    memset((void *)all.received, 0, sizeof(all.received));
    memset((void *)all.dropped, 0, sizeof(all.dropped));
    atomic_store(&all.next, 0);
    atomic_store(&all.is_over, false);
    atomic_store(&all.receiving, 0);
    all.mutex = (sn_mutex)SN_MUTEX_INIT;
    all.fair = (sn_mutex)SN_MUTEX_FAIR_INIT;
    all.rwlock = (sn_rwlock)SN_RWLOCK_INIT;
    all.cond = (sn_cond)SN_COND_INIT;
    all.sem = (sn_sem)SN_SEM_INIT(UNITS);
    all.event = (sn_event)SN_EVENT_INIT;
    for (int i = 0; i < CHANNELS; i++)
        CHECK_EQ(sn_chan_create(&all.ch[i], sizeof(uint32_t), capacities[i], &values), 0);
    close_conn(); /* there is none yet */
}

static void check_values(void)
{
    int lost = 0;
    for (uint32_t v = 0; v < VALUES; v++) {
        int ended = all.received[v] + all.dropped[v];
        if (ended > 1 || (ended != 0 && (all.offered[v] == 0 || all.offered[v] == BACK)))
            FAIL("value %u: state %d, received %d times, dropped %d times", v, all.offered[v],
                 all.received[v], all.dropped[v]);
        lost += all.offered[v] == GONE && ended == 0;
    }
    CHECK_GE(all.receiving, 0);
    CHECK_LE(lost, all.receiving);
}

static void end_round(void)
{
    close_conn();
    for (int i = 0; i < BOARD; i++) {
        sn_task *left = atomic_exchange(&all.board[i], NULL);
        int rc = left != NULL ? sn_detach(left) : 0;
        CHECK(rc == 0 ||
              rc == -ESRCH); /* a select that had it when its runtime went gave it back */
    }
    for (int i = 0; i < CHANNELS; i++)
        CHECK_EQ(sn_chan_destroy(all.ch[i]), 0);
    check_values();
    CHECK_EQ(all.written, all.written_again);
    CHECK_EQ(sn_sem_get(&all.sem), UNITS);
    CHECK_EQ(sn_mutex_finish(&all.mutex), 0);
    CHECK_EQ(sn_mutex_finish(&all.fair), 0);
    CHECK_EQ(sn_rwlock_finish(&all.rwlock), 0);
    CHECK_EQ(sn_cond_finish(&all.cond), 0);
    CHECK_EQ(sn_sem_finish(&all.sem), 0);
    CHECK_EQ(sn_event_finish(&all.event), 0);
}

static uint32_t some_dice(int round, int place, int life)
{
    uint32_t n = (uint32_t)test_seed() + (uint32_t)((round * PLACES + place) * LIVES + life);
    return n * 2654435761u | 1;
}

static void blow(int places, int round)
{
    static struct place place[PLACES];
    static struct life outside;
    pthread_t thread[THREADS];
    begin_round();
    outside = (struct life){.dice = some_dice(round, 99, 0)};
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, act_as_thread, &outside), 0);
    for (int i = 0; i < places; i++) {
        for (int k = 0; k < LIVES; k++)
            place[i].lives[k] = (struct life){.dice = some_dice(round, i, k)};
        CHECK_EQ(pthread_create(&place[i].thread, NULL, live_again_and_again, &place[i]), 0);
    }
    for (int i = 0; i < places; i++)
        CHECK_EQ(pthread_join(place[i].thread, NULL), 0);
    atomic_store(&all.is_over, true);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    end_round();
}

/* Something that has not happened so far, or LOST: that a handle outlives its runtime is rare. */
static int missing_kind(void)
{
    int i = 0;
    while (i < LOST && atomic_load(&all.times[i]) > 0)
        i++;
    return i;
}

static void storm(int places)
{
    const char *seconds = getenv("SINEW_STORM_S");
    int64_t end_ns = sn_now() + (seconds != NULL ? SN_S(atoi(seconds)) : 0);
    for (int i = 0; i < ROUNDS || sn_now() < end_ns || (i < PATIENCE && missing_kind() < LOST); i++)
        blow(places, i);
    if (missing_kind() < LOST)
        FAIL("in all the storm there was none of kind %d", missing_kind());
}

TEST(two_runtimes_that_come_and_go_lose_nothing, .limit_s = 120)
{
    storm(2);
}

TEST(three_runtimes_that_come_and_go_lose_nothing, .limit_s = 120)
{
    storm(3);
}
