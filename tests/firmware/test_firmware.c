/* SPDX-License-Identifier: MIT */
/* test_firmware.c - the LED-blink firmware in an emulator of a Cortex-M3 board.
 *
 * Time in the emulator is a count of instructions, so the log, with its times, is compared
 * byte for byte with the one file that WebAssembly and the host are compared with too. */
#include "freestanding/cross.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Build the firmware with `options` and run it; the caller finishes what it gets. */
static struct command build_and_run(const char *options)
{
    require_tool("qemu-system-arm", "cross");
    char *dir = cross_build("cortex-m3", options);
    char *size = run_well("arm-none-eabi-size '%s/examples/firmware/blink.elf'", dir);
    printf("%s", size);
    struct command run = run_command("'%s/examples/firmware/run.sh' "
                                     "'%s/examples/firmware/blink.elf'",
                                     source_path(), dir);
    free(size);
    free(dir);
    return run;
}

static char *expected_log(void)
{
    return run_well("cat '%s/examples/shared/blink_expected.txt'", source_path());
}

/* R14, R180: Cortex-M. */
TEST(the_blink_firmware_prints_the_expected_log, .limit_s = 120)
{
    struct command run = build_and_run("");
    char *expected = expected_log();
    CHECK_STR_EQ(run.output, expected);
    CHECK_EQ(run.status, 0);
    free(expected);
    command_finish(&run);
}

/* R14: the low word of the 64-bit clock, in ns, overflows 495 ms after this boot. */
TEST(the_blink_firmware_survives_the_overflow_of_its_clock, .limit_s = 120)
{
    struct command run = build_and_run("-DBLINK_FIRMWARE_DEFINES=BOARD_BOOT_MS=3800");
    char *expected = expected_log();
    CHECK_STR_EQ(run.output, expected);
    CHECK_EQ(run.status, 0);
    free(expected);
    command_finish(&run);
}

/* R14: presses come through the interrupt and nowhere else, so the first test can fail. */
TEST(without_the_interrupt_the_blink_firmware_times_out, .limit_s = 120)
{
    struct command run = build_and_run("-DBLINK_FIRMWARE_DEFINES=BOARD_BUTTON=0");
    char *expected = expected_log();
    CHECK_NE(strcmp(run.output, expected), 0);
    CHECK_STR_HAS(run.output, "[   300 ms] nobody pressed, 0 so far\n");
    CHECK_STR_HAS(run.output, "[  1200 ms] done, 0 presses\n");
    CHECK_EQ(run.status, 0);
    free(expected);
    command_finish(&run);
}

/* R14: a debug build on the board says what is wrong, and fails. */
TEST(a_misuse_on_the_board_is_reported_through_the_uart, .limit_s = 120)
{
    require_tool("qemu-system-arm", "cross");
    char *dir = cross_build("cortex-m3", "-DSINEW_DEBUG=ON -DSINEW_EXAMPLES=OFF");
    const char *src = source_path();
    free(run_well("cd '%s/examples' && arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -std=c11 -Os "
                  "-ffreestanding -nostdlib -fno-builtin -Wall -Werror -I../include "
                  "-Tfirmware/mps2-an385.ld '%s/tests/firmware/misuse.c' firmware/board.c "
                  "firmware/startup.c shared/blink.c shared/mem.c "
                  "'%s/src/libsinew-level0.a' -lgcc -o '%s/misuse.elf'",
                  src, src, dir, dir));
    struct command run = run_command("'%s/examples/firmware/run.sh' '%s/misuse.elf'", src, dir);
    CHECK_STR_HAS(run.output, "a finished future was polled again");
    CHECK_EQ(run.status, 1);
    command_finish(&run);
    free(dir);
}
