/* SPDX-License-Identifier: MIT */
/* The checkpoint law (R61, R62, R64): see law.h for what it says, law_*.c for its rows. Here it is
 * executed: by fibers, by coroutines, and what there is to it of deadlines by plain threads; with
 * each driver; on Level 1, in order of arrival and in that of some seeds, and on Level 2 with one
 * worker and with four. Who breaks it is named with row and situation. */
#include "unit/cancel/law.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const struct law_rows *const law[] = {&law_of_channels, &law_of_locks, &law_of_tasks,
                                             &law_of_sockets};

enum { TABLES = sizeof(law) / sizeof(law[0]), UNTOUCHED = -9999, NOT_AT_ALL = -9998 };

/* Who makes the calls: given by the test that runs. */
static struct {
    enum { FIBERS, COROUTINES, THREADS } who;
    unsigned workers;
    atomic_long spawned, ended;
    atomic_int calls; /* that were made, in whatever way */
} run;

/* ---- one call -------------------------------------------------------------------------------- */

struct visit {
    const struct law_row *row;
    const char *situation;
    sn_deadline until;
    bool when_cancelled; /* it is made only when the task is cancelled */
    bool twice;          /* and once more, if the first was cancelled  */
    int yields;          /* before it is made                           */
    sn_deadline around;  /* of the block that it is made in; zeroed: none */
    ptrdiff_t rc;
    atomic_bool began;
};

static void broken(const struct visit *v, ptrdiff_t rc, const char *expected)
{
    FAIL("%s%s%s, %s: %ld instead of %s", v->row->call, v->row->variant != NULL ? ", " : "",
         v->row->variant != NULL ? v->row->variant : "", v->situation, (long)rc, expected);
}

static void touch(struct visit *v, ptrdiff_t rc)
{
    v->rc = rc;
    if (rc == v->row->takes && v->row->give_back != NULL)
        v->row->give_back();
}

/* Await the future of the row, and drop it if it is pending. */
static ptrdiff_t await_op(const struct law_row *row, sn_deadline until)
{
    union law_memory m;
    sn_future *fut = row->op(&m);
    ptrdiff_t rc = sn_await(fut, until);
    if (sn_future_finished(fut))
        return rc;
    CHECK_EQ(sn_future_drop(fut), 0);
    return (row->flags & LAW_OF_CHANNELS) != 0 && m.chan.result >= 0 ? row->takes : rc;
}

static ptrdiff_t call(const struct law_row *row, sn_deadline until)
{
    atomic_fetch_add(&run.calls, 1);
    return row->plain != NULL ? row->plain(until) : await_op(row, until);
}

/* The deadline of a block does what a cancel does, and is over with the block. */
static int visit_in_block(struct visit *v)
{
    SN_DEADLINE(v->around) {
        touch(v, call(v->row, v->until));
        if (v->twice && call(v->row, v->until) != -ETIMEDOUT)
            broken(v, v->rc, "-ETIMEDOUT when it was called once more");
    }
    CHECK(!sn_cancelled());
    return 0;
}

static int visit_as_fiber(void *arg)
{
    struct visit *v = arg;
    atomic_store(&v->began, true);
    for (int i = 0; i < v->yields; i++)
        sn_yield();
    while (v->when_cancelled && !sn_cancelled())
        sn_yield();
    if (v->around.ns != 0)
        return visit_in_block(v);
    touch(v, call(v->row, v->until));
    bool was_cancelled = v->rc == -ECANCELED || (v->row->flags & LAW_PARTLY) != 0;
    if (!v->twice || !was_cancelled)
        return 0;
    if (!sn_cancelled())
        broken(v, v->rc, "a cancelled task");
    ptrdiff_t rc = call(v->row, v->until); /* the task is cancelled, not the call */
    if (rc != -ECANCELED)
        broken(v, rc, "-ECANCELED when it was called once more");
    return 0;
}

static void *visit_as_thread(void *arg)
{
    struct visit *v = arg;
    touch(v, call(v->row, v->until));
    return NULL;
}

typedef struct visitor {
    sn_coro coro;
    struct visit *v;
    union law_memory m;
    sn_sleep_state nap;
    sn_fut_race2 race;
    int i, rc;
    bool is_pending;
} visitor;

/* A deadline is a sleep that it is raced with. */
static sn_future *raced(visitor *self)
{
    sn_future *fut = self->v->row->op(&self->m);
    if (self->v->until.ns == SN_FOREVER.ns)
        return fut;
    return sn_fut_race2_init(&self->race, fut, sn_sleep_op(&self->nap, self->v->until));
}

SN_CORO(visitor, self)
{
    SN_BEGIN(self);
    atomic_store(&self->v->began, true);
    for (self->i = 0; self->i < self->v->yields; self->i++)
        SN_YIELD();
    while (self->v->when_cancelled && !sn_cancelled()) /* a yield would be its end */
        continue;
    atomic_fetch_add(&run.calls, 1);
    self->is_pending = true;
    SN_AWAIT_INTO(self->rc, raced(self));
    self->is_pending = false;
    if (self->v->until.ns != SN_FOREVER.ns && self->race.race.winner == 1)
        self->rc = -ETIMEDOUT;
    touch(self->v, self->rc);
    SN_FINALLY();
    if (self->is_pending && (self->v->row->flags & LAW_OF_CHANNELS) != 0)
        self->v->rc = self->m.chan.result >= 0 ? self->v->row->takes : -ECANCELED;
    else if (self->is_pending)
        self->v->rc = -ECANCELED;
    SN_END();
}

static sn_task *begin(struct visit *v)
{
    v->rc = UNTOUCHED;
    atomic_store(&v->began, false);
    visitor frame = {.v = v};
    return run.who == COROUTINES ? sn_spawn_coro(visitor, &frame) : sn_spawn(visit_as_fiber, v);
}

static void begin_and_see(struct visit *v, sn_task **task)
{
    *task = begin(v);
    while (!atomic_load(&v->began))
        sn_yield();
}

/* The call is made and comes back by itself. */
static void visit_to_the_end(struct visit *v)
{
    if (run.who == THREADS) {
        pthread_t thread;
        v->rc = UNTOUCHED;
        CHECK_EQ(pthread_create(&thread, NULL, visit_as_thread, v), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        return;
    }
    CHECK_EQ(sn_join(begin(v), NULL), 0);
}

/* ---- situations ------------------------------------------------------------------------------ */

static bool has(const struct law_row *row, unsigned flag)
{
    return (row->flags & flag) != 0;
}

/* What a call gives that must wait and is cancelled. */
static ptrdiff_t if_cancelled(const struct law_row *row)
{
    if (has(row, LAW_UNCANCELLED))
        return row->takes;
    return has(row, LAW_PARTLY) ? row->partly : -ECANCELED;
}

static ptrdiff_t if_too_late(const struct law_row *row)
{
    if (has(row, LAW_OWN_DEADLINE))
        return row->takes;
    if (run.who == THREADS && has(row, LAW_NEEDS_RUNTIME))
        return -EPERM;
    return has(row, LAW_PARTLY) ? row->partly : -ETIMEDOUT;
}

static void expect(struct visit *v, ptrdiff_t expected, ptrdiff_t or_else)
{
    char text[64];
    if (v->rc == expected || v->rc == or_else)
        return;
    (void)snprintf(text, sizeof(text), or_else == NOT_AT_ALL ? "%ld" : "%ld or %ld", (long)expected,
                   (long)or_else);
    broken(v, v->rc, text);
}

static void leave(const struct visit *v, bool let)
{
    v->row->place->close(let, v->rc == v->row->takes);
}

static void let(const struct law_row *row)
{
    row->place->let();
    if (row->place->settle != NULL)
        row->place->settle();
}

/* A coroutine that is cancelled before it begins has not made the call. */
static void cancelled(struct visit *v, sn_task *task)
{
    int rc = sn_cancel(task, NULL);
    CHECK(rc == 0 || rc == -ECANCELED);
    if (v->rc == UNTOUCHED && run.who == COROUTINES)
        v->rc = -ECANCELED;
}

static void cancel_before(const struct law_row *row, sn_deadline until)
{
    struct visit v = {.row = row, .until = until, .when_cancelled = true, .twice = true};
    bool in_time = until.ns == SN_FOREVER.ns;
    sn_task *task;
    v.situation = in_time ? "cancelled before" : "cancelled before, and too late";
    v.twice = in_time && !has(row, LAW_UNCANCELLED);
    row->place->open();
    begin_and_see(&v, &task);
    cancelled(&v, task);
    expect(&v, if_cancelled(row), in_time ? NOT_AT_ALL : if_too_late(row));
    leave(&v, false);
}

static void let_and_cancel_before(const struct law_row *row)
{
    struct visit v = {.row = row, .until = SN_FOREVER, .when_cancelled = true};
    sn_task *task;
    v.situation = "cancelled before, but it need not wait";
    row->place->open();
    let(row);
    begin_and_see(&v, &task);
    cancelled(&v, task);
    expect(&v, row->takes, has(row, LAW_DOUBTFUL) ? -ECANCELED : NOT_AT_ALL);
    leave(&v, true);
}

static void spin(int n)
{
    for (volatile int i = 0; i < n; i++)
        continue;
}

/* Or just before, or just when it begins to. */
static void cancel_while_it_waits(const struct law_row *row, int yields, int turns, int spins)
{
    struct visit v = {.row = row, .until = SN_FOREVER, .yields = yields, .twice = true};
    sn_task *task;
    v.situation = "cancelled while it waits";
    v.twice = !has(row, LAW_UNCANCELLED);
    row->place->open();
    begin_and_see(&v, &task);
    for (int i = 0; i < turns; i++)
        sn_yield();
    spin(spins);
    cancelled(&v, task);
    if (run.who == COROUTINES) /* perhaps before it got there */
        expect(&v, if_cancelled(row), -ECANCELED);
    else
        expect(&v, if_cancelled(row), NOT_AT_ALL);
    leave(&v, false);
}

struct canceller {
    struct visit *v;
    sn_task *task;
    int turns, spins;
};

static int cancel_it(void *arg)
{
    struct canceller *c = arg;
    for (int i = 0; i < c->turns; i++)
        sn_yield();
    spin(c->spins);
    cancelled(c->v, c->task);
    return 0;
}

/* Who lets it and who cancels it are two: whoever is first, one of the two has happened. */
static void let_and_cancel(const struct law_row *row, int turns, int spins)
{
    struct visit v = {.row = row, .until = sn_after(SN_S(3600)), .situation = "let and cancelled"};
    if (has(row, LAW_OWN_DEADLINE))
        v.until = SN_FOREVER;
    struct canceller c = {.v = &v, .turns = turns % 3, .spins = spins};
    row->place->open();
    begin_and_see(&v, &c.task);
    for (int i = 0; i < turns; i++)
        sn_yield();
    sn_task *canceller = sn_spawn(cancel_it, &c);
    for (int i = 0; i < turns / 2; i++)
        sn_yield();
    row->place->let();
    CHECK_EQ(sn_join(canceller, NULL), 0);
    expect(&v, row->takes, -ECANCELED);
    leave(&v, true);
}

static void be_too_late(const struct law_row *row, sn_deadline until)
{
    struct visit v = {.row = row, .until = until, .situation = "too late"};
    row->place->open();
    visit_to_the_end(&v);
    expect(&v, if_too_late(row), NOT_AT_ALL);
    leave(&v, false);
    if (row->place->let == NULL || has(row, LAW_WAITS))
        return;
    v.situation = "too late, but it need not wait";
    row->place->open();
    let(row);
    visit_to_the_end(&v);
    bool is_refused = run.who == THREADS && has(row, LAW_NEEDS_RUNTIME);
    expect(&v, row->takes, is_refused ? -EPERM : has(row, LAW_DOUBTFUL) ? -ETIMEDOUT : NOT_AT_ALL);
    leave(&v, true);
}

/* As a task that the joiner does not run itself: what is locked, it has locked. */
static void visit_beside(struct visit *v)
{
    sn_task *task;
    begin_and_see(v, &task);
    CHECK_EQ(sn_join(task, NULL), 0);
}

static void expire_around(const struct law_row *row, sn_deadline around)
{
    struct visit v = {.row = row, .until = SN_FOREVER, .around = around};
    v.situation = "in a block whose time is up, or soon is";
    v.twice = !has(row, LAW_UNCANCELLED);
    row->place->open();
    visit_beside(&v);
    ptrdiff_t expected = if_cancelled(row);
    expect(&v, expected == -ECANCELED ? -ETIMEDOUT : expected, NOT_AT_ALL);
    leave(&v, false);
    if (row->place->let == NULL || has(row, LAW_WAITS))
        return;
    v.situation = "in a block whose time is up, but it need not wait";
    v.twice = false;
    row->place->open();
    let(row);
    visit_beside(&v);
    expect(&v, row->takes, has(row, LAW_DOUBTFUL) ? -ETIMEDOUT : NOT_AT_ALL);
    leave(&v, true);
}

/* ---- the law --------------------------------------------------------------------------------- */

static void check_deadlines(const struct law_row *row)
{
    if (has(row, LAW_NO_DEADLINE))
        return;
    be_too_late(row, SN_NOWAIT);
    be_too_late(row, sn_after(-SN_S(1)));
    be_too_late(row, sn_after(SN_US(20)));
}

static void check_cancelling(const struct law_row *row)
{
    bool can_spin = run.who == FIBERS || run.workers > 1;
    for (int turns = 0; turns < 4; turns++)
        cancel_while_it_waits(row, turns % 2, turns, 0);
    for (int spins = 0; run.workers > 1 && spins < 4000; spins += 500)
        cancel_while_it_waits(row, 0, 0, spins + (int)(test_seed() % 499));
    if (can_spin && !has(row, LAW_OWN_DEADLINE))
        cancel_before(row, SN_NOWAIT);
    if (can_spin)
        cancel_before(row, SN_FOREVER);
    if (row->place->let == NULL)
        return;
    if (can_spin && !has(row, LAW_WAITS))
        let_and_cancel_before(row);
    for (int turns = 0; turns < 4; turns++)
        let_and_cancel(row, turns, (int)(test_seed() % 97) * turns);
}

static void check_blocks(const struct law_row *row)
{
    expire_around(row, sn_deadline_at_(1));
    expire_around(row, sn_after(SN_US(20)));
}

static bool is_to_be_checked(const struct law_row *row)
{
    if (run.who == COROUTINES)
        return row->op != NULL;
    return run.who == FIBERS || !has(row, LAW_NEEDS_TASKS);
}

static int check_all(void *arg)
{
    (void)arg;
    for (int t = 0; t < TABLES; t++)
        for (size_t i = 0; i < law[t]->n; i++) {
            const struct law_row *row = &law[t]->row[i];
            if (!is_to_be_checked(row))
                continue;
            printf("%s %s\n", row->call, row->variant != NULL ? row->variant : "");
            check_deadlines(row);
            if (run.who != THREADS)
                check_cancelling(row);
            if (run.who == FIBERS)
                check_blocks(row);
        }
    return 0;
}

/* ---- where it holds -------------------------------------------------------------------------- */

static void count_spawned(uint64_t id, const char *name, const char *at, void *arg)
{
    (void)id, (void)name, (void)at, (void)arg;
    atomic_fetch_add(&run.spawned, 1);
}

static void count_ended(uint64_t id, const char *name, const char *at, void *arg)
{
    (void)id, (void)name, (void)at, (void)arg;
    atomic_fetch_add(&run.ended, 1);
}

static void check_on(sn_runtime_options opts)
{
    sn_runtime *rt;
    opts.hooks = (sn_hooks){.task_spawned = count_spawned, .task_ended = count_ended};
    run.workers = opts.single_threaded ? 1 : opts.workers;
    int rc = sn_runtime_create(&rt, &opts);
    if (rc < 0 && opts.io == SN_IO_URING)
        SKIP("io_uring is not to be had here: %s", strerror(-rc));
    CHECK_EQ(rc, 0);
    CHECK_EQ(sn_runtime_block_on(rt, check_all, NULL), 0);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    sn_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&run.spawned), atomic_load(&run.ended));
    CHECK_GT(atomic_load(&run.calls), 100);
}

static void check_seeds(sn_io_driver io)
{
    for (uint64_t seed = 1; seed <= 3; seed++)
        check_on((sn_runtime_options){
            .io = io, .single_threaded = true, .seed = test_seed() % 1000 * 3 + seed});
}

#define LAW_TESTS(name_, who_, driver, io_)                                        \
    TEST(the_law_holds_for_##name_##_with_##driver##_on_level_1, .limit_s = 60)    \
    {                                                                              \
        run.who = who_;                                                            \
        check_on((sn_runtime_options){.io = io_, .single_threaded = true});        \
    }                                                                              \
    TEST(the_law_holds_for_##name_##_with_##driver##_seeded, .limit_s = 60)        \
    {                                                                              \
        run.who = who_;                                                            \
        check_seeds(io_);                                                          \
    }                                                                              \
    TEST(the_law_holds_for_##name_##_with_##driver##_with_1_worker, .limit_s = 60) \
    {                                                                              \
        run.who = who_;                                                            \
        check_on((sn_runtime_options){.io = io_, .workers = 1});                   \
    }                                                                              \
    TEST(the_law_holds_for_##name_##_with_##driver##_with_4, .limit_s = 60)        \
    {                                                                              \
        run.who = who_;                                                            \
        check_on((sn_runtime_options){.io = io_, .workers = 4});                   \
    }

LAW_TESTS(fibers, FIBERS, uring, SN_IO_URING)
LAW_TESTS(fibers, FIBERS, epoll, SN_IO_EPOLL)
LAW_TESTS(fibers, FIBERS, poll, SN_IO_POLL)
LAW_TESTS(coroutines, COROUTINES, uring, SN_IO_URING)
LAW_TESTS(coroutines, COROUTINES, epoll, SN_IO_EPOLL)
LAW_TESTS(coroutines, COROUTINES, poll, SN_IO_POLL)

TEST(the_law_holds_for_fibers_in_lifo_order, .limit_s = 60)
{
    run.who = FIBERS;
    check_on((sn_runtime_options){.io = SN_IO_EPOLL, .single_threaded = true, .lifo = true});
    check_on((sn_runtime_options){.io = SN_IO_EPOLL, .workers = 4, .lifo = true});
}

TEST(the_law_holds_for_coroutines_in_lifo_order, .limit_s = 60)
{
    run.who = COROUTINES;
    check_on((sn_runtime_options){.io = SN_IO_EPOLL, .single_threaded = true, .lifo = true});
    check_on((sn_runtime_options){.io = SN_IO_EPOLL, .workers = 4, .lifo = true});
}

TEST(the_law_of_deadlines_holds_for_plain_threads, .limit_s = 60)
{
    run.who = THREADS;
    CHECK_EQ(check_all(NULL), 0);
    CHECK_GT(atomic_load(&run.calls), 100);
}
