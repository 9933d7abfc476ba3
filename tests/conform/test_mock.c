/* SPDX-License-Identifier: MIT */
/* The mock driver (R80, R190): scripts do what they say, and the log tells what was called. */
#include "conform/conform.h"
#include "io/mock/mock.h"

#include <pthread.h>
#include <stdlib.h>

static struct sni_mock *open_mock(const struct sni_mock_step *script, size_t steps)
{
    struct sni_mock *mock = malloc(sizeof(*mock));
    CHECK(mock != NULL);
    sni_mock_init(mock, script, steps);
    return mock;
}

static void close_mock(struct sni_mock *mock)
{
    sni_driver_finish(&mock->driver);
    free(mock);
}

static void submit(struct sni_mock *mock, struct sni_op *op, enum sni_op_kind kind)
{
    *op = (struct sni_op){.fd = 3, .kind = (uint8_t)kind, .events = SNI_READABLE};
    sni_wait_begin(&op->waiter);
    sni_driver_submit(&mock->driver, op);
}

#define OPEN_MOCK(script) open_mock((script), sizeof(script) / sizeof((script)[0]))

TEST(every_kind_follows_its_step_at_once)
{
    static const struct sni_mock_step script[] = {
        {.result = SNI_READABLE}, {.result = 17},      {.result = 0},       {.result = 3},
        {.result = -EINTR},       {.result = -EAGAIN}, {.result = -EMFILE},
    };
    struct sni_mock *mock = OPEN_MOCK(script);
    for (unsigned kind = 0; kind < SNI_OP_KINDS; kind++) {
        struct sni_op op;
        CHECK((mock->driver.ops->native & 1u << kind) != 0);
        submit(mock, &op, kind);
        CHECK(is_complete(&op));
        CHECK_EQ(op.result, script[kind].result);
    }
    CHECK_EQ(sni_mock_count(mock, SNI_MOCK_SUBMIT), SNI_OP_KINDS);
    CHECK_EQ(sni_mock_count(mock, SNI_MOCK_COMPLETE), SNI_OP_KINDS);
    close_mock(mock);
}

TEST(an_operation_is_over_at_the_reap_that_the_script_names)
{
    static const struct sni_mock_step script[] = {
        {.when = SNI_MOCK_REAP, .reaps = 3, .result = 5},
        {.when = SNI_MOCK_REAP, .reaps = 1, .result = 6},
    };
    struct sni_mock *mock = OPEN_MOCK(script);
    struct sni_op slow;
    struct sni_op fast;
    submit(mock, &slow, SNI_OP_RECV);
    submit(mock, &fast, SNI_OP_RECV);
    CHECK_EQ(reap_often(&mock->driver, 1), 1);
    CHECK(is_complete(&fast) && !is_complete(&slow));
    CHECK_EQ(reap_often(&mock->driver, 1), 0);
    CHECK_EQ(reap_often(&mock->driver, 1), 1);
    CHECK_EQ(slow.result, 5);
    CHECK_EQ(fast.result, 6);
    close_mock(mock);
}

TEST(while_something_is_to_be_reaped_a_wait_does_not_sleep)
{
    static const struct sni_mock_step script[] = {
        {.when = SNI_MOCK_REAP, .reaps = 50, .result = 5}};
    struct sni_mock *mock = OPEN_MOCK(script);
    struct sni_op op;
    submit(mock, &op, SNI_OP_RECV);
    CHECK_EQ(drive(&op), 5);
    CHECK_EQ(mock->reaps, 50);
    close_mock(mock);
}

static void *submit_elsewhere(void *arg)
{
    struct sni_op op;
    submit(arg, &op, SNI_OP_RECV);
    CHECK_EQ(sni_wait_commit(&op.waiter, SN_FOREVER), 0);
    CHECK_EQ(op.result, 8);
    return NULL;
}

TEST(an_owner_that_sleeps_goes_on_to_reap_what_another_thread_submits)
{
    static const struct sni_mock_step script[] = {
        {.when = SNI_MOCK_REAP, .reaps = 2, .times = 50, .result = 8}};
    struct sni_mock *mock = OPEN_MOCK(script);
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, submit_elsewhere, mock), 0);
        unsigned n = 0;
        while (n == 0) {
            sni_driver_wait(&mock->driver, INT64_MAX);
            n = sni_driver_reap_patiently(&mock->driver);
        }
        CHECK_EQ(pthread_join(thread, NULL), 0);
        sni_driver_wait(&mock->driver, 0); /* what was left to be heard */
    }
    close_mock(mock);
}

TEST(a_cancellation_does_what_the_script_says)
{
    static const struct sni_mock_step script[] = {
        {.when = SNI_MOCK_NEVER, .on_cancel = SNI_MOCK_CANCELED, .result = 1},
        {.when = SNI_MOCK_NEVER, .on_cancel = SNI_MOCK_CANCELED_SOON, .result = 2},
        {.when = SNI_MOCK_NEVER, .on_cancel = SNI_MOCK_SUCCEEDS, .result = 3},
        {.when = SNI_MOCK_REAP, .reaps = 4, .on_cancel = SNI_MOCK_UNAWARE, .result = 4},
    };
    static const struct {
        unsigned reaps;
        ptrdiff_t result;
    } expected[] = {{0, -ETIMEDOUT}, {1, -ETIMEDOUT}, {1, 3}, {4, 4}};
    struct sni_mock *mock = OPEN_MOCK(script);
    for (int i = 0; i < 4; i++) {
        struct sni_op op;
        submit(mock, &op, SNI_OP_RECV);
        sni_driver_cancel(&op, -ETIMEDOUT);
        sni_driver_cancel(&op, -EBADF);
        unsigned reaps = 0;
        for (; !is_complete(&op); reaps++)
            CHECK_EQ(reap_often(&mock->driver, 1), reaps + 1 == expected[i].reaps);
        CHECK_EQ(reaps, expected[i].reaps);
        CHECK_EQ(op.result, expected[i].result);
    }
    CHECK_EQ(sni_mock_count(mock, SNI_MOCK_CANCEL), 4);
    close_mock(mock);
}

TEST(cancel_now_reaps_until_a_late_operation_is_over)
{
    static const struct sni_mock_step script[] = {
        {.when = SNI_MOCK_REAP, .reaps = 20, .on_cancel = SNI_MOCK_UNAWARE, .result = 9}};
    struct sni_mock *mock = OPEN_MOCK(script);
    struct sni_op op;
    submit(mock, &op, SNI_OP_SEND);
    sni_driver_cancel_now(&op, -ECANCELED);
    CHECK_EQ(op.result, 9);
    CHECK_EQ(mock->reaps, 20);
    close_mock(mock);
}

TEST(a_step_can_be_for_many_operations_in_a_row)
{
    static const struct sni_mock_step script[] = {{.result = -EAGAIN, .times = 100}, {.result = 1}};
    struct sni_mock *mock = OPEN_MOCK(script);
    for (int i = 0; i < 101; i++) {
        struct sni_op op;
        submit(mock, &op, SNI_OP_RECV);
        CHECK_EQ(op.result, i < 100 ? -EAGAIN : 1);
    }
    struct sni_op op; /* behind the end of the script: waits */
    submit(mock, &op, SNI_OP_RECV);
    CHECK_EQ(reap_often(&mock->driver, 5), 0);
    sni_driver_cancel(&op, -ECANCELED);
    CHECK_EQ(op.result, -ECANCELED);
    close_mock(mock);
}

TEST(the_log_tells_what_was_called_in_order)
{
    struct sni_mock *mock = open_mock(NULL, 0);
    struct sni_op op;
    submit(mock, &op, SNI_OP_RECV);
    sni_driver_flush(&mock->driver);
    sni_driver_cancel(&op, -EBADF);
    sni_driver_forget(&mock->driver, 3);
    sni_driver_wake(&mock->driver);
    static const uint8_t expected[] = {SNI_MOCK_SUBMIT,   SNI_MOCK_FLUSH, SNI_MOCK_CANCEL,
                                       SNI_MOCK_COMPLETE, SNI_MOCK_FLUSH, SNI_MOCK_FORGET};
    CHECK_EQ(mock->calls, sizeof(expected));
    for (size_t i = 0; i < sizeof(expected); i++)
        CHECK_EQ(mock->log[i].what, expected[i]);
    CHECK_EQ(mock->log[0].kind, SNI_OP_RECV);
    CHECK_EQ(mock->log[0].fd, 3);
    CHECK_EQ(mock->log[3].result, -ECANCELED);
    CHECK_EQ(mock->log[5].fd, 3);
    CHECK_EQ(sni_atomic_load(&mock->wakes, relaxed), 1); /* relaxed: this thread's own */
    close_mock(mock);
}
