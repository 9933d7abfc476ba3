/* SPDX-License-Identifier: MIT */
/* test_explorer.c - the explorer against programs whose outcome is known, so that its silence about
 * ours means something. */
#include "model/model.h"

#include "base/atomic.h"
#include "harness.h"
#include "plat/thread.h"

#include <unistd.h>

static SNI_ATOMIC(uint32_t) x;
static SNI_ATOMIC(uint32_t) y;
static uint32_t seen[2];
static struct model_data data;

static void reset(void)
{
    sni_atomic_store(&x, 0, relaxed);
    sni_atomic_store(&y, 0, relaxed);
    seen[0] = seen[1] = 0;
    data = (struct model_data){0};
}

/* ---- two increments ------------------------------------------------------------------------ */

static void increment_by_two_steps(void)
{
    sni_atomic_store(&x, sni_atomic_load(&x, relaxed) + 1, relaxed);
}

static void increment(void)
{
    sni_atomic_fetch_add(&x, 1, relaxed);
}

static void check_two(void)
{
    MODEL_CHECK(sni_atomic_load(&x, relaxed) == 2);
}

TEST(a_lost_increment_is_found_and_replayed)
{
    static const struct model model = {
        reset, {increment_by_two_steps, increment_by_two_steps}, check_two};
    model_finds(&model, &(struct model_options){.preemptions = 1}, "== 2");
}

TEST(a_printed_schedule_repeats_the_failure_in_another_process)
{
    struct command done = run_command("env -u SINEW_TEST_LOG -u SINEW_TEST_STRICT "
                                      "SINEW_MODEL_REPLAY=1:a2b3a /proc/%d/exe "
                                      "a_lost_increment_is_found_and_replayed",
                                      (int)getpid());
    CHECK_EQ(done.status, 1);
    CHECK_STR_HAS(done.output, "1 executions");
    CHECK_STR_HAS(done.output, "replay: SINEW_MODEL_REPLAY=1:a2b3a");
    command_finish(&done);
}

TEST(atomic_increments_hold)
{
    static const struct model model = {reset, {increment, increment, increment_by_two_steps}, NULL};
    model_holds(&model, &(struct model_options){.preemptions = 3});
    static const struct model two = {reset, {increment, increment}, check_two};
    model_holds(&two, &(struct model_options){.store_buffers = true});
}

TEST(a_split_increment_is_found)
{
    static const struct model model = {reset, {increment, increment}, check_two};
    struct model_options options = {.plant = MODEL_PLANT_SPLIT_RMW, .function = "increment"};
    model_finds(&model, &options, "== 2");
}

/* Two threads of n pieces interleave in C(2n, n) ways; with enough preemptions all are made, once
 * each. A load and a store have three pieces around and between them: C(6, 3). */
TEST(all_interleavings_are_made)
{
    static const struct model model = {
        reset, {increment_by_two_steps, increment_by_two_steps}, NULL};
    const struct model_result *result =
        model_explore(&model, &(struct model_options){.preemptions = 100});
    CHECK(result->exhausted && !result->failed);
    CHECK_EQ(result->executions, 20);
}

/* ---- store buffering, the pattern of all flag protocols ------------------------------------ */

static void write_x_read_y(void)
{
    sni_atomic_store(&x, 1, release);
    sni_atomic_fence(seq_cst);
    seen[0] = sni_atomic_load(&y, acquire);
}

static void write_y_read_x(void)
{
    sni_atomic_store(&y, 1, release);
    sni_atomic_fence(seq_cst);
    seen[1] = sni_atomic_load(&x, acquire);
}

static void check_one_saw_the_other(void)
{
    MODEL_CHECK(seen[0] + seen[1] > 0);
}

static const struct model flags = {
    reset, {write_x_read_y, write_y_read_x}, check_one_saw_the_other};

TEST(flags_with_fences_hold_with_store_buffers)
{
    model_holds(&flags, &(struct model_options){.preemptions = 4, .store_buffers = true});
}

TEST(a_forgotten_fence_is_found_with_store_buffers_only)
{
    struct model_options options = {.plant = MODEL_PLANT_NO_FENCE, .function = "write_x_read_y"};
    model_holds(&flags, &options);
    options.store_buffers = true;
    model_finds(&flags, &options, "seen[0] + seen[1] > 0");
}

/* A frame may be gone when the buffer is emptied. */
static void write_own_stack(void)
{
    SNI_ATOMIC(uint32_t) mine = {0};
    sni_atomic_store(&x, 1, relaxed);
    sni_atomic_store(&mine, 1, relaxed);
    MODEL_CHECK(mine.raw_ == 1);
    MODEL_CHECK(sni_atomic_load(&mine, relaxed) == 1);
}

TEST(a_store_on_the_own_stack_does_not_wait_in_the_buffer)
{
    static const struct model model = {reset, {write_own_stack}, NULL};
    model_holds(&model, &(struct model_options){.store_buffers = true});
}

/* ---- message passing, the pattern of all publications ------------------------------------- */

static void publish(void)
{
    model_write(&data);
    sni_atomic_store(&x, 1, release);
}

static void consume(void)
{
    if (sni_atomic_load(&x, acquire) == 1)
        model_read(&data);
}

static const struct model message = {reset, {publish, consume}, NULL};

TEST(a_release_that_is_acquired_orders_data)
{
    model_holds(&message, &(struct model_options){.store_buffers = true});
}

TEST(a_missing_release_or_acquire_is_found_as_a_race)
{
    struct model_options options = {.plant = MODEL_PLANT_RELAXED, .function = "publish"};
    model_finds(&message, &options, "a race");
    options.function = "consume";
    model_finds(&message, &options, "a race");
}

static void publish_by_fence(void)
{
    model_write(&data);
    sni_atomic_fence(release);
    sni_atomic_store(&x, 1, relaxed);
}

static void pass_on(void)
{
    sni_atomic_fetch_add(&x, 1, relaxed); /* a release sequence goes on */
}

static void consume_by_fence(void)
{
    uint32_t found = sni_atomic_load(&x, relaxed);
    sni_atomic_fence(acquire);
    if (found == 2)
        model_read(&data);
}

TEST(fences_and_release_sequences_order_data)
{
    static const struct model model = {reset, {publish_by_fence, pass_on, consume_by_fence}, NULL};
    model_holds(&model, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

/* ---- parking ------------------------------------------------------------------------------- */

static void wait_for_x(void)
{
    while (sni_atomic_load(&x, acquire) == 0)
        (void)sni_plat_park(&x.raw_, 0, INT64_MAX);
}

static void wait_for_x_too_late(void)
{
    if (sni_atomic_load(&x, acquire) == 0)
        (void)sni_plat_park(&y.raw_, 0, INT64_MAX); /* nobody compares x: a wake may be missed */
}

static void set_x_and_wake(void)
{
    sni_atomic_store(&x, 1, seq_cst);
    sni_plat_unpark(&x.raw_, 1);
    sni_plat_unpark(&y.raw_, 1);
}

TEST(a_wake_between_the_look_and_the_park_is_found_as_a_deadlock)
{
    static const struct model good = {reset, {wait_for_x, set_x_and_wake}, NULL};
    model_holds(&good, &(struct model_options){.preemptions = 3, .random = 100});
    static const struct model bad = {reset, {wait_for_x_too_late, set_x_and_wake}, NULL};
    model_finds(&bad, &(struct model_options){0}, "deadlock");
}

static void wait_a_while(void)
{
    seen[0] = sni_plat_park(&x.raw_, 0, 1) == 0 ? 1 : 2;
    sni_atomic_fetch_or(&y, seen[0], relaxed);
}

TEST(a_park_with_a_deadline_both_times_out_and_is_woken)
{
    static const struct model model = {reset, {wait_a_while, set_x_and_wake}, NULL};
    static const struct model alone = {reset, {wait_a_while}, NULL};
    model_holds(&model, &(struct model_options){0});
    model_holds(&alone, &(struct model_options){0}); /* no deadlock: the time passes */
}

static struct sni_mutex lock;
static uint32_t guarded;

static void reset_lock(void)
{
    lock = (struct sni_mutex)SNI_MUTEX_INIT;
    guarded = 0;
    reset();
}

static void increment_guarded(void)
{
    sni_mutex_lock(&lock);
    model_write(&data);
    uint32_t before = guarded;
    sni_atomic_load(&y, relaxed); /* a step: others may try to come between */
    guarded = before + 1;
    sni_mutex_unlock(&lock);
}

static void check_guarded(void)
{
    MODEL_CHECK(guarded == 3);
}

TEST(a_mutex_excludes)
{
    static const struct model model = {
        reset_lock, {increment_guarded, increment_guarded, increment_guarded}, check_guarded};
    model_holds(&model, &(struct model_options){.random = 1000});
}

/* ---- choices and loops --------------------------------------------------------------------- */

static void choose_badly(void)
{
    unsigned a = model_choose(3);
    sni_atomic_fetch_add(&x, 1, relaxed);
    unsigned b = model_choose(3);
    MODEL_CHECK(!(a == 2 && b == 1));
}

TEST(all_values_of_a_choice_are_tried_and_replayed)
{
    static const struct model model = {reset, {choose_badly, increment}, NULL};
    model_finds(&model, &(struct model_options){0}, "a == 2");
}

static void spin_until_x(void)
{
    while (sni_atomic_load(&x, acquire) == 0)
        model_yield();
}

static void look_until_x(void)
{
    while (sni_atomic_load(&x, acquire) == 0)
        ;
}

TEST(a_loop_that_waits_ends_and_one_that_waits_for_nobody_is_a_livelock)
{
    static const struct model good = {reset, {spin_until_x, increment}, NULL};
    model_holds(&good, &(struct model_options){0});
    static const struct model looking = {reset, {look_until_x, increment}, NULL};
    model_holds(&looking, &(struct model_options){0});
    static const struct model bad = {reset, {spin_until_x}, NULL};
    model_finds(&bad, &(struct model_options){0}, "livelock");
}

/* x may be written after the look and before the yield, as a lock may be free again when a compare
 * and swap has failed. To let another one, who waits for this one, look again and again meanwhile
 * is no execution of its own. */
static void spin_until_x_then_set_y(void)
{
    while (sni_atomic_load(&x, acquire) == 0) {
        (void)sni_atomic_load(&y, relaxed); /* relaxed: nothing but a step */
        model_yield();
    }
    sni_atomic_store(&y, 1, release); /* release: pairs with the acquire below */
}

static void spin_until_y(void)
{
    while (sni_atomic_load(&y, acquire) == 0)
        model_yield();
}

TEST(one_that_waits_for_one_that_waits_does_not_look_for_ever)
{
    static const struct model chain = {
        reset, {increment, spin_until_x_then_set_y, spin_until_y}, NULL};
    model_holds(&chain, &(struct model_options){0});
    static const struct model circle = {reset, {spin_until_x_then_set_y, spin_until_y}, NULL};
    model_finds(&circle, &(struct model_options){0}, "livelock");
}

static void lose_deeply(void)
{
    for (int i = 0; i < 30; i++)
        increment_by_two_steps();
}

static void check_not_all_lost(void)
{
    MODEL_CHECK(sni_atomic_load(&x, relaxed) >= 31);
}

TEST(random_executions_go_where_the_depth_first_search_did_not_come)
{
    static const struct model model = {reset, {lose_deeply, lose_deeply}, check_not_all_lost};
    struct model_options options = {.executions_max = 10, .random = 100000};
    model_finds(&model, &options, ">= 31");
}
