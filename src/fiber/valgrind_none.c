/* SPDX-License-Identifier: MIT */
/* valgrind_none.c - for machines that had no <valgrind/valgrind.h> when the library was built:
 * nobody is told about stacks. See sanitize.h. */
#include "fiber/sanitize.h"

bool sni_valgrind_active(void)
{
    return false;
}

unsigned sni_valgrind_stack_register(void *lo, void *hi)
{
    (void)lo;
    (void)hi;
    return 0;
}

void sni_valgrind_stack_deregister(unsigned id)
{
    (void)id;
}
