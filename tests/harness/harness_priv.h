/* SPDX-License-Identifier: MIT */
/* harness_priv.h - what the files of the harness tell each other.
 *
 * Words: the *runner* is the process that was started; it forks one *child* per run of a test. A
 * *job* is one such run (--repeat makes several of one test). The *card* is a page shared by runner
 * and child on which the child notes what an exit status cannot say. A *result* is the runner's
 * judgement of a finished job, and the only thing the reports look at.
 *
 * Reading order: main.c (options), registry.c (which tests), run.c (fork, limits), child.c (around
 * the body), check.c, judge.c (what became of it), report.c and junit.c. On the side: command.c,
 * leak.c (descriptors), and memory_wrap.c or its twin memory_lsan.c, chosen by CMake. */
#ifndef SINEW_TESTS_HARNESS_PRIV_H
#define SINEW_TESTS_HARNESS_PRIV_H

#include "harness.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
    STATUS_FAILED = 76,   /* a child whose check failed; the reason is on its card */
    STATUS_SKIPPED = 77,  /* a child that skipped; likewise */
    EXIT_SOME_FAILED = 1, /* the runner: at least one test failed */
    EXIT_USAGE = 2,       /* the runner: the command line or environment is wrong */
    LIMIT_S_DEFAULT = 20,
    WHY_BYTES = 1024,
    PATH_BYTES = 512,
};

/* --- The card --------------------------------------------------------------------------------- */

/* Written by the child and by processes it forks, read by the runner once the child is dead. */
struct card {
    _Atomic int failed_by;   /* pid that failed a check first, and owns `why`; 0: none */
    _Atomic bool skipped;    /* SKIP was called; `why` holds the reason */
    _Atomic bool finished;   /* the body returned and nothing was leaked */
    _Atomic bool seed_asked; /* test_seed was called */
    uint64_t seed;           /* set by the runner before the fork */
    char why[WHY_BYTES];
    char temp_dir[PATH_BYTES]; /* "" until temp_dir is called */
};

static_assert(sizeof(struct card) <= 4096, "a card is one page");

/* child.c: the card of this process; never NULL. */
struct card *card_current(void);

/* --- Settings, tests and jobs ----------------------------------------------------------------- */

/* The command line and the environment, constant once parsed. */
struct settings {
    const char *suite;     /* base name of the executable */
    const char **patterns; /* globs and substrings; empty: all tests */
    size_t pattern_count;
    const char *junit_path; /* NULL: no JUnit file */
    const char *log_path;   /* NULL: no log */
    const char *no_fork;    /* NULL, or the one test to run in this process */
    int parallel;
    int rounds;
    uint64_t seed;
    double time_factor;
    bool verbose;
    bool tap;
    bool list;
    bool strict;
};

struct job {
    const struct test_case *test;
    int round; /* 0 .. settings.rounds - 1 */
};

/* registry.c */
const struct test_case *registry_find(const char *name);
size_t registry_count(void);
/* First name that two tests share, or NULL. */
const char *registry_duplicate(void);
/* The jobs the settings ask for, malloc'ed; on a pattern without a match prints a sentence and
 * returns NULL. */
struct job *registry_select(const struct settings *settings, size_t *count);

/* --- Running ---------------------------------------------------------------------------------- */

enum outcome { PASSED, FAILED, SKIPPED };

/* What became of one job. */
struct result {
    const struct job *job;
    enum outcome outcome;
    int64_t elapsed_ms;
    char why[WHY_BYTES]; /* one line; "" when passed */
    char *output;        /* malloc'ed, NUL-terminated; all the child wrote */
    size_t output_bytes;
    bool seed_asked;
    uint64_t seed;
};

/* The end of a child as the runner saw it; input of the judgement. */
struct ending {
    int wait_status;
    bool timed_out;
    bool flooded; /* wrote more than OUTPUT_BYTES_MAX */
    double limit_s;
};

enum { OUTPUT_BYTES_MAX = 64 << 20 };

struct report;

/* run.c: run all jobs, `settings->parallel` at a time, handing each result to the report. */
void run_jobs(const struct settings *settings, const struct job *jobs, size_t count,
              struct report *report);

/* judge.c: fill in outcome and why of a result whose output is in place. */
void judge(const struct card *card, const struct ending *ending, bool strict,
           struct result *result);

/* child.c: the life of a child after the fork; `output_fd` becomes its stdout and stderr. */
_Noreturn void child_main(const struct test_case *test, struct card *card, int output_fd,
                          int runner_pid);
/* child.c: body and leak checks only, on the card of this process; returns when all went well. */
void child_run_body(const struct test_case *test);

/* command.c: remove a directory made by temp_dir; prints a sentence when that fails. */
void temp_dir_remove(const char *path);

/* leak.c: remember the open descriptors; later fail the test if others are open. */
void fds_remember(void);
void fds_check(void);

/* memory_wrap.c or memory_lsan.c. The runner calls memory_ignore first thing; the child
 * memory_watch before the body and memory_check, which fails the test on a leak, after it. */
void memory_ignore(void);
void memory_watch(void);
void memory_check(void);

/* --- Reporting -------------------------------------------------------------------------------- */

/* report.c: opens the log and JUnit files; prints a sentence and returns NULL when it cannot. */
struct report *report_create(const struct settings *settings, size_t planned);
void report_result(struct report *report, const struct result *result);
/* Say that the run stops here for a reason that is no test's fault. */
void report_bail_out(struct report *report, const char *why);
/* Print the totals, write the JUnit file, free; returns the runner's exit status. */
int report_destroy(struct report *report);

/* The totals of a run, as report.c counts and junit.c writes them. */
struct totals {
    size_t by_outcome[3]; /* indexed by enum outcome */
    int64_t elapsed_ms;
};

/* junit.c: one <testcase>; and the document around all of them. */
void junit_case(FILE *out, const struct settings *settings, const struct result *result);
void junit_document(FILE *out, const struct settings *settings, const struct totals *totals,
                    const char *cases);

/* report.c: the end of a result's output that is worth showing, and its length. */
const char *output_tail(const struct result *result, size_t *bytes);

/* util.c */
int64_t now_ns(void);
/* Write all of it, whatever it takes; false with errno set when that fails. */
bool write_all(int fd, const void *data, size_t bytes);
/* All that a regular file or memfd holds, from its start; malloc'ed and NUL-terminated, or NULL. */
char *read_fd(int fd, size_t *bytes);
/* "SIGSEGV", or "signal 40"; `buffer` is used for the latter. */
const char *signal_name(int number, char *buffer, size_t bytes);

#endif
