/* SPDX-License-Identifier: MIT */
/* What analyzers find in programs with defects, and that they are silent about those without (R21,
 * R160).
 *
 * A program of tests/static/handles or tests/static/suspend bears a mark on each line where a tool
 * must warn: the name of the tool and a part of what it says, as in
 *
 *     return 0; // gcc: malloc-leak; clang: leak
 *
 * (in a comment of the other kind). The tool must say that about this line, and must not warn about
 * lines that do not bear its mark: so programs without defects are those without marks. The tools:
 *
 *     gcc     gcc -O0 -fanalyzer -Wall; with -O2 it loses what the optimiser removes
 *     Wall    gcc -O2 -Wall, without the analyzer: what users get for nothing
 *     clang   clang --analyze
 *     roles   clang -Wthread-safety with SINEW_CHECK_SUSPEND
 *
 * These are known to be reported without reason by gcc 12 and clang 19, so that no program here
 * has them, and docs/concepts/tasks.md says what to do instead:
 *     gcc -fanalyzer   handles in an array of fixed size, spawned by one loop and joined by another
 *                      (so do some of the examples); handles stored into the nodes of a list by a
 *                      loop; the sn_exit of a join, unless it is initialised: to gcc, who uses up
 *                      a handle does nothing else
 *     clang --analyze  a cleanup attribute that joins
 *     -Wthread-safety  two marked mutexes at a time; calls with SN_NOWAIT */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tool {
    const char *mark;
    const char *package[2]; /* the program, and the group of packages it is in */
    const char *command;
};

static const struct tool gcc = {
    "gcc",
    {"gcc", "core"},
    "gcc -O0 -fanalyzer -fdiagnostics-path-format=none -c -o /dev/null",
};
static const struct tool wall = {"Wall", {"gcc", "core"}, "gcc -O2 -c -o /dev/null"};
static const struct tool clang = {
    "clang",
    {"clang-19", "clang"},
    "clang-19 --analyze -Xclang -analyzer-output=text",
};
static const struct tool roles = {
    "roles",
    {"clang-19", "clang"},
    "clang-19 -fsyntax-only -Wthread-safety -DSINEW_CHECK_SUSPEND",
};

enum { LINES_MAX = 400 };

/* A program and what `tool` has to say about it. */
struct marks {
    char *line[LINES_MAX]; /* by number: what must be said there, or NULL */
    bool said[LINES_MAX];
};

/* Finds `tool`'s mark on each line of `text`, which it cuts up. */
static int read_marks(struct marks *marks, char *text, const struct tool *tool)
{
    char key[32];
    snprintf(key, sizeof(key), " %s: ", tool->mark);
    *marks = (struct marks){.said = {false}};
    int found = 0;
    int n = 1;
    for (char *line = text; line != NULL && n < LINES_MAX; n++) {
        char *next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        char *comment = strstr(line, "/*");
        char *mark = comment != NULL ? strstr(comment, key) : NULL;
        if (mark != NULL) {
            mark += strlen(key);
            char *end = strpbrk(mark, ";*");
            if (end == NULL)
                FAIL("line %d: the mark has no end", n);
            while (end > mark && end[-1] == ' ')
                end--;
            *end = '\0';
            marks->line[n] = mark;
            found++;
        }
        line = next;
    }
    CHECK_LT(n, LINES_MAX);
    return found;
}

/* The line of `path` that a warning is about, the first that is named: a warning about a macro
 * begins with the place of its definition. 0: none. */
static int line_of(const char *warning, const char *path)
{
    size_t length = strlen(path);
    for (const char *at = strstr(warning, path); at != NULL; at = strstr(at + 1, path))
        if (at[length] == ':' && at[length + 1] >= '0' && at[length + 1] <= '9')
            return atoi(at + length + 1);
    return 0;
}

/* The start of the first line at `text` or later that holds a warning, or NULL. */
static char *next_warning(char *text)
{
    char *at = strstr(text, ": warning: ");
    while (at != NULL && at > text && at[-1] != '\n')
        at--;
    return at;
}

static void compare(struct marks *marks, char *output, const char *path, const struct tool *tool)
{
    char *next;
    for (char *warning = next_warning(output); warning != NULL; warning = next) {
        char *body = strchr(warning, '\n');
        next = body != NULL ? next_warning(body + 1) : NULL;
        if (next != NULL)
            next[-1] = '\0';
        int n = line_of(warning, path);
        if (n <= 0 || n >= LINES_MAX || marks->line[n] == NULL)
            FAIL("%s should be silent about line %d of %s:\n%s", tool->mark, n, path, warning);
        if (body != NULL)
            *body = '\0';
        if (strstr(warning, marks->line[n]) != NULL)
            marks->said[n] = true;
    }
    for (int n = 0; n < LINES_MAX; n++)
        if (marks->line[n] != NULL && !marks->said[n])
            FAIL("%s should say `%s` about line %d of %s", tool->mark, marks->line[n], n, path);
}

struct search {
    const struct tool *tool;
    int *defective; /* programs with a mark of the tool */
};

static void check_program(const char *path, const void *arg)
{
    const struct search *search = arg;
    struct command c =
        run_command("LC_ALL=C %s -std=c11 -Wall -Wextra -Wpedantic -Wshadow -I%s/include %s",
                    search->tool->command, source_path(), path);
    if (c.status != 0)
        FAIL("%s does not compile %s:\n%s", search->tool->mark, path, c.output);
    struct marks marks;
    char *text = read_file(path);
    *search->defective += read_marks(&marks, text, search->tool) > 0;
    compare(&marks, c.output, path, search->tool);
    free(text);
    command_finish(&c);
}

/* Checks the programs that match `pattern`, at least so many; returns how many bear marks. */
static int check_programs(const char *pattern, size_t least, const struct tool *tool)
{
    int defective = 0;
    require_tool(tool->package[0], tool->package[1]);
    each_source(pattern, least, check_program, &(struct search){tool, &defective});
    return defective;
}

TEST(gcc_finds_handles_that_are_forgotten_or_used_twice, .limit_s = 60)
{
    CHECK_GE(check_programs("tests/static/handles/defective/*.c", 20, &gcc), 18);
}

TEST(gcc_finds_some_of_them_without_its_analyzer, .limit_s = 60)
{
    CHECK_GE(check_programs("tests/static/handles/defective/*.c", 20, &wall), 7);
}

TEST(clang_finds_handles_that_are_forgotten_or_used_twice, .limit_s = 60)
{
    CHECK_GE(check_programs("tests/static/handles/defective/*.c", 20, &clang), 20);
}

TEST(analyzers_are_silent_about_handles_that_are_used_up_once, .limit_s = 60)
{
    CHECK_EQ(check_programs("tests/static/handles/correct/*.c", 3, &gcc), 0);
    CHECK_EQ(check_programs("tests/static/handles/correct/*.c", 3, &wall), 0);
    CHECK_EQ(check_programs("tests/static/handles/correct/*.c", 3, &clang), 0);
}

/* Larger programs, which were not written for this. */
TEST(clang_is_silent_about_the_examples, .limit_s = 120)
{
    CHECK_EQ(check_programs("examples/*.c", 15, &clang), 0);
}

TEST(clang_finds_who_suspends_where_it_must_not, .limit_s = 60)
{
    CHECK_GE(check_programs("tests/static/suspend/defective/*.c", 8, &roles), 8);
}

TEST(clang_is_silent_about_those_who_suspend_where_they_may, .limit_s = 60)
{
    CHECK_EQ(check_programs("tests/static/suspend/correct/*.c", 1, &roles), 0);
}

/* An effect that nobody asked for costs nobody a warning. */
TEST(unless_asked_for_nobody_checks_who_suspends, .limit_s = 60)
{
    static const struct tool unasked = {
        "nobody",
        {"clang-19", "clang"},
        "clang-19 -fsyntax-only -Wthread-safety",
    };
    static const struct tool other = {
        "nobody", {"gcc", "core"}, "gcc -DSINEW_CHECK_SUSPEND -fsyntax-only"};
    CHECK_EQ(check_programs("tests/static/suspend/*/*.c", 9, &unasked), 0);
    CHECK_EQ(check_programs("tests/static/suspend/*/*.c", 9, &other), 0);
}
