/* SPDX-License-Identifier: MIT */
/* The io_uring driver between threads (R43, R81, R85): wakes are not lost, a busy owner's ring is
 * reaped by others, and a thread that ends takes nothing with it. */
#include "uring_ring.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

struct word {
    SNI_ATOMIC(uint32_t) value;
};

static uint32_t word_get(struct word *w)
{
    return sni_atomic_load(&w->value, acquire); /* acquire: pairs with the release in word_set */
}

static void word_set(struct word *w, uint32_t value)
{
    sni_atomic_store(&w->value, value, release); /* release: pairs with the acquire in word_get */
}

static pthread_t start(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, fn, arg), 0);
    return thread;
}

static void join(pthread_t thread)
{
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Wait until the kernel says that the thread sleeps. */
static void wait_until_asleep(struct word *tid)
{
    char path[64];
    char state = 0;
    while (word_get(tid) == 0)
        sni_plat_thread_yield();
    (void)snprintf(path, sizeof(path), "/proc/self/task/%u/stat", word_get(tid));
    while (state != 'S') {
        char *stat = read_file(path);
        state = strrchr(stat, ')')[2];
        free(stat);
        sni_plat_thread_yield();
    }
}

/* ---- waiting and waking ------------------------------------------------------------------ */

static void wake_before_wait(struct sni_driver *driver)
{
    for (int i = 0; i < 3; i++)
        sni_driver_wake(driver);
    sni_driver_wait(driver, INT64_MAX); /* all three are this one */
    int64_t until = sni_plat_now_ns() + MS(3);
    sni_driver_wait(driver, until);
    CHECK_GE(sni_plat_now_ns(), until);
}

TEST(wakes_before_a_wait_are_one_and_are_not_lost)
{
    each_ring(wake_before_wait);
}

static void deadlines(struct sni_driver *driver)
{
    static const int64_t past[] = {INT64_MIN, -1, 0, 1};
    for (size_t i = 0; i < 4; i++)
        sni_driver_wait(driver, past[i]);
    int64_t until = sni_plat_now_ns() + MS(3);
    while (sni_plat_now_ns() < until)
        sni_driver_wait(driver, until);
    CHECK_EQ(sni_driver_reap(driver), 0);
}

TEST(a_wait_ends_at_its_deadline_and_does_not_begin_after_it)
{
    each_ring(deadlines);
}

struct sleeper {
    struct sni_driver *driver;
    struct word tid;
    struct word woken;
};

static void *sleep_until_woken(void *arg)
{
    struct sleeper *s = arg;
    word_set(&s->tid, (uint32_t)sni_plat_thread_id());
    while (word_get(&s->woken) == 0) /* it may end early */
        sni_driver_wait(s->driver, INT64_MAX);
    return NULL;
}

static void wake_a_sleeper(struct sni_driver *driver)
{
    for (int i = 0; i < 20; i++) {
        struct sleeper s = {.driver = driver};
        pthread_t thread = start(sleep_until_woken, &s);
        if (i % 2 == 0)
            wait_until_asleep(&s.tid);
        if (i % 4 == 0)
            (void)sni_driver_reap(driver);
        word_set(&s.woken, 1);
        sni_driver_wake(driver);
        join(thread);
        (void)sni_driver_reap(driver);
    }
}

TEST(a_wake_ends_the_sleep)
{
    each_ring(wake_a_sleeper);
}

TEST(a_completion_that_is_there_ends_the_sleep_before_it_begins)
{
    struct sni_driver *driver = ring();
    struct sni_op op;
    int fds[2];
    char c;
    pair(fds, SOCK_STREAM);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    op_recv(driver, &op, fds[0], &c, 1);
    sni_driver_flush(driver);
    sni_driver_wait(driver, INT64_MAX);
    sni_driver_wait(driver, INT64_MAX); /* nothing was reaped, so it is still there */
    CHECK_EQ(sni_driver_reap(driver), 1);
    CHECK_EQ(op_end(&op), 1);
    close_both(fds);
    sni_driver_finish(driver);
}

enum { WAKERS = 4, WAKES = 5000 };

struct storm {
    struct sni_driver *driver;
    SNI_ATOMIC(uint32_t) wakes;
    struct word over;
};

static void *wake_often(void *arg)
{
    struct storm *s = arg;
    for (int i = 0; i < WAKES; i++) {
        sni_atomic_fetch_add(&s->wakes, 1, relaxed); /* relaxed: the wake publishes it */
        sni_driver_wake(s->driver);
    }
    return NULL;
}

static void *reap_often(void *arg)
{
    struct storm *s = arg;
    while (word_get(&s->over) == 0)
        (void)sni_driver_reap(s->driver);
    return NULL;
}

/* If the last wake were lost, the owner would sleep for ever. The reaper takes the completions
 * that were to end its sleep. */
static void storm(struct sni_driver *driver)
{
    struct storm s = {.driver = driver};
    pthread_t wakers[WAKERS];
    pthread_t reaper = start(reap_often, &s);
    for (int i = 0; i < WAKERS; i++)
        wakers[i] = start(wake_often, &s);
    /* relaxed: the wait has acquired what was written before the wake */
    while (sni_atomic_load(&s.wakes, relaxed) < WAKERS * WAKES)
        sni_driver_wait(driver, INT64_MAX);
    word_set(&s.over, 1);
    for (int i = 0; i < WAKERS; i++)
        join(wakers[i]);
    join(reaper);
}

TEST(no_wake_of_a_storm_is_lost_though_another_thread_reaps, .limit_s = 60)
{
    each_ring(storm);
}

/* One wake at a time, so that each must work by itself. */
struct turns {
    struct sni_driver *driver;
    struct word turn;
    struct word over;
};

static void *wake_by_turns(void *arg)
{
    struct turns *t = arg;
    for (uint32_t i = 1; i <= 3000; i++) {
        while (word_get(&t->turn) != 2 * i - 2)
            sni_plat_thread_yield();
        word_set(&t->turn, 2 * i - 1);
        sni_driver_wake(t->driver);
    }
    return NULL;
}

static void *reap_by_turns(void *arg)
{
    struct turns *t = arg;
    while (word_get(&t->over) == 0) {
        (void)sni_driver_reap(t->driver);
        sni_plat_thread_yield();
    }
    return NULL;
}

static void by_turns(struct sni_driver *driver)
{
    struct turns t = {.driver = driver};
    pthread_t waker = start(wake_by_turns, &t);
    pthread_t reaper = start(reap_by_turns, &t);
    for (uint32_t i = 1; i <= 3000; i++) {
        while (word_get(&t.turn) != 2 * i - 1)
            sni_driver_wait(driver, INT64_MAX);
        word_set(&t.turn, 2 * i);
    }
    word_set(&t.over, 1);
    join(waker);
    join(reaper);
}

TEST(each_single_wake_works_though_another_thread_reaps, .limit_s = 60)
{
    each_ring(by_turns);
}

static void ignore_signal(int number)
{
    (void)number;
}

struct pest {
    pthread_t victim;
    struct word over;
};

static void *send_signals(void *arg)
{
    struct pest *p = arg;
    while (word_get(&p->over) == 0) {
        (void)pthread_kill(p->victim, SIGUSR1);
        sni_plat_thread_yield();
    }
    return NULL;
}

static void under_signals(struct sni_driver *driver)
{
    struct sigaction action = {.sa_handler = ignore_signal}; /* no SA_RESTART */
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    struct pest p = {.victim = pthread_self()};
    pthread_t thread = start(send_signals, &p);
    int fds[2];
    char c;
    pair(fds, SOCK_STREAM);
    for (int i = 0; i < 300; i++) {
        struct sni_op op;
        op_recv(driver, &op, fds[0], &c, 1);
        sni_driver_wait(driver, sni_plat_now_ns() + MS(1) / 10);
        CHECK_EQ(write(fds[1], "x", 1), 1);
        CHECK_EQ(op_end(&op), 1);
    }
    close_both(fds);
    word_set(&p.over, 1);
    join(thread);
}

TEST(signals_do_not_show_in_results)
{
    each_ring(under_signals);
}

/* ---- a busy owner ------------------------------------------------------------------------ */

struct busy {
    struct sni_driver *driver;
    struct sni_op op[3];
    char buf[3];
    int fd[3];
    struct word busy;
    struct word over;
};

/* Submits, and then computes without ever entering the kernel. */
static void *burn(void *arg)
{
    struct busy *b = arg;
    for (int i = 0; i < 3; i++)
        op_recv(b->driver, &b->op[i], b->fd[i], &b->buf[i], 1);
    sni_driver_flush(b->driver);
    word_set(&b->busy, 1);
    while (word_get(&b->over) == 0)
        ;
    return NULL;
}

/* Reaping as often as it takes; the time limit of the test is the bound. */
static void reap_until_over(struct sni_op *op)
{
    while (!op_is_over(op))
        (void)sni_driver_reap_patiently(op->driver);
}

static void busy_owner(struct sni_driver *driver)
{
    struct busy b = {.driver = driver};
    int fds[3][2];
    for (int i = 0; i < 3; i++) {
        pair(fds[i], SOCK_STREAM);
        b.fd[i] = fds[i][0];
    }
    pthread_t owner = start(burn, &b);
    while (word_get(&b.busy) == 0)
        sni_plat_thread_yield();
    CHECK_EQ(write(fds[0][1], "a", 1), 1);
    reap_until_over(&b.op[0]);
    CHECK_EQ(b.op[0].result, 1);
    sni_driver_cancel(&b.op[1], -ETIMEDOUT);
    reap_until_over(&b.op[1]);
    CHECK_EQ(b.op[1].result, -ETIMEDOUT);
    sni_driver_cancel_now(&b.op[2], -ECANCELED);
    CHECK_EQ(b.op[2].result, -ECANCELED);
    CHECK_EQ(word_get(&b.over), 0);
    word_set(&b.over, 1);
    join(owner);
    CHECK_EQ(b.buf[0], 'a');
    for (int i = 0; i < 3; i++)
        close_both(fds[i]);
}

TEST(others_reap_and_cancel_while_the_owner_computes)
{
    each_ring(busy_owner);
}

/* ---- a thread that ends ------------------------------------------------------------------ */

enum { LEFT = 4 };

struct leaver {
    struct sni_driver *driver;
    struct sni_op op[LEFT];
    char buf[LEFT];
    int fd[LEFT];
    bool flush;
};

static void *submit_and_leave(void *arg)
{
    struct leaver *l = arg;
    op_recv(l->driver, &l->op[0], l->fd[0], &l->buf[0], 1);
    op_begin(&l->op[1], SNI_OP_POLL, l->fd[1]);
    l->op[1].events = SNI_READABLE;
    sni_driver_submit(l->driver, &l->op[1]);
    op_begin(&l->op[2], SNI_OP_ACCEPT, l->fd[2]);
    sni_driver_submit(l->driver, &l->op[2]);
    op_recv(l->driver, &l->op[3], l->fd[3], &l->buf[3], 1);
    if (l->flush) {
        sni_driver_flush(l->driver);
        sni_driver_wait(l->driver, sni_plat_now_ns() + MS(2));
    }
    return NULL;
}

static void leave_behind(struct sni_driver *driver, bool flush)
{
    struct leaver l = {.driver = driver, .flush = flush};
    struct sockaddr_in addr;
    int fds[LEFT][2];
    for (int i = 0; i < LEFT; i++) {
        pair(fds[i], SOCK_STREAM);
        l.fd[i] = fds[i][0];
    }
    int listener = listen_tcp(&addr, SOCK_NONBLOCK, 8);
    l.fd[2] = listener;
    join(start(submit_and_leave, &l));
    for (int i = 0; i < LEFT; i++)
        check_waits(&l.op[i]);
    CHECK_EQ(write(fds[0][1], "x", 1), 1);
    CHECK_EQ(op_end(&l.op[0]), 1);
    CHECK_EQ(write(fds[1][1], "x", 1), 1);
    CHECK_EQ(op_end(&l.op[1]), SNI_READABLE);
    int client = tcp_socket(0);
    CHECK_EQ(connect(client, (struct sockaddr *)&addr, sizeof(addr)), 0);
    ptrdiff_t fd = op_end(&l.op[2]);
    CHECK_GE(fd, 0);
    sni_driver_cancel(&l.op[3], -ETIMEDOUT);
    CHECK_EQ(op_end(&l.op[3]), -ETIMEDOUT);
    CHECK_EQ(close((int)fd) | close(client) | close(listener), 0);
    for (int i = 0; i < LEFT; i++)
        close_both(fds[i]);
}

static void leave_in_kernel(struct sni_driver *driver)
{
    leave_behind(driver, true);
}

static void leave_in_ring(struct sni_driver *driver)
{
    leave_behind(driver, false);
}

TEST(operations_survive_the_end_of_the_thread_that_submitted_them)
{
    each_ring(leave_in_kernel);
}

TEST(operations_that_a_thread_has_left_in_the_ring_are_flushed_by_the_next_owner)
{
    each_ring(leave_in_ring);
}

/* ---- fork -------------------------------------------------------------------------------- */

static void fork_and(void (*child)(struct sni_driver *), struct sni_driver *driver)
{
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        child(driver);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void just_leave(struct sni_driver *driver)
{
    (void)driver;
}

static void finish_copy(struct sni_driver *driver)
{
    sni_driver_finish(driver);
}

static void use_own(struct sni_driver *driver)
{
    (void)driver;
    struct sni_driver *own;
    CHECK_EQ(sni_uring_create(NULL, &own), 0);
    recv_one(own);
    sni_driver_finish(own);
}

TEST(a_fork_leaves_the_ring_and_what_waits_in_it_to_the_parent)
{
    struct sni_driver *driver = ring();
    fork_and(finish_copy, driver);
    recv_one(driver);
    int fds[2];
    char c;
    struct sni_op op;
    pair(fds, SOCK_STREAM);
    op_recv(driver, &op, fds[0], &c, 1);
    fork_and(just_leave, driver); /* with an entry that is not flushed */
    check_waits(&op);
    fork_and(use_own, driver); /* with an operation in the kernel */
    check_waits(&op);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EQ(op_end(&op), 1);
    close_both(fds);
    sni_driver_finish(driver);
}
