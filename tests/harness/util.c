/* SPDX-License-Identifier: MIT */
/* util.c - small services that several files of the harness need. */
#include "harness_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool write_all(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        }
    }
    return true;
}

char *read_fd(int fd, size_t *bytes)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return NULL;
    /* The size is a first guess only: files of /proc claim to be empty. */
    size_t capacity = (size_t)st.st_size + 4096;
    char *text = malloc(capacity);
    size_t used = 0;
    while (text != NULL) {
        ssize_t n = pread(fd, text + used, capacity - used - 1, (off_t)used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
        if (capacity - used < 2) {
            capacity *= 2;
            char *larger = realloc(text, capacity);
            if (larger == NULL)
                free(text);
            text = larger;
        }
    }
    if (text != NULL)
        text[used] = '\0';
    *bytes = used;
    return text;
}

const char *signal_name(int number, char *buffer, size_t bytes)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        {SIGABRT, "SIGABRT"}, {SIGALRM, "SIGALRM"}, {SIGBUS, "SIGBUS"},       {SIGCHLD, "SIGCHLD"},
        {SIGFPE, "SIGFPE"},   {SIGHUP, "SIGHUP"},   {SIGILL, "SIGILL"},       {SIGINT, "SIGINT"},
        {SIGKILL, "SIGKILL"}, {SIGPIPE, "SIGPIPE"}, {SIGPROF, "SIGPROF"},     {SIGQUIT, "SIGQUIT"},
        {SIGSEGV, "SIGSEGV"}, {SIGSYS, "SIGSYS"},   {SIGTERM, "SIGTERM"},     {SIGTRAP, "SIGTRAP"},
        {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGVTALRM, "SIGVTALRM"}, {SIGXCPU, "SIGXCPU"},
        {SIGXFSZ, "SIGXFSZ"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == number)
            return names[i].name;
    snprintf(buffer, bytes, "signal %d", number);
    return buffer;
}
