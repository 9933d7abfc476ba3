/* SPDX-License-Identifier: MIT */
/* keeper.c - readiness as the kernel tells it, remembered, believed, and disproved.
 *
 * Words. A *slot* is what we know of a descriptor (slots.h). A *kept* descriptor is a file's of
 * ours: registered once, for everything, edge-triggered, until it is forgotten. All others are
 * *strangers*: somebody waits for a descriptor that is not ours and may be closed and used anew
 * without our knowledge. *Told* is what the kernel's events say, *ready* what we conclude.
 *
 * Kept descriptors. An edge is told once, so the slot remembers: `ready` are the events that were
 * told and not disproved. A wait for one of them is over at once; others wait for an edge. Only a
 * try can disprove, and its owner says so with its next POLL, by the ticket (driver.h). Events of
 * a slot are numbered by `sequence`, `seen[e]` is the last one that told of e, and a ticket is the
 * number of the last event when an operation was completed. A POLL with a ticket not older than
 * seen[e] disproves e.
 *
 * Invariant: a kept descriptor is e in truth => e is in `ready`, or the kernel has an event of it
 * for us that tells e (also one that the driver has in hand). So nobody waits for what is there but
 * with an event to come.
 *     It holds at first, since registering tells what is there already. A descriptor becomes e:
 *     that is an edge, the kernel has an event. An event is processed: e is ready. And e is
 *     disproved: the ticket was given at or after the event seen[e] was taken from the kernel; the
 *     file had it before the try; so the try came after that event. It found e untrue. If e has
 *     become true since, that was an edge after the event, and its own event either is still to
 *     come, or was processed before this POLL; but then seen[e] were newer than the ticket.
 * So an event between the EAGAIN and the POLL is not lost, whichever of the two the lock lets
 * first. And no busy loop: a POLL that is over at once although e is untrue brings the newest
 * ticket, with which the next one disproves. That is at most one try in vain per event.
 * Ticket 0 disproves nothing: it is of somebody who has not seen any event, and if there was none
 * then nothing is ready either. Who waits for more than one event, or for one that nobody tries
 * for, always comes with it, and could be told for ever of what is not there. So what is ready then
 * is checked by poll(2), which disproves as a try does. Numbers have 31 bits, wrap around and leave
 * 0 out; that an owner sleeps on a ticket for 2^30 events between a try and its POLL, we take for
 * impossible.
 *
 * Whom to tell. An edge may stand for two connections, and a waiter that is told may never come
 * back: it got its connection and is content, or its deadline passed, too late to matter. To tell
 * all is right and wakes a hundred acceptors for one connection. We tell the first waiter of each
 * event that was told, and if there are others for it, ask the kernel to tell again if it is still
 * so: EPOLL_CTL_MOD looks at the descriptor anew, like a registration. The kernel looks once more
 * when we take its events. So the next reap completes the next waiter if the descriptor is still
 * ready then, and none if the first has used it up. No waiter needs to report success, and none
 * waits while there is something for it: as long as it is in the list and e is true, an event is
 * to come, and each such event takes one off the list. Cost: one system call per event that has
 * several waiters, none otherwise; and the told are more than needed if we reap faster than they
 * accept. If the kernel refuses, all are told.
 *
 * Strangers are registered for one event at a time (EPOLLONESHOT, level-triggered), anew with each
 * wait: the kernel drops a registration with the last descriptor of a file, so a number that is
 * used anew has none (ENOENT), and gets one. All waiters of a descriptor share it: it is armed for
 * what any of them wants, an event completes all that it concerns, and it is armed again for the
 * rest. What cannot be armed cannot be told: all waiters get the error. Files that epoll does not
 * take (EPERM: regular ones) are always ready. A stranger's wait for a descriptor that is kept has
 * no ticket either, and is checked in the same way.
 *
 * Generations. A driver may take events from the kernel without its lock, and process them later.
 * Meanwhile a descriptor may be forgotten and its number used anew; and one closed behind our back
 * may live on in a copy (dup) and be told of. So each registration has a generation, its events
 * carry it, and others than the slot's present one are ignored.
 *
 * Rejected: EPOLLEXCLUSIVE (spreads over epoll instances, not over waiters of one); one shot for
 * all (a system call per wait); ready bits without tickets (either an edge before the POLL is
 * lost, or a stale bit makes a busy loop). */
#include "io/epoll/keeper.h"

#include "base/assert.h"

#include <sinew/errno.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    FETCH_OP = 2,   /* events ahead of the one that is processed: its operation is fetched */
    FETCH_SLOT = 4, /* likewise its slot: earlier, since the operation is found by it      */
};

static const uint32_t kept_events = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET;

static struct sni_op *op_of(struct sni_list *link)
{
    return sni_container_of(link, struct sni_op, waiter.link);
}

static void complete(struct sni_op *op, ptrdiff_t result)
{
    sni_list_remove(&op->waiter.link);
    bool thread = op->waiter.fiber == NULL;
    struct sni_driver *driver = op->driver;
    sni_op_complete(op, result);
    if (thread)
        driver->ops->wake(driver);
}

/* Complete `op`, which could not be registered. A file that epoll does not take is always ready. */
static void refuse(struct sni_op *op, int rc)
{
    unsigned always = op->events & (SNI_READABLE | SNI_WRITABLE);
    complete(op, rc == -EPERM && always != 0 ? (ptrdiff_t)always : rc);
}

static void refuse_all(struct sni_slot *slot, int rc)
{
    while (!sni_list_empty(&slot->waiters))
        refuse(op_of(slot->waiters.next), rc);
}

/* A stranger's operation gets none: it may be that of a file which has its home in another driver,
 * and would be taken for a ticket of that one. */
static void give_ticket(const struct sni_slot *slot, struct sni_op *op)
{
    if (op->kept)
        op->flags = slot->sequence;
}

/* Complete all that wait for one of the events. Returns their number. */
static unsigned tell_all(struct sni_slot *slot, unsigned told)
{
    unsigned n = 0;
    struct sni_list *next;
    for (struct sni_list *link = slot->waiters.next; link != &slot->waiters; link = next) {
        next = link->next;
        struct sni_op *op = op_of(link);
        unsigned hit = op->events & told;
        if (hit == 0)
            continue;
        give_ticket(slot, op);
        complete(op, hit);
        n++;
    }
    return n;
}

/* ---- what the kernel calls it ------------------------------------------------------------ */

static uint32_t wanted(unsigned events)
{
    return ((events & SNI_READABLE) != 0 ? EPOLLIN | EPOLLRDHUP : 0u) |
           ((events & SNI_WRITABLE) != 0 ? EPOLLOUT : 0u) |
           ((events & SNI_PRIORITY) != 0 ? EPOLLPRI : 0u);
}

static unsigned told_by(uint32_t events)
{
    if ((events & (EPOLLERR | EPOLLHUP)) != 0)
        return SNI_READABLE | SNI_WRITABLE | SNI_PRIORITY;
    return ((events & (EPOLLIN | EPOLLRDHUP)) != 0 ? SNI_READABLE : 0u) |
           ((events & EPOLLOUT) != 0 ? SNI_WRITABLE : 0u) |
           ((events & EPOLLPRI) != 0 ? SNI_PRIORITY : 0u);
}

static int control(struct sni_keeper *k, int what, int fd, uint32_t events, uint64_t data)
{
    struct epoll_event event = {.events = events, .data = {.u64 = data}};
    return epoll_ctl(k->fd, what, fd, &event) == 0 ? 0 : -errno;
}

static uint64_t data_of(const struct sni_slot *slot, int fd)
{
    return (uint64_t)slot->generation << 32 | (uint32_t)fd;
}

/* A new registration, of a new generation; if there is one of this descriptor, it is replaced. */
static int enter(struct sni_keeper *k, struct sni_slot *slot, int fd, uint32_t events)
{
    slot->generation++;
    int rc = control(k, EPOLL_CTL_ADD, fd, events, data_of(slot, fd));
    if (rc == -EEXIST)
        rc = control(k, EPOLL_CTL_MOD, fd, events, data_of(slot, fd));
    return rc;
}

/* ---- kept descriptors -------------------------------------------------------------------- */

/* `newest`: no ticket that is still about, of another driver, is newer. */
static SNI_NEVER_INLINE int keep(struct sni_keeper *k, struct sni_slot *slot, int fd,
                                 uint32_t newest)
{
    if (slot->sequence == 0 || (newest != 0 && !sni_slot_is_not_older(slot->sequence, newest)))
        slot->sequence = newest;
    int rc = enter(k, slot, fd, kept_events);
    if (rc < 0)
        return rc;
    slot->how = SNI_SLOT_KEPT;
    slot->ready = 0; /* and so `seen` means nothing */
    slot->cuts = false;
    return 0;
}

/* Somebody has tried since `ticket` and found none of `events`. */
static void disprove(struct sni_slot *slot, unsigned events, uint32_t ticket)
{
    if (sni_likely(ticket ==
                   slot->sequence)) { /* the newest; or both are 0, and nothing is ready */
        slot->ready &= (uint8_t)~events;
        return;
    }
    if (ticket == 0)
        return;
    for (int i = 0; i < SNI_SLOT_EVENTS; i++)
        if ((events & 1u << i) != 0 && sni_slot_is_not_older(ticket, slot->seen[i]))
            slot->ready &= (uint8_t)~(1u << i);
}

/* A wait without a try to show for itself: the kernel is asked what of `ready` is so. */
static SNI_NEVER_INLINE void wait_by_asking(struct sni_slot *slot, struct sni_op *op)
{
    struct pollfd now = {.fd = op->fd, .events = (short)wanted(op->events)};
    (void)poll(&now, 1, 0);
    unsigned ready = told_by((uint32_t)now.revents) & op->events;
    slot->ready &= (uint8_t)~(op->events & ~ready);
    if ((now.revents & POLLNVAL) == 0 && ready == 0) {
        sni_list_push_back(&slot->waiters, &op->waiter.link);
        return;
    }
    give_ticket(slot, op);
    complete(op, (now.revents & POLLNVAL) != 0 ? -EBADF : (ptrdiff_t)ready);
}

static void wait_kept(struct sni_slot *slot, struct sni_op *op)
{
    if (!op->is_guess || !slot->cuts)
        disprove(slot, op->events, op->flags);
    unsigned ready = slot->ready & op->events;
    if (ready == 0) {
        sni_list_push_back(&slot->waiters, &op->waiter.link);
        return;
    }
    if (sni_unlikely(op->events > SNI_WRITABLE)) { /* several, or PRIORITY */
        wait_by_asking(slot, op);
        return;
    }
    op->flags = slot->sequence;
    complete(op, ready);
}

static void tell(struct sni_slot *slot, struct sni_op *op, unsigned told)
{
    op->flags = slot->sequence;
    complete(op, op->events & told);
}

/* Tell the first waiter of each event, and have the kernel look again for the others. */
static SNI_NEVER_INLINE unsigned tell_first(struct sni_keeper *k, struct sni_slot *slot, int fd,
                                            unsigned told)
{
    unsigned n = 0;
    unsigned untold = told;
    bool others = false;
    struct sni_list *next;
    for (struct sni_list *link = slot->waiters.next; link != &slot->waiters; link = next) {
        next = link->next;
        struct sni_op *op = op_of(link);
        unsigned hit = op->events & told;
        if ((hit & untold) != 0) {
            untold &= ~hit;
            tell(slot, op, told);
            n++;
        } else if (hit != 0) {
            others = true;
            if (untold == 0)
                break;
        }
    }
    if (others && control(k, EPOLL_CTL_MOD, fd, kept_events, data_of(slot, fd)) < 0)
        n += tell_all(slot, told);
    return n;
}

static inline void see(struct sni_slot *slot, unsigned told, int i)
{
    slot->seen[i] = (told & 1u << i) != 0 ? slot->sequence : slot->seen[i];
}

static unsigned kept_event(struct sni_keeper *k, struct sni_slot *slot, int fd, unsigned told)
{
    slot->sequence = sni_slot_next(slot->sequence);
    see(slot, told, 0); /* written out: a loop is longer */
    see(slot, told, 1);
    see(slot, told, 2);
    slot->ready |= (uint8_t)told;

    struct sni_list *first = slot->waiters.next;
    if (first == &slot->waiters)
        return 0;
    if (sni_likely(first->next == &slot->waiters && (op_of(first)->events & told) != 0)) {
        tell(slot, op_of(first), told);
        return 1;
    }
    return tell_first(k, slot, fd, told);
}

/* ---- strangers --------------------------------------------------------------------------- */

/* Have the next event told that any waiter of the slot wants. */
static int arm(struct sni_keeper *k, struct sni_slot *slot, int fd)
{
    unsigned any = 0;
    sni_list_each(link, &slot->waiters)
        any |= op_of(link)->events;
    uint32_t events = wanted(any) | EPOLLONESHOT;
    if (slot->how == SNI_SLOT_ONESHOT) {
        slot->generation++; /* an event of an earlier wait may be taken and not looked at yet */
        int rc = control(k, EPOLL_CTL_MOD, fd, events, data_of(slot, fd));
        if (rc != -ENOENT)
            return rc;
    }
    int rc = enter(k, slot, fd, events);
    slot->how = rc == 0 ? SNI_SLOT_ONESHOT : SNI_SLOT_NONE;
    return rc;
}

static void wait_stranger(struct sni_keeper *k, struct sni_slot *slot, struct sni_op *op)
{
    sni_list_push_back(&slot->waiters, &op->waiter.link);
    int rc = arm(k, slot, op->fd);
    if (rc < 0)
        refuse_all(slot, rc);
}

static SNI_NEVER_INLINE unsigned stranger_event(struct sni_keeper *k, struct sni_slot *slot, int fd,
                                                unsigned told)
{
    unsigned n = tell_all(slot, told);
    int rc = sni_list_empty(&slot->waiters) ? 0 : arm(k, slot, fd);
    if (rc < 0)
        refuse_all(slot, rc);
    return n;
}

/* ---- the table --------------------------------------------------------------------------- */

/* The slot of `fd`. What is no descriptor at all gets no room for one. */
static int slot_of(struct sni_keeper *k, int fd, struct sni_slot **slot)
{
    *slot = sni_slots_find(&k->slots, fd);
    if (*slot != NULL)
        return 0;
    if (fcntl(fd, F_GETFD) < 0)
        return -EBADF;
    return sni_slots_make(&k->slots, fd, slot);
}

static SNI_ALWAYS_INLINE int try_kept(struct sni_keeper *k, struct sni_op *op)
{
    struct sni_slot *slot = sni_slots_find(&k->slots, op->fd);
    if (sni_unlikely(slot == NULL || slot->how != SNI_SLOT_KEPT)) {
        int rc = slot_of(k, op->fd, &slot);
        if (rc == 0)
            rc = keep(k, slot, op->fd, op->flags);
        if (rc < 0)
            return rc;
    }
    wait_kept(slot, op);
    return 0;
}

int sni_keeper_try(struct sni_keeper *k, struct sni_op *op)
{
    return try_kept(k, op);
}

static SNI_NEVER_INLINE void submit_stranger(struct sni_keeper *k, struct sni_op *op)
{
    struct sni_slot *slot;
    int rc = slot_of(k, op->fd, &slot);
    if (rc < 0)
        refuse(op, rc);
    else if (slot->how == SNI_SLOT_KEPT)
        wait_by_asking(slot, op); /* a stranger's, for a descriptor of ours */
    else
        wait_stranger(k, slot, op);
}

void sni_keeper_submit(struct sni_keeper *k, struct sni_op *op)
{
    if (sni_unlikely(!op->kept)) {
        submit_stranger(k, op);
        return;
    }
    int rc = try_kept(k, op);
    if (sni_unlikely(rc < 0))
        refuse(op, rc);
}

void sni_keeper_cancel(struct sni_op *op)
{
    /* What a stranger armed stays so: an event that nobody waits for is ignored. */
    complete(op, -ECANCELED);
}

uint32_t sni_keeper_forget(struct sni_keeper *k, int fd)
{
    struct sni_slot *slot = sni_slots_find(&k->slots, fd);
    if (slot == NULL)
        return 0;
    if (slot->how == SNI_SLOT_NONE)
        return slot->sequence;
    sni_assert_debug(sni_list_empty(&slot->waiters), "a descriptor is closed that is waited for");
    if (k->fd >= 0)
        (void)control(k, EPOLL_CTL_DEL, fd, 0, 0); /* it may be closed already */
    slot->how = SNI_SLOT_NONE; /* the next registration has a generation of its own */
    return slot->sequence;
}

static inline unsigned process(struct sni_keeper *k, const struct epoll_event *event)
{
    int fd = (int)(uint32_t)event->data.u64;
    struct sni_slot *slot = sni_slots_find(&k->slots, fd);
    if (sni_unlikely(slot == NULL || slot->generation != (uint32_t)(event->data.u64 >> 32))) {
        k->is_rung |= event->data.u64 == SNI_KEEPER_BELL;
        return 0;
    }
    unsigned told = told_by(event->events);
    if ((event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI)) != 0)
        slot->cuts = true;
    return slot->how == SNI_SLOT_KEPT ? kept_event(k, slot, fd, told)
                                      : stranger_event(k, slot, fd, told);
}

/* Fetch into the cache what the events from `next` on will need: of one the slot, and of one that
 * comes sooner, whose slot is there by now, the operation that waits. */
static inline void fetch_ahead(struct sni_keeper *k, const struct epoll_event *events, int count,
                               int next)
{
    if (next + FETCH_SLOT < count)
        sni_prefetch(sni_slots_find(&k->slots, (int)(uint32_t)events[next + FETCH_SLOT].data.u64));
    if (next + FETCH_OP >= count)
        return;
    const struct sni_slot *slot =
        sni_slots_find(&k->slots, (int)(uint32_t)events[next + FETCH_OP].data.u64);
    if (sni_likely(slot != NULL))
        sni_op_prefetch(op_of(slot->waiters.next));
}

unsigned sni_keeper_process(struct sni_keeper *k, const struct epoll_event *events, int count)
{
    unsigned completed = 0;
    for (int i = 0; i < count; i++) {
        fetch_ahead(k, events, count, i);
        completed += process(k, &events[i]);
    }
    return completed;
}

/* ---- life -------------------------------------------------------------------------------- */

int sni_keeper_open(struct sni_keeper *k)
{
    k->fd = epoll_create1(EPOLL_CLOEXEC);
    return k->fd >= 0 ? 0 : -errno;
}

void sni_keeper_close(struct sni_keeper *k)
{
    if (k->fd >= 0)
        (void)close(k->fd);
    k->fd = -1;
}

void sni_keeper_finish(struct sni_keeper *k)
{
    sni_keeper_close(k);
    sni_slots_finish(&k->slots);
}
