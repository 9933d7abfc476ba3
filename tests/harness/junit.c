/* SPDX-License-Identifier: MIT */
/* junit.c - results as the XML that CI systems read.
 *
 * A test may print anything; an XML 1.0 document may not contain anything. Characters that XML has
 * no way to write (most control characters) and bytes that are not UTF-8 become a question mark. */
#include "harness_priv.h"

#include <inttypes.h>
#include <string.h>

/* Length of the non-ASCII UTF-8 character at `at`, or 0 when it is none that XML allows. */
static size_t utf8_bytes(const unsigned char *at, size_t bytes)
{
    size_t length = at[0] >= 0xc2 && at[0] <= 0xdf   ? 2
                    : at[0] >= 0xe0 && at[0] <= 0xef ? 3
                    : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
                                                     : 0;
    if (length == 0 || length > bytes)
        return 0;
    uint32_t code = at[0] & (0xffU >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    bool forbidden = code == 0xfffe || code == 0xffff || code > 0x10ffff;
    return code < smallest[length] || surrogate || forbidden ? 0 : length;
}

static void put_ascii(FILE *out, unsigned char c)
{
    switch (c) {
    case '&':
        fputs("&amp;", out);
        break;
    case '<':
        fputs("&lt;", out);
        break;
    case '>':
        fputs("&gt;", out);
        break;
    case '"':
        fputs("&quot;", out);
        break;
    case '\n':
    case '\t':
        fputc(c, out);
        break;
    default:
        fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
        break;
    }
}

static void put_escaped(FILE *out, const char *text, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)text;
    while (bytes > 0) {
        size_t length = 1;
        if (*at < 0x80) {
            put_ascii(out, *at);
        } else {
            length = utf8_bytes(at, bytes);
            if (length > 0)
                fwrite(at, 1, length, out);
            else
                fputc('?', out);
            length = length > 0 ? length : 1;
        }
        at += length;
        bytes -= length;
    }
}

static void put_attribute(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    put_escaped(out, value, strlen(value));
    fputc('"', out);
}

static void put_time(FILE *out, int64_t elapsed_ms)
{
    fprintf(out, " time=\"%" PRId64 ".%03d\"", elapsed_ms / 1000, (int)(elapsed_ms % 1000));
}

static void put_failure(FILE *out, const struct result *result)
{
    size_t bytes;
    const char *output = output_tail(result, &bytes);
    fputs("<failure", out);
    put_attribute(out, "message", result->why);
    fputc('>', out);
    put_escaped(out, output, bytes);
    if (result->seed_asked)
        fprintf(out, "\nseed %" PRIu64 "\n", result->seed);
    fputs("</failure>", out);
}

void junit_case(FILE *out, const struct settings *settings, const struct result *result)
{
    fputs("    <testcase", out);
    put_attribute(out, "classname", settings->suite);
    put_attribute(out, "name", result->job->test->name);
    put_attribute(out, "file", result->job->test->file);
    fprintf(out, " line=\"%d\"", result->job->test->line);
    put_time(out, result->elapsed_ms);
    fputc('>', out);
    if (result->outcome == FAILED)
        put_failure(out, result);
    if (result->outcome == SKIPPED) {
        fputs("<skipped", out);
        put_attribute(out, "message", result->why);
        fputs("/>", out);
    }
    fputs("</testcase>\n", out);
}

static void put_totals(FILE *out, const struct totals *totals)
{
    const size_t *counts = totals->by_outcome;
    fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\"",
            counts[PASSED] + counts[FAILED] + counts[SKIPPED], counts[FAILED], counts[SKIPPED]);
    put_time(out, totals->elapsed_ms);
}

void junit_document(FILE *out, const struct settings *settings, const struct totals *totals,
                    const char *cases)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", out);
    put_totals(out, totals);
    fputs(">\n  <testsuite", out);
    put_attribute(out, "name", settings->suite);
    put_totals(out, totals);
    fprintf(out, ">\n%s  </testsuite>\n</testsuites>\n", cases);
}
