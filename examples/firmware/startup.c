/* SPDX-License-Identifier: MIT */
/* startup.c - from the reset of the processor to main().
 *
 * A Cortex-M loads its stack pointer from the first word of the vector table and jumps to
 * the second, so start-up is C from the first instruction. An exception that nobody expects
 * ends the emulation as a failure, instead of hanging. */
#include "../shared/mem.h"
#include "board.h"

/* From the linker script: addresses, not variables. */
extern char data_start[], data_end[], data_load[], bss_start[], bss_end[], stack_top[];

int main(void);
void reset_handler(void);

void reset_handler(void)
{
    memcpy(data_start, data_load, (size_t)(data_end - data_start));
    memset(bss_start, 0, (size_t)(bss_end - bss_start));
    board_exit(main());
}

static void unexpected(void)
{
    sn_assert_failed("an exception came that nobody expects: a fault", __FILE__, __LINE__);
}

/* The numbers are the processor's (2 to 15), then the board's, from 16 on. */
enum {
    HANDLERS = 16 + 32,
    SYSTICK = 15,
    TIMER0 = 16 + BOARD_TIMER0_IRQ,
};

typedef struct vectors {
    void *stack;
    void (*handler[HANDLERS - 1])(void);
} vectors;

#define HANDLER(number) .handler[(number) - 1]

__attribute__((section(".vectors"), used)) static const vectors table = {
    .stack = stack_top,
    HANDLER(1) = reset_handler,
    HANDLER(2) = unexpected, /* NMI                 */
    HANDLER(3) = unexpected, /* hard fault          */
    HANDLER(4) = unexpected, /* memory fault        */
    HANDLER(5) = unexpected, /* bus fault           */
    HANDLER(6) = unexpected, /* usage fault         */
    HANDLER(SYSTICK) = systick_handler,
    HANDLER(TIMER0) = timer0_handler,
};
