/* SPDX-License-Identifier: MIT */
/* threads.c - who else is in this process: what a report must know before it says "never".
 *
 * The directory /proc/self/task has as many links as the process has threads, and two: so one call
 * tells their number. Only if there are more than expected are they looked at one by one, because
 * io_uring has the kernel make threads inside the process, which run no code of the program; their
 * names begin with "iou-". */
#include "plat/thread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINKS = 2,          /* of a directory without any others */
    SIGNAL_CANCEL = 32, /* glibc: to cancel a thread          */
    SIGNAL_SETXID = 33, /* glibc: to change all threads' user */
};

/* Read the beginning of a small file, with a final NUL. */
static int read_text(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t got = read(fd, text, bytes - 1);
    int rc = got < 0 ? -errno : 0;
    (void)close(fd);
    text[got > 0 ? got : 0] = '\0';
    return rc;
}

/* A set of signals in a status file: "SigBlk:", "SigCgt:". Returns 0, -errno */
static int read_signals(const char *path, const char *key, unsigned long long *set)
{
    char text[4096];
    int rc = read_text(path, text, sizeof(text));
    const char *line = rc == 0 ? strstr(text, key) : NULL;
    if (line == NULL)
        return rc < 0 ? rc : -ENOSYS;
    *set = strtoull(line + strlen(key), NULL, 16);
    return 0;
}

static bool has(unsigned long long set, int number)
{
    return (set >> (number - 1) & 1) != 0;
}

/* Whether the thread runs no code of the program: the kernel's; or, where that is built in,
 * ThreadSanitizer's, which blocks what our own threads block, and SIGPROF. */
static bool is_nobodys(const char *number)
{
    char path[64];
    char name[32];
    unsigned long long blocked = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", number);
    if (read_text(path, name, sizeof(name)) == 0 && strncmp(name, "iou-", 4) == 0)
        return true;
    snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", number);
    return SNI_THREAD_SANITIZED && read_signals(path, "SigBlk:", &blocked) == 0 &&
           has(blocked, SIGTERM) && has(blocked, SIGPROF);
}

static int count_nobodys(void)
{
    DIR *dir = opendir("/proc/self/task");
    if (dir == NULL)
        return -errno;
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.' && is_nobodys(entry->d_name);
    (void)closedir(dir);
    return n;
}

int sni_plat_threads_beside(unsigned known)
{
    struct stat st;
    if (stat("/proc/self/task", &st) < 0)
        return -errno;
    long threads = (long)st.st_nlink - LINKS;
    if (threads < 1)
        return -ENOSYS; /* this file system counts otherwise */
    if (threads > (long)known) {
        int nobodys = count_nobodys();
        if (nobodys < 0)
            return nobodys;
        threads -= nobodys;
    }
    return threads > (long)known ? (int)(threads - (long)known) : 0;
}

int sni_plat_catches_signals(void)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,        SIGTRAP,
                              SIGABRT, SIGSYS, SIGPROF, SIGNAL_CANCEL, SIGNAL_SETXID};
    unsigned long long caught;
    int rc = read_signals("/proc/self/status", "SigCgt:", &caught);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        caught &= ~(1ULL << (own[i] - 1));
    return caught != 0;
}
