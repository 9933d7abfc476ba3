/* SPDX-License-Identifier: MIT */
/* leaking.h - programs that leave tasks behind which nobody can wake. */
#ifndef SINEW_TESTS_OBSERVE_LEAKING_H
#define SINEW_TESTS_OBSERVE_LEAKING_H

#include "unit/task/with_runtime.h"

/* Run the body on runtimes of two kinds, and give up the tasks that it leaves behind. Each in a
 * process of its own: what a runtime had on the heap may still be there when it is gone. */
#define LEAK_TEST(name)                                                             \
    static int name##_body(void *arg);                                              \
    TEST(name##_on_level_1)                                                         \
    {                                                                               \
        run_and_leave(&(sn_runtime_options){.single_threaded = true}, name##_body); \
    }                                                                               \
    TEST(name##_on_level_2)                                                         \
    {                                                                               \
        run_and_leave(&(sn_runtime_options){.workers = 3}, name##_body);            \
    }                                                                               \
    static int name##_body(__attribute__((unused)) void *arg)

static inline void run_and_leave(const sn_runtime_options *opts, sn_task_fn *fn)
{
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, opts), 0);
    CHECK_EQ(sn_runtime_block_on(rt, fn, NULL), 0);
    (void)sn_runtime_shutdown(rt, SN_NOWAIT);
    sn_runtime_destroy(rt);
}

/* Channels have no room, so that nothing of them is on the heap. */
static inline sn_chan *channel(void)
{
    sn_chan *ch;
    CHECK_EQ(sn_chan_create(&ch, sizeof(sn_chan *), 0, NULL), 0);
    return ch;
}

static inline int recv_from(sn_chan *ch)
{
    sn_chan *value;
    return sn_chan_recv(ch, &value, SN_FOREVER);
}

struct begin {
    sn_task_fn *fn;
    const char *name;
};

static inline int begin_it(void *arg)
{
    const struct begin *what = arg;
    return sn_spawn_detached(what->fn, NULL, .name = what->name);
}

/* Spawn in another task, whose stack goes away: ours would keep words of it. Once in a test, and
 * the last that is spawned: who has joined it may still have a pointer to its record, which may be
 * another's by then. */
static inline void begin(sn_task_fn *fn, const char *name)
{
    CHECK_EQ(sn_join(sn_spawn(begin_it, (&(struct begin){fn, name})), NULL), 0);
}

#endif
