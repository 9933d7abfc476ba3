/* SPDX-License-Identifier: MIT */
/* main.c - the program of examples/shared/blink.c on a microcontroller.
 *
 * The frame of the outermost coroutine holds those of all the others: the memory of the
 * program is this one variable, known when it is linked. */
#include "board.h"

int main(void)
{
    static app program;
    program.board = board_start();
    return sn_block_on_simple(SN_START(app, &program), &board_idle);
}
