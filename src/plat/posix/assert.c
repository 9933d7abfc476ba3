/* SPDX-License-Identifier: MIT */
/* assert.c (posix) - a failed assertion on a machine with an operating system.
 *
 * One write, no stdio: it may run in a signal handler, and the heap or a lock may be what
 * is broken. */
#include <sinew/assert.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct text {
    char bytes[512];
    size_t used;
};

static void put(struct text *t, const char *s)
{
    size_t len = strlen(s);
    size_t room = sizeof(t->bytes) - t->used;
    if (len > room)
        len = room;
    memcpy(t->bytes + t->used, s, len);
    t->used += len;
}

static void put_number(struct text *t, int n)
{
    char digits[12];
    char *at = digits + sizeof(digits) - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0 && at > digits);
    put(t, at);
}

SN_REPLACEABLE void sn_assert_failed(const char *sentence, const char *file, int line)
{
    struct text t = {.used = 0};
    put(&t, "sinew: ");
    put(&t, sentence);
    put(&t, " (");
    put(&t, file);
    put(&t, ":");
    put_number(&t, line);
    put(&t, ")\n");
    ssize_t written = write(STDERR_FILENO, t.bytes, t.used);
    (void)written;
    abort();
}
