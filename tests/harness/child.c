/* SPDX-License-Identifier: MIT */
/* child.c - the process of one test: what happens around its body.
 *
 * The child starts as clean as it can: its own process group, only descriptors 0 to 2, no
 * signal blocked, and an unbuffered stdout, so that a crash loses no output. When the body has
 * returned and left nothing behind, the card is marked finished and the child leaves by exit(0):
 * atexit handlers, coverage counters and the end-of-process checks of the sanitizers run. Status 0
 * without that mark is a body that called exit, which is no success. */
#include "harness_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The card of this process: the shared one in a child, a private one otherwise (--no-fork). Set
 * once, before the body. A global, because a check has no argument to bring it. */
static struct card own_card;
static struct card *current_card = &own_card;

struct card *card_current(void)
{
    return current_card;
}

uint64_t test_seed(void)
{
    atomic_store(&current_card->seed_asked, true);
    return current_card->seed;
}

/* Found by the undefined behaviour sanitizer, if it is linked: a report is a failure. */
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "halt_on_error=1:print_stacktrace=1";
}

/* Not to be inlined, so that no register of the caller hides a leaked pointer from view. */
static __attribute__((noinline)) void call_body(const struct test_case *test)
{
    test->body();
}

void child_run_body(const struct test_case *test)
{
    fds_remember();
    memory_watch();
    call_body(test);
    if (test->last_words != NULL)
        harness_fail(test->file, test->line, "returned normally; it had to die saying \"%s\"",
                     test->last_words);
    if (!test->options.leaks_memory)
        memory_check();
    if (!test->options.leaks_fds)
        fds_check();
    atomic_store(&current_card->finished, true);
}

/* Descriptors 0 to 2 as every test finds them, and no others. */
static void arrange_descriptors(int output_fd)
{
    int null_fd = open("/dev/null", O_RDONLY);
    if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(output_fd, STDOUT_FILENO) < 0 ||
        dup2(output_fd, STDERR_FILENO) < 0)
        harness_fail(NULL, 0, "cannot redirect the test's input and output: %s", strerror(errno));
    syscall(SYS_close_range, 3U, ~0U, 0U);
    setvbuf(stdout, NULL, _IONBF, 0);
}

static void arrange_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL); /* whoever started the runner may have ignored it */
}

_Noreturn void child_main(const struct test_case *test, struct card *card, int output_fd,
                          int runner_pid)
{
    current_card = card;
    setpgid(0, 0);
    /* Die with the runner, even if it is killed; it may have died before this line. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != runner_pid)
        _exit(STATUS_FAILED);
    arrange_descriptors(output_fd);
    arrange_signals();
    if (test->last_words != NULL)
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* a wanted crash needs no core file */
    child_run_body(test);
    if (test->options.leaks_memory)
        _exit(0); /* not exit: LeakSanitizer would look again */
    exit(0);
}
