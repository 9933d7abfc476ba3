/* SPDX-License-Identifier: MIT */
/* test_idle_spin.c - spin searches idle.pml, the drawing of the idle protocol (R43), completely;
 * and finds each mistake that is put into it. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

/* Generate, compile and run the checker; its report is the output. */
static struct command verify(const char *defines)
{
    require_tool("spin", "test");
    require_tool("cc", "core");
    return run_command("cd %s && spin -a %s %s/tests/model/idle.pml && "
                       "cc -O1 -w -DSAFETY -DMEMLIM=2000 -o pan pan.c && ./pan -m200000 -w22",
                       temp_dir(), defines, source_path());
}

static void holds(const char *defines)
{
    struct command done = verify(defines);
    CHECK_EQ(done.status, 0);
    CHECK_STR_HAS(done.output, "errors: 0");
    CHECK_STR_HAS(done.output, "invalid end states\t+");
    CHECK(strstr(done.output, "Search not completed") == NULL);
    printf("%s", done.output);
    command_finish(&done);
}

static void finds(const char *defines)
{
    struct command done = verify(defines);
    CHECK_STR_HAS(done.output, "invalid end state");
    CHECK_STR_HAS(done.output, "errors: 1");
    printf("%s", done.output);
    command_finish(&done);
}

TEST(idle_promela_two_workers_lose_no_wake, .limit_s = 120)
{
    holds("-DWORKERS=2");
}

TEST(idle_promela_three_workers_lose_no_wake, .limit_s = 120)
{
    holds("-DWORKERS=3 -DPATIENT");
    holds("-DWORKERS=3 -DLINKS=1");
}

TEST(idle_promela_without_the_look_before_the_park_loses_a_wake, .limit_s = 120)
{
    finds("-DNO_LOOK");
}

TEST(idle_promela_without_the_look_of_a_refused_searcher_loses_a_wake, .limit_s = 120)
{
    finds("-DNO_LOOK_UNLESS_SEARCHED");
}

TEST(idle_promela_without_the_look_at_the_end_of_a_search_loses_a_wake, .limit_s = 120)
{
    finds("-DNO_LOOK_AT_END");
}

TEST(idle_promela_without_the_fence_loses_a_wake, .limit_s = 120)
{
    finds("-DNO_FENCE");
}
