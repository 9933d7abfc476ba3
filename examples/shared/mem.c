/* SPDX-License-Identifier: MIT */
/* mem.c - the four functions that compilers call on their own account.
 *
 * A freestanding compiler may turn an assignment of structs into memcpy and an initialiser
 * into memset; where there is no C library the program brings them. Short rather than fast.
 * Built with -fno-builtin, so that the loops are not recognised as what they implement. */
#include "mem.h"

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    char *t = to;
    const char *f = from;
    while (bytes-- > 0)
        *t++ = *f++;
    return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    char *t = to;
    const char *f = from;
    if (t < f)
        return memcpy(to, from, bytes); /* upward is right: our memcpy goes upward */
    while (bytes-- > 0)
        t[bytes] = f[bytes];
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    char *t = to;
    while (bytes-- > 0)
        *t++ = (char)value;
    return to;
}

int memcmp(const void *a, const void *b, size_t bytes)
{
    const unsigned char *x = a;
    const unsigned char *y = b;
    for (; bytes > 0; bytes--, x++, y++)
        if (*x != *y)
            return *x < *y ? -1 : 1;
    return 0;
}
