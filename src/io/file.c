/* SPDX-License-Identifier: MIT */
/* file.c - using, waiting for, and closing a descriptor of ours.
 *
 * State word
 *
 *     bits 63..32  the record's generation: a compare and swap with a stale handle fails
 *     CLOSED       no more users come; set once, by whoever closes
 *     the rest     users, times USER: one for being open, one for each call under way. The last
 *                  one to leave closes the descriptor and frees the record
 *
 * Waiting. Most operations of a file are made on one worker, and its driver is the file's *home*.
 * Such an operation is in `ops` from its submission to its end, and both are under the home's lock,
 * which a wait takes in any case: so that a close can find it costs nothing more. A close sets
 * CLOSED and then takes that lock; it finds each operation that was submitted before, and one that
 * comes later finds CLOSED. Nobody else touches an operation by way of `ops`, so when it is over
 * its owner has nothing to unlink.
 *     Others are *strays*: they are submitted under the file's own lock, with the same argument,
 * and stay in `strays` until their owner unlinks them under that lock, before its frame goes away;
 * that also waits for a close that is just at it. Strays are those of plain threads, of drivers
 * that are nobody's home, and of workers other than the home's while the home has some.
 *
 * Dry. Who tries in vain, or reads a stream and gets less than asked, knows that there is no more
 * now, and that the next try would be in vain. `known` of a direction is the ticket (driver.h) of
 * the last wait, for the next try; or, with DRY, the ticket that was there before a try in vain,
 * for the next wait. A wait that came to its end makes it doubtful again. So the ticket that goes
 * with a wait is never newer than the try which it is the proof of. Only TCP knows this; a Unix
 * stream cuts a read behind each piece that came with descriptors, and nothing tells. Who does not
 * want to wait at all tries in any case. Orders: all relaxed. A stale word is an older ticket, or
 * a try that could have been saved.
 *
 * Home (record.own). It changes under the file's lock and that of the old home, unless there is
 * none or its owner is gone (retired), and `ops` is empty then; so who has either lock can rely on
 * it. A worker that finds its own driver there without a lock looks again under that driver's. The
 * file holds its home: the memory stays, although the owner may be gone. Orders: relaxed, the locks
 * order.
 *     A file is *kept* (is_kept) from its first POLL in a home that keeps registrations (sticky).
 * It stays there until it is closed, or the driver's owner gone; or a POLL comes from elsewhere in
 * the runtime, nobody waits at home, and it is one of several in a row, or from a worker that has
 * clearly less to look after. In the first case its task has moved, and each event would be told to
 * the wrong worker, who queues it, and is stolen from. In the second that one has stolen it because
 * it had nothing to do: of two workers under load each serves its connections as quickly as it can,
 * and those of the one that has more of them are served more rarely. POLLs of other workers of the
 * same runtime are else given to the home, and those look after each other's drivers. What the old
 * registration has told of and was not looked at yet is forgotten with it: the new one tells what
 * is there. Workers of another runtime must not rely on it, for a runtime without threads is turned
 * only now and then: they ask anew each time, in their own, as strays; and so is whatever else than
 * a POLL comes from another worker. Tickets in `known` are those of the home, or of an earlier one,
 * which are older. So a kept file changes its home with a POLL, which hands the newest ticket on,
 * and only to a driver that keeps it again. A file that is not kept has its home where its last
 * operation came from: when one comes from elsewhere, and none is left, the home changes.
 *
 * Abandoned. A fiber of a runtime that was shut down never goes on: its operation is taken back,
 * and its use of the file ends (sni_lent). A file that nobody else knows yet is closed.
 *
 * Plain threads wait in a driver of their own, on their stack, which asks the kernel anew each
 * time. Whoever closes the file cancels the operation there, which wakes the thread. */
#include "io/file.h"

#include "base/assert.h"
#include "io/file_priv.h"
#include "io/poll/poll.h"
#include "mem/arena_find.h"
#include "plat/socket.h"

#include <sinew/errno.h>

#include <assert.h>

enum {
    VAIN_TRIES = 8,     /* in one call, before it pauses between them              */
    AWAY_MAX = 4,       /* POLLs in a row from elsewhere than a kept file's home    */
    LIGHTER_PART = 8,   /* a driver has less to look after than another, if it is by */
    LIGHTER_LEAST = 16, /* that part of its own and so many files                   */
};

#define CLOSED UINT64_C(1)
#define USER   UINT64_C(2)
#define USERS  UINT64_C(0xFFFFFFFE)
#define DRY    (SNI_TICKET_MAX + 1u) /* of `known`; below it: the ticket */

static_assert(sizeof(struct sni_file) <= SNI_RECORD_STEP, "a file is one line of memory");

/* ---- life ------------------------------------------------------------------------------- */

int sni_file_create(int fd, uint8_t kind, bool is_stream, uint64_t *handle)
{
    struct sni_record *record;
    int rc = sni_record_take(sizeof(struct sni_file), &record);
    if (rc < 0)
        return rc;
    struct sni_file *file = (struct sni_file *)(void *)record;
    file->fd = fd;
    file->is_stream = is_stream;
    file->kind = kind;
    file->is_unborn = false;
    file->is_kept = false;
    file->lock = (struct sni_mutex)SNI_MUTEX_INIT;
    file->ops = NULL;
    file->strays = NULL;
    /* relaxed, all: whoever gets the handle gets them with it */
    sni_atomic_store(&record->own, NULL, relaxed);
    sni_atomic_store(&file->known[SNI_IN], 0, relaxed);
    sni_atomic_store(&file->known[SNI_OUT], 0, relaxed);
    uint64_t generation = sni_atomic_load(&record->generation, relaxed); /* relaxed: ours */
    /* release: pairs with the acquire in sni_file_use, for a handle that travels by itself */
    sni_atomic_store(&file->state, generation << 32 | USER, release);
    *handle = sni_record_handle(record);
    return 0;
}

static SNI_ALWAYS_INLINE int begin_use(uint64_t handle, uint32_t kinds, struct sni_file **out)
{
    struct sni_file *file = (struct sni_file *)(void *)sni_arena_find_step(handle);
    if (file == NULL)
        return -EBADF;
    /* relaxed: the compare and swap decides */
    uint64_t state = sni_atomic_load(&file->state, relaxed);
    do {
        if ((state >> 32 & 0xFFFF) != handle >> 48 || (state & CLOSED) != 0)
            return -EBADF;
        /* acquire: pairs with the release in sni_file_create */
    } while (!sni_atomic_cas(&file->state, &state, state + USER, acquire, relaxed));
    if (sni_unlikely((kinds >> file->kind & 1u) == 0)) {
        sni_file_unuse(file);
        return -ENOTSOCK;
    }
    *out = file;
    return 0;
}

int sni_file_use(uint64_t handle, uint32_t kinds, struct sni_file **out)
{
    return begin_use(handle, kinds, out);
}

static struct sni_driver *home_of(struct sni_file *file)
{
    return sni_atomic_load(&file->record.own, relaxed); /* relaxed: see "Home"; a lock orders */
}

static void set_home(struct sni_file *file, struct sni_driver *home)
{
    sni_atomic_store(&file->record.own, home, relaxed); /* relaxed: as above */
}

/* Nobody uses the file, or its home has retired. Returns a ticket that none of its home's is newer
 * than. */
static uint32_t leave_home(struct sni_file *file)
{
    struct sni_driver *home = home_of(file);
    if (home == NULL)
        return 0;
    sni_assert_debug(file->ops == NULL, "a file leaves its home, and an operation stays behind");
    uint32_t newest = file->is_kept ? sni_driver_forget(home, file->fd) : 0;
    file->is_kept = false;
    set_home(file, NULL);
    sni_driver_release(home);
    return newest;
}

void sni_file_unuse(struct sni_file *file)
{
    /* acq_rel: all use of the file happens before its end */
    uint64_t before = sni_atomic_fetch_sub(&file->state, USER, acq_rel);
    if ((before & USERS) != USER)
        return;
    sni_assert_debug((before & CLOSED) != 0, "the last user of an open file has left");
    (void)leave_home(file);
    sni_plat_close(file->fd);
    sni_record_give(&file->record);
}

int sni_file_close(uint64_t handle)
{
    struct sni_file *file = (struct sni_file *)(void *)sni_arena_find_step(handle);
    if (file == NULL)
        return -EBADF;
    /* relaxed: the compare and swap decides */
    uint64_t state = sni_atomic_load(&file->state, relaxed);
    do {
        if ((state >> 32 & 0xFFFF) != handle >> 48 || (state & CLOSED) != 0)
            return -EBADF;
        /* acq_rel: as in sni_file_use; and whoever finds CLOSED finds all we did before */
    } while (!sni_atomic_cas(&file->state, &state, state | CLOSED, acq_rel, relaxed));
    sni_mutex_lock(&file->lock);
    if (home_of(file) != NULL)
        sni_driver_cancel_chain(home_of(file), &file->ops, -EBADF);
    for (struct sni_chain *link = file->strays; link != NULL; link = link->next)
        sni_driver_cancel(sni_container_of(link, struct sni_op, on_file), -EBADF);
    sni_mutex_unlock(&file->lock);
    sni_file_unuse(file); /* the one for being open */
    return 0;
}

/* ---- trying ----------------------------------------------------------------------------- */

static const uint8_t direction_of[SNI_OP_KINDS] = {
    [SNI_OP_ACCEPT] = SNI_IN,   [SNI_OP_RECV] = SNI_IN,  [SNI_OP_RECVMSG] = SNI_IN,
    [SNI_OP_CONNECT] = SNI_OUT, [SNI_OP_SEND] = SNI_OUT, [SNI_OP_SENDMSG] = SNI_OUT,
};

ptrdiff_t sni_op_try(struct sni_op *op, int fd)
{
    switch (op->kind) {
    case SNI_OP_ACCEPT:
        return sni_plat_accept(fd, op->addr, op->addr_bytes);
    case SNI_OP_RECV:
        return sni_plat_recv(fd, op->buf, op->bytes, (int)op->flags);
    case SNI_OP_SEND:
        return sni_plat_send(fd, op->buf, op->bytes, (int)op->flags);
    case SNI_OP_RECVMSG:
        return sni_plat_recvmsg(fd, op->msg, (int)op->flags);
    case SNI_OP_SENDMSG:
        return sni_plat_sendmsg(fd, op->msg, (int)op->flags);
    default:
        return -EINVAL;
    }
}

uint32_t sni_file_ticket(struct sni_file *file, enum sni_direction way, bool *dry)
{
    uint32_t known = sni_atomic_load(&file->known[way], relaxed); /* relaxed: see the top */
    *dry = (known & DRY) != 0;
    return known & ~DRY;
}

void sni_file_tried(struct sni_file *file, enum sni_direction way, ptrdiff_t result, size_t bytes,
                    uint32_t ticket)
{
    bool is_short = way == SNI_IN && file->is_stream && result > 0 && (size_t)result < bytes;
    if (is_short || result == -EAGAIN)
        sni_atomic_store(&file->known[way], DRY | ticket, relaxed); /* relaxed: see the top */
}

uint32_t sni_file_proof(struct sni_file *file, unsigned events)
{
    if (events != SNI_READABLE && events != SNI_WRITABLE)
        return 0; /* a ticket would disprove both */
    bool dry;
    uint32_t ticket = sni_file_ticket(file, events == SNI_READABLE ? SNI_IN : SNI_OUT, &dry);
    return dry ? ticket : 0;
}

void sni_file_note_ready(struct sni_file *file, enum sni_direction way, uint32_t ticket)
{
    sni_atomic_store(&file->known[way], ticket, relaxed); /* relaxed: see the top */
}

/* ---- waiting ---------------------------------------------------------------------------- */

static bool is_closed(struct sni_file *file)
{
    /* relaxed: a close that comes later finds the wait, if there is one */
    return (sni_atomic_load(&file->state, relaxed) & CLOSED) != 0;
}

static void interrupt(struct sni_waiter *w, int why)
{
    sni_driver_cancel(sni_container_of(w, struct sni_op, waiter), why);
}

/* What holds a file at its home. */
enum bond {
    BOND_NONE,
    BOND_BUSY, /* an operation is there    */
    BOND_KEPT, /* a registration is there  */
};

/* Has `driver` clearly less to look after than `home`? Files count, not what they wait for: where
 * many have just been told there is little of that, and soon as much as before. */
static bool is_lighter(const struct sni_driver *driver, const struct sni_driver *home)
{
    /* relaxed, both: numbers to be compared */
    uint32_t here = sni_atomic_load(&driver->holders, relaxed);
    return here + here / LIGHTER_PART + LIGHTER_LEAST < sni_atomic_load(&home->holders, relaxed);
}

/* Under the lock of the home, which keeps the file: one more POLL comes from elsewhere, from the
 * worker of `driver`. */
static bool is_drawn_away(struct sni_file *file, const struct sni_driver *driver,
                          const struct sni_driver *home)
{
    if (file->ops != NULL || (++file->away < AWAY_MAX && !is_lighter(driver, home)))
        return false;
    file->away = 0;
    return true;
}

/* Leave the home, if nothing holds the file there; or only a registration, and `driver`, if it is
 * not NULL, draws it away. Returns what holds it; and *newest as leave_home. */
static enum bond leave_if_loose(struct sni_file *file, struct sni_driver *home,
                                const struct sni_driver *driver, uint32_t *newest)
{
    sni_mutex_lock(&home->lock);
    enum bond bond = home->ops->sticky && file->is_kept ? BOND_KEPT
                     : file->ops != NULL                ? BOND_BUSY
                                                        : BOND_NONE;
    if (bond == BOND_KEPT && driver != NULL && is_drawn_away(file, driver, home)) {
        *newest = home->ops->forget(home, file->fd);
        bond = BOND_NONE;
    }
    if (bond == BOND_NONE) {
        set_home(file, NULL);
        file->is_kept = false;
    }
    sni_mutex_unlock(&home->lock);
    if (bond == BOND_NONE)
        sni_driver_release(home);
    return bond;
}

/* `newest`: as leave_home says. */
static struct sni_driver *make_home(struct sni_file *file, struct sni_driver *driver,
                                    struct sni_op *op, uint32_t newest)
{
    sni_driver_hold(driver);
    set_home(file, driver);
    if (driver->ops->sticky && op->kind == SNI_OP_POLL)
        op->flags = newest; /* whatever the ticket was, it is no proof here; see driver.h */
    return driver;
}

/* The home of the file for an operation that would be given to `driver`; NULL: it is a stray.
 * Under the file's lock. */
static struct sni_driver *find_home(struct sni_file *file, struct sni_driver *driver,
                                    struct sni_op *op)
{
    struct sni_driver *home = home_of(file);
    bool can_be_home = driver->ops->sticky || driver->ops->retire != NULL;
    if (!op->kept || !can_be_home)
        return NULL;
    if (home == driver)
        return home;
    uint32_t newest = 0;
    enum bond bond = BOND_NONE;
    if (home != NULL) {
        bool draws = driver->ops->sticky && op->kind == SNI_OP_POLL && home->group == driver->group;
        bond = leave_if_loose(file, home, draws ? driver : NULL, &newest);
    }
    if (bond == BOND_NONE)
        return make_home(file, driver, op, newest);
    if (bond == BOND_BUSY || !driver->ops->sticky || op->kind != SNI_OP_POLL)
        return NULL;
    if (sni_driver_is_retired(home))
        return make_home(file, driver, op, leave_home(file));
    return home->group == driver->group ? home : NULL;
}

/* Under the lock of the home. */
static inline int submit_at_home(struct sni_file *file, struct sni_driver *home, struct sni_op *op)
{
    if (is_closed(file))
        return -EBADF;
    file->is_kept |= op->kind == SNI_OP_POLL;
    sni_chain_push(&file->ops, &op->on_file);
    return sni_driver_submit_locked(home, op);
}

/* Under the file's lock. */
static int submit_stray(struct sni_file *file, struct sni_driver *driver, struct sni_op *op)
{
    if (is_closed(file))
        return -EBADF;
    if (driver->ops->sticky && op->kept && op->kind == SNI_OP_POLL) {
        op->kept = false; /* and so no ticket is given for it */
        op->flags = 0;
    }
    op->is_stray = true;
    sni_chain_push(&file->strays, &op->on_file);
    return sni_driver_submit(driver, op);
}

static SNI_NEVER_INLINE int submit_elsewhere(struct sni_file *file, struct sni_driver *driver,
                                             struct sni_op *op)
{
    int rc;
    sni_mutex_lock(&file->lock);
    struct sni_driver *home = is_closed(file) ? NULL : find_home(file, driver, op);
    if (home != NULL) {
        sni_mutex_lock(&home->lock);
        rc = submit_at_home(file, home, op);
        sni_mutex_unlock(&home->lock);
    } else {
        rc = submit_stray(file, driver, op);
    }
    sni_mutex_unlock(&file->lock);
    return rc;
}

int sni_file_submit(struct sni_file *file, struct sni_driver *driver, struct sni_op *op)
{
    op->waiter.interrupt = interrupt;
    op->is_stray = false;
    if (sni_unlikely(home_of(file) != driver || !op->kept))
        return submit_elsewhere(file, driver, op);
    sni_mutex_lock(&driver->lock);
    bool is_home = sni_likely(home_of(file) == driver);
    int rc = 0;
    if (is_home) {
        file->away = 0;
        rc = submit_at_home(file, driver, op);
    }
    sni_mutex_unlock(&driver->lock);
    return is_home ? rc : submit_elsewhere(file, driver, op);
}

void sni_file_unlink_stray(struct sni_file *file, struct sni_op *op)
{
    sni_mutex_lock(&file->lock);
    sni_chain_remove(&op->on_file);
    sni_mutex_unlock(&file->lock);
}

/* A plain thread turns its own driver until its operation is complete. */
static void turn_until_complete(struct sni_driver *driver, struct sni_op *op, sn_deadline until)
{
    while (!sni_wait_is_over(&op->waiter)) {
        sni_driver_wait(driver, until.ns);
        (void)sni_driver_reap_patiently(driver);
        if (until.ns != SN_FOREVER.ns && sni_now_ns() >= until.ns) {
            sni_driver_cancel(op, -ETIMEDOUT);
            until = SN_FOREVER;
        }
    }
}

/* Never inline: its driver would lie in the frame of every fiber that waits, which is to touch one
 * page of its stack and no more. */
static SNI_NEVER_INLINE ptrdiff_t wait_as_thread(struct sni_file *file, struct sni_op *op,
                                                 sn_deadline until)
{
    struct sni_poll poll;
    sni_poll_init(&poll, SNI_POLL_SHARED);
    op->kept = false;
    sni_wait_begin(&op->waiter);
    int rc = 0;
    if (file != NULL)
        rc = sni_file_submit(file, &poll.driver, op);
    else
        (void)sni_driver_submit(&poll.driver, op);
    if (rc >= 0) {
        turn_until_complete(&poll.driver, op, until);
        if (file != NULL)
            sni_file_unlink(file, op);
    }
    sni_driver_finish(&poll.driver);
    return rc < 0 ? rc : op->result;
}

/* Where one waits; both NULL: as a plain thread. */
struct place {
    struct sni_exec *exec;
    struct sni_driver *driver;
};

/* What a fiber lends while it waits: the operation to a driver, its use of the file to nobody. */
struct lent_op {
    struct sni_lent lent;
    struct sni_file *file;
    struct sni_op *op;
};

/* The use of a file by a fiber that never goes on. */
static void end_use(struct sni_file *file)
{
    if (file->is_unborn)
        (void)sni_file_close(sni_record_handle(&file->record));
    sni_file_unuse(file);
}

/* The fiber never goes on. First nobody must find a stray by the file any more. */
static void take_back(struct sni_lent *lent)
{
    struct lent_op *l = sni_container_of(lent, struct lent_op, lent);
    if (l->file != NULL)
        sni_file_unlink(l->file, l->op);
    sni_driver_take_back(l->op);
    if (l->file != NULL)
        end_use(l->file);
}

/* What a fiber that naps lends: its use of the file, to nobody. */
struct lent_use {
    struct sni_lent lent;
    struct sni_file *file;
};

static void take_back_use(struct sni_lent *lent)
{
    end_use(sni_container_of(lent, struct lent_use, lent)->file);
}

const struct sni_wait_kind sni_file_waits = {.take_back = take_back, .is_world = true};
const struct sni_wait_kind sni_nap_waits = {.take_back = take_back_use, .is_world = true};

static ptrdiff_t wait_as_fiber(struct sni_file *file, const struct place *place, struct sni_op *op,
                               sn_deadline until)
{
    struct lent_op lent = {.lent = {take_back, &op->waiter}, .file = file, .op = op};
    op->kept = file != NULL;
    sni_wait_begin_on(&op->waiter, place->exec);
    sni_wait_hold(&op->waiter);
    if (file == NULL) {
        op->waiter.interrupt = interrupt;
        (void)sni_driver_submit(place->driver, op);
    } else {
        int rc = sni_file_submit(file, place->driver, op);
        if (rc < 0)
            return rc;
    }
    sni_wait_lend(&op->waiter, &lent.lent);
    (void)sni_wait_commit_on(&op->waiter, place->exec, until);
    sni_wait_lend(&op->waiter, NULL);
    if (file != NULL)
        sni_file_unlink(file, op);
    return op->result;
}

/* Who calls, and the driver of its executor. */
static int find_place(struct place *place)
{
    *place = (struct place){.exec = sni_exec_current()};
    if (place->exec == NULL)
        return 0;
    if (place->exec->fiber == NULL)
        return sni_misuse(-EDEADLK,
                          "a coroutine waits for a descriptor and would block its worker");
    const struct sni_exec_ops *ops = place->exec->ops;
    return ops->driver != NULL ? ops->driver(place->exec, &place->driver) : -ENOSYS;
}

/* Wait for `events`. Of `op` the descriptor is set; the rest that is not a POLL's is left alone. */
static ptrdiff_t poll_for(struct sni_file *file, struct sni_op *op, const struct place *place,
                          unsigned events, uint32_t *ticket, bool is_guess, sn_deadline until)
{
    op->kind = SNI_OP_POLL;
    op->events = (uint8_t)events;
    op->is_guess = is_guess;
    op->flags = *ticket;
    ptrdiff_t rc = place->driver != NULL ? wait_as_fiber(file, place, op, until)
                                         : wait_as_thread(file, op, until);
    *ticket = op->flags;
    return rc < 0 ? rc : sni_events_told(rc, events);
}

/* What is there now: asked by a driver that nobody else knows. */
static ptrdiff_t ask_now(int fd, unsigned events)
{
    struct sni_poll poll;
    struct sni_op op = {.fd = fd, .kind = SNI_OP_POLL, .events = (uint8_t)events};
    sni_poll_init(&poll, SNI_POLL_ALONE);
    sni_wait_begin_on(&op.waiter, NULL); /* not the fiber: a waker may ask, while that one waits */
    (void)sni_driver_submit(&poll.driver, &op);
    (void)sni_driver_reap_patiently(&poll.driver);
    sni_driver_cancel(&op, -ETIMEDOUT); /* unless it is complete */
    sni_driver_finish(&poll.driver);
    return op.result;
}

/* Was the wait ended from outside, by a cancel or the deadline of a scope? */
static bool was_cut(ptrdiff_t result, sn_deadline until)
{
    return result == -ECANCELED || (result == -ETIMEDOUT && !sni_wait_is_past(until));
}

/* A wait for events has ended with `got`. Cut, it may never have asked: what is there counts. */
static ptrdiff_t unless_there(ptrdiff_t got, int fd, unsigned events, sn_deadline until)
{
    if (sni_likely(!was_cut(got, until)))
        return got;
    ptrdiff_t there = ask_now(fd, events);
    return there == -ETIMEDOUT ? got : there;
}

/* Does the driver do `op`, or is it waited for until the caller can? Bytes are waited for where the
 * file is registered anyway (it has a ticket), and with a driver that has many to wait for. */
static bool does_itself(const struct sni_driver *driver, const struct sni_op *op, uint32_t ticket)
{
    if (driver == NULL || op->is_polled || (driver->ops->native & 1u << op->kind) == 0)
        return false;
    bool receives = op->kind == SNI_OP_RECV || op->kind == SNI_OP_RECVMSG;
    return !receives || (ticket == 0 && !sni_driver_is_crowded(driver));
}

/* One wait for what `op` needs; `is_guess`: it was not tried, see "Dry". Returns its result if the
 * driver did it; 0 and *again: try again; else -errno. */
static ptrdiff_t wait_for(struct sni_file *file, struct sni_op *op, uint32_t ticket, bool is_guess,
                          sn_deadline until, bool *again)
{
    *again = false;
    if (sni_wait_is_past(until))
        return -ETIMEDOUT;
    struct place place;
    int rc = find_place(&place);
    if (rc < 0)
        return rc;
    enum sni_direction way = direction_of[op->kind];
    op->fd = file->fd;
    if (does_itself(place.driver, op, ticket)) {
        ptrdiff_t result = wait_as_fiber(file, &place, op, until);
        sni_file_note_ready(file, way, 0);
        sni_file_tried(file, way, result, op->bytes, 0);
        return result;
    }
    /* A second operation would be two more lines of memory on the stack of each that waits. */
    const uint8_t kind = op->kind;
    const uint32_t flags = op->flags;
    unsigned events = way == SNI_IN ? SNI_READABLE : SNI_WRITABLE;
    ptrdiff_t got = poll_for(file, op, &place, events, &ticket, is_guess, until);
    op->kind = kind;
    op->flags = flags;
    if (got < 0)
        return got;
    sni_file_note_ready(file, way, place.driver != NULL ? ticket : 0);
    *again = true;
    return 0;
}

/* Is there to be a last try of what has waited and ended with `result`? If it was cut and not even
 * tried. And for a connection, if it was cut or too late: of those who wait for one, the kernel has
 * woken this one alone, perhaps, when it was already being cancelled and did not take it. */
static SNI_COLD bool wants_last_try(const struct sni_op *op, bool dry, ptrdiff_t result,
                                    sn_deadline until)
{
    bool has_waited = op->state == SNI_OP_COMPLETE;
    bool accepts = op->kind == SNI_OP_ACCEPT && has_waited;
    return accepts ? result == -ECANCELED || result == -ETIMEDOUT : dry && was_cut(result, until);
}

/* Cut for `why`: what need not wait takes place. */
static SNI_COLD ptrdiff_t try_at_last(struct sni_file *file, struct sni_op *op,
                                      enum sni_direction way, ptrdiff_t why)
{
    ptrdiff_t result = sni_op_try(op, file->fd);
    sni_file_tried(file, way, result, op->bytes, 0);
    return result == -EAGAIN ? why : result;
}

/* It was told again and again of what was not there: others are quicker; or there is an error that
 * nobody fetches, such as a time stamp, of which the kernel tells whoever waits for anything. */
static SNI_COLD int pause_before(struct sni_file *file, sn_deadline until)
{
    sn_deadline soon = sn_deadline_at_(sni_now_ns() + SN_MS(1));
    return sni_file_nap(file, soon.ns < until.ns ? soon : until);
}

ptrdiff_t sni_file_do(struct sni_file *file, struct sni_op *op, sn_deadline until)
{
    enum sni_direction way = direction_of[op->kind];
    unsigned in_vain = 0; /* tries; the first is before any wait */
    for (bool again = true; again;) {
        bool dry;
        uint32_t ticket = sni_file_ticket(file, way, &dry);
        dry = dry && !sni_wait_is_past(until);
        if (is_closed(file))
            return -EBADF;
        ptrdiff_t result = -EAGAIN;
        if (!dry) {
            result = sni_op_try(op, file->fd);
            sni_file_tried(file, way, result, op->bytes, ticket);
        }
        if (result != -EAGAIN)
            return result;
        if (sni_unlikely(!dry && in_vain++ >= VAIN_TRIES && !sni_wait_is_past(until))) {
            int rc = pause_before(file, until);
            if (rc < 0)
                return rc;
        }
        result = wait_for(file, op, ticket, dry, until, &again);
        if (sni_unlikely(result < 0 && wants_last_try(op, dry, result, until)))
            return try_at_last(file, op, way, result);
        if (!again)
            return result;
    }
    return -EAGAIN; /* not reached */
}

void sni_file_end(struct sni_file *file, ptrdiff_t result, sn_deadline until)
{
    sni_file_unuse(file);
    if (result != -ETIMEDOUT)
        sni_spend_many(1, until.ns);
}

/* The rest of move(), for who has to wait. Not inline: its operation would be in every frame. */
static SNI_NEVER_INLINE ptrdiff_t move_patiently(struct sni_file *file, enum sni_op_kind kind,
                                                 void *buf, size_t bytes, sn_deadline until)
{
    struct sni_op op;
    sni_op_init_move(&op, kind, buf, bytes);
    ptrdiff_t result = sni_file_do(file, &op, until);
    sni_file_end(file, result, until);
    return result;
}

/* Receive or send, from the handle to the result. What need not wait needs no operation. */
static SNI_ALWAYS_INLINE ptrdiff_t move(uint64_t handle, uint32_t kinds, enum sni_op_kind kind,
                                        void *buf, size_t bytes, sn_deadline until)
{
    struct sni_file *file;
    int rc = begin_use(handle, kinds, &file);
    if (sni_unlikely(rc < 0))
        return rc;
    enum sni_direction way = kind == SNI_OP_RECV ? SNI_IN : SNI_OUT;
    bool dry;
    uint32_t ticket = sni_file_ticket(file, way, &dry);
    if (dry && until.ns > 0)
        return move_patiently(file, kind, buf, bytes, until);
    ptrdiff_t result = kind == SNI_OP_RECV ? sni_plat_recv(file->fd, buf, bytes, 0)
                                           : sni_plat_send(file->fd, buf, bytes, 0);
    sni_file_tried(file, way, result, bytes, ticket);
    if (sni_unlikely(result == -EAGAIN)) {
        if (until.ns > 0)
            return move_patiently(file, kind, buf, bytes, until);
        sni_file_unuse(file);
        return -ETIMEDOUT;
    }
    sni_file_unuse(file);
    sni_spend_many(1, until.ns); /* as in sni_file_end */
    return result;
}

ptrdiff_t sni_file_recv(uint64_t handle, uint32_t kinds, void *buf, size_t bytes, sn_deadline until)
{
    return move(handle, kinds, SNI_OP_RECV, buf, bytes, until);
}

ptrdiff_t sni_file_send(uint64_t handle, uint32_t kinds, const void *buf, size_t bytes,
                        sn_deadline until)
{
    return move(handle, kinds, SNI_OP_SEND, (void *)(uintptr_t)buf, bytes, until);
}

int sni_file_nap(struct sni_file *file, sn_deadline at)
{
    struct lent_use lent = {.lent = {take_back_use, NULL}, .file = file};
    struct sni_exec *exec = sni_exec_current();
    if (exec != NULL && exec->fiber == NULL)
        return sni_misuse(-EDEADLK, "a coroutine retries and would block its worker");
    struct sni_waiter w;
    sni_wait_begin(&w);
    sni_wait_lend(&w, &lent.lent);
    int rc = sni_wait_commit(&w, at);
    sni_wait_lend(&w, NULL);
    return rc == -ETIMEDOUT && sni_wait_is_past(at) ? 0 : rc;
}

ptrdiff_t sni_file_wait(struct sni_file *file, unsigned events, sn_deadline until)
{
    if (sni_wait_is_past(until))
        return ask_now(file->fd, events);
    struct place place;
    int rc = find_place(&place);
    if (rc < 0)
        return rc;
    struct sni_op op;
    sni_op_init(&op, SNI_OP_POLL);
    op.fd = file->fd;
    uint32_t ticket = sni_file_proof(file, events);
    ptrdiff_t got = poll_for(file, &op, &place, events, &ticket, true, until);
    got = unless_there(got, file->fd, events, until);
    for (int way = 0; got > 0 && way < SNI_DIRECTIONS; way++)
        if ((got & (way == SNI_IN ? SNI_READABLE : SNI_WRITABLE)) != 0)
            sni_file_note_ready(file, (enum sni_direction)way, place.driver != NULL ? ticket : 0);
    return got;
}

ptrdiff_t sni_fd_wait(int fd, unsigned events, sn_deadline until)
{
    if (sni_wait_is_past(until))
        return ask_now(fd, events);
    struct place place;
    int rc = find_place(&place);
    if (rc < 0)
        return rc;
    struct sni_op op;
    sni_op_init(&op, SNI_OP_POLL);
    op.fd = fd;
    uint32_t ticket = 0;
    ptrdiff_t got = poll_for(NULL, &op, &place, events, &ticket, false, until);
    got = unless_there(got, fd, events, until);
    if (got > 0)
        sni_spend(); /* some are always ready */
    return got;
}
