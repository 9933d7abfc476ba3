/* SPDX-License-Identifier: MIT */
/* mock.c - completions by script.
 *
 * What is pending stands in an array in the order of submission, with the step it follows. A reap
 * goes once through it, so completions come in that order. An operation that was told to be over
 * soon counts its reaps down; while one does, `wait` does not sleep, since something can be reaped
 * by going on.
 *
 * Everything that a kernel may do to an operation can be put into a step, and nothing here is
 * left to chance: the same calls give the same log. */
#include "io/mock/mock.h"

#include "base/assert.h"
#include "plat/thread.h"

#include <sinew/errno.h>

#include <stdlib.h>

struct sni_mock_entry {
    struct sni_op *op;
    struct sni_mock_step step; /* of its own: a cancellation rewrites it */
    uint32_t number;
};

static const struct sni_mock_step after_the_script[] = {
    {.when = SNI_MOCK_READY},
    {.when = SNI_MOCK_NEVER},
};

static struct sni_mock *mock_of(struct sni_driver *driver)
{
    return sni_container_of(driver, struct sni_mock, driver);
}

static void note(struct sni_mock *m, struct sni_mock_call call)
{
    if (m->calls < SNI_MOCK_LOG)
        m->log[m->calls] = call;
    m->calls++;
}

static void note_op(struct sni_mock *m, enum sni_mock_called what, const struct sni_op *op,
                    uint32_t number, ptrdiff_t result)
{
    note(m, (struct sni_mock_call){.what = (uint8_t)what,
                                   .kind = op->kind,
                                   .fd = op->fd,
                                   .number = number,
                                   .result = result});
}

static void complete(struct sni_mock *m, struct sni_op *op, uint32_t number, ptrdiff_t result)
{
    note_op(m, SNI_MOCK_COMPLETE, op, number, result);
    bool thread = op->waiter.fiber == NULL;
    sni_op_complete(op, result);
    if (thread)
        sni_bell_ring(&m->bell);
}

/* The step of the next operation. */
static struct sni_mock_step take_step(struct sni_mock *m, const struct sni_op *op)
{
    if (m->step == m->steps)
        return after_the_script[op->kind == SNI_OP_POLL ? 0 : 1];
    const struct sni_mock_step *step = &m->script[m->step];
    if (++m->done >= step->times) {
        m->done = 0;
        m->step++;
    }
    return *step;
}

/* The entry is over at this reap, with *result. */
static bool is_over(struct sni_mock *m, struct sni_mock_entry *entry, ptrdiff_t *result)
{
    const struct sni_op *op = entry->op;
    switch (entry->step.when) {
    case SNI_MOCK_REAP:
        *result = entry->step.result;
        return --entry->step.reaps == 0;
    case SNI_MOCK_READY:
        *result = op->fd >= 0 && op->fd < SNI_MOCK_FDS ? m->ready[op->fd] & op->events : -EBADF;
        return *result != 0;
    default:
        return false;
    }
}

/* A reap would bring it nearer to its end. */
static bool is_near(struct sni_mock *m, struct sni_mock_entry entry)
{
    ptrdiff_t result;
    return entry.step.when == SNI_MOCK_REAP || is_over(m, &entry, &result);
}

static bool make_room(struct sni_mock *m)
{
    if (m->count < m->room)
        return true;
    size_t room = m->room == 0 ? 16 : 2 * m->room;
    struct sni_mock_entry *entries = realloc(m->entries, room * sizeof(*entries));
    if (entries == NULL)
        return false;
    m->entries = entries;
    m->room = room;
    return true;
}

static void mock_submit(struct sni_driver *driver, struct sni_op *op)
{
    struct sni_mock *m = mock_of(driver);
    uint32_t number = m->submitted++;
    note_op(m, SNI_MOCK_SUBMIT, op, number, 0);
    struct sni_mock_step step = take_step(m, op);
    if (step.when == SNI_MOCK_NOW) {
        complete(m, op, number, step.result);
    } else if (!make_room(m)) {
        complete(m, op, number, -ENOMEM);
    } else {
        m->entries[m->count] = (struct sni_mock_entry){op, step, number};
        if (is_near(m, m->entries[m->count++]))
            sni_bell_ring(&m->bell); /* the owner may sleep */
    }
}

static struct sni_mock_entry *find(struct sni_mock *m, const struct sni_op *op)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->entries[i].op == op)
            return &m->entries[i];
    }
    sni_assert(false, "a driver was told to cancel an operation that it has not");
    return NULL;
}

static void take_out(struct sni_mock *m, struct sni_mock_entry *entry)
{
    m->count--;
    for (size_t i = (size_t)(entry - m->entries); i < m->count; i++)
        m->entries[i] = m->entries[i + 1];
}

static void mock_cancel(struct sni_driver *driver, struct sni_op *op)
{
    struct sni_mock *m = mock_of(driver);
    struct sni_mock_entry *entry = find(m, op);
    uint32_t number = entry->number;
    note_op(m, SNI_MOCK_CANCEL, op, number, 0);
    switch (entry->step.on_cancel) {
    case SNI_MOCK_CANCELED:
        take_out(m, entry);
        complete(m, op, number, -ECANCELED);
        break;
    case SNI_MOCK_CANCELED_SOON:
        entry->step =
            (struct sni_mock_step){.when = SNI_MOCK_REAP, .reaps = 1, .result = -ECANCELED};
        sni_bell_ring(&m->bell);
        break;
    case SNI_MOCK_SUCCEEDS:
        entry->step.when = SNI_MOCK_REAP;
        entry->step.reaps = 1;
        sni_bell_ring(&m->bell);
        break;
    default:
        break;
    }
}

static uint32_t mock_forget(struct sni_driver *driver, int fd)
{
    struct sni_mock *m = mock_of(driver);
    note(m, (struct sni_mock_call){.what = SNI_MOCK_FORGET, .fd = fd});
    for (size_t i = 0; i < m->count; i++)
        sni_assert(m->entries[i].op->fd != fd, "a descriptor is closed that is waited for");
    if (fd >= 0 && fd < SNI_MOCK_FDS)
        m->ready[fd] = 0;
    return 0;
}

static void mock_flush(struct sni_driver *driver)
{
    note(mock_of(driver), (struct sni_mock_call){.what = SNI_MOCK_FLUSH});
}

static unsigned mock_reap(struct sni_driver *driver)
{
    struct sni_mock *m = mock_of(driver);
    m->reaps++;
    size_t kept = 0;
    for (size_t i = 0; i < m->count; i++) {
        struct sni_mock_entry entry = m->entries[i];
        ptrdiff_t result;
        if (is_over(m, &entry, &result))
            complete(m, entry.op, entry.number, result);
        else
            m->entries[kept++] = entry;
    }
    unsigned n = (unsigned)(m->count - kept);
    m->count = kept;
    return n;
}

static bool is_something_near(struct sni_mock *m)
{
    for (size_t i = 0; i < m->count; i++) {
        if (is_near(m, m->entries[i]))
            return true;
    }
    return false;
}

static void mock_wait(struct sni_driver *driver, int64_t until_ns)
{
    struct sni_mock *m = mock_of(driver);
    sni_mutex_lock(&driver->lock);
    m->waits++;
    bool near = is_something_near(m);
    sni_mutex_unlock(&driver->lock);
    /* What comes near from here on rings. */
    if (near)
        sni_bell_pass(&m->bell);
    else
        sni_bell_sleep(&m->bell, until_ns);
}

static void mock_wake(struct sni_driver *driver)
{
    struct sni_mock *m = mock_of(driver);
    sni_atomic_fetch_add(&m->wakes, 1, relaxed); /* relaxed: a number for the test to look at */
    sni_bell_ring(&m->bell);
}

static void mock_finish(struct sni_driver *driver)
{
    struct sni_mock *m = mock_of(driver);
    /* Whoever completed the last operation may still hold the lock, which ends with us. */
    sni_mutex_lock(&driver->lock);
    sni_mutex_unlock(&driver->lock);
    free(m->entries);
    sni_bell_finish(&m->bell);
}

static const struct sni_driver_ops mock_ops = {
    .name = "mock",
    .native = (1u << SNI_OP_KINDS) - 1,
    .sticky = false,
    .submit = mock_submit,
    .cancel = mock_cancel,
    .forget = mock_forget,
    .flush = mock_flush,
    .reap = mock_reap,
    .wait = mock_wait,
    .wake = mock_wake,
    .finish = mock_finish,
};

void sni_mock_init(struct sni_mock *mock, const struct sni_mock_step *script, size_t steps)
{
    *mock = (struct sni_mock){.script = script, .steps = steps};
    sni_driver_init(&mock->driver, &mock_ops);
    sni_bell_init(&mock->bell);
}

void sni_mock_set_ready(struct sni_mock *mock, int fd, unsigned events)
{
    sni_assert(fd >= 0 && fd < SNI_MOCK_FDS, "a number that a mock driver has no room for");
    sni_mutex_lock(&mock->driver.lock);
    mock->ready[fd] = (uint8_t)events;
    sni_mutex_unlock(&mock->driver.lock);
    sni_bell_ring(&mock->bell);
}

unsigned sni_mock_count(struct sni_mock *mock, enum sni_mock_called what)
{
    sni_mutex_lock(&mock->driver.lock);
    unsigned kept = mock->calls < SNI_MOCK_LOG ? mock->calls : SNI_MOCK_LOG;
    unsigned n = 0;
    for (unsigned i = 0; i < kept; i++)
        n += mock->log[i].what == what;
    sni_mutex_unlock(&mock->driver.lock);
    return n;
}
