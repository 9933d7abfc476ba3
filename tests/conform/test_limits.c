/* SPDX-License-Identifier: MIT */
/* Many descriptors, and none to be had (R80; SPEC 19). */
#include "conform/conform.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/* As many descriptors as are allowed, up to `most`. */
static int descriptors_allowed(int most)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int spare = (int)(limit.rlim_cur < 1 << 20 ? limit.rlim_cur : 1 << 20) - 100;
    return spare < most ? spare : most;
}

TEST(ten_thousand_descriptors_are_waited_for_at_once, .limit_s = 60)
{
    struct sni_driver *d = open_driver();
    int count = descriptors_allowed(10000);
    CHECK_GT(count, 100);
    int *fds = calloc((size_t)count, sizeof(*fds));
    struct sni_op *ops = calloc((size_t)count, sizeof(*ops));
    for (int i = 0; i < count; i++) {
        fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        CHECK_GE(fds[i], 0);
        begin_poll(&ops[i], fds[i], SNI_READABLE);
        ops[i].kept = i % 2 != 0;
        sni_driver_submit(d, &ops[i]);
    }
    CHECK_EQ(reap_often(d, 2), 0);
    CHECK_EQ(sni_driver_pending(d), count);
    for (int i = 0; i < count; i++) {
        if (i % 4 == 0)
            sni_driver_cancel(&ops[i], -ECANCELED);
        else
            CHECK_EQ(eventfd_write(fds[i], 1), 0);
    }
    drive_all(d);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(ops[i].result, i % 4 == 0 ? -ECANCELED : SNI_READABLE);
        sni_driver_forget(d, fds[i]);
        CHECK_EQ(close(fds[i]), 0);
    }
    free(ops);
    free(fds);
    close_driver(d);
}

TEST(without_descriptors_there_is_no_driver_and_nothing_is_left_behind)
{
    close_driver(open_driver()); /* or skipped */
    struct sni_driver *d = NULL;
    uint64_t before = exhaust_descriptors();
    int rc = conform_driver.create(&d);
    restore_descriptors(before);
    CHECK_EQ(rc, -EMFILE);
    /* One is there, two are not: for drivers that need more than one. */
    before = exhaust_descriptors();
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    restore_descriptors(limit.rlim_cur + 1);
    rc = conform_driver.create(&d);
    restore_descriptors(before);
    CHECK(rc == 0 || rc == -EMFILE);
    if (rc == 0)
        close_driver(d);
}

TEST(a_driver_that_was_made_needs_no_descriptor_more)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    uint64_t before = exhaust_descriptors();
    for (int kept = 0; kept < 2; kept++) {
        struct sni_op op;
        begin_poll(&op, port.fd, SNI_READABLE);
        op.kept = kept != 0;
        sni_driver_submit(d, &op);
        CHECK_EQ(reap_often(d, 3), 0);
        raise_port(&port);
        CHECK_EQ(drive(&op), SNI_READABLE);
        lower_port(&port);
        sni_driver_wake(d);
        sni_driver_wait(d, INT64_MAX);
    }
    restore_descriptors(before);
    close_port(&port);
    close_driver(d);
}
