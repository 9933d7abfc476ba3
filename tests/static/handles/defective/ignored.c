/* SPDX-License-Identifier: MIT */
/* The result of a spawn is ignored. */
#include <sinew/sinew.h>

int work(void *arg);

void defect(void)
{
    sn_spawn(work, NULL); /* gcc: unused-result; Wall: unused-result */
} /* clang: leak */
