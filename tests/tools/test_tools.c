/* SPDX-License-Identifier: MIT */
/* The project's own tools, and the tree as they see it. */
#include "harness.h"

#include <string.h>

static void succeed(struct command c)
{
    if (c.status != 0)
        FAIL("it ended with %d:\n%s", c.status, c.output);
    command_finish(&c);
}

TEST(the_tree_is_tidy)
{
    require_tool("python3", "test");
    succeed(run_command("%s/tools/tidy", source_path()));
}

TEST(every_rule_of_tidy_fires_on_its_bad_tree_and_not_on_its_good_one, .limit_s = 60)
{
    require_tool("python3", "test");
    succeed(run_command("python3 %s/tests/tools/test_tidy.py", source_path()));
}

TEST(setup_installs_what_is_missing_and_says_what_it_cannot, .limit_s = 60)
{
    succeed(run_command("sh %s/tests/tools/test_setup.sh", source_path()));
}

TEST(benchcmp_passes_its_own_test)
{
    require_tool("python3", "test");
    succeed(run_command("%s/tools/benchcmp --self-test", source_path()));
}

TEST(no_hot_path_needs_a_tenth_more_instructions_than_was_accepted, .limit_s = 180)
{
    require_tool("python3", "test");
    require_tool("valgrind", "test");
    struct command c =
        run_command("%s/tools/benchcmp --instructions %s", source_path(), build_path());
    if (c.status == 3) /* another compiler */
        SKIP("%s", c.output);
    succeed(c);
}

/* tools/cancel_cost builds all of it, which is left to people: it takes minutes. */
TEST(waits_that_cannot_be_cancelled_compile_for_who_measures_them)
{
    require_tool("gcc", "core");
    for (int level = 0; level < 2; level++)
        succeed(
            run_command("cd %s && gcc -std=c11 -Wall -Wextra -Werror -D_GNU_SOURCE -Iinclude -Isrc "
                        "-DSNI_WAIT_CANCELS=%d -fsyntax-only src/wait/wait.c src/task/scope.c "
                        "src/sched/worker.c",
                        source_path(), level));
}

TEST(compare_passes_its_own_test)
{
    require_tool("python3", "test");
    succeed(run_command("%s/bench/compare --self-test", source_path()));
}

/* With two rounds a run fails if it does so in both: once may be the busy machine's fault. */
TEST(the_yardstick_runs_on_fibers_and_on_coroutines, .limit_s = 300)
{
    require_tool("python3", "test");
    const char *d = temp_dir();
    succeed(run_command("BENCH_LOCK=%s/lock %s/bench/compare --quick --rounds 2 --more 0 "
                        "--peers sinew,sinew-coro --only '^W' --build %s --out %s",
                        d, source_path(), build_path(), d));
}

TEST(the_servers_of_the_yardstick_answer_as_they_must, .limit_s = 300)
{
    require_tool("python3", "test");
    require_tool("wrk", "test");
    const char *d = temp_dir();
    succeed(
        run_command("BENCH_LOCK=%s/lock %s/bench/compare --quick --rounds 2 --more 0 --only '^N' "
                    "--peers sinew,sinew-coro,sinew-epoll,sinew-coro-epoll,epoll --build %s "
                    "--out %s",
                    d, source_path(), build_path(), d));
}

TEST(what_grows_can_be_run_and_counted, .limit_s = 120)
{
    require_tool("python3", "test");
    require_tool("valgrind", "test");
    const char *d = temp_dir();
    struct command c =
        run_command("BENCH_LOCK=%s/lock %s/bench/compare --rounds 1 --more 0 --patience 0 "
                    "--only '^G .*n=100 ' --peers sinew --build %s --out %s",
                    d, source_path(), build_path(), d);
    if (c.status != 0 || strstr(c.output, "Instructions: ") == NULL)
        FAIL("it ended with %d:\n%s", c.status, c.output);
    command_finish(&c);
}

TEST(the_tree_is_formatted, .limit_s = 60)
{
    require_tool("clang-format-19", "clang");
    succeed(run_command("%s/tools/format --check", source_path()));
}

TEST(every_benchmark_runs, .limit_s = 60)
{
    succeed(run_command("%s/bench/micro_future --once", build_path()));
}
