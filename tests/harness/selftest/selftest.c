/* SPDX-License-Identifier: MIT */
/* selftest.c - see selftest.h. */
#include "selftest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct command victims(const char *fmt, ...)
{
    char arguments[2048];
    char assignments[2048] = "";
    va_list args;
    va_start(args, fmt);
    int bytes = vsnprintf(arguments, sizeof arguments, fmt, args);
    va_end(args);
    CHECK(bytes >= 0 && (size_t)bytes < sizeof arguments);

    char *rest = arguments;
    for (;;) {
        size_t word = strcspn(rest, " ");
        char *equals = memchr(rest, '=', word);
        if (equals == NULL || rest[0] == '-')
            break;
        strncat(assignments, rest, word);
        strcat(assignments, " ");
        rest += word + (rest[word] == ' ');
    }
    return run_command(CLEAN_ENVIRONMENT " %s '%s' %s", assignments, HARNESS_VICTIMS, rest);
}

void victims_say(int status, const char *text, const char *arguments)
{
    struct command c = victims("%s", arguments);
    CHECK_STR_HAS(c.output, text);
    CHECK_EQ(c.status, status);
    command_finish(&c);
}

int occurrences(const char *haystack, const char *needle)
{
    int count = 0;
    for (const char *at = strstr(haystack, needle); at != NULL; at = strstr(at + 1, needle))
        count++;
    return count;
}

/* A zombie, which nobody may ever reap in a container, counts as gone. */
static bool is_gone_now(int pid)
{
    char path[64];
    char state = 'X';
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return true;
    int fields = fscanf(file, "%*d (%*[^)]) %c", &state);
    fclose(file);
    return fields != 1 || state == 'Z' || state == 'X';
}

bool process_is_gone(int pid)
{
    for (int i = 0; i < 500; i++) {
        if (is_gone_now(pid))
            return true;
        usleep(10000);
    }
    return false;
}
