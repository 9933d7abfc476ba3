/* SPDX-License-Identifier: MIT */
/* run.c - one process per test, so many at a time, none for longer than its limit.
 *
 * The runner is a single thread with one *slot* per test that may run at once. It sleeps in
 * sigtimedwait until a child ends (SIGCHLD is blocked, hence never lost), a limit passes or someone
 * interrupts it, and then looks at all slots. Output goes to a memfd, not a pipe: a child can never
 * block on a reader, and one that outlives its test cannot hold up the runner.
 *
 * A child leads a process group. When it has ended, and while it is still a zombie so that the
 * number of the group cannot have been given away, the whole group is killed. */
#include "harness_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_EVERY_MS = 200 }; /* how late a flood of output may be noticed */

struct slot {
    const struct job *job; /* NULL: the slot is free */
    struct card *card;     /* a page of its own for each job; shared with the child */
    pid_t pid;
    int output_fd;
    int64_t started_ns;
    int64_t deadline_ns;
    struct ending ending;
};

static double limit_of(const struct settings *settings, const struct test_case *test)
{
    double limit_s = test->options.limit_s > 0 ? test->options.limit_s : LIMIT_S_DEFAULT;
    return limit_s * settings->time_factor;
}

static _Noreturn void give_up(struct report *report, const char *what)
{
    char why[128];
    snprintf(why, sizeof why, "%s: %s", what, strerror(errno));
    report_bail_out(report, why);
    exit(EXIT_USAGE); /* children die with us, see PR_SET_PDEATHSIG */
}

static void start(const struct settings *settings, const struct job *job, struct slot *slot,
                  struct report *report)
{
    slot->card =
        mmap(NULL, sizeof(struct card), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (slot->card == MAP_FAILED)
        give_up(report, "cannot map a page");
    slot->output_fd = memfd_create("test output", MFD_CLOEXEC);
    if (slot->output_fd < 0)
        give_up(report, "cannot make a memfd");
    slot->card->seed = settings->seed + (uint64_t)job->round;
    slot->ending = (struct ending){.limit_s = limit_of(settings, job->test)};
    slot->job = job;
    slot->started_ns = now_ns();
    slot->deadline_ns = slot->started_ns + (int64_t)(slot->ending.limit_s * 1e9);

    int runner_pid = (int)getpid();
    slot->pid = fork();
    if (slot->pid < 0)
        give_up(report, "cannot fork");
    if (slot->pid == 0)
        child_main(job->test, slot->card, slot->output_fd, runner_pid);
    setpgid(slot->pid, slot->pid); /* the child does it too: whoever comes first */
}

static void kill_group(const struct slot *slot)
{
    kill(-slot->pid, SIGKILL);
    kill(slot->pid, SIGKILL);
}

/* Kill the test if it has used up its time or its space. It is reaped when it has died. */
static void enforce_limits(struct slot *slot)
{
    struct stat st;
    if (slot->ending.timed_out || slot->ending.flooded)
        return;
    slot->ending.timed_out = now_ns() >= slot->deadline_ns;
    slot->ending.flooded = fstat(slot->output_fd, &st) == 0 && st.st_size > OUTPUT_BYTES_MAX;
    if (slot->ending.timed_out || slot->ending.flooded)
        kill_group(slot);
}

static bool has_ended(const struct slot *slot)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)slot->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == slot->pid;
}

/* Kill what is left of the test's processes, reap it, remove its directory. */
static void clean_up(struct slot *slot)
{
    kill_group(slot);
    while (waitpid(slot->pid, &slot->ending.wait_status, 0) < 0 && errno == EINTR)
        continue;
    if (slot->card->temp_dir[0] != '\0')
        temp_dir_remove(slot->card->temp_dir);
}

static void free_slot(struct slot *slot)
{
    close(slot->output_fd);
    munmap(slot->card, sizeof *slot->card);
    *slot = (struct slot){0};
}

static void finish(const struct settings *settings, struct slot *slot, struct report *report)
{
    struct result result = {
        .job = slot->job,
        .elapsed_ms = (now_ns() - slot->started_ns) / 1000000,
        .seed_asked = atomic_load(&slot->card->seed_asked),
        .seed = slot->card->seed,
    };
    clean_up(slot);
    result.output = read_fd(slot->output_fd, &result.output_bytes);
    if (result.output == NULL)
        give_up(report, "cannot read the output of a test");
    judge(slot->card, &slot->ending, settings->strict, &result);
    report_result(report, &result);
    free(result.output);
    free_slot(slot);
}

static _Noreturn void stop_on_signal(struct slot *slots, int count, int number,
                                     struct report *report)
{
    char buffer[32];
    char why[64];
    for (int i = 0; i < count; i++) {
        if (slots[i].job != NULL) {
            clean_up(&slots[i]);
            free_slot(&slots[i]);
        }
    }
    snprintf(why, sizeof why, "stopped by %s", signal_name(number, buffer, sizeof buffer));
    report_bail_out(report, why);
    exit(128 + number);
}

/* Sleep until there is something to do; returns the signal that came, or -1. */
static int wait_for_event(const struct slot *slots, int count, const sigset_t *signals)
{
    int64_t wake_ns = now_ns() + (int64_t)LOOK_EVERY_MS * 1000000;
    for (int i = 0; i < count; i++)
        if (slots[i].job != NULL && slots[i].deadline_ns < wake_ns)
            wake_ns = slots[i].deadline_ns;
    int64_t wait_ns = wake_ns - now_ns();
    if (wait_ns < 0)
        wait_ns = 1000000; /* overdue and already killed: it will be gone in a moment */
    struct timespec wait = {
        .tv_sec = (time_t)(wait_ns / 1000000000),
        .tv_nsec = (long)(wait_ns % 1000000000),
    };
    return sigtimedwait(signals, NULL, &wait);
}

static sigset_t block_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    signal(SIGCHLD, SIG_DFL); /* if it came to us ignored, children could not be waited for */
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return signals;
}

void run_jobs(const struct settings *settings, const struct job *jobs, size_t count,
              struct report *report)
{
    sigset_t signals = block_signals();
    int slot_count = settings->parallel;
    struct slot *slots = calloc((size_t)slot_count, sizeof *slots);
    size_t started = 0;
    size_t finished = 0;
    if (slots == NULL)
        give_up(report, "no memory for the table of running tests");
    while (finished < count) {
        for (int i = 0; i < slot_count && started < count; i++)
            if (slots[i].job == NULL)
                start(settings, &jobs[started++], &slots[i], report);
        int number = wait_for_event(slots, slot_count, &signals);
        if (number == SIGINT || number == SIGTERM || number == SIGHUP)
            stop_on_signal(slots, slot_count, number, report);
        for (int i = 0; i < slot_count; i++) {
            if (slots[i].job == NULL)
                continue;
            if (has_ended(&slots[i])) {
                finish(settings, &slots[i], report);
                finished++;
            } else {
                enforce_limits(&slots[i]);
            }
        }
    }
    free(slots);
}
