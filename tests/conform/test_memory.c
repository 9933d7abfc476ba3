/* SPDX-License-Identifier: MIT */
/* Memory that is not to be had (SPEC 19): an error code or a completion, never worse (R80). */
#include "conform/conform.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef SINEW_HARNESS_WRAP

enum {
    PORTS = 12,
    APART = 60, /* between the numbers of two descriptors, so that tables must grow */
};

/* Move the port to a number of at least `least`. */
static void move_port(struct port *port, int least)
{
    if (conform_driver.set_ready != NULL)
        return;
    int fd = fcntl(port->fd, F_DUPFD_CLOEXEC, least);
    CHECK_GE(fd, 0);
    CHECK_EQ(close(port->fd), 0);
    port->fd = fd;
}

/* Everything once. Returns how often memory was missing. */
static int go_through(void)
{
    struct sni_driver *d = NULL;
    int rc = conform_driver.create(&d);
    if (rc < 0) {
        CHECK_EQ(rc, -ENOMEM);
        return 1;
    }
    int missing = 0;
    struct port ports[PORTS];
    struct sni_op ops[PORTS];
    for (int i = 0; i < PORTS; i++) {
        open_port(&ports[i], d);
        move_port(&ports[i], APART * i);
        begin_poll(&ops[i], ports[i].fd, SNI_READABLE);
        ops[i].kept = i % 2 != 0;
        sni_driver_submit(d, &ops[i]);
        raise_port(&ports[i]);
    }
    drive_all(d);
    for (int i = 0; i < PORTS; i++) {
        CHECK(ops[i].result == SNI_READABLE || ops[i].result == -ENOMEM);
        missing += ops[i].result == -ENOMEM;
        submit_poll(d, &ops[i], ports[i].fd, SNI_READABLE); /* the next is not the worse for it */
        CHECK_EQ(drive(&ops[i]), SNI_READABLE);
        close_port(&ports[i]);
    }
    close_driver(d);
    return missing;
}

TEST(the_kth_allocation_fails_and_one_operation_or_the_driver_is_told)
{
    struct sni_driver *d = open_driver(); /* or skipped */
    close_driver(d);
    uint64_t before = alloc_count();
    CHECK_EQ(go_through(), 0);
    uint64_t allocations = alloc_count() - before;
    CHECK_GE(allocations, 1);
    for (uint64_t k = 1; k <= allocations; k++) {
        alloc_fail_at(k);
        CHECK_EQ(go_through(), 1);
        alloc_fail_at(0);
    }
}

#endif
