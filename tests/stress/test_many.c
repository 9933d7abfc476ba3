/* SPDX-License-Identifier: MIT */
/* A million tasks alive at once (R51, R3): fibers with guarded stacks at the system's stock limit
 * of mappings, and coroutine tasks; a hundred runtimes (R2); and what each of them costs. */
#include "harness.h"
#include "stress/gate.h"

#include <sinew/sinew.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MILLION = 1000000,
};

static struct gate gate;
static atomic_int arrived;

static size_t resident_bytes(void)
{
    char *text = read_file("/proc/self/status");
    size_t kb = (size_t)atol(strstr(text, "VmRSS:") + 6);
    free(text);
    return kb << 10;
}

static int count_maps(void)
{
    struct command c = run_command("wc -l < /proc/$PPID/maps");
    int lines = atoi(c.output);
    command_finish(&c);
    return lines;
}

static int wait_at_gate(void *arg)
{
    atomic_fetch_add(&arrived, 1);
    gate_pass(&gate);
    return (int)(intptr_t)arg % 7;
}

static int a_million_fibers(void *arg)
{
    (void)arg;
    sn_task **t = malloc(sizeof(*t) * MILLION);
    size_t before = resident_bytes();
    for (intptr_t i = 0; i < MILLION; i++) {
        t[i] = sn_spawn(wait_at_gate, (void *)i);
        CHECK(t[i] != NULL);
    }
    while (gate_waiting(&gate) < MILLION)
        sn_yield();
    size_t each = (resident_bytes() - before) / MILLION;
    int maps = count_maps();
    printf("a million fibers: %zu bytes each, %d mappings\n", each, maps);
    CHECK_LE(each, 4096 + 512);
    CHECK_LE(maps, 10000);
    gate_let(&gate, SIZE_MAX);
    long sum = 0;
    for (int i = 0; i < MILLION; i++)
        sum += sn_join(t[i], NULL);
    CHECK_EQ(sum, 2999997);
    free(t);
    return 0;
}

static void run_million(sn_task_fn *fn, const sn_runtime_options *opts)
{
    sn_runtime *rt;
    gate_init(&gate);
    CHECK_EQ(sn_runtime_create(&rt, opts), 0);
    CHECK_EQ(sn_runtime_block_on(rt, fn, NULL), 0);
    sn_runtime_destroy(rt);
}

TEST(a_million_fibers_sleep_at_once_at_one_page_each, .limit_s = 120)
{
    run_million(a_million_fibers, &(sn_runtime_options){.workers = 2});
}

/* ---- coroutine tasks -------------------------------------------------------------------- */

typedef struct sleeper {
    sn_coro coro;
    sn_future until_woken;
    int index;
} sleeper;

static sn_waker *wakers;
static atomic_bool awake;

static sn_poll poll_until_woken(sn_future *fut, sn_cx *cx)
{
    sleeper *self = (sleeper *)((char *)fut - offsetof(sleeper, until_woken));
    if (atomic_load(&awake))
        return SN_READY(self->index % 7);
    if (wakers[self->index].vt == NULL) {
        wakers[self->index] = sn_waker_clone(cx->waker);
        atomic_fetch_add(&arrived, 1);
    }
    return SN_PENDING;
}

static const sn_future_vtable until_woken_kind = {.poll = poll_until_woken};

SN_CORO(sleeper, self)
{
    int rc;
    SN_BEGIN(self);
    SN_AWAIT_INTO(rc, sn_future_init(&self->until_woken, &until_woken_kind));
    SN_RETURN(rc);
    SN_END();
}

static int a_million_coroutines(void *arg)
{
    (void)arg;
    sn_task **t = malloc(sizeof(*t) * MILLION);
    memset(t, 0, sizeof(*t) * MILLION);
    memset(wakers, 0, sizeof(*wakers) * MILLION);
    size_t before = resident_bytes();
    for (int i = 0; i < MILLION; i++) {
        sleeper frame = {.index = i};
        t[i] = sn_spawn_coro(sleeper, &frame);
        CHECK(t[i] != NULL);
    }
    while (atomic_load(&arrived) < MILLION)
        sn_yield();
    size_t each = (resident_bytes() - before) / MILLION;
    printf("a million coroutine tasks: %zu bytes each, %zu of them the frame\n", each,
           sizeof(sleeper));
    CHECK_LE(each, 160 + sizeof(sleeper));
    atomic_store(&awake, true);
    for (int i = 0; i < MILLION; i++)
        CHECK_EQ(sn_waker_wake(&wakers[i]), 0);
    long sum = 0;
    for (int i = 0; i < MILLION; i++)
        sum += sn_join(t[i], NULL);
    CHECK_EQ(sum, 2999997);
    free(t);
    return 0;
}

TEST(a_million_coroutine_tasks_sleep_at_once_at_160_bytes_and_a_frame, .limit_s = 120)
{
    wakers = malloc(sizeof(*wakers) * MILLION);
    run_million(a_million_coroutines, &(sn_runtime_options){.workers = 2});
    free(wakers);
}

/* ---- runtimes --------------------------------------------------------------------------- */

static size_t anonymous_bytes(void)
{
    char *text =
        read_file("/proc/self/smaps_rollup"); /* exact, where VmRSS is counted in batches */
    size_t kb = (size_t)atol(strstr(text, "Anonymous:") + 10);
    free(text);
    return kb << 10;
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* Two pages of structures and a stack are three; alone in its page, the end of a block is a fourth.
 * Exact figures, also of runtimes with threads: bench, micro_runtime. */
TEST(a_hundred_single_threaded_runtimes_cost_a_few_pages_each)
{
    enum { RUNTIMES = 100, MOST_BYTES = 16 << 10 };
    const sn_runtime_options opts = {.single_threaded = true, .io = SN_IO_POLL};
    sn_runtime *rt[RUNTIMES + 1];
    size_t before = 0;
    for (int i = 0; i <= RUNTIMES; i++) {
        CHECK_EQ(sn_runtime_create(&rt[i], &opts), 0);
        CHECK_EQ(sn_runtime_block_on(rt[i], do_nothing, NULL), 0);
        if (i == 0)
            before = anonymous_bytes(); /* the first has what is the process's */
    }
    size_t each = (anonymous_bytes() - before) / RUNTIMES;
    printf("a hundred runtimes: %zu bytes each\n", each);
    CHECK_LE(each, MOST_BYTES);
    for (int i = 0; i <= RUNTIMES; i++)
        sn_runtime_destroy(rt[i]);
}
