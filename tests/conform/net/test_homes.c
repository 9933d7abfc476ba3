/* SPDX-License-Identifier: MIT */
/* How a close finds those who wait, wherever their operations are (R84): in the driver that is the
 * socket's home, in others of other runtimes, in those of plain threads; and what a socket keeps of
 * a home that is gone. */
#include "on_driver.h"
#include "suite.h"

#include "base/compiler.h"
#include "net/sock.h"
#include "sched/sched.h"

#include <sys/eventfd.h>
#include <unistd.h>

static sn_conn *ends[2];

/* ---- closed from outside --------------------------------------------------------------------- */

static int read_until_closed(void *arg)
{
    char byte;
    return (int)sn_read(arg, &byte, 1, SN_FOREVER);
}

typedef struct reads_until_closed {
    sn_coro coro;
    sn_conn *conn;
    sn_io_state io;
    char byte;
} reads_until_closed;

SN_CORO(reads_until_closed, self)
{
    int n;
    SN_BEGIN(self);
    SN_AWAIT_INTO(n, sn_read_op(&self->io, self->conn, &self->byte, 1));
    SN_RETURN(n);
    SN_END();
}

static int read_as_coro_until_closed(void *arg)
{
    reads_until_closed frame = {.conn = arg};
    return sn_join(sn_spawn_coro(reads_until_closed, &frame), NULL);
}

static void *read_as_thread_until_closed(void *arg)
{
    return (void *)(intptr_t)read_until_closed(arg);
}

enum { CLOSE_ROUNDS = 40, CLOSE_READERS = 8 };

/* Most of one runtime are found by the home of the file, the others otherwise; and whoever comes
 * later finds it closed. */
static void close_among(sn_runtime *const rt[2], int round)
{
    sn_task *readers[CLOSE_READERS];
    pthread_t thread;
    void *result;
    tcp_pair(ends);
    for (int i = 0; i < CLOSE_READERS; i++) {
        sn_task_fn *reader = (i + round) % 3 == 0 ? read_as_coro_until_closed : read_until_closed;
        readers[i] = sn_runtime_spawn(rt[(i + round / 2) % 2], reader, ends[1]);
        CHECK(readers[i] != NULL);
    }
    CHECK_EQ(pthread_create(&thread, NULL, read_as_thread_until_closed, ends[1]), 0);
    if (round % 4 == 0)
        let_them_wait();
    CHECK_EQ(sn_close(ends[1]), 0);
    for (int i = 0; i < CLOSE_READERS; i++)
        CHECK_EQ(sn_join(readers[i], NULL), -EBADF);
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK_EQ((int)(intptr_t)result, -EBADF);
    CHECK_EQ(sn_close(ends[0]), 0);
}

DRIVER_TEST(a_close_ends_the_waits_of_all_runtimes_and_threads)
{
    sn_runtime *rt[2] = {runtime_on(io, 2), runtime_on(io, 3)};
    for (int round = 0; round < CLOSE_ROUNDS; round++)
        close_among(rt, round);
    sn_runtime_destroy(rt[0]);
    sn_runtime_destroy(rt[1]);
}

typedef struct reads_all {
    sn_coro coro;
    sn_conn *conn;
    int n;
    sn_io_state io;
    char byte;
} reads_all;

SN_CORO(reads_all, self)
{
    SN_BEGIN(self);
    do
        SN_AWAIT_INTO(self->n, sn_read_op(&self->io, self->conn, &self->byte, 1));
    while (self->n == 1);
    SN_RETURN(self->n);
    SN_END();
}

static int read_all_until_closed(void *arg)
{
    reads_all frame = {.conn = arg};
    return sn_join(sn_spawn_coro(reads_all, &frame), NULL);
}

/* The reader has a home, and is now trying, now about to wait. */
DRIVER_TEST(a_close_in_the_middle_of_traffic_is_not_missed)
{
    sn_runtime *rt = runtime_on(io, 2);
    for (int round = 0; round < 100; round++) {
        tcp_pair(ends);
        sn_task *reader = sn_runtime_spawn(rt, read_all_until_closed, ends[1]);
        CHECK(reader != NULL);
        for (int i = 0; i < 5 + round % 16; i++)
            CHECK_EQ(sn_write(ends[0], "x", 1, SN_FOREVER), 1);
        for (int i = 0; i < round * 30; i++)
            sni_cpu_pause();
        CHECK_EQ(sn_close(ends[1]), 0);
        CHECK_EQ(sn_join(reader, NULL), -EBADF);
        CHECK_EQ(sn_close(ends[0]), 0);
    }
    sn_runtime_destroy(rt);
}

/* The other end learns of it when the last wait is over, whoever had registered the socket. */
DRIVER_TEST(a_close_of_what_a_coroutine_waits_for_is_seen_at_the_other_end)
{
    sn_runtime *rt = runtime_on(io, 2);
    for (int round = 0; round < 10; round++) {
        char byte;
        tcp_pair(ends);
        sn_task *reader = sn_runtime_spawn(rt, read_all_until_closed, ends[1]);
        CHECK(reader != NULL);
        let_them_wait();
        CHECK_EQ(sn_close(ends[1]), 0);
        CHECK_EQ(sn_read(ends[0], &byte, 1, SN_FOREVER), 0);
        CHECK_EQ(sn_join(reader, NULL), -EBADF);
        CHECK_EQ(sn_close(ends[0]), 0);
    }
    sn_runtime_destroy(rt);
}

/* ---- a home that moves ----------------------------------------------------------------------- */

enum { STATIONS = 2, MOVES = 200, READS_MAX = 8, READS_THAT_MOVE = 5, CROWD = 40 };

/* A reader that stays on its worker, and reads when it is its turn; and others, who wait there. */
static struct station {
    sn_sem turn;
    int reads; /* 0: it is over */
    int others;
    bool rest; /* the others were told, and do something else now */
    sn_task *reader;
    sn_task *waiters[CROWD];
    sn_conn *pairs[CROWD][2]; /* what they wait for */
    struct sni_worker *worker;
} stations[STATIONS];
static sn_sem read_all;
static sn_sem rest_is_over;
static SNI_ATOMIC(uint32_t) arrived;

static int read_in_turn(void *arg)
{
    struct station *s = arg;
    char byte;
    s->worker = sni_worker_current();
    for (;;) {
        CHECK_EQ(sn_sem_acquire(&s->turn, 1, SN_FOREVER), 0);
        if (s->reads == 0)
            return 0;
        for (int i = 0; i < s->reads; i++) {
            CHECK_EQ(sn_conn_wait(ends[1], SN_READABLE, SN_FOREVER), SN_READABLE);
            CHECK_EQ(sn_read(ends[1], &byte, 1, SN_FOREVER), 1);
        }
        CHECK_EQ(sn_sem_release(&read_all, 1), 0);
    }
}

static int rest_and_read(void *conn)
{
    CHECK_EQ(sn_conn_wait(conn, SN_READABLE, SN_FOREVER), SN_READABLE);
    CHECK_EQ(sn_sem_acquire(&rest_is_over, 1, SN_FOREVER), 0);
    char byte;
    CHECK_EQ(sn_read(conn, &byte, 1, SN_FOREVER), 1);
    return read_until_closed(conn);
}

/* One on each worker, since none goes on before all are there. */
static int open_station(void *arg)
{
    struct station *s = arg;
    sni_atomic_fetch_add(&arrived, 1, relaxed);           /* relaxed: a count */
    while (sni_atomic_load(&arrived, relaxed) < STATIONS) /* relaxed: as above */
        sni_cpu_pause();
    s->reader = sn_spawn(read_in_turn, s, .local = true);
    CHECK(s->reader != NULL);
    for (int i = 0; i < s->others; i++) {
        sn_task_fn *fn = s->rest ? rest_and_read : read_until_closed;
        s->waiters[i] = sn_spawn(fn, s->pairs[i][1], .local = true);
        CHECK(s->waiters[i] != NULL);
    }
    return 0;
}

static sn_runtime *open_stations(sn_io_driver io)
{
    sn_task *openers[STATIONS];
    sn_runtime *rt = runtime_on(io, STATIONS);
    tcp_pair(ends);
    for (int i = 0; i < STATIONS; i++)
        openers[i] = sn_runtime_spawn(rt, open_station, &stations[i]);
    for (int i = 0; i < STATIONS; i++)
        CHECK_EQ(sn_join(openers[i], NULL), 0);
    return rt;
}

/* Of those who rest; all others are there. */
static void end_rest(struct station *s)
{
    CHECK_EQ(sn_sem_release(&rest_is_over, (uint32_t)s->others), 0);
    let_them_wait();
}

static void close_stations(sn_runtime *rt)
{
    for (int i = 0; i < STATIONS; i++) {
        struct station *s = &stations[i];
        if (s->rest)
            end_rest(s);
        s->reads = 0;
        CHECK_EQ(sn_sem_release(&s->turn, 1), 0);
        CHECK_EQ(sn_join(s->reader, NULL), 0);
        for (int k = 0; k < s->others; k++) {
            CHECK_EQ(sn_close(s->pairs[k][1]), 0);
            CHECK_EQ(sn_join(s->waiters[k], NULL), -EBADF);
            CHECK_EQ(sn_close(s->pairs[k][0]), 0);
        }
    }
    close_pair(ends);
    sn_runtime_destroy(rt);
}

static void check_home_is_at(const struct station *s)
{
    struct sni_file *file;
    CHECK_EQ(sni_file_use(sni_sock_handle(ends[1]), SNI_CONNS, &file), 0);
    /* relaxed, both: all wait, and have told us */
    const struct sni_driver *home = sni_atomic_load(&file->record.own, relaxed);
    CHECK_PTR_EQ(home, sni_atomic_load(&s->worker->driver, relaxed));
    sni_file_unuse(file);
}

static void read_at(struct station *s, int reads, bool slowly)
{
    s->reads = reads;
    CHECK_EQ(sn_sem_release(&s->turn, 1), 0);
    for (int i = 0; i < reads; i++) {
        if (slowly && i % 2 == 0)
            let_them_wait();
        CHECK_EQ(sn_write(ends[0], "x", 1, SN_FOREVER), 1);
    }
    CHECK_EQ(sn_sem_acquire(&read_all, 1, SN_FOREVER), 0);
}

/* Its waits in a row come from another worker than its home's: the home follows, and nothing that
 * was told to the old one is missed. */
DRIVER_TEST(a_socket_follows_its_reader_to_another_worker)
{
    struct sni_rand rand;
    sni_rand_init(&rand, test_seed());
    sn_runtime *rt = open_stations(io);
    for (int move = 0; move < MOVES; move++) {
        struct station *s = &stations[sni_rand_below(&rand, STATIONS)];
        int reads = 1 + (int)sni_rand_below(&rand, READS_MAX);
        read_at(s, reads, sni_rand_below(&rand, 8) == 0);
        if (io != SN_IO_POLL && reads >= READS_THAT_MOVE)
            check_home_is_at(s);
    }
    close_stations(rt);
}

static void fill(struct station *s)
{
    for (int i = 0; i < CROWD; i++)
        tcp_pair(s->pairs[i]);
    s->others = CROWD;
}

/* Whose worker has less to wait for need not come so often: two workers share what there is. */
DRIVER_TEST(a_socket_goes_at_once_to_a_worker_that_has_less_to_wait_for)
{
    struct station *busy = &stations[0];
    struct station *free = &stations[1];
    fill(busy);
    sn_runtime *rt = open_stations(io);
    let_them_wait();
    for (int round = 0; round < 10; round++) {
        read_at(busy, READS_THAT_MOVE, false);
        if (io != SN_IO_POLL)
            check_home_is_at(busy);
        read_at(free, 1, round % 2 == 0);
        read_at(busy, 1, round % 4 < 2); /* and does not go back as quickly */
        if (io != SN_IO_POLL)
            check_home_is_at(free);
    }
    close_stations(rt);
}

/* Who has as many, of which few wait just now, has not less to wait for: they will. */
DRIVER_TEST(a_socket_does_not_go_at_once_to_a_worker_whose_sockets_have_just_been_told)
{
    struct station *waits = &stations[0];
    struct station *works = &stations[1];
    fill(waits);
    fill(works);
    works->rest = true;
    sn_runtime *rt = open_stations(io);
    for (int i = 0; i < CROWD; i++)
        CHECK_EQ(sn_write(works->pairs[i][0], "x", 1, SN_FOREVER), 1);
    let_them_wait();
    read_at(waits, READS_THAT_MOVE, false);
    read_at(works, 1, true);
    if (io != SN_IO_POLL)
        check_home_is_at(waits);
    close_stations(rt);
}

/* ---- crowds ---------------------------------------------------------------------------------- */

/* From how many operations on the driver of this worker has a crowd. */
static int set_crowd(void *arg)
{
    struct sni_exec *exec = sni_exec_current();
    struct sni_driver *driver;
    CHECK_EQ(exec->ops->driver(exec, &driver), 0);
    sni_driver_set_crowd(driver, *(uint32_t *)arg);
    return 0;
}

static int get_crowd(void *arg)
{
    struct sni_exec *exec = sni_exec_current();
    struct sni_driver *driver;
    CHECK_EQ(exec->ops->driver(exec, &driver), 0);
    *(uint32_t *)arg = sni_atomic_load(&driver->crowd, relaxed); /* relaxed: nobody changes it */
    return 0;
}

static uint32_t crowd_of(sn_io_driver io, unsigned workers)
{
    sn_runtime *rt = runtime_on(io, workers);
    uint32_t crowd;
    CHECK_EQ(sn_runtime_block_on(rt, get_crowd, &crowd), 0);
    sn_runtime_destroy(rt);
    return crowd;
}

/* Among several workers a POLL pays sooner. */
DRIVER_TEST(a_crowd_is_smaller_where_several_workers_share_the_work)
{
    uint32_t alone = crowd_of(io, 1);
    uint32_t shared = crowd_of(io, 2);
    if (io == SN_IO_URING && alone != UINT32_MAX) /* that kernel has what it takes */
        CHECK(shared > 0 && shared < alone);
    else
        CHECK_EQ(shared, UINT32_MAX);
}

static bool is_registered(sn_conn *conn)
{
    struct sni_file *file;
    CHECK_EQ(sni_file_use(sni_sock_handle(conn), SNI_CONNS, &file), 0);
    bool is_kept = file->is_kept;
    sni_file_unuse(file);
    return is_kept;
}

static sn_task *begin_to_read(void)
{
    sn_task *reader = sn_spawn(read_until_closed, ends[1]);
    CHECK(reader != NULL);
    sn_yield();
    return reader;
}

/* Bytes that come, too late, and for one who is cancelled. */
static int read_in_many_ways(void *arg)
{
    char byte;
    (void)arg;
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(sn_read(ends[1], &byte, 1, soon()), -ETIMEDOUT);
        sn_task *reader = begin_to_read();
        CHECK_EQ(sn_write(ends[0], "x", 1, SN_FOREVER), 1);
        CHECK_EQ(sn_join(reader, NULL), 1);
        CHECK_EQ(sn_cancel(begin_to_read(), NULL), -ECANCELED);
    }
    return 0;
}

static int read_the_end(void *arg)
{
    (void)arg;
    sn_task *reader = begin_to_read();
    CHECK_EQ(sn_shutdown(ends[0], SN_SHUT_WRITE), 0);
    return sn_join(reader, NULL);
}

static void read_with_crowd(sn_runtime *rt, uint32_t crowd)
{
    CHECK_EQ(sn_runtime_block_on(rt, set_crowd, &crowd), 0);
    CHECK_EQ(sn_runtime_block_on(rt, read_in_many_ways, NULL), 0);
}

/* Many waits for bytes are waits for readiness, also with a driver that could receive; and what
 * was waited for in that way once goes on so. */
DRIVER_TEST(in_a_crowd_bytes_are_waited_for_by_registrations)
{
    sn_runtime *rt = runtime_on(io, 1);
    tcp_pair(ends);
    read_with_crowd(rt, UINT32_MAX);
    CHECK(io != SN_IO_URING || !is_registered(ends[1]));
    read_with_crowd(rt, 0);
    CHECK(io == SN_IO_POLL || is_registered(ends[1]));
    read_with_crowd(rt, UINT32_MAX);
    CHECK(io == SN_IO_POLL || is_registered(ends[1]));
    CHECK_EQ(sn_runtime_block_on(rt, read_the_end, NULL), 0);
    close_pair(ends);
    sn_runtime_destroy(rt);
}

/* ---- a home that is gone --------------------------------------------------------------------- */

/* The number that the next descriptor gets. */
static int next_fd(void)
{
    int fd = eventfd(0, EFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(close(fd), 0);
    return fd;
}

/* Each end has been waited for, and so has a home. */
static int wait_for_both(void *arg)
{
    char byte;
    (void)arg;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(sn_read(ends[i], &byte, 1, soon()), -ETIMEDOUT);
    return 0;
}

enum { SOME = 6 };

typedef struct reads_some {
    sn_coro coro;
    sn_conn *conn;
    int left;
    int n;
    sn_io_state io;
    char byte;
} reads_some;

SN_CORO(reads_some, self)
{
    SN_BEGIN(self);
    for (self->left = SOME; self->left > 0; self->left--) {
        SN_AWAIT_INTO(self->n, sn_read_op(&self->io, self->conn, &self->byte, 1));
        if (self->n != 1)
            SN_RETURN(self->n);
    }
    SN_RETURN(0);
    SN_END();
}

static int read_some_as_coro(void *arg)
{
    reads_some frame = {.conn = arg};
    return sn_join(sn_spawn_coro(reads_some, &frame), NULL);
}

static int read_some(void *arg)
{
    char byte;
    for (int i = 0; i < SOME; i++)
        CHECK_EQ(sn_read(arg, &byte, 1, SN_FOREVER), 1);
    return 0;
}

static void serve_some(sn_runtime *rt, sn_task_fn *reader)
{
    sn_task *task = sn_runtime_spawn(rt, reader, ends[1]);
    CHECK(task != NULL);
    for (int i = 0; i < SOME; i++) {
        if (i % 3 == 0)
            let_them_wait();
        CHECK_EQ(sn_write(ends[0], "x", 1, SN_FOREVER), 1);
    }
    CHECK_EQ(sn_join(task, NULL), 0);
}

/* Coroutines have it registered, fibers do not; in the home, in another runtime, and in that one
 * when the home is gone. */
DRIVER_TEST(a_socket_serves_fibers_and_coroutines_in_turn_though_its_home_goes)
{
    tcp_pair(ends);
    sn_runtime *rt = runtime_on(io, 2);
    for (int round = 0; round < 4; round++) {
        sn_runtime *next = runtime_on(io, 2);
        serve_some(rt, round % 2 == 0 ? read_some_as_coro : read_some);
        serve_some(rt, round % 2 == 0 ? read_some : read_some_as_coro);
        serve_some(next, read_some_as_coro);
        serve_some(next, read_some);
        sn_runtime_destroy(rt);
        serve_some(next, read_some);
        serve_some(next, read_some_as_coro);
        rt = next;
    }
    sn_runtime_destroy(rt);
    close_pair(ends);
}

TEST(a_socket_that_outlives_its_runtime_keeps_no_ring)
{
    tcp_pair(ends);
    int before = next_fd();
    sn_runtime *rt = runtime_on(SN_IO_URING, 2);
    CHECK_EQ(sn_runtime_block_on(rt, wait_for_both, NULL), 0);
    serve_some(rt, read_some_as_coro); /* registered */
    sn_runtime_destroy(rt);
    CHECK_EQ(next_fd(), before);
    close_pair(ends);
}
