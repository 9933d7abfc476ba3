/* SPDX-License-Identifier: MIT */
/* sn_block_on_simple (R12): polls to the end, sleeps by the caller's hook, loses no wake. */
#include "harness.h"

#include <pthread.h>
#include <semaphore.h>
#include <sinew/sinew.h>
#include <stdatomic.h>

TEST(block_on_without_idle_polls_until_ready)
{
    sn_fut_yield y;
    CHECK_EQ(sn_block_on_simple(sn_fut_yield_init(&y), NULL), 0);
}

/* A future that counts polls, keeps the waker, and is ready when told. */
typedef struct held {
    sn_future future;
    sn_waker waker;
    int polls;
    atomic_bool ready;
} held;

static sn_poll held_poll(sn_future *fut, sn_cx *cx)
{
    held *self = (held *)fut;
    self->polls++;
    if (atomic_load(&self->ready))
        return SN_READY(self->polls);
    if (self->waker.vt == NULL)
        self->waker = sn_waker_clone(cx->waker);
    return SN_PENDING;
}

static const sn_future_vtable held_kind = {.poll = held_poll};
static held h = {.future = SN_FUTURE_INIT(&held_kind)};
static int waits;

static void wake_on_third_wait(sn_idle *idle)
{
    CHECK(!sn_idle_woken(idle));
    if (++waits < 3)
        return; /* a hook may return too early */
    atomic_store(&h.ready, true);
    CHECK_EQ(sn_waker_wake(&h.waker), 0);
    CHECK(sn_idle_woken(idle));
}

TEST(block_on_polls_only_after_a_wake)
{
    static sn_idle idle = SN_IDLE_INIT(wake_on_third_wait, NULL);
    CHECK_EQ(sn_block_on_simple(&h.future, &idle), 2);
    CHECK_EQ(waits, 3);
}

static void wake_at_every_wait(sn_idle *idle)
{
    CHECK(!sn_idle_woken(idle));
    atomic_store(&h.ready, ++waits == 5);
    CHECK_EQ(sn_waker_wake_by_ref(&h.waker), 0);
}

TEST(each_wake_is_worth_one_poll)
{
    static sn_idle idle = SN_IDLE_INIT(wake_at_every_wait, NULL);
    CHECK_EQ(sn_block_on_simple(&h.future, &idle), 6);
    CHECK_EQ(waits, 5);
    sn_waker_drop(&h.waker);
}

static void never_called(sn_idle *idle)
{
    (void)idle;
    FAIL("the idle hook ran although a wake was there");
}

TEST(a_wake_during_the_poll_is_not_slept_over)
{
    static sn_idle idle = SN_IDLE_INIT(never_called, NULL);
    sn_fut_yield y; /* wakes inside its poll */
    CHECK_EQ(sn_block_on_simple(sn_fut_yield_init(&y), &idle), 0);
}

static void wake_via_clone(sn_idle *idle)
{
    (void)idle;
    atomic_store(&h.ready, true);
    CHECK_EQ(sn_waker_wake_by_ref(&h.waker), 0);
}

TEST(waking_after_completion_is_answered_with_esrch)
{
    static sn_idle idle = SN_IDLE_INIT(wake_via_clone, never_called);
    idle.notify = NULL;
    CHECK_EQ(sn_block_on_simple(&h.future, &idle), 2);
    idle.notify = never_called; /* nobody is to be notified any more */
    CHECK_EQ(sn_waker_wake_by_ref(&h.waker), -ESRCH);
    CHECK_EQ(sn_waker_wake(&h.waker), -ESRCH);
}

TEST(an_idle_can_be_used_again_after_a_late_wake)
{
    static sn_idle idle = SN_IDLE_INIT(wake_via_clone, NULL);
    CHECK_EQ(sn_block_on_simple(&h.future, &idle), 2);
    CHECK_EQ(sn_waker_wake_by_ref(&h.waker), -ESRCH);
    sn_fut_yield y;
    CHECK_EQ(sn_block_on_simple(sn_fut_yield_init(&y), &idle), 0);
    sn_waker_drop(&h.waker);
}

TEST(block_on_without_a_wait_hook_spins_until_woken)
{
    static sn_idle idle = SN_IDLE_INIT(NULL, NULL);
    sn_fut_yield y;
    CHECK_EQ(sn_block_on_simple(sn_fut_yield_init(&y), &idle), 0);
}

/* ---- another thread wakes ------------------------------------------------------------- */

static sem_t bell;

static void sleep_on_bell(sn_idle *idle)
{
    (void)idle;
    while (sem_wait(&bell) != 0)
        ;
}

static void ring_bell(sn_idle *idle)
{
    (void)idle;
    CHECK_EQ(sem_post(&bell), 0);
}

enum {
    ROUNDS = 3000,
};

static sn_signal ping, pong;

typedef struct player {
    sn_coro coro;
    sn_signal *hear, *say;
    bool serves;
    int i, sum;
} player;

SN_CORO(player, self)
{
    int heard;
    SN_BEGIN(self);
    if (self->serves)
        CHECK_EQ(sn_signal_send(self->say, 1), 0);
    for (self->i = 1; self->i <= ROUNDS; self->i++) {
        SN_AWAIT_INTO(heard, sn_signal_recv_op(self->hear));
        CHECK_EQ(heard, self->i);
        self->sum += heard;
        if (self->i < ROUNDS || !self->serves)
            CHECK_EQ(sn_signal_send(self->say, self->i + self->serves), 0);
    }
    SN_RETURN(self->sum);
    SN_END();
}

static void *second_player(void *arg)
{
    player *p = arg;
    int sum = sn_block_on_simple(SN_START(player, p), NULL);
    CHECK_EQ(sum, ROUNDS * (ROUNDS + 1) / 2);
    return NULL;
}

TEST(two_threads_play_ping_pong_by_wakers_and_nobody_sleeps_for_ever)
{
    static sn_idle idle = SN_IDLE_INIT(sleep_on_bell, ring_bell);
    player a = {.hear = &ping, .say = &pong, .serves = true};
    player b = {.hear = &pong, .say = &ping};
    CHECK_EQ(sem_init(&bell, 0, 0), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, second_player, &b), 0);
    CHECK_EQ(sn_block_on_simple(SN_START(player, &a), &idle), ROUNDS * (ROUNDS + 1) / 2);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}
