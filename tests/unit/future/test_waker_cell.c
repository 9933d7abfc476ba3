/* SPDX-License-Identifier: MIT */
/* The waker cell (R10), alone, with interrupts at every point, and between threads.
 *
 * waker_cell.c is compiled into this executable with a hook before each atomic operation. An
 * "interrupt" is a function called from that hook: it runs to its end while the code that it
 * interrupted stands still, just as on a microcontroller. The number of hooks is small, so
 * all places where one or two interrupts can strike are tried. */
#include "harness.h"
#include "unit/future/counting_waker.h"

#include <pthread.h>
#include <sinew/future.h>
#include <stdatomic.h>

/* ---- interrupts at every step --------------------------------------------------------- */

enum {
    STRIKES_MAX = 2,
    NEVER = 1000,
};

static struct {
    int step; /* atomic operations so far; only while `on`           */
    bool on;
    int strike_at[STRIKES_MAX];
    void (*handler)(void);
} machine;

void test_atomic_step(void)
{
    if (!machine.on)
        return;
    int now = machine.step++;
    for (int i = 0; i < STRIKES_MAX; i++)
        if (machine.strike_at[i] == now)
            machine.handler(); /* itself made of steps: handlers nest */
}

static sn_waker_cell cell;
static int flag;

static void event(void)
{
    flag++;
    (void)sn_waker_cell_wake(&cell);
}

/* One poll of a leaf future: arm, then look. Returns what it saw. */
static int poll_once(const sn_waker *waker)
{
    CHECK_EQ(sn_waker_cell_arm(&cell, waker), 0);
    return flag;
}

/* Events at steps a and b of one poll: each was seen by the poll, or has woken its waker. */
static int strike_poll(int a, int b)
{
    struct counting_waker counter;
    sn_waker waker = counting_waker_init(&counter);
    cell = (sn_waker_cell)SN_WAKER_CELL_INIT;
    flag = 0;
    machine.step = 0;
    machine.strike_at[0] = a;
    machine.strike_at[1] = b;
    machine.handler = event;
    machine.on = true;
    int seen = poll_once(&waker);
    machine.on = false;
    int steps = machine.step;

    CHECK(seen == flag || counter.wakes > 0);
    sn_waker_cell_disarm(&cell);
    sn_waker_drop(&waker);
    CHECK_EQ(counter.refs, 0);
    CHECK_EQ(cell.state_.raw_, 0);
    return steps;
}

TEST(an_interrupt_at_any_step_of_arming_is_not_lost)
{
    int steps = strike_poll(NEVER, NEVER);
    CHECK_EQ(steps, 2); /* the open and the close of an arm: that is all there is to strike */
    for (int a = 0; a < steps; a++)
        strike_poll(a, NEVER);
}

TEST(a_wake_that_comes_while_arming_wakes_the_new_waker)
{
    struct counting_waker counter;
    sn_waker waker = counting_waker_init(&counter);
    machine.step = 0;
    machine.strike_at[0] = 1; /* before the close of the arm */
    machine.strike_at[1] = NEVER;
    machine.handler = event;
    machine.on = true;
    CHECK_EQ(sn_waker_cell_arm(&cell, &waker), 0);
    machine.on = false;
    CHECK_EQ(counter.wakes, 1);
    sn_waker_cell_disarm(&cell);
    CHECK_EQ(counter.refs, 1);
}

TEST(two_interrupts_at_any_steps_of_arming_are_not_lost)
{
    for (int a = 0; a < 8; a++)
        for (int b = 0; b < 8; b++)
            strike_poll(a, b);
}

/* The same while the poller abandons its wait: nothing leaks, nothing is woken twice. */
TEST(an_interrupt_at_any_step_of_disarming_leaks_nothing)
{
    for (int a = 0; a < 6; a++) {
        struct counting_waker counter;
        sn_waker waker = counting_waker_init(&counter);
        cell = (sn_waker_cell)SN_WAKER_CELL_INIT;
        CHECK_EQ(sn_waker_cell_arm(&cell, &waker), 0);
        machine.step = 0;
        machine.strike_at[0] = a;
        machine.strike_at[1] = NEVER;
        machine.handler = event;
        machine.on = true;
        sn_waker_cell_disarm(&cell);
        machine.on = false;
        CHECK_LE(counter.wakes, 1);
        sn_waker_drop(&waker);
        CHECK_EQ(counter.refs, 0);
        CHECK_EQ(cell.state_.raw_, 0);
    }
}

static sn_waker second_waker;
static int second_arm_result;

static void arm_again(void)
{
    second_arm_result = sn_waker_cell_arm(&cell, &second_waker);
}

#ifdef SINEW_DEBUG
FAIL_TEST(arming_from_two_pollers_at_once_is_an_error, "armed by two pollers")
#else
TEST(arming_from_two_pollers_at_once_is_an_error)
#endif
{
    struct counting_waker a, b;
    sn_waker waker = counting_waker_init(&a);
    second_waker = counting_waker_init(&b);
    machine.step = 0;
    machine.strike_at[0] = 1; /* in the middle of the first arm */
    machine.strike_at[1] = NEVER;
    machine.handler = arm_again;
    machine.on = true;
    CHECK_EQ(sn_waker_cell_arm(&cell, &waker), 0);
    machine.on = false;
    CHECK_EQ(second_arm_result, -EBUSY);
    CHECK_EQ(b.refs, 1);
    CHECK_EQ(sn_waker_cell_wake(&cell), 0);
    CHECK_EQ(a.wakes, 1);
}

/* ---- alone ---------------------------------------------------------------------------- */

TEST(a_cell_wakes_the_last_waker_once)
{
    struct counting_waker a, b;
    sn_waker wa = counting_waker_init(&a);
    sn_waker wb = counting_waker_init(&b);
    CHECK_EQ(sn_waker_cell_arm(&cell, &wa), 0);
    CHECK_EQ(sn_waker_cell_arm(&cell, &wb), 0);
    CHECK_EQ(a.refs, 1); /* replaced, so dropped */
    CHECK_EQ(b.refs, 2);
    CHECK_EQ(sn_waker_cell_wake(&cell), 0);
    CHECK_EQ(a.wakes, 0);
    CHECK_EQ(b.wakes, 1);
    CHECK_EQ(b.refs, 1);
    CHECK_EQ(sn_waker_cell_wake(&cell), -ESRCH);
}

TEST(arming_with_the_same_waker_again_clones_nothing)
{
    struct counting_waker counter;
    sn_waker waker = counting_waker_init(&counter);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(sn_waker_cell_arm(&cell, &waker), 0);
    CHECK_EQ(counter.clones, 1);
    sn_waker_cell_disarm(&cell);
    CHECK_EQ(counter.refs, 1);
}

TEST(a_zeroed_cell_is_empty)
{
    static sn_waker_cell zeroed;
    CHECK_EQ(sn_waker_cell_wake(&zeroed), -ESRCH);
    sn_waker_cell_disarm(&zeroed);
}

/* ---- threads -------------------------------------------------------------------------- */

enum {
    ROUNDS = 20000,
};

static atomic_int posted;
static atomic_bool stop;

static void *post_rounds(void *arg)
{
    (void)arg;
    for (int i = 1; i <= ROUNDS; i++) {
        atomic_store_explicit(&posted, i, memory_order_relaxed); /* the cell orders it */
        (void)sn_waker_cell_wake(&cell);
    }
    atomic_store(&stop, true);
    return NULL;
}

/* The poller sleeps (spins on its waker's count) only when arm-then-look saw nothing new; if
 * a wake were lost it would sleep for ever, and the test's time limit would say so. */
TEST(no_wake_is_lost_between_threads)
{
    struct counting_waker counter;
    sn_waker waker = counting_waker_init(&counter);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, post_rounds, NULL), 0);
    int seen = 0;
    while (seen < ROUNDS) {
        int wakes = atomic_load(&counter.wakes);
        CHECK_EQ(sn_waker_cell_arm(&cell, &waker), 0);
        int now = atomic_load_explicit(&posted, memory_order_relaxed);
        if (now == seen)
            while (atomic_load(&counter.wakes) == wakes)
                ;
        seen = now;
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    sn_waker_cell_disarm(&cell);
    CHECK_EQ(counter.refs, 1);
}

static void *wake_until_stopped(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop))
        (void)sn_waker_cell_wake(&cell);
    return NULL;
}

TEST(many_wakers_and_one_poller_keep_the_references_straight)
{
    struct counting_waker counter[2];
    sn_waker waker[2] = {counting_waker_init(&counter[0]), counting_waker_init(&counter[1])};
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, wake_until_stopped, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(sn_waker_cell_arm(&cell, &waker[i % 2]), 0);
        if (i % 5 == 0)
            sn_waker_cell_disarm(&cell);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    sn_waker_cell_disarm(&cell);
    CHECK_EQ(counter[0].refs, 1);
    CHECK_EQ(counter[1].refs, 1);
}
