/* SPDX-License-Identifier: MIT */
/* cpu.h - how many processors are ours, which ones, and where they are.
 *
 * Processors have the system's numbers, which need not begin at 0 nor be without gaps: a
 * container may be given 6 and 7 alone. */
#ifndef SINEW_PLAT_CPU_H
#define SINEW_PLAT_CPU_H

/* How many threads can really run at once: the least of the processors that are online, the
 * calling thread's affinity mask, and the CPU quota of all its cgroups; at least 1.
 *
 * Reads some files, takes some 150 us and 16 KiB of stack. Nothing is cached: a quota may be
 * changed while we run. */
int sni_plat_cpu_count(void);

/* The index-th processor, counted from 0, of those the calling thread may run on: so worker i
 * is pinned to sni_plat_cpu_nth(i).
 *
 * Returns  its number
 *          -ENOENT   there are not so many, or index is negative
 *          -errno    the mask cannot be read */
int sni_plat_cpu_nth(int index);

/* The memory node (NUMA) of a processor; -1 if it is not known. Reads files; ask once, keep. */
int sni_plat_cpu_node(int cpu);

/* ---- what the above are made of, for tests with made-up files -------------------------- */

/* The CPU quota, in whole processors, that the cgroups of a process set.
 *
 * The first two stand for /proc/self/cgroup and /proc/self/mountinfo; `root_prefix` is put
 * before each mount point found in there ("" for the real ones). Quotas only, v1 and v2, of the
 * process's own group and all its visible ancestors; weights and shares are never looked at.
 * Rounded up: a quota of 1.5 needs two threads to be used up, and 0.5 still needs one.
 *
 * Returns  0         *cpus >= 1 is the least of them
 *          -ENOENT   no quota is set, or none can be seen or understood; *cpus is untouched */
int sni_cpu_quota_from(const char *proc_self_cgroup_path, const char *proc_self_mountinfo_path,
                       const char *root_prefix, int *cpus);

/* sni_plat_cpu_node in a file system whose / is `root_prefix` ("" for the real one). */
int sni_cpu_node_from(const char *root_prefix, int cpu);

#endif
