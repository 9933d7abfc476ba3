/* SPDX-License-Identifier: MIT */
/* Reading without waiting, and waiting without reading, on each driver (R82); whom operations of
 * coroutines wake, and what they weigh. */
#include "harness.h"
#include "io/epoll/slots.h"
#include "io/file.h"
#include "io/file_op.h"
#include "net/sock.h"
#include "task/task.h"

#include <sinew/sinew.h>

#include <fcntl.h>
#include <unistd.h>

static void on_each_driver(sn_task_fn *fn)
{
    static const sn_io_driver drivers[] = {SN_IO_URING, SN_IO_EPOLL, SN_IO_POLL};
    for (size_t i = 0; i < 3; i++) {
        sn_runtime *rt;
        sn_runtime_options opts = {.single_threaded = true, .io = drivers[i]};
        int rc = sn_runtime_create(&rt, &opts);
        if (rc < 0 && drivers[i] == SN_IO_URING)
            continue; /* not to be had here */
        CHECK_EQ(rc, 0);
        CHECK_EQ(sn_runtime_block_on(rt, fn, NULL), 0);
        sn_runtime_destroy(rt);
    }
}

static void put(sn_conn *conn, const char *byte)
{
    CHECK_EQ(sn_write_all(conn, byte, 1, NULL, SN_NOWAIT), 0);
}

static int read_often(void *arg)
{
    (void)arg;
    sn_conn *pair[2];
    char buf[16];
    CHECK_EQ(sn_conn_pair(pair), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(sn_read(pair[0], buf, sizeof(buf), SN_NOWAIT), -ETIMEDOUT);
        put(pair[1], "a");
        CHECK_EQ(sn_read(pair[0], buf, sizeof(buf), SN_NOWAIT), 1); /* short: it is dry now */
        put(pair[1], "b");
        CHECK_EQ(sn_read(pair[0], buf, sizeof(buf), sn_after(-1)), 1);
    }
    CHECK_EQ(sn_close(pair[0]), 0);
    CHECK_EQ(sn_close(pair[1]), 0);
    return 0;
}

TEST(who_does_not_wait_is_given_what_came_after_a_short_read)
{
    on_each_driver(read_often);
}

static int wait_often(void *arg)
{
    (void)arg;
    sn_conn *pair[2];
    char buf[16];
    CHECK_EQ(sn_conn_pair(pair), 0);
    for (int i = 0; i < 5; i++) {
        size_t want = i % 2 == 0 ? sizeof(buf) : 1; /* short, or just what is there */
        put(pair[1], "a");
        CHECK_EQ(sn_conn_wait(pair[0], SN_READABLE, SN_FOREVER), SN_READABLE);
        CHECK_EQ(sn_read(pair[0], buf, want, SN_NOWAIT), 1);
        int in_vain = 0;
        while (sn_conn_wait(pair[0], SN_READABLE, sn_after(SN_MS(5))) == SN_READABLE) {
            CHECK_EQ(sn_read(pair[0], buf, want, SN_NOWAIT), -ETIMEDOUT);
            CHECK_LE(++in_vain, 1);
        }
        CHECK_EQ(sn_conn_wait(pair[0], SN_READABLE | SN_WRITABLE, SN_FOREVER), SN_WRITABLE);
    }
    CHECK_EQ(sn_close(pair[0]), 0);
    CHECK_EQ(sn_close(pair[1]), 0);
    return 0;
}

TEST(who_waits_to_read_is_told_at_most_once_of_what_is_not_there)
{
    on_each_driver(wait_often);
}

typedef struct waits {
    sn_coro coro;
    sn_conn *conn;
    sn_io_state io;
    int turns, bytes;
} waits;

SN_CORO(waits, self)
{
    char buf[16];
    ptrdiff_t n = 1;
    SN_BEGIN(self);
    while (n != 0) {
        SN_AWAIT(sn_conn_wait_op(&self->io, self->conn, SN_READABLE));
        n = sn_read(self->conn, buf, sizeof(buf), SN_NOWAIT);
        self->bytes += n > 0 ? (int)n : 0;
        CHECK_LE(++self->turns, 2 * self->bytes + 2);
    }
    SN_RETURN(self->bytes);
    SN_END();
}

static int echo_by_waits(void *arg)
{
    (void)arg;
    sn_conn *pair[2];
    CHECK_EQ(sn_conn_pair(pair), 0);
    waits frame = {.conn = pair[0]};
    sn_task *task = sn_spawn_coro(waits, &frame);
    for (int i = 0; i < 5; i++) {
        put(pair[1], "a");
        CHECK_EQ(sn_sleep(SN_MS(2)), 0);
    }
    CHECK_EQ(sn_close(pair[1]), 0);
    CHECK_EQ(sn_join(task, NULL), 5);
    CHECK_EQ(sn_close(pair[0]), 0);
    return 0;
}

TEST(a_coroutine_that_waits_and_then_reads_does_not_spin)
{
    on_each_driver(echo_by_waits);
}

/* ---- waiting for either --------------------------------------------------------------------- */

static void fill(sn_conn *conn)
{
    static const char zeros[4096];
    while (sn_write(conn, zeros, sizeof(zeros), SN_NOWAIT) > 0) {
    }
    while (sn_write(conn, zeros, 1, SN_NOWAIT) > 0) {
    }
}

static int drain_some(void *arg)
{
    static char buf[4096];
    for (int i = 0; i < 40; i++)
        CHECK_GT(sn_read(arg, buf, sizeof(buf), SN_FOREVER), 0);
    return 0;
}

/* It has been told that it may write, and has found that it may not. */
static int wait_for_either(void *arg)
{
    (void)arg;
    sn_conn *pair[2];
    CHECK_EQ(sn_conn_pair(pair), 0);
    CHECK_EQ(sn_conn_wait(pair[0], SN_WRITABLE, SN_FOREVER), SN_WRITABLE);
    for (int i = 0; i < 3; i++) {
        fill(pair[0]);
        sn_task *drainer = sn_spawn(drain_some, pair[1]);
        CHECK(drainer != NULL);
        for (int in_vain = 0;;) {
            CHECK_EQ(sn_conn_wait(pair[0], SN_READABLE | SN_WRITABLE, SN_FOREVER), SN_WRITABLE);
            if (sn_write(pair[0], "x", 1, SN_NOWAIT) == 1)
                break;
            CHECK_LE(++in_vain, 2);
        }
        CHECK_EQ(sn_join(drainer, NULL), 0);
    }
    CHECK_EQ(sn_close(pair[0]), 0);
    CHECK_EQ(sn_close(pair[1]), 0);
    return 0;
}

TEST(who_waits_for_either_is_not_told_without_end_of_what_is_not_there)
{
    on_each_driver(wait_for_either);
}

typedef struct waits_for_either {
    sn_coro coro;
    sn_conn *conn;
    sn_io_state io;
    int in_vain;
} waits_for_either;

SN_CORO(waits_for_either, self)
{
    int events;
    SN_BEGIN(self);
    SN_AWAIT_INTO(events, sn_conn_wait_op(&self->io, self->conn, SN_WRITABLE));
    CHECK_EQ(events, SN_WRITABLE);
    fill(self->conn);
    for (;;) {
        SN_AWAIT_INTO(events, sn_conn_wait_op(&self->io, self->conn, SN_READABLE | SN_WRITABLE));
        CHECK_EQ(events, SN_WRITABLE);
        if (sn_write(self->conn, "x", 1, SN_NOWAIT) == 1)
            break;
        CHECK_LE(++self->in_vain, 2);
    }
    SN_RETURN(0);
    SN_END();
}

static int wait_for_either_as_coro(void *arg)
{
    (void)arg;
    sn_conn *pair[2];
    CHECK_EQ(sn_conn_pair(pair), 0);
    waits_for_either frame = {.conn = pair[0]};
    sn_task *task = sn_spawn_coro(waits_for_either, &frame);
    CHECK_EQ(sn_sleep(SN_MS(2)), 0);
    CHECK_EQ(drain_some(pair[1]), 0);
    CHECK_EQ(sn_join(task, NULL), 0);
    CHECK_EQ(sn_close(pair[0]), 0);
    CHECK_EQ(sn_close(pair[1]), 0);
    return 0;
}

TEST(a_coroutine_that_waits_for_either_is_not_told_without_end_of_what_is_not_there)
{
    on_each_driver(wait_for_either_as_coro);
}

static int set_flag(void *arg)
{
    *(bool *)arg = true;
    return 0;
}

/* What is always there: a connection that may be written, a file that no driver can wait for. */
static int wait_for_what_is_there(void *arg)
{
    (void)arg;
    sn_conn *pair[2];
    CHECK_EQ(sn_conn_pair(pair), 0);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_GE(null, 0);
    for (int what = 0; what < 2; what++) {
        bool had_a_turn = false;
        sn_task *other = sn_spawn(set_flag, &had_a_turn);
        CHECK(other != NULL);
        for (int i = 0; i < 1000; i++) {
            if (what == 0)
                CHECK_EQ(sn_conn_wait(pair[0], SN_WRITABLE, SN_FOREVER), SN_WRITABLE);
            else
                CHECK_EQ(sn_wait_fd(null, SN_READABLE, SN_FOREVER), SN_READABLE);
        }
        CHECK(had_a_turn);
        CHECK_EQ(sn_join(other, NULL), 0);
    }
    CHECK_EQ(close(null), 0);
    CHECK_EQ(sn_close(pair[0]), 0);
    CHECK_EQ(sn_close(pair[1]), 0);
    return 0;
}

static int read_without_waiting(void *arg)
{
    (void)arg;
    sn_conn *pair[2];
    static const char zeros[400];
    char byte;
    bool had_a_turn = false;
    CHECK_EQ(sn_conn_pair(pair), 0);
    CHECK_EQ(sn_write(pair[1], zeros, sizeof(zeros), SN_NOWAIT), (ptrdiff_t)sizeof(zeros));
    sn_task *other = sn_spawn(set_flag, &had_a_turn);
    CHECK(other != NULL);
    for (int i = 0; i < 190; i++) {
        CHECK_EQ(sn_read(pair[0], &byte, 1, SN_NOWAIT), 1);
        CHECK_EQ(sn_readv(pair[0], &(sn_iov){&byte, 1}, 1, SN_NOWAIT), 1);
        CHECK_EQ(sn_conn_wait(pair[0], SN_READABLE, SN_NOWAIT), SN_READABLE);
    }
    CHECK(!had_a_turn);
    CHECK_EQ(sn_read(pair[0], &byte, 1, SN_FOREVER), 1); /* it owes that */
    CHECK(had_a_turn);
    CHECK_EQ(sn_join(other, NULL), 0);
    CHECK_EQ(sn_close(pair[0]), 0);
    CHECK_EQ(sn_close(pair[1]), 0);
    return 0;
}

TEST(who_does_not_wait_does_not_give_way_either)
{
    on_each_driver(read_without_waiting);
}

TEST(who_need_not_wait_for_a_descriptor_gives_way_now_and_then)
{
    on_each_driver(wait_for_what_is_there);
}

/* ---- whom an operation wakes ---------------------------------------------------------------- */

struct poller {
    int wakes;
    int clones; /* less drops */
};

static void *poller_clone(void *data)
{
    ((struct poller *)data)->clones++;
    return data;
}

static int poller_wake(void *data)
{
    ((struct poller *)data)->wakes++;
    return 0;
}

static void poller_drop(void *data)
{
    ((struct poller *)data)->clones--;
}

static const sn_waker_vtable poller_vtable = {
    .clone = poller_clone, .wake_by_ref = poller_wake, .drop = poller_drop};

static sn_poll poll_by(struct poller *poller, sn_future *fut)
{
    sn_waker waker = {&poller_vtable, poller};
    sn_cx cx = {&waker};
    return sn_future_poll(fut, &cx);
}

/* Read the byte, if there is one, and find that there is no more. */
static int drain(sn_conn *conn)
{
    char byte;
    int n = 0;
    while (sn_read(conn, &byte, 1, SN_NOWAIT) == 1)
        n++;
    return n;
}

static int change_pollers(void *arg)
{
    (void)arg;
    sn_conn *pair[2];
    sn_io_state io;
    CHECK_EQ(sn_conn_pair(pair), 0);
    for (int polls = 1; polls <= 3; polls++) {
        struct poller pollers[3] = {{0, 0}, {0, 0}, {0, 0}};
        struct poller *last = &pollers[polls - 1];
        sn_future *fut = sn_conn_wait_op(&io, pair[0], SN_READABLE);
        for (int i = 0; i < polls; i++)
            CHECK(sn_poll_pending(poll_by(&pollers[i], fut)));
        put(pair[1], "a");
        while (last->wakes == 0)
            CHECK_EQ(sn_sleep(SN_MS(1)), 0);
        CHECK_EQ(poll_by(last, fut).value, SN_READABLE);
        CHECK_EQ(last->wakes, 1);
        for (int i = 0; i < polls; i++)
            CHECK_EQ(pollers[i].clones, 0);
        CHECK_EQ(drain(pair[0]), 1);
    }
    CHECK_EQ(sn_close(pair[0]), 0);
    CHECK_EQ(sn_close(pair[1]), 0);
    return 0;
}

TEST(an_operation_wakes_who_polled_it_last)
{
    on_each_driver(change_pollers);
}

static int drop_while_waiting(void *arg)
{
    (void)arg;
    sn_conn *pair[2];
    sn_io_state io;
    CHECK_EQ(sn_conn_pair(pair), 0);
    for (int polls = 0; polls <= 3; polls++) {
        for (int ready = 0; ready < 2; ready++) {
            struct poller pollers[3] = {{0, 0}, {0, 0}, {0, 0}};
            sn_future *fut = sn_conn_wait_op(&io, pair[0], SN_READABLE);
            for (int i = 0; i < polls; i++)
                CHECK(sn_poll_pending(poll_by(&pollers[i], fut)));
            if (ready) {
                put(pair[1], "a");
                CHECK_EQ(sn_sleep(SN_MS(1)), 0);
            }
            CHECK_EQ(sn_future_drop(fut), 0);
            for (int i = 0; i < polls; i++) {
                CHECK_EQ(pollers[i].clones, 0);
                CHECK(ready || pollers[i].wakes == 0); /* whoever drops it knows */
            }
            CHECK_EQ(drain(pair[0]), ready);
        }
    }
    CHECK_EQ(sn_close(pair[0]), 0);
    CHECK_EQ(sn_close(pair[1]), 0);
    return 0;
}

TEST(an_operation_that_is_dropped_keeps_no_waker)
{
    on_each_driver(drop_while_waiting);
}

/* ---- wakers of tasks ------------------------------------------------------------------------ */

static sn_poll poll_never(sn_future *fut, sn_cx *cx)
{
    (void)fut, (void)cx;
    return SN_PENDING;
}

static const sn_future_vtable never = {.poll = poll_never, .name = "never"};

/* Polls an operation of somebody else once, or none; and then ends, or waits until it is
 * cancelled. */
typedef struct passer_by {
    sn_coro coro;
    sn_future *once;
    int *polls;
    bool stays;
    sn_future wait;
} passer_by;

SN_CORO(passer_by, self)
{
    ++*self->polls;
    SN_BEGIN(self);
    if (self->once != NULL)
        CHECK(sn_poll_pending(sn_future_poll(self->once, SN_CX)));
    if (self->stays)
        SN_AWAIT(sn_future_init(&self->wait, &never));
    SN_END();
}

/* A waker that is kept keeps the task's record. Were it not so, the one that comes next would get
 * the memory of the one that ended, and be polled in its place. */
static int leave_a_waker(void *arg)
{
    (void)arg;
    sn_conn *pair[2];
    sn_io_state io;
    int polls = 0;
    CHECK_EQ(sn_conn_pair(pair), 0);
    sn_future *fut = sn_conn_wait_op(&io, pair[0], SN_READABLE);
    passer_by frame = {.once = fut, .polls = &polls};
    sn_task *first = sn_spawn_coro(passer_by, &frame);
    CHECK_EQ(sn_join(first, NULL), 0);
    CHECK_EQ(polls, 1);
    frame = (passer_by){.polls = &polls, .stays = true};
    sn_task *next = sn_spawn_coro(passer_by, &frame);
    CHECK_EQ(sn_sleep(SN_MS(1)), 0);
    CHECK_EQ(polls, 2);
    put(pair[1], "a"); /* wakes the one that has ended */
    CHECK_EQ(sn_sleep(SN_MS(5)), 0);
    struct poller poller = {0, 0};
    sn_poll p;
    while (sn_poll_pending(p = poll_by(&poller, fut)))
        CHECK_EQ(sn_sleep(SN_MS(1)), 0);
    CHECK_EQ(p.value, SN_READABLE);
    CHECK_EQ(sn_sleep(SN_MS(1)), 0);
    CHECK_EQ(polls, 2);
    CHECK_EQ(sn_cancel(next, NULL), -ECANCELED);
    CHECK_EQ(sn_close(pair[0]), 0);
    CHECK_EQ(sn_close(pair[1]), 0);
    return 0;
}

TEST(an_operation_outside_of_a_frame_wakes_no_other_task_in_place_of_the_one_that_polled_it)
{
    on_each_driver(leave_a_waker);
}

/* ---- closed in between ---------------------------------------------------------------------- */

/* A try in vain, after which the file is closed. */
static ptrdiff_t close_and_try(struct sni_file_op *fop)
{
    CHECK_EQ(sn_close(fop->extra), 0);
    return -EAGAIN;
}

static int close_before_waiting(void *arg)
{
    static const struct sni_file_op_kind kind = {.vt = SNI_FILE_OP("test"),
                                                 .attempt = close_and_try};
    (void)arg;
    for (int waits_before = 0; waits_before < 2; waits_before++) {
        sn_conn *pair[2];
        sn_io_state io;
        char byte;
        struct poller poller = {0, 0};
        CHECK_EQ(sn_conn_pair(pair), 0);
        if (waits_before) /* then it has a home */
            CHECK_EQ(sn_read(pair[0], &byte, 1, sn_after(SN_MS(1))), -ETIMEDOUT);
        struct sni_file_op *fop =
            sni_file_op_init(&io, &kind, sni_sock_handle(pair[0]), SNI_CONNS, SNI_WRITABLE);
        fop->extra = pair[0];
        sn_poll p = poll_by(&poller, &fop->future);
        CHECK(!sn_poll_pending(p));
        CHECK_EQ(p.value, -EBADF);
        CHECK_EQ(poller.wakes, 0);
        CHECK_EQ(poller.clones, 0);
        CHECK_EQ(sn_close(pair[1]), 0);
    }
    return 0;
}

TEST(a_close_between_a_try_and_the_wait_is_not_missed)
{
    on_each_driver(close_before_waiting);
}

/* ---- polls that meet completions ------------------------------------------------------------ */

enum { PAIRS = 16, TURNS = 100, RESTLESS = 3 };

/* Reads and writes one byte in turns, and polls meanwhile although nobody woke it. */
typedef struct restless {
    sn_coro coro;
    sn_conn *conn;
    char byte;
    int turn;
    int again;
    sn_poll last;
    sn_io_state io;
} restless;

SN_CORO(restless, self)
{
    SN_BEGIN(self);
    for (self->turn = 0; self->turn < TURNS; self->turn++) {
        (void)sn_read_op(&self->io, self->conn, &self->byte, 1);
        self->last = sn_future_poll(&self->io.future_, SN_CX);
        for (self->again = 0; self->again < RESTLESS && sn_poll_pending(self->last);
             self->again++) {
            SN_YIELD();
            self->last = sn_future_poll(&self->io.future_, SN_CX);
        }
        if (sn_poll_pending(self->last))
            SN_AWAIT_INTO(self->last.value, &self->io.future_);
        CHECK_EQ(self->last.value, 1);
        CHECK_EQ(sn_write_all(self->conn, &self->byte, 1, NULL, SN_NOWAIT), 0);
    }
    SN_END();
}

static int have_restless_pairs(void *arg)
{
    (void)arg;
    sn_conn *conns[2 * PAIRS];
    sn_task *tasks[2 * PAIRS];
    for (int i = 0; i < 2 * PAIRS; i += 2) {
        CHECK_EQ(sn_conn_pair(&conns[i]), 0);
        for (int end = 0; end < 2; end++)
            tasks[i + end] = sn_spawn_coro(restless, &(restless){.conn = conns[i + end]});
        put(conns[i], "a");
    }
    for (int i = 0; i < 2 * PAIRS; i++) {
        CHECK_EQ(sn_join(tasks[i], NULL), 0);
        CHECK_EQ(sn_close(conns[i]), 0);
    }
    return 0;
}

TEST(a_poll_that_nobody_asked_for_meets_a_completion_on_another_worker)
{
    static const sn_io_driver drivers[] = {SN_IO_URING, SN_IO_EPOLL, SN_IO_POLL};
    for (size_t i = 0; i < 3; i++) {
        sn_runtime *rt;
        sn_runtime_options opts = {.workers = 3, .io = drivers[i]};
        int rc = sn_runtime_create(&rt, &opts);
        if (rc < 0 && drivers[i] == SN_IO_URING)
            continue; /* not to be had here */
        CHECK_EQ(rc, 0);
        CHECK_EQ(sn_runtime_block_on(rt, have_restless_pairs, NULL), 0);
        sn_runtime_destroy(rt);
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

/* What a connection that is idle needs, the buffer being borrowed when there is something to read:
 * a task with its frame, a file, and what epoll keeps. */
TEST(an_idle_connection_of_a_coroutine_takes_at_most_512_bytes)
{
    typedef struct served {
        sn_coro coro;
        sn_conn *conn;
        void *rest;
        int rc;
        sn_io_state io;
    } served;
    size_t line = SNI_RECORD_STEP;
    /* A context is one word, but for what sanitizers are told. */
    size_t head = sizeof(struct sni_task) - sizeof(struct sni_context) + sizeof(void *);
    size_t task = (head + sizeof(served) + line - 1) / line * line;
    size_t file = (sizeof(struct sni_file) + line - 1) / line * line;
    CHECK_LE(task + file + sizeof(struct sni_slot), 512);
}
