/* SPDX-License-Identifier: MIT */
/* Examples and the programs in the documents: built, run, and their output compared (R4 for
 * Level 0: the same sources run in every preset that builds them). */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void run_example(const char *source, const void *arg)
{
    (void)arg;
    char name[128];
    snprintf(name, sizeof(name), "%s", strrchr(source, '/') + 1);
    *strrchr(name, '.') = '\0';
    char path[512];
    snprintf(path, sizeof(path), "%s/examples/%s.expected", source_path(), name);
    char *expected = read_file(path);
    struct command c = run_command("%s/examples/%s", build_path(), name);
    if (c.status != 0)
        FAIL("example %s ended with %d:\n%s", name, c.status, c.output);
    CHECK_STR_EQ(c.output, expected);
    command_finish(&c);
    free(expected);
}

TEST(every_example_prints_what_its_expected_file_says, .limit_s = 180)
{
    each_source("examples/[0-9][0-9]_*.c", 9, run_example, NULL);
}

/* R52: stacks that change are no errors, nor is what sockets receive, with whatever driver is
 * chosen there. It ends, too: a thread that sleeps must not stop the others. */
TEST(examples_have_no_errors_under_valgrind, .limit_s = 180)
{
    static const char *const names[] = {"06_spawn",       "08_panic",          "10_sleep",
                                        "11_echo_server", "16_coroutine_echo", "20_worker_pool"};
    require_tool("valgrind", "test");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct command c = run_command("timeout -k 1 25 valgrind -q --error-exitcode=99 "
                                       "%s/examples/%s < /dev/null",
                                       build_path(), names[i]);
        if (c.status != 0)
            FAIL("%s ended with %d:\n%s", names[i], c.status, c.output);
        command_finish(&c);
    }
}

/* R50: from where a fiber panics to its beginning, and there is an end. */
TEST(a_debugger_walks_the_stack_of_a_fiber_to_its_beginning, .limit_s = 60)
{
    require_tool("gdb", "test");
    struct command c = run_command("gdb -nx -q -batch -ex 'set debuginfod enabled off' "
                                   "-ex 'break sn_panic' -ex run -ex bt %s/examples/08_panic",
                                   build_path());
    CHECK_STR_HAS(c.output, "in divide (");
    CHECK_STR_HAS(c.output, "in fiber_main (");
    CHECK_STR_HAS(c.output, "in sni_context_start (");
    CHECK(strstr(c.output, "Backtrace stopped") == NULL);
    CHECK(strstr(c.output, "in ?? (") == NULL);
    command_finish(&c);
}

TEST(the_examples_are_shown_at_work, .limit_s = 180)
{
    struct command c = run_command("%s/tools/run-examples %s", source_path(), build_path());
    CHECK_EQ(c.status, 0);
    CHECK_STR_HAS(c.output, "== 01_hello - ");
    CHECK_STR_HAS(c.output, "== 13_http_hello - "); /* of several lines: the first one */
    CHECK_STR_HAS(c.output, "    |Hello, web!\n");
    CHECK(strstr(c.output, "Terminated") == NULL);
    command_finish(&c);
}

/* A first look at something fits on a screen. Servers that a stranger may talk to are longer, and
 * so is what must make the trouble it copes with; no other file may become so without a line
 * here. */
static void check_length(const char *source, const void *arg)
{
    static const struct {
        const char *name;
        int lines_max;
    } longer[] = {
        {"11_echo_server.c", 120},    {"12_echo_client.c", 120}, {"13_http_hello.c", 370},
        {"14_chat.c", 260},           {"15_udp.c", 150},         {"16_coroutine_echo.c", 165},
        {"24_happy_eyeballs.c", 125}, {"25_first_error.c", 80},  {"26_graceful.c", 170},
        {"27_clean_up.c", 120}};
    (void)arg;
    int lines_max = 60, lines = 0;
    for (size_t i = 0; i < sizeof(longer) / sizeof(longer[0]); i++)
        if (strcmp(strrchr(source, '/') + 1, longer[i].name) == 0)
            lines_max = longer[i].lines_max;
    char *text = read_file(source);
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    free(text);
    if (lines > lines_max)
        FAIL("%s has %d lines, more than %d", source, lines, lines_max);
}

TEST(every_example_is_short)
{
    each_source("examples/[0-9][0-9]_*.c", 9, check_length, NULL);
}

/* In a document, a ```c block with a main() is a program; the ```text block that follows it
 * is its output. Everything else is left to the reader. */
struct program {
    char *source;
    char *output;
};

static char *fenced(char *text, const char *language, char **rest)
{
    char open[32];
    snprintf(open, sizeof(open), "\n```%s\n", language);
    char *begin = strstr(text, open);
    if (begin == NULL)
        return NULL;
    begin += strlen(open);
    char *end = strstr(begin, "\n```");
    if (end == NULL)
        return NULL;
    end[1] = '\0';
    *rest = end + 2;
    return begin;
}

static bool next_program(char **text, struct program *program)
{
    char *rest = *text;
    while ((program->source = fenced(rest, "c", &rest)) != NULL) {
        if (strstr(program->source, "int main(") == NULL)
            continue;
        program->output = fenced(rest, "text", &rest);
        *text = rest;
        return true;
    }
    return false;
}

static void run_program(const struct program *program, int number)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/program%d.c", temp_dir(), number);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs(program->source, file);
    CHECK_EQ(fclose(file), 0);
    struct command c =
        run_command("gcc -std=c11 -Wall -Wextra -Werror -I%s/include %s "
                    "%s/src/libsinew.a -pthread " PRIVATE_LIBS " -o %s.out && %s.out",
                    source_path(), path, build_path(), path, path);
    if (c.status != 0)
        FAIL("a program of the document failed:\n%s\n%s", program->source, c.output);
    CHECK(program->output != NULL);
    CHECK_STR_EQ(c.output, program->output);
    command_finish(&c);
}

static int run_document(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", source_path(), name);
    char *text = read_file(path);
    char *at = text;
    struct program program;
    int count = 0;
    while (next_program(&at, &program))
        run_program(&program, count++);
    free(text);
    return count;
}

TEST(the_programs_in_the_readme_print_what_it_says, .limit_s = 60)
{
    CHECK_GE(run_document("README.md"), 1);
}

TEST(the_programs_in_the_documents_print_what_they_say, .limit_s = 60)
{
    CHECK_GE(run_document("docs/concepts/level0.md"), 2);
    CHECK_GE(run_document("docs/concepts/tasks.md"), 1);
    CHECK_GE(run_document("docs/concepts/time.md"), 3);
    CHECK_GE(run_document("docs/concepts/net.md"), 1);
    CHECK_GE(run_document("docs/concepts/channels.md"), 2);
    CHECK_GE(run_document("docs/concepts/select.md"), 1);
    CHECK_GE(run_document("docs/concepts/structured.md"), 4);
    CHECK_GE(run_document("docs/concepts/cancellation.md"), 3);
    CHECK_GE(run_document("docs/concepts/deadlocks.md"), 1);
}
