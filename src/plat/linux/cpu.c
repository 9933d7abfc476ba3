/* SPDX-License-Identifier: MIT */
/* cpu.c (linux) - which processors there are for us, and their nodes; see cpu.h.
 *
 * cpusets need no care of their own, since the kernel has applied them to the affinity mask. The
 * quota is another matter and in cgroup.c.
 *
 * What looks at errno is never inlined, for the reason told in thread.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "plat/cpu.h"

#include "base/compiler.h"
#include "plat/linux/text_priv.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum {
    CPUS_MAX = 8192, /* the most that a Linux kernel is built for */
    NODES_MAX = 1024,
    LIST_BYTES_MAX = 4096,
    PATH_BYTES_MAX = 1024,
};

struct affinity {
    cpu_set_t sets[CPUS_MAX / CPU_SETSIZE];
};

/* Of the calling thread. 0 or -errno. */
static SNI_NEVER_INLINE int affinity_get(struct affinity *mask)
{
    CPU_ZERO_S(sizeof(mask->sets), mask->sets);
    return sched_getaffinity(0, sizeof(mask->sets), mask->sets) == 0 ? 0 : -errno;
}

int sni_plat_cpu_count(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int count = online > 0 && online < INT_MAX ? (int)online : INT_MAX;

    struct affinity mask;
    if (affinity_get(&mask) == 0) {
        int allowed = CPU_COUNT_S(sizeof(mask.sets), mask.sets);
        count = allowed < count ? allowed : count;
    }
    int quota;
    if (sni_cpu_quota_from("/proc/self/cgroup", "/proc/self/mountinfo", "", &quota) == 0)
        count = quota < count ? quota : count;
    return count >= 1 && count < INT_MAX ? count : 1;
}

int sni_plat_cpu_nth(int index)
{
    struct affinity mask;
    int rc = affinity_get(&mask);
    if (rc < 0)
        return rc;
    for (int cpu = 0; cpu < CPUS_MAX && index >= 0; cpu++) {
        if (!CPU_ISSET_S((size_t)cpu, sizeof(mask.sets), mask.sets))
            continue;
        if (index-- == 0)
            return cpu;
    }
    return -ENOENT;
}

int sni_plat_cpu_node(int cpu)
{
    return sni_cpu_node_from("", cpu);
}

/* The next range of a list like "0-3,8"; returns what follows, or NULL at its end. */
static const char *list_next(const char *at, int64_t *first, int64_t *last)
{
    at = sni_text_number(at, first);
    *last = *first;
    if (at != NULL && *at == '-')
        at = sni_text_number(at + 1, last);
    if (at != NULL && *at == ',')
        at++;
    return at;
}

static bool list_has(const char *list, int number)
{
    int64_t first = 0;
    int64_t last = 0;
    while ((list = list_next(list, &first, &last)) != NULL)
        if (first <= number && number <= last)
            return true;
    return false;
}

static int list_read(char list[LIST_BYTES_MAX], const char *root_prefix, const char *file)
{
    char path[PATH_BYTES_MAX];
    int len = snprintf(path, sizeof(path), "%s/sys/devices/system/node/%s", root_prefix, file);
    if (len < 0 || (size_t)len >= sizeof(path))
        return -ENAMETOOLONG;
    return sni_text_read(path, list, LIST_BYTES_MAX);
}

static bool node_has(const char *root_prefix, int node, int cpu)
{
    char file[32];
    char cpus[LIST_BYTES_MAX];
    (void)snprintf(file, sizeof(file), "node%d/cpulist", node);
    return list_read(cpus, root_prefix, file) == 0 && list_has(cpus, cpu);
}

SNI_NEVER_INLINE int sni_cpu_node_from(const char *root_prefix, int cpu)
{
    char nodes[LIST_BYTES_MAX];
    if (cpu < 0 || list_read(nodes, root_prefix, "online") < 0)
        return -1;
    const char *at = nodes;
    int64_t first = 0;
    int64_t last = 0;
    while ((at = list_next(at, &first, &last)) != NULL)
        for (int64_t node = first; node <= last && node < NODES_MAX; node++)
            if (node_has(root_prefix, (int)node, cpu))
                return (int)node;
    return -1;
}
