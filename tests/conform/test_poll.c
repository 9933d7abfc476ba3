/* SPDX-License-Identifier: MIT */
/* The poll driver on a thread's own stack (R5, R80): no memory, no descriptor more than needed. */
#include "conform/conform.h"
#include "io/poll/poll.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void open_pair(int pair[2])
{
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
}

static void close_pair(const int pair[2])
{
    CHECK_EQ(close(pair[0]), 0);
    CHECK_EQ(close(pair[1]), 0);
}

static void *send_one(void *arg)
{
    CHECK_EQ(send(*(int *)arg, "x", 1, MSG_NOSIGNAL), 1);
    return NULL;
}

TEST(a_thread_alone_waits_without_memory_and_without_a_descriptor)
{
    int pair[2];
    open_pair(pair);
    uint64_t limit = exhaust_descriptors();
#ifdef SINEW_HARNESS_WRAP
    uint64_t allocations = alloc_count();
#endif
    struct sni_poll poll;
    sni_poll_init(&poll, SNI_POLL_ALONE);
    for (int i = 0; i < 100; i++) {
        struct sni_op ops[SNI_POLL_INLINE];
        for (int j = 0; j < SNI_POLL_INLINE; j++)
            submit_poll(&poll.driver, &ops[j], pair[0], SNI_READABLE);
        sni_driver_wait(&poll.driver, 0);
        CHECK_EQ(reap_often(&poll.driver, 1), 0);
        (void)send_one(&pair[1]);
        drive_all(&poll.driver);
        CHECK_EQ(ops[SNI_POLL_INLINE - 1].result, SNI_READABLE);
        char byte;
        CHECK_EQ(recv(pair[0], &byte, 1, 0), 1);
    }
    sni_driver_finish(&poll.driver);
#ifdef SINEW_HARNESS_WRAP
    CHECK_EQ(alloc_count(), allocations);
#endif
    restore_descriptors(limit);
    close_pair(pair);
}

TEST(a_thread_alone_sleeps_until_it_is_sent_something)
{
    int pair[2];
    open_pair(pair);
    for (int i = 0; i < 50; i++) {
        struct sni_poll poll;
        sni_poll_init(&poll, SNI_POLL_ALONE);
        struct sni_op op;
        submit_poll(&poll.driver, &op, pair[0], SNI_READABLE);
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, send_one, &pair[1]), 0);
        CHECK_EQ(drive(&op), SNI_READABLE);
        sni_driver_finish(&poll.driver);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        char byte;
        CHECK_EQ(recv(pair[0], &byte, 1, 0), 1);
    }
    close_pair(pair);
}

struct closing {
    struct sni_mutex lock; /* the file's: keeps the operation alive for who closes */
    struct sni_op *op;
};

static void *close_it(void *arg)
{
    struct closing *c = arg;
    sni_mutex_lock(&c->lock);
    if (c->op != NULL)
        sni_driver_cancel(c->op, -EBADF);
    sni_mutex_unlock(&c->lock);
    return NULL;
}

TEST(a_threads_own_driver_may_end_as_soon_as_its_operation_is_cancelled)
{
    int pair[2];
    open_pair(pair);
    for (int i = 0; i < 500; i++) {
        struct closing c = {.op = NULL};
        pthread_t thread;
        {
            struct sni_poll poll;
            sni_poll_init(&poll, SNI_POLL_SHARED);
            struct sni_op op;
            submit_poll(&poll.driver, &op, pair[0], SNI_READABLE);
            c.op = &op;
            CHECK_EQ(pthread_create(&thread, NULL, close_it, &c), 0);
            CHECK_EQ(drive(&op), -EBADF);
            sni_mutex_lock(&c.lock);
            c.op = NULL;
            sni_mutex_unlock(&c.lock);
            sni_driver_finish(&poll.driver);
        }
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    close_pair(pair);
}

static void *reap_it(void *driver)
{
    CHECK_EQ(sni_driver_reap_patiently(driver), 1);
    return NULL;
}

TEST(a_threads_own_driver_may_end_as_soon_as_another_has_reaped_it)
{
    int pair[2];
    open_pair(pair);
    for (int i = 0; i < 500; i++) {
        struct sni_poll poll;
        sni_poll_init(&poll, SNI_POLL_SHARED);
        struct sni_op op;
        submit_poll(&poll.driver, &op, pair[0], SNI_WRITABLE);
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, reap_it, &poll.driver), 0);
        CHECK_EQ(sni_wait_commit(&op.waiter, SN_FOREVER), 0);
        sni_driver_finish(&poll.driver); /* waits for the lock */
        poll.driver = (struct sni_driver){.ops = NULL};
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    close_pair(pair);
}

TEST(a_shared_driver_without_a_wake_descriptor_completes_with_the_error)
{
    int pair[2];
    open_pair(pair);
    struct sni_poll poll;
    sni_poll_init(&poll, SNI_POLL_SHARED);
    uint64_t limit = exhaust_descriptors();
    struct sni_op op;
    submit_poll(&poll.driver, &op, pair[0], SNI_READABLE);
    CHECK(is_complete(&op));
    CHECK_EQ(op.result, -EMFILE);
    sni_driver_wake(&poll.driver); /* for waiting alone it needs none */
    sni_driver_wait(&poll.driver, INT64_MAX);
    restore_descriptors(limit);
    submit_poll(&poll.driver, &op, pair[0], SNI_WRITABLE);
    CHECK_EQ(drive(&op), SNI_WRITABLE);
    sni_driver_finish(&poll.driver);
    close_pair(pair);
}

struct late {
    struct sni_poll *poll;
    int fd;
    SNI_ATOMIC(uint32_t) done;
};

static void *submit_late(void *arg)
{
    struct late *late = arg;
    struct sni_op op;
    submit_poll(&late->poll->driver, &op, late->fd, SNI_WRITABLE);
    CHECK_EQ(sni_wait_commit(&op.waiter, SN_FOREVER), 0);
    CHECK_EQ(op.result, SNI_WRITABLE);
    sni_atomic_store(&late->done, 1, release); /* release: pairs with the acquire below */
    sni_driver_wake(&late->poll->driver);
    return NULL;
}

TEST(an_owner_that_sleeps_without_a_descriptor_learns_of_the_first_operation)
{
    int pair[2];
    open_pair(pair);
    for (int i = 0; i < 50; i++) {
        struct sni_poll poll;
        sni_poll_init(&poll, SNI_POLL_SHARED);
        struct late late = {.poll = &poll, .fd = pair[0]};
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, submit_late, &late), 0);
        while (sni_atomic_load(&late.done, acquire) == 0) { /* acquire: pairs with the release */
            sni_driver_wait(&poll.driver, INT64_MAX);
            (void)sni_driver_reap(&poll.driver);
        }
        CHECK_EQ(pthread_join(thread, NULL), 0);
        sni_driver_finish(&poll.driver);
    }
    close_pair(pair);
}

/* poll(2) takes no more entries than there may be descriptors. */
TEST(more_operations_than_descriptors_are_allowed_still_end)
{
    enum { OPS = 200 };
    int pair[2];
    open_pair(pair);
    struct sni_driver *d = open_driver();
    struct sni_op ops[OPS];
    for (int i = 0; i < OPS; i++)
        submit_poll(d, &ops[i], pair[0], SNI_READABLE);
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    uint64_t before = limit.rlim_cur;
    limit.rlim_cur = 100;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    sni_driver_wait(d, INT64_MAX);
    CHECK_EQ(reap_often(d, 1), 0);
    CHECK_EQ(send(pair[1], "x", 1, 0), 1);
    drive_all(d);
    restore_descriptors(before);
    for (int i = 0; i < OPS; i++)
        CHECK_EQ(ops[i].result, SNI_READABLE);
    close_driver(d);
    close_pair(pair);
}

TEST(a_reap_completes_in_the_order_of_submission_and_not_without_end)
{
    enum { OPS = 700 };
    int pair[2];
    open_pair(pair);
    struct sni_driver *d = open_driver();
    static struct sni_op ops[OPS];
    for (int i = 0; i < OPS; i++)
        submit_poll(d, &ops[i], pair[0], SNI_WRITABLE);
    for (unsigned done = 0; done < OPS;) {
        unsigned n = sni_driver_reap_patiently(d);
        CHECK(n > 0 && n <= 256);
        done += n;
        for (unsigned i = 0; i < OPS; i++)
            CHECK_EQ(is_complete(&ops[i]), i < done);
    }
    close_driver(d);
    close_pair(pair);
}
