/* SPDX-License-Identifier: MIT */
/* Public headers: each compiles alone, as C and as C++, adds few macros, and the shared
 * library exports what they declare and nothing else. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_alone(const char *path, const void *arg)
{
    const char *compiler = arg;
    const char *name = strrchr(path, '/') + 1;
    struct command c =
        run_command("printf '#include <sinew/%s>\\nextern int unused;\\n' | "
                    "%s -Wall -Wextra -Wpedantic -Wshadow -Werror -I%s/include -fsyntax-only -",
                    name, compiler, source_path());
    if (c.status != 0)
        FAIL("%s does not compile alone with %s:\n%s", name, compiler, c.output);
    command_finish(&c);
}

static void check_headers(const char *compiler)
{
    each_source("include/sinew/*.h", 8, check_alone, compiler);
}

TEST(every_public_header_compiles_alone_as_c, .limit_s = 60)
{
    check_headers("gcc -std=c11 -x c");
    check_headers("gcc -std=c17 -ffreestanding -x c");
}

TEST(every_public_header_compiles_alone_as_cxx, .limit_s = 60)
{
    require_tool("g++", "test");
    check_headers("g++ -std=c++11 -x c++");
    check_headers("g++ -std=c++20 -x c++");
}

TEST(every_public_header_compiles_alone_with_clang, .limit_s = 60)
{
    require_tool("clang-19", "clang");
    check_headers("clang-19 -std=c11 -x c");
    check_headers("clang-19 -std=c++20 -x c++");
    check_headers("clang-19 -DSINEW_CHECK_SUSPEND -Wthread-safety -std=c11 -x c");
    check_headers("clang-19 -DSINEW_CHECK_SUSPEND -Wthread-safety -std=c++20 -x c++");
}

static int count_macros(const char *program)
{
    struct command c = run_command("printf '%s' | gcc -std=c11 -I%s/include -dM -E - | wc -l",
                                   program, source_path());
    CHECK_EQ(c.status, 0);
    int count = atoi(c.output);
    command_finish(&c);
    return count;
}

/* Of its own: what the four standard headers that it may include bring does not count. */
TEST(the_whole_of_sinew_adds_few_macros)
{
    int before = count_macros("#include <errno.h>\\n#include <stdbool.h>\\n"
                              "#include <stddef.h>\\n#include <stdint.h>\\n");
    int after = count_macros("#include <sinew/sinew.h>\\n");
    printf("macros: %d of its own\n", after - before);
    CHECK_GE(after - before, 50);
    CHECK_LE(after - before, 200);
}

TEST(the_shared_library_exports_only_public_names)
{
    require_tool("nm", "core");
    struct command c =
        run_command("nm -D --defined-only %s/src/libsinew.so | awk '{print $3}'", build_path());
    CHECK_EQ(c.status, 0);
    CHECK_STR_HAS(c.output, "sn_future_poll\n");
    CHECK_STR_HAS(c.output, "sn_version\n");
    for (char *name = strtok(c.output, "\n"); name != NULL; name = strtok(NULL, "\n"))
        if (strncmp(name, "sn_", 3) != 0)
            FAIL("the shared library exports %s", name);
    command_finish(&c);
}

TEST(every_declared_function_is_exported)
{
    struct command c = run_command(
        "grep -ohE '^(SN_NORETURN )?SN_API [^(]*\\(' %s/include/sinew/*.h | "
        "sed -E 's/.*[ *](sn_[a-z0-9_]+)\\($/\\1/' | sort -u > %s/declared && "
        "nm -D --defined-only %s/src/libsinew.so | awk '{print $3}' | sort -u > %s/exported && "
        "wc -l < %s/declared && comm -3 %s/declared %s/exported",
        source_path(), temp_dir(), build_path(), temp_dir(), temp_dir(), temp_dir(), temp_dir());
    CHECK_EQ(c.status, 0);
    CHECK_GE(atoi(c.output), 30);
    CHECK_STR_EQ(strchr(c.output, '\n') + 1, "");
    command_finish(&c);
}
