/* SPDX-License-Identifier: MIT */
/* mem.h - the part of <string.h> that mem.c brings where there is no C library. */
#ifndef SINEW_EXAMPLES_MEM_H
#define SINEW_EXAMPLES_MEM_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

#endif
