/* SPDX-License-Identifier: MIT */
/* Cycles of tasks that wait for each other are found while the program runs, with every task's
 * name, place and wait; and nothing else is (R160). */
#include "unit/observe/said.h"
#include "unit/task/with_runtime.h"

struct found {
    int n;
    sn_stuck tasks[16];
};

static void note(const sn_stuck *task, void *arg)
{
    struct found *found = arg;
    CHECK(found->n < 16);
    found->tasks[found->n++] = *task;
}

/* Look until there are so many cycles: tasks take a while to get there. */
static struct found until_cycles(int cycles)
{
    for (;;) {
        struct found found = {.n = 0};
        if (sn_deadlocks(NULL, note, &found) == cycles)
            return found;
        CHECK_EQ(sn_sleep(SN_US(100)), 0);
    }
}

static const sn_stuck *named(const struct found *found, const char *name)
{
    for (int i = 0; i < found->n; i++)
        if (strcmp(found->tasks[i].name, name) == 0)
            return &found->tasks[i];
    FAIL("no task \"%s\" was found", name);
}

/* ---- two locks --- */

static struct {
    sn_mutex a, b;
    sn_latch both;
} two;

struct order {
    sn_mutex *first, *second;
};

static int lock_in_order(void *arg)
{
    const struct order *order = arg;
    CHECK_EQ(sn_mutex_lock(order->first, SN_FOREVER), 0);
    CHECK_EQ(sn_latch_arrive(&two.both, 1), 0);
    CHECK_EQ(sn_latch_wait(&two.both, SN_FOREVER), 0);
    int rc = sn_mutex_lock(order->second, SN_FOREVER);
    if (rc == 0)
        CHECK_EQ(sn_mutex_unlock(order->second), 0);
    CHECK_EQ(sn_mutex_unlock(order->first), 0);
    return rc;
}

TASK_TEST(who_locks_in_the_opposite_order_is_in_a_cycle)
{
    (void)arg;
    two.a = two.b = (sn_mutex)SN_MUTEX_INIT;
    two.both = (sn_latch)SN_LATCH_INIT(2);
    CHECK_EQ(sn_deadlocks(NULL, note, NULL), 0);
    sn_task *left = sn_spawn(lock_in_order, (&(struct order){&two.a, &two.b}), .name = "left");
    sn_task *right = sn_spawn(lock_in_order, (&(struct order){&two.b, &two.a}), .name = "right");
    struct found found = until_cycles(1);
    CHECK_EQ(found.n, 2);
    const sn_stuck *l = named(&found, "left"), *r = named(&found, "right");
    CHECK_EQ(l->owner, r->id);
    CHECK_EQ(r->owner, l->id);
    CHECK_PTR_EQ(l->object, &two.b);
    CHECK_PTR_EQ(r->object, &two.a);
    CHECK_STR_EQ(l->waits, "mutex");
    CHECK_STR_HAS(l->at, "test_deadlocks.c:");
    CHECK_EQ(l->cycle, 1);
    CHECK_EQ(sn_cancel(left, NULL), -ECANCELED);
    CHECK_EQ(sn_join(right, NULL), 0);
    CHECK_EQ(sn_deadlocks(NULL, note, NULL), 0);
    return 0;
}

/* ---- scopes --- */

static int wants_the_lock(void *arg)
{
    int rc = sn_mutex_lock(arg, SN_FOREVER);
    return rc < 0 ? rc : sn_mutex_unlock(arg);
}

static int waits_with_the_lock(void *arg)
{
    int rc = 0;
    CHECK_EQ(sn_mutex_lock(arg, SN_FOREVER), 0);
    SN_SCOPE(g, .result = &rc) {
        CHECK_EQ(sn_group_spawn(g, wants_the_lock, arg, .name = "child"), 0);
    }
    CHECK_EQ(sn_mutex_unlock(arg), 0);
    return rc;
}

TASK_TEST(who_waits_for_children_with_a_lock_that_they_want_is_in_a_cycle)
{
    (void)arg;
    sn_mutex mutex = SN_MUTEX_INIT;
    sn_task *t = sn_spawn(waits_with_the_lock, &mutex, .name = "parent");
    struct found found = until_cycles(1);
    CHECK_EQ(found.n, 2);
    const sn_stuck *parent = named(&found, "parent"), *child = named(&found, "child");
    CHECK_STR_EQ(parent->waits, "group");
    CHECK_STR_EQ(child->waits, "mutex");
    CHECK_EQ(parent->owner, child->id);
    CHECK_EQ(child->owner, parent->id);
    CHECK_EQ(sn_cancel(t, NULL), -ECANCELED);
    CHECK_EQ(sn_deadlocks(NULL, note, NULL), 0);
    return 0;
}

/* ---- joins --- */

static struct {
    sn_task *of[3];
    sn_event go;
} ring;

static int join_next(void *arg)
{
    int me = *(int *)arg;
    CHECK_EQ(sn_event_wait(&ring.go, SN_FOREVER), 0);
    return sn_join(ring.of[(me + 1) % 3], NULL);
}

static int find_ring(void *arg)
{
    static const char *const names[] = {"one", "two", "three"};
    ring.go = (sn_event)SN_EVENT_INIT;
    for (int i = 0; i < 3; i++)
        ring.of[i] = sn_spawn(join_next, &i, .name = names[i], .copy_bytes = sizeof(i));
    CHECK_EQ(sn_event_set(&ring.go), 0);
    struct found found = until_cycles(1);
    CHECK_EQ(found.n, 3);
    CHECK_EQ(named(&found, "one")->owner, named(&found, "two")->id);
    CHECK_EQ(named(&found, "two")->owner, named(&found, "three")->id);
    CHECK_EQ(named(&found, "three")->owner, named(&found, "one")->id);
    CHECK_STR_EQ(found.tasks[0].waits, "join");
    CHECK(found.tasks[0].object == NULL);
    return *(int *)arg;
}

/* Nobody has a handle that could end it, so the runtime is given up; also, who joins is given up
 * before or after whom it joins, and neither is looked at when it is gone. */
static void leave_ring(const sn_runtime_options *opts)
{
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, opts), 0);
    CHECK_EQ(sn_runtime_block_on(rt, find_ring, &(int){7}), 7);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_NOWAIT), 3);
    sn_runtime_destroy(rt);
}

TEST(a_ring_of_joins_is_a_cycle_on_level_1)
{
    leave_ring(&(sn_runtime_options){.single_threaded = true});
}

TEST(a_ring_of_joins_is_a_cycle_on_level_2)
{
    leave_ring(&(sn_runtime_options){.workers = 4});
}

TEST(a_ring_of_joins_is_a_cycle_in_lifo_order)
{
    leave_ring(&(sn_runtime_options){.workers = 2, .lifo = true});
}

/* ---- a lock and a join --- */

static sn_mutex guarded = SN_MUTEX_INIT;

static int want_guarded(void *arg)
{
    (void)arg;
    int rc = sn_mutex_lock(&guarded, SN_FOREVER);
    if (rc == 0)
        CHECK_EQ(sn_mutex_unlock(&guarded), 0);
    return rc;
}

static int join_under_lock(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_mutex_lock(&guarded, SN_FOREVER), 0);
    static sn_task *child;
    child = sn_spawn(want_guarded, NULL, .name = "child");
    int rc = sn_join(child, NULL);
    CHECK_EQ(sn_mutex_unlock(&guarded), 0);
    if (rc == -ECANCELED) /* the handle is still good */
        rc = sn_detach(child);
    return rc;
}

static int find_join_under_lock(void *arg)
{
    (void)arg;
    guarded = (sn_mutex)SN_MUTEX_INIT;
    sn_task *parent = sn_spawn(join_under_lock, NULL, .name = "parent");
    struct found found = until_cycles(1);
    CHECK_EQ(found.n, 2);
    CHECK_STR_EQ(named(&found, "parent")->waits, "join");
    CHECK_STR_EQ(named(&found, "child")->waits, "mutex");
    CHECK_EQ(named(&found, "child")->owner, named(&found, "parent")->id);
    CHECK_EQ(sn_cancel(parent, NULL), 0);
    return 0;
}

/* Not in LIFO order: there the child may run on its parent's stack, and is told -EDEADLK. */
TEST(who_joins_a_task_that_wants_its_lock_is_in_a_cycle)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 4}, find_join_under_lock, NULL), 0);
}

TEST(who_joins_a_task_that_wants_its_lock_is_in_a_cycle_on_level_1)
{
    sn_runtime_options opts = {.single_threaded = true};
    CHECK_EQ(run_with(&opts, find_join_under_lock, NULL), 0);
}

/* ---- a task that runs on its joiner's stack --- */

static struct {
    sn_task *parent;
    sn_event begun, locked;
} inlined;

static int join_unstarted(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_event_set(&inlined.begun), 0);
    CHECK_EQ(sn_event_wait(&inlined.locked, SN_FOREVER), 0);
    return sn_join(sn_spawn(want_guarded, NULL, .name = "inner"), NULL);
}

static int join_parent_under_lock(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_mutex_lock(&guarded, SN_FOREVER), 0);
    CHECK_EQ(sn_event_set(&inlined.locked), 0);
    int rc = sn_join(inlined.parent, NULL);
    CHECK_EQ(sn_mutex_unlock(&guarded), 0);
    if (rc == -ECANCELED)
        rc = sn_detach(inlined.parent);
    return rc;
}

TASK_TEST(a_cycle_goes_through_a_task_that_runs_on_the_stack_of_who_joins_it)
{
    (void)arg;
    guarded = (sn_mutex)SN_MUTEX_INIT;
    inlined.begun = inlined.locked = (sn_event)SN_EVENT_INIT;
    inlined.parent = sn_spawn(join_unstarted, NULL, .name = "outer");
    CHECK_EQ(sn_event_wait(&inlined.begun, SN_FOREVER), 0);
    sn_task *holder = sn_spawn(join_parent_under_lock, NULL, .name = "holder");
    struct found found = until_cycles(1);
    CHECK_EQ(found.n, 3);
    CHECK_EQ(named(&found, "outer")->owner, named(&found, "inner")->id);
    CHECK_EQ(named(&found, "inner")->owner, named(&found, "holder")->id);
    CHECK_EQ(named(&found, "holder")->owner, named(&found, "outer")->id);
    CHECK_EQ(sn_cancel(holder, NULL), 0);
    return 0;
}

/* ---- the other locks with a holder --- */

static struct {
    sn_rwlock rw;
    sn_once once;
} odd;

static int write_then_once(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_rwlock_lock(&odd.rw, SN_FOREVER), 0);
    CHECK_EQ(sn_latch_arrive(&two.both, 1), 0);
    CHECK_EQ(sn_latch_wait(&two.both, SN_FOREVER), 0);
    int rc = sn_once_begin(&odd.once, SN_FOREVER);
    CHECK_EQ(sn_rwlock_unlock(&odd.rw), 0);
    return rc;
}

static int once_then_read(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_once_begin(&odd.once, SN_FOREVER), 1);
    CHECK_EQ(sn_latch_arrive(&two.both, 1), 0);
    CHECK_EQ(sn_latch_wait(&two.both, SN_FOREVER), 0);
    int rc = sn_rwlock_lock_shared(&odd.rw, SN_FOREVER);
    CHECK_EQ(sn_once_end(&odd.once, 0), 0);
    if (rc == 0)
        CHECK_EQ(sn_rwlock_unlock_shared(&odd.rw), 0);
    return rc;
}

TASK_TEST(a_writer_and_who_does_something_once_are_known_as_holders)
{
    (void)arg;
    odd.rw = (sn_rwlock)SN_RWLOCK_INIT;
    odd.once = (sn_once)SN_ONCE_INIT;
    two.both = (sn_latch)SN_LATCH_INIT(2);
    sn_task *writer = sn_spawn(write_then_once, NULL, .name = "writer");
    sn_task *reader = sn_spawn(once_then_read, NULL, .name = "reader");
    struct found found = until_cycles(1);
    CHECK_EQ(found.n, 2);
    CHECK_STR_EQ(named(&found, "writer")->waits, "once");
    CHECK_STR_EQ(named(&found, "reader")->waits, "rwlock");
    CHECK_EQ(sn_cancel(reader, NULL), -ECANCELED);
    CHECK_EQ(sn_join(writer, NULL), 0);
    return 0;
}

/* ---- coroutines --- */

typedef struct join_other {
    sn_coro coro;
    sn_task **other;
    sn_event *go;
    sn_sync_state wait;
    sn_join_state join;
    int rc;
} join_other;

SN_CORO(join_other, self)
{
    SN_BEGIN(self);
    SN_AWAIT_INTO(self->rc, sn_event_wait_op(&self->wait, self->go));
    SN_AWAIT_INTO(self->rc, sn_join_op(&self->join, *self->other, NULL));
    SN_RETURN(self->rc);
    SN_END();
}

static sn_task *pair[2];

static int find_pair(void *arg)
{
    ring.go = (sn_event)SN_EVENT_INIT;
    for (int i = 0; i < 2; i++) {
        join_other frame = {.other = &pair[1 - i], .go = &ring.go};
        pair[i] = sn_spawn_coro(join_other, &frame, .name = i == 0 ? "this" : "that");
    }
    CHECK_EQ(sn_event_set(&ring.go), 0);
    struct found found = until_cycles(1);
    CHECK_EQ(found.n, 2);
    CHECK_EQ(named(&found, "this")->owner, named(&found, "that")->id);
    return *(int *)arg;
}

TEST(coroutines_that_join_each_other_are_a_cycle)
{
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
    CHECK_EQ(sn_runtime_block_on(rt, find_pair, &(int){7}), 7);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_NOWAIT), 2);
    sn_runtime_destroy(rt);
}

/* ---- what is none --- */

static int lock_with_deadline(void *arg)
{
    const struct order *order = arg;
    CHECK_EQ(sn_mutex_lock(order->first, SN_FOREVER), 0);
    CHECK_EQ(sn_latch_arrive(&two.both, 1), 0);
    CHECK_EQ(sn_latch_wait(&two.both, SN_FOREVER), 0);
    int rc = sn_mutex_lock(order->second, sn_after(SN_S(1000)));
    if (rc == 0)
        CHECK_EQ(sn_mutex_unlock(order->second), 0);
    CHECK_EQ(sn_mutex_unlock(order->first), 0);
    return rc;
}

TASK_TEST(a_wait_with_a_deadline_is_in_no_cycle)
{
    (void)arg;
    two.a = two.b = (sn_mutex)SN_MUTEX_INIT;
    two.both = (sn_latch)SN_LATCH_INIT(3);
    struct order one = {&two.a, &two.b}, other = {&two.b, &two.a};
    sn_task *left = sn_spawn(lock_in_order, &one, .name = "left");
    sn_task *right = sn_spawn(lock_with_deadline, &other, .name = "right");
    CHECK_EQ(sn_latch_arrive(&two.both, 1), 0);
    CHECK_EQ(sn_latch_wait(&two.both, SN_FOREVER), 0); /* each has its first lock */
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(sn_deadlocks(NULL, note, NULL), 0);
        CHECK_EQ(sn_sleep(SN_US(100)), 0);
    }
    CHECK_EQ(sn_cancel(right, NULL), -ECANCELED);
    CHECK_EQ(sn_join(left, NULL), 0);
    return 0;
}

/* A busy program in which everything waits for everything, but never in a cycle. */
static struct {
    sn_mutex locks[4];
    SN_CHAN(int) news;
    bool over;
} busy;

static int take_turns(void *arg)
{
    for (int i = 0; i < 400; i++) {
        sn_mutex *low = &busy.locks[i % 3], *high = &busy.locks[i % 3 + 1];
        CHECK_EQ(sn_mutex_lock(low, SN_FOREVER), 0);
        CHECK_EQ(sn_mutex_lock(high, SN_FOREVER), 0);
        sn_yield();
        CHECK_EQ(sn_mutex_unlock(high), 0);
        CHECK_EQ(sn_mutex_unlock(low), 0);
        if (i % 8 == 0 && arg == NULL)
            CHECK_EQ(sn_join(sn_spawn(take_turns, &busy), NULL), 0);
        if (arg != NULL && i == 4)
            return 0;
    }
    return 0;
}

static int look_often(void *arg)
{
    const bool *over = arg;
    while (!__atomic_load_n(over, __ATOMIC_ACQUIRE)) {
        CHECK_EQ(sn_deadlocks(NULL, note, NULL), 0);
        sn_yield();
    }
    return 0;
}

TASK_TEST(a_busy_program_has_no_cycles_whenever_one_looks)
{
    (void)arg;
    for (int i = 0; i < 4; i++)
        busy.locks[i] = (sn_mutex)SN_MUTEX_INIT;
    __atomic_store_n(&busy.over, false, __ATOMIC_RELEASE);
    sn_task *eye = sn_spawn(look_often, &busy.over, .name = "eye");
    sn_task *tasks[8];
    for (int i = 0; i < 8; i++)
        tasks[i] = sn_spawn(take_turns, NULL);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(sn_join(tasks[i], NULL), 0);
    __atomic_store_n(&busy.over, true, __ATOMIC_RELEASE);
    CHECK_EQ(sn_join(eye, NULL), 0);
    return 0;
}

TEST(who_is_no_task_must_say_which_runtime_it_means)
{
    CHECK_EQ(sn_deadlocks(NULL, NULL, NULL), -EINVAL);
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, NULL), 0);
    CHECK_EQ(sn_deadlocks(rt, NULL, NULL), 0);
    sn_runtime_destroy(rt);
}

/* ---- in words --- */

static int print_cycle(void *arg)
{
    two.a = two.b = (sn_mutex)SN_MUTEX_INIT;
    two.both = (sn_latch)SN_LATCH_INIT(2);
    struct order one = {&two.a, &two.b}, other = {&two.b, &two.a};
    sn_task *left = sn_spawn(lock_in_order, &one, .name = "left");
    sn_task *right = sn_spawn(lock_in_order, &other, .name = "right");
    (void)until_cycles(1);
    CHECK_EQ(sn_deadlocks(NULL, NULL, NULL), 1);
    CHECK_EQ(sn_cancel(left, NULL), -ECANCELED);
    return sn_join(right, NULL) + *(int *)arg;
}

static int run_print_cycle(void *arg)
{
    return run_with(&(sn_runtime_options){.single_threaded = true}, print_cycle, arg);
}

TEST(a_cycle_is_printed_with_names_places_and_waits)
{
    struct said said = listen_to(run_print_cycle, &(int){0});
    CHECK_EQ(said.result, 0);
    CHECK_STR_HAS(said.text, "sinew: deadlock: tasks that wait for each other:\n");
    CHECK_STR_HAS(said.text, "sinew:   task 2 \"left\", spawned at ");
    CHECK_STR_HAS(said.text, "observe/test_deadlocks.c:");
    CHECK_STR_HAS(said.text, ", waits at mutex 0x");
    CHECK_STR_HAS(said.text, ", held by task 3 \"right\"\n");
    CHECK_STR_HAS(said.text, ", held by task 2 \"left\"\n");
    free(said.text);
}
