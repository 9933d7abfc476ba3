/* SPDX-License-Identifier: MIT */
/* misuse.c - a main() for the board that polls a future after its end.
 *
 * In a debug build of the library that stops the program with a sentence; the test looks for
 * it on the UART. */
#include "../../examples/firmware/board.h"

int main(void)
{
    static sn_fut_ready ready;
    (void)board_start();
    sn_future *done = sn_fut_ready_init(&ready, 0);
    int first = sn_block_on_simple(done, &board_idle);
    return first + sn_block_on_simple(done, &board_idle);
}
