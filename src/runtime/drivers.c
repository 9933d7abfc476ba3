/* SPDX-License-Identifier: MIT */
/* drivers.c - the only place that knows all drivers by name (R80).
 *
 * io_uring is asked for first, unless something else was; where it is not to be had (an old kernel,
 * a container's filter, kernel.io_uring_disabled, no memory to lock), epoll takes its place, and
 * poll(2) that of epoll. SINEW_LOG, set to anything, has that told on standard error, once for each
 * runtime.
 *
 * That is found out when a worker needs a driver, not when its runtime is made: to make a ring and
 * to give it up again takes about 100 us, and a runtime that does no I/O owes nothing. So workers
 * of one runtime may differ, if the last ring was refused for want of memory; a file can do with
 * that, since only drivers that keep registrations are its home. A driver that was asked for by
 * name is tried at once, so that whoever asks learns that he cannot have it.
 *
 * Nor is there io_uring under valgrind, unless it is asked for: valgrind does not see what the
 * kernel writes for a ring, and takes what was received for uninitialised; and it stops all threads
 * while one sleeps in a ring. */
#include "runtime/drivers.h"

#include "fiber/sanitize.h"
#include "io/epoll/epoll.h"
#include "io/poll/poll.h"
#include "io/uring/uring.h"

#include <sinew/errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int make_uring(const struct sni_driver_choice *choice, struct sni_driver **out)
{
    return sni_uring_create(&(struct sni_uring_config){.sqpoll = choice->sqpoll}, out);
}

static int make_epoll(const struct sni_driver_choice *choice, struct sni_driver **out)
{
    (void)choice;
    return sni_epoll_create(out);
}

static int make_poll(const struct sni_driver_choice *choice, struct sni_driver **out)
{
    (void)choice;
    return sni_poll_create(out);
}

static const struct {
    const char *name;
    int (*make)(const struct sni_driver_choice *choice, struct sni_driver **out);
} drivers[] = {
    [SN_IO_URING] = {"uring", make_uring},
    [SN_IO_EPOLL] = {"epoll", make_epoll},
    [SN_IO_POLL] = {"poll", make_poll},
};

enum {
    DRIVERS = sizeof(drivers) / sizeof(drivers[0]),
};

static int from_environment(sn_io_driver *asked)
{
    const char *text = getenv("SINEW_IO");
    if (text == NULL || strcmp(text, "auto") == 0)
        return 0;
    for (int i = SN_IO_URING; i < DRIVERS; i++)
        if (strcmp(text, drivers[i].name) == 0) {
            *asked = (sn_io_driver)i;
            return 0;
        }
    fprintf(stderr, "sinew: SINEW_IO is \"%s\", but must be auto, uring, epoll or poll\n", text);
    return -EINVAL;
}

/* Can it be made, here and now? */
static int try_driver(const struct sni_driver_choice *choice)
{
    struct sni_driver *driver;
    int rc = drivers[choice->asked].make(choice, &driver);
    if (rc == 0)
        sni_driver_finish(driver);
    return rc;
}

/* One line for each in a runtime, however many of its workers find out. */
static void tell(struct sni_driver_choice *choice, int refused, int rc)
{
    uint32_t bit = UINT32_C(1) << refused;
    /* relaxed: flags, nothing is published with them */
    if (getenv("SINEW_LOG") != NULL && !(sni_atomic_fetch_or(&choice->told, bit, relaxed) & bit))
        fprintf(stderr, "sinew: no %s here (%s)\n", drivers[refused].name, strerror(-rc));
}

/* Make one that nobody has asked for by name. */
static int make_unasked(const struct sni_driver_choice *choice, int which, struct sni_driver **out)
{
    if (which == SN_IO_URING && sni_valgrind_active())
        return -ENOTSUP;
    return drivers[which].make(choice, out);
}

int sni_make_driver(void *arg, struct sni_driver **out)
{
    struct sni_driver_choice *choice = arg;
    if (choice->asked != SN_IO_AUTO)
        return drivers[choice->asked].make(choice, out);
    for (int i = SN_IO_URING; i < SN_IO_POLL; i++) {
        int rc = make_unasked(choice, i, out);
        if (rc == 0)
            return 0;
        tell(choice, i, rc);
    }
    return drivers[SN_IO_POLL].make(choice, out);
}

int sni_choose_driver(sn_io_driver asked, bool sqpoll, struct sni_driver_choice *choice)
{
    int rc = 0;
    if ((unsigned)asked >= DRIVERS) {
        fprintf(stderr, "sinew: the option io is %d, which names no driver\n", (int)asked);
        return -EINVAL;
    }
    if (asked == SN_IO_AUTO)
        rc = from_environment(&asked);
    *choice = (struct sni_driver_choice){.asked = asked, .sqpoll = sqpoll};
    if (rc < 0)
        return rc;
    if (asked != SN_IO_AUTO)
        return try_driver(choice);
    sni_uring_expect();
    return 0;
}
