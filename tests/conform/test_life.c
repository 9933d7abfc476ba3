/* SPDX-License-Identifier: MIT */
/* The life of an operation in any driver (R80, R84, R85): it is complete exactly once, whoever
 * waits, reaps, cancels or wakes. */
#include "conform/conform.h"
#include "plat/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- completion -------------------------------------------------------------------------- */

TEST(a_poll_is_complete_when_its_descriptor_becomes_ready)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    submit_poll(d, &op, port.fd, SNI_READABLE);
    CHECK_EQ(sni_driver_pending(d), 1);
    CHECK_EQ(reap_often(d, 10), 0);
    CHECK(!is_complete(&op));
    raise_port(&port);
    CHECK_EQ(drive(&op), SNI_READABLE);
    CHECK_EQ(sni_driver_pending(d), 0);
    close_port(&port);
    close_driver(d);
}

TEST(a_poll_of_what_is_ready_already_is_complete_soon)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    raise_port(&port);
    for (int i = 0; i < 3; i++) {
        struct sni_op op;
        submit_poll(d, &op, port.fd, SNI_READABLE);
        CHECK_EQ(drive(&op), SNI_READABLE);
    }
    close_port(&port);
    close_driver(d);
}

TEST(a_kept_descriptor_is_waited_for_again_and_again)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    uint32_t ticket = 0;
    for (int i = 0; i < 100; i++) {
        struct sni_op op;
        begin_poll(&op, port.fd, SNI_READABLE);
        op.kept = true;
        op.flags = ticket;
        sni_driver_submit(d, &op);
        CHECK_EQ(reap_often(d, 3), 0);
        CHECK(!is_complete(&op));
        raise_port(&port);
        CHECK_EQ(drive(&op), SNI_READABLE);
        ticket = op.flags;
        lower_port(&port);
    }
    close_port(&port);
    close_driver(d);
}

TEST(one_operation_serves_for_many_waits)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    for (int i = 0; i < 100; i++) {
        submit_poll(d, &op, port.fd, SNI_READABLE);
        raise_port(&port);
        CHECK_EQ(drive(&op), SNI_READABLE);
        lower_port(&port);
        submit_poll(d, &op, port.fd, SNI_READABLE);
        sni_driver_cancel(&op, -ECANCELED);
        CHECK_EQ(drive(&op), -ECANCELED);
    }
    close_port(&port);
    close_driver(d);
}

TEST(a_reap_says_how_many_it_completed)
{
    enum { PORTS = 20 };
    struct sni_driver *d = open_driver();
    struct port ports[PORTS];
    struct sni_op ops[PORTS];
    for (int i = 0; i < PORTS; i++) {
        open_port(&ports[i], d);
        submit_poll(d, &ops[i], ports[i].fd, SNI_READABLE);
    }
    sni_driver_flush(d);
    unsigned n = 0;
    for (int i = 0; i < PORTS; i += 2)
        raise_port(&ports[i]);
    while (sni_driver_pending(d) > PORTS / 2) {
        sni_driver_wait(d, INT64_MAX);
        n += sni_driver_reap_patiently(d);
    }
    CHECK_EQ(n, PORTS / 2);
    for (int i = 0; i < PORTS; i++) {
        CHECK_EQ(is_complete(&ops[i]), i % 2 == 0);
        sni_driver_cancel_now(&ops[i], -ECANCELED);
        close_port(&ports[i]);
    }
    close_driver(d);
}

/* ---- cancellation ------------------------------------------------------------------------ */

TEST(an_operation_is_cancelled_before_the_kernel_has_it)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    submit_poll(d, &op, port.fd, SNI_READABLE);
    sni_driver_cancel(&op, -ETIMEDOUT);
    CHECK_EQ(drive(&op), -ETIMEDOUT);
    close_port(&port);
    close_driver(d);
}

TEST(a_pending_operation_is_cancelled_with_the_reason_given)
{
    static const int reasons[] = {-ETIMEDOUT, -ECANCELED, -EBADF};
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        struct sni_op op;
        submit_poll(d, &op, port.fd, SNI_READABLE);
        sni_driver_flush(d);
        CHECK_EQ(reap_often(d, 5), 0);
        sni_driver_cancel(&op, reasons[i]);
        CHECK_EQ(drive(&op), reasons[i]);
    }
    close_port(&port);
    close_driver(d);
}

TEST(the_first_reason_of_a_cancellation_counts)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    submit_poll(d, &op, port.fd, SNI_READABLE);
    sni_driver_cancel(&op, -ETIMEDOUT);
    sni_driver_cancel(&op, -EBADF);
    sni_driver_cancel(&op, -ECANCELED);
    CHECK_EQ(drive(&op), -ETIMEDOUT);
    sni_driver_cancel(&op, -EBADF);
    CHECK_EQ(op.result, -ETIMEDOUT);
    CHECK_EQ(sni_driver_pending(d), 0);
    close_port(&port);
    close_driver(d);
}

TEST(a_cancellation_that_meets_an_event_gives_one_of_both_and_no_more)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    for (int look_first = 0; look_first < 2; look_first++) {
        struct sni_op op;
        submit_poll(d, &op, port.fd, SNI_READABLE);
        sni_driver_flush(d);
        raise_port(&port);
        if (look_first != 0) /* the driver may have the event in its hand now */
            sni_driver_wait(d, INT64_MAX);
        sni_driver_cancel(&op, -ETIMEDOUT);
        ptrdiff_t result = drive(&op);
        CHECK(result == -ETIMEDOUT || result == SNI_READABLE);
        CHECK_EQ(reap_often(d, 5), 0);
        /* The event is not lost to others. */
        submit_poll(d, &op, port.fd, SNI_READABLE);
        CHECK_EQ(drive(&op), SNI_READABLE);
        lower_port(&port);
    }
    close_port(&port);
    close_driver(d);
}

TEST(a_complete_operation_cannot_be_cancelled)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    raise_port(&port);
    struct sni_op op;
    submit_poll(d, &op, port.fd, SNI_READABLE);
    CHECK_EQ(drive(&op), SNI_READABLE);
    sni_driver_cancel(&op, -ETIMEDOUT);
    sni_driver_cancel_now(&op, -ETIMEDOUT);
    CHECK_EQ(op.result, SNI_READABLE);
    CHECK_EQ(sni_driver_pending(d), 0);
    close_port(&port);
    close_driver(d);
}

TEST(cancel_now_returns_when_the_operation_is_complete)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    for (int state = 0; state < 4; state++) {
        struct sni_op op;
        submit_poll(d, &op, port.fd, SNI_READABLE);
        if (state >= 1)
            sni_driver_flush(d);
        if (state >= 2)
            raise_port(&port);
        if (state >= 3)
            sni_driver_wait(d, INT64_MAX);
        sni_driver_cancel_now(&op, -ECANCELED);
        CHECK_EQ(op.state, SNI_OP_COMPLETE);
        CHECK(op.result == -ECANCELED || (state >= 2 && op.result == SNI_READABLE));
        CHECK(!sni_wait_claim(&op.waiter, 0));
        lower_port(&port);
    }
    close_port(&port);
    close_driver(d);
}

TEST(one_of_many_is_cancelled_and_the_others_wait_on)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op ops[5];
    for (int i = 0; i < 5; i++)
        submit_poll(d, &ops[i], port.fd, SNI_READABLE);
    sni_driver_cancel(&ops[2], -ETIMEDOUT);
    CHECK_EQ(drive(&ops[2]), -ETIMEDOUT);
    sni_driver_cancel(&ops[0], -ETIMEDOUT);
    CHECK_EQ(drive(&ops[0]), -ETIMEDOUT);
    CHECK_EQ(sni_driver_pending(d), 3);
    raise_port(&port);
    drive_all(d);
    for (int i = 1; i < 5; i++)
        CHECK_EQ(ops[i].result, i == 2 ? -ETIMEDOUT : SNI_READABLE);
    close_port(&port);
    close_driver(d);
}

/* ---- many -------------------------------------------------------------------------------- */

static void wait_with_a_thousand(bool kept)
{
    enum { WAITERS = 1000 };
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op *ops = calloc(WAITERS, sizeof(*ops));
    for (int i = 0; i < WAITERS; i++) {
        begin_poll(&ops[i], port.fd, SNI_READABLE);
        ops[i].kept = kept;
        sni_driver_submit(d, &ops[i]);
    }
    CHECK_EQ(sni_driver_pending(d), WAITERS);
    CHECK_EQ(reap_often(d, 3), 0);
    for (int i = 0; i < WAITERS; i += 10)
        sni_driver_cancel(&ops[i], -ECANCELED);
    raise_port(&port); /* stays readable: all are told in the end */
    drive_all(d);
    for (int i = 0; i < WAITERS; i++)
        CHECK_EQ(ops[i].result, i % 10 == 0 ? -ECANCELED : SNI_READABLE);
    free(ops);
    close_port(&port);
    close_driver(d);
}

TEST(a_thousand_wait_for_one_descriptor_and_all_are_told)
{
    wait_with_a_thousand(false);
}

TEST(a_thousand_wait_for_one_kept_descriptor_and_all_are_told)
{
    wait_with_a_thousand(true);
}

TEST(an_event_is_told_to_at_least_one_that_waits_and_the_first_is_among_them)
{
    for (int kept = 0; kept < 2; kept++) {
        struct sni_driver *d = open_driver();
        struct port port;
        open_port(&port, d);
        struct sni_op ops[10];
        for (int i = 0; i < 10; i++) {
            begin_poll(&ops[i], port.fd, SNI_READABLE);
            ops[i].kept = kept != 0;
            sni_driver_submit(d, &ops[i]);
        }
        raise_port(&port);
        CHECK_EQ(drive(&ops[0]), SNI_READABLE);
        lower_port(&port);
        for (int i = 1; i < 10; i++)
            sni_driver_cancel_now(&ops[i], -ECANCELED);
        close_port(&port);
        close_driver(d);
    }
}

/* ---- waiting and waking ------------------------------------------------------------------ */

TEST(a_wake_before_the_wait_is_not_lost)
{
    struct sni_driver *d = open_driver();
    for (int i = 0; i < 100; i++) {
        for (int j = 0; j <= i % 3; j++)
            sni_driver_wake(d);
        sni_driver_wait(d, INT64_MAX);
    }
    close_driver(d);
}

TEST(a_wait_whose_time_has_passed_returns)
{
    static const int64_t passed[] = {INT64_MIN, -1, 0, 1};
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    submit_poll(d, &op, port.fd, SNI_READABLE);
    sni_driver_flush(d);
    for (int i = 0; i < 4; i++)
        sni_driver_wait(d, passed[i]);
    sni_driver_wait(d, sni_plat_now_ns());
    CHECK(!is_complete(&op));
    sni_driver_cancel_now(&op, -ECANCELED);
    close_port(&port);
    close_driver(d);
}

TEST(a_wait_ends_at_its_deadline)
{
    static const int64_t spans_ns[] = {1, 1000, 100000, 3000000};
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    submit_poll(d, &op, port.fd, SNI_READABLE);
    sni_driver_flush(d);
    for (int i = 0; i < 4; i++) {
        int64_t until = sni_plat_now_ns() + spans_ns[i];
        while (sni_plat_now_ns() < until) { /* it may return earlier, but never too late */
            sni_driver_wait(d, until);
            CHECK_EQ(sni_driver_reap_patiently(d), 0);
        }
    }
    sni_driver_cancel_now(&op, -ECANCELED);
    close_port(&port);
    close_driver(d);
}

TEST(a_wait_does_not_sleep_on_a_completion_that_its_thread_has_not_seen)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    for (int i = 0; i < 10; i++) {
        submit_poll(d, &op, port.fd, SNI_READABLE);
        sni_driver_cancel(&op, -EBADF);
        sni_driver_wait(d, INT64_MAX);
        CHECK_EQ(drive(&op), -EBADF);

        submit_poll(d, &op, port.fd, SNI_READABLE);
        raise_port(&port);
        while (sni_driver_pending(d) > 0)
            (void)sni_driver_reap_patiently(d);
        lower_port(&port);
        sni_driver_wait(d, INT64_MAX);
        CHECK_EQ(drive(&op), SNI_READABLE);
    }
    close_port(&port);
    close_driver(d);
}

static void *wake_it(void *driver)
{
    sni_driver_wake(driver);
    return NULL;
}

TEST(a_thread_wakes_the_owner)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    submit_poll(d, &op, port.fd, SNI_READABLE);
    sni_driver_flush(d);
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, wake_it, d), 0);
        sni_driver_wait(d, INT64_MAX);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        /* A return without the wake is allowed, and then the wake is still to come. */
        sni_driver_wait(d, 0);
    }
    CHECK_EQ(reap_often(d, 3), 0);
    sni_driver_cancel_now(&op, -ECANCELED);
    close_port(&port);
    close_driver(d);
}

static void *wake_late(void *driver)
{
    (void)usleep(1000); /* so that the owner mostly sleeps already */
    sni_driver_wake(driver);
    return NULL;
}

TEST(a_wake_that_was_heard_does_not_disturb_the_waits_that_follow)
{
    struct sni_driver *d = open_driver();
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, wake_late, d), 0);
        sni_driver_wait(d, INT64_MAX);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    int64_t until = sni_plat_now_ns() + 20000000;
    unsigned waits = 0;
    for (; sni_plat_now_ns() < until; waits++)
        sni_driver_wait(d, until);
    CHECK_LE(waits, 20); /* a few may be for no reason, thousands are not */
    close_driver(d);
}

/* ---- others use the driver while its owner sleeps ----------------------------------------- */

struct stage {
    struct sni_driver *driver;
    struct port port;
    struct sni_op *op;
    SNI_ATOMIC(int) stop;
};

static void *raise_it(void *arg)
{
    raise_port(&((struct stage *)arg)->port);
    return NULL;
}

static void *wait_elsewhere(void *arg)
{
    struct stage *s = arg;
    struct sni_op op;
    submit_poll(s->driver, &op, s->port.fd, SNI_READABLE);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, raise_it, s), 0);
    CHECK_EQ(sni_wait_commit(&op.waiter, SN_FOREVER), 0);
    CHECK_EQ(op.result, SNI_READABLE);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    sni_atomic_store(&s->stop, 1, relaxed); /* relaxed: the wake orders it */
    sni_driver_wake(s->driver);
    return NULL;
}

TEST(the_owner_drives_what_another_thread_submits_while_it_sleeps)
{
    struct stage s = {.driver = open_driver()};
    for (int i = 0; i < 50; i++) {
        open_port(&s.port, s.driver);
        sni_atomic_store(&s.stop, 0, relaxed); /* relaxed: the thread's start orders it */
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, wait_elsewhere, &s), 0);
        while (sni_atomic_load(&s.stop, relaxed) == 0) { /* relaxed: the wake orders it */
            sni_driver_wait(s.driver, INT64_MAX);
            (void)sni_driver_reap(s.driver);
        }
        CHECK_EQ(pthread_join(thread, NULL), 0);
        close_port(&s.port);
    }
    close_driver(s.driver);
}

static void *reap_for_the_owner(void *arg)
{
    struct stage *s = arg;
    raise_port(&s->port);
    while (sni_driver_pending(s->driver) > 0)
        (void)sni_driver_reap(s->driver);
    return NULL;
}

TEST(another_thread_reaps_and_the_owner_that_sleeps_learns_of_its_own_operation)
{
    struct stage s = {.driver = open_driver()};
    open_port(&s.port, s.driver);
    for (int i = 0; i < 100; i++) {
        struct sni_op op;
        begin_poll(&op, s.port.fd, SNI_READABLE);
        op.kept = i % 2 != 0;
        sni_driver_submit(s.driver, &op);
        sni_driver_flush(s.driver);
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, reap_for_the_owner, &s), 0);
        while (!is_complete(&op))
            sni_driver_wait(s.driver, INT64_MAX); /* and does not reap: the other does */
        CHECK_EQ(op.result, SNI_READABLE);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        lower_port(&s.port);
    }
    close_port(&s.port);
    close_driver(s.driver);
}

static void *reap_all_the_time(void *arg)
{
    struct stage *s = arg;
    while (sni_atomic_load(&s->stop, relaxed) == 0) /* relaxed: soon is enough */
        (void)sni_driver_reap(s->driver);
    return NULL;
}

struct waker {
    struct stage *stage;
    SNI_ATOMIC(uint32_t) heard;
};

static void *wake_and_be_heard(void *arg)
{
    struct waker *w = arg;
    for (uint32_t i = 0; i < 500; i++) {
        (void)usleep(50); /* so that the owner mostly sleeps already */
        sni_driver_wake(w->stage->driver);
        /* acquire: pairs with the release of the owner */
        while (sni_atomic_load(&w->heard, acquire) <= i)
            sni_plat_thread_yield();
    }
    return NULL;
}

TEST(a_wake_is_for_the_owner_and_not_for_whoever_reaps)
{
    struct stage s = {.driver = open_driver()};
    struct waker w = {.stage = &s};
    pthread_t reaper;
    pthread_t waker;
    CHECK_EQ(pthread_create(&reaper, NULL, reap_all_the_time, &s), 0);
    CHECK_EQ(pthread_create(&waker, NULL, wake_and_be_heard, &w), 0);
    for (uint32_t i = 1; i <= 500; i++) {
        sni_driver_wait(s.driver, INT64_MAX);
        sni_atomic_store(&w.heard, i, release); /* release: pairs with the acquire of the waker */
    }
    sni_atomic_store(&s.stop, 1, relaxed); /* relaxed: soon is enough */
    CHECK_EQ(pthread_join(waker, NULL), 0);
    CHECK_EQ(pthread_join(reaper, NULL), 0);
    close_driver(s.driver);
}

static void *cancel_for_the_owner(void *arg)
{
    struct stage *s = arg;
    sni_driver_cancel(s->op, -EBADF);
    return NULL;
}

TEST(another_thread_cancels_and_the_owner_that_sleeps_learns_of_it)
{
    struct stage s = {.driver = open_driver()};
    open_port(&s.port, s.driver);
    for (int i = 0; i < 100; i++) {
        struct sni_op op;
        submit_poll(s.driver, &op, s.port.fd, SNI_READABLE);
        s.op = &op;
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, cancel_for_the_owner, &s), 0);
        CHECK_EQ(drive(&op), -EBADF);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    close_port(&s.port);
    close_driver(s.driver);
}

/* ---- storms ------------------------------------------------------------------------------ */

static void *wake_often(void *arg)
{
    struct stage *s = arg;
    while (sni_atomic_load(&s->stop, relaxed) == 0) /* relaxed: soon is enough */
        sni_driver_wake(s->driver);
    return NULL;
}

TEST(a_storm_of_wakes_neither_completes_nor_loses_anything)
{
    enum { THREADS = 3, ROUNDS = 300 };
    struct stage s = {.driver = open_driver()};
    open_port(&s.port, s.driver);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, wake_often, &s), 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct sni_op op;
        submit_poll(s.driver, &op, s.port.fd, SNI_READABLE);
        for (int j = 0; j < 3; j++) {
            sni_driver_wait(s.driver, INT64_MAX);
            CHECK_EQ(sni_driver_reap_patiently(s.driver), 0);
        }
        raise_port(&s.port);
        CHECK_EQ(drive(&op), SNI_READABLE);
        lower_port(&s.port);
    }
    sni_atomic_store(&s.stop, 1, relaxed); /* relaxed: soon is enough */
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    close_port(&s.port);
    close_driver(s.driver);
}

static pthread_t target;

static void *signal_often(void *arg)
{
    struct stage *s = arg;
    while (sni_atomic_load(&s->stop, relaxed) == 0) { /* relaxed: soon is enough */
        (void)pthread_kill(target, SIGUSR1);
        sni_plat_thread_yield();
    }
    return NULL;
}

static void do_nothing(int sig)
{
    (void)sig;
}

TEST(a_storm_of_signals_is_nobodys_error)
{
    struct stage s = {.driver = open_driver()};
    open_port(&s.port, s.driver);
    struct sigaction action = {.sa_handler = do_nothing};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    target = pthread_self();
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, signal_often, &s), 0);
    for (int i = 0; i < 300; i++) {
        struct sni_op op;
        submit_poll(s.driver, &op, s.port.fd, SNI_READABLE);
        int64_t until = sni_plat_now_ns() + 100000;
        while (sni_plat_now_ns() < until) {
            sni_driver_wait(s.driver, until);
            CHECK_EQ(sni_driver_reap_patiently(s.driver), 0);
        }
        if (i % 3 == 0)
            sni_driver_cancel(&op, -ETIMEDOUT);
        else
            raise_port(&s.port);
        CHECK_EQ(drive(&op), i % 3 == 0 ? -ETIMEDOUT : SNI_READABLE);
        lower_port(&s.port);
    }
    sni_atomic_store(&s.stop, 1, relaxed); /* relaxed: soon is enough */
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close_port(&s.port);
    close_driver(s.driver);
}
