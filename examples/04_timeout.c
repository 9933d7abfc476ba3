/* SPDX-License-Identifier: MIT */
/* 04_timeout - deadlines on a clock of your own: here one in virtual time, so nobody waits. */
#include <sinew/sinew.h>
#include <stdio.h>

typedef struct world {
    sn_clock clock;
    int64_t now, next;
    sn_waker_cell waiting;
} world;

static int64_t read_world(sn_clock *clock)
{
    return ((world *)clock)->now;
}

static void arm_world(sn_clock *clock, sn_deadline at, const sn_waker *waker)
{
    world *w = (world *)clock;
    w->next = at.ns < w->next ? at.ns : w->next;
    (void)sn_waker_cell_arm(&w->waiting, waker);
}

static world w = {.clock = {read_world, arm_world}, .next = INT64_MAX};

static void skip_ahead(sn_idle *idle)
{
    (void)idle;
    w.now = w.next, w.next = INT64_MAX; /* go to the next point in time that matters */
    (void)sn_waker_cell_wake(&w.waiting);
}

typedef struct patience {
    sn_coro coro;
    sn_fut_delay work;
    sn_fut_timeout limit;
    int ms;
} patience;

SN_CORO(patience, self)
{
    int rc;
    SN_BEGIN(self);
    for (self->ms = 20; self->ms <= 80; self->ms += 30) {
        sn_fut_delay_init(&self->work, &w.clock, sn_clock_after(&w.clock, SN_MS(self->ms)));
        SN_AWAIT_INTO(rc, sn_fut_timeout_init(&self->limit, &self->work.future, &w.clock,
                                              sn_clock_after(&w.clock, SN_MS(60))));
        printf("[%3d ms] work of %d ms: %s\n", (int)(w.now / SN_MS(1)), self->ms,
               rc == -ETIMEDOUT ? "timed out" : "done");
    }
    SN_END();
}

int main(void)
{
    static sn_idle idle = SN_IDLE_INIT(skip_ahead, NULL);
    patience p;
    return sn_block_on_simple(SN_START(patience, &p), &idle);
}
