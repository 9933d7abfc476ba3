/* SPDX-License-Identifier: MIT */
/* budget - each hot path alone, for callgrind to count: budget PATH [rounds=R].
 *
 * A round prepares BATCH operations, does them between two toggles (count.h), and clears up; it is
 * done `rounds` times after some that are not counted, so that memory is there and queues have
 * their usual length. Nothing is timed. tools/budgets runs it and writes down what it counted.
 *
 * One worker, which never sleeps here: what is counted is what an operation executes when nobody
 * disturbs it. A path that ends in another task (a yield, a join that waits) is counted with the
 * switch to it. What a batch pays once (the loop, the toggles, a turn of the scheduler that is due)
 * is in it, by a BATCHth. */
#include "../peers/sinew/sinew.h"
#include "count.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { BATCH = 64, WARM = 20 };

static bool counting;

static void toggle(void)
{
    if (counting)
        COUNT_TOGGLE();
}

static void let_others_run(void)
{
    for (int i = 0; i < 3; i++) /* one ends, one is woken by that, one more for good measure */
        sn_yield();
}

/* ---- tasks ---------------------------------------------------------------------------------- */

static sn_task *tasks[BATCH];

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

typedef struct nothing_coro {
    sn_coro coro;
} nothing_coro;

SN_CORO(nothing_coro, self)
{
    SN_BEGIN(self);
    SN_END();
}

static void spawn_all(void)
{
    for (int i = 0; i < BATCH; i++)
        tasks[i] = sn_spawn(nothing, NULL);
}

static int join_all(void)
{
    return yard_join_all(tasks, BATCH);
}

static int count_spawn(void)
{
    toggle();
    spawn_all();
    toggle();
    return join_all();
}

static int count_spawn_coro(void)
{
    nothing_coro frame = {0};
    toggle();
    for (int i = 0; i < BATCH; i++)
        tasks[i] = sn_spawn_coro(nothing_coro, &frame);
    toggle();
    return join_all();
}

static int count_run(void)
{
    spawn_all();
    toggle();
    sn_yield(); /* all of them run, and end */
    toggle();
    return join_all();
}

static int count_join(void)
{
    spawn_all();
    let_others_run();
    toggle();
    int rc = join_all();
    toggle();
    return rc;
}

static int count_join_waits(void)
{
    int rc = 0;
    for (int i = 0; i < BATCH; i++) {
        tasks[0] = sn_spawn(nothing, NULL);
        toggle();
        rc |= sn_join(tasks[0], NULL);
        toggle();
    }
    return rc;
}

static bool stop;

static int yield_until_stopped(void *arg)
{
    (void)arg;
    while (!stop)
        sn_yield();
    return 0;
}

static int count_yield(void)
{
    stop = false;
    sn_task *other = sn_spawn(yield_until_stopped, NULL);
    sn_yield();
    toggle();
    for (int i = 0; i < BATCH / 2; i++) /* and as many by the other */
        sn_yield();
    toggle();
    stop = true;
    return sn_join(other, NULL);
}

typedef struct yielding_coro {
    sn_coro coro;
    bool counts;
    int left;
} yielding_coro;

SN_CORO(yielding_coro, self)
{
    SN_BEGIN(self);
    SN_YIELD(); /* the other begins */
    if (self->counts)
        toggle();
    for (; self->left > 0; self->left--)
        SN_YIELD();
    if (self->counts)
        toggle();
    SN_END();
}

static int count_yield_coro(void)
{
    yielding_coro one = {.counts = true, .left = BATCH / 2};
    yielding_coro other = {.left = BATCH}; /* does not end before */
    tasks[0] = sn_spawn_coro(yielding_coro, &one);
    tasks[1] = sn_spawn_coro(yielding_coro, &other);
    return yard_join_all(tasks, 2);
}

/* ---- channels ------------------------------------------------------------------------------- */

static sn_chan *full_of_room;
static sn_chan *rendezvous;
static uint64_t values[BATCH];

static int send_all(sn_chan *ch)
{
    int rc = 0;
    for (int i = 0; i < BATCH; i++)
        rc |= sn_chan_send(ch, &values[i], SN_FOREVER);
    return rc;
}

static int recv_all(sn_chan *ch)
{
    int rc = 0;
    for (int i = 0; i < BATCH; i++)
        rc |= sn_chan_recv(ch, &values[i], SN_FOREVER);
    return rc;
}

static int count_send(void)
{
    toggle();
    int rc = send_all(full_of_room);
    toggle();
    return rc | recv_all(full_of_room);
}

static int count_recv(void)
{
    int rc = send_all(full_of_room);
    toggle();
    rc |= recv_all(full_of_room);
    toggle();
    return rc;
}

static int receive_one(void *arg)
{
    uint64_t v;
    (void)arg;
    return sn_chan_recv(rendezvous, &v, SN_FOREVER);
}

static void have_receivers(void)
{
    for (int i = 0; i < BATCH; i++)
        tasks[i] = sn_spawn(receive_one, NULL);
    let_others_run();
}

static int count_send_wakes(void)
{
    have_receivers();
    toggle();
    int rc = send_all(rendezvous);
    toggle();
    return rc | join_all();
}

/* ---- waiting and waking --------------------------------------------------------------------- */

static sn_sem sems[BATCH];

static int wait_at_sem(void *arg)
{
    int rc = sn_sem_acquire(arg, 1, SN_FOREVER);
    return rc | sn_sem_acquire(arg, 1, SN_FOREVER);
}

/* The time is not read for the deadline, only to see that it has not passed. */
static int wait_at_sem_until(void *arg)
{
    sn_deadline until = sn_after(SN_S(1000));
    int rc = sn_sem_acquire(arg, 1, until);
    return rc | sn_sem_acquire(arg, 1, until);
}

static void have_waiters(sn_task_fn *fn)
{
    for (int i = 0; i < BATCH; i++) {
        sems[i] = (sn_sem)SN_SEM_INIT(0);
        tasks[i] = sn_spawn(fn, &sems[i]);
    }
    let_others_run();
}

static void release_all(void)
{
    for (int i = 0; i < BATCH; i++)
        (void)sn_sem_release(&sems[i], 1);
}

static int count_wake(void)
{
    have_waiters(wait_at_sem);
    toggle();
    release_all();
    toggle();
    let_others_run();
    release_all();
    return join_all();
}

static int wait_again(sn_task_fn *fn)
{
    have_waiters(fn);
    release_all();
    toggle();
    sn_yield(); /* all of them go on, and wait again */
    toggle();
    release_all();
    return join_all();
}

static int count_wait(void)
{
    return wait_again(wait_at_sem);
}

static int count_wait_until(void)
{
    return wait_again(wait_at_sem_until);
}

/* ---- mutex ---------------------------------------------------------------------------------- */

static sn_mutex mutexes[BATCH];

static int lock_all(void)
{
    int rc = 0;
    for (int i = 0; i < BATCH; i++)
        rc |= sn_mutex_lock(&mutexes[i], SN_FOREVER);
    return rc;
}

static int unlock_all(void)
{
    int rc = 0;
    for (int i = 0; i < BATCH; i++)
        rc |= sn_mutex_unlock(&mutexes[i]);
    return rc;
}

static int count_lock(void)
{
    toggle();
    int rc = lock_all();
    toggle();
    return rc | unlock_all();
}

static int count_unlock(void)
{
    int rc = lock_all();
    toggle();
    rc |= unlock_all();
    toggle();
    return rc;
}

static int lock_and_unlock(void *arg)
{
    int rc = sn_mutex_lock(arg, SN_FOREVER);
    return rc | sn_mutex_unlock(arg);
}

static int count_unlock_wakes(void)
{
    int rc = lock_all();
    for (int i = 0; i < BATCH; i++)
        tasks[i] = sn_spawn(lock_and_unlock, &mutexes[i]);
    let_others_run();
    toggle();
    rc |= unlock_all();
    toggle();
    return rc | join_all();
}

/* ---- timers --------------------------------------------------------------------------------- */

static sn_sleep_state sleeps[BATCH];

static int set_all(void)
{
    sn_waker waker = sn_noop_waker();
    sn_cx cx = {.waker = &waker};
    int ready = 0;
    for (int i = 0; i < BATCH; i++) {
        sn_future *sleep = sn_sleep_op(&sleeps[i], sn_after(SN_S(1000 + i)));
        ready |= !sn_poll_pending(sn_future_poll(sleep, &cx));
    }
    return ready;
}

static void drop_all(void)
{
    for (int i = 0; i < BATCH; i++)
        (void)sn_future_drop(&sleeps[i].future_);
}

static int count_timer_insert(void)
{
    toggle();
    int rc = set_all();
    toggle();
    drop_all();
    return rc;
}

static int count_timer_cancel(void)
{
    int rc = set_all();
    toggle();
    drop_all();
    toggle();
    return rc;
}

/* ---- echoes --------------------------------------------------------------------------------- */

enum { ECHO_BYTES = 64, ECHO_ROOM = 2048 }; /* as the server of the yardstick has it */

static int clients[BATCH];
static int echoed;
static sn_sem all_echoed = SN_SEM_INIT(0);

static void note_echo(void)
{
    if (++echoed % BATCH == 0)
        (void)sn_sem_release(&all_echoed, 1);
}

static int echo_fiber(void *arg)
{
    char buffer[ECHO_ROOM];
    ptrdiff_t n;
    while ((n = sn_read(arg, buffer, sizeof(buffer), SN_FOREVER)) > 0) {
        if (sn_write_all(arg, buffer, (size_t)n, NULL, SN_FOREVER) < 0)
            break;
        note_echo();
    }
    return 0;
}

typedef struct echo_coro {
    sn_coro coro;
    sn_conn *conn;
    int rc;
    sn_io_state io;
} echo_coro;

static int echo_now(sn_conn *conn)
{
    char buffer[ECHO_ROOM];
    ptrdiff_t n = sn_read(conn, buffer, sizeof(buffer), SN_NOWAIT);
    int rc = n > 0 ? sn_write_all(conn, buffer, (size_t)n, NULL, SN_NOWAIT) : -EPIPE;
    if (rc == 0)
        note_echo();
    return rc;
}

SN_CORO(echo_coro, self)
{
    SN_BEGIN(self);
    do {
        SN_AWAIT_INTO(self->rc, sn_conn_wait_op(&self->io, self->conn, SN_READABLE));
        if (self->rc > 0)
            self->rc = echo_now(self->conn);
    } while (self->rc >= 0);
    SN_END();
}

/* TCP, since only there a short read tells that there is no more. The clients are plain sockets. */
static void connect_all(bool by_coroutines)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof(addr);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    bool bound = bind(listener, (struct sockaddr *)&addr, bytes) == 0 &&
                 listen(listener, BATCH) == 0 &&
                 getsockname(listener, (struct sockaddr *)&addr, &bytes) == 0;
    yard_check(bound, "listen");
    for (int i = 0; i < BATCH; i++) {
        sn_conn *conn;
        clients[i] = socket(AF_INET, SOCK_STREAM, 0);
        yard_check(connect(clients[i], (struct sockaddr *)&addr, bytes) == 0, "connect");
        yard_check(sn_conn_adopt(&conn, accept(listener, NULL, NULL)) == 0, "accept");
        int rc = by_coroutines ? sn_spawn_coro_detached(echo_coro, &(echo_coro){.conn = conn})
                               : sn_spawn_detached(echo_fiber, conn);
        yard_check(rc == 0, "spawn");
    }
    let_others_run();
}

/* All requests are there when the worker looks, which it does because it has nothing else to do. */
static int count_echoes(void)
{
    char bytes[ECHO_BYTES] = "echo";
    int rc = 0;
    for (int i = 0; i < BATCH; i++)
        rc |= send(clients[i], bytes, sizeof(bytes), 0) != sizeof(bytes);
    toggle();
    rc |= sn_sem_acquire(&all_echoed, 1, SN_FOREVER);
    toggle();
    for (int i = 0; i < BATCH; i++)
        rc |= recv(clients[i], bytes, sizeof(bytes), MSG_WAITALL) != sizeof(bytes);
    return rc;
}

static int count_echo_fiber(void)
{
    if (clients[0] == 0)
        connect_all(false);
    return count_echoes();
}

static int count_echo_coro(void)
{
    if (clients[0] == 0)
        connect_all(true);
    return count_echoes();
}

/* ---- running them --------------------------------------------------------------------------- */

static const struct path {
    const char *name;
    int (*round)(void);
    sn_io_driver io;
} paths[] = {
    {"spawn", count_spawn, SN_IO_AUTO},
    {"spawn_coro", count_spawn_coro, SN_IO_AUTO},
    {"run_and_end", count_run, SN_IO_AUTO},
    {"join", count_join, SN_IO_AUTO},
    {"join_waits", count_join_waits, SN_IO_AUTO},
    {"yield", count_yield, SN_IO_AUTO},
    {"yield_coro", count_yield_coro, SN_IO_AUTO},
    {"send", count_send, SN_IO_AUTO},
    {"recv", count_recv, SN_IO_AUTO},
    {"send_wakes", count_send_wakes, SN_IO_AUTO},
    {"wake", count_wake, SN_IO_AUTO},
    {"wait", count_wait, SN_IO_AUTO},
    {"wait_until", count_wait_until, SN_IO_AUTO},
    {"lock", count_lock, SN_IO_AUTO},
    {"unlock", count_unlock, SN_IO_AUTO},
    {"unlock_wakes", count_unlock_wakes, SN_IO_AUTO},
    {"timer_insert", count_timer_insert, SN_IO_AUTO},
    {"timer_cancel", count_timer_cancel, SN_IO_AUTO},
    {"echo_fiber_epoll", count_echo_fiber, SN_IO_EPOLL},
    {"echo_coro_epoll", count_echo_coro, SN_IO_EPOLL},
    {"echo_fiber_uring", count_echo_fiber, SN_IO_URING},
    {"echo_coro_uring", count_echo_coro, SN_IO_URING},
};

static int run(void *arg)
{
    const struct path *path = arg;
    int64_t rounds = yard_arg("rounds", 20);
    int rc = 0;
    full_of_room = yard_chan(BATCH);
    rendezvous = yard_chan(0);
    for (int i = 0; i < BATCH; i++)
        mutexes[i] = (sn_mutex)SN_MUTEX_INIT;
    for (int i = 0; i < WARM; i++)
        rc |= path->round();
    counting = true;
    for (int64_t i = 0; i < rounds; i++)
        rc |= path->round();
    yard_check(rc == 0, yard.workload);
    yard_report(rounds * BATCH, 0, ",\"countable\":%d", COUNT_IS_POSSIBLE);
    _exit(0); /* here, for the reason given at yard_sinew_run */
}

int main(int argc, char **argv)
{
    yard_begin(argc, argv, "sinew", yard_sinew_version());
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (strcmp(yard.workload, paths[i].name) != 0)
            continue;
        sn_runtime *rt = NULL;
        sn_runtime_options options = {.workers = 1, .io = paths[i].io};
        int rc = sn_runtime_create(&rt, &options);
        if (rc < 0 && paths[i].io == SN_IO_URING) { /* not everywhere it may be used */
            yard_report(0, 0, ",\"refused\":1");
            return 0;
        }
        yard_check(rc == 0, "create");
        return sn_runtime_block_on(rt, run, (void *)(uintptr_t)&paths[i]);
    }
    return yard_no_workload();
}
