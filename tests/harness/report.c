/* SPDX-License-Identifier: MIT */
/* report.c - telling people (plain), harnesses (TAP 13), CI (JUnit) and scripts (the log) about it.
 *
 * Everything about one test is put together first and then written by a single write, so that lines
 * of several runners sharing a terminal or a log do not mix. TAP numbers tests in the order in
 * which they end. The JUnit document opens with totals, so its body is collected and written last.
 */
#include "harness_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN_BYTES_MAX = 64 << 10 }; /* of a test's output */

struct report {
    const struct settings *settings;
    struct totals totals;
    size_t done;
    int64_t started_ns;
    int log_fd;       /* -1: no log */
    int junit_fd;     /* -1: no JUnit file */
    FILE *junit;      /* the collected cases; NULL as above */
    char *junit_text; /* belongs to `junit` until that is closed */
    size_t junit_bytes;
};

/* --- Text in one piece ------------------------------------------------------------------------ */

struct text {
    FILE *out;
    char *data;
    size_t bytes;
};

static _Noreturn void no_memory(void)
{
    fprintf(stderr, "harness: no memory for the report\n");
    exit(EXIT_USAGE);
}

static void text_open(struct text *text)
{
    text->out = open_memstream(&text->data, &text->bytes);
    if (text->out == NULL)
        no_memory();
}

static bool text_write(struct text *text, int fd)
{
    if (fclose(text->out) != 0)
        no_memory();
    bool ok = write_all(fd, text->data, text->bytes);
    free(text->data);
    return ok;
}

/* --- Plain and TAP ---------------------------------------------------------------------------- */

const char *output_tail(const struct result *result, size_t *bytes)
{
    size_t left_out = 0;
    if (result->output_bytes > SHOWN_BYTES_MAX)
        left_out = result->output_bytes - SHOWN_BYTES_MAX;
    *bytes = result->output_bytes - left_out;
    return result->output + left_out;
}

/* The output with `prefix` before each line. */
static void put_output(FILE *out, const char *prefix, const struct result *result)
{
    size_t bytes;
    const char *at = output_tail(result, &bytes);
    if (bytes < result->output_bytes)
        fprintf(out, "%s[%zu bytes left out]\n", prefix, result->output_bytes - bytes);
    while (bytes > 0) {
        const char *end = memchr(at, '\n', bytes);
        size_t line_bytes = end != NULL ? (size_t)(end - at) : bytes;
        fputs(prefix, out);
        fwrite(at, 1, line_bytes, out);
        fputc('\n', out);
        at += line_bytes + (end != NULL);
        bytes -= line_bytes + (end != NULL);
    }
}

static void put_name(FILE *out, const struct settings *settings, const struct job *job)
{
    fputs(job->test->name, out);
    if (settings->rounds > 1)
        fprintf(out, " [%d/%d]", job->round + 1, settings->rounds);
}

static void put_details(FILE *out, const char *prefix, const struct settings *settings,
                        const struct result *result)
{
    if (result->outcome == FAILED || settings->verbose)
        put_output(out, prefix, result);
    if (result->outcome == FAILED && result->seed_asked)
        fprintf(out, "%sreplay with: %s --seed %" PRIu64 " %s\n", prefix, settings->suite,
                result->seed, result->job->test->name);
}

static void put_plain(FILE *out, const struct settings *settings, const struct result *result)
{
    static const char *const words[] = {"ok    ", "FAIL  ", "skip  "};
    fputs(words[result->outcome], out);
    put_name(out, settings, result->job);
    if (result->outcome == PASSED)
        fprintf(out, " (%" PRId64 " ms)\n", result->elapsed_ms);
    else
        fprintf(out, ": %s\n", result->why);
    put_details(out, "      | ", settings, result);
}

static void put_tap(FILE *out, size_t number, const struct settings *settings,
                    const struct result *result)
{
    fprintf(out, "%s %zu - ", result->outcome == FAILED ? "not ok" : "ok", number);
    put_name(out, settings, result->job);
    if (result->outcome == SKIPPED)
        fprintf(out, " # SKIP %s", result->why);
    fputc('\n', out);
    if (result->outcome == FAILED)
        fprintf(out, "# %s\n", result->why);
    put_details(out, "# | ", settings, result);
}

/* --- The log ---------------------------------------------------------------------------------- */

static void put_log(FILE *out, const struct settings *settings, const struct result *result)
{
    static const char *const words[] = {"pass", "fail", "skip"};
    fprintf(out, "%s\t%s/%s", words[result->outcome], settings->suite, result->job->test->name);
    if (result->outcome != PASSED)
        fprintf(out, "\t%s", result->why);
    fputc('\n', out);
}

/* --- The report as a whole -------------------------------------------------------------------- */

/* -1 when no path is given; -2, after a sentence, when it cannot be opened. */
static int open_output(const struct settings *settings, const char *path, int flags)
{
    if (path == NULL)
        return -1;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    if (fd >= 0)
        return fd;
    fprintf(stderr, "%s: cannot write %s: %s\n", settings->suite, path, strerror(errno));
    return -2;
}

struct report *report_create(const struct settings *settings, size_t planned)
{
    struct report *report = calloc(1, sizeof *report);
    if (report == NULL)
        no_memory();
    report->settings = settings;
    report->started_ns = now_ns();
    report->log_fd = open_output(settings, settings->log_path, O_APPEND);
    report->junit_fd = open_output(settings, settings->junit_path, O_TRUNC);
    if (report->log_fd == -2 || report->junit_fd == -2) {
        free(report);
        return NULL;
    }
    if (report->junit_fd >= 0) {
        report->junit = open_memstream(&report->junit_text, &report->junit_bytes);
        if (report->junit == NULL)
            no_memory();
    }
    if (settings->tap) {
        struct text text;
        text_open(&text);
        fprintf(text.out, "TAP version 13\n1..%zu\n", planned);
        text_write(&text, STDOUT_FILENO);
    }
    return report;
}

void report_result(struct report *report, const struct result *result)
{
    struct text text;
    report->done++;
    report->totals.by_outcome[result->outcome]++;
    text_open(&text);
    if (report->settings->tap)
        put_tap(text.out, report->done, report->settings, result);
    else
        put_plain(text.out, report->settings, result);
    text_write(&text, STDOUT_FILENO);
    if (report->log_fd >= 0) {
        text_open(&text);
        put_log(text.out, report->settings, result);
        text_write(&text, report->log_fd);
    }
    if (report->junit != NULL)
        junit_case(report->junit, report->settings, result);
}

void report_bail_out(struct report *report, const char *why)
{
    struct text text;
    text_open(&text);
    fprintf(text.out, "%s%s\n", report->settings->tap ? "Bail out! " : "harness: ", why);
    text_write(&text, STDOUT_FILENO);
}

static bool write_junit(struct report *report)
{
    struct text text;
    if (report->junit == NULL)
        return true;
    if (fclose(report->junit) != 0)
        no_memory();
    text_open(&text);
    junit_document(text.out, report->settings, &report->totals, report->junit_text);
    free(report->junit_text);
    bool ok = text_write(&text, report->junit_fd);
    if (!ok)
        fprintf(stderr, "%s: cannot write %s: %s\n", report->settings->suite,
                report->settings->junit_path, strerror(errno));
    close(report->junit_fd);
    return ok;
}

int report_destroy(struct report *report)
{
    const size_t *counts = report->totals.by_outcome;
    struct text text;
    report->totals.elapsed_ms = (now_ns() - report->started_ns) / 1000000;
    int status = write_junit(report) ? EXIT_SUCCESS : EXIT_USAGE;
    if (status == EXIT_SUCCESS && counts[FAILED] > 0)
        status = EXIT_SOME_FAILED;
    text_open(&text);
    fprintf(text.out, "%s%zu passed, %zu failed, %zu skipped\n", report->settings->tap ? "# " : "",
            counts[PASSED], counts[FAILED], counts[SKIPPED]);
    text_write(&text, STDOUT_FILENO);
    if (report->log_fd >= 0)
        close(report->log_fd);
    free(report);
    return status;
}
