/* SPDX-License-Identifier: MIT */
/* case_fd.c - a descriptor that is ready, as a case of a select.
 *
 * To look is to ask the kernel. To wait is a POLL that a driver has, in a record of its own: an
 * operation is larger than a case, and nearly all cases are others. Its waiter is a relay. Before
 * the case goes away it is cancelled, and over.
 *
 * A plain thread brings a driver, one for all its descriptors: the *door*. It sleeps there, so the
 * select's waiter is bound to it: a claim rings the driver's bell. Who claims touches the door
 * until `over`, which the thread waits for; it knows that there is somebody to wait for, because
 * its waiter was claimed after it was published.
 *
 * Rejected: to let the thread park on its waiter and another thread poll for it. */
#include "base/assert.h"
#include "io/file_priv.h"
#include "io/poll/poll.h"
#include "wait/case.h"

#include <sinew/errno.h>
#include <sinew/io.h>
#include <sinew/select.h>

#include <assert.h>

/* ---- the door --------------------------------------------------------------------------- */

struct door {
    struct sni_record record;
    struct sni_door door;
    struct sni_poll poll;
    SNI_ATOMIC(uint32_t) over;
};

static_assert(sizeof(struct door) <= SNI_RECORD_BYTES_MAX, "a door is a record");

static struct door *door_of(struct sni_door *door)
{
    return sni_container_of(door, struct door, door);
}

static void knock(void *who)
{
    struct door *door = who;
    sni_driver_wake(&door->poll.driver);
    sni_atomic_store(&door->over, 1, release); /* release: pairs with wait_at_door */
}

static const struct sni_exec_ops door_ops = {
    .resume = knock, .resume_last = knock, .resumes_late = true};

static void bind(struct sni_door *door, struct sni_waiter *w)
{
    sni_wait_begin_with(w, &door_ops, door_of(door));
}

static int wait_at_door(struct sni_door *of, struct sni_waiter *w, int64_t until_ns)
{
    struct door *door = door_of(of);
    struct sni_driver *driver = &door->poll.driver;
    if (sni_wait_published(w))
        return sni_wait_result(w);
    while (!sni_wait_is_over(w)) {
        sni_driver_wait(driver, until_ns);
        (void)sni_driver_reap_patiently(driver);
        if (until_ns != INT64_MAX && sni_now_ns() >= until_ns) {
            sni_wait_interrupt(w, -ETIMEDOUT);
            until_ns = INT64_MAX;
        }
    }
    /* acquire: pairs with the release in knock; it is a few instructions away */
    for (unsigned round = 0; sni_atomic_load(&door->over, acquire) == 0; round++)
        sni_plat_back_off(round);
    return sni_wait_result(w);
}

static void finish_door(struct sni_door *of)
{
    struct door *door = door_of(of);
    sni_driver_finish(&door->poll.driver);
    sni_record_give(&door->record);
}

static int open_door(struct sni_door **out)
{
    struct sni_record *record;
    int rc = sni_record_take(sizeof(struct door), &record);
    if (rc < 0)
        return rc;
    struct door *door = (struct door *)(void *)record;
    door->door = (struct sni_door){bind, wait_at_door, finish_door};
    sni_atomic_store(&door->over, 0, relaxed); /* relaxed: nobody else knows it yet */
    sni_poll_init(&door->poll, SNI_POLL_SHARED);
    *out = &door->door;
    return 0;
}

/* ---- the case --------------------------------------------------------------------------- */

struct watch {
    struct sni_record record;
    struct sni_relay relay;
    bool is_submitted;
    struct sni_op op;
};

static_assert(sizeof(struct watch) <= SNI_RECORD_BYTES_MAX, "an operation fits into a record");

static int fd_of(const struct sni_case *c)
{
    return (int)(int32_t)c->more;
}

static unsigned events_of(const struct sni_case *c)
{
    return (unsigned)(c->more >> 32);
}

static struct watch *watch_of(struct sni_case *c)
{
    return c->room[0];
}

static bool look(struct sni_case *c, const sn_waker *waker, int *result)
{
    (void)waker;
    *result = sn_wait_fd(fd_of(c), events_of(c), SN_NOWAIT);
    return *result != -ETIMEDOUT;
}

static int prepare(struct sni_case *c, struct sni_vigil *vigil)
{
    struct sni_record *record;
    int rc = 0;
    if (vigil->door == NULL && !vigil->is_awaited && sni_exec_current() == NULL)
        rc = open_door(&vigil->door);
    if (rc == 0)
        rc = sni_record_take(sizeof(struct watch), &record);
    if (rc < 0)
        return rc;
    struct watch *watch = (struct watch *)(void *)record;
    watch->is_submitted = false;
    c->room[0] = watch;
    return 0;
}

/* Whom to give the operation. */
static int find_driver(const struct sni_vigil *vigil, struct sni_driver **out)
{
    struct sni_exec *exec = sni_exec_current();
    if (vigil->door != NULL) {
        *out = &door_of(vigil->door)->poll.driver;
        return 0;
    }
    if (exec == NULL)
        return -EPERM;
    return exec->ops->driver != NULL ? exec->ops->driver(exec, out) : -ENOSYS;
}

static void begin(struct sni_case *c, struct sni_vigil *vigil)
{
    struct watch *watch = watch_of(c);
    struct sni_driver *driver = NULL;
    int rc = find_driver(vigil, &driver);
    if (rc < 0) {
        sni_case_tell(c, vigil, rc);
        return;
    }
    watch->op =
        (struct sni_op){.fd = fd_of(c), .kind = SNI_OP_POLL, .events = (uint8_t)events_of(c)};
    sni_relay_begin(&watch->relay, &watch->op.waiter, c, vigil);
    watch->is_submitted = true;
    sni_driver_submit(driver, &watch->op);
    sni_relay_published(&watch->relay, &watch->op.waiter);
}

/* The driver completes, and passes the claim on, under its lock, which both kinds of an end take.
 * */
static void end(struct sni_case *c, bool abandoned)
{
    struct watch *watch = watch_of(c);
    if (watch->is_submitted) {
        if (abandoned)
            sni_driver_take_back(&watch->op);
        else
            sni_driver_cancel_now(&watch->op, -ECANCELED);
        ptrdiff_t told = watch->op.result;
        c->result = (int)(told < 0 ? told : sni_events_told(told, events_of(c)));
    }
    sni_record_give(&watch->record);
}

static const struct sni_outside outside = {
    .look = look, .prepare = prepare, .begin = begin, .end = end};
static const struct sni_case_kind kind = {.outside = &outside, .name = "descriptor"};

sn_case sn_case_fd(int fd, unsigned events)
{
    return (sn_case){.kind_ = &kind,
                     .at_ = fd < 0 ? NULL : (void *)(uintptr_t)&kind,
                     .more_ = (int64_t)((uint64_t)events << 32 | (uint32_t)fd)};
}
