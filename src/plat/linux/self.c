/* SPDX-License-Identifier: MIT */
/* self.c - /proc/self/maps and /proc/self/mem.
 *
 * Memory is read by a system call, not by looking: a mapping may have pages in it that fault
 * (guards made by madvise), sanitizers have opinions about strangers' stacks, and another thread
 * may unmap what was just listed.
 *
 * Which pages there are, the kernel tells one by one, or (since 6.7) the next one: a mapping of
 * many gigabytes with little in it, as arenas and sanitizers have, is then one call instead of
 * thousands. What the headers here do not know yet is written out. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "plat/self.h"

#include "plat/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    TEXT_BYTES = 4096,
    ENTRIES = 256, /* of the page map, in one go */
};

#define PAGE_IS_THERE ((uint64_t)3 << 62) /* in memory, or swapped out */

/* One line: "7f00-7f10 rw-p ...". */
static int tell_line(const char *line,
                     int (*fn)(uintptr_t from, uintptr_t to, bool anonymous, void *arg), void *arg)
{
    char *end;
    uintptr_t from = (uintptr_t)strtoull(line, &end, 16);
    if (*end != '-')
        return -EINVAL;
    uintptr_t to = (uintptr_t)strtoull(end + 1, &end, 16);
    bool is_readable = end[0] == ' ' && end[1] == 'r' && end[2] == 'w';
    bool is_private = is_readable && end[4] == 'p';
    unsigned long inode = 1; /* behind the permissions, the offset and the device */
    if (is_readable && sscanf(end + 5, " %*x %*s %lu", &inode) != 1)
        return -EINVAL;
    return is_readable ? fn(from, to, is_private && inode == 0, arg) : 0;
}

int sni_plat_each_mapping(int (*fn)(uintptr_t from, uintptr_t to, bool anonymous, void *arg),
                          void *arg)
{
    char text[TEXT_BYTES + 1];
    size_t have = 0;
    int rc = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while (rc == 0) {
        ssize_t got = read(fd, text + have, TEXT_BYTES - have);
        if (got <= 0) {
            rc = got < 0 ? -errno : 0;
            break;
        }
        have += (size_t)got;
        text[have] = '\0';
        char *line = text;
        for (char *end; rc == 0 && (end = strchr(line, '\n')) != NULL; line = end + 1)
            rc = tell_line(line, fn, arg);
        have -= (size_t)(line - text);
        memmove(text, line, have);
        if (have == TEXT_BYTES) /* a line that is longer than any path */
            rc = -ENAMETOOLONG;
    }
    (void)close(fd);
    return rc;
}

int sni_plat_self_open(void)
{
    int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void sni_plat_self_close(int self)
{
    (void)close(self);
}

int sni_plat_pages_open(void)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* PAGEMAP_SCAN and what it takes (linux/fs.h of 6.7). */
struct page_region {
    uint64_t start, end, categories;
};
struct scan {
    uint64_t size, flags;
    uint64_t start, end, walk_end;
    uint64_t vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
enum {
    PAGE_PRESENT = 1 << 3,
    PAGE_SWAPPED = 1 << 4,
};
#define SCAN _IOWR('f', 16, struct scan)

/* The bytes before the next page that is there. False: this kernel does not say. */
static bool scan(int pages, uintptr_t from, size_t bytes, size_t *unwritten)
{
    struct page_region region;
    struct scan s = {
        .size = sizeof(s),
        .start = from,
        .end = from + bytes,
        .vec = (uintptr_t)&region,
        .vec_len = 1,
        .max_pages = 1,
        .category_anyof_mask = PAGE_PRESENT | PAGE_SWAPPED,
        .return_mask = PAGE_PRESENT | PAGE_SWAPPED,
    };
    int found = ioctl(pages, SCAN, &s);
    if (found < 0)
        return false;
    *unwritten = found > 0 ? (size_t)(region.start - from) : bytes;
    return true;
}

size_t sni_plat_pages_unwritten(int pages, uintptr_t from, size_t bytes)
{
    const size_t page = sni_plat_page_bytes();
    uint64_t entries[ENTRIES];
    size_t n = bytes / page, done = 0;
    size_t unwritten;
    if (pages >= 0 && from % page == 0 && n > 0 && scan(pages, from, n * page, &unwritten))
        return unwritten;
    while (pages >= 0 && from % page == 0 && done < n) {
        size_t want = n - done < ENTRIES ? n - done : ENTRIES;
        off_t at = (off_t)((from / page + done) * sizeof(uint64_t));
        ssize_t got = pread(pages, entries, want * sizeof(uint64_t), at);
        if (got <= 0)
            break;
        for (size_t i = 0; i < (size_t)got / sizeof(uint64_t); i++, done++)
            if ((entries[i] & PAGE_IS_THERE) != 0)
                return done * page;
    }
    return done * page;
}

size_t sni_plat_self_read(int self, uintptr_t from, void *to, size_t bytes)
{
    ssize_t got = pread(self, to, bytes, (off_t)from);
    return got > 0 ? (size_t)got : 0;
}
