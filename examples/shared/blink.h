/* SPDX-License-Identifier: MIT */
/* blink.h - two LEDs and a button: one program for a microcontroller, a browser and a host.
 *
 * blink.c knows no hardware. It is given a board: lamps to switch, a log to write, a clock.
 * examples/firmware supplies them with registers and interrupts, examples/wasm with
 * JavaScript, tests/firmware with a clock that a test moves by hand. All of them print what
 * stands in blink_expected.txt, byte for byte. */
#ifndef SINEW_EXAMPLES_BLINK_H
#define SINEW_EXAMPLES_BLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sinew/level0.h>

/* ---- what the program stands on ------------------------------------------------------- */

/* The hardware. Lines come with their newline, and without a final NUL. */
struct board {
    sn_clock *clock;
    sn_signal *button; /* whoever feels a press, an interrupt handler or a promise, sends 1 */
    void (*led)(int index, bool on);
    void (*report)(const char *line, size_t bytes);
    int64_t start_ns; /* set by the program: the log counts from here */
};

/* ---- coroutines: their frames, with all they remember while they wait ------------------ */

/* Switches one LED `toggles` times, once per period. */
typedef struct blinker {
    sn_coro coro;
    const struct board *board;
    int led;
    int toggles;
    int64_t period_ns;
    int done;
    sn_deadline next;
    sn_fut_delay pause;
} blinker;

/* Waits `rounds` times for the button, each time for `patience_ns` at most. */
typedef struct watcher {
    sn_coro coro;
    const struct board *board;
    int rounds;
    int64_t patience_ns;
    int presses;
    sn_fut_timeout limit;
} watcher;

/* The whole program; its result is the number of presses. Fill in `board`, then start it
 * with SN_START(app, &frame). */
typedef struct app {
    sn_coro coro;
    struct board *board;
    blinker fast;
    blinker slow;
    watcher watcher;
    sn_fut_join all;
    sn_future *parts[3];
    int results[3];
} app;
SN_CORO_DECLARE(app);

#endif
