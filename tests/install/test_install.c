/* SPDX-License-Identifier: MIT */
/* Installation (R182): into a temporary prefix, then used through pkg-config and through
 * CMake, statically and dynamically. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

static void install(const char *prefix)
{
    struct command c = run_command("cmake --install %s --prefix %s", build_path(), prefix);
    if (c.status != 0)
        FAIL("cmake --install failed:\n%s", c.output);
    command_finish(&c);
}

static const char *prefix(void)
{
    static char path[512];
    if (path[0] == '\0') {
        snprintf(path, sizeof(path), "%s/prefix", temp_dir());
        install(path);
    }
    return path;
}

static void expect_42(struct command c)
{
    if (c.status != 0)
        FAIL("the consumer failed:\n%s", c.output);
    CHECK_STR_HAS(c.output, "says 42\n");
    command_finish(&c);
}

TEST(an_installed_sinew_is_found_by_pkg_config_as_a_shared_library)
{
    require_tool("pkg-config", "test");
    expect_42(run_command("cd %s && PKG_CONFIG_PATH=%s/lib/pkgconfig && export PKG_CONFIG_PATH && "
                          "gcc -Wall -Werror %s/tests/install/consumer/consumer.c -o consumer "
                          "$(pkg-config --cflags --libs sinew) && ldd consumer && "
                          "LD_LIBRARY_PATH=%s/lib ./consumer",
                          temp_dir(), prefix(), source_path(), prefix()));
}

TEST(an_installed_sinew_is_found_by_pkg_config_as_a_static_library)
{
    require_tool("pkg-config", "test");
    expect_42(run_command("cd %s && PKG_CONFIG_PATH=%s/lib/pkgconfig && export PKG_CONFIG_PATH && "
                          "rm %s/lib/libsinew.so* && "
                          "gcc -Wall -Werror %s/tests/install/consumer/consumer.c -o consumer "
                          "$(pkg-config --static --cflags --libs sinew) && ./consumer",
                          temp_dir(), prefix(), prefix(), source_path()));
}

TEST(everything_that_the_archive_needs_is_named_by_pkg_config)
{
    require_tool("pkg-config", "test");
    expect_42(run_command("cd %s && PKG_CONFIG_PATH=%s/lib/pkgconfig && export PKG_CONFIG_PATH && "
                          "gcc -Wall -Werror %s/tests/install/consumer/consumer.c -o consumer "
                          "-Wl,--whole-archive %s/lib/libsinew.a -Wl,--no-whole-archive "
                          "$(pkg-config --static --cflags --libs sinew) && ./consumer",
                          temp_dir(), prefix(), source_path(), prefix()));
}

TEST(an_installed_prefix_can_be_moved)
{
    require_tool("pkg-config", "test");
    expect_42(run_command("mv %s %s/elsewhere && cd %s && "
                          "PKG_CONFIG_PATH=%s/elsewhere/lib/pkgconfig && export PKG_CONFIG_PATH && "
                          "gcc %s/tests/install/consumer/consumer.c -o consumer "
                          "$(pkg-config --cflags --libs sinew) && "
                          "LD_LIBRARY_PATH=%s/elsewhere/lib ./consumer",
                          prefix(), temp_dir(), temp_dir(), temp_dir(), source_path(), temp_dir()));
}

static void build_with_cmake(const char *library)
{
    expect_42(
        run_command("cmake -S %s/tests/install/consumer -B %s/build -DCMAKE_PREFIX_PATH=%s && "
                    "cmake --build %s/build --target consumer-%s && %s/build/consumer-%s",
                    source_path(), temp_dir(), prefix(), temp_dir(), library, temp_dir(), library));
}

TEST(an_installed_sinew_is_found_by_cmake_as_a_static_library, .limit_s = 60)
{
    build_with_cmake("sinew");
}

TEST(everything_that_the_archive_needs_is_named_by_cmake, .limit_s = 60)
{
    build_with_cmake("whole");
}

TEST(an_installed_sinew_is_found_by_cmake_as_a_shared_library, .limit_s = 60)
{
    build_with_cmake("sinew-shared");
}

TEST(an_installed_level0_archive_is_found_by_cmake, .limit_s = 60)
{
    build_with_cmake("level0");
}

TEST(the_installed_headers_are_not_system_headers_so_that_their_warnings_show, .limit_s = 60)
{
    struct command c = run_command(
        "cmake -S %s/tests/install/consumer -B %s/build -DCMAKE_PREFIX_PATH=%s "
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON > /dev/null && cat %s/build/compile_commands.json",
        source_path(), temp_dir(), prefix(), temp_dir());
    CHECK_EQ(c.status, 0);
    CHECK_STR_HAS(c.output, "consumer.c");
    CHECK(strstr(c.output, "-isystem") == NULL);
    command_finish(&c);
}

TEST(nothing_installed_names_the_build_machine)
{
    struct command c =
        run_command("grep -rlF -e '%s' -e '%s' %s || true", source_path(), build_path(), prefix());
    CHECK_STR_EQ(c.output, "");
    command_finish(&c);
}
