/* SPDX-License-Identifier: MIT */
/* rig.c - what the tests of drivers have in common; see conform.h. */
#include "conform/conform.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

struct sni_driver *open_driver(void)
{
    const char *reason = conform_driver.why_not != NULL ? conform_driver.why_not() : NULL;
    if (reason != NULL)
        SKIP("%s: %s", conform_driver.name, reason);
    struct sni_driver *driver = NULL;
    CHECK_EQ(conform_driver.create(&driver), 0);
    CHECK_STR_EQ(driver->ops->name, conform_driver.name);
    return driver;
}

void close_driver(struct sni_driver *driver)
{
    CHECK_EQ(sni_driver_pending(driver), 0);
    if (conform_driver.destroy != NULL)
        conform_driver.destroy(driver);
    else
        sni_driver_finish(driver);
}

/* ---- ports ------------------------------------------------------------------------------- */

void open_port(struct port *port, struct sni_driver *driver)
{
    static int number;
    if (conform_driver.set_ready != NULL) {
        *port = (struct port){driver, number++, -1};
        return;
    }
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    *port = (struct port){driver, pair[0], pair[1]};
}

void raise_port(struct port *port)
{
    if (conform_driver.set_ready != NULL)
        conform_driver.set_ready(port->driver, port->fd, SNI_READABLE);
    else
        CHECK_EQ(send(port->peer, "x", 1, MSG_NOSIGNAL), 1);
}

void lower_port(struct port *port)
{
    if (conform_driver.set_ready != NULL) {
        conform_driver.set_ready(port->driver, port->fd, 0);
        return;
    }
    char bytes[256];
    while (recv(port->fd, bytes, sizeof(bytes), 0) > 0)
        ;
}

void close_port(struct port *port)
{
    sni_driver_forget(port->driver, port->fd);
    if (conform_driver.set_ready != NULL)
        return;
    CHECK_EQ(close(port->fd), 0);
    CHECK_EQ(close(port->peer), 0);
}

/* ---- operations -------------------------------------------------------------------------- */

void begin_poll(struct sni_op *op, int fd, unsigned events)
{
    *op = (struct sni_op){.fd = fd, .kind = SNI_OP_POLL, .events = (uint8_t)events};
    sni_wait_begin(&op->waiter);
}

void submit_poll(struct sni_driver *driver, struct sni_op *op, int fd, unsigned events)
{
    begin_poll(op, fd, events);
    sni_driver_submit(driver, op);
}

bool is_complete(struct sni_op *op)
{
    sni_mutex_lock(&op->driver->lock);
    bool complete = op->state == SNI_OP_COMPLETE;
    sni_mutex_unlock(&op->driver->lock);
    return complete;
}

ptrdiff_t drive(struct sni_op *op)
{
    sni_driver_flush(op->driver);
    while (!is_complete(op)) {
        sni_driver_wait(op->driver, INT64_MAX);
        (void)sni_driver_reap_patiently(op->driver);
    }
    /* It was claimed with 0, so this does not sleep. */
    CHECK_EQ(sni_wait_commit(&op->waiter, SN_FOREVER), 0);
    return op->result;
}

void drive_all(struct sni_driver *driver)
{
    sni_driver_flush(driver);
    while (sni_driver_pending(driver) > 0) {
        sni_driver_wait(driver, INT64_MAX);
        (void)sni_driver_reap_patiently(driver);
    }
}

unsigned reap_often(struct sni_driver *driver, int times)
{
    unsigned n = 0;
    for (int i = 0; i < times; i++)
        n += sni_driver_reap_patiently(driver);
    return n;
}

static ptrdiff_t call(struct sni_op *op)
{
    switch (op->kind) {
    case SNI_OP_ACCEPT:
        return accept4(op->fd, op->addr, op->addr_bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
    case SNI_OP_CONNECT:
        return connect(op->fd, op->addr, *op->addr_bytes);
    case SNI_OP_RECV:
        return recv(op->fd, op->buf, op->bytes, (int)op->flags);
    case SNI_OP_SEND:
        return send(op->fd, op->buf, op->bytes, (int)op->flags | MSG_NOSIGNAL);
    case SNI_OP_RECVMSG:
        return recvmsg(op->fd, op->msg, (int)op->flags);
    case SNI_OP_SENDMSG:
        return sendmsg(op->fd, op->msg, (int)op->flags | MSG_NOSIGNAL);
    default:
        FAIL("no system call is known for kind %d", op->kind);
    }
}

static bool is_outward(unsigned kind)
{
    return kind == SNI_OP_CONNECT || kind == SNI_OP_SEND || kind == SNI_OP_SENDMSG;
}

ptrdiff_t perform(struct sni_driver *driver, struct sni_op *op, uint32_t *ticket)
{
    bool native = (driver->ops->native & 1u << op->kind) != 0;
    set_nonblocking(op->fd, !native);
    if (native) {
        sni_wait_begin(&op->waiter);
        sni_driver_submit(driver, op);
        return drive(op);
    }
    for (;;) {
        uint32_t before = *ticket;
        ptrdiff_t rc = call(op);
        if (rc >= 0 || (op->kind == SNI_OP_CONNECT && errno == EISCONN))
            return rc >= 0 ? rc : 0;
        if (errno != EAGAIN && errno != EINPROGRESS && errno != EALREADY)
            return -errno;
        struct sni_op poll;
        begin_poll(&poll, op->fd, is_outward(op->kind) ? SNI_WRITABLE : SNI_READABLE);
        poll.kept = op->kept;
        poll.flags = before;
        sni_driver_submit(driver, &poll);
        ptrdiff_t result = drive(&poll);
        if (result < 0)
            return result;
        *ticket = poll.flags;
    }
}

/* ---- the world --------------------------------------------------------------------------- */

void set_nonblocking(int fd, bool nonblocking)
{
    int flags = fcntl(fd, F_GETFL);
    CHECK_GE(flags, 0);
    CHECK_EQ(fcntl(fd, F_SETFL, nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK), 0);
}

int listen_on_loopback(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_GE(fd, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_EQ(listen(fd, 128), 0);
    return fd;
}

int connect_to(int listener)
{
    struct sockaddr_in address;
    socklen_t bytes = sizeof(address);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK_GE(fd, 0);
    int rc = connect(fd, (struct sockaddr *)&address, bytes);
    CHECK(rc == 0 || errno == EINPROGRESS);
    return fd;
}

uint64_t exhaust_descriptors(void)
{
    int lowest = fcntl(0, F_DUPFD_CLOEXEC, 0);
    CHECK_GE(lowest, 0);
    CHECK_EQ(close(lowest), 0);
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    uint64_t before = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)lowest;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

void restore_descriptors(uint64_t soft)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = soft;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}
