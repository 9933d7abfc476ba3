/* SPDX-License-Identifier: MIT */
/* test_blink.c - examples/shared/blink.c on this machine, with a clock that jumps.
 *
 * The third board beside the firmware's and WebAssembly's: whenever the program sleeps, time
 * goes on to the next alarm or the next press of the button, whichever is first. */
#include "../../examples/shared/blink.h"
#include "freestanding/cross.h"

#include <stdlib.h>
#include <string.h>

struct simulation {
    sn_clock clock;
    sn_idle idle;
    int64_t now_ns;
    int64_t alarm_ns;
    sn_waker_cell alarm_wakes;
    sn_signal button;
    const int64_t *presses_ns; /* in order; INT64_MAX ends them */
    bool lamps[2];
    char log[4096];
    size_t log_bytes;
};

static struct simulation sim;

static int64_t now(sn_clock *clock)
{
    (void)clock;
    return sim.now_ns;
}

static void arm(sn_clock *clock, sn_deadline at, const sn_waker *waker)
{
    (void)clock;
    if (at.ns < sim.alarm_ns)
        sim.alarm_ns = at.ns;
    CHECK_EQ(sn_waker_cell_arm(&sim.alarm_wakes, waker), 0);
}

static void sleep_until_next_event(sn_idle *idle)
{
    CHECK(!sn_idle_woken(idle));
    CHECK(sim.alarm_ns < INT64_MAX || *sim.presses_ns < INT64_MAX);
    if (*sim.presses_ns < sim.alarm_ns) {
        sim.now_ns = *sim.presses_ns++;
        CHECK_EQ(sn_signal_send(&sim.button, 1), 0);
    } else {
        sim.now_ns = sim.alarm_ns;
        sim.alarm_ns = INT64_MAX;
        CHECK_EQ(sn_waker_cell_wake(&sim.alarm_wakes), 0);
    }
}

static void led(int index, bool on)
{
    CHECK(index == 0 || index == 1);
    CHECK_NE(sim.lamps[index], on);
    sim.lamps[index] = on;
}

static void report(const char *line, size_t bytes)
{
    CHECK_LT(sim.log_bytes + bytes, sizeof sim.log);
    memcpy(sim.log + sim.log_bytes, line, bytes);
    sim.log_bytes += bytes;
}

/* Run the program from `boot_ns` on; gives its result, the log is in `sim`. */
static int run(int64_t boot_ns, const int64_t *presses_ns)
{
    sim = (struct simulation){
        .clock = {now, arm},
        .idle = SN_IDLE_INIT(sleep_until_next_event, NULL),
        .now_ns = boot_ns,
        .alarm_ns = INT64_MAX,
        .presses_ns = presses_ns,
    };
    struct board board = {&sim.clock, &sim.button, led, report, 0};
    app program = {.board = &board};
    int result = sn_block_on_simple(SN_START(app, &program), &sim.idle);
    CHECK(!sim.lamps[0] && !sim.lamps[1]);
    return result;
}

static void check_log(void)
{
    char *expected = run_well("cat '%s/examples/shared/blink_expected.txt'", source_path());
    CHECK_STR_EQ(sim.log, expected);
    free(expected);
}

/* R4, R14: what the firmware and WebAssembly are compared with. */
TEST(the_blink_program_on_this_machine_prints_the_expected_log)
{
    static const int64_t presses[] = {SN_MS(370), SN_MS(740), INT64_MAX};
    CHECK_EQ(run(0, presses), 2);
    check_log();
}

/* R14: the log counts from the start of the program, wherever its clock stands. */
TEST(the_blink_program_does_not_care_when_it_starts)
{
    static const int64_t presses[] = {SN_S(9000) + SN_MS(370), SN_S(9000) + SN_MS(740), INT64_MAX};
    CHECK_EQ(run(SN_S(9000), presses), 2);
    check_log();
}

/* R14: the comparison above can fail. */
TEST(without_presses_the_blink_program_times_out)
{
    static const int64_t presses[] = {INT64_MAX};
    CHECK_EQ(run(0, presses), 0);
    CHECK_STR_HAS(sim.log, "[  1200 ms] nobody pressed, 0 so far\n[  1200 ms] done, 0 presses\n");
}
