/* SPDX-License-Identifier: MIT */
/* valgrind.c - tells valgrind which memory is a stack.
 *
 * It must guess otherwise whether a jump of the stack pointer is a new stack or a huge frame,
 * and guesses wrong for stacks that lie closer than 2 MiB, as ours do. Outside valgrind these
 * are a few instructions without effect, once in the life of a stack. */
#include "fiber/sanitize.h"

#include <stdint.h>
#include <valgrind/valgrind.h>

bool sni_valgrind_active(void)
{
    return RUNNING_ON_VALGRIND != 0;
}

unsigned sni_valgrind_stack_register(void *lo, void *hi)
{
    return (unsigned)VALGRIND_STACK_REGISTER((uintptr_t)lo, (uintptr_t)hi);
}

void sni_valgrind_stack_deregister(unsigned id)
{
    VALGRIND_STACK_DEREGISTER(id);
}
