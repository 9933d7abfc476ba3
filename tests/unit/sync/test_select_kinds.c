/* SPDX-License-Identifier: MIT */
/* Select over all kinds of things at once (R92): sends, receives, news, times, tasks, descriptors
 * and futures; from fibers, threads (R5) and coroutines, with each driver. Whoever loses has lost
 * nothing. */
#include "unit/sync/things.h"

#include <pthread.h>
#include <string.h>

/* ---- who selects ------------------------------------------------------------------------ */

struct job {
    sn_case *cases;
    size_t n;
    unsigned flags;
    int result;
    sn_chan *done;
};

typedef struct selector {
    sn_coro coro;
    struct job *job;
    sn_select_state select;
} selector;

SN_CORO(selector, self)
{
    SN_BEGIN(self);
    SN_AWAIT_INTO(self->job->result,
                  sn_select_op(&self->select, self->job->cases, self->job->n, self->job->flags));
    SN_END();
}

static void *select_as_thread(void *arg)
{
    struct job *job = arg;
    job->result = sn_select(job->cases, job->n, job->flags, SN_FOREVER);
    CHECK_EQ(sn_chan_send(job->done, NULL, SN_FOREVER), 0);
    return NULL;
}

enum { FIBER, THREAD, CORO, WAYS };

/* sn_select, in one of the ways; called from a fiber, which leaves its worker free meanwhile. */
static int do_select(int way, sn_case *cases, size_t n, unsigned flags)
{
    struct job job = {.cases = cases, .n = n, .flags = flags, .result = -1};
    if (way == FIBER)
        return sn_select(cases, n, flags, SN_FOREVER);
    if (way == CORO) {
        selector frame = {.job = &job};
        CHECK_EQ(sn_join(sn_spawn_coro(selector, &frame), NULL), 0);
        return job.result;
    }
    pthread_t thread;
    CHECK_EQ(sn_chan_create(&job.done, 0, 1, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, select_as_thread, &job), 0);
    CHECK_EQ(sn_chan_recv(job.done, NULL, SN_FOREVER), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(sn_chan_destroy(job.done), 0);
    return job.result;
}

static int fire_later(void *arg)
{
    CHECK_EQ(sn_sleep(SN_MS(1)), 0);
    thing_fire(arg);
    return 0;
}

/* One of each kind, of which `winner` is ready at once, or later. */
static void win(int way, int winner, bool later)
{
    struct thing things[THING_KINDS];
    sn_case cases[THING_KINDS];
    sn_task *firing = NULL;
    for (int i = 0; i < THING_KINDS; i++)
        thing_open(&things[i], (enum thing_kind)i);
    if (later && winner == THING_DEADLINE)
        things[winner].at = sn_after(SN_MS(1));
    else if (later)
        firing = sn_spawn(fire_later, &things[winner]);
    else
        thing_fire(&things[winner]);
    for (int i = 0; i < THING_KINDS; i++)
        cases[i] = thing_case(&things[i]);
    CHECK_EQ(do_select(way, cases, THING_KINDS, 0), winner);
    if (firing != NULL)
        CHECK_EQ(sn_join(firing, NULL), 0);
    thing_won(&things[winner], cases[winner].result);
    for (int i = 0; i < THING_KINDS; i++) {
        if (i != winner)
            thing_lost(&things[i]);
        thing_close(&things[i]);
    }
}

TASK_TEST(of_all_kinds_the_one_that_is_ready_takes_place)
{
    (void)arg;
    for (int way = 0; way < WAYS; way++)
        for (int winner = 0; winner < THING_KINDS; winner++)
            win(way, winner, false);
    return 0;
}

TASK_TEST(of_all_kinds_the_one_that_becomes_ready_takes_place)
{
    (void)arg;
    for (int way = 0; way < WAYS; way++)
        for (int winner = 0; winner < THING_KINDS; winner++)
            win(way, winner, true);
    return 0;
}

TASK_TEST(each_kind_alone_is_waited_for)
{
    (void)arg;
    for (int way = 0; way < WAYS; way++) {
        for (int kind = 0; kind < THING_KINDS; kind++) {
            struct thing thing;
            thing_open(&thing, (enum thing_kind)kind);
            if (kind == THING_DEADLINE)
                thing.at = sn_after(SN_MS(1));
            sn_case c = thing_case(&thing);
            sn_task *t = kind == THING_DEADLINE ? NULL : sn_spawn(fire_later, &thing);
            CHECK_EQ(do_select(way, &c, 1, 0), 0);
            if (t != NULL)
                CHECK_EQ(sn_join(t, NULL), 0);
            thing_won(&thing, c.result);
            thing_close(&thing);
        }
    }
    return 0;
}

TASK_TEST(a_deadline_of_the_select_leaves_all_kinds_as_they_were)
{
    (void)arg;
    for (int k = 0; k < 3; k++) {
        struct thing things[THING_KINDS];
        sn_case cases[THING_KINDS];
        for (int i = 0; i < THING_KINDS; i++) {
            thing_open(&things[i], (enum thing_kind)i);
            cases[i] = thing_case(&things[i]);
        }
        sn_deadline until = k == 0 ? SN_NOWAIT : sn_after(SN_US(300 * k));
        CHECK_EQ(sn_select(cases, THING_KINDS, 0, until), -ETIMEDOUT);
        CHECK_EQ(sn_select(cases, THING_KINDS, 0, until), -ETIMEDOUT);
        for (int i = 0; i < THING_KINDS; i++) {
            thing_lost(&things[i]);
            thing_close(&things[i]);
        }
    }
    return 0;
}

TASK_TEST(sixty_four_cases_of_all_kinds_are_waited_for)
{
    (void)arg;
    static struct thing things[SN_SELECT_MAX];
    static sn_case cases[SN_SELECT_MAX];
    for (int way = 0; way < WAYS; way++) {
        for (int winner = 63; winner >= 0; winner -= 21) {
            for (int i = 0; i < SN_SELECT_MAX; i++) {
                thing_open(&things[i], (enum thing_kind)(i % THING_KINDS));
                cases[i] = thing_case(&things[i]);
            }
            sn_task *t = sn_spawn(fire_later, &things[winner]);
            CHECK(winner % THING_KINDS != THING_DEADLINE);
            CHECK_EQ(do_select(way, cases, SN_SELECT_MAX, 0), winner);
            CHECK_EQ(sn_join(t, NULL), 0);
            thing_won(&things[winner], cases[winner].result);
            for (int i = 0; i < SN_SELECT_MAX; i++) {
                if (i != winner)
                    thing_lost(&things[i]);
                thing_close(&things[i]);
            }
        }
    }
    return 0;
}

TASK_TEST(a_thing_may_stand_in_two_cases)
{
    (void)arg;
    for (int way = 0; way < WAYS; way++) {
        for (int kind = 0; kind < THING_KINDS; kind++) {
            struct thing thing;
            thing_open(&thing, (enum thing_kind)kind);
            if (kind == THING_DEADLINE)
                thing.at = sn_after(SN_MS(1));
            sn_case cases[] = {thing_case(&thing), thing_case(&thing), thing_case(&thing)};
            sn_task *t = kind == THING_DEADLINE ? NULL : sn_spawn(fire_later, &thing);
            int i = do_select(way, cases, 3, 0);
            CHECK(i >= 0 && i < 3);
            if (t != NULL)
                CHECK_EQ(sn_join(t, NULL), 0);
            thing_won(&thing, cases[i].result);
            thing_close(&thing);
        }
    }
    return 0;
}

/* ---- drivers ---------------------------------------------------------------------------- */

static int win_with_a_descriptor(void *arg)
{
    (void)arg;
    for (int way = 0; way < WAYS; way++) {
        for (int k = 0; k < 20; k++) {
            win(way, THING_FD, k % 2 == 0);
            win(way, THING_RECV, true); /* and lose: the operation is taken back */
        }
    }
    return 0;
}

static void with_driver(sn_io_driver io)
{
    for (unsigned workers = 1; workers <= 3; workers += 2) {
        sn_runtime *rt = NULL;
        sn_runtime_options opts = {
            .io = io, .single_threaded = workers == 1, .workers = workers == 1 ? 0 : workers};
        int rc = sn_runtime_create(&rt, &opts);
        if (rc < 0)
            SKIP("this driver is not to be had");
        CHECK_EQ(sn_runtime_block_on(rt, win_with_a_descriptor, NULL), 0);
        CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
        sn_runtime_destroy(rt);
    }
}

TEST(descriptors_win_and_lose_with_epoll, .limit_s = 60)
{
    with_driver(SN_IO_EPOLL);
}

TEST(descriptors_win_and_lose_with_poll, .limit_s = 60)
{
    with_driver(SN_IO_POLL);
}

TEST(descriptors_win_and_lose_with_uring, .limit_s = 60)
{
    with_driver(SN_IO_URING);
}

/* ---- virtual time ----------------------------------------------------------------------- */

static int wait_for_an_hour(void *arg)
{
    (void)arg;
    struct thing thing;
    thing_open(&thing, THING_RECV);
    for (int way = 0; way < WAYS; way += CORO) { /* a plain thread has the machine's time */
        int64_t begin = sn_now();
        sn_case cases[] = {thing_case(&thing), sn_case_deadline(sn_after(SN_S(3600))),
                           sn_case_deadline(sn_after(SN_S(7200)))};
        CHECK_EQ(do_select(way, cases, 3, 0), 1);
        CHECK_GE(sn_now() - begin, SN_S(3600));
        CHECK(sn_now() - begin < SN_S(7200));
    }
    thing_close(&thing);
    return 0;
}

TEST(the_earliest_of_several_deadlines_takes_place_in_virtual_time)
{
    sn_runtime_options opts = {.single_threaded = true, .virtual_time = true};
    CHECK_EQ(run_with(&opts, wait_for_an_hour, NULL), 0);
}

/* ---- losing late ------------------------------------------------------------------------ */

TASK_TEST(what_has_lost_is_not_touched_any_more)
{
    (void)arg;
    for (int way = 0; way < WAYS; way++) {
        struct thing things[THING_KINDS];
        static unsigned char bytes[sizeof(sn_case[THING_KINDS])], pattern[sizeof(bytes)];
        static sn_case cases[THING_KINDS];
        for (int i = 0; i < THING_KINDS; i++)
            thing_open(&things[i], (enum thing_kind)i);
        things[THING_DEADLINE].at = sn_after(SN_MS(4));
        sn_task *t = sn_spawn(fire_later, &things[THING_SIGNAL]);
        for (int i = 0; i < THING_KINDS; i++)
            cases[i] = thing_case(&things[i]);
        int winner = do_select(way, cases, THING_KINDS, 0);
        CHECK(winner == THING_SIGNAL || winner == THING_DEADLINE); /* the machine may be slow */
        CHECK_EQ(sn_join(t, NULL), 0);
        memset(cases, 0xa5, sizeof(cases));
        memset(pattern, 0xa5, sizeof(pattern));
        for (int i = 0; i < THING_KINDS; i++) {
            if (i != THING_SIGNAL && i != THING_DEADLINE)
                thing_fire(&things[i]);
        }
        CHECK_EQ(sn_sleep(SN_MS(6)), 0); /* past the deadline */
        memcpy(bytes, cases, sizeof(bytes));
        CHECK_EQ(memcmp(bytes, pattern, sizeof(bytes)), 0);
        for (int i = 0; i < THING_KINDS; i++)
            thing_close(&things[i]);
    }
    return 0;
}

/* ---- choosing --------------------------------------------------------------------------- */

enum { READY = 7, ROUNDS = 14000 };

/* Cases that are all ready, and stay so. */
struct ready {
    struct thing closed, cast, watch, time, task, fd;
    sn_fut_ready fut;
};

static void ready_open(struct ready *r)
{
    thing_open(&r->closed, THING_RECV);
    CHECK_EQ(sn_chan_close(r->closed.ch), 0);
    thing_open(&r->cast, THING_BROADCAST);
    CHECK_EQ(sn_broadcast_close(r->cast.cast), 0);
    thing_open(&r->watch, THING_WATCH);
    thing_open(&r->time, THING_DEADLINE);
    thing_open(&r->task, THING_JOIN);
    thing_open(&r->fd, THING_FD);
    thing_fire(&r->time);
    thing_fire(&r->task);
    thing_fire(&r->fd);
    sn_case end = sn_case_join(r->task.task);
    CHECK_EQ(sn_select(&end, 1, 0, SN_FOREVER), 0);
}

static void ready_cases(struct ready *r, sn_case cases[READY])
{
    r->watch.version = 0;
    cases[0] = thing_case(&r->closed);
    cases[1] = thing_case(&r->cast);
    cases[2] = thing_case(&r->watch);
    cases[3] = thing_case(&r->time);
    cases[4] = thing_case(&r->task);
    cases[5] = thing_case(&r->fd);
    cases[6] = sn_case_future(sn_fut_ready_init(&r->fut, 3));
}

static void ready_close(struct ready *r)
{
    thing_won(&r->task, 0);
    thing_won(&r->fd, SN_READABLE);
    thing_close(&r->closed);
    thing_close(&r->cast);
    thing_close(&r->watch);
    thing_close(&r->time);
    thing_close(&r->task);
    thing_close(&r->fd);
}

static void *count_choices(void *arg)
{
    struct ready *r = arg;
    int count[READY] = {0};
    for (int k = 0; k < ROUNDS; k++) {
        sn_case cases[READY];
        ready_cases(r, cases);
        int i = sn_select(cases, READY, 0, k % 2 == 0 ? SN_NOWAIT : SN_FOREVER);
        CHECK(i >= 0 && i < READY);
        count[i]++;
    }
    for (int i = 0; i < READY; i++) /* 2000 each, with a deviation of 41: eight are allowed */
        CHECK(count[i] > 1670 && count[i] < 2330);
    return NULL;
}

static int choose(void *arg)
{
    (void)arg;
    struct ready r;
    pthread_t thread;
    ready_open(&r);
    (void)count_choices(&r);
    CHECK_EQ(pthread_create(&thread, NULL, count_choices, &r), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    for (int first = 0; first < READY; first++) {
        sn_case cases[READY], turned[READY];
        ready_cases(&r, cases);
        for (int i = 0; i < READY; i++)
            turned[i] = cases[(i + first) % READY];
        CHECK_EQ(sn_select(turned, READY, SN_SELECT_ORDERED, SN_FOREVER), 0);
    }
    ready_close(&r);
    return 0;
}

TEST(each_kind_that_is_ready_is_chosen_as_often_or_in_order, .limit_s = 60)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, choose, NULL), 0);
}

/* ---- off, and wrong --------------------------------------------------------------------- */

TASK_TEST(a_case_of_nothing_is_switched_off_whatever_its_kind)
{
    (void)arg;
    int v;
    uint64_t version = 0;
    sn_case cases[] = {
        sn_case_broadcast(NULL, &v),  sn_case_watch(NULL, &v, &version),
        sn_case_deadline(SN_FOREVER), sn_case_join(NULL),
        sn_case_fd(-1, SN_READABLE),  sn_case_future(NULL),
    };
    CHECK_EQ(sn_select(cases, 6, 0, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_select(cases, 6, 0, sn_after(SN_MS(1))), -ETIMEDOUT);
    return 0;
}

static int select_oneself(void *arg)
{
    sn_task **self = arg;
    sn_case c = sn_case_join(*self);
    CHECK_EQ(sn_select(&c, 1, 0, SN_FOREVER), 0);
    CHECK_EQ(c.result, -EDEADLK);
    return 3;
}

TASK_TEST(a_task_that_cannot_be_joined_takes_place_with_the_error)
{
    (void)arg;
    struct thing thing;
    thing_open(&thing, THING_JOIN);
    sn_task *volatile task = thing.task; /* compilers would object to its second use */
    thing_fire(&thing);
    CHECK_EQ(sn_join(task, NULL), 7);
    thing.task = NULL;
    sn_case c = sn_case_join(task);
    CHECK_EQ(sn_select(&c, 1, 0, SN_FOREVER), 0);
    CHECK_EQ(c.result, -ESRCH);
    thing_close(&thing);
    sn_task *self = NULL;
    self = sn_spawn(select_oneself, &self, .local = true);
    CHECK_EQ(sn_join(self, NULL), 3);
    return 0;
}

TASK_TEST(a_descriptor_that_is_none_takes_place_with_the_error)
{
    (void)arg;
    int fds[2];
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    sn_case cases[] = {sn_case_fd(fds[0], 64), sn_case_fd(1000000, SN_READABLE)};
    CHECK_EQ(sn_select(cases, 1, 0, SN_FOREVER), 0);
    CHECK_EQ(cases[0].result, -EINVAL);
    CHECK_EQ(sn_select(&cases[1], 1, 0, SN_FOREVER), 0);
    CHECK(cases[1].result == -EBADF || cases[1].result > 0); /* poll(2) says: ready, try */
    close(fds[0]);
    close(fds[1]);
    return 0;
}

/* ---- abandoned -------------------------------------------------------------------------- */

static int wait_for_ever(void *arg)
{
    struct thing *things = arg;
    sn_case cases[THING_KINDS];
    for (int i = 0; i < THING_KINDS; i++)
        cases[i] = thing_case(&things[i]);
    return sn_select(cases, THING_KINDS, 0, SN_FOREVER);
}

static int leave_one_waiting(void *arg)
{
    struct thing *things = arg;
    for (int i = 0; i < THING_KINDS; i++)
        thing_open(&things[i], (enum thing_kind)i);
    CHECK_EQ(sn_spawn_detached(wait_for_ever, things), 0);
    return sn_sleep(SN_MS(2));
}

static int leave_a_coroutine_waiting(void *arg)
{
    struct thing *things = arg;
    static sn_case cases[THING_KINDS];
    static struct job job;
    for (int i = 0; i < THING_KINDS; i++) {
        thing_open(&things[i], (enum thing_kind)i);
        cases[i] = thing_case(&things[i]);
    }
    job = (struct job){.cases = cases, .n = THING_KINDS, .result = -1};
    selector frame = {.job = &job};
    CHECK_EQ(sn_spawn_coro_detached(selector, &frame), 0);
    return sn_sleep(SN_MS(2));
}

/* The runtime is gone, from under who waited: what is left of its things is as it was. A future was
 * dropped with the fiber; with the coroutine it was not. */
static void check_left(struct thing *t, bool was_fiber)
{
    int v = 9;
    if (t->kind == THING_JOIN) {
        t->task = NULL; /* abandoned, too */
    } else if (was_fiber && t->fut != NULL) {
        t->fut = NULL;
        CHECK_EQ(sn_chan_send(t->ch, &v, SN_NOWAIT), 0);
        CHECK_EQ(sn_chan_len(t->ch), 1); /* nobody waits there */
    } else {
        thing_lost(t); /* from this plain thread */
    }
    thing_close(t);
}

TEST(what_an_abandoned_select_has_lent_is_taken_back)
{
    for (unsigned k = 0; k < 4; k++) {
        unsigned workers = 1 + k % 2;
        struct thing things[THING_KINDS];
        sn_runtime *rt = NULL;
        sn_runtime_options opts = {.single_threaded = workers == 1,
                                   .workers = workers == 1 ? 0 : workers};
        CHECK_EQ(sn_runtime_create(&rt, &opts), 0);
        sn_task_fn *leave = k < 2 ? leave_one_waiting : leave_a_coroutine_waiting;
        CHECK_EQ(sn_runtime_block_on(rt, leave, things), 0);
        CHECK_EQ(sn_runtime_shutdown(rt, SN_NOWAIT), 2); /* and the task that it waits for */
        sn_runtime_destroy(rt);
        for (int i = 0; i < THING_KINDS; i++)
            check_left(&things[i], k < 2);
    }
}
