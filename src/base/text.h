/* SPDX-License-Identifier: MIT */
/* text.h - putting a message together where nothing is safe but storing bytes: in signal
 * handlers, with a broken heap, without a C library. What does not fit is cut. */
#ifndef SINEW_BASE_TEXT_H
#define SINEW_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct sni_text {
    char bytes[512];
    size_t used;
};

static inline void sni_text_put(struct sni_text *t, const char *s)
{
    while (*s != '\0' && t->used < sizeof(t->bytes))
        t->bytes[t->used++] = *s++;
}

static inline void sni_text_put_number(struct sni_text *t, uint64_t n)
{
    char digits[24];
    char *at = digits + sizeof(digits) - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    sni_text_put(t, at);
}

#endif
