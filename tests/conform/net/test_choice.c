/* SPDX-License-Identifier: MIT */
/* Which driver a runtime gets (R80): by option, by environment, and where the system refuses
 * io_uring or epoll; and what happens when memory runs out. */
#include "suite.h"
#include "refuse_call.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- a server -------------------------------------------------------------------------------- */

/* How many descriptors of this process are of that kind. */
static int fds_of(const char *kind)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char what[64] = {0};
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, what, sizeof(what) - 1);
        n += length > 0 && strstr(what, kind) != NULL;
    }
    CHECK_EQ(closedir(dir), 0);
    return n;
}

static int serve(void *arg)
{
    sn_conn *c;
    char buf[8];
    CHECK_EQ(sn_accept(arg, &c, NULL, SN_FOREVER), 0);
    ptrdiff_t n;
    while ((n = sn_read(c, buf, sizeof(buf), SN_FOREVER)) > 0)
        CHECK_EQ(sn_write_all(c, buf, (size_t)n, NULL, SN_FOREVER), 0);
    CHECK_EQ(n, 0);
    return sn_close(c);
}

/* Returns the driver that it ran on. */
static int ask_a_server(void *arg)
{
    (void)arg;
    struct place p = listen_at("127.0.0.1:0", NULL);
    sn_task *server = sn_spawn(serve, p.listener);
    sn_conn *c;
    char buf[8];
    CHECK_EQ(sn_connect(&c, p.addr, SN_FOREVER), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(sn_write(c, "question", 8, SN_FOREVER), 8);
        CHECK_EQ(sn_read_exact(c, buf, 8, NULL, SN_FOREVER), 0);
    }
    CHECK_EQ(sn_close(c), 0);
    CHECK_EQ(sn_join(server, NULL), 0);
    unlisten(&p);
    return fds_of("io_uring") > 0    ? SN_IO_URING
           : fds_of("eventpoll") > 0 ? SN_IO_EPOLL
                                     : SN_IO_POLL;
}

static int runs_on(sn_io_driver asked, unsigned workers)
{
    sn_runtime *rt;
    const sn_runtime_options opts = {
        .io = asked, .single_threaded = workers == 1, .workers = workers == 1 ? 0 : workers};
    int rc = sn_runtime_create(&rt, &opts);
    if (rc < 0)
        return rc;
    rc = sn_runtime_block_on(rt, ask_a_server, NULL);
    sn_runtime_destroy(rt);
    return rc;
}

static bool has_uring(void)
{
    sn_runtime *rt;
    int rc = sn_runtime_create(&rt, &(sn_runtime_options){.io = SN_IO_URING, .workers = 1});
    if (rc == 0)
        sn_runtime_destroy(rt);
    return rc == 0;
}

/* ---- what is written to standard error ------------------------------------------------------- */

static int stderr_before;

static void catch_words(void)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/words", temp_dir());
    stderr_before = fcntl(2, F_DUPFD_CLOEXEC, 3);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK_GE(fd, 0);
    CHECK_EQ(dup2(fd, 2), 2);
    CHECK_EQ(close(fd), 0);
}

/* What was written since; to be freed. */
static char *words(void)
{
    char path[256];
    CHECK_EQ(dup2(stderr_before, 2), 2);
    CHECK_EQ(close(stderr_before), 0);
    (void)snprintf(path, sizeof(path), "%s/words", temp_dir());
    return read_file(path);
}

static int lines_of(const char *text)
{
    int n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

/* ---- asked for ------------------------------------------------------------------------------- */

TEST(a_runtime_runs_on_the_driver_it_was_told)
{
    static const char *const names[] = {[SN_IO_EPOLL] = "epoll", [SN_IO_POLL] = "poll"};
    for (int io = SN_IO_EPOLL; io <= SN_IO_POLL; io++) {
        for (unsigned workers = 1; workers <= 2; workers++) {
            CHECK_EQ(unsetenv("SINEW_IO"), 0);
            CHECK_EQ(runs_on((sn_io_driver)io, workers), io);
            CHECK_EQ(setenv("SINEW_IO", names[io], 1), 0);
            CHECK_EQ(runs_on(SN_IO_AUTO, workers), io);
            CHECK_EQ(setenv("SINEW_IO", "nonsense", 1), 0); /* the program's word counts */
            CHECK_EQ(runs_on((sn_io_driver)io, workers), io);
        }
    }
}

TEST(a_runtime_runs_on_io_uring_where_there_is_one)
{
    if (!has_uring())
        SKIP("io_uring is not to be had here");
    CHECK_EQ(unsetenv("SINEW_IO"), 0);
    CHECK_EQ(runs_on(SN_IO_AUTO, 1), SN_IO_URING);
    CHECK_EQ(runs_on(SN_IO_URING, 2), SN_IO_URING);
    CHECK_EQ(setenv("SINEW_IO", "uring", 1), 0);
    CHECK_EQ(runs_on(SN_IO_AUTO, 2), SN_IO_URING);
    CHECK_EQ(setenv("SINEW_IO", "auto", 1), 0);
    CHECK_EQ(runs_on(SN_IO_AUTO, 2), SN_IO_URING);
    CHECK_EQ(runs_on(SN_IO_POLL, 2), SN_IO_POLL);
}

TEST(a_driver_that_does_not_exist_is_einval_and_a_sentence)
{
    static const char *const wrong[] = {"nonsense", "", "EPOLL", "epoll ", "kqueue"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK_EQ(setenv("SINEW_IO", wrong[i], 1), 0);
        catch_words();
        CHECK_EQ(runs_on(SN_IO_AUTO, 1), -EINVAL);
        char *text = words();
        char expected[128];
        (void)snprintf(expected, sizeof(expected),
                       "sinew: SINEW_IO is \"%s\", but must be auto, uring, epoll or poll\n",
                       wrong[i]);
        CHECK_STR_EQ(text, expected);
        free(text);
    }
    CHECK_EQ(unsetenv("SINEW_IO"), 0);
    catch_words();
    CHECK_EQ(runs_on((sn_io_driver)4, 1), -EINVAL);
    CHECK_EQ(runs_on((sn_io_driver)-1, 1), -EINVAL);
    char *text = words();
    CHECK_STR_HAS(text, "sinew: the option io is 4, which names no driver\n");
    CHECK_EQ(lines_of(text), 2);
    free(text);
}

/* ---- refused --------------------------------------------------------------------------------- */

static void without_uring(int error)
{
    CHECK_EQ(unsetenv("SINEW_IO"), 0);
    CHECK_EQ(unsetenv("SINEW_LOG"), 0);
    refuse_call(SYS_io_uring_setup, error);
    for (unsigned workers = 1; workers <= 2; workers++) {
        catch_words();
        CHECK_EQ(runs_on(SN_IO_AUTO, workers), SN_IO_EPOLL);
        char *text = words();
        CHECK_STR_EQ(text, "");
        free(text);
        CHECK_EQ(setenv("SINEW_LOG", "1", 1), 0);
        catch_words();
        CHECK_EQ(runs_on(SN_IO_AUTO, workers), SN_IO_EPOLL);
        text = words();
        CHECK_STR_HAS(text, "sinew: no uring here (");
        CHECK_EQ(lines_of(text), 1);
        free(text);
        CHECK_EQ(unsetenv("SINEW_LOG"), 0);
    }
    int rc = runs_on(SN_IO_URING, 1);
    CHECK(rc == -error || rc == -ENOSYS); /* it may have been built without */
    CHECK_EQ(setenv("SINEW_IO", "uring", 1), 0);
    CHECK_EQ(runs_on(SN_IO_AUTO, 2), rc);
}

TEST(where_io_uring_is_forbidden_a_server_runs_on_epoll)
{
    without_uring(EPERM);
}

TEST(where_io_uring_is_hidden_a_server_runs_on_epoll)
{
    without_uring(ENOSYS);
}

TEST(where_epoll_is_forbidden_too_a_server_runs_on_poll)
{
    CHECK_EQ(unsetenv("SINEW_IO"), 0);
    CHECK_EQ(setenv("SINEW_LOG", "1", 1), 0);
    refuse_call(SYS_io_uring_setup, EPERM);
    refuse_call(SYS_epoll_create1, ENOSYS);
    catch_words();
    CHECK_EQ(runs_on(SN_IO_AUTO, 2), SN_IO_POLL);
    char *text = words();
    CHECK_STR_HAS(text, "sinew: no epoll here (");
    CHECK_EQ(lines_of(text), 2);
    free(text);
    CHECK_EQ(runs_on(SN_IO_EPOLL, 2), -ENOSYS);
}

/* The rows that ask for io_uring, with what a runtime chooses instead. */
TEST(where_io_uring_is_forbidden_all_suites_pass, .limit_s = 240)
{
    static const char *const suites[] = {"close",  "dgram",  "fds",    "limits",
                                         "listen", "stream", "wait_fd"};
    refuse_call(SYS_io_uring_setup, EPERM);
    CHECK_EQ(setenv("SINEW_NET_SUITE_AUTO", "1", 1), 0);
    CHECK_EQ(unsetenv("SINEW_IO"), 0);
    for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++) {
        struct command run =
            run_command("'%s/tests/conform/net/net_%s' _fiber_uring_", build_path(), suites[i]);
        if (run.status != 0)
            FAIL("net_%s has failed:\n%s", suites[i], run.output);
        CHECK_STR_HAS(run.output, " 0 failed");
        command_finish(&run);
    }
}

/* ---- no memory ------------------------------------------------------------------------------- */

#ifdef SINEW_HARNESS_WRAP

/* 0 or -ENOMEM; whatever was made is closed again. */
static int all_once(void *arg)
{
    (void)arg;
    sn_listener *l;
    sn_conn *c = NULL, *d = NULL;
    sn_addr where;
    char text[SN_ADDR_TEXT_MAX], buf[4];
    int rc = sn_listen(&l, "127.0.0.1:0", NULL);
    if (rc < 0)
        return rc;
    CHECK_EQ(sn_listener_addr(l, &where), 0);
    CHECK_GT(sn_addr_format(&where, text, sizeof(text)), 0);
    rc = sn_connect(&c, text, SN_FOREVER);
    if (rc == 0)
        rc = sn_accept(l, &d, NULL, SN_FOREVER);
    if (rc == 0) {
        ptrdiff_t n = sn_read(d, buf, 4, soon());
        rc = n == -ETIMEDOUT ? 0 : (int)n;
    }
    if (rc == 0)
        rc = sn_write_all(c, "abc", 3, NULL, SN_FOREVER);
    if (rc == 0)
        rc = sn_read_exact(d, buf, 3, NULL, SN_FOREVER);
    if (c != NULL)
        CHECK_EQ(sn_close(c), 0);
    if (d != NULL)
        CHECK_EQ(sn_close(d), 0);
    CHECK_EQ(sn_listener_close(l), 0);
    return rc;
}

/* Fail the first allocation, then the second, ... until there are no more. */
static void fail_each(sn_io_driver io, unsigned workers)
{
    bool reached = true;
    for (uint64_t k = 1; reached; k++) {
        CHECK_LT(k, 1000);
        uint64_t before = alloc_count();
        sn_runtime *rt = NULL;
        const sn_runtime_options opts = {
            .io = io, .single_threaded = workers == 1, .workers = workers == 1 ? 0 : workers};
        alloc_fail_at(k);
        int rc = sn_runtime_create(&rt, &opts);
        if (rc == 0)
            rc = sn_runtime_block_on(rt, all_once, NULL);
        reached = alloc_count() - before >= k;
        alloc_fail_at(0);
        if (rc != -ENOMEM)
            CHECK_EQ(rc, 0);
        sn_runtime_destroy(rt);
    }
}

TEST(no_memory_is_enomem_and_leaves_nothing_behind_uring, .limit_s = 60)
{
    if (!has_uring())
        SKIP("io_uring is not to be had here");
    fail_each(SN_IO_URING, 1);
    fail_each(SN_IO_URING, 2);
}

TEST(no_memory_is_enomem_and_leaves_nothing_behind_epoll, .limit_s = 60)
{
    fail_each(SN_IO_EPOLL, 1);
    fail_each(SN_IO_EPOLL, 2);
}

TEST(no_memory_is_enomem_and_leaves_nothing_behind_poll, .limit_s = 60)
{
    fail_each(SN_IO_POLL, 1);
    fail_each(SN_IO_POLL, 2);
}

#endif
