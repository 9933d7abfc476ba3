/* SPDX-License-Identifier: MIT */
/* cancel_storm.h - a busy program whose tasks are cancelled at random, again and again (R61).
 *
 * The program gives a function that spawns who runs in a *slot*. Cancellers own some slots each:
 * they pick one, wait for a moment, cancel its task, look at how that ended, and spawn another one
 * in its place, until as many were cancelled as was asked for; then all the rest. What must be
 * conserved, the program checks when everybody is gone. All choices are drawn from the seed of the
 * test; on one thread, with a seed for the order of tasks too, that is all there is to a run. */
#ifndef SINEW_TESTS_CANCEL_STORM_H
#define SINEW_TESTS_CANCEL_STORM_H

#include "harness.h"

#include <sinew/sinew.h>
#include <stdatomic.h>
#include <string.h>

/* How many fewer cancels there are where everything is slow. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STORM_SLOW 4
#endif
#endif
#if !defined(STORM_SLOW) && (defined(__SANITIZE_ADDRESS__) || defined(SINEW_DEBUG))
#define STORM_SLOW 4
#elif !defined(STORM_SLOW)
#define STORM_SLOW 1
#endif

enum { STORM_SLOTS = 32, STORM_CANCELLERS = 4 };

/* Whoever needs a random number. */
struct dice {
    uint32_t state;
};

static inline uint32_t roll(struct dice *d)
{
    d->state ^= d->state << 13;
    d->state ^= d->state >> 17;
    d->state ^= d->state << 5;
    return d->state;
}

static inline struct dice dice_for(uint32_t which)
{
    uint32_t state = ((uint32_t)test_seed() + which) * 2654435761u;
    return (struct dice){state != 0 ? state : 1};
}

/* Mostly without end: then only a cancel can end it. */
static inline sn_deadline some_time(struct dice *d)
{
    return roll(d) % 4 != 0 ? SN_FOREVER : sn_after(SN_US(roll(d) % 300));
}

struct storm {
    sn_task *(*spawn)(int slot, uint32_t dice);
    void (*after_each)(void); /* cancel; may be NULL                              */
    int cancels;              /* of all of its cancellers, before the end         */
    atomic_int left;
    atomic_uint spawned; /* so each has dice of its own                          */
    atomic_int ended_cancelled, ended_otherwise;
};

struct storm_canceller {
    struct storm *storm;
    int first;
};

static inline sn_task *storm_spawn(struct storm *s, int slot)
{
    uint32_t number = atomic_fetch_add(&s->spawned, 1);
    sn_task *task = s->spawn(slot, dice_for(number * 16 + 1).state);
    CHECK(task != NULL);
    return task;
}

static inline void storm_cancel(struct storm *s, sn_task *task)
{
    sn_exit how;
    int rc = sn_cancel(task, &how);
    if (rc != 0 && rc != -ECANCELED)
        FAIL("a cancelled task ended with %d", rc);
    CHECK_EQ(how.kind, rc == 0 ? SN_EXIT_RETURNED : SN_EXIT_CANCELED);
    atomic_fetch_add(rc == 0 ? &s->ended_otherwise : &s->ended_cancelled, 1);
    if (s->after_each != NULL)
        s->after_each();
}

static inline void storm_pause(struct dice *d)
{
    uint32_t turns = roll(d) % 5, spins = roll(d) % 3000;
    switch (roll(d) % 8) {
    case 0:
        CHECK_EQ(sn_sleep(SN_US(1 + roll(d) % 50)), 0);
        break;
    case 1:
    case 2:
        for (volatile uint32_t i = 0; i < spins; i++)
            continue;
        break;
    default:
        for (uint32_t i = 0; i < turns; i++)
            sn_yield();
    }
}

static inline int storm_cancel_some(void *arg)
{
    enum { OWN = STORM_SLOTS / STORM_CANCELLERS };
    struct storm_canceller *c = arg;
    struct dice d = dice_for((uint32_t)c->first + 7);
    sn_task *task[OWN];
    for (int i = 0; i < OWN; i++)
        task[i] = storm_spawn(c->storm, c->first + i);
    while (atomic_fetch_sub(&c->storm->left, 1) > 0) {
        int i = (int)(roll(&d) % OWN);
        storm_pause(&d);
        storm_cancel(c->storm, task[i]);
        task[i] = storm_spawn(c->storm, c->first + i);
    }
    for (int i = 0; i < OWN; i++)
        storm_cancel(c->storm, task[i]);
    return 0;
}

/* Inside a runtime: the whole storm. Nobody of the program is left when it returns. */
static inline void storm_blow(struct storm *s)
{
    struct storm_canceller canceller[STORM_CANCELLERS];
    sn_task *task[STORM_CANCELLERS];
    atomic_store(&s->left, s->cancels);
    for (int i = 0; i < STORM_CANCELLERS; i++) {
        canceller[i] = (struct storm_canceller){s, i * (STORM_SLOTS / STORM_CANCELLERS)};
        task[i] = sn_spawn(storm_cancel_some, &canceller[i]);
    }
    for (int i = 0; i < STORM_CANCELLERS; i++)
        CHECK_EQ(sn_join(task[i], NULL), 0);
    int ended = atomic_load(&s->ended_cancelled) + atomic_load(&s->ended_otherwise);
    CHECK_EQ(ended, s->cancels + STORM_SLOTS);
    CHECK_EQ(atomic_load(&s->spawned), ended);
    CHECK_GT(atomic_load(&s->ended_cancelled), 0);
}

/* Who counts the tasks of a runtime. */
struct storm_count {
    atomic_long spawned, ended;
};

static inline void storm_count_spawned(uint64_t id, const char *name, const char *at, void *arg)
{
    (void)id, (void)name, (void)at;
    atomic_fetch_add(&((struct storm_count *)arg)->spawned, 1);
}

static inline void storm_count_ended(uint64_t id, const char *name, const char *at, void *arg)
{
    (void)id, (void)name, (void)at;
    atomic_fetch_add(&((struct storm_count *)arg)->ended, 1);
}

/* Run `fn` in such a runtime; every task of it ends. */
static inline void storm_run(sn_runtime_options opts, sn_task_fn *fn, void *arg)
{
    struct storm_count count = {0};
    sn_runtime *rt;
    opts.hooks = (sn_hooks){
        .task_spawned = storm_count_spawned, .task_ended = storm_count_ended, .arg = &count};
    int rc = sn_runtime_create(&rt, &opts);
    if (rc < 0 && opts.io == SN_IO_URING)
        SKIP("io_uring is not to be had here: %s", strerror(-rc));
    CHECK_EQ(rc, 0);
    CHECK_EQ(sn_runtime_block_on(rt, fn, arg), 0);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    sn_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&count.spawned), atomic_load(&count.ended));
    CHECK_GT(atomic_load(&count.spawned), STORM_SLOTS);
}

#endif
