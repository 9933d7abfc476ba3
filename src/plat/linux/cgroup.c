/* SPDX-License-Identifier: MIT */
/* cgroup.c (linux) - how much processor time the cgroups of this process leave it; see cpu.h.
 *
 * Words: a *hierarchy* is a tree of groups. v2 is one tree; of v1 we want the one that the `cpu`
 * controller is bound to, often together with cpuacct. Both may exist at once (hybrid), so both
 * are asked and the smaller answer counts; a tree without the controller has no quota files.
 *
 * Where to look is put together of two texts:
 *
 *     /proc/self/cgroup      4:cpu,cpuacct:/docker/1f2e      our group's path in the hierarchy
 *                            0::/system.slice/x.service      (v2: number 0, no controllers)
 *     /proc/self/mountinfo   .. /docker/1f2e /sys/fs/cgroup/cpu .. - cgroup cgroup rw,cpu,cpuacct
 *                               root of the mount, mount point    type          controllers
 *
 * The directory is the mount point and what is left of our path when the mount's root is taken off
 * its front. In containers the two texts may come from different worlds: then our path is not
 * below the root ("/../x" is what a cgroup namespace shows for a group outside of it), and the root
 * of the mount is the best that can be seen. Of several mounts of a hierarchy the one is taken
 * that contains our path and shows most of the tree, the last if they are alike, as it covers
 * the others.
 *
 * A quota anywhere above binds us too. So we walk from our directory up to the mount point and take
 * the least; directories or files that are not there set no limit. Neither does what is not
 * understood: too many workers are slow, one worker because of a stray byte is an outage.
 *
 * Never looked at: cpu.weight and cpu.shares. They divide a busy machine and limit nothing on an
 * idle one; runtimes that used them gave one thread to pods that owned four processors.
 *
 * Lines longer than the buffer are skipped: overlay mounts have them, cgroups do not. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "plat/cpu.h"

#include "base/compiler.h"
#include "plat/linux/text_priv.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    PATH_BYTES_MAX = 4096,
    FILE_NAME_BYTES_MAX = 32,
    LINE_BYTES_MAX = 4096,
    NO_LIMIT = INT_MAX,
};

/* ---- lines ---------------------------------------------------------------------------- */

struct lines {
    int fd;
    size_t begin; /* what is read and not yet given out: text[begin .. end) */
    size_t end;
    bool skipping; /* in a line too long to be kept */
    char text[LINE_BYTES_MAX];
};

static int lines_open(struct lines *l, const char *path)
{
    l->fd = sni_text_open(path);
    l->begin = 0;
    l->end = 0;
    l->skipping = false;
    return l->fd < 0 ? l->fd : 0;
}

/* Make room and read on; false at the end of the file. */
static bool lines_fill(struct lines *l)
{
    if (l->begin > 0) {
        memmove(l->text, l->text + l->begin, l->end - l->begin);
        l->end -= l->begin;
        l->begin = 0;
    }
    if (l->end == sizeof(l->text)) {
        l->skipping = true;
        l->end = 0;
    }
    size_t got = sni_text_more(l->fd, l->text + l->end, sizeof(l->text) - l->end);
    l->end += got;
    return got > 0;
}

/* The next line without its newline, good until the next call; NULL at the end. A last line that
 * lacks the newline was cut off, and is dropped. */
static char *lines_next(struct lines *l)
{
    for (;;) {
        char *line = l->text + l->begin;
        char *newline = memchr(line, '\n', l->end - l->begin);
        if (newline == NULL) {
            if (!lines_fill(l))
                return NULL;
            continue;
        }
        *newline = '\0';
        l->begin = (size_t)(newline + 1 - l->text);
        if (!l->skipping)
            return line;
        l->skipping = false;
    }
}

/* ---- where our group is --------------------------------------------------------------- */

enum version { V1, V2 };

/* What is known of a hierarchy. */
struct group {
    enum version version;
    bool mounted;                                   /* a mount was found; else the rest is void */
    size_t root_len;                                /* of its root; SIZE_MAX: we are not below it */
    size_t top;                                     /* of `dir`, how much is the mount point */
    char path[PATH_BYTES_MAX];                      /* from /proc/self/cgroup */
    char dir[PATH_BYTES_MAX + FILE_NAME_BYTES_MAX]; /* and then a file name */
};

/* `word` is one of the words of a list with commas. */
static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

/* Take the path of our group out of a line `number:controllers:path`, if it is of the hierarchy. */
static void group_read_line(struct group *g, char *line)
{
    char *path = line;
    char *number = strsep(&path, ":");
    char *controllers = strsep(&path, ":");
    if (controllers == NULL || path == NULL || strlen(path) >= sizeof(g->path))
        return;
    bool ours = g->version == V2 ? strcmp(number, "0") == 0 && *controllers == '\0'
                                 : has_word(controllers, "cpu");
    if (ours)
        memcpy(g->path, path, strlen(path) + 1);
}

/* Without an answer, the path stays one that is above every mount: roots of mounts count. */
static void group_find_path(struct group *g, const char *cgroup_file)
{
    struct lines l;
    g->path[0] = '\0';
    if (lines_open(&l, cgroup_file) < 0)
        return;
    for (char *line = lines_next(&l); line != NULL; line = lines_next(&l))
        group_read_line(g, line);
    (void)close(l.fd);
}

/* mountinfo writes blank, tab, newline and backslash as three octal digits. */
static void unescape(char *s)
{
    char *to = s;
    for (; *s != '\0'; s++) {
        bool octal = s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
                     s[3] >= '0' && s[3] <= '7';
        *to++ = octal ? (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0')) : *s;
        s += octal ? 3 : 0;
    }
    *to = '\0';
}

static bool goes_up(const char *path)
{
    for (const char *at = strstr(path, "/.."); at != NULL; at = strstr(at + 1, "/.."))
        if (at[3] == '/' || at[3] == '\0')
            return true;
    return false;
}

/* What is left of `path` below `root`: "" or "/a/b"; NULL if it is not below. */
static const char *path_below(const char *path, const char *root)
{
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, len) != 0 || (path[len] != '/' && (path[len] != '\0' || len == 0)))
        return NULL;
    const char *rest = path + len;
    if (goes_up(rest))
        return NULL;
    return strcmp(rest, "/") == 0 ? "" : rest;
}

/* A mount of our hierarchy: use it, unless a better one is known. */
static void group_consider(struct group *g, const char *prefix, const char *root, const char *point)
{
    const char *rest = path_below(g->path, root);
    size_t root_len = rest != NULL ? strlen(root) : SIZE_MAX;
    if (g->mounted && (root_len > g->root_len || root_len == SIZE_MAX))
        return;
    char dir[PATH_BYTES_MAX];
    int len = snprintf(dir, sizeof(dir), "%s%s%s", prefix, point, rest != NULL ? rest : "");
    if (len < 0 || (size_t)len >= sizeof(dir))
        return;
    memcpy(g->dir, dir, (size_t)len + 1);
    g->top = strlen(prefix) + strlen(point);
    g->root_len = root_len;
    g->mounted = true;
}

/* A line of mountinfo: number parent device root point options [more...] - type source options */
static void group_read_mount(struct group *g, const char *prefix, char *line)
{
    enum { ROOT = 3, POINT = 4, FIELDS = 6 };
    char *field[FIELDS];
    for (int i = 0; i < FIELDS; i++)
        field[i] = strsep(&line, " ");
    const char *mark;
    do
        mark = strsep(&line, " ");
    while (mark != NULL && strcmp(mark, "-") != 0);
    const char *type = strsep(&line, " ");
    (void)strsep(&line, " ");
    const char *controllers = strsep(&line, " ");
    if (controllers == NULL)
        return;
    bool ours = g->version == V2 ? strcmp(type, "cgroup2") == 0
                                 : strcmp(type, "cgroup") == 0 && has_word(controllers, "cpu");
    if (!ours)
        return;
    unescape(field[ROOT]);
    unescape(field[POINT]);
    group_consider(g, prefix, field[ROOT], field[POINT]);
}

static void group_find_dir(struct group *g, const char *mountinfo_file, const char *prefix)
{
    struct lines l;
    g->mounted = false;
    if (lines_open(&l, mountinfo_file) < 0)
        return;
    for (char *line = lines_next(&l); line != NULL; line = lines_next(&l))
        group_read_mount(g, prefix, line);
    (void)close(l.fd);
}

/* ---- what it allows ------------------------------------------------------------------- */

/* Nothing, or an end of line, follows. */
static bool at_end(const char *s)
{
    return s != NULL && s[strspn(s, " \n")] == '\0';
}

/* Whole processors that `quota` of each `period` keeps busy. */
static int processors(int64_t quota, int64_t period)
{
    if (quota <= 0 || period <= 0)
        return NO_LIMIT;
    int64_t count = quota / period + (quota % period != 0);
    return count < NO_LIMIT ? (int)count : NO_LIMIT;
}

/* The text of a file in the group's present directory. */
static bool group_file(struct group *g, const char *name, char *text, size_t bytes)
{
    size_t len = strlen(g->dir);
    memcpy(g->dir + len, name, strlen(name) + 1);
    int rc = sni_text_read(g->dir, text, bytes);
    g->dir[len] = '\0';
    return rc == 0;
}

/* v2: "quota period", "max period"; a period left out is the default one. */
static int limit_v2(struct group *g)
{
    char text[64];
    int64_t quota = 0;
    int64_t period = 100000;
    if (!group_file(g, "/cpu.max", text, sizeof(text)))
        return NO_LIMIT;
    const char *at = sni_text_number(text, &quota);
    if (at != NULL && at[0] == ' ' && at[1] != '\0' && at[1] != '\n')
        at = sni_text_number(at + 1, &period);
    return at_end(at) ? processors(quota, period) : NO_LIMIT;
}

/* v1: a file each; a quota of -1 is none. */
static int limit_v1(struct group *g)
{
    char text[64];
    int64_t quota = 0;
    int64_t period = 0;
    if (!group_file(g, "/cpu.cfs_quota_us", text, sizeof(text)) ||
        !at_end(sni_text_number(text, &quota)))
        return NO_LIMIT;
    if (!group_file(g, "/cpu.cfs_period_us", text, sizeof(text)) ||
        !at_end(sni_text_number(text, &period)))
        return NO_LIMIT;
    return processors(quota, period);
}

/* The least limit from the group up to the top of what is visible. */
static int limit_upwards(struct group *g)
{
    int least = NO_LIMIT;
    for (;;) {
        int here = g->version == V2 ? limit_v2(g) : limit_v1(g);
        least = here < least ? here : least;
        if (strlen(g->dir) <= g->top)
            return least;
        *strrchr(g->dir, '/') = '\0'; /* below the top there is one: path_below saw to it */
    }
}

SNI_NEVER_INLINE int sni_cpu_quota_from(const char *proc_self_cgroup_path,
                                        const char *proc_self_mountinfo_path,
                                        const char *root_prefix, int *cpus)
{
    int least = NO_LIMIT;
    for (int i = 0; i < 2; i++) {
        struct group g = {.version = i == 0 ? V2 : V1};
        group_find_path(&g, proc_self_cgroup_path);
        group_find_dir(&g, proc_self_mountinfo_path, root_prefix);
        int limit = g.mounted ? limit_upwards(&g) : NO_LIMIT;
        least = limit < least ? limit : least;
    }
    if (least == NO_LIMIT)
        return -ENOENT;
    *cpus = least;
    return 0;
}
