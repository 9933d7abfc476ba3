/* SPDX-License-Identifier: MIT */
/* Kept registrations of the io_uring driver (R80, R84, R85): events that nobody waits for, closing
 * and reusing a registered descriptor, owners that sleep or compute, kernels that refuse. What all
 * drivers with kept registrations have in common is tested in tests/conform. */
#include "uring_ring.h"

#include "base/compiler.h"
#include "refuse_call.h"

#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static void submit_kept(struct sni_driver *driver, struct sni_op *op, int fd, uint32_t ticket)
{
    op_begin(op, SNI_OP_POLL, fd);
    op->events = SNI_READABLE;
    op->kept = true;
    op->flags = ticket;
    sni_driver_submit(driver, op);
}

static void wait_kept(struct sni_driver *driver, struct sni_op *op, int fd, int peer)
{
    submit_kept(driver, op, fd, op->flags);
    check_waits(op);
    CHECK_EQ(write(peer, "x", 1), 1);
    CHECK_EQ(op_end(op), SNI_READABLE);
    char byte;
    CHECK_EQ(read(fd, &byte, 1), 1);
}

static void forget_and_close(struct sni_driver *driver, int fds[2])
{
    (void)sni_driver_forget(driver, fds[0]);
    close_both(fds);
}

/* ---- events ----------------------------------------------------------------------------- */

static void kept_waits(struct sni_driver *driver)
{
    int fds[2];
    pair(fds, SOCK_STREAM | SOCK_NONBLOCK);
    struct sni_op op = {.flags = 0};
    for (int i = 0; i < 20; i++)
        wait_kept(driver, &op, fds[0], fds[1]);
    forget_and_close(driver, fds);
}

TEST(a_kept_descriptor_is_waited_for_again_and_again)
{
    each_ring(kept_waits);
}

static void nobody_waits(struct sni_driver *driver)
{
    int one[2], two[2];
    pair(one, SOCK_STREAM | SOCK_NONBLOCK);
    pair(two, SOCK_STREAM | SOCK_NONBLOCK);
    struct sni_op first = {.flags = 0}, second = {.flags = 0};
    wait_kept(driver, &first, one[0], one[1]);
    wait_kept(driver, &second, two[0], two[1]);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(write(one[1], "x", 1), 1); /* nobody waits for anything */
        sni_driver_wait(driver, sni_plat_now_ns() + MS(1));
        submit_kept(driver, &second, two[0], second.flags);
        if (i % 2 == 0)
            check_waits(&second); /* another is waited for, and the event met on the way */
        submit_kept(driver, &first, one[0], first.flags);
        CHECK_EQ(op_end(&first), SNI_READABLE);
        char byte;
        CHECK_EQ(read(one[0], &byte, 1), 1);
        CHECK_EQ(write(two[1], "x", 1), 1);
        CHECK_EQ(op_end(&second), SNI_READABLE);
        CHECK_EQ(read(two[0], &byte, 1), 1);
    }
    forget_and_close(driver, one);
    forget_and_close(driver, two);
}

TEST(an_event_that_nobody_waited_for_is_told_to_the_next_who_does)
{
    each_ring(nobody_waits);
}

TEST(events_that_nobody_waits_for_do_not_keep_the_owner_awake)
{
    struct sni_driver *driver = ring();
    int fds[2];
    pair(fds, SOCK_STREAM | SOCK_NONBLOCK);
    struct sni_op op = {.flags = 0};
    submit_kept(driver, &op, fds[0], 0);
    check_waits(&op); /* the ring polls now */
    sni_driver_cancel_now(&op, -ECANCELED);
    int64_t until = sni_plat_now_ns() + MS(20);
    unsigned waits = 0;
    for (; sni_plat_now_ns() < until; waits++) {
        CHECK_EQ(write(fds[1], "x", 1), 1);
        sni_driver_wait(driver, until);
    }
    CHECK_LE(waits, 10);
    forget_and_close(driver, fds);
    sni_driver_finish(driver);
}

TEST(a_foreign_loop_that_waits_for_the_ring_learns_of_kept_descriptors)
{
    struct sni_driver *driver = ring();
    int fds[2];
    pair(fds, SOCK_STREAM | SOCK_NONBLOCK);
    struct sni_op op = {.flags = 0};
    for (int i = 0; i < 3; i++) {
        submit_kept(driver, &op, fds[0], op.flags);
        (void)sni_driver_reap_patiently(driver);
        sni_driver_hush(driver);
        sni_driver_flush(driver);
        struct pollfd one = {.fd = sni_driver_fd(driver), .events = POLLIN};
        CHECK_EQ(poll(&one, 1, 0), 0);
        CHECK_EQ(write(fds[1], "x", 1), 1);
        while (poll(&one, 1, -1) != 1)
            ; /* EINTR: the kernel has done its own work */
        (void)sni_driver_reap_patiently(driver);
        CHECK(op_is_over(&op));
        char byte;
        CHECK_EQ(read(fds[0], &byte, 1), 1);
    }
    forget_and_close(driver, fds);
    sni_driver_finish(driver);
}

/* ---- the end of a descriptor -------------------------------------------------------------- */

TEST(the_other_end_learns_at_once_that_a_registered_descriptor_was_closed)
{
    struct sni_driver *driver = ring();
    for (int i = 0; i < 6; i++) {
        int fds[2];
        pair(fds, SOCK_STREAM | SOCK_NONBLOCK);
        struct sni_op op = {.flags = 0};
        submit_kept(driver, &op, fds[0], 0);
        check_waits(&op);
        sni_driver_cancel_now(&op, -EBADF);
        if (i % 2 == 0)
            (void)sni_driver_forget(driver, fds[0]);
        CHECK_EQ(close(fds[0]), 0); /* neither the ring nor the keeper has it still */
        char byte;
        CHECK_EQ(recv(fds[1], &byte, 1, MSG_DONTWAIT), 0);
        CHECK_EQ(close(fds[1]), 0);
        if (i % 2 != 0)
            (void)sni_driver_forget(driver, fds[0]);
    }
    sni_driver_finish(driver);
}

TEST(the_number_of_a_registered_descriptor_is_used_anew)
{
    struct sni_driver *driver = ring();
    int fds[2];
    pair(fds, SOCK_STREAM | SOCK_NONBLOCK);
    struct sni_op op = {.flags = 0};
    for (int i = 0; i < 10; i++) {
        submit_kept(driver, &op, fds[0], op.flags);
        check_waits(&op);
        sni_driver_cancel_now(&op, -EBADF);
        CHECK_EQ(write(fds[1], "x", 1), 1); /* an event that is still to be taken */
        int copy = i % 2 == 0 ? fcntl(fds[0], F_DUPFD_CLOEXEC, 0) : -1;
        uint32_t newest = sni_driver_forget(driver, fds[0]);
        int next[2];
        pair(next, SOCK_STREAM | SOCK_NONBLOCK);
        CHECK_EQ(dup3(next[0], fds[0], O_CLOEXEC), fds[0]); /* closes it */
        CHECK_EQ(close(next[0]) | close(fds[1]), 0);
        fds[1] = next[1];
        submit_kept(driver, &op, fds[0], newest);
        check_waits(&op);
        CHECK_EQ(write(fds[1], "x", 1), 1);
        CHECK_EQ(op_end(&op), SNI_READABLE);
        char byte;
        CHECK_EQ(read(fds[0], &byte, 1), 1);
        if (copy >= 0)
            CHECK_EQ(close(copy), 0);
    }
    forget_and_close(driver, fds);
    sni_driver_finish(driver);
}

/* ---- owners ------------------------------------------------------------------------------- */

struct owner {
    struct sni_driver *driver;
    struct sni_op *op;
    SNI_ATOMIC(uint32_t) over;
};

static void *own(void *arg)
{
    struct owner *owner = arg;
    while (sni_atomic_load(&owner->over, acquire) == 0) { /* acquire: the test's end */
        sni_driver_wait(owner->driver, INT64_MAX);
        (void)sni_driver_reap_patiently(owner->driver);
    }
    return NULL;
}

static void end_owner(struct owner *owner, pthread_t thread)
{
    sni_atomic_store(&owner->over, 1, release); /* release: pairs with own */
    sni_driver_wake(owner->driver);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void until_over(struct sni_op *op)
{
    while (!op_is_over(op))
        sched_yield();
    CHECK_EQ(op->result, SNI_READABLE);
}

/* Its waiter is this thread, whose end wakes the owner; so nothing else may be what did it. */
static void owner_sleeps(struct sni_driver *driver)
{
    struct owner owner = {.driver = driver};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, own, &owner), 0);
    int one[2], two[2];
    pair(one, SOCK_STREAM | SOCK_NONBLOCK);
    pair(two, SOCK_STREAM | SOCK_NONBLOCK);
    struct sni_op first = {.flags = 0}, second = {.flags = 0};
    for (int i = 0; i < 50; i++) {
        if (i % 4 == 0)
            CHECK_EQ(usleep(1000), 0); /* it sleeps */
        submit_kept(driver, &first, one[0], first.flags);
        submit_kept(driver, &second, two[0], second.flags);
        if (i % 3 == 0)
            CHECK_EQ(usleep(1000), 0);
        CHECK_EQ(write(one[1], "x", 1), 1);
        if (i % 2 == 0) /* we take it from under the owner's hands; the rest is still its */
            (void)sni_driver_reap_patiently(driver);
        until_over(&first);
        CHECK_EQ(write(two[1], "x", 1), 1);
        until_over(&second);
        char byte;
        CHECK_EQ(read(one[0], &byte, 1), 1);
        CHECK_EQ(read(two[0], &byte, 1), 1);
    }
    end_owner(&owner, thread);
    forget_and_close(driver, one);
    forget_and_close(driver, two);
}

TEST(a_sleeping_owner_is_told_of_what_others_gave_it_and_of_what_they_left, .limit_s = 60)
{
    each_ring(owner_sleeps);
}

static void *compute(void *arg)
{
    struct owner *owner = arg;
    submit_kept(owner->driver, owner->op, owner->op->fd, owner->op->flags);
    check_waits(owner->op); /* that it is writable was told, and the ring polls by our hand */
    sni_driver_wait(owner->driver, sni_plat_now_ns() + MS(1));
    sni_atomic_store(&owner->over, 1, release);         /* release: pairs with below */
    while (sni_atomic_load(&owner->over, relaxed) != 2) /* relaxed: a flag */
        sni_cpu_pause();
    return NULL;
}

enum { TICK_PAUSES = 100 };

/* Once is enough, for it need not come from the ring; unless the tick comes just then: for some
 * instructions of it the kernel says that there is nothing to be done any more, and has yet to do
 * it. A ring that is asked for all would tell nothing for a hundred times as long. */
static void reap_at_once(struct sni_driver *driver, struct sni_op *op)
{
    for (int i = 0; i < 3 && !op_is_over(op); i++) {
        if (i > 0)
            sni_cpu_pauses(TICK_PAUSES);
        (void)sni_driver_reap_patiently(driver);
    }
}

/* Also where it cannot be nudged, and the ring tells nothing before the next tick. */
TEST(others_reap_kept_descriptors_while_the_owner_computes)
{
    refuse_call(SYS_membarrier, ENOSYS);
    struct sni_driver *driver = ring();
    int fds[2];
    pair(fds, SOCK_STREAM | SOCK_NONBLOCK);
    struct sni_op op = {.fd = fds[0]};
    for (int i = 0; i < 5; i++) {
        struct owner owner = {.driver = driver, .op = &op};
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, compute, &owner), 0);
        while (sni_atomic_load(&owner.over, acquire) == 0) /* acquire: pairs with compute */
            sched_yield();
        CHECK_EQ(write(fds[1], "x", 1), 1);
        reap_at_once(driver, &op);
        CHECK(op_is_over(&op));
        sni_atomic_store(&owner.over, 2, relaxed); /* relaxed: a flag */
        CHECK_EQ(pthread_join(thread, NULL), 0);
        char byte;
        CHECK_EQ(read(fds[0], &byte, 1), 1);
    }
    forget_and_close(driver, fds);
    sni_driver_finish(driver);
}

/* ---- what the kernel refuses ---------------------------------------------------------------- */

/* Wait, in vain and with success, where the ring has to do it each time. */
static void wait_by_the_ring(struct sni_driver *driver)
{
    int fds[2];
    pair(fds, SOCK_STREAM | SOCK_NONBLOCK);
    struct sni_op op = {.flags = 0};
    for (int i = 0; i < 3; i++) {
        wait_kept(driver, &op, fds[0], fds[1]);
        CHECK_EQ(op.flags, 0); /* no ticket was given */
        submit_kept(driver, &op, fds[0], op.flags);
        sni_driver_cancel_now(&op, -ETIMEDOUT);
        CHECK_EQ(op.result, -ETIMEDOUT);
    }
    CHECK_EQ(sni_driver_forget(driver, fds[0]), 0);
    close_both(fds);
}

TEST(where_there_is_no_epoll_the_ring_polls)
{
    struct sni_driver *driver = ring();
    refuse_call(SYS_epoll_create1, ENOSYS);
    wait_by_the_ring(driver);
    sni_driver_finish(driver);
}

TEST(what_epoll_does_not_register_the_ring_polls)
{
    struct sni_driver *driver = ring();
    refuse_call(SYS_epoll_ctl, ENOSPC);
    wait_by_the_ring(driver);
    sni_driver_finish(driver);
}

TEST(while_no_descriptor_is_left_for_the_keeper_the_ring_polls)
{
    struct sni_driver *driver = ring();
    int fds[2];
    pair(fds, SOCK_STREAM | SOCK_NONBLOCK);
    struct rlimit before;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct sni_op op = {.flags = 0};
    wait_kept(driver, &op, fds[0], fds[1]);
    CHECK_EQ(op.flags, 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    wait_kept(driver, &op, fds[0], fds[1]);
    CHECK_NE(op.flags, 0); /* and here it was registered */
    forget_and_close(driver, fds);
    sni_driver_finish(driver);
}

TEST(a_ring_that_is_told_to_do_without_a_keeper_polls)
{
    struct sni_driver *driver = ring_with((struct sni_uring_config){.without = SNI_URING_KEEPER});
    wait_by_the_ring(driver);
    sni_driver_finish(driver);
}
