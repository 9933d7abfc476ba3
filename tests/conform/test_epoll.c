/* SPDX-License-Identifier: MIT */
/* What only the epoll driver has (R80): events in hand, and kernels without fine clocks. */
#include "conform/conform.h"
#include "plat/clock.h"
#include "refuse_call.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static void submit_kept(struct sni_driver *d, struct sni_op *op, int fd, uint32_t ticket)
{
    begin_poll(op, fd, SNI_READABLE);
    op->kept = true;
    op->flags = ticket;
    sni_driver_submit(d, op);
}

/* The event of a wait that was given up, taken from the kernel and not looked at yet, is none of
 * the next wait's: what it told of may be gone. */
TEST(an_event_of_an_earlier_wait_does_not_end_a_later_one)
{
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    begin_poll(&op, port.fd, SNI_READABLE);
    sni_driver_submit(d, &op);
    sni_driver_cancel_now(&op, -ETIMEDOUT);
    raise_port(&port);
    for (int i = 0; i < 2; i++) /* the first time it learns of the cancellation */
        sni_driver_wait(d, sni_plat_now_ns() + 100000000);
    lower_port(&port);
    begin_poll(&op, port.fd, SNI_READABLE);
    sni_driver_submit(d, &op);
    (void)reap_often(d, 3);
    CHECK(!is_complete(&op));
    raise_port(&port);
    CHECK_EQ(drive(&op), SNI_READABLE);
    close_port(&port);
    close_driver(d);
}

/* ---- kernels without epoll_pwait2 -------------------------------------------------------- */

static void *raise_later(void *port)
{
    raise_port(port);
    return NULL;
}

TEST(an_older_kernel_counts_in_milliseconds_and_all_else_is_the_same)
{
    refuse_call(SYS_epoll_pwait2, ENOSYS);
    struct sni_driver *d = open_driver();
    struct port port;
    open_port(&port, d);
    struct sni_op op;
    submit_kept(d, &op, port.fd, 0);
    CHECK_EQ(reap_often(d, 2), 0); /* that it is writable is told, and concerns nobody */
    for (int i = 0; i < 3; i++) {
        int64_t until = sni_plat_now_ns() + 1500000;
        sni_driver_wait(d, until); /* no signals here: it sleeps through, rounded up */
        CHECK_GE(sni_plat_now_ns(), until);
    }
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, raise_later, &port), 0);
    CHECK_EQ(drive(&op), SNI_READABLE);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    sni_driver_wait(d, sni_plat_now_ns() + INT64_C(1)); /* less than one is one */
    sni_driver_wake(d);
    sni_driver_wait(d, INT64_MAX - 1);
    close_port(&port);
    close_driver(d);
}
