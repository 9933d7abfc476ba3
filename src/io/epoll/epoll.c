/* SPDX-License-Identifier: MIT */
/* epoll.c - a keeper (keeper.h), and how its owner sleeps and is woken.
 *
 * What is known of a descriptor, whom to tell and why nothing is lost, keeper.c says.
 *
 * Sleeping. `wait` takes events and completes nothing; it does not sleep while there are some to be
 * reaped. A kept descriptor is told of also while nobody waits for it, and so is a stranger's that
 * was waited for in vain. Without an operation nobody reaps, and the owner would sleep no more. So
 * then `wait` looks at the events itself: there is nobody to complete, they are only remembered.
 *
 * Waking. The bell's descriptor is level-triggered, and only the owner clears it: were it edge-
 * triggered, a reap of another thread could take the event, and the owner would sleep on. It may
 * be rung when the sleep is over. The next one clears it; an owner that never sleeps, because a
 * foreign loop does, is told by its reap, and clears it when it is hushed.
 *
 * Rejected: sleeping in poll(2) on the epoll descriptor, so that taking events stays under the lock
 * (a second system call for each sleep). */
#include "io/epoll/epoll.h"

#include "io/bell.h"
#include "io/epoll/keeper.h"
#include "plat/clock.h"
#include "plat/event.h"

#include <sinew/errno.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    REAP_EVENTS = 64, /* taken from the kernel by one reap          */
    WAIT_EVENTS = 64, /* taken by one wait, on the owner's stack    */
};

struct epoll {
    struct sni_driver driver; /* all that follows, but for the bell: under its lock, or immutable */
    struct sni_bell bell;
    bool coarse;              /* owner only: the kernel's timeouts are in milliseconds    */
    struct sni_keeper keeper; /* its descriptor is immutable      */
    struct epoll_event found[WAIT_EVENTS]; /* taken by wait, for the next reap */
    unsigned found_count;
    struct epoll_event events[REAP_EVENTS]; /* of a reap                       */
};

static struct epoll *epoll_of(struct sni_driver *driver)
{
    return sni_container_of(driver, struct epoll, driver);
}

static void epoll_submit(struct sni_driver *driver, struct sni_op *op)
{
    sni_keeper_submit(&epoll_of(driver)->keeper, op);
}

static void epoll_cancel(struct sni_driver *driver, struct sni_op *op)
{
    (void)driver;
    sni_keeper_cancel(op);
}

static uint32_t epoll_forget(struct sni_driver *driver, int fd)
{
    return sni_keeper_forget(&epoll_of(driver)->keeper, fd);
}

/* What `wait` has taken. */
static unsigned process_found(struct epoll *e)
{
    int count = (int)e->found_count;
    e->found_count = 0;
    return sni_keeper_process(&e->keeper, e->found, count);
}

static unsigned epoll_reap(struct sni_driver *driver)
{
    struct epoll *e = epoll_of(driver);
    unsigned n = process_found(e);
    if (n > 0)
        return n;
    int got = epoll_wait(e->keeper.fd, e->events, REAP_EVENTS, 0);
    return sni_keeper_process(&e->keeper, e->events, got);
}

/* ---- sleeping ---------------------------------------------------------------------------- */

/* As the kernel reads it. */
struct duration {
    int64_t s;
    int64_t ns;
};

static int take_coarsely(struct epoll *e, struct epoll_event *events, int64_t ns)
{
    const int64_t ms_ns = 1000000;
    int64_t ms = ns / ms_ns + (ns % ms_ns != 0); /* rounded up: earlier would be a busy loop */
    int limit = ns == INT64_MAX ? -1 : ms < INT_MAX ? (int)ms : INT_MAX;
    return epoll_wait(e->keeper.fd, events, WAIT_EVENTS, limit);
}

/* Take events from the kernel; wait for the first at most `ns`, INT64_MAX for ever. Returns their
 * number; 0 also if a signal came. */
static int take(struct epoll *e, struct epoll_event *events, int64_t ns)
{
    int got = -1;
#ifdef SYS_epoll_pwait2
    if (!e->coarse) {
        const int64_t second_ns = 1000000000;
        const struct duration limit = {ns / second_ns, ns % second_ns};
        got = (int)syscall(SYS_epoll_pwait2, e->keeper.fd, events, WAIT_EVENTS,
                           ns == INT64_MAX ? NULL : &limit, NULL, (size_t)0);
        e->coarse = got < 0 && (errno == ENOSYS || errno == EPERM); /* EPERM: some sandboxes */
    }
#else
    e->coarse = true;
#endif
    if (e->coarse)
        got = take_coarsely(e, events, ns);
    return got < 0 ? 0 : got;
}

/* Has an earlier wait taken what is to be reaped? */
static bool is_anything_found(struct epoll *e)
{
    sni_mutex_lock(&e->driver.lock);
    if (sni_driver_pending(&e->driver) == 0)
        (void)process_found(e); /* nobody waits and nobody reaps: see "Sleeping" */
    bool found = e->found_count > 0;
    sni_mutex_unlock(&e->driver.lock);
    return found;
}

static void epoll_await(struct sni_driver *driver, int64_t until_ns)
{
    struct epoll *e = epoll_of(driver);
    int64_t now_ns = until_ns == INT64_MAX ? 0 : sni_plat_now_ns();
    if (until_ns <= now_ns || is_anything_found(e)) {
        sni_bell_pass(&e->bell);
        return;
    }
    if (!sni_bell_begin(&e->bell))
        return;
    struct epoll_event events[WAIT_EVENTS];
    int got = take(e, events, until_ns - now_ns);
    bool told = false;
    sni_mutex_lock(&driver->lock);
    for (int i = 0; i < got; i++) {
        if (events[i].data.u64 == SNI_KEEPER_BELL)
            told = true;
        else
            e->found[e->found_count++] = events[i]; /* only we fill it, and it was empty */
    }
    sni_mutex_unlock(&driver->lock);
    sni_bell_end(&e->bell, told);
}

static void epoll_wake(struct sni_driver *driver)
{
    sni_bell_ring(&epoll_of(driver)->bell);
}

static void epoll_hush(struct sni_driver *driver)
{
    struct epoll *e = epoll_of(driver);
    if (e->keeper.is_rung)
        sni_plat_event_clear(e->bell.fd); /* the token, which tells the next sleep, stays */
    e->keeper.is_rung = false;
}

static void epoll_finish(struct sni_driver *driver)
{
    struct epoll *e = epoll_of(driver);
    /* Whoever completed the last operation may still hold the lock, which ends with us. */
    sni_mutex_lock(&driver->lock);
    sni_mutex_unlock(&driver->lock);
    sni_keeper_finish(&e->keeper);
    sni_bell_finish(&e->bell);
    free(e);
}

/* An epoll instance can itself be waited for. */
static int epoll_fd(const struct sni_driver *driver)
{
    return ((const struct epoll *)(const void *)driver)->keeper.fd;
}

static const struct sni_driver_ops epoll_ops = {
    .name = "epoll",
    .native = 1u << SNI_OP_POLL,
    .sticky = true,
    .submit = epoll_submit,
    .cancel = epoll_cancel,
    .forget = epoll_forget,
    .reap = epoll_reap,
    .wait = epoll_await,
    .wake = epoll_wake,
    .fd = epoll_fd,
    .hush = epoll_hush,
    .finish = epoll_finish,
};

int sni_epoll_create(struct sni_driver **driver)
{
    struct epoll *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return -ENOMEM;
    sni_driver_init(&e->driver, &epoll_ops);
    sni_bell_init(&e->bell);
    int rc = sni_keeper_open(&e->keeper);
    if (rc < 0)
        goto free_driver;
    rc = sni_bell_open(&e->bell);
    if (rc < 0)
        goto close_keeper;
    struct epoll_event event = {.events = EPOLLIN, .data = {.u64 = SNI_KEEPER_BELL}};
    rc = epoll_ctl(e->keeper.fd, EPOLL_CTL_ADD, e->bell.fd, &event) == 0 ? 0 : -errno;
    if (rc < 0)
        goto close_bell;
    *driver = &e->driver;
    return 0;

close_bell:
    sni_bell_finish(&e->bell);
close_keeper:
    sni_keeper_finish(&e->keeper);
free_driver:
    free(e);
    return rc;
}
