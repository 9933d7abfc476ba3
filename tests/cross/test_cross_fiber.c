/* SPDX-License-Identifier: MIT */
/* Fibers on other processors (R50, R51): the unit tests of src/fiber, of this very tree, built
 * for aarch64 and riscv64 and run by an emulator, harness and all; and once without assembly.
 *
 * What the emulator cannot show: MADV_GUARD_INSTALL (it says yes and does nothing, which is a
 * test of its own for the probe), RLIMIT_AS, huge pages, and running out of mappings. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

/* A place where fibers run. */
struct place {
    const char *prefix;   /* of its compiler's name                                 */
    const char *emulator; /* a command that runs its programs                       */
    const char *registers;
    const char *machine; /* the files in src/fiber/arch                             */
    const char *without; /* names of tests that it cannot pass, as grep's arguments */
};

/* Compile for a place into ./t; $src is the tree. malloc stays unwatched: in a static program its
 * wrappers would see libc's own use of it. Of these processors only some have unwind tables by
 * default. */
#define BUILD                                                                              \
    "h=$src/tests/harness; u=$src/tests/unit; s=$src/src; a=$s/fiber/arch; "               \
    "%sgcc -std=c11 -O2 -g -static -fasynchronous-unwind-tables -Wall -Wextra "            \
    "-Werror %s -D_GNU_SOURCE -DSINEW_SOURCE_DIR='\"\"' -DSINEW_BUILD_DIR='\"\"' "         \
    "-DSINEW_HARNESS_TIME_FACTOR=5 -I$s -I$src/include -I$src/tests -I$h "                 \
    "$(ls $h/*.c | grep -v memory_wrap) $u/fiber/coroutine.c $u/fiber/registers_%s.S "     \
    "$u/fiber/test_context.c $u/fiber/test_overflow.c $u/fiber/test_stack.c "              \
    "$u/plat/test_memory.c $s/fiber/context.c $s/fiber/stack*.c $s/fiber/valgrind_none.c " \
    "%s $s/plat/linux/memory.c $s/plat/linux/fault.c $s/plat/linux/park.c "                \
    "$s/plat/posix/assert.c -lpthread -lm -o t"

static struct command run_tests(const struct place *place, const char *flags)
{
    struct command run =
        run_command("set -e; src='%s'; cd '%s'; unset SINEW_TEST_STRICT SINEW_TEST_LOG; " BUILD "; "
                    "names=$(%s ./t --list | grep -v %s); exec %s ./t $names",
                    source_path(), temp_dir(), place->prefix, flags, place->registers,
                    place->machine, place->emulator, place->without, place->emulator);
    printf("%s", run.output);
    CHECK_EQ(run.status, 0);
    CHECK_STR_HAS(run.output, "ok    a_switch_keeps_every_register");
    CHECK_STR_HAS(run.output, "ok    a_backtrace_in_a_fiber_ends_at_its_entry");
    CHECK_STR_HAS(run.output, "ok    endless_recursion_is_reported_from_the_alternate_stack");
    CHECK_STR_HAS(run.output, " 0 failed");
    return run;
}

static void check_on(const char *processor, const char *flags)
{
    char prefix[64], compiler[80], emulator[64], machine[64];
    snprintf(prefix, sizeof prefix, "%s-linux-gnu-", processor);
    snprintf(compiler, sizeof compiler, "%sgcc", prefix);
    snprintf(emulator, sizeof emulator, "qemu-%s-static", processor);
    snprintf(machine, sizeof machine, "$a/%s.S", processor);
    require_tool(compiler, "cross");
    require_tool(emulator, "cross");
    struct place place = {prefix, emulator, processor, machine,
                          "-e address_space -e no_more_mappings -e small_pages"};
    struct command run = run_tests(&place, flags);
    CHECK_STR_HAS(run.output, "ok    a_backtrace_ends_at_a_call_that_is_told_to_be");
    command_finish(&run);
}

/* Here, by the C library's contexts: what there is for processors that have no assembly. C cannot
 * say that a call is the outermost. */
TEST(fibers_work_without_assembly, .limit_s = 120)
{
    require_tool("gcc", "core");
    struct place place = {"", "", "$(uname -m)", "$a/ucontext.c $a/leave.c",
                          "a_backtrace_ends_at_a_call_that_is_told_to_be"};
    struct command run = run_tests(&place, "");
    command_finish(&run);
}

TEST(fibers_work_on_aarch64, .limit_s = 120)
{
    check_on("aarch64", "");
}

TEST(fibers_work_on_aarch64_with_branch_protection, .limit_s = 120)
{
    check_on("aarch64", "-mbranch-protection=standard");
}

TEST(fibers_work_on_riscv64, .limit_s = 120)
{
    check_on("riscv64", "");
}
