/* SPDX-License-Identifier: MIT */
/* A worker without work (R43, R80): how long it looks for what others may queue. */
#include "harness.h"
#include "unit/sched/counted.h"

#include <sinew/sinew.h>

enum { NAPS = 160, TRIES_PER_SLEEP = 200 };

static int sleep_often(void *arg)
{
    (void)arg;
    uint64_t parks = counted(SNI_PROBE_parks);
    uint64_t tries = counted(SNI_PROBE_steals_tried);
    for (int i = 0; i < NAPS; i++)
        (void)sn_sleep(SN_MS(2));
    parks = counted(SNI_PROBE_parks) - parks;
    tries = counted(SNI_PROBE_steals_tried) - tries;
    CHECK_GE(parks, NAPS / 2);
    CHECK_LT(tries, TRIES_PER_SLEEP * parks);
    return 0;
}

/* All that there ever is to run is one task after a while: to look for more, hundreds of times
 * before each sleep, is a processor burned for nothing. */
TEST(search_a_worker_for_whom_there_was_nothing_soon_does_not_look_for_long, .limit_s = 60)
{
    sn_runtime *rt;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
    CHECK_EQ(sn_runtime_block_on(rt, sleep_often, NULL), 0);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    sn_runtime_destroy(rt);
}
