/* SPDX-License-Identifier: MIT */
/* test_freestanding.c - Level 0 needs no C library and no memory of its own.
 *
 * The archive is built for a microcontroller, for WebAssembly and, with the same build
 * description, for this machine as if it had no operating system. What a link of all its
 * members leaves undefined is then compared with what a freestanding compiler may call. */
#include "freestanding/cross.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One way to get the archive, and the tools that go with it. */
struct target {
    const char *preset;
    const char *options;
    const char *undefined; /* shell: prints what "$all" lacks; $lib is the archive            */
    const char *compile;   /* compiler with the flags of the target                           */
    const char *link;      /* what the linker must be told beside the files                   */
};

/* Node reads a relocatable module as it reads any: undefined functions are its imports. */
#define WASM_IMPORTS                                                                       \
    "node -e 'const m = new WebAssembly.Module(require(\"fs\").readFileSync(\"'$all'\"));" \
    " for (const i of WebAssembly.Module.imports(m))"                                      \
    " if (i.kind === \"function\") console.log(i.name)'"

static const struct target cortex_m3 = {
    .preset = "cortex-m3",
    .options = "-DSINEW_EXAMPLES=OFF",
    .undefined = "arm-none-eabi-ld -r --whole-archive $lib -o $all && arm-none-eabi-nm -u $all",
    .compile = "arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb",
    .link = "",
};
static const struct target wasm32 = {
    .preset = "wasm32",
    .options = "-DSINEW_EXAMPLES=OFF",
    .undefined = "wasm-ld-19 -r --whole-archive $lib -o $all && " WASM_IMPORTS,
    .compile = "clang-19 --target=wasm32",
    .link = "-Wl,--no-entry -Wl,--export=_start",
};
/* "Generic" is CMake's name for bare metal: the build takes this machine for one. */
static const struct target host = {
    .preset = "release",
    .options = "-DCMAKE_SYSTEM_NAME=Generic -DCMAKE_C_FLAGS='-ffreestanding -nostdlib -fno-pie' "
               "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY -DSINEW_EXAMPLES=OFF",
    .undefined = "ld -r --whole-archive $lib -o $all && nm -u $all",
    .compile = "gcc -fno-pie -no-pie",
    .link = "-static",
};

/* ---- undefined symbols ------------------------------------------------------------------- */

static bool is_allowed(const char *symbol)
{
    static const char *const allowed[] = {"memcpy", "memset", "memmove", "memcmp"};
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (strcmp(symbol, allowed[i]) == 0)
            return true;
    return strncmp(symbol, "__atomic_", 9) == 0 || strncmp(symbol, "__sync_", 7) == 0;
}

/* The first name in `list` that no freestanding program has to bring, or NULL. Cuts `list`. */
static const char *foreign_symbol(char *list)
{
    for (char *name = strtok(list, " \n"); name != NULL; name = strtok(NULL, " \n"))
        if (strcmp(name, "U") != 0 && !is_allowed(name)) /* nm's letter for undefined */
            return name;
    return NULL;
}

static char *undefined_symbols(const struct target *target, const char *dir)
{
    return run_well("lib='%s/src/libsinew-level0.a'; all='%s/all.o'; %s", dir, dir,
                    target->undefined);
}

static void check_needs_nothing(const struct target *target)
{
    char *dir = cross_build(target->preset, target->options);
    char *symbols = undefined_symbols(target, dir);
    printf("%s: undefined are: %s\n", target->preset, symbols);
    const char *foreign = foreign_symbol(symbols);
    if (foreign != NULL)
        FAIL("Level 0 for %s needs %s, which nobody has there", target->preset, foreign);
    free(symbols);
    free(dir);
}

/* R1, R180: Cortex-M. */
TEST(level_0_for_cortex_m3_needs_no_library, .limit_s = 120)
{
    check_needs_nothing(&cortex_m3);
}

/* R1, R180: WASM32. */
TEST(level_0_for_wasm32_needs_no_library, .limit_s = 120)
{
    require_tool("node", "cross");
    check_needs_nothing(&wasm32);
}

/* R1: freestanding on any machine. */
TEST(level_0_for_this_machine_needs_no_library, .limit_s = 120)
{
    require_tool("nm", "test");
    check_needs_nothing(&host);
}

/* R1: the three tests above can fail. */
TEST(a_call_of_malloc_planted_in_level_0_is_found, .limit_s = 120)
{
    require_tool("nm", "test");
    char *dir = cross_build(host.preset, host.options);
    free(run_well("cd '%s' && echo 'void *malloc(unsigned long); void *sn_bad(void);"
                  " void *sn_bad(void) { return malloc(1); }' > bad.c && "
                  "%s -ffreestanding -c bad.c && ar q src/libsinew-level0.a bad.o",
                  dir, host.compile));
    char *symbols = undefined_symbols(&host, dir);
    CHECK_STR_EQ(foreign_symbol(symbols), "malloc");
    free(symbols);
    free(dir);
}

/* ---- a program without a C library --------------------------------------------------------- */

static void check_links(const struct target *target)
{
    char *dir = cross_build(target->preset, target->options);
    free(run_well("%s -std=c11 -O2 -ffreestanding -nostdlib -fno-builtin -Wall -Werror "
                  "-I'%s/include' '%s/tests/freestanding/start.c' '%s/examples/shared/mem.c' "
                  "'%s/src/libsinew-level0.a' %s -o '%s/start'",
                  target->compile, source_path(), source_path(), source_path(), dir, target->link,
                  dir));
    free(dir);
}

/* R1, R180 */
TEST(a_program_for_cortex_m3_links_with_nothing_but_level_0, .limit_s = 120)
{
    check_links(&cortex_m3);
}

/* R1, R180 */
TEST(a_program_for_wasm32_links_with_nothing_but_level_0, .limit_s = 120)
{
    check_links(&wasm32);
}

/* R1 */
TEST(a_program_for_this_machine_links_with_nothing_but_level_0, .limit_s = 120)
{
    check_links(&host);
}

/* ---- size ------------------------------------------------------------------------------- */

/* The bytes of all sections whose names begin with `prefix` in a listing of `size -A`. */
static unsigned long section_bytes(const char *listing, const char *prefix)
{
    unsigned long sum = 0;
    for (const char *line = listing; line != NULL; line = strchr(line, '\n')) {
        char name[128];
        unsigned long bytes;
        line += strspn(line, "\n");
        if (sscanf(line, "%127s %lu", name, &bytes) == 2 &&
            strncmp(name, prefix, strlen(prefix)) == 0)
            sum += bytes;
    }
    return sum;
}

/* R1: 0 bytes of base cost, and code for a small microcontroller. */
TEST(level_0_for_cortex_m3_has_no_variables_and_less_than_2_kib_of_code, .limit_s = 120)
{
    char *dir = cross_build(cortex_m3.preset, cortex_m3.options);
    char *listing = run_well("arm-none-eabi-size -A '%s/src/libsinew-level0.a'", dir);
    unsigned long code = section_bytes(listing, ".text");
    unsigned long constants = section_bytes(listing, ".rodata");
    unsigned long data = section_bytes(listing, ".data");
    unsigned long bss = section_bytes(listing, ".bss") + section_bytes(listing, "COMMON");
    printf("level 0 on cortex-m3, -Os: code %lu, constants %lu, data %lu, bss %lu bytes\n", code,
           constants, data, bss);
    CHECK_GT(code, 0);
    CHECK_LT(code + constants, 2048); /* both are flash: the "text" column of `size` */
    CHECK_EQ(data, 0);
    CHECK_EQ(bss, 0);
    free(listing);
    free(dir);
}
