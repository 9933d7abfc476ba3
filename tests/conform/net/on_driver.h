/* SPDX-License-Identifier: MIT */
/* on_driver.h - tests that make their own runtimes, once for each driver. */
#ifndef SINEW_TESTS_CONFORM_NET_ON_DRIVER_H
#define SINEW_TESTS_CONFORM_NET_ON_DRIVER_H

#include "suite.h"

/* The body has `io`, and is run with each. */
#define DRIVER_TEST_ON_(name, driver, io) \
    TEST(name##_##driver, .limit_s = 60)  \
    {                                     \
        name##_body(io);                  \
    }
#define DRIVER_TEST(name)                     \
    static void name##_body(sn_io_driver io); \
    DRIVER_TEST_ON_(name, uring, SN_IO_URING) \
    DRIVER_TEST_ON_(name, epoll, SN_IO_EPOLL) \
    DRIVER_TEST_ON_(name, poll, SN_IO_POLL)   \
    static void name##_body(sn_io_driver io)

/* A runtime with that driver; with 1 worker it is of Level 1. */
static inline sn_runtime *runtime_on(sn_io_driver io, unsigned workers)
{
    sn_runtime *rt;
    const sn_runtime_options opts = {
        .io = io, .single_threaded = workers == 1, .workers = workers == 1 ? 0 : workers};
    int rc = sn_runtime_create(&rt, &opts);
    if (rc < 0 && io == SN_IO_URING)
        SKIP("io_uring is not to be had here: %s", strerror(-rc));
    CHECK_EQ(rc, 0);
    return rt;
}

#endif
