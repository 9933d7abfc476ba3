/* SPDX-License-Identifier: MIT */
/* Scopes without children: deadlines around blocks, shields, and how they nest (R61, R63). What is
 * asked here is what the tests of trio ask of its cancel scopes, in the words of C. */
#include "base/atomic.h"
#include "unit/task/with_runtime.h"
#include "wait/wait.h"

#include <string.h>

/* So much later than any test ends. */
#define NEVER (sn_after(SN_S(3600)))

#define WAITS_WITH(rc)                              \
    do {                                            \
        CHECK_EQ(sn_sleep(SN_S(3600)), (rc));       \
        CHECK_EQ(sn_sleep_until(SN_FOREVER), (rc)); \
        CHECK_EQ(sn_cancelled(), (rc) < 0);         \
    } while (0)

static sn_event never = SN_EVENT_INIT;

TASK_TEST(a_deadline_ends_the_waits_of_its_block_and_of_no_other)
{
    (void)arg;
    bool late = false;
    SN_DEADLINE(sn_after(SN_MS(1)), .expired = &late) {
        CHECK(!sn_cancelled());
        WAITS_WITH(-ETIMEDOUT);
        CHECK_EQ(sn_event_wait(&never, SN_FOREVER), -ETIMEDOUT);
        CHECK_EQ(sn_event_wait(&never, NEVER), -ETIMEDOUT);
        CHECK_STR_EQ(sn_cancel_reason(), "a deadline has passed");
    }
    CHECK(late);
    CHECK(!sn_cancelled());
    CHECK_EQ(sn_sleep(1), 0);
    SN_DEADLINE(NEVER, .expired = &late) {
        CHECK_EQ(sn_sleep(1), 0);
    }
    CHECK(!late);
    return 0;
}

TASK_TEST(a_sleep_in_a_block_is_no_longer_than_its_deadline_and_says_so)
{
    (void)arg;
    SN_DEADLINE(sn_after(SN_MS(1))) {
        int64_t end = sn_now() + SN_S(3600);
        CHECK_EQ(sn_sleep_until(sn_deadline_at_(end)), -ETIMEDOUT);
        CHECK(sn_now() < end);
    }
    return 0;
}

TASK_TEST(a_deadline_that_has_passed_reaches_the_block_at_once_or_soon)
{
    (void)arg;
    SN_DEADLINE(SN_NOWAIT) {
        WAITS_WITH(-ETIMEDOUT);
    }
    SN_DEADLINE(sn_after(-SN_S(5))) {
        CHECK_EQ(sn_event_wait(&never, SN_FOREVER), -ETIMEDOUT);
    }
    return 0;
}

TASK_TEST(the_earlier_of_nested_deadlines_counts)
{
    (void)arg;
    bool outer_late = false, inner_late = false;
    SN_DEADLINE(sn_after(SN_MS(1)), .expired = &outer_late) {
        SN_DEADLINE(NEVER, .expired = &inner_late) {
            CHECK(sn_scope_deadline().ns < sn_now() + SN_S(1000));
            WAITS_WITH(-ETIMEDOUT);
        }
        CHECK(!inner_late); /* it was the other one */
        WAITS_WITH(-ETIMEDOUT);
    }
    CHECK(outer_late);
    SN_DEADLINE(NEVER, .expired = &outer_late) {
        SN_DEADLINE(sn_after(SN_MS(1)), .expired = &inner_late) {
            WAITS_WITH(-ETIMEDOUT);
        }
        CHECK(inner_late);
        CHECK(!sn_cancelled());
        CHECK_EQ(sn_sleep(1), 0);
    }
    CHECK(!outer_late);
    CHECK_EQ(sn_scope_deadline().ns, SN_FOREVER.ns);
    return 0;
}

static int sleeps_in_block(bool *late)
{
    SN_DEADLINE(sn_after(SN_MS(1)), .expired = late) {
        return sn_sleep(SN_S(3600));
    }
    return 1;
}

TASK_TEST(a_block_is_left_by_return_break_and_goto)
{
    (void)arg;
    bool late = false;
    CHECK_EQ(sleeps_in_block(&late), -ETIMEDOUT);
    CHECK(late);
    SN_DEADLINE(SN_NOWAIT) {
        SN_SHIELD(SN_FOREVER) {
            goto out;
        }
    }
out:
    CHECK(!sn_cancelled());
    SN_DEADLINE(SN_NOWAIT) {
        break;
    }
    CHECK_EQ(sn_sleep(1), 0);
    return 0;
}

/* ---- shields --------------------------------------------------------------------------------- */

static int sleeps_a_little(void *arg)
{
    (void)arg;
    return sn_sleep(1);
}

TASK_TEST(a_shield_keeps_what_is_around_it_away)
{
    (void)arg;
    SN_SCOPE(g) {
        sn_group_cancel(g, "outside");
        WAITS_WITH(-ECANCELED);
        SN_SHIELD(SN_FOREVER) {
            CHECK(!sn_cancelled());
            CHECK(sn_cancel_reason() == NULL);
            CHECK_EQ(sn_sleep(1), 0);
            SN_SHIELD(sn_after(SN_MS(1))) {
                WAITS_WITH(-ETIMEDOUT);
            }
            CHECK_EQ(sn_sleep(1), 0);
            SN_SCOPE(inner) {
                CHECK_EQ(sn_sleep(1), 0);
                sn_group_cancel(inner, "inside");
                WAITS_WITH(-ECANCELED);
                CHECK_STR_EQ(sn_cancel_reason(), "inside");
                sn_group_cancel(g, "again, in vain");
            }
            CHECK_EQ(sn_sleep(1), 0);
        }
        WAITS_WITH(-ECANCELED);
        CHECK_STR_EQ(sn_cancel_reason(), "outside");
    }
    CHECK_EQ(sn_sleep(1), 0);
    return 0;
}

/* Cancelled from inside the shield, and not before: the wait in it goes on, as do its children. */
TASK_TEST(a_cancel_that_comes_while_a_shield_is_up_waits_for_its_end)
{
    (void)arg;
    int rc = 1;
    SN_SCOPE(g) {
        SN_DEADLINE(NEVER) {
            SN_SHIELD(SN_FOREVER) {
                SN_SCOPE(inner, .result = &rc) {
                    sn_group_cancel(g, "outside");
                    CHECK(!sn_cancelled());
                    CHECK_EQ(sn_sleep(1), 0);
                    CHECK_EQ(sn_group_spawn(inner, sleeps_a_little, NULL), 0);
                }
                CHECK_EQ(sn_sleep(1), 0);
            }
            WAITS_WITH(-ECANCELED);
        }
        WAITS_WITH(-ECANCELED);
    }
    CHECK_EQ(rc, 0);
    return 0;
}

static SNI_ATOMIC(int) stage;

static void reach_stage(int n)
{
    sni_atomic_store(&stage, n, seq_cst); /* seq_cst, both: simplest */
}

static void await_stage(int n)
{
    while (sni_atomic_load(&stage, seq_cst) < n)
        sn_yield();
}

/* Cancelled while it waits in a shield, it learns of it behind. */
static int waits_in_shield(void *arg)
{
    sn_event *go_on = arg;
    SN_SHIELD(SN_FOREVER) {
        reach_stage(1);
        CHECK_EQ(sn_event_wait(go_on, SN_FOREVER), 0);
        CHECK(!sn_cancelled());
    }
    CHECK(sn_cancelled());
    WAITS_WITH(-ECANCELED);
    return 8;
}

static int cancels(void *arg)
{
    reach_stage(2);
    return sn_cancel(arg, NULL);
}

TASK_TEST(a_task_is_cancelled_when_it_has_left_its_shield)
{
    (void)arg;
    sn_event go_on = SN_EVENT_INIT;
    reach_stage(0);
    sn_task *t = sn_spawn(waits_in_shield, &go_on);
    await_stage(1);
    sn_task *c = sn_spawn(cancels, t);
    await_stage(2);
    for (int i = 0; i < 20; i++)
        sn_yield();
    CHECK_EQ(sn_event_set(&go_on), 0);
    CHECK_EQ(sn_join(c, NULL), 8);
    return 0;
}

/* ---- children inherit ------------------------------------------------------------------------ */

static int waits_and_tells(void *arg)
{
    int rc = sn_sleep(SN_S(3600));
    if (arg != NULL)
        CHECK_STR_EQ(sn_cancel_reason(), arg);
    return rc;
}

TASK_TEST(a_deadline_reaches_the_children_of_scopes_in_it)
{
    (void)arg;
    int rc = 0, results[2] = {-ETIMEDOUT, -ETIMEDOUT};
    SN_DEADLINE(sn_after(SN_MS(1))) {
        SN_SCOPE(g, .results = results, .results_max = 2, .result = &rc) {
            for (int i = 0; i < 2; i++) {
                int spawned = sn_group_spawn(g, waits_and_tells, "a deadline has passed");
                CHECK(spawned == i || spawned == -ETIMEDOUT); /* a millisecond may be short */
            }
        }
    }
    CHECK_EQ(rc, -ETIMEDOUT);
    CHECK_EQ(results[0], -ETIMEDOUT);
    CHECK_EQ(results[1], -ETIMEDOUT);
    results[0] = -ETIMEDOUT;
    SN_SCOPE(g, .results = results, .results_max = 2, .result = &rc, .until = sn_after(SN_MS(1))) {
        CHECK(sn_scope_deadline().ns < sn_now() + SN_S(1000));
        int spawned = sn_group_spawn(g, waits_and_tells, "a deadline has passed");
        CHECK(spawned == 0 || spawned == -ETIMEDOUT);
        CHECK_EQ(sn_sleep(SN_S(3600)), -ETIMEDOUT);
        CHECK_EQ(sn_group_spawn(g, waits_and_tells, NULL), -ETIMEDOUT);
    }
    CHECK_EQ(rc, -ETIMEDOUT);
    CHECK_EQ(results[0], -ETIMEDOUT);
    return 0;
}

static int asks_for_its_deadline(void *arg)
{
    int64_t want = *(int64_t *)arg;
    CHECK_EQ(sn_scope_deadline().ns, want);
    SN_SHIELD(SN_FOREVER) {
        CHECK_EQ(sn_scope_deadline().ns, SN_FOREVER.ns);
    }
    SN_DEADLINE(sn_deadline_at_(want - 1)) {
        CHECK_EQ(sn_scope_deadline().ns, want - 1);
    }
    return 0;
}

TASK_TEST(a_child_knows_the_deadline_around_it)
{
    (void)arg;
    int64_t at = sn_now() + SN_S(3600);
    int rc = 1;
    SN_DEADLINE(sn_deadline_at_(at)) {
        SN_SCOPE(g, .result = &rc) {
            CHECK_EQ(sn_group_spawn(g, asks_for_its_deadline, &at), 0);
        }
    }
    CHECK_EQ(rc, 0);
    return 0;
}

static int shields_itself(void *arg)
{
    sn_event *go_on = arg;
    SN_SHIELD(SN_FOREVER) {
        reach_stage(1);
        CHECK_EQ(sn_event_wait(go_on, SN_FOREVER), 0);
    }
    CHECK_EQ(sn_sleep(SN_S(3600)), -ECANCELED);
    return 0;
}

TASK_TEST(a_child_in_a_shield_is_waited_for)
{
    (void)arg;
    sn_event go_on = SN_EVENT_INIT;
    int rc = 1;
    reach_stage(0);
    SN_SCOPE(g, .result = &rc) {
        CHECK_EQ(sn_group_spawn(g, shields_itself, &go_on), 0);
        await_stage(1);
        sn_group_cancel(g, NULL);
        CHECK_EQ(sn_event_set(&go_on), 0);
    }
    CHECK_EQ(rc, 0);
    return 0;
}

/* A scope that is entered inside a cancelled one is cancelled, with the children it would have. */
TASK_TEST(a_scope_in_a_cancelled_one_is_cancelled_from_the_start)
{
    (void)arg;
    int rc = 0;
    SN_SCOPE(g) {
        sn_group_cancel(g, NULL);
        SN_DEADLINE(NEVER) {
            WAITS_WITH(-ECANCELED);
        }
        SN_SCOPE(inner, .result = &rc) {
            CHECK_EQ(sn_group_spawn(inner, waits_and_tells, NULL), -ECANCELED);
        }
    }
    CHECK_EQ(rc, -ECANCELED);
    return 0;
}

/* ---- tasks that are run by who joins them ---------------------------------------------------- */

static int joined_with_scopes(void *arg)
{
    (void)arg;
    CHECK(!sn_cancelled());
    SN_DEADLINE(sn_after(SN_MS(1))) {
        WAITS_WITH(-ETIMEDOUT);
    }
    CHECK_EQ(sn_sleep(1), 0);
    SN_SCOPE(g) {
        sn_group_cancel(g, "its own");
        WAITS_WITH(-ECANCELED);
        CHECK_STR_EQ(sn_cancel_reason(), "its own");
    }
    CHECK(!sn_cancelled());
    CHECK_EQ(sn_sleep(1), 0);
    return 4;
}

/* The joiner is in a cancelled scope, but not when it joins: only its task is to be seen. */
TASK_TEST(a_task_that_its_joiner_runs_has_scopes_of_its_own)
{
    (void)arg;
    SN_DEADLINE(NEVER) {
        CHECK_EQ(sn_join(sn_spawn(joined_with_scopes, NULL), NULL), 4);
        CHECK_EQ(sn_sleep(1), 0);
    }
    return 0;
}

static int joins_in_vain(void *arg)
{
    (void)arg;
    SN_SCOPE(g) {
        sn_group_cancel(g, NULL);
        sn_task *volatile t = sn_spawn(joined_with_scopes, NULL); /* it may be joined twice */
        int rc = sn_join(t, NULL);                                /* runs it, or is cancelled */
        CHECK(rc == 4 || rc == -ECANCELED);
        if (rc < 0) {
            SN_SHIELD(SN_FOREVER) {
                CHECK_EQ(sn_join(t, NULL), 4);
            }
        }
        WAITS_WITH(-ECANCELED);
    }
    return 0;
}

TASK_TEST(who_is_cancelled_may_run_a_task_that_is_not)
{
    return joins_in_vain(arg);
}

static int panics_in_block(void *arg)
{
    (void)arg;
    SN_DEADLINE(NEVER) {
        SN_SHIELD(NEVER) {
            sn_panic("in a block");
        }
    }
    return 0;
}

TASK_TEST(a_panic_leaves_the_blocks_it_is_in_and_not_those_of_its_joiner)
{
    (void)arg;
    SN_DEADLINE(sn_after(SN_MS(1))) {
        SN_SHIELD(SN_FOREVER) {
            CHECK_EQ(sn_join(sn_spawn(panics_in_block, NULL), NULL), -ECONNABORTED);
        }
        WAITS_WITH(-ETIMEDOUT);
    }
    return 0;
}

/* ---- no deadline comes late or is taken for another ------------------------------------------ */

/* Again and again a deadline comes as its block is left: what waits behind is not touched. */
TASK_TEST(a_deadline_that_comes_while_its_block_is_left_touches_nothing_else)
{
    (void)arg;
    for (int i = 0; i < 300; i++) {
        int rc = 0;
        SN_DEADLINE(sn_after(SN_US(i % 50))) {
            rc = sn_event_wait(&never, sn_after(SN_US(i % 47)));
        }
        CHECK_EQ(rc, -ETIMEDOUT);
        CHECK_EQ(sn_sleep(SN_US(20)), 0);
        sn_event own = SN_EVENT_INIT;
        CHECK_EQ(sn_event_set(&own), 0);
        CHECK_EQ(sn_event_wait(&own, SN_FOREVER), 0);
    }
    return 0;
}

static int cancels_soon(void *arg)
{
    for (int i = 0; i < 3; i++)
        sn_yield();
    sn_group_cancel(arg, NULL);
    return 0;
}

TASK_TEST(a_cancel_that_comes_while_its_scope_is_left_touches_nothing_else)
{
    (void)arg;
    for (int i = 0; i < 300; i++) {
        SN_SCOPE(g) {
            CHECK(sn_group_spawn(g, cancels_soon, g) >= 0);
            for (int k = 0; k < i % 5; k++)
                (void)sn_sleep(1);
        }
        CHECK_EQ(sn_sleep(1), 0);
    }
    return 0;
}

#ifndef SINEW_DEBUG
TEST(outside_a_task_a_block_has_no_deadline_and_runs)
{
    int rounds = 0;
    bool late = true;
    SN_DEADLINE(SN_NOWAIT, .expired = &late) {
        rounds++;
        CHECK_EQ(sn_sleep(1), 0);
    }
    CHECK_EQ(rounds, 1);
    CHECK(!late);
    CHECK(sn_cancel_reason() == NULL);
    CHECK_EQ(sn_scope_deadline().ns, SN_FOREVER.ns);
}
#endif

/* ---- a join that could run the task itself --------------------------------------------------- */

/* In a fork-join runtime who joins a task that has not begun runs it on its own stack; but then it
 * could not be told that it is to end (R41, R62). */
static int sleep_for_hours(void *arg)
{
    (void)arg;
    return sn_sleep(SN_S(7200));
}

static int join_in_time(void *arg)
{
    sn_task *volatile t = sn_spawn(sleep_for_hours, arg); /* for its second use */
    int rc = sn_join(t, NULL);
    CHECK_EQ(sn_cancel(t, NULL), -ECANCELED);
    return rc;
}

static int join_when_cancelled(void *arg)
{
    while (!sn_cancelled())
        sn_yield();
    return join_in_time(arg);
}

static int join_within_bounds(void *arg)
{
    int rc = 0;
    int64_t begun = sn_now();
    SN_DEADLINE(sn_after(SN_MS(50))) {
        rc = join_in_time(arg);
    }
    CHECK_EQ(rc, -ETIMEDOUT);
    SN_SCOPE(g, .until = sn_after(SN_MS(50)), .result = &rc) {
        CHECK_EQ(sn_group_spawn(g, join_in_time, arg), 0);
    }
    CHECK_EQ(rc, -ETIMEDOUT);
    CHECK_EQ(sn_cancel(sn_spawn(join_when_cancelled, arg), NULL), -ECANCELED);
    CHECK_LT(sn_now() - begun, SN_S(3600)); /* the clock stands still while anybody can run */
    return 0;
}

TEST(a_join_keeps_its_deadline_and_is_cancelled_where_it_could_run_the_task)
{
    const sn_runtime_options opts = {.single_threaded = true, .lifo = true, .virtual_time = true};
    CHECK_EQ(run_with(&opts, join_within_bounds, NULL), 0);
}

/* ---- in a waker ----------------------------------------------------------------------------- */

/* Who waits for a condition unlocks its mutex when it has begun to wait, and wakes whoever wants
 * it: so a waker runs on a fiber that waits already, and is cancelled, or not, as before. */
static int wake_in_scopes(void *data)
{
    ++*(int *)data;
    SN_SHIELD(SN_FOREVER) {
        SN_DEADLINE(NEVER) {
            CHECK(!sn_cancelled());
        }
    }
    return 0;
}

TASK_TEST(a_waker_that_enters_a_scope_does_not_end_the_wait_around_it)
{
    static const sn_waker_vtable vtable = {.wake_by_ref = wake_in_scopes};
    (void)arg;
    int wakes = 0;
    sn_waker waker = {&vtable, &wakes};
    sn_cx cx = {&waker};
    sn_mutex m = SN_MUTEX_INIT;
    sn_cond cond = SN_COND_INIT;
    sn_sync_state state;
    CHECK_EQ(sn_mutex_lock(&m, SN_FOREVER), 0);
    sn_future *other = sn_mutex_lock_op(&state, &m);
    CHECK(sn_poll_pending(sn_future_poll(other, &cx)));
    CHECK_EQ(sn_cond_wait(&cond, &m, sn_after(SN_MS(2))), -ETIMEDOUT);
    CHECK_EQ(wakes, 1);
    CHECK_EQ(sn_future_drop(other), 0);
    CHECK_EQ(sn_mutex_unlock(&m), 0);
    CHECK_EQ(sn_cond_finish(&cond), 0);
    CHECK_EQ(sn_mutex_finish(&m), 0);
    return 0;
}

/* As a join does that finds its task ended. */
TASK_TEST(a_shield_holds_after_a_wait_that_was_not_committed)
{
    (void)arg;
    struct sni_waiter w;
    sni_wait_begin(&w);
    CHECK(!sni_wait_shield(true));
    CHECK(sni_wait_shield(false));
    CHECK(!sni_wait_shield(false));
    return 0;
}
