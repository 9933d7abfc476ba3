/* SPDX-License-Identifier: MIT */
/* http.h - what the HTTP servers of the yardstick in C and C++ have in common: how a request is
 * recognised, and the answer. WORKLOADS.md says what is asked of them all; those in other languages
 * do the same with what their language has. */
#ifndef SINEW_BENCH_PEERS_HTTP_H
#define SINEW_BENCH_PEERS_HTTP_H

#include <stddef.h>
#include <string.h>

#define HTTP_ANSWER                \
    "HTTP/1.1 200 OK\r\n"          \
    "Content-Type: text/plain\r\n" \
    "Content-Length: 5\r\n\r\nhello"
#define HTTP_ANSWERS_4 HTTP_ANSWER HTTP_ANSWER HTTP_ANSWER HTTP_ANSWER

enum {
    HTTP_HEAD_MAX = 2048, /* who sends more before an empty line is left */
    HTTP_ANSWER_BYTES = sizeof(HTTP_ANSWER) - 1,
    HTTP_ANSWERS = 16, /* so many can be sent at once */
};

/* To those who send several requests at once, several answers. */
static const char http_answers[] = HTTP_ANSWERS_4 HTTP_ANSWERS_4 HTTP_ANSWERS_4 HTTP_ANSWERS_4;

/* Returns how many whole requests the n bytes begin with, and in `used` where the last one ends;
 * -1 if there is something else than a GET. */
static inline int http_requests(const char *bytes, size_t n, size_t *used)
{
    int found = 0;
    *used = 0;
    for (;;) {
        size_t left = n - *used;
        if (left == 0)
            return found;
        if (memcmp(bytes + *used, "GET ", left < 4 ? left : 4) != 0)
            return -1;
        const char *end = (const char *)memmem(bytes + *used, left, "\r\n\r\n", 4);
        if (end == NULL)
            return found;
        *used = (size_t)(end + 4 - bytes);
        found++;
    }
}

/* The bytes of the next portion of `left` answers. */
static inline size_t http_portion(int left)
{
    return (size_t)(left < HTTP_ANSWERS ? left : HTTP_ANSWERS) * HTTP_ANSWER_BYTES;
}

#endif
