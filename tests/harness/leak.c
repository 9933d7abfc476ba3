/* SPDX-License-Identifier: MIT */
/* leak.c - a test leaves the same descriptors open that it found.
 *
 * The open descriptors are read from /proc/self/fd into a bit set before the body and again after
 * it. Numbers only: a descriptor closed and reopened under its old number is not noticed. */
#include "harness_priv.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FD_MAX = 1 << 16 }; /* higher descriptors are not looked at */

struct fd_set_bits {
    unsigned char bits[FD_MAX / 8];
};

/* Written before the body by the thread that runs it, read after it by the same thread. */
static struct fd_set_bits fds_before;

static bool has_fd(const struct fd_set_bits *set, int fd)
{
    return (set->bits[fd / 8] >> (fd % 8)) & 1;
}

static void collect_fds(struct fd_set_bits *set)
{
    memset(set, 0, sizeof *set);
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL)
        harness_fail(NULL, 0, "cannot list /proc/self/fd: %s", strerror(errno));
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(dir) && fd < FD_MAX)
            set->bits[fd / 8] |= (unsigned char)(1U << (fd % 8));
    }
    closedir(dir);
}

void fds_remember(void)
{
    collect_fds(&fds_before);
}

/* Append "fd 7 (socket:[123]) was left open" to the message. */
static size_t describe(char *why, size_t used, int fd, bool opened)
{
    char link[32];
    char target[128];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = opened ? readlink(link, target, sizeof target - 1) : 0;
    target[bytes > 0 ? bytes : 0] = '\0';
    int n = snprintf(why + used, WHY_BYTES - used, "%sfd %d%s%s%s %s", used > 0 ? ", " : "", fd,
                     opened ? " (" : "", target, opened ? ")" : "",
                     opened ? "was left open" : "was open before the test and is now closed");
    used += n > 0 ? (size_t)n : 0;
    return used < WHY_BYTES ? used : WHY_BYTES - 1;
}

void fds_check(void)
{
    static struct fd_set_bits fds_after;
    static char why[WHY_BYTES];
    size_t used = 0;
    collect_fds(&fds_after);
    for (int fd = 0; fd < FD_MAX && used < WHY_BYTES - 1; fd++)
        if (has_fd(&fds_before, fd) != has_fd(&fds_after, fd))
            used = describe(why, used, fd, has_fd(&fds_after, fd));
    if (used > 0)
        harness_fail(NULL, 0, "%s", why);
}
