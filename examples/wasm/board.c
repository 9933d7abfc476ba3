/* SPDX-License-Identifier: MIT */
/* board.c - the program of examples/shared/blink.c as a WebAssembly module.
 *
 * JavaScript has one thread and must never be blocked, so there is no loop here: the host's
 * event loop is the loop. The module asks for a poll (wake) or for a later one (arm), and
 * the host calls back when the time has come:
 *
 *     the host calls       start, poll, result, alarm, press
 *     the module imports   now_ms, arm, wake, led, report */
#include "../shared/blink.h"

#define IMPORT(name) __attribute__((import_module("env"), import_name(#name)))
#define EXPORT(name) __attribute__((export_name(#name)))

IMPORT(now_ms) double host_now_ms(void);
IMPORT(arm) void host_arm(double delay_ms);
IMPORT(wake) void host_wake(void);
IMPORT(led) void host_led(int index, bool on);
IMPORT(report) void host_report(const char *line, size_t bytes);

/* ---- clock: one alarm, the earliest that was asked for; the host sees to that ----------- */

static sn_waker_cell alarm_wakes;

static int64_t clock_now(sn_clock *clock)
{
    (void)clock;
    return (int64_t)(host_now_ms() * 1e6);
}

static void clock_arm(sn_clock *clock, sn_deadline at, const sn_waker *waker)
{
    (void)sn_waker_cell_arm(&alarm_wakes, waker);
    host_arm((double)(at.ns - clock_now(clock)) / 1e6);
}

/* ---- the program ----------------------------------------------------------------------- */

static sn_clock clock = {clock_now, clock_arm};
static sn_signal button;
static struct board board = {&clock, &button, host_led, host_report, 0};
static app program = {.board = &board};
static int program_result;

/* What everybody wakes: a request to the event loop. After the end nobody waits any more. */
static int wake_program(void *data)
{
    (void)data;
    if (sn_future_finished(&program.coro.future))
        return -ESRCH;
    host_wake();
    return 0;
}

static const sn_waker_vtable waker_vtable = {.wake_by_ref = wake_program};

/* ---- for the host ---------------------------------------------------------------------- */

void start(void);
bool poll(void);
int result(void);
void alarm(void);
void press(void);

/* Begin, and ask for the first poll. */
EXPORT(start) void start(void)
{
    (void)SN_START(app, &program);
    host_wake();
}

/* One attempt, after a wake. True: done, ask for the result and do not poll again. */
EXPORT(poll) bool poll(void)
{
    sn_waker waker = {&waker_vtable, NULL};
    sn_cx cx = {&waker};
    sn_poll p = sn_future_poll(&program.coro.future, &cx);
    if (sn_poll_pending(p))
        return false;
    program_result = p.value;
    return true;
}

EXPORT(result) int result(void)
{
    return program_result;
}

/* The time that was armed has come. */
EXPORT(alarm) void alarm(void)
{
    (void)sn_waker_cell_wake(&alarm_wakes);
}

/* The button was pressed: here a promise of JavaScript completes a future of C. */
EXPORT(press) void press(void)
{
    (void)sn_signal_send(&button, 1);
}
