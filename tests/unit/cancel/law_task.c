/* SPDX-License-Identifier: MIT */
/* law_task.c - the rows of tasks and of time. See law.h. */
#include "unit/cancel/law.h"

#include <stdatomic.h>

static struct {
    sn_task *task;
    sn_event end;
    atomic_bool has_begun, need_not_wait;
    atomic_int ended; /* functions of sn_timeout */
    sn_interval interval;
    int64_t next_ns;
    sn_exit how;
} at;

static void must(int rc)
{
    CHECK_EQ(rc, 0);
}

static int64_t ns_until(sn_deadline until)
{
    return until.ns == SN_FOREVER.ns ? SN_S(3600) : until.ns - sn_now();
}

/* ---- a task that does not end ---------------------------------------------------------------- */

static int end_at_last(void *arg)
{
    (void)arg;
    atomic_store(&at.has_begun, true); /* a join does not run it itself, see sn_runtime_options */
    return sn_event_wait(&at.end, SN_FOREVER) < 0 ? -EIO : 9;
}

static void open_task(void)
{
    at.end = (sn_event)SN_EVENT_INIT;
    atomic_store(&at.has_begun, false);
    at.task = sn_spawn(end_at_last, NULL);
    while (!atomic_load(&at.has_begun))
        sn_yield();
}

static void let_end(void)
{
    must(sn_event_set(&at.end));
}

static void await_end(void)
{
    sn_case ended = sn_case_join(at.task);
    CHECK_EQ(sn_select(&ended, 1, 0, SN_FOREVER), 0);
    must(ended.result);
}

static void close_task(bool let, bool took)
{
    if (!let)
        must(sn_event_set(&at.end));
    if (!took)
        CHECK_EQ(sn_join(at.task, NULL), 9); /* the handle is good as before */
    must(sn_event_finish(&at.end));
}

static const struct law_place alive = {
    .open = open_task, .let = let_end, .close = close_task, .settle = await_end};

static ptrdiff_t join(sn_deadline until)
{
    (void)until;
    int rc = sn_join(at.task, &at.how);
    CHECK_EQ(at.how.kind, rc == 9 ? SN_EXIT_RETURNED : SN_EXIT_NONE);
    return rc;
}

static ptrdiff_t join_only(sn_deadline until)
{
    (void)until;
    return sn_join(at.task, NULL);
}

static sn_future *join_op(union law_memory *m)
{
    return sn_join_op(&m->join, at.task, NULL);
}

/* It stays the master's to join, whether the select saw the end or not. */
static ptrdiff_t select_join(sn_deadline until)
{
    sn_case ended = sn_case_join(at.task);
    int rc = sn_select(&ended, 1, 0, until);
    if (rc == 0)
        must(ended.result);
    return rc;
}

static void close_seen(bool let, bool took)
{
    (void)took;
    close_task(let, false);
}

static const struct law_place seen = {
    .open = open_task, .let = let_end, .close = close_seen, .settle = await_end};

/* ---- a task that is slow to go, although it is cancelled ------------------------------------- */

static int go_slowly(void *arg)
{
    (void)arg;
    atomic_store(&at.has_begun, true);
    while (!sn_cancelled())
        sn_yield();
    for (int i = 0; i < 5; i++)
        sn_yield();
    atomic_fetch_add(&at.ended, 1);
    return 9;
}

static void open_slow(void)
{
    atomic_store(&at.has_begun, false);
    atomic_store(&at.ended, 0);
    at.task = sn_spawn(go_slowly, NULL);
    while (!atomic_load(&at.has_begun))
        sn_yield();
}

static void close_slow(bool let, bool took)
{
    (void)let;
    CHECK(took);
    CHECK_EQ(atomic_load(&at.ended), 1); /* when a cancel returns, the task is gone */
}

static const struct law_place slow = {.open = open_slow, .close = close_slow};

static ptrdiff_t cancel(sn_deadline until)
{
    (void)until;
    return sn_cancel(at.task, &at.how);
}

/* ---- nothing but a turn ---------------------------------------------------------------------- */

static void open_nothing(void)
{
}

static void close_nothing(bool let, bool took)
{
    (void)let, (void)took;
}

static const struct law_place nowhere = {.open = open_nothing, .close = close_nothing};

static ptrdiff_t yield(sn_deadline until)
{
    (void)until;
    sn_yield();
    return 0;
}

/* ---- time ------------------------------------------------------------------------------------ */

static ptrdiff_t sleep_for(sn_deadline until)
{
    return sn_sleep(ns_until(until));
}

static ptrdiff_t sleep_until(sn_deadline until)
{
    return sn_sleep_until(until);
}

/* A future has the deadline inside; it is far away, and the row's own cannot be told to it. */
static sn_future *sleep_op(union law_memory *m)
{
    return sn_sleep_op(&m->sleep, sn_after(SN_S(3600)));
}

/* An interval whose next tick is far away, or has come. It has one owner, so that nobody else can
 * make it come while that one waits. */
static void open_interval(void)
{
    must(sn_interval_init(&at.interval, SN_S(3600), SN_MISSED_SKIP));
    at.next_ns = at.interval.next_ns_;
}

static void let_nothing(void)
{
}

static void set_back(void)
{
    at.interval.next_ns_ -= SN_S(3600);
}

static void close_interval(bool let, bool took)
{
    (void)let, (void)took;
    CHECK_EQ(at.interval.next_ns_, at.next_ns); /* no tick is lost, none is given twice */
}

static const struct law_place ticks = {
    .open = open_interval, .let = let_nothing, .close = close_interval, .settle = set_back};

static ptrdiff_t wait_interval(sn_deadline until)
{
    (void)until;
    return sn_interval_wait(&at.interval);
}

/* ---- a function that is given some time ------------------------------------------------------ */

static int take_long(void *arg)
{
    (void)arg;
    int rc = atomic_load(&at.need_not_wait) ? 9 : sn_event_wait(&at.end, SN_FOREVER);
    atomic_fetch_add(&at.ended, 1);
    return rc == 0 ? 9 : rc;
}

static void open_timeout(void)
{
    at.end = (sn_event)SN_EVENT_INIT;
    atomic_store(&at.ended, 0);
    atomic_store(&at.need_not_wait, false);
}

static void let_timeout(void)
{
    atomic_store(&at.need_not_wait, true);
    must(sn_event_set(&at.end));
}

static void close_timeout(bool let, bool took)
{
    (void)let, (void)took;
    must(sn_event_finish(&at.end)); /* nobody is left there */
}

static const struct law_place takes_long = {
    .open = open_timeout, .let = let_timeout, .close = close_timeout};

/* The function is run in any case, cancelled or not, and has ended when the call returns. */
static ptrdiff_t timeout(sn_deadline until)
{
    int before = atomic_load(&at.ended);
    int rc = sn_timeout(take_long, NULL, ns_until(until));
    CHECK_EQ(atomic_load(&at.ended), before + 1);
    return rc;
}

/* ---- a group, by who opened it --------------------------------------------------------------- */

static const struct law_place in_group = {
    .open = open_timeout, .let = let_timeout, .close = close_timeout};

/* Its child waits, and ends when it is cancelled with whoever waits for it. */
static ptrdiff_t wait_for_group(bool joins)
{
    sn_group g;
    must(sn_group_open(&g));
    int spawned = sn_group_spawn(&g, take_long, NULL);
    int rc = joins ? sn_group_join(&g, SN_FOREVER) : sn_group_close(&g);
    CHECK_EQ(atomic_load(&at.ended), spawned == 0); /* none is left, whatever has happened */
    int closed = joins ? sn_group_close(&g) : rc;
    CHECK(closed == rc || rc == 0); /* it may be cancelled in between */
    atomic_store(&at.ended, 0);
    return rc == 0 ? 9 : rc;
}

static ptrdiff_t group_close(sn_deadline until)
{
    (void)until;
    return wait_for_group(false);
}

static ptrdiff_t group_join(sn_deadline until)
{
    (void)until;
    return wait_for_group(true);
}

/* ---- the rows -------------------------------------------------------------------------------- */

static const struct law_row rows[] = {
    LAW(sn_join, .place = &alive, .plain = join, .takes = 9,
        .flags = LAW_NO_DEADLINE | LAW_NEEDS_TASKS),
    LAW(sn_join, .variant = "whatever it was", .place = &alive, .plain = join_only, .takes = 9,
        .flags = LAW_NO_DEADLINE | LAW_NEEDS_TASKS),
    LAW(sn_join_op, .place = &alive, .op = join_op, .takes = 9, .flags = LAW_NEEDS_TASKS),
    LAW(sn_select, .variant = "join", .place = &seen, .plain = select_join,
        .flags = LAW_NEEDS_TASKS),
    LAW(sn_cancel, .place = &slow, .plain = cancel, .takes = 9,
        .flags = LAW_NO_DEADLINE | LAW_NEEDS_TASKS | LAW_UNCANCELLED),
    LAW(sn_yield, .place = &nowhere, .plain = yield, .flags = LAW_NO_DEADLINE | LAW_UNCANCELLED),
    LAW(sn_sleep, .place = &nowhere, .plain = sleep_for, .flags = LAW_OWN_DEADLINE),
    LAW(sn_sleep_until, .place = &nowhere, .plain = sleep_until, .flags = LAW_OWN_DEADLINE),
    LAW(sn_sleep_op, .place = &nowhere, .op = sleep_op, .flags = LAW_NEEDS_RUNTIME),
    LAW(sn_interval_wait, .place = &ticks, .plain = wait_interval, .flags = LAW_NO_DEADLINE),
    LAW(sn_timeout, .place = &takes_long, .plain = timeout, .takes = 9, .flags = LAW_NEEDS_TASKS),
    LAW(sn_group_close, .place = &in_group, .plain = group_close, .takes = 9,
        .flags = LAW_NO_DEADLINE | LAW_NEEDS_TASKS | LAW_DOUBTFUL),
    LAW(sn_group_join, .place = &in_group, .plain = group_join, .takes = 9,
        .flags = LAW_NO_DEADLINE | LAW_NEEDS_TASKS | LAW_DOUBTFUL),
};

const struct law_rows law_of_tasks = {rows, sizeof(rows) / sizeof(rows[0])};
