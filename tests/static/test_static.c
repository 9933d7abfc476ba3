/* SPDX-License-Identifier: MIT */
/* Programs that compilers must refuse or warn about, and programs they must not (R11).
 *
 * Each file of tests/static/coro begins with a line `expect: …`: the text that the compiler's
 * output must contain, or `nothing`. Where gcc and clang use different words there is one
 * line for each, `expect gcc: …` and `expect clang: …`. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the first lines of `path` say that `compiler` must print; the caller frees it. */
static char *expectation(const char *path, const char *compiler)
{
    char *text = read_file(path);
    char key[32];
    snprintf(key, sizeof(key), "expect %s: ", compiler);
    char *at = strstr(text, key);
    if (at == NULL) {
        snprintf(key, sizeof(key), "expect: ");
        at = strstr(text, key);
    }
    if (at == NULL)
        FAIL("%s has no line `expect: …`", path);
    at += strlen(key);
    at[strcspn(at, "\n*")] = '\0';
    while (at[0] != '\0' && at[strlen(at) - 1] == ' ')
        at[strlen(at) - 1] = '\0';
    char *copy = strdup(at);
    free(text);
    return copy;
}

static void check_file(const char *path, const char *compiler, const char *level)
{
    bool gcc = strcmp(compiler, "gcc") == 0;
    struct command c = run_command(
        "LC_ALL=C %s -std=c11 %s -Wall -Wextra -Wpedantic -Wshadow %s -I%s/include "
        "-c -o /dev/null %s",
        gcc ? "gcc" : "clang-19", level,
        gcc ? "-Wimplicit-fallthrough=5" : "-Wimplicit-fallthrough", source_path(), path);
    char *expected = expectation(path, compiler);
    if (strcmp(expected, "nothing") == 0) {
        if (c.status != 0 || c.output_bytes != 0)
            FAIL("%s %s should be silent about %s:\n%s", compiler, level, path, c.output);
    } else if (strstr(c.output, expected) == NULL) {
        FAIL("%s %s should say `%s` about %s, but said:\n%s", compiler, level, expected, path,
             c.output);
    }
    free(expected);
    command_finish(&c);
}

static void check_levels(const char *path, const void *compiler)
{
    check_file(path, compiler, "-O0");
    check_file(path, compiler, "-O2");
}

static void check_all(const char *compiler)
{
    each_source("tests/static/coro/*.c", 10, check_levels, compiler);
}

TEST(gcc_flags_wrong_coroutines_and_is_silent_about_right_ones, .limit_s = 60)
{
    require_tool("gcc", "core");
    check_all("gcc");
}

TEST(clang_flags_wrong_coroutines_and_is_silent_about_right_ones, .limit_s = 60)
{
    require_tool("clang-19", "clang");
    check_all("clang");
}
