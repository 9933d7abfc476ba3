/* SPDX-License-Identifier: MIT */
/* Options of a runtime beyond the number of workers (R150), and how deep stacks were (R51). */
#include "unit/task/with_runtime.h"

#include <sinew/errno.h>
#include <stdatomic.h>
#include <string.h>

/* ---- hooks ---------------------------------------------------------------------------------- */

struct counts {
    atomic_int started, stopped, spawned, ended, named;
};

static void thread_started(unsigned worker, void *arg)
{
    CHECK_LT(worker, 3u);
    CHECK_EQ(sn_task_id(), 0);
    atomic_fetch_add(&((struct counts *)arg)->started, 1);
}

static void thread_stops(unsigned worker, void *arg)
{
    CHECK_LT(worker, 3u);
    atomic_fetch_add(&((struct counts *)arg)->stopped, 1);
}

static void task_spawned(uint64_t id, const char *name, const char *at, void *arg)
{
    CHECK(id > 0 && at != NULL);
    atomic_fetch_add(&((struct counts *)arg)->spawned, 1);
    if (name != NULL && strcmp(name, "child") == 0)
        atomic_fetch_add(&((struct counts *)arg)->named, 1);
}

static void task_ended(uint64_t id, const char *name, const char *at, void *arg)
{
    (void)name;
    CHECK(id > 0 && at != NULL);
    atomic_fetch_add(&((struct counts *)arg)->ended, 1);
}

static int child(void *arg)
{
    (void)arg;
    return 0;
}

static int panics(void *arg)
{
    (void)arg;
    sn_panic("on purpose");
}

typedef struct tiny {
    sn_coro coro;
} tiny;

SN_CORO(tiny, self)
{
    SN_BEGIN(self);
    SN_END();
}

static int some_children(void *arg)
{
    (void)arg;
    tiny frame;
    CHECK_EQ(sn_join(sn_spawn(child, NULL, .name = "child"), NULL), 0);
    CHECK_EQ(sn_join(sn_spawn(panics, NULL), NULL), -ECONNABORTED);
    CHECK_EQ(sn_join(sn_spawn_coro(tiny, &frame), NULL), 0);
    return 0;
}

TEST(hooks_are_told_of_threads_and_tasks)
{
    struct counts c = {0};
    sn_runtime_options opts = {.workers = 3,
                               .hooks = {.thread_started = thread_started,
                                         .thread_stops = thread_stops,
                                         .task_spawned = task_spawned,
                                         .task_ended = task_ended,
                                         .arg = &c}};
    CHECK_EQ(run_with(&opts, some_children, NULL), 0);
    CHECK_EQ(atomic_load(&c.started), 3);
    CHECK_EQ(atomic_load(&c.stopped), 3);
    CHECK_EQ(atomic_load(&c.spawned), 4);
    CHECK_EQ(atomic_load(&c.ended), 4);
    CHECK_EQ(atomic_load(&c.named), 1);
}

TEST(a_single_threaded_runtime_has_no_threads_to_tell_of)
{
    struct counts c = {0};
    sn_runtime_options opts = {.single_threaded = true,
                               .hooks = {.thread_started = thread_started,
                                         .task_spawned = task_spawned,
                                         .task_ended = task_ended,
                                         .arg = &c}};
    CHECK_EQ(run_with(&opts, some_children, NULL), 0);
    CHECK_EQ(atomic_load(&c.started), 0);
    CHECK_EQ(atomic_load(&c.spawned), 4);
    CHECK_EQ(atomic_load(&c.ended), 4);
}

/* ---- the capacity of queues ------------------------------------------------------------------ */

static int a_thousand(void *arg)
{
    (void)arg;
    sn_task *t[1000];
    for (int i = 0; i < 1000; i++)
        CHECK((t[i] = sn_spawn(child, NULL)) != NULL);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    return 0;
}

TEST(queues_of_any_capacity_lose_nothing)
{
    static const unsigned capacities[] = {2, 4, 64, 65536};
    for (int i = 0; i < 4; i++)
        for (int kind = 0; kind < 4; kind++) {
            sn_runtime_options opts = {.workers = 2,
                                       .single_threaded = kind % 2 == 0,
                                       .lifo = kind / 2 == 0,
                                       .queue_capacity = capacities[i]};
            CHECK_EQ(run_with(&opts, a_thousand, NULL), 0);
        }
}

TEST(a_capacity_that_is_no_power_of_two_is_refused)
{
    static const unsigned wrong[] = {1, 3, 100, 131072};
    sn_runtime *rt;
    for (int i = 0; i < 4; i++)
        CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.queue_capacity = wrong[i]}),
                 -EINVAL);
}

TEST(pinned_workers_steal_too)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 2, .pin = true}, a_thousand, NULL), 0);
}

/* ---- how deep stacks were -------------------------------------------------------------------- */

static int use_stack(void *arg)
{
    volatile char room[40000];
    for (size_t i = 0; i < sizeof(room); i += 256)
        room[i] = 1;
    return arg != NULL ? room[0] : 0;
}

static int deep_and_flat(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(sn_join(sn_spawn(use_stack, NULL), NULL), 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(sn_join(sn_spawn(child, NULL), NULL), 0);
    return 0;
}

struct seen {
    int places;
    size_t deep, flat;
};

static void note(const char *at, size_t bytes, uint64_t fibers, void *arg)
{
    struct seen *seen = arg;
    CHECK(at != NULL);
    seen->places++;
    if (fibers == 3)
        seen->deep = bytes;
    if (fibers == 5)
        seen->flat = bytes;
}

TEST(how_deep_stacks_were_is_known_by_the_place_of_their_spawn)
{
    sn_runtime *rt;
    struct seen seen = {0};
    sn_runtime_options opts = {.workers = 1, .measure_stacks = true};
    CHECK_EQ(sn_runtime_create(&rt, &opts), 0);
    CHECK_EQ(sn_runtime_block_on(rt, deep_and_flat, NULL), 0);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    int places = sn_runtime_stacks(rt, note, &seen);
    CHECK_EQ(places, seen.places);
    CHECK_EQ(places, 3); /* the main task's, too */
    CHECK_GE(seen.deep, 40000);
    CHECK_LE(seen.flat, 32768);
    CHECK_GT(seen.flat, 0);
    sn_runtime_destroy(rt);
}

TEST(unless_asked_for_nobody_measures_stacks)
{
    sn_runtime *rt;
    struct seen seen = {0};
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 1}), 0);
    CHECK_EQ(sn_runtime_block_on(rt, deep_and_flat, NULL), 0);
    CHECK_EQ(sn_runtime_stacks(rt, note, &seen), 0);
    sn_runtime_destroy(rt);
}

/* ---- a task whose data is always there ------------------------------------------------------- */

static atomic_int others_ran;

static int count_turns(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        atomic_fetch_add(&others_ran, 1);
        sn_yield();
    }
    return 0;
}

static int read_without_end(void *arg)
{
    (void)arg;
    sn_conn *pair[2];
    char bytes[64] = {0};
    atomic_store(&others_ran, 0);
    CHECK_EQ(sn_conn_pair(pair), 0);
    sn_task *other = sn_spawn(count_turns, NULL);
    for (int i = 0; i < 3000; i++) { /* neither call ever waits */
        CHECK_EQ(sn_write(pair[0], bytes, sizeof(bytes), SN_FOREVER), 64);
        CHECK_EQ(sn_read(pair[1], bytes, sizeof(bytes), SN_FOREVER), 64);
    }
    CHECK_EQ(atomic_load(&others_ran), 20);
    CHECK_EQ(sn_join(other, NULL), 0);
    CHECK_EQ(sn_close(pair[0]), 0);
    CHECK_EQ(sn_close(pair[1]), 0);
    return 0;
}

typedef struct greedy {
    sn_coro coro;
    sn_io_state io;
    sn_conn **pair;
    char bytes[64];
    int n, i;
} greedy;

SN_CORO(greedy, self)
{
    SN_BEGIN(self);
    for (self->i = 0; self->i < 3000; self->i++) {
        SN_AWAIT_INTO(self->n, sn_write_op(&self->io, self->pair[0], self->bytes, 64));
        SN_AWAIT_INTO(self->n, sn_read_op(&self->io, self->pair[1], self->bytes, 64));
        if (self->n != 64)
            SN_RETURN(-EIO);
    }
    SN_RETURN(atomic_load(&others_ran));
    SN_END();
}

static int await_without_end(void *arg)
{
    (void)arg;
    sn_conn *pair[2];
    atomic_store(&others_ran, 0);
    CHECK_EQ(sn_conn_pair(pair), 0);
    greedy frame = {.pair = pair};
    sn_task *reader = sn_spawn_coro(greedy, &frame);
    sn_task *other = sn_spawn(count_turns, NULL);
    CHECK_EQ(sn_join(reader, NULL), 20); /* the other one was through by then */
    CHECK_EQ(sn_join(other, NULL), 0);
    CHECK_EQ(sn_close(pair[0]), 0);
    CHECK_EQ(sn_close(pair[1]), 0);
    return 0;
}

TEST(a_task_whose_data_is_always_there_gives_way_now_and_then)
{
    const sn_runtime_options opts = {.single_threaded = true};
    CHECK_EQ(run_with(&opts, read_without_end, NULL), 0);
    CHECK_EQ(run_with(&opts, await_without_end, NULL), 0);
}
