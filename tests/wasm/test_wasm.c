/* SPDX-License-Identifier: MIT */
/* test_wasm.c - the blink program as WebAssembly, in Node and in a browser.
 *
 * Its host, examples/wasm/host.mjs, supplies the time, so that the log is the same as the
 * firmware's, byte for byte. */
#include "freestanding/cross.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The browser neither talks to the network nor to other instances of itself. */
#define CHROMIUM                                                                    \
    "chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run " \
    "--disable-background-networking --disable-component-update --disable-sync "    \
    "--virtual-time-budget=8000 --dump-dom"

static char *build_module(void)
{
    require_tool("node", "cross");
    return cross_build("wasm32", "");
}

static char *run_in_node(const char *dir, const char *options)
{
    return run_well("node '%s/examples/wasm/run-node.mjs' '%s/examples/wasm/blink.wasm' %s",
                    source_path(), dir, options);
}

static char *expected_log(void)
{
    return run_well("cat '%s/examples/shared/blink_expected.txt'", source_path());
}

/* R14, R180: WASM32 in Node; presses are promises that come in, the end is one that goes out. */
TEST(the_blink_module_in_node_prints_the_expected_log, .limit_s = 120)
{
    char *dir = build_module();
    char *log = run_in_node(dir, "");
    char *expected = expected_log();
    CHECK_STR_EQ(log, expected);
    free(expected);
    free(log);
    free(dir);
}

/* R14: the comparison above can fail. */
TEST(without_promises_the_blink_module_times_out, .limit_s = 120)
{
    char *dir = build_module();
    char *log = run_in_node(dir, "--presses=");
    CHECK_STR_HAS(log, "[  1200 ms] nobody pressed, 0 so far\n[  1200 ms] done, 0 presses\n");
    free(log);
    free(dir);
}

/* R14: timers of the event loop, not a simulation of them; times are the machine's mood. */
TEST(the_blink_module_in_node_runs_in_real_time, .limit_s = 120)
{
    char *dir = build_module();
    char *log = run_in_node(dir, "--real");
    CHECK_STR_HAS(log, "] done, 2 presses\n");
    free(log);
    free(dir);
}

/* R1, R180: what the module imports is what board.c declares; no C library hides in it. */
TEST(the_blink_module_imports_its_board_and_nothing_else, .limit_s = 120)
{
    char *dir = build_module();
    char *imports = run_well(
        "module='%s/examples/wasm/blink.wasm' && echo \"$(wc -c < $module) bytes\" && "
        "node -e 'const m = new WebAssembly.Module(require(\"fs\").readFileSync(\"'$module'\"));"
        " console.log(WebAssembly.Module.imports(m).map((i) => i.name).sort().join(\" \"))'",
        dir);
    printf("blink.wasm: %s", imports);
    CHECK_STR_HAS(imports, " bytes\narm led now_ms report wake\n");
    free(imports);
    free(dir);
}

/* R14: the same in a browser. */
TEST(the_blink_page_in_a_browser_shows_the_expected_log, .limit_s = 120)
{
    require_tool("chromium", "cross");
    char *dir = build_module();
    char *page = run_well(CHROMIUM " --user-data-dir='%s/profile' "
                                   "'file://%s/examples/wasm/blink.html#virtual' 2>'%s/errors'",
                          temp_dir(), dir, temp_dir());
    CHECK_STR_HAS(page, "<title>result 2</title>");
    char *log = strstr(page, "<pre id=\"log\">");
    CHECK(log != NULL);
    log += strlen("<pre id=\"log\">");
    char *end = strstr(log, "</pre>");
    CHECK(end != NULL);
    *end = '\0';
    char *expected = expected_log();
    CHECK_STR_EQ(log, expected);
    free(expected);
    free(page);
    free(dir);
}
