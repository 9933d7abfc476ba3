/* SPDX-License-Identifier: MIT */
/* Trees of tasks that open scopes, wait, fail, panic, shield themselves, run out of time, leave
 * early and cancel one another, at random (R60-R63). Whatever happens, when a scope is left nobody
 * is alive in it: children count themselves in and out in a variable of their parent's frame. */
#include "stress/cancel_storm.h"

#include "unit/task/with_runtime.h"

struct branch {
    uint32_t seed;
    int depth;
    atomic_int *inside; /* in the parent's frame */
    sn_group *parents;  /* the group it is in */
};

static atomic_uint tasks, cancels;
static sn_event never = SN_EVENT_INIT;
static sn_mutex mutex = SN_MUTEX_INIT;
static sn_chan *chan;

typedef struct leaf {
    sn_coro coro;
    sn_sleep_state nap;
    atomic_int *inside;
    int64_t ns;
    bool has_begun;
} leaf;

SN_CORO(leaf, self)
{
    SN_BEGIN(self);
    atomic_fetch_add(self->inside, 1);
    self->has_begun = true;
    SN_AWAIT(sn_sleep_op(&self->nap, sn_after(self->ns)));
    SN_FINALLY();
    if (self->has_begun)
        atomic_fetch_sub(self->inside, 1);
    SN_END();
}

static int wait_somehow(struct dice *d)
{
    int v = 0;
    int rc;
    switch (roll(d) % 6) {
    case 0:
        return sn_sleep(SN_US(roll(d) % 200));
    case 1:
        return sn_event_wait(&never, sn_after(SN_US(roll(d) % 100)));
    case 2:
        rc = sn_mutex_lock(&mutex, SN_FOREVER);
        if (rc == 0) {
            sn_yield();
            CHECK_EQ(sn_mutex_unlock(&mutex), 0);
        }
        return rc;
    case 3:
        return roll(d) % 2 ? sn_chan_send(chan, &v, sn_after(SN_US(50)))
                           : sn_chan_recv(chan, &v, sn_after(SN_US(50)));
    case 4:
        sn_yield();
        return 0;
    default:
        SN_SHIELD(sn_after(SN_US(50))) {
            return sn_sleep(SN_US(roll(d) % 100));
        }
        return 0;
    }
}

static int grow(void *arg);

static void spawn_some(struct dice *d, sn_group *g, struct branch *children, atomic_int *inside,
                       int depth)
{
    for (int i = 0; i < 4; i++) {
        children[i] = (struct branch){roll(d) | 1, depth - 1, inside, g};
        if (roll(d) % 5 == 0) {
            leaf frame = {.inside = inside, .ns = SN_US(roll(d) % 100)};
            (void)sn_group_spawn_coro(g, leaf, &frame);
        } else {
            (void)sn_group_spawn(g, grow, &children[i], .background = roll(d) % 6 == 0,
                                 .stack_bytes = 16384);
        }
    }
}

static int open_scope(struct dice *d, int depth)
{
    struct branch children[4];
    atomic_int inside = 0;
    int rc = 0;
    sn_deadline until = roll(d) % 4 == 0 ? sn_after(SN_US(roll(d) % 300)) : SN_FOREVER;
    SN_SCOPE(g, .policy = roll(d) % 2 ? SN_FAIL_FAST : SN_COLLECT_ALL, .until = until,
             .limit = roll(d) % 3 == 0 ? 2 : 0, .result = &rc) {
        spawn_some(d, g, children, &inside, depth);
        uint32_t then = roll(d) % 8;
        if (then == 0)
            break;
        if (then == 1) {
            atomic_fetch_add(&cancels, 1);
            sn_group_cancel(g, "at random");
        }
        if (then == 2 && wait_somehow(d) < 0)
            break;
        if (then == 3)
            (void)sn_group_join(g, SN_FOREVER);
    }
    CHECK_EQ(atomic_load(&inside), 0);
    return rc;
}

static int count_out(void *arg)
{
    struct branch *b = arg;
    atomic_fetch_sub(b->inside, 1);
    return 0;
}

static int grow(void *arg)
{
    struct branch *b = arg;
    struct dice d = {b->seed};
    int rc = 0;
    atomic_fetch_add(b->inside, 1);
    atomic_fetch_add(&tasks, 1);
    CHECK_EQ(sn_ensure(count_out, b), 0);
    for (uint32_t n = roll(&d) % 4; n > 0 && rc >= 0; n--)
        rc = wait_somehow(&d);
    if (b->depth > 0)
        rc = open_scope(&d, b->depth);
    switch (roll(&d) % 24) {
    case 0:
        return -EIO;
    case 1:
        sn_panic("at random");
    case 2:
        atomic_fetch_add(&cancels, 1);
        sn_group_cancel(b->parents, "by a child");
        return 0;
    default:
        return rc == -EIO ? 0 : rc;
    }
}

static int plant(void *arg)
{
    const int rounds = *(const int *)arg;
    struct dice d = dice_for(99);
    CHECK_EQ(sn_chan_create(&chan, sizeof(int), 4, NULL), 0);
    for (int i = 0; i < rounds; i++) {
        atomic_int inside = 0;
        struct branch root = {roll(&d) | 1, 4, &inside, NULL};
        SN_SCOPE(g, .policy = SN_COLLECT_ALL, .until = sn_after(SN_US(roll(&d) % 5000))) {
            root.parents = g;
            (void)sn_group_spawn(g, grow, &root); /* unless its time is up already */
        }
        CHECK_EQ(atomic_load(&inside), 0);
    }
    CHECK(sn_mutex_lock(&mutex, SN_NOWAIT) == 0);
    CHECK_EQ(sn_mutex_unlock(&mutex), 0);
    CHECK_EQ(sn_chan_destroy(chan), 0);
    return 0;
}

static void storm_of_trees(const sn_runtime_options *opts, int rounds)
{
    rounds /= STORM_SLOW;
    CHECK_EQ(run_with(opts, plant, &rounds), 0);
    CHECK_GT(atomic_load(&tasks), (unsigned)rounds);
    CHECK_GT(atomic_load(&cancels), 0u);
}

TEST(trees_of_tasks_leave_nobody_behind_on_one_thread, .limit_s = 100)
{
    storm_of_trees(&(sn_runtime_options){.single_threaded = true}, 2000);
}

TEST(trees_of_tasks_leave_nobody_behind_on_four, .limit_s = 100)
{
    storm_of_trees(&(sn_runtime_options){.workers = 4}, 2000);
}

TEST(trees_of_tasks_leave_nobody_behind_in_lifo_order, .limit_s = 100)
{
    storm_of_trees(&(sn_runtime_options){.workers = 3, .lifo = true}, 2000);
}

TEST(trees_of_tasks_leave_nobody_behind_in_the_order_of_a_seed, .limit_s = 100)
{
    uint64_t seed = test_seed() % 100000 + 1;
    storm_of_trees(&(sn_runtime_options){.single_threaded = true, .seed = seed}, 2000);
}
