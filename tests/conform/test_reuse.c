/* SPDX-License-Identifier: MIT */
/* Numbers of descriptors that are used anew (R84): what was told of the old one is not told to
 * who waits for the new one. */
#include "conform/conform.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static void submit(struct sni_driver *d, struct sni_op *op, int fd, bool kept)
{
    begin_poll(op, fd, SNI_READABLE);
    op->kept = kept;
    sni_driver_submit(d, op);
    sni_driver_flush(d);
}

/* Open a quiet port with the number `fd`, which is free. */
static void open_port_at(struct port *port, struct sni_driver *d, int fd)
{
    open_port(port, d);
    if (port->fd == fd)
        return;
    CHECK_EQ(fcntl(port->fd, F_DUPFD_CLOEXEC, fd), fd);
    CHECK_EQ(close(port->fd), 0);
    port->fd = fd;
}

/* An event comes, is perhaps in the driver's hand, and the descriptor is closed and used anew. */
static void reuse(bool first_kept, bool second_kept, bool in_hand)
{
    struct sni_driver *d = open_driver();
    struct port old;
    open_port(&old, d);
    struct sni_op op;
    submit(d, &op, old.fd, first_kept);
    raise_port(&old);
    if (in_hand)
        sni_driver_wait(d, INT64_MAX);
    sni_driver_cancel_now(&op, -EBADF);
    int fd = old.fd;
    close_port(&old);

    struct port new;
    open_port_at(&new, d, fd);
    submit(d, &op, new.fd, second_kept);
    CHECK_EQ(reap_often(d, 5), 0);
    CHECK(!is_complete(&op));
    raise_port(&new);
    CHECK_EQ(drive(&op), SNI_READABLE);
    close_port(&new);
    close_driver(d);
}

TEST(a_number_that_is_used_anew_is_not_told_what_was_on_its_way)
{
    for (int i = 0; i < 8; i++)
        reuse((i & 1) != 0, (i & 2) != 0, (i & 4) != 0);
}

TEST(a_strangers_descriptor_is_closed_behind_our_back_and_its_number_works_again)
{
    struct sni_driver *d = open_driver();
    int fd = -1;
    for (int i = 0; i < 10; i++) {
        struct port port;
        if (fd < 0)
            open_port(&port, d);
        else
            open_port_at(&port, d, fd);
        struct sni_op op;
        submit(d, &op, port.fd, false);
        CHECK_EQ(reap_often(d, 3), 0);
        if (i % 2 == 0) {
            raise_port(&port);
            CHECK_EQ(drive(&op), SNI_READABLE);
        } else {
            sni_driver_cancel_now(&op, -ECANCELED);
        }
        fd = port.fd;
        CHECK_EQ(close(port.fd), 0); /* and nobody is told */
        CHECK_EQ(close(port.peer), 0);
    }
    close_driver(d);
}

TEST(a_strangers_file_that_lives_on_in_a_copy_is_not_told_to_the_new_one)
{
    struct sni_driver *d = open_driver();
    struct port old;
    open_port(&old, d);
    struct sni_op op;
    submit(d, &op, old.fd, false);
    CHECK_EQ(reap_often(d, 3), 0);
    sni_driver_cancel_now(&op, -ECANCELED);
    int copy = fcntl(old.fd, F_DUPFD_CLOEXEC, old.fd + 10);
    CHECK_GE(copy, 0);
    CHECK_EQ(close(old.fd), 0);

    struct port new;
    open_port_at(&new, d, old.fd);
    submit(d, &op, new.fd, false);
    CHECK_EQ(send(old.peer, "x", 1, 0), 1); /* the copy is readable */
    CHECK_EQ(reap_often(d, 5), 0);
    CHECK(!is_complete(&op));
    raise_port(&new);
    CHECK_EQ(drive(&op), SNI_READABLE);
    close_port(&new);
    CHECK_EQ(close(copy), 0);
    CHECK_EQ(close(old.peer), 0);
    close_driver(d);
}

TEST(a_stranger_may_wait_for_a_kept_descriptor)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op ours;
    struct sni_op strangers;
    submit(d, &ours, port.fd, true);
    submit(d, &strangers, port.fd, false);
    CHECK_EQ(reap_often(d, 3), 0);
    raise_port(&port);
    CHECK_EQ(drive(&ours), SNI_READABLE);
    CHECK_EQ(drive(&strangers), SNI_READABLE);
    submit(d, &strangers, port.fd, false);
    CHECK_EQ(drive(&strangers), SNI_READABLE);
    lower_port(&port);
    /* It was told of before, but it is not so any more. */
    submit(d, &strangers, port.fd, false);
    CHECK_EQ(reap_often(d, 3), 0);
    CHECK(!is_complete(&strangers));
    raise_port(&port);
    CHECK_EQ(drive(&strangers), SNI_READABLE);
    close_port(&port);
    close_driver(d);
}
