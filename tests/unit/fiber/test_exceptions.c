/* SPDX-License-Identifier: MIT */
/* C++ exceptions on fibers (R50: unwind information). The program is compiled here, because the
 * library itself needs no C++ compiler. */
#include "harness.h"

#include <string.h>

/* Compile throw.cpp and its main program with the assembly of this machine, and run it. */
static struct command run_program(const char *flags, const char *argument)
{
    require_tool("g++", "test");
    require_tool("gcc", "core");
    return run_command(
        "set -e; src='%s'; cd '%s'; flags='%s -I'\"$src\"/src\" -I\"$src/include; "
        "case $(uname -m) in x86_64) arch=x86_64_sysv;; *) arch=$(uname -m);; esac; "
        "g++ $flags -Wall -Werror -c $src/tests/unit/fiber/throw.cpp -o throw.o; "
        "gcc $flags -std=c11 -c $src/tests/unit/fiber/throw_main.c -o main.o; "
        "gcc $flags -std=c11 -c $src/src/fiber/context.c -o context.o; "
        "gcc $flags -c $src/src/fiber/arch/$arch.S -o switch.o; "
        "gcc $flags -std=c11 -c $src/src/plat/posix/assert.c -o assert.o; "
        "g++ $flags throw.o main.o context.o switch.o assert.o -o throw; exec ./throw %s",
        source_path(), temp_dir(), flags, argument);
}

static void check_caught(const char *flags)
{
    struct command run = run_program(flags, "");
    CHECK_STR_EQ(run.output, "caught 0 from below\ncaught 10 from below\ncaught 20 from below\n"
                             "33 destroyed\n");
    CHECK_EQ(run.status, 0);
    command_finish(&run);
}

TEST(a_cxx_exception_is_thrown_and_caught_inside_a_fiber, .limit_s = 60)
{
    check_caught("-O2");
}

TEST(exceptions_work_in_fibers_with_branch_tracking_and_without_frame_pointers, .limit_s = 60)
{
    check_caught("-O2 -fcf-protection=full -fomit-frame-pointer -fno-plt");
}

static void check_terminates(const char *how)
{
    struct command run = run_program("-O1", how);
    CHECK_EQ(run.status, 128 + 6);
    CHECK_STR_HAS(run.output, "terminate called after throwing");
    CHECK_STR_HAS(run.output, "nobody catches");
    command_finish(&run);
}

TEST(an_exception_that_nobody_catches_in_its_fiber_terminates, .limit_s = 60)
{
    check_terminates("uncaught");
}

TEST(an_exception_does_not_leave_the_loop_for_whoever_drives_it, .limit_s = 60)
{
    check_terminates("outside");
}
