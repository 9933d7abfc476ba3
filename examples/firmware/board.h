/* SPDX-License-Identifier: MIT */
/* board.h - what this board offers to blink.c, and what start-up needs of it.
 *
 * The board is Arm's MPS2 with the image AN385: a Cortex-M3 at 25 MHz, CMSDK peripherals.
 * QEMU emulates it as mps2-an385. */
#ifndef SINEW_EXAMPLES_FIRMWARE_BOARD_H
#define SINEW_EXAMPLES_FIRMWARE_BOARD_H

#include "../shared/blink.h"

#define BOARD_TIMER0_IRQ 8

/* Start the UART, the clock and the button, and give the board. Once. */
struct board *board_start(void);

/* How the processor sleeps while the program waits. */
extern sn_idle board_idle;

/* End the emulation; it exits with 0 if `result` is 0 or positive, else with 1. */
_Noreturn void board_exit(int result);

/* In the vector table. */
void systick_handler(void);
void timer0_handler(void);

#endif
