/* SPDX-License-Identifier: MIT */
/* A runtime that gives its tasks up is there until whoever is just making one of them runnable,
 * from elsewhere, has done so (R151). The runtime is one of the test's own, in which that takes
 * long: until the runtime is gone, or it is sure that it waits. tests/model explores all
 * interleavings; here are real threads. */
#include "harness.h"

#include "plat/clock.h"
#include "plat/thread.h"
#include "task/state.h"
#include "task/task.h"

#include <setjmp.h>
#include <sinew/sinew.h>

enum { PATIENCE_MS = 200 };

typedef SNI_ATOMIC(uint32_t) flag;

static struct {
    struct sni_record_cache records;
    flag entered;  /* somebody makes a task runnable     */
    flag gone;     /* all tasks were given up            */
    flag was_gone; /* before that one had come to its end */
} here;

/* seq_cst, all: it is a test of who comes first, not of orders */
static void await(const flag *f)
{
    while (sni_atomic_load(f, seq_cst) == 0)
        sni_plat_thread_yield();
}

static void make_runnable(void)
{
    sni_atomic_store(&here.entered, 1, seq_cst);
    uint32_t nobody = 0;
    for (int i = 0; i < PATIENCE_MS && sni_atomic_load(&here.gone, seq_cst) == 0; i++)
        (void)sni_plat_park(&nobody, 0, sni_plat_now_ns() + 1000000);
    sni_atomic_store(&here.was_gone, sni_atomic_load(&here.gone, seq_cst), seq_cst);
}

/* ---- a waker -------------------------------------------------------------------------------- */

static int new_record(struct sni_home *home, struct sni_exec *exec, size_t bytes,
                      struct sni_record **out, uint64_t *id)
{
    (void)home;
    (void)exec;
    *id = 1;
    return sni_record_get(&here.records, bytes, out);
}

static void ready(struct sni_task *task)
{
    (void)task;
    make_runnable();
}

static const struct sni_home_ops home_ops = {.new_record = new_record, .ready = ready};
static struct sni_home home = {&home_ops};
static sn_waker waker;

static sn_poll leave_waker(sn_future *fut, sn_cx *cx)
{
    (void)fut;
    waker = sn_waker_clone(cx->waker);
    return SN_PENDING;
}

static void wake(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_waker_wake(&waker), 0);
}

TEST(a_runtime_is_there_until_a_waker_has_queued_its_task)
{
    static const sn_future_vtable vtable = {.poll = leave_waker, .name = "leaves"};
    static const sn_spawn_options opts = {.at_ = "here"};
    struct sni_arena *arena;
    CHECK_EQ(sni_arena_get(&arena), 0);
    sni_record_cache_init(&here.records, arena);
    sn_future future;
    struct sni_spawn what = {.kind = SNI_TASK_CORO,
                             .future = sn_future_init(&future, &vtable),
                             .frame = &future,
                             .frame_bytes = sizeof(future),
                             .opts = &opts};
    struct sni_task *task;
    CHECK_EQ(sni_task_new(&home, NULL, &what, false, &task), 0);
    struct sni_task_exec exec = {.home = &home};
    CHECK(!sni_task_poll(&exec, task));

    struct sni_thread thread;
    CHECK_EQ(sni_plat_thread_start(&thread, wake, NULL, NULL, 0), 0);
    await(&here.entered);
    CHECK(sni_task_hold(task, &home));
    sni_task_abandon(task);
    sni_atomic_store(&here.gone, 1, seq_cst);
    CHECK_EQ(sni_plat_thread_join(&thread), 0);
    CHECK_EQ(sni_atomic_load(&here.was_gone, seq_cst), 0);
    sni_record_cache_finish(&here.records);
}

/* ---- a fiber that joins ---------------------------------------------------------------------- */

static struct sni_task fiber;
static struct sni_stack stack;
static flag sleeps;
static jmp_buf out;

static void suspend(struct sni_exec *exec, struct sni_waiter *w)
{
    (void)exec;
    (void)w;
    CHECK(!sni_task_parked(&fiber));
    sni_atomic_store(&sleeps, 1, seq_cst);
    await(&here.gone);
    _longjmp(out, 1);
}

static void resume(void *who)
{
    CHECK_PTR_EQ(who, &fiber);
    make_runnable();
}

static const struct sni_exec_ops exec_ops = {
    .suspend = suspend,
    .resume = resume,
    .resume_last = resume,
    .lent_at = offsetof(struct sni_task, lent),
    .wait_at = offsetof(struct sni_task, wait),
};

static void join_elsewhere(void *handle)
{
    struct sni_task_exec me = {.exec = {.ops = &exec_ops, .fiber = &fiber}, .home = &home};
    sni_exec_set(&me.exec);
    if (_setjmp(out) == 0) {
        (void)sn_join(handle, NULL);
        FAIL("a fiber went on that was given up");
    }
    sni_exec_set(NULL);
}

static int wait_for(void *event)
{
    return sn_event_wait(event, SN_FOREVER);
}

TEST(a_runtime_is_there_until_an_end_elsewhere_has_queued_who_joined)
{
    sn_event event = SN_EVENT_INIT;
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 1}), 0);
    sn_task *handle = sn_runtime_spawn(rt, wait_for, &event);
    fiber = (struct sni_task){.kind = SNI_TASK_FIBER, .stack = &stack};
    sni_atomic_store(&fiber.home_, &home, seq_cst);
    sni_atomic_store(&fiber.wait, SNI_WAIT_CLAIMED, seq_cst);
    sni_atomic_store(&fiber.state, 3 * REF, seq_cst); /* its own, who gives it up, and one for us */

    struct sni_thread thread;
    CHECK_EQ(sni_plat_thread_start(&thread, join_elsewhere, handle, NULL, 0), 0);
    await(&sleeps);
    sn_event_set(&event);
    await(&here.entered);
    sni_task_abandon(&fiber);
    sni_atomic_store(&here.gone, 1, seq_cst);
    CHECK_EQ(sni_plat_thread_join(&thread), 0);
    sn_runtime_destroy(rt); /* its worker has come to its end */
    CHECK_EQ(sni_atomic_load(&here.was_gone, seq_cst), 0);
}

/* ---- what sanitizers know of a stack --------------------------------------------------------- */

#if SNI_ADDRESS_SANITIZED
#include <sanitizer/asan_interface.h>

static struct {
    char *lo;
    SNI_ATOMIC(uint32_t) is_there;
} frame;

static int wait_with_red_zones(void *event)
{
    volatile char text[64]; /* has red zones around it */
    text[0] = 0;
    frame.lo = (char *)text - 32;
    CHECK(__asan_region_is_poisoned(frame.lo, 128) != NULL);
    sni_atomic_store(&frame.is_there, 1, seq_cst);
    return sn_event_wait(event, SN_FOREVER) + text[0];
}

TEST(the_stack_of_a_task_that_was_given_up_leaves_no_red_zones_behind)
{
    sn_event event = SN_EVENT_INIT;
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 1}), 0);
    CHECK_EQ(sn_detach(sn_runtime_spawn(rt, wait_with_red_zones, &event)), 0);
    while (sni_atomic_load(&frame.is_there, seq_cst) == 0)
        sni_plat_thread_yield();
    CHECK_EQ(sn_runtime_shutdown(rt, SN_NOWAIT), 1);
    sn_runtime_destroy(rt);
    CHECK_PTR_EQ(__asan_region_is_poisoned(frame.lo, 128), NULL);
}
#endif
