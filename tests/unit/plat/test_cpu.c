/* SPDX-License-Identifier: MIT */
/* How many workers there will be (R42) and where (R46): made-up cgroup trees of both versions,
 * among them those that other runtimes stumbled over; nodes; and this very machine. */
#include "base/rand.h"
#include "harness.h"
#include "plat/cpu.h"
#include "plat/thread.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- made-up trees --------------------------------------------------------------------- */

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNT \
    "33 32 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
#define CPUSET_MOUNT "34 32 0:31 / /sys/fs/cgroup/cpuset rw shared:10 - cgroup cgroup rw,cpuset\n"
#define V1           "sys/fs/cgroup/cpu,cpuacct"
#define V2           "sys/fs/cgroup"

/* Write `text` to a file below temp_dir(), with all folders on the way. */
static void put_bytes(const char *path, const char *text, size_t bytes)
{
    char full[PATH_MAX];
    (void)snprintf(full, sizeof(full), "%s/%s", temp_dir(), path);
    for (char *slash = strchr(full + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        CHECK(mkdir(full, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    CHECK(file != NULL);
    CHECK_EQ(fwrite(text, 1, bytes, file), bytes);
    CHECK_EQ(fclose(file), 0);
}

static void put(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

/* The quota of the tree below temp_dir(), 0 for none. */
static int quota(void)
{
    char cgroup[PATH_MAX];
    char mountinfo[PATH_MAX];
    (void)snprintf(cgroup, sizeof(cgroup), "%s/cgroup", temp_dir());
    (void)snprintf(mountinfo, sizeof(mountinfo), "%s/mountinfo", temp_dir());
    int cpus = -77;
    int rc = sni_cpu_quota_from(cgroup, mountinfo, temp_dir(), &cpus);
    if (rc == 0) {
        CHECK_GE(cpus, 1);
        return cpus;
    }
    CHECK_EQ(rc, -ENOENT);
    CHECK_EQ(cpus, -77);
    return 0;
}

/* A process of group `path`, on a machine with v2 only. */
static void v2_process(const char *path)
{
    char line[PATH_MAX];
    (void)snprintf(line, sizeof(line), "0::%s\n", path);
    put("cgroup", line);
    put("mountinfo", V2_MOUNT);
}

static void v1_process(const char *path)
{
    char text[PATH_MAX];
    (void)snprintf(text, sizeof(text), "5:cpuset:/other\n4:cpu,cpuacct:%s\n1:name=systemd:/s\n",
                   path);
    put("cgroup", text);
    put("mountinfo", V1_MOUNT CPUSET_MOUNT);
}

static void v1_limit(const char *path, const char *quota_us, const char *period_us)
{
    char file[PATH_MAX];
    (void)snprintf(file, sizeof(file), "%s%s/cpu.cfs_quota_us", V1, path);
    put(file, quota_us);
    (void)snprintf(file, sizeof(file), "%s%s/cpu.cfs_period_us", V1, path);
    put(file, period_us);
}

/* ---- version 2 ------------------------------------------------------------------------- */

struct reading {
    const char *text;
    int cpus; /* 0: none */
};

TEST(a_v2_quota_is_rounded_up_to_whole_processors)
{
    static const struct reading readings[] = {
        {"100000 100000\n", 1}, {"200000 100000\n", 2},       {"150000 100000\n", 2},
        {"100001 100000\n", 2}, {"1600000 100000\n", 16},     {"3999999 1000000\n", 4},
        {"50000 25000\n", 2},   {"200000 100000", 2},         {"300000\n", 3},
        {"1000 1000000\n", 1},  {"100000000 100000\n", 1000},
    };
    v2_process("/a");
    for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
        put(V2 "/a/cpu.max", readings[i].text);
        if (quota() != readings[i].cpus)
            FAIL("\"%s\" gives %d, not %d", readings[i].text, quota(), readings[i].cpus);
    }
}

/* erlang/otp #3884: half a processor was taken for no limit, and all cores were used. */
TEST(a_quota_below_one_processor_is_one_and_not_all)
{
    v2_process("/a");
    put(V2 "/a/cpu.max", "50000 100000\n");
    CHECK_EQ(quota(), 1);
    v1_process("/a");
    v1_limit("/a", "50000\n", "100000\n");
    CHECK_EQ(quota(), 1);
}

/* erlang/otp #8450: `docker run --cpus=2` gave one scheduler. */
TEST(two_processors_for_a_container_are_two_and_not_one)
{
    v2_process("/"); /* a cgroup namespace: the container's own group is the root */
    put(V2 "/cpu.max", "200000 100000\n");
    put(V2 "/cpu.weight", "100\n");
    CHECK_EQ(quota(), 2);
    v1_process("/docker/1f2e");
    v1_limit("", "200000\n", "100000\n");
    put("mountinfo", "33 32 0:30 /docker/1f2e /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup "
                     "rw,cpu,cpuacct\n");
    put(V1 "/cpu.shares", "1024\n");
    CHECK_EQ(quota(), 2);
}

/* libuv #4740: a pod without limits has the least weight there is, and got one thread. */
TEST(weights_and_shares_are_no_quota)
{
    v2_process("/kubepods/besteffort/pod1/c1");
    put(V2 "/kubepods/besteffort/pod1/c1/cpu.max", "max 100000\n");
    put(V2 "/kubepods/besteffort/pod1/c1/cpu.weight", "1\n");
    put(V2 "/kubepods/besteffort/cpu.weight", "1\n");
    CHECK_EQ(quota(), 0);
    put(V2 "/kubepods/besteffort/pod1/c1/cpu.max", "400000 100000\n");
    CHECK_EQ(quota(), 4);
    v1_process("/kubepods/pod1");
    v1_limit("/kubepods/pod1", "-1\n", "100000\n");
    put(V1 "/kubepods/pod1/cpu.shares", "2\n");
    CHECK_EQ(quota(), 0);
}

TEST(what_is_no_v2_quota_sets_no_limit)
{
    static const char *const texts[] = {
        "max 100000\n",
        "max\n",
        "max",
        "",
        "\n",
        " ",
        "-1 100000\n",
        "-100000 100000\n",
        "0 100000\n",
        "100000 0\n",
        "100000 -5\n",
        "100000 x\n",
        "100000x 100000\n",
        "1.5\n",
        "0x10 1\n",
        "+5 1\n",
        "garbage\n",
        "100000 100000 100000\n",
        "99999999999999999999999999 100000\n",
        "100000 99999999999999999999999999\n",
        "9223372036854775807 1\n",
        "000000000000000000000000000000000000000000000000000000000000000000000000000000 1\n",
    };
    v2_process("/a");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put(V2 "/a/cpu.max", texts[i]);
        if (quota() != 0)
            FAIL("\"%s\" gives %d", texts[i], quota());
    }
}

TEST(garbage_in_one_group_does_not_hide_the_quota_of_another)
{
    v2_process("/a/b");
    put(V2 "/a/b/cpu.max", "garbage\n");
    put(V2 "/a/cpu.max", "300000 100000\n");
    CHECK_EQ(quota(), 3);
}

TEST(the_least_quota_on_the_way_up_counts)
{
    v2_process("/a/b/c");
    put(V2 "/a/b/c/cpu.max", "800000 100000\n");
    CHECK_EQ(quota(), 8);
    put(V2 "/a/cpu.max", "300000 100000\n");
    CHECK_EQ(quota(), 3);
    put(V2 "/a/b/cpu.max", "max 100000\n");
    CHECK_EQ(quota(), 3);
    put(V2 "/a/b/cpu.max", "200000 100000\n");
    CHECK_EQ(quota(), 2);
    put(V2 "/cpu.max", "100000 100000\n"); /* of a mount that is itself a group */
    CHECK_EQ(quota(), 1);
    put(V2 "/a/b/c/d/cpu.max", "1000 100000\n"); /* below us and beside us: not ours */
    put(V2 "/cpu.max", "max 100000\n");
    put(V2 "/x/cpu.max", "1000 100000\n");
    CHECK_EQ(quota(), 2);
}

TEST(groups_that_are_gone_or_hidden_are_passed_over)
{
    v2_process("/a/gone/gone_too");
    put(V2 "/a/cpu.max", "200000 100000\n");
    CHECK_EQ(quota(), 2);
    v2_process("/a/b (deleted)");
    CHECK_EQ(quota(), 2);
    v2_process("/host/path/of/the/container"); /* seen from inside, where only the root is */
    put(V2 "/cpu.max", "300000 100000\n");
    CHECK_EQ(quota(), 3);
}

TEST(a_group_may_have_colons_and_blanks_in_its_name)
{
    v2_process("/a:b/c d");
    put(V2 "/a:b/c d/cpu.max", "200000 100000\n");
    CHECK_EQ(quota(), 2);
    put("cgroup", "0::/my group/x\n");
    put("mountinfo", "30 23 0:26 /my\\040group /mnt/c\\134d\\040e rw - cgroup2 none rw\n");
    put("mnt/c\\d e/x/cpu.max", "500000 100000\n");
    CHECK_EQ(quota(), 5);
}

/* ---- containers: what is mounted is not the whole tree ---------------------------------- */

TEST(the_root_of_the_mount_is_taken_off_the_path_of_the_group)
{
    put("cgroup", "0::/docker/1f2e/inner\n");
    put("mountinfo", "30 23 0:26 /docker/1f2e /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put(V2 "/docker/1f2e/inner/cpu.max", "100000 100000\n"); /* not this */
    put(V2 "/inner/cpu.max", "300000 100000\n");
    CHECK_EQ(quota(), 3);
    put(V2 "/cpu.max", "200000 100000\n");
    CHECK_EQ(quota(), 2);
    put("cgroup", "0::/docker/1f2e\n");
    CHECK_EQ(quota(), 2);
}

TEST(a_group_outside_of_the_mount_is_judged_by_the_root_of_the_mount)
{
    static const char *const groups[] = {
        "0::/../../other/group\n", "0::/..\n",         "0::/a/../..\n",
        "0::/elsewhere\n",         "0::/docker/1f2\n", "0::/docker/1f2ef\n",
    };
    put(V2 "/cpu.max", "200000 100000\n");
    put("sys/cpu.max", "100000 100000\n"); /* above the mount: never */
    put("sys/fs/cpu.max", "100000 100000\n");
    put("other/group/cpu.max", "100000 100000\n");
    put("sys/other/group/cpu.max", "100000 100000\n");
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        put("cgroup", groups[i]);
        put("mountinfo", "30 23 0:26 /docker/1f2e /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        CHECK_EQ(quota(), 2);
        put("mountinfo", V2_MOUNT);
        CHECK_EQ(quota(), 2);
    }
}

TEST(a_mount_from_outside_of_the_namespace_shows_its_root)
{
    put("mountinfo", "30 23 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put(V2 "/cpu.max", "300000 100000\n");
    put(V2 "/beside/cpu.max", "200000 100000\n");
    put("cgroup", "0::/\n");
    CHECK_EQ(quota(), 3);
    put("cgroup", "0::/../beside\n");
    CHECK_EQ(quota(), 2);
}

TEST(of_several_mounts_the_one_with_our_group_and_most_above_it_is_read)
{
    static const char a[] = "30 23 0:26 /a /mnt/a rw - cgroup2 cgroup2 rw\n";
    static const char all[] = "31 23 0:26 / /mnt/all rw - cgroup2 cgroup2 rw\n";
    static const char other[] = "32 23 0:26 /other /mnt/other rw - cgroup2 cgroup2 rw\n";
    const char *const orders[][3] = {
        {a, all, other}, {a, other, all}, {all, a, other},
        {all, other, a}, {other, a, all}, {other, all, a},
    };
    put("cgroup", "0::/a/b\n");
    put("mnt/other/cpu.max", "100000 100000\n");
    put("mnt/a/b/cpu.max", "500000 100000\n");
    put("mnt/all/a/b/cpu.max", "500000 100000\n");
    put("mnt/all/cpu.max", "200000 100000\n");
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        char text[1024];
        (void)snprintf(text, sizeof(text), "%s%s%s", orders[i][0], orders[i][1], orders[i][2]);
        put("mountinfo", text);
        CHECK_EQ(quota(), 2);
        (void)snprintf(text, sizeof(text), "%s%s", other, a);
        put("mountinfo", text);
        CHECK_EQ(quota(), 5);
    }
}

/* ---- version 1, and both --------------------------------------------------------------- */

TEST(a_v1_quota_is_read_from_the_hierarchy_that_has_the_cpu_controller)
{
    v1_process("/a");
    v1_limit("/a", "250000\n", "100000\n");
    put("sys/fs/cgroup/cpuset/other/cpu.cfs_quota_us", "100000\n");
    put("sys/fs/cgroup/cpuset/other/cpu.cfs_period_us", "100000\n");
    CHECK_EQ(quota(), 3);
}

TEST(the_cpu_controller_may_be_mounted_alone_or_in_any_company)
{
    static const char *const words[] = {"cpu", "cpu,cpuacct", "cpuacct,cpu", "cpuset,cpu,memory"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "7:cpuset:/no\n3:%s:/a\n", words[i]);
        put("cgroup", text);
        (void)snprintf(text, sizeof(text), "33 32 0:30 / /%s rw - cgroup cgroup rw,%s\n", V1,
                       words[i]);
        put("mountinfo", text);
        v1_limit("/a", "200000\n", "100000\n");
        CHECK_EQ(quota(), 2);
    }
    put("mountinfo", CPUSET_MOUNT);
    put("sys/fs/cgroup/cpuset/a/cpu.cfs_quota_us", "200000\n");
    put("sys/fs/cgroup/cpuset/a/cpu.cfs_period_us", "100000\n");
    CHECK_EQ(quota(), 0);
}

TEST(what_is_no_v1_quota_sets_no_limit)
{
    static const char *const texts[][2] = {
        {"-1\n", "100000\n"},  {"0\n", "100000\n"},
        {"", "100000\n"},      {"max\n", "100000\n"},
        {"200000\n", "0\n"},   {"200000\n", ""},
        {"200000\n", "-1\n"},  {"99999999999999999999999\n", "100000\n"},
        {"200000\n", "x\n"},   {"200000 100000\n", "100000\n"},
        {"200000\n", "1 1\n"}, {"9223372036854775807\n", "1\n"},
    };
    v1_process("/a");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        v1_limit("/a", texts[i][0], texts[i][1]);
        if (quota() != 0)
            FAIL("\"%s\" of \"%s\" gives %d", texts[i][0], texts[i][1], quota());
    }
}

TEST(a_v1_quota_without_its_period_is_not_understood)
{
    v1_process("/a/b");
    put(V1 "/a/b/cpu.cfs_quota_us", "100000\n");
    CHECK_EQ(quota(), 0);
    v1_limit("/a", "200000\n", "100000\n");
    CHECK_EQ(quota(), 2);
}

TEST(the_least_v1_quota_on_the_way_up_counts)
{
    v1_process("/a/b/c");
    v1_limit("/a/b/c", "-1\n", "100000\n");
    v1_limit("/a/b", "400000\n", "100000\n");
    v1_limit("/a", "75000\n", "25000\n");
    v1_limit("", "-1\n", "100000\n");
    CHECK_EQ(quota(), 3);
    v1_limit("/a/b/c", "200000\n", "100000\n");
    CHECK_EQ(quota(), 2);
}

TEST(a_v1_container_sees_its_own_group_as_the_mount)
{
    v1_process("/kubepods/pod1/c1");
    put("mountinfo",
        CPUSET_MOUNT "33 32 0:30 /kubepods/pod1/c1 /sys/fs/cgroup/cpu,cpuacct ro,nodev "
                     "master:11 - cgroup cgroup rw,cpu,cpuacct\n");
    v1_limit("", "300000\n", "100000\n");
    CHECK_EQ(quota(), 3);
}

TEST(on_a_hybrid_machine_the_smaller_of_both_quotas_counts)
{
    put("cgroup", "4:cpu,cpuacct:/one\n1:name=systemd:/x\n0::/two\n");
    put("mountinfo", V1_MOUNT "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    CHECK_EQ(quota(), 0);
    v1_limit("/one", "400000\n", "100000\n");
    CHECK_EQ(quota(), 4);
    put("sys/fs/cgroup/unified/two/cpu.max", "300000 100000\n");
    CHECK_EQ(quota(), 3);
    v1_limit("/one", "200000\n", "100000\n");
    CHECK_EQ(quota(), 2);
    put("sys/fs/cgroup/unified/one/cpu.max", "100000 100000\n"); /* another hierarchy's path */
    CHECK_EQ(quota(), 2);
}

/* ---- texts as they should not be -------------------------------------------------------- */

TEST(without_the_two_texts_there_is_no_quota_to_be_found)
{
    int cpus = 5;
    put(V2 "/cpu.max", "100000 100000\n");
    CHECK_EQ(quota(), 0);
    put("cgroup", "");
    put("mountinfo", "");
    CHECK_EQ(quota(), 0);
    put("cgroup", "0::/\n");
    CHECK_EQ(quota(), 0);
    CHECK_EQ(sni_cpu_quota_from(temp_dir(), temp_dir(), "", &cpus), -ENOENT); /* folders */
    CHECK_EQ(cpus, 5);
}

TEST(with_the_mounts_alone_their_roots_are_asked)
{
    put("mountinfo", V2_MOUNT);
    put(V2 "/cpu.max", "200000 100000\n");
    CHECK_EQ(quota(), 2);
    put("cgroup", "no colons here\n::\n:\n\n");
    CHECK_EQ(quota(), 2);
}

TEST(lines_that_make_no_sense_are_passed_over)
{
    put("cgroup", "garbage\n0:\n0::/a\n7:cpu\n");
    put("mountinfo", "\n \n30\n30 23 0:26 / /x\n30 23 0:26 / /x rw\n30 23 0:26 / /x rw -\n"
                     "30 23 0:26 / /x rw - cgroup2\n30 23 0:26 / /x rw - cgroup2 none\n"
                     "30 23 0:26 / /x rw shared:1 cgroup2 none rw\n"
                     "- - - - - - - - - - -\n" V2_MOUNT);
    put(V2 "/a/cpu.max", "200000 100000\n");
    put("x/a/cpu.max", "100000 100000\n");
    CHECK_EQ(quota(), 2);
}

TEST(a_line_of_any_length_does_not_hide_the_next)
{
    static char text[40000];
    static const size_t lengths[] = {1000, 3900, 4094, 4095, 4096, 4097, 8191, 8192, 20000};
    v2_process("/a");
    put(V2 "/a/cpu.max", "200000 100000\n");
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t n = lengths[i];
        (void)snprintf(text, sizeof(text), "29 1 0:25 / / rw - overlay overlay rw,lowerdir=");
        memset(text + strlen(text), 'x', n);
        text[n] = '\n';
        text[n + 1] = '\0';
        (void)strcat(text, V2_MOUNT);
        put("mountinfo", text);
        CHECK_EQ(quota(), 2);
    }
}

TEST(the_end_of_a_line_too_long_is_not_taken_for_a_line)
{
    static char text[20000];
    v2_process("/a");
    put(V2 "/a/cpu.max", "200000 100000\n");
    put("fake/a/cpu.max", "100000 100000\n");
    for (size_t n = 4090; n < 4100; n++) {
        (void)snprintf(text, sizeof(text), "%s", V2_MOUNT);
        memset(text + strlen(text), 'x', n);
        text[sizeof(V2_MOUNT) - 1 + n] = '\0';
        (void)strcat(text, "1 2 3 / /fake rw - cgroup2 cgroup2 rw\n");
        put("mountinfo", text);
        CHECK_EQ(quota(), 2);
        memset(text, 0, sizeof(text));
    }
}

TEST(a_path_too_long_for_any_file_system_is_survived)
{
    static char line[9000];
    for (size_t n = 3000; n < sizeof(line) - 2; n += 499) {
        (void)snprintf(line, sizeof(line), "0::");
        memset(line + 3, 'a', n);
        for (size_t i = 3; i < n; i += 100)
            line[i] = '/';
        line[n] = '\n';
        line[n + 1] = '\0';
        put("cgroup", line);
        put("mountinfo", V2_MOUNT);
        put(V2 "/cpu.max", "200000 100000\n");
        int cpus = quota();
        CHECK(cpus == 2 || cpus == 0); /* 0 where prefix and path together do not fit */
    }
}

TEST(any_bytes_at_all_are_survived, .limit_s = 60)
{
    static const char *const words[] = {"0::",
                                        "/",
                                        "..",
                                        "cpu",
                                        ",",
                                        ":",
                                        " ",
                                        "\n",
                                        "-",
                                        "max",
                                        "100",
                                        "\\0",
                                        "40",
                                        "a",
                                        "rw ",
                                        "\n30 23 0:26 / ",
                                        "cgroup2",
                                        "cgroup ",
                                        " - cgroup2 x rw\n",
                                        "99999999999"};
    struct sni_rand r;
    sni_rand_init(&r, test_seed());
    for (int round = 0; round < 1500; round++) {
        static const char *const files[] = {"cgroup", "mountinfo", V2 "/cpu.max", "a/cpu.max"};
        for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
            char text[2048] = "";
            uint32_t n = sni_rand_below(&r, 60);
            for (uint32_t i = 0; i < n; i++) {
                (void)strcat(text, words[sni_rand_below(&r, sizeof(words) / sizeof(words[0]))]);
                if (sni_rand_below(&r, 20) == 0)
                    text[strlen(text) - 1] = (char)(1 + sni_rand_below(&r, 255));
            }
            put(files[f], text);
        }
        (void)quota();
    }
}

/* ---- nodes (R46) ------------------------------------------------------------------------ */

#define NODES "sys/devices/system/node"

TEST(a_processor_belongs_to_the_node_that_lists_it)
{
    put(NODES "/online", "0-2,5\n");
    put(NODES "/node0/cpulist", "0-3,8-11\n");
    put(NODES "/node1/cpulist", "4-7,12\n");
    put(NODES "/node2/cpulist", "\n"); /* memory alone */
    put(NODES "/node5/cpulist", "13\n");
    put(NODES "/node3/cpulist", "14\n"); /* offline */
    static const int nodes[] = {0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 5, -1, -1};
    for (int cpu = 0; cpu < (int)(sizeof(nodes) / sizeof(nodes[0])); cpu++)
        CHECK_EQ(sni_cpu_node_from(temp_dir(), cpu), nodes[cpu]);
    CHECK_EQ(sni_cpu_node_from(temp_dir(), -1), -1);
    CHECK_EQ(sni_cpu_node_from(temp_dir(), INT_MAX), -1);
}

TEST(where_nodes_are_not_told_or_not_understood_they_are_unknown)
{
    static const char *const lists[] = {"", "\n", "x", "0-", "-", "0-99999999999999999999", "0,,1"};
    CHECK_EQ(sni_cpu_node_from(temp_dir(), 0), -1);
    put(NODES "/online", "0-1\n");
    CHECK_EQ(sni_cpu_node_from(temp_dir(), 0), -1);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        put(NODES "/node0/cpulist", lists[i]);
        CHECK_EQ(sni_cpu_node_from(temp_dir(), 1), -1);
    }
    put(NODES "/online", "0-4000000000\n");
    put(NODES "/node7/cpulist", "1\n");
    CHECK_EQ(sni_cpu_node_from(temp_dir(), 1), 7);
    CHECK_EQ(sni_cpu_node_from(temp_dir(), 2), -1);
}

/* ---- this machine ----------------------------------------------------------------------- */

TEST(this_machine_has_between_one_processor_and_those_online)
{
    CHECK_GE(sni_plat_cpu_count(), 1);
    CHECK_LE(sni_plat_cpu_count(), sysconf(_SC_NPROCESSORS_ONLN));
}

TEST(the_affinity_mask_is_honoured)
{
    cpu_set_t before;
    CHECK_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    int last = sni_plat_cpu_nth(CPU_COUNT(&before) - 1);
    CHECK_GE(last, 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)last, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    CHECK_EQ(sni_plat_cpu_count(), 1);
    CHECK_EQ(sni_plat_cpu_nth(0), last);
    CHECK_EQ(sni_plat_cpu_nth(1), -ENOENT);
    CHECK_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
    CHECK_EQ(sni_plat_cpu_nth(CPU_COUNT(&before) - 1), last);
}

TEST(processors_are_counted_in_rising_order_and_then_there_are_no_more)
{
    int cpu = -1;
    int count = 0;
    for (int next = sni_plat_cpu_nth(0); next >= 0; next = sni_plat_cpu_nth(++count)) {
        CHECK_GT(next, cpu);
        cpu = next;
        CHECK_GE(sni_plat_cpu_node(cpu), -1);
    }
    CHECK_GE(count, sni_plat_cpu_count());
    CHECK_EQ(sni_plat_cpu_nth(-1), -ENOENT);
    CHECK_EQ(sni_plat_cpu_nth(INT_MAX), -ENOENT);
}
