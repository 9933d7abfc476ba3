/* SPDX-License-Identifier: MIT */
/* victims.c - tests that misbehave on purpose; run by test_harness, never by themselves.
 *
 * Where a victim has something to tell beyond its report (a pid, a path), it writes it to the file
 * named by VICTIM_FILE. */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(const char *text)
{
    const char *path = getenv("VICTIM_FILE");
    CHECK(path != NULL);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    CHECK_GE(fd, 0);
    CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void tell_pid(pid_t pid)
{
    char text[32];
    snprintf(text, sizeof text, "%d\n", (int)pid);
    tell(text);
}

/* --- Good ones -------------------------------------------------------------------------------- */

TEST(passes)
{
    puts("the passing test prints this");
}

TEST(passes_too)
{
    CHECK(1 + 1 == 2);
}

TEST(finds_an_empty_stdin_and_no_other_descriptor)
{
    CHECK_EQ(fcntl(9, F_GETFD), -1);
    CHECK_EQ(getchar(), EOF);
    CHECK_EQ(dup(0), 3);
    close(3);
}

/* Evaluated once each, or the counter ends elsewhere. */
TEST(all_checks_hold)
{
    int n = 0;
    unsigned char byte = 200;
    int here;
    CHECK_EQ(n++, 0);
    CHECK_NE(n++, 0L);
    CHECK_LT(n++, 3U);
    CHECK_LE(n++, (short)3);
    CHECK_GT(n++, -1LL);
    CHECK_GE(n++, (size_t)5);
    CHECK_EQ(n, 6);
    CHECK_EQ(byte, 200);
    CHECK_EQ(true, 1);
    CHECK_PTR_EQ(&here, &here);
    CHECK_PTR_EQ(NULL, NULL);
    CHECK_STR_EQ("a", "a");
    CHECK_STR_EQ(NULL, NULL);
    CHECK_STR_HAS("haystack", "stack");
    CHECK_MEM_EQ("ab\0c", "ab\0d", 3);
    CHECK_MEM_EQ("x", "y", 0);
    CHECK((int[]){1, 2}[1] == 2);
}

/* --- Failing checks --------------------------------------------------------------------------- */

TEST(fails_check)
{
    CHECK(1 + 1 == 3);
    puts("not reached");
}

TEST(fails_check_eq)
{
    int left = -3;
    CHECK_EQ(left, 4U);
}

TEST(fails_check_ne)
{
    CHECK_NE(5, 5);
}
TEST(fails_check_lt)
{
    CHECK_LT(5, 5);
}
TEST(fails_check_le)
{
    CHECK_LE(6, 5);
}
TEST(fails_check_gt)
{
    CHECK_GT(5, 5);
}
TEST(fails_check_ge)
{
    CHECK_GE(4, 5);
}
TEST(fails_check_ptr_eq)
{
    CHECK_PTR_EQ((void *)16, NULL);
}
TEST(fails_check_str_eq)
{
    CHECK_STR_EQ("one", "two");
}
TEST(fails_check_str_eq_null)
{
    CHECK_STR_EQ("one", NULL);
}
TEST(fails_check_str_has)
{
    CHECK_STR_HAS("haystack", "needle");
}
TEST(fails_check_mem_eq)
{
    CHECK_MEM_EQ("abcdefghijkl", "abcdefghiJkl", 12);
}
TEST(fails_with_a_reason)
{
    FAIL("the moon is %s, 100%%", "new");
}

static void *check_in_thread(void *arg)
{
    (void)arg;
    CHECK_EQ(1, 2);
    return NULL;
}

TEST(fails_in_a_thread)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, check_in_thread, NULL), 0);
    pthread_join(thread, NULL);
}

TEST(fails_in_a_forked_process)
{
    pid_t pid = fork();
    if (pid == 0)
        CHECK_EQ(10, 20);
    waitpid(pid, NULL, 0);
}

TEST(fails_in_a_forked_process_and_itself)
{
    pid_t pid = fork();
    if (pid == 0)
        CHECK_EQ(10, 20);
    waitpid(pid, NULL, 0);
    CHECK_EQ(30, 40);
}

TEST(fails_in_many_threads)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, check_in_thread, NULL), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

/* --- Skips ------------------------------------------------------------------------------------ */

TEST(skips)
{
    SKIP("no %s here", "moon");
}
TEST(skips_for_want_of_a_tool)
{
    require_tool("no-such-program-xyz", "moon");
}
TEST(has_its_tool)
{
    require_tool("sh", "moon");
    require_tool("/bin/sh", "moon");
}

/* --- Abnormal ends ---------------------------------------------------------------------------- */

/* By the default action, also where a sanitizer would turn the signal into a status. */
static void die_of(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

TEST(dies_of_sigsegv)
{
    printf("last words without a newline");
    die_of(SIGSEGV);
}

TEST(dies_of_sigabrt)
{
    abort();
}
TEST(dies_of_sigkill)
{
    die_of(SIGKILL);
}
TEST(dies_of_a_realtime_signal)
{
    die_of(40);
}
TEST(exits_with_status_0)
{
    exit(0);
}
TEST(exits_with_status_3)
{
    exit(3);
}
TEST(exits_with_status_77_unasked)
{
    exit(77);
}

TEST(hangs, .limit_s = 1)
{
    for (;;)
        pause();
}

TEST(hangs_with_a_descendant, .limit_s = 1)
{
    pid_t pid = fork();
    if (pid > 0)
        tell_pid(pid);
    for (;;)
        pause();
}

TEST(leaves_a_process_behind)
{
    pid_t pid = fork();
    while (pid == 0)
        pause();
    tell_pid(pid);
}

/* Takes 700 ms: too long for its limit unless a time factor of at least 5 stretches it. */
TEST(is_slow, .limit_s = 0.2)
{
    usleep(700000);
}

TEST(tells_its_pid_and_hangs)
{
    tell_pid(getpid());
    for (;;)
        pause();
}

/* --- Leaks ------------------------------------------------------------------------------------ */

static void *volatile sink;

static __attribute__((noinline)) void leak(size_t bytes)
{
    sink = malloc(bytes);
    CHECK(sink != NULL);
    memset(sink, 1, bytes);
    sink = NULL;
}

/* Overwrites what the calls before it left on the stack, for LeakSanitizer. */
static __attribute__((noinline)) void wipe_stack(void)
{
    volatile char space[4096];
    for (size_t i = 0; i < sizeof space; i++)
        space[i] = 0;
}

TEST(leaks_memory)
{
    leak(100);
    leak(23);
    wipe_stack();
}

TEST(leaks_memory_with_leave, .leaks_memory = true)
{
    leak(100);
    wipe_stack();
}

TEST(counts_its_allocations)
{
    CHECK_EQ(alloc_count(), 0);
}

TEST(makes_an_allocation_fail)
{
    alloc_fail_at(1);
}

/* Only where the wrappers are: a sanitizer may end the process at such a request. */
TEST(leaks_a_block_it_could_not_enlarge)
{
    volatile size_t too_much = PTRDIFF_MAX;
    sink = malloc(50);
    void *larger = realloc(sink, too_much);
    CHECK(larger == NULL);
    sink = NULL;
}

TEST(leaks_a_descriptor)
{
    CHECK_GE(open("/dev/zero", O_RDONLY), 0);
}
TEST(leaks_a_descriptor_with_leave, .leaks_fds = true)
{
    CHECK_GE(open("/dev/zero", O_RDONLY), 0);
}
TEST(closes_stdin)
{
    close(0);
}

TEST(frees_what_it_allocates)
{
    char *text = strdup("from inside libc");
    void *aligned = NULL;
    CHECK_EQ(posix_memalign(&aligned, 64, 100), 0);
    free(aligned);
    free(text);
    free(aligned_alloc(64, 128));
    free(realloc(calloc(3, 5), 1000));
    for (size_t i = 0; i < 3; i++)
        free(malloc(i));
}

/* --- Output, directories, seeds --------------------------------------------------------------- */

static void print_mebibytes(int mebibytes)
{
    char line[1024];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\n';
    for (int i = 0; i < mebibytes * 1024; i++)
        fwrite(line, 1, sizeof line, i % 2 ? stdout : stderr);
}

TEST(prints_three_mebibytes)
{
    print_mebibytes(3);
}

TEST(prints_three_mebibytes_and_fails)
{
    print_mebibytes(3);
    FAIL("after much output");
}

TEST(prints_without_end)
{
    for (;;)
        print_mebibytes(1);
}

TEST(prints_what_xml_cannot_hold)
{
    static const char text[] =
        "<a b=\"&'\">]]> \x01\x1b[0m \xff\xc3\x28 \xc3\xa4 \xed\xa0\x80 \0 end\n";
    fwrite(text, 1, sizeof text - 1, stdout);
    FAIL("<angry & \"quoted\"\ntwo lines>");
}

TEST(crashes_with_a_full_temporary_directory)
{
    char path[1024];
    CHECK_STR_EQ(temp_dir(), temp_dir());
    tell(temp_dir());
    snprintf(path, sizeof path, "%s/deeper", temp_dir());
    CHECK_EQ(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/deeper/file", temp_dir());
    close(open(path, O_CREAT | O_WRONLY, 0666));
    snprintf(path, sizeof path, "%s/deeper", temp_dir());
    chmod(path, 0);
    abort();
}

TEST(fails_with_a_seed)
{
    FAIL("seed was %llu", (unsigned long long)test_seed());
}

TEST(reads_a_file_that_is_absent)
{
    free(read_file("/no/such/file"));
}
