/* SPDX-License-Identifier: MIT */
/* A future that panics while a fiber polls it (R26): the fiber ends, and nothing that its futures
 * were waiting for finds them where they were, on a stack that is another's by then. */
#include "unit/task/with_runtime.h"

#include <sinew/await.h>
#include <sinew/chan.h>
#include <sinew/combine.h>
#include <sinew/coro.h>
#include <sinew/group.h>
#include <sinew/local.h>
#include <sinew/select.h>

#include <stdint.h>
#include <string.h>
#include <unwind.h>

typedef struct unlucky {
    sn_coro coro;
} unlucky;

SN_CORO(unlucky, self)
{
    SN_BEGIN(self);
    SN_YIELD();
    sn_panic("bad luck");
    SN_END();
}

/* Receives, for ever. */
typedef struct receiver {
    sn_coro coro;
    sn_chan_op op;
    sn_chan *ch;
    int v;
    bool *left;
} receiver;

SN_CORO(receiver, self)
{
    SN_BEGIN(self);
    SN_AWAIT(sn_chan_recv_op(&self->op, self->ch, &self->v));
    SN_FINALLY();
    *self->left = true;
    SN_END();
}

struct place {
    sn_chan *ch;
    bool left;
};

static sn_chan *rendezvous(void)
{
    sn_chan *ch;
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), 0, NULL), 0);
    return ch;
}

/* On the stack that the fiber before had. */
static int overwrite(void *arg)
{
    volatile char frame[2048];
    (void)arg;
    memset((char *)frame, 0x5A, sizeof(frame));
    return frame[7];
}

static void check_left(const struct place *place)
{
    int v = 1;
    CHECK(place->left);
    CHECK_EQ(sn_join(sn_spawn(overwrite, NULL), NULL), 0x5A);
    CHECK_EQ(sn_chan_send(place->ch, &v, SN_NOWAIT), -ETIMEDOUT); /* nobody is there to receive */
    CHECK_EQ(sn_chan_destroy(place->ch), 0);
}

static int await_both(void *arg)
{
    struct place *place = arg;
    receiver waits = {.ch = place->ch, .left = &place->left};
    unlucky panics;
    sn_fut_join2 both;
    return sn_await(
        sn_fut_join2_init(&both, SN_START(receiver, &waits), SN_START(unlucky, &panics)),
        SN_FOREVER);
}

TASK_TEST(what_a_future_awaits_that_panics_in_a_fiber_is_dropped)
{
    (void)arg;
    struct place place = {rendezvous(), false};
    sn_exit how;
    CHECK_EQ(sn_join(sn_spawn(await_both, &place), &how), -ECONNABORTED);
    CHECK_STR_EQ(how.message, "bad luck");
    check_left(&place);
    return 0;
}

static int select_both(void *arg)
{
    struct place *place = arg;
    receiver waits = {.ch = place->ch, .left = &place->left};
    unlucky panics;
    sn_case cases[] = {sn_case_future(SN_START(receiver, &waits)),
                       sn_case_future(SN_START(unlucky, &panics))};
    return sn_select(cases, 2, SN_SELECT_ORDERED, SN_FOREVER);
}

TASK_TEST(the_other_futures_of_a_select_in_which_one_panics_are_dropped)
{
    (void)arg;
    struct place place = {rendezvous(), false};
    CHECK_EQ(sn_join(sn_spawn(select_both, &place), NULL), -ECONNABORTED);
    check_left(&place);
    return 0;
}

/* ---- a panic that is caught on the way ------------------------------------------------------- */

static int select_in_hook(void *arg)
{
    return select_both(arg);
}

/* Polled by a fiber, it runs code of a fiber: a group whose hook panics, in a select of its own. */
typedef struct busy {
    sn_coro coro;
    struct place *inner;
    sn_chan_op op;
    sn_chan *ch;
    int v;
} busy;

static const sn_local value = SN_LOCAL_INIT(NULL, NULL);

SN_CORO(busy, self)
{
    SN_BEGIN(self);
    CHECK_EQ(sn_local_set(&value, self), 0); /* among the guards */
    sn_group group;
    CHECK_EQ(sn_group_open(&group), 0);
    CHECK_EQ(sn_group_ensure(&group, select_in_hook, self->inner), 0);
    CHECK_EQ(sn_group_close(&group), 0);
    CHECK(self->inner->left);
    SN_AWAIT(sn_chan_recv_op(&self->op, self->ch, &self->v));
    SN_END();
}

static struct place inner;

static int select_around(void *arg)
{
    struct place *place = arg;
    busy works = {.inner = &inner, .ch = place->ch};
    receiver waits = {.ch = place->ch, .left = &place->left};
    unlucky panics;
    sn_case cases[] = {sn_case_future(SN_START(receiver, &waits)),
                       sn_case_future(SN_START(busy, &works)),
                       sn_case_future(SN_START(unlucky, &panics))};
    return sn_select(cases, 3, SN_SELECT_ORDERED, SN_FOREVER);
}

TASK_TEST(a_panic_that_is_caught_inside_of_a_poll_leaves_the_select_around_it_alone)
{
    (void)arg;
    struct place place = {rendezvous(), false};
    inner = (struct place){rendezvous(), false};
    CHECK_EQ(sn_join(sn_spawn(select_around, &place), NULL), -ECONNABORTED);
    check_left(&inner);
    check_left(&place);
    return 0;
}

/* ---- what leaves a poll that is no panic ----------------------------------------------------- */

struct walk {
    uintptr_t driver; /* where the frame of whoever drives the runtime is */
    int frames;
    bool met_driver;
    _Unwind_Reason_Code end;
};

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *arg)
{
    struct walk *walk = arg;
    walk->frames++;
    walk->met_driver = walk->met_driver || _Unwind_GetCFA(context) >= walk->driver;
    return _URC_NO_REASON;
}

typedef struct walker {
    sn_coro coro;
    struct walk *walk;
} walker;

SN_CORO(walker, self)
{
    SN_BEGIN(self);
    self->walk->end = _Unwind_Backtrace(look_at_frame, self->walk);
    SN_END();
}

static int join_walker(void *arg)
{
    walker w = {.walk = arg};
    return sn_join(sn_spawn_future(SN_START(walker, &w), &w), NULL);
}

/* A coroutine is polled on the stack of the thread that drives the runtime. An exception that
 * leaves the poll finds nobody there who would catch it, and terminates, as in a fiber. */
TEST(who_unwinds_from_a_poll_does_not_come_to_whoever_drives_the_runtime)
{
    sn_runtime *rt = NULL;
    struct walk walk = {.driver = (uintptr_t)__builtin_frame_address(0)};
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true}), 0);
    CHECK_EQ(sn_runtime_block_on(rt, join_walker, &walk), 0);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    sn_runtime_destroy(rt);
    CHECK_EQ(walk.end, _URC_END_OF_STACK);
    CHECK_GE(walk.frames, 3);
    CHECK(!walk.met_driver);
}
