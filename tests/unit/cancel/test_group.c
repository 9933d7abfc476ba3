/* SPDX-License-Identifier: MIT */
/* Groups (R60): children are awaited on every path out of the block; results, policies, limits. */
#include "base/atomic.h"
#include "unit/task/with_runtime.h"

#include <stdlib.h>
#include <string.h>

static int adds_one(void *arg)
{
    sn_yield();
    /* relaxed: the group's end orders it */
    sni_atomic_fetch_add((SNI_ATOMIC(int) *)arg, 1, relaxed);
    return 0;
}

static int gives(void *arg)
{
    return (int)(intptr_t)arg;
}

/* Counts how often it was told to end, and then ends well. */
static int ends_when_told(void *arg)
{
    int rc = sn_sleep(SN_S(3600));
    CHECK(rc == -ECANCELED || rc == -ETIMEDOUT);
    sni_atomic_fetch_add((SNI_ATOMIC(int) *)arg, 1, relaxed); /* relaxed: as above */
    return rc;
}

typedef SNI_ATOMIC(int) counter;

static int load(counter *c)
{
    return sni_atomic_load(c, relaxed); /* relaxed: all who count have ended */
}

TASK_TEST(a_scope_is_left_when_all_children_have_ended)
{
    (void)arg;
    counter n = {0};
    int rc = 1;
    SN_SCOPE(g, .result = &rc) {
        for (int i = 0; i < 100; i++)
            CHECK_EQ(sn_group_spawn(g, adds_one, &n), i);
    }
    CHECK_EQ(load(&n), 100);
    CHECK_EQ(rc, 0);
    return 0;
}

TASK_TEST(results_come_in_the_order_of_the_spawns)
{
    (void)arg;
    int results[8];
    memset(results, 0xff, sizeof(results));
    SN_SCOPE(g, .results = results, .results_max = 7) {
        for (intptr_t i = 0; i < 10; i++)
            CHECK_EQ(sn_group_spawn(g, gives, (void *)(i * i)), (int)i);
    }
    for (int i = 0; i < 7; i++)
        CHECK_EQ(results[i], i * i);
    CHECK_EQ(results[7], -1);
    return 0;
}

/* ---- ways out -------------------------------------------------------------------------------- */

static int returns_from_scope(counter *told)
{
    SN_SCOPE(g) {
        CHECK(sn_group_spawn(g, ends_when_told, told) >= 0);
        CHECK(sn_group_spawn(g, ends_when_told, told) >= 0);
        return 5;
    }
    return 6;
}

TASK_TEST(return_break_goto_and_continue_leave_no_child_behind)
{
    (void)arg;
    counter told = {0};
    CHECK_EQ(returns_from_scope(&told), 5);
    CHECK_EQ(load(&told), 2);
    int rc = 77;
    SN_SCOPE(g, .result = &rc) {
        CHECK(sn_group_spawn(g, ends_when_told, &told) >= 0);
        break;
    }
    CHECK_EQ(load(&told), 3);
    CHECK_EQ(rc, 77); /* left alone */
    SN_SCOPE(outer) {
        SN_SCOPE(inner) {
            CHECK(sn_group_spawn(inner, ends_when_told, &told) >= 0);
            CHECK(sn_group_spawn(outer, ends_when_told, &told) >= 0);
            goto out;
        }
    }
out:
    CHECK_EQ(load(&told), 5);
    SN_SCOPE(g, .result = &rc) {
        CHECK(sn_group_spawn(g, adds_one, &told) >= 0);
        continue;
    }
    CHECK_EQ(load(&told), 6);
    CHECK_EQ(rc, 0);
    return 0;
}

static int panics_in_scope(void *arg)
{
    SN_SCOPE(outer) {
        CHECK(sn_group_spawn(outer, ends_when_told, arg) >= 0);
        SN_SHIELD(SN_FOREVER) {
            SN_SCOPE(inner) {
                CHECK(sn_group_spawn(inner, ends_when_told, arg) >= 0);
                CHECK(sn_group_spawn(inner, ends_when_told, arg) >= 0);
                sn_yield();
                sn_panic("no more");
            }
        }
    }
    return 0;
}

TASK_TEST(a_panic_leaves_no_child_behind)
{
    (void)arg;
    counter told = {0};
    sn_exit how;
    CHECK_EQ(sn_join(sn_spawn(panics_in_scope, &told), &how), -ECONNABORTED);
    CHECK_EQ(load(&told), 3);
    CHECK_EQ(how.kind, SN_EXIT_PANICKED);
    CHECK_STR_EQ(how.message, "no more");
    return 0;
}

static sn_event has_children;

static int waits_for_children(void *arg)
{
    int rc = 0;
    SN_SCOPE(g, .result = &rc) {
        CHECK(sn_group_spawn(g, ends_when_told, arg) >= 0);
        CHECK(sn_group_spawn(g, ends_when_told, arg) >= 0);
        CHECK_EQ(sn_event_set(&has_children), 0);
    }
    CHECK(sn_cancelled());
    return rc;
}

TASK_TEST(a_cancelled_parent_takes_its_children_along)
{
    (void)arg;
    counter told = {0};
    sn_exit how;
    has_children = (sn_event)SN_EVENT_INIT;
    sn_task *t = sn_spawn(waits_for_children, &told);
    CHECK_EQ(sn_event_wait(&has_children, SN_FOREVER), 0);
    CHECK_EQ(sn_cancel(t, &how), -ECANCELED);
    CHECK_EQ(how.kind, SN_EXIT_CANCELED);
    CHECK_EQ(load(&told), 2);
    return 0;
}

/* ---- policies -------------------------------------------------------------------------------- */

static int fails_soon(void *arg)
{
    (void)arg;
    sn_yield();
    return -EIO;
}

static sn_event others_are_there;

static int fails_when_all_are_there(void *arg)
{
    CHECK_EQ(sn_event_wait(&others_are_there, SN_FOREVER), 0);
    return fails_soon(arg);
}

TASK_TEST(the_first_error_cancels_the_others)
{
    (void)arg;
    counter told = {0};
    int rc = 0;
    int results[4];
    sn_group_report report;
    sn_group g;
    others_are_there = (sn_event)SN_EVENT_INIT;
    CHECK_EQ(sn_group_open(&g, .result = &rc, .results = results, .results_max = 4), 0);
    CHECK_EQ(sn_group_spawn(&g, ends_when_told, &told), 0);
    CHECK_EQ(sn_group_spawn(&g, fails_when_all_are_there, NULL, .name = "the one"), 1);
    CHECK_EQ(sn_group_spawn(&g, ends_when_told, &told), 2);
    CHECK_EQ(sn_event_set(&others_are_there), 0);
    int late = sn_group_spawn(&g, gives, (void *)9);
    CHECK(late == 3 || late == -ECANCELED); /* another worker may have been fast */
    CHECK_EQ(sn_group_join(&g, SN_FOREVER), -EIO);
    CHECK_EQ(sn_group_spawn(&g, gives, NULL), -ECANCELED);
    sn_group_get_report(&g, &report);
    CHECK_EQ(report.error, -EIO);
    CHECK_EQ(report.failed, 1);
    CHECK_EQ(report.ended, report.spawned);
    CHECK(report.cancelled <= 2);
    CHECK_STR_EQ(report.failed_name, "the one");
    CHECK(strstr(report.failed_at, "test_group.c:") != NULL);
    CHECK(sn_cancelled());
    CHECK_STR_EQ(sn_cancel_reason(), "another task of the group failed");
    CHECK_EQ(sn_group_close(&g), -EIO);
    CHECK(!sn_cancelled());
    CHECK_EQ(rc, -EIO);
    CHECK_EQ(results[1], -EIO);
    CHECK(results[0] == -ECANCELED && results[2] == -ECANCELED);
    CHECK_EQ(load(&told), 2);
    return 0;
}

static int panics_soon(void *arg)
{
    (void)arg;
    sn_yield();
    sn_panic("child %d", 3);
}

TASK_TEST(a_group_that_collects_lets_the_others_end)
{
    (void)arg;
    counter n = {0};
    int results[3] = {9, 9, 9};
    sn_group_report report;
    sn_group g;
    CHECK_EQ(sn_group_open(&g, .policy = SN_COLLECT_ALL, .results = results, .results_max = 3), 0);
    CHECK_EQ(sn_group_spawn(&g, panics_soon, NULL), 0);
    CHECK_EQ(sn_group_spawn(&g, adds_one, &n), 1);
    CHECK_EQ(sn_group_spawn(&g, fails_soon, NULL), 2);
    int first = sn_group_join(&g, SN_FOREVER);
    CHECK(first == -ECONNABORTED || first == -EIO);
    sn_group_get_report(&g, &report);
    CHECK_EQ(report.failed, 2);
    CHECK_EQ(report.cancelled, 0);
    CHECK_STR_EQ(report.message, "child 3");
    CHECK_EQ(sn_group_close(&g), first);
    CHECK_EQ(results[0], -ECONNABORTED);
    CHECK_EQ(results[1], 0);
    CHECK_EQ(results[2], -EIO);
    return 0;
}

TASK_TEST(a_cancelled_group_ends_well_and_what_is_around_it_goes_on)
{
    (void)arg;
    counter told = {0};
    int rc = 1;
    SN_SCOPE(g, .result = &rc) {
        CHECK(sn_group_spawn(g, ends_when_told, &told) >= 0);
        sn_group_cancel(g, "enough");
        sn_group_cancel(g, "not heard");
        CHECK_EQ(sn_sleep(SN_S(3600)), -ECANCELED);
        CHECK_EQ(sn_sleep(SN_S(3600)), -ECANCELED); /* it stays so */
        CHECK_STR_EQ(sn_cancel_reason(), "enough");
    }
    CHECK_EQ(rc, 0);
    CHECK(!sn_cancelled());
    CHECK(sn_cancel_reason() == NULL);
    CHECK_EQ(sn_sleep(1), 0);
    CHECK_EQ(load(&told), 1);
    return 0;
}

/* ---- limits, background, siblings ------------------------------------------------------------ */

static struct {
    counter now, most;
} crowd;

static int counts_the_crowd(void *arg)
{
    (void)arg;
    int now = sni_atomic_fetch_add(&crowd.now, 1, seq_cst) + 1; /* seq_cst, all: simplest */
    int most = sni_atomic_load(&crowd.most, seq_cst);
    while (now > most && !sni_atomic_cas(&crowd.most, &most, now, seq_cst, seq_cst)) {
    }
    for (int i = 0; i < 3; i++)
        sn_yield();
    sni_atomic_fetch_sub(&crowd.now, 1, seq_cst);
    return 0;
}

TASK_TEST(no_more_children_live_than_the_limit_says)
{
    (void)arg;
    memset(&crowd, 0, sizeof(crowd));
    SN_SCOPE(g, .limit = 3) {
        for (int i = 0; i < 60; i++)
            CHECK_EQ(sn_group_spawn(g, counts_the_crowd, NULL), i);
    }
    CHECK(load(&crowd.most) <= 3);
    CHECK_EQ(load(&crowd.now), 0);
    return 0;
}

static int spawns_at_the_limit(void *arg)
{
    sn_group *g = arg;
    CHECK_EQ(sn_group_spawn(g, gives, NULL), -ECANCELED);
    return -ECANCELED;
}

TASK_TEST(who_waits_at_the_limit_is_cancelled_with_the_group)
{
    (void)arg;
    int rc = 1;
    SN_SCOPE(g, .limit = 1, .result = &rc) {
        CHECK_EQ(sn_group_spawn(g, spawns_at_the_limit, g), 0);
        for (int i = 0; i < 10; i++)
            sn_yield();
        sn_group_cancel(g, NULL);
        CHECK_EQ(sn_group_spawn(g, gives, NULL), -ECANCELED);
    }
    CHECK_EQ(rc, 0);
    return 0;
}

static int spawns_siblings(void *arg)
{
    sn_group *g = ((void **)arg)[0];
    counter *n = ((void **)arg)[1];
    for (int i = 0; i < 5; i++)
        CHECK(sn_group_spawn(g, adds_one, n) >= 0);
    return 0;
}

TASK_TEST(a_child_spawns_into_the_scope_of_its_parent)
{
    (void)arg;
    counter n = {0};
    SN_SCOPE(g) {
        void *both[] = {g, &n};
        CHECK_EQ(sn_group_spawn(g, spawns_siblings, both), 0);
        CHECK(sn_group_spawn(g, spawns_siblings, both) >= 1); /* the first may have begun */
        CHECK_EQ(sn_group_join(g, SN_FOREVER), 0);
        CHECK_EQ(load(&n), 10);
        CHECK(sn_group_spawn(g, adds_one, &n) >= 0); /* it is open still */
    }
    CHECK_EQ(load(&n), 11);
    return 0;
}

TASK_TEST(children_in_the_background_are_cancelled_at_the_end)
{
    (void)arg;
    counter told = {0}, n = {0};
    int rc = 1;
    SN_SCOPE(g, .result = &rc, .limit = 1) {
        CHECK_EQ(sn_group_spawn(g, ends_when_told, &told, .background = true), 0);
        CHECK_EQ(sn_group_spawn(g, ends_when_told, &told, .background = true), 1);
        CHECK_EQ(sn_group_spawn(g, adds_one, &n), 2);
        CHECK_EQ(sn_group_join(g, SN_FOREVER), 0);
        CHECK_EQ(load(&told), 0);
        CHECK_EQ(load(&n), 1);
    }
    CHECK_EQ(load(&told), 2);
    CHECK_EQ(rc, 0);
    return 0;
}

TASK_TEST(who_is_tired_of_waiting_for_a_group_may_go_on)
{
    (void)arg;
    counter told = {0};
    int rc = 1;
    sn_group_report report;
    SN_SCOPE(g, .result = &rc, .report = &report) {
        CHECK_EQ(sn_group_spawn(g, ends_when_told, &told), 0);
        CHECK_EQ(sn_group_join(g, SN_NOWAIT), -ETIMEDOUT);
        CHECK_EQ(sn_group_join(g, sn_after(SN_US(50))), -ETIMEDOUT);
        SN_DEADLINE(sn_after(SN_US(50))) {
            CHECK_EQ(sn_group_join(g, SN_FOREVER), -ETIMEDOUT);
            CHECK_EQ(sn_group_join(g, SN_FOREVER), -ETIMEDOUT);
        }
        CHECK_EQ(load(&told), 0);
        sn_group_cancel(g, "tired");
        CHECK_EQ(sn_group_join(g, SN_FOREVER), 0);
        CHECK_EQ(load(&told), 1);
    }
    CHECK_EQ(rc, 0);
    CHECK_EQ(report.spawned, 1);
    CHECK_EQ(report.cancelled, 1);
    CHECK_EQ(report.winner, -1);
    return 0;
}

static int cancels_its_group(void *arg)
{
    CHECK(sn_group_current() == arg);
    CHECK(sn_group_spawn(sn_group_current(), gives, NULL) >= 0);
    sn_group_cancel(sn_group_current(), "from inside");
    return 0;
}

TASK_TEST(a_child_knows_its_group)
{
    CHECK(sn_group_current() == arg); /* none */
    SN_SCOPE(g) {
        CHECK(sn_group_current() == NULL); /* it is in there, but not one of the children */
        CHECK_EQ(sn_group_spawn(g, cancels_its_group, g), 0);
        CHECK_EQ(sn_sleep(SN_S(3600)), -ECANCELED);
        CHECK_STR_EQ(sn_cancel_reason(), "from inside");
    }
    return 0;
}

TASK_TEST(the_first_that_ends_well_cancels_the_others)
{
    (void)arg;
    counter told = {0};
    int rc = 1, results[4] = {9, 9, 9, 9};
    sn_group_report report;
    SN_SCOPE(g, .policy = SN_FIRST_SUCCESS, .result = &rc, .report = &report, .results = results,
             .results_max = 4) {
        CHECK_EQ(sn_group_spawn(g, ends_when_told, &told), 0);
        CHECK_EQ(sn_group_spawn(g, fails_soon, NULL), 1);
        CHECK_EQ(sn_group_join(g, sn_after(SN_MS(1))), -ETIMEDOUT);
        CHECK_EQ(sn_group_spawn(g, gives, (void *)7), 2);
    }
    CHECK_EQ(rc, 0);
    CHECK_EQ(report.winner, 2);
    CHECK_EQ(report.failed, 1);
    CHECK(results[0] == -ECANCELED && results[1] == -EIO && results[2] == 7);
    CHECK_EQ(load(&told), 1);
    SN_SCOPE(g, .policy = SN_FIRST_SUCCESS, .result = &rc) {
        CHECK_EQ(sn_group_spawn(g, fails_soon, NULL), 0);
        CHECK_EQ(sn_group_spawn(g, fails_soon, NULL), 1);
    }
    CHECK_EQ(rc, -EIO);
    return 0;
}

/* ---- coroutines as children ------------------------------------------------------------------ */

typedef struct naps {
    sn_coro coro;
    sn_sleep_state nap;
    int64_t ns;
    counter *finals;
} naps;

SN_CORO(naps, self)
{
    SN_BEGIN(self);
    SN_AWAIT(sn_sleep_op(&self->nap, sn_after(self->ns)));
    SN_FINALLY();
    sni_atomic_fetch_add(self->finals, 1, relaxed); /* relaxed: as above */
    SN_END();
}

TASK_TEST(coroutines_are_children_like_fibers)
{
    (void)arg;
    counter finals = {0};
    int results[3] = {9, 9, 9};
    int rc = 1;
    SN_SCOPE(g, .result = &rc, .results = results, .results_max = 3) {
        naps quick = {.ns = 1, .finals = &finals}, slow = {.ns = SN_S(3600), .finals = &finals};
        CHECK_EQ(sn_group_spawn_coro(g, naps, &quick), 0);
        CHECK_EQ(sn_group_join(g, SN_FOREVER), 0);
        CHECK_EQ(sn_group_spawn_coro(g, naps, &slow), 1);
        CHECK_EQ(sn_group_spawn_coro(g, naps, &slow, .background = true), 2);
        sn_yield();
        sn_group_cancel(g, NULL);
    }
    CHECK_EQ(rc, 0);
    CHECK_EQ(results[0], 0);
    CHECK_EQ(results[1], -ECANCELED);
    CHECK_EQ(results[2], -ECANCELED);
    CHECK(load(&finals) >= 1);
    return 0;
}

/* ---- refusals -------------------------------------------------------------------------------- */

TASK_TEST(what_cannot_be_spawned_fails_the_group)
{
    (void)arg;
    int rc = 0, error = 1;
    SN_SCOPE(g, .result = &rc) {
        CHECK_EQ(sn_group_spawn(g, NULL, NULL, .error = &error), -EINVAL);
        CHECK_EQ(error, -EINVAL);
        CHECK_EQ(sn_sleep(SN_S(3600)), -ECANCELED);
    }
    CHECK_EQ(rc, -EINVAL);
    SN_SCOPE(g, .result = &rc, .policy = SN_COLLECT_ALL, .limit = 1) {
        CHECK_EQ(sn_group_spawn(g, NULL, NULL), -EINVAL);
        CHECK_EQ(sn_group_spawn(g, gives, NULL), 0); /* the place is free */
        CHECK_EQ(sn_group_spawn(g, gives, NULL, .detached = true), -EINVAL);
    }
    CHECK_EQ(rc, -EINVAL);
    return 0;
}

#ifndef SINEW_DEBUG
TEST(a_group_outside_a_task_is_refused)
{
    int rc = 0;
    sn_group g;
    CHECK_EQ(sn_group_open(&g), -EPERM);
    CHECK_EQ(sn_group_close(&g), -EINVAL);
    SN_SCOPE(s, .result = &rc) {
        FAIL("the block is skipped");
    }
    CHECK_EQ(rc, -EPERM);
}
#endif

/* ---- trees ----------------------------------------------------------------------------------- */

struct tree {
    int depth;
    counter *leaves, *told;
};

static int grows(void *arg)
{
    struct tree *tree = arg;
    if (tree->depth == 0) {
        sni_atomic_fetch_add(tree->leaves, 1, relaxed); /* relaxed, both: as above */
        int rc = sn_sleep(SN_S(3600));
        sni_atomic_fetch_add(tree->told, 1, relaxed);
        return rc;
    }
    struct tree child = {tree->depth - 1, tree->leaves, tree->told};
    int rc = 0;
    SN_SCOPE(g, .result = &rc) {
        for (int i = 0; i < 3; i++)
            (void)sn_group_spawn(g, grows, &child);
    }
    return rc;
}

TASK_TEST(a_cancel_reaches_a_whole_tree)
{
    (void)arg;
    counter leaves = {0}, told = {0};
    struct tree root = {4, &leaves, &told};
    int results[1];
    SN_SCOPE(g, .results = results, .results_max = 1) {
        CHECK_EQ(sn_group_spawn(g, grows, &root), 0);
        while (load(&leaves) < 81)
            sn_yield();
        sn_group_cancel(g, "the tree is felled");
    }
    CHECK_EQ(load(&told), 81);
    CHECK_EQ(results[0], -ECANCELED);
    return 0;
}

/* A chain of tasks, each in a scope of the one before: deeper than a stack of calls would allow. */
static int chains(void *arg)
{
    struct tree *tree = arg;
    struct tree child = {tree->depth - 1, tree->leaves, tree->told};
    int rc = 0;
    SN_SCOPE(g, .result = &rc) {
        if (tree->depth > 0) {
            (void)sn_group_spawn(g, chains, &child, .stack_bytes = 16384);
        } else {
            sni_atomic_fetch_add(tree->leaves, 1, relaxed); /* relaxed: as above */
            CHECK_EQ(sn_sleep(SN_S(3600)), -ECANCELED);
        }
    }
    return rc;
}

static int cuts_a_chain(void *arg)
{
    counter leaves = {0};
    struct tree root = {*(int *)arg, &leaves, NULL};
    int results[1];
    SN_SCOPE(g, .results = results, .results_max = 1) {
        CHECK_EQ(sn_group_spawn(g, chains, &root), 0);
        while (load(&leaves) == 0)
            sn_yield();
        sn_group_cancel(g, NULL);
    }
    return results[0];
}

TEST(a_cancel_reaches_the_end_of_a_very_long_chain, .limit_s = 60)
{
    int depth = 3000;
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 2}, cuts_a_chain, &depth), -ECANCELED);
}
