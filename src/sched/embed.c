/* SPDX-License-Identifier: MIT */
/* embed.c - a single-threaded scheduler in somebody else's event loop (R45).
 *
 * The foreign loop gives it turns, and waits for a descriptor that is readable when a turn has
 * something to do: a task was made runnable from outside (an eventfd), the driver has something to
 * reap (its own descriptor), or an alarm is due (a timer, set at the end of each turn). A driver
 * without a descriptor is asked every millisecond while it has operations. On virtual time each
 * turn goes on to the next alarm, once, so that the loop has its turns too. */
#include "sched/sched.h"

#include "plat/clock.h"

#include <sinew/errno.h>

/* Somebody outside has made a task runnable. */
void sni_embed_tell(struct sni_sched *sched)
{
    /* acquire: pairs with sni_sched_event_fd */
    int fd = sni_atomic_load(&sched->event_fd, acquire);
    if (sni_unlikely(fd >= 0))
        sni_plat_event_set(fd);
}

/* Let the foreign loop learn what the world has for us. Under gather_lock. */
static void gather_world(struct sni_sched *sched, struct sni_worker *w)
{
    int64_t next_ns = sni_clockwork_next(&w->clockwork);
    struct sni_driver *driver = sni_atomic_load(&w->driver, relaxed); /* relaxed: made by us */
    if (driver != NULL) {
        sni_driver_hush(driver);
        sni_driver_flush(driver);
        int fd = sni_driver_fd(driver);
        if (fd >= 0 && !sched->gathers_driver)
            sched->gathers_driver = sni_plat_gather_add(&sched->gather, fd) == 0;
        if (!sched->gathers_driver && sni_driver_pending(driver) > 0)
            next_ns = sni_plat_now_ns() + SN_MS(1);
    }
    if (sched->config.virtual_time && next_ns != INT64_MAX)
        next_ns = 1; /* it need not be waited for */
    sni_plat_gather_alarm(&sched->gather, next_ns);
}

int sni_sched_turn(struct sni_sched *sched, sn_deadline until)
{
    if (!sni_mutex_trylock(&sched->driver))
        return -EBUSY;
    /* relaxed: the lock; who stops it takes it afterwards */
    if (sni_atomic_load(&sched->life, relaxed) == SNI_SCHED_STOPPING) {
        sni_mutex_unlock(&sched->driver);
        return -EPERM;
    }
    struct sni_worker *w = &sched->workers[0];
    /* acquire: pairs with sni_sched_event_fd */
    int fd = sni_atomic_load(&sched->event_fd, acquire);
    if (fd >= 0)
        sni_plat_event_clear(fd); /* before looking: a wake from now on sets it again */
    w->turn_until_ns = until.ns;
    w->time_passed = false;
    w->turn_begins = true;
    sni_worker_run(w, SNI_DRIVE_TURN, NULL);
    if (fd >= 0) {
        if (sni_sched_has_work(sched, w))
            sni_plat_event_set(fd); /* the time was up */
        sni_mutex_lock(&sched->gather_lock);
        gather_world(sched, w);
        sni_mutex_unlock(&sched->gather_lock);
    }
    sni_mutex_unlock(&sched->driver);
    return 0;
}

/* Under gather_lock. */
static int open_gather(struct sni_sched *sched)
{
    int fd = sni_plat_event_open();
    if (fd < 0)
        return fd;
    int rc = sni_plat_gather_open(&sched->gather);
    if (rc == 0) {
        rc = sni_plat_gather_add(&sched->gather, fd);
        if (rc < 0)
            sni_plat_gather_close(&sched->gather);
    }
    if (rc < 0) {
        sni_plat_event_close(fd);
        return rc;
    }
    sni_atomic_store(&sched->event_fd, fd, release); /* release: pairs with the acquires */
    sni_plat_event_set(fd);                          /* what was there before is to be looked at */
    return 0;
}

int sni_sched_event_fd(struct sni_sched *sched)
{
    int rc = 0;
    sni_mutex_lock(&sched->gather_lock);
    if (sni_atomic_load(&sched->event_fd, relaxed) < 0) /* relaxed: under the lock */
        rc = open_gather(sched);
    sni_mutex_unlock(&sched->gather_lock);
    return rc < 0 ? rc : sched->gather.fd;
}

void sni_embed_finish(struct sni_sched *sched)
{
    int fd = sni_atomic_load(&sched->event_fd, relaxed); /* relaxed: nobody else is here */
    if (fd < 0)
        return;
    sni_plat_event_close(fd);
    sni_plat_gather_close(&sched->gather);
}
