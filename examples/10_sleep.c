/* SPDX-License-Identifier: MIT */
/* 10_sleep - sleeping, an interval, a time-out; then the same day again, in virtual time. */
#include <sinew/sinew.h>
#include <stdio.h>

static int read_a_novel(void *arg)
{
    const int64_t *hour = arg;
    int rc = 0;
    for (int chapter = 1; chapter <= 12 && rc == 0; chapter++)
        rc = sn_sleep(*hour); /* -ETIMEDOUT when it is time for bed */
    return rc;
}

static int day(void *arg)
{
    int64_t *hour = arg;
    sn_interval meals;
    int rc = sn_interval_init(&meals, 6 * *hour, SN_MISSED_BURST);
    for (int i = 1; i <= 3 && rc >= 0; i++) {
        rc = sn_interval_wait(&meals); /* 6, 12, 18 o'clock: however long the meals take */
        printf("  %02d:00 a meal\n", 6 * i);
        (void)sn_sleep(*hour / 2);
    }
    if (rc >= 0)
        rc = sn_timeout(read_a_novel, hour, 4 * *hour);
    printf("  to bed, the novel %s\n", rc == -ETIMEDOUT ? "unfinished" : "read");
    return 0;
}

int main(void)
{
    int64_t hour = SN_MS(2);
    printf("a day whose hours are 2 ms:\n");
    int rc = sn_run(day, &hour);
    if (rc < 0)
        return 1;

    sn_runtime *rt; /* for tests: the clock jumps when nobody has anything to do */
    sn_runtime_options opts = {.single_threaded = true, .virtual_time = true};
    if (sn_runtime_create(&rt, &opts) < 0)
        return 1;
    hour = SN_S(3600);
    int64_t began = sn_now(); /* outside that runtime the time is real */
    printf("a day whose hours are hours:\n");
    rc = sn_runtime_block_on(rt, day, &hour);
    printf("which took %s\n", sn_now() - began < hour ? "a moment" : "all day");
    sn_runtime_destroy(rt);
    return rc < 0;
}
