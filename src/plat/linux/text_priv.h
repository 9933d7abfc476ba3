/* SPDX-License-Identifier: MIT */
/* text_priv.h - reading the small texts by which the kernel tells its facts.
 *
 * What stands in such a file is believed only as far as it is understood: a number is digits and
 * fits, anything else is no number. Nothing allocates. */
#ifndef SINEW_PLAT_LINUX_TEXT_PRIV_H
#define SINEW_PLAT_LINUX_TEXT_PRIV_H

#include <fcntl.h>
#include <sinew/errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

static inline int sni_text_open(const char *path)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd >= 0 ? fd : -errno;
}

/* As read(2), without interruptions; 0 at the end and on errors. */
static inline size_t sni_text_more(int fd, char *at, size_t room)
{
    ssize_t got;
    do
        got = read(fd, at, room);
    while (got < 0 && errno == EINTR);
    return got > 0 ? (size_t)got : 0;
}

/* Read a whole file that is shorter than `bytes` into `text`, NUL-terminated. 0 or -errno;
 * -EFBIG if it is longer. */
static inline int sni_text_read(const char *path, char *text, size_t bytes)
{
    int fd = sni_text_open(path);
    if (fd < 0)
        return fd;
    size_t used = 0;
    size_t got;
    do {
        got = sni_text_more(fd, text + used, bytes - used);
        used += got;
    } while (got > 0 && used < bytes);
    (void)close(fd);
    if (used == bytes)
        return -EFBIG;
    text[used] = '\0';
    return 0;
}

/* The number at the beginning of `s`, and what follows it; NULL if there is none, it is negative,
 * or it does not fit. */
static inline const char *sni_text_number(const char *s, int64_t *number)
{
    int64_t n = 0;
    if (*s < '0' || *s > '9')
        return NULL;
    for (; *s >= '0' && *s <= '9'; s++) {
        int digit = *s - '0';
        if (n > (INT64_MAX - digit) / 10)
            return NULL;
        n = n * 10 + digit;
    }
    *number = n;
    return s;
}

#endif
