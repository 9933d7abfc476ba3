/* SPDX-License-Identifier: MIT */
/* blink.c - two LEDs at different rates and a button with a time limit, all at once.
 *
 * Three coroutines wait for different things on one stack, without heap, threads or an
 * operating system. Read from the bottom: `app` starts the parts and joins them, `blinker`
 * and `watcher` are plain loops that wait in the middle. */
#include "blink.h"

/* ---- the log: "[   100 ms] led 0 on" --------------------------------------------------- */

typedef struct line {
    char text[48];
    size_t bytes;
} line;

static void put(line *l, const char *text)
{
    while (*text != '\0' && l->bytes < sizeof l->text)
        l->text[l->bytes++] = *text++;
}

static void put_number(line *l, uint32_t number, size_t width)
{
    char digits[11];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (at > 0 && sizeof digits - 1 - at < width)
        digits[--at] = ' ';
    put(l, &digits[at]);
}

static void say(const struct board *board, const char *what, int number, const char *then)
{
    int64_t ns = board->clock->now(board->clock) - board->start_ns;
    line l = {.bytes = 0};
    put(&l, "[");
    put_number(&l, (uint32_t)(ns / SN_MS(1)), 6);
    put(&l, " ms] ");
    put(&l, what);
    put_number(&l, (uint32_t)number, 0);
    put(&l, then);
    put(&l, "\n");
    board->report(l.text, l.bytes);
}

/* ---- the coroutines -------------------------------------------------------------------- */

SN_CORO(blinker, self)
{
    sn_clock *clock = self->board->clock;

    SN_BEGIN(self);
    self->next = sn_clock_after(clock, 0);
    for (self->done = 1; self->done <= self->toggles; self->done++) {
        self->next.ns += self->period_ns; /* from the last deadline, so that nothing drifts */
        SN_AWAIT(sn_fut_delay_init(&self->pause, clock, self->next));
        bool on = self->done % 2 == 1;
        self->board->led(self->led, on);
        say(self->board, "led ", self->led, on ? " on" : " off");
    }
    SN_END();
}

SN_CORO(watcher, self)
{
    sn_clock *clock = self->board->clock;
    sn_signal *button = self->board->button;

    SN_BEGIN(self);
    for (; self->rounds > 0; self->rounds--) {
        int presses;
        SN_AWAIT_INTO(presses, sn_fut_timeout_init(&self->limit, sn_signal_recv_op(button), clock,
                                                   sn_clock_after(clock, self->patience_ns)));
        if (presses == -ETIMEDOUT) {
            say(self->board, "nobody pressed, ", self->presses, " so far");
            continue;
        }
        self->presses += presses;
        say(self->board, "button pressed, ", self->presses, " so far");
    }
    SN_RETURN(self->presses);
    SN_END();
}

SN_CORO_DEFINE(app, self)
{
    struct board *board = self->board;

    SN_BEGIN(self);
    board->start_ns = board->clock->now(board->clock);
    self->fast = (blinker){.board = board, .led = 0, .period_ns = SN_MS(100), .toggles = 10};
    self->slow = (blinker){.board = board, .led = 1, .period_ns = SN_MS(250), .toggles = 4};
    self->watcher = (watcher){.board = board, .patience_ns = SN_MS(300), .rounds = 4};

    self->parts[0] = SN_START(blinker, &self->fast);
    self->parts[1] = SN_START(blinker, &self->slow);
    self->parts[2] = SN_START(watcher, &self->watcher);
    SN_AWAIT(sn_fut_join_init(&self->all, self->parts, 3, self->results));

    say(board, "done, ", self->results[2], " presses");
    SN_RETURN(self->results[2]);
    SN_END();
}
