/* SPDX-License-Identifier: MIT */
/* cross.c - see cross.h. The environment's own compiler flags are for the host and stay out. */
#include "freestanding/cross.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *run_well(const char *fmt, ...)
{
    char *line = NULL;
    va_list args;
    va_start(args, fmt);
    int length = vasprintf(&line, fmt, args);
    va_end(args);
    CHECK(length >= 0);
    struct command command = run_command("%s", line);
    if (command.status != 0)
        FAIL("status %d from: %s\n%s", command.status, line, command.output);
    free(line);
    return command.output;
}

static void require_tools(const char *preset)
{
    require_tool("cmake", "core");
    if (strcmp(preset, "cortex-m3") == 0) {
        require_tool("arm-none-eabi-gcc", "cross");
    } else if (strcmp(preset, "wasm32") == 0) {
        require_tool("clang-19", "cross");
        require_tool("wasm-ld-19", "cross");
    }
}

char *cross_build(const char *preset, const char *options)
{
    require_tools(preset);
    char *dir = NULL;
    CHECK(asprintf(&dir, "%s/%s", temp_dir(), preset) >= 0);
    free(run_well("unset CFLAGS CPPFLAGS LDFLAGS MAKEFLAGS; cd '%s' && "
                  "cmake --preset %s -B '%s' %s && cmake --build '%s'",
                  source_path(), preset, dir, options, dir));
    return dir;
}
