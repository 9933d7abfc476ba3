/* SPDX-License-Identifier: MIT */
/* Hooks at the end of tasks and groups, and of blocks (R62). */
#include "unit/task/with_runtime.h"

#include <stdio.h>
#include <string.h>

/* What was called, in order. */
static char calls[64];

static int call(void *arg)
{
    strncat(calls, arg, sizeof(calls) - strlen(calls) - 1);
    return 0;
}

static int call_after_a_sleep(void *arg)
{
    CHECK_EQ(sn_sleep(1), 0); /* shielded */
    CHECK(!sn_cancelled());
    return call(arg);
}

static int call_and_fail(void *arg)
{
    (void)call(arg);
    return -EIO;
}

static int call_and_panic(void *arg)
{
    (void)call(arg);
    SN_DEADLINE(SN_FOREVER) {
        sn_panic("in a hook");
    }
    return 0;
}

static int call_and_add(void *arg)
{
    (void)call(arg);
    return sn_ensure(call, "+");
}

static void ensure_all(void)
{
    CHECK_EQ(sn_ensure(call, "a"), 0);
    CHECK_EQ(sn_ensure(call_and_add, "b"), 0);
    CHECK_EQ(sn_ensure(call_after_a_sleep, "c"), 0);
    CHECK_EQ(sn_ensure(NULL, NULL), -EINVAL);
}

static int ends_well(void *arg)
{
    (void)arg;
    ensure_all();
    return 3;
}

TASK_TEST(hooks_are_called_in_reverse_when_a_task_ends)
{
    (void)arg;
    calls[0] = '\0';
    CHECK_EQ(sn_join(sn_spawn(ends_well, NULL), NULL), 3);
    CHECK_STR_EQ(calls, "cb+a");
    return 0;
}

static int waits_with_hooks(void *arg)
{
    ensure_all();
    CHECK_EQ(sn_event_set(arg), 0);
    int rc = sn_sleep(SN_S(3600));
    CHECK_EQ(rc, -ECANCELED);
    return rc;
}

TASK_TEST(hooks_are_called_when_a_task_is_cancelled)
{
    (void)arg;
    calls[0] = '\0';
    sn_event begun = SN_EVENT_INIT;
    sn_task *t = sn_spawn(waits_with_hooks, &begun);
    CHECK_EQ(sn_event_wait(&begun, SN_FOREVER), 0);
    CHECK_EQ(sn_cancel(t, NULL), -ECANCELED);
    CHECK_STR_EQ(calls, "cb+a");
    return 0;
}

static int panics_with_hooks(void *arg)
{
    (void)arg;
    ensure_all();
    sn_panic("with hooks");
}

TASK_TEST(hooks_are_called_when_a_task_panics)
{
    (void)arg;
    calls[0] = '\0';
    sn_exit how;
    CHECK_EQ(sn_join(sn_spawn(panics_with_hooks, NULL), &how), -ECONNABORTED);
    CHECK_STR_EQ(calls, "cb+a");
    CHECK_STR_EQ(how.message, "with hooks");
    return 0;
}

static int has_bad_hooks(void *arg)
{
    CHECK_EQ(sn_ensure(call, "1"), 0);
    CHECK_EQ(sn_ensure(call_and_fail, "2"), 0);
    CHECK_EQ(sn_ensure(call_and_panic, "3"), 0);
    CHECK_EQ(sn_ensure(call_after_a_sleep, "4"), 0);
    if (arg != NULL)
        sn_panic("%s", (const char *)arg);
    return 9;
}

TASK_TEST(a_hook_that_fails_or_panics_keeps_no_other_from_being_called)
{
    (void)arg;
    sn_exit how;
    calls[0] = '\0';
    CHECK_EQ(sn_join(sn_spawn(has_bad_hooks, NULL), NULL), 9);
    CHECK_STR_EQ(calls, "4321");
    calls[0] = '\0';
    CHECK_EQ(sn_join(sn_spawn(has_bad_hooks, "the task"), &how), -ECONNABORTED);
    CHECK_STR_EQ(calls, "4321");
    CHECK_STR_EQ(how.message, "the task");
    return 0;
}

typedef struct hooked {
    sn_coro coro;
    bool panics;
} hooked;

SN_CORO(hooked, self)
{
    SN_BEGIN(self);
    CHECK_EQ(sn_ensure(call, "x"), 0);
    CHECK_EQ(sn_ensure(call_and_fail, "y"), 0);
    SN_YIELD();
    if (self->panics)
        sn_panic("a coroutine");
    SN_END();
}

TASK_TEST(coroutines_have_hooks_too)
{
    (void)arg;
    calls[0] = '\0';
    CHECK_EQ(sn_join(sn_spawn_coro(hooked, &(hooked){.panics = false}), NULL), 0);
    CHECK_STR_EQ(calls, "yx");
    CHECK_EQ(sn_join(sn_spawn_coro(hooked, &(hooked){.panics = true}), NULL), -ECONNABORTED);
    CHECK_STR_EQ(calls, "yxyx");
    return 0;
}

static int ends_later(void *arg)
{
    (void)sn_sleep(1);
    return call(arg);
}

TASK_TEST(the_hooks_of_a_group_are_called_when_its_children_have_ended)
{
    (void)arg;
    calls[0] = '\0';
    SN_SCOPE(g) {
        CHECK_EQ(sn_group_ensure(g, call, "3"), 0);
        CHECK_EQ(sn_group_ensure(g, call_and_panic, "2"), 0);
        CHECK_EQ(sn_group_ensure(g, call_after_a_sleep, "1"), 0);
        CHECK_EQ(sn_group_ensure(g, NULL, "1"), -EINVAL);
        CHECK_EQ(sn_group_spawn(g, ends_later, "0"), 0);
    }
    CHECK_STR_EQ(calls, "0123");
    calls[0] = '\0';
    SN_SCOPE(g) {
        CHECK_EQ(sn_group_ensure(g, call_after_a_sleep, "1"), 0);
        sn_group_cancel(g, NULL);
        break;
    }
    CHECK_STR_EQ(calls, "1");
    return 0;
}

struct late {
    sn_group *group;
    int spawned; /* what that returned */
};

static int spawns_too_late(void *arg)
{
    struct late *late = arg;
    late->spawned = sn_group_spawn(late->group, call, "late");
    return call("h");
}

TASK_TEST(a_hook_of_a_group_spawns_nothing_into_it)
{
    (void)arg;
    int rc = 1;
    struct late late = {.spawned = 77};
    calls[0] = '\0';
    SN_SCOPE(g, .result = &rc) {
        late.group = g;
        CHECK_EQ(sn_group_ensure(g, spawns_too_late, &late), 0);
        CHECK_EQ(sn_group_spawn(g, call, "c"), 0);
    }
    CHECK_EQ(late.spawned, -EPERM);
    CHECK_EQ(rc, 0);
    sn_yield(); /* whoever was begun after all would say so */
    CHECK_STR_EQ(calls, "ch");
    return 0;
}

TEST(outside_a_task_there_is_no_end_to_wait_for)
{
    CHECK_EQ(sn_ensure(call, "x"), -EPERM);
}

static void note(void *arg)
{
    (void)call(arg);
}

static int leaves_early(int n)
{
    SN_DEFER(note, "a");
    for (int i = 0; i < n; i++) {
        SN_DEFER(note, "b");
        SN_DEFER(note, "c");
        if (i == 1)
            return i;
    }
    return -1;
}

TEST(what_is_deferred_is_done_when_the_block_is_left)
{
    calls[0] = '\0';
    CHECK_EQ(leaves_early(5), 1);
    CHECK_STR_EQ(calls, "cbcba");
}
