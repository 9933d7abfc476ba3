/* SPDX-License-Identifier: MIT */
/* judge.c - what became of a test, from its card, its end and its output.
 *
 * The order of the questions matters. What the test said itself (a failed check) explains most and
 * comes first; then what the runner did to it; then a skip; only then does the way it ended count,
 * where a FAIL_TEST wants the opposite of a TEST. */
#include "harness_priv.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>

static HARNESS_PRINTF_(3, 4) void verdict(struct result *result, enum outcome outcome,
                                          const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(result->why, sizeof result->why, fmt, args);
    va_end(args);
    /* Reports are made of lines: what the test said must not break them. */
    for (char *c = result->why; *c != '\0'; c++)
        if (iscntrl((unsigned char)*c))
            *c = ' ';
    result->outcome = outcome;
}

/* "killed by SIGSEGV" or "exited with status 3". */
static void describe_end(int wait_status, char *text, size_t bytes)
{
    char buffer[32];
    if (WIFSIGNALED(wait_status))
        snprintf(text, bytes, "killed by %s",
                 signal_name(WTERMSIG(wait_status), buffer, sizeof buffer));
    else
        snprintf(text, bytes, "exited with status %d", WEXITSTATUS(wait_status));
}

/* The one line of a sanitizer's report that says it all; "" when there is none. The undefined
 * behaviour sanitizer has a better one than its summary, which gcc's leaves out anyway. */
static const char *sanitizer_summary(const struct result *result, int *bytes)
{
    static const char *const marks[] = {"runtime error: ", "SUMMARY: "};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        size_t mark_bytes = strlen(marks[i]);
        const char *found = memmem(result->output, result->output_bytes, marks[i], mark_bytes);
        if (found != NULL) {
            *bytes = (int)strcspn(found + mark_bytes, "\n");
            return found + mark_bytes;
        }
    }
    *bytes = 0;
    return "";
}

static void judge_wanted_death(const struct ending *ending, struct result *result)
{
    const char *last_words = result->job->test->last_words;
    char end[64];
    describe_end(ending->wait_status, end, sizeof end);
    if (WIFEXITED(ending->wait_status) && WEXITSTATUS(ending->wait_status) == 0)
        verdict(result, FAILED, "%s; it had to die saying \"%s\"", end, last_words);
    else if (memmem(result->output, result->output_bytes, last_words, strlen(last_words)) == NULL)
        verdict(result, FAILED, "%s, as it should, but without saying \"%s\"", end, last_words);
}

static void judge_end(const struct card *card, const struct ending *ending, struct result *result)
{
    char end[64];
    describe_end(ending->wait_status, end, sizeof end);
    if (ending->wait_status != 0) {
        int bytes;
        const char *summary = sanitizer_summary(result, &bytes);
        verdict(result, FAILED, "%s%s%.*s", end, bytes > 0 ? ": " : "", bytes, summary);
    } else if (!atomic_load(&card->finished)) {
        verdict(result, FAILED, "%s before its body returned", end);
    }
}

void judge(const struct card *card, const struct ending *ending, bool strict, struct result *result)
{
    int status = ending->wait_status;
    bool skipped =
        atomic_load(&card->skipped) && WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SKIPPED;

    result->outcome = PASSED;
    result->why[0] = '\0';
    if (atomic_load(&card->failed_by) != 0)
        verdict(result, FAILED, "%s", card->why);
    else if (ending->timed_out)
        verdict(result, FAILED, "timed out after %g s", ending->limit_s);
    else if (ending->flooded)
        verdict(result, FAILED, "wrote more than %d MiB of output", OUTPUT_BYTES_MAX >> 20);
    else if (skipped && strict)
        verdict(result, FAILED, "skipped although it should run here: %s", card->why);
    else if (skipped)
        verdict(result, SKIPPED, "%s", card->why);
    else if (result->job->test->last_words != NULL)
        judge_wanted_death(ending, result);
    else
        judge_end(card, ending, result);
}
