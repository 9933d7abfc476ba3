/* SPDX-License-Identifier: MIT */
/* conform.h - one suite for all drivers, at the interface of io/driver.h (R80).
 *
 * Each driver is a *row*: a file driver_<name>.c that defines `conform_driver`, and a line in
 * CMakeLists.txt that makes an executable conform_<name> of it and the tests. So a test sees one
 * driver, by this one name, and runs in a process of its own for each.
 *
 * Descriptors come as *ports*: something that a test can make readable and quiet again. With
 * drivers that look at the world a port is a socket pair; with those that do not, a number. */
#ifndef SINEW_TESTS_CONFORM_H
#define SINEW_TESTS_CONFORM_H

#include "harness.h"
#include "io/driver.h"

#include <sinew/errno.h>

struct conform_driver {
    const char *name;

    /* NULL, or: why this machine cannot run it (NULL if it can). Then its tests are skipped. */
    const char *(*why_not)(void);

    int (*create)(struct sni_driver **driver);
    void (*destroy)(struct sni_driver *driver); /* NULL: sni_driver_finish */

    /* NULL: descriptors are real. Else: `fd`, a mere number, has these events from now on. */
    void (*set_ready)(struct sni_driver *driver, int fd, unsigned events);
};

extern const struct conform_driver conform_driver;

/* A driver of the row, or the test is skipped. */
struct sni_driver *open_driver(void);
void close_driver(struct sni_driver *driver);

/* ---- ports ------------------------------------------------------------------------------- */

struct port {
    struct sni_driver *driver;
    int fd;   /* what is waited for, non-blocking               */
    int peer; /* the other end; -1 if the number is nothing     */
};

/* Not readable; writable if it is real. */
void open_port(struct port *port, struct sni_driver *driver);

/* Make it readable: once more, a byte. */
void raise_port(struct port *port);

/* Make it not readable. */
void lower_port(struct port *port);

/* Forget it and close it. */
void close_port(struct port *port);

/* ---- operations -------------------------------------------------------------------------- */

/* Fill `op` as a POLL of the calling thread. */
void begin_poll(struct sni_op *op, int fd, unsigned events);

/* The same, and submit it. */
void submit_poll(struct sni_driver *driver, struct sni_op *op, int fd, unsigned events);

/* Is it complete? Looks under the lock. */
bool is_complete(struct sni_op *op);

/* As the owner of the driver: wait and reap until `op` is complete. Returns its result. */
ptrdiff_t drive(struct sni_op *op);

/* As the owner: wait and reap until there is nothing pending. */
void drive_all(struct sni_driver *driver);

/* Reap `times` times, patiently; what is not complete then will not be without an event. Returns
 * how many were completed. */
unsigned reap_often(struct sni_driver *driver, int times);

/* Do what `op` says, of a kind that the driver may have or not, as the rest of the house does:
 * a native kind is submitted; otherwise the system call is made here, and its EAGAIN waited for
 * by a POLL. `ticket` is the file's. The descriptor is made blocking for a native kind, which is to
 * wait, and non-blocking for a system call, which is not. Returns the result. */
ptrdiff_t perform(struct sni_driver *driver, struct sni_op *op, uint32_t *ticket);

/* ---- the world --------------------------------------------------------------------------- */

void set_nonblocking(int fd, bool nonblocking);

/* A non-blocking socket that listens on a port of its own of 127.0.0.1. */
int listen_on_loopback(void);

/* A non-blocking socket that is being connected, or is connected, to what `listener` listens on. */
int connect_to(int listener);

/* Let this process open no descriptor more; the returned limit restores it. */
uint64_t exhaust_descriptors(void);
void restore_descriptors(uint64_t limit);

#endif
