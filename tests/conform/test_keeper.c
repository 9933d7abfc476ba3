/* SPDX-License-Identifier: MIT */
/* What drivers have that keep registrations (R80): tickets, whom they tell, what they forget. */
#include "conform/conform.h"
#include "io/epoll/slots.h"
#include "plat/clock.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void submit_kept(struct sni_driver *d, struct sni_op *op, int fd, uint32_t ticket)
{
    begin_poll(op, fd, SNI_READABLE);
    op->kept = true;
    op->flags = ticket;
    sni_driver_submit(d, op);
}

/* ---- tickets ----------------------------------------------------------------------------- */

TEST(numbers_of_events_keep_their_order_where_they_begin_anew)
{
    uint32_t numbers[8] = {SNI_TICKET_MAX - 4};
    for (int i = 1; i < 8; i++) {
        numbers[i] = sni_slot_next(numbers[i - 1]);
        CHECK(numbers[i] != 0 && numbers[i] <= SNI_TICKET_MAX);
        for (int before = 0; before < i; before++) {
            CHECK(sni_slot_is_not_older(numbers[i], numbers[before]));
            CHECK(!sni_slot_is_not_older(numbers[before], numbers[i]));
        }
        CHECK(sni_slot_is_not_older(numbers[i], numbers[i]));
    }
    CHECK_EQ(sni_slot_next(0), 1);
}

TEST(an_event_between_the_try_and_the_poll_is_not_lost)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    submit_kept(d, &op, port.fd, 0);
    raise_port(&port);
    CHECK_EQ(drive(&op), SNI_READABLE);
    uint32_t ticket = op.flags;
    for (int i = 0; i < 10; i++) {
        lower_port(&port); /* the try: nothing more */
        raise_port(&port); /* and now there is */
        if (i % 2 == 0) {  /* and the driver knows before the POLL */
            sni_driver_wait(d, sni_plat_now_ns() + 1000000000);
            (void)reap_often(d, 3);
        }
        submit_kept(d, &op, port.fd, ticket);
        CHECK_EQ(drive(&op), SNI_READABLE);
        CHECK_NE(op.flags, ticket);
        ticket = op.flags;
    }
    close_port(&port);
    close_driver(d);
}

/* Before it sleeps, an owner only glances: but if there are events it is not to sleep. */
TEST(a_glance_takes_events)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    uint32_t ticket = 0;
    for (int i = 0; i < 3; i++) {
        submit_kept(d, &op, port.fd, ticket);
        raise_port(&port);
        CHECK_EQ(sni_driver_glance(d), 1);
        CHECK(is_complete(&op));
        CHECK_EQ(op.result, SNI_READABLE);
        lower_port(&port);
        ticket = op.flags;
    }
    close_port(&port);
    close_driver(d);
}

TEST(an_end_that_came_with_the_last_bytes_is_not_lost)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    submit_kept(d, &op, port.fd, 0);
    raise_port(&port);
    CHECK_EQ(shutdown(port.peer, SHUT_WR), 0);
    CHECK_EQ(drive(&op), SNI_READABLE); /* one event tells of both */
    char bytes[64];
    CHECK_EQ(recv(port.fd, bytes, sizeof(bytes), 0), 1); /* short: no more bytes */
    uint32_t ticket = op.flags;
    begin_poll(&op, port.fd, SNI_READABLE);
    op.kept = true;
    op.flags = ticket;
    op.is_guess = true;
    sni_driver_submit(d, &op);
    (void)reap_often(d, 3);
    CHECK(is_complete(&op));
    CHECK_EQ(op.result, SNI_READABLE);
    CHECK_EQ(recv(port.fd, bytes, sizeof(bytes), 0), 0);
    close_port(&port);
    close_driver(d);
}

/* A file that moves brings the newest ticket of where it was; others of its owners have it too. */
TEST(a_ticket_of_another_driver_proves_nothing)
{
    struct sni_driver *old = open_driver(), *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    uint32_t ticket = 0;
    for (int i = 0; i < 20; i++) {
        submit_kept(old, &op, port.fd, ticket);
        raise_port(&port);
        CHECK_EQ(drive(&op), SNI_READABLE);
        ticket = op.flags;
        lower_port(&port);
    }
    uint32_t newest = sni_driver_forget(old, port.fd);
    CHECK(ticket != 0 && sni_slot_is_not_older(newest, ticket));
    submit_kept(d, &op, port.fd, newest);
    raise_port(&port);
    CHECK_EQ(drive(&op), SNI_READABLE);
    CHECK(!sni_slot_is_not_older(newest, op.flags));
    submit_kept(d, &op, port.fd, ticket);
    CHECK(is_complete(&op));
    CHECK_EQ(op.result, SNI_READABLE);
    close_port(&port);
    close_driver(d);
    close_driver(old);
}

TEST(an_event_costs_at_most_one_try_in_vain)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    uint32_t ticket = 0;
    for (int i = 0; i < 20; i++) {
        /* Something comes that nobody waits for and somebody takes. */
        struct sni_op op;
        raise_port(&port);
        (void)reap_often(d, 2);
        lower_port(&port);
        unsigned in_vain = 0;
        for (;; in_vain++) {
            submit_kept(d, &op, port.fd, ticket);
            (void)reap_often(d, 2);
            if (!is_complete(&op))
                break;
            CHECK_EQ(op.result, SNI_READABLE);
            ticket = op.flags;
        }
        CHECK_LE(in_vain, 1);
        sni_driver_cancel_now(&op, -ECANCELED);
    }
    close_port(&port);
    close_driver(d);
}

TEST(the_newest_ticket_waits_at_once)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    uint32_t ticket = 0;
    for (int i = 0; i < 20; i++) {
        struct sni_op op;
        submit_kept(d, &op, port.fd, ticket);
        CHECK(!is_complete(&op)); /* no try in vain where tickets are kept */
        raise_port(&port);
        CHECK_EQ(drive(&op), SNI_READABLE);
        ticket = op.flags;
        lower_port(&port);
    }
    close_port(&port);
    close_driver(d);
}

TEST(an_event_of_writing_does_not_disturb_who_reads)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    submit_kept(d, &op, port.fd, 0);
    raise_port(&port);
    CHECK_EQ(drive(&op), SNI_READABLE);
    uint32_t ticket = op.flags;
    lower_port(&port);
    static char bytes[4096];
    while (send(port.fd, bytes, sizeof(bytes), 0) > 0)
        ;
    while (recv(port.peer, bytes, sizeof(bytes), 0) > 0)
        ; /* an edge: writable again */
    (void)reap_often(d, 2);
    submit_kept(d, &op, port.fd, ticket);
    CHECK(!is_complete(&op));
    sni_driver_cancel_now(&op, -ECANCELED);
    close_port(&port);
    close_driver(d);
}

TEST(who_knows_no_ticket_is_told_what_was_told_before)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    submit_kept(d, &op, port.fd, 0);
    raise_port(&port);
    CHECK_EQ(drive(&op), SNI_READABLE);
    for (int i = 0; i < 3; i++) { /* readable all the time, and nobody says otherwise */
        submit_kept(d, &op, port.fd, 0);
        CHECK(is_complete(&op));
        CHECK_EQ(op.result, SNI_READABLE);
    }
    close_port(&port);
    close_driver(d);
}

/* ---- whom an event is told --------------------------------------------------------------- */

enum { CROWD = 100 };

static unsigned count_complete(struct sni_op *ops)
{
    unsigned n = 0;
    for (int i = 0; i < CROWD; i++)
        n += is_complete(&ops[i]);
    return n;
}

static void reap_one_event(struct sni_driver *d)
{
    sni_driver_wait(d, INT64_MAX);
    while (sni_driver_reap_patiently(d) == 0)
        sni_driver_wait(d, INT64_MAX);
}

TEST(one_connection_wakes_one_of_a_hundred_acceptors)
{
    struct sni_driver *d = open_driver();
    int listener = listen_on_loopback();
    struct sni_op ops[CROWD];
    for (int i = 0; i < CROWD; i++)
        submit_kept(d, &ops[i], listener, 0);
    int client = connect_to(listener);
    reap_one_event(d);
    CHECK_EQ(count_complete(ops), 1);
    CHECK(is_complete(&ops[0]));
    int server = accept(listener, NULL, NULL); /* it accepts, and is content */
    CHECK_GE(server, 0);
    CHECK_EQ(reap_often(d, 10), 0);
    CHECK_EQ(count_complete(ops), 1);
    for (int i = 0; i < CROWD; i++)
        sni_driver_cancel_now(&ops[i], -ECANCELED);
    sni_driver_forget(d, listener);
    CHECK_EQ(close(listener), 0);
    CHECK_EQ(close(client), 0);
    CHECK_EQ(close(server), 0);
    close_driver(d);
}

TEST(connections_that_come_together_wake_as_many_acceptors_though_none_comes_back)
{
    enum { CLIENTS = 7 };
    struct sni_driver *d = open_driver();
    int listener = listen_on_loopback();
    struct sni_op ops[CROWD];
    for (int i = 0; i < CROWD; i++)
        submit_kept(d, &ops[i], listener, 0);
    int clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = connect_to(listener);
    for (unsigned i = 0; i < CLIENTS; i++) {
        reap_one_event(d);
        CHECK_EQ(count_complete(ops), i + 1);
        CHECK(is_complete(&ops[i]));
        int server = accept(listener, NULL, NULL);
        CHECK_GE(server, 0);
        CHECK_EQ(close(server), 0);
    }
    CHECK_EQ(reap_often(d, 10), 0);
    CHECK_EQ(count_complete(ops), CLIENTS);
    for (int i = 0; i < CROWD; i++)
        sni_driver_cancel_now(&ops[i], -ECANCELED);
    for (int i = 0; i < CLIENTS; i++)
        CHECK_EQ(close(clients[i]), 0);
    sni_driver_forget(d, listener);
    CHECK_EQ(close(listener), 0);
    close_driver(d);
}

TEST(who_was_told_and_does_nothing_does_not_keep_the_others_waiting)
{
    struct sni_driver *d = open_driver();
    int listener = listen_on_loopback();
    struct sni_op ops[CROWD];
    for (int i = 0; i < CROWD; i++)
        submit_kept(d, &ops[i], listener, 0);
    int client = connect_to(listener);
    reap_one_event(d);
    sni_driver_cancel(&ops[0], -ETIMEDOUT); /* too late: it was told, and goes home */
    CHECK_EQ(ops[0].result, SNI_READABLE);
    sni_driver_cancel(&ops[1], -ETIMEDOUT); /* the next in turn goes too */
    reap_one_event(d);
    CHECK(is_complete(&ops[2]));
    CHECK_EQ(ops[2].result, SNI_READABLE);
    drive_all(d); /* nobody accepts: all learn of it in the end */
    CHECK_EQ(count_complete(ops), CROWD);
    sni_driver_forget(d, listener);
    CHECK_EQ(close(listener), 0);
    CHECK_EQ(close(client), 0);
    close_driver(d);
}

/* ---- what the kernel has ----------------------------------------------------------------- */

/* How many descriptors the process has registered with epoll instances. */
static unsigned count_registrations(void)
{
    struct command c = run_command(
        "cat /dev/null $(find /proc/%d/fd -lname '*eventpoll*' | sed s/fd/fdinfo/) | grep -c tfd:",
        (int)getpid());
    unsigned n = (unsigned)strtoul(c.output, NULL, 10);
    command_finish(&c);
    return n;
}

TEST(what_is_forgotten_is_registered_no_more)
{
    struct sni_driver *d = open_driver();
    unsigned before = count_registrations(); /* a bell, perhaps */
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    submit_kept(d, &op, port.fd, 0);
    CHECK_EQ(count_registrations(), before + 1);
    sni_driver_cancel_now(&op, -EBADF);
    CHECK_EQ(count_registrations(), before + 1); /* for the next wait */
    sni_driver_forget(d, port.fd);
    CHECK_EQ(count_registrations(), before);
    close_port(&port);
    close_driver(d);
}
