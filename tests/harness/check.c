/* SPDX-License-Identifier: MIT */
/* check.c - how a test says that it has failed or cannot run.
 *
 * A failure is formatted straight onto the card, written to stderr, and ends the process. Doing so
 * with write(2) rather than fprintf(stderr) keeps the stack small: glibc puts an 8 KiB buffer on
 * the stack to print to an unbuffered stream, and checks run on fibers with small stacks.
 *
 * Several threads, or processes forked by the test, may fail at once: the first to put its pid in
 * card->failed_by owns the report. Another thread of the same process then waits to be ended by it;
 * another process ends itself, since the owner cannot do it. */
#include "harness_priv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* End the process without atexit handlers, whose work a broken test could block. stdout is flushed
 * only if no thread holds it. */
static _Noreturn void leave(int status)
{
    if (ftrylockfile(stdout) == 0) {
        fflush(stdout);
        funlockfile(stdout);
    }
    _exit(status);
}

/* Become the owner of the report of failure, or do not come back. */
static void claim_failure(struct card *card)
{
    int owner = 0;
    int me = (int)getpid();
    if (atomic_compare_exchange_strong(&card->failed_by, &owner, me))
        return;
    while (owner == me)
        pause();
    leave(STATUS_FAILED);
}

static void say(const char *text)
{
    /* A test may have closed its stderr; the card then still has the message. */
    (void)write_all(STDERR_FILENO, text, strlen(text));
}

/* The path below the source tree when it lies there, as people write it. */
static const char *short_path(const char *file)
{
    const char *root = source_path();
    size_t bytes = strlen(root);
    if (strncmp(file, root, bytes) == 0 && file[bytes] == '/')
        return file + bytes + 1;
    return file;
}

_Noreturn void harness_fail(const char *file, int line, const char *fmt, ...)
{
    struct card *card = card_current();
    claim_failure(card);
    int used = 0;
    if (file != NULL)
        used = snprintf(card->why, sizeof card->why, "%s:%d: ", short_path(file), line);
    if (used < 0 || (size_t)used >= sizeof card->why)
        used = 0;
    va_list args;
    va_start(args, fmt);
    vsnprintf(card->why + used, sizeof card->why - (size_t)used, fmt, args);
    va_end(args);
    say(card->why);
    say("\n");
    leave(STATUS_FAILED);
}

_Noreturn void harness_skip(const char *fmt, ...)
{
    struct card *card = card_current();
    char reason[WHY_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(reason, sizeof reason, fmt, args);
    va_end(args);
    if (atomic_load(&card->failed_by) == 0) {
        memcpy(card->why, reason, sizeof reason);
        atomic_store(&card->skipped, true);
    }
    say("skipped: ");
    say(reason);
    say("\n");
    leave(STATUS_SKIPPED);
}

static bool holds(enum harness_op op, intmax_t a, intmax_t b)
{
    switch (op) {
    case HARNESS_EQ_:
        return a == b;
    case HARNESS_NE_:
        return a != b;
    case HARNESS_LT_:
        return a < b;
    case HARNESS_LE_:
        return a <= b;
    case HARNESS_GT_:
        return a > b;
    case HARNESS_GE_:
        return a >= b;
    }
    return false;
}

void harness_check_int(const char *file, int line, const char *text, enum harness_op op, intmax_t a,
                       intmax_t b)
{
    if (!holds(op, a, b))
        harness_fail(file, line, "%s: left is %" PRIdMAX ", right is %" PRIdMAX, text, a, b);
}

void harness_check_ptr(const char *file, int line, const char *text, const volatile void *a,
                       const volatile void *b)
{
    if (a != b)
        harness_fail(file, line, "%s: left is 0x%" PRIxPTR ", right is 0x%" PRIxPTR, text,
                     (uintptr_t)a, (uintptr_t)b);
}

/* Strings longer than this are shown in full on stderr and cut in the message. */
enum { SHOWN_BYTES = 200 };

static void say_if_long(const char *label, const char *text)
{
    if (text == NULL || strlen(text) <= SHOWN_BYTES)
        return;
    say(label);
    say(" in full:\n");
    say(text);
    say("\n");
}

void harness_check_str(const char *file, int line, const char *text, const char *a, const char *b)
{
    if (a == b || (a != NULL && b != NULL && strcmp(a, b) == 0))
        return;
    say_if_long("left", a);
    say_if_long("right", b);
    const char *qa = a != NULL ? "\"" : "";
    const char *qb = b != NULL ? "\"" : "";
    harness_fail(file, line, "%s: left is %s%.*s%s, right is %s%.*s%s", text, qa, SHOWN_BYTES,
                 a != NULL ? a : "NULL", qa, qb, SHOWN_BYTES, b != NULL ? b : "NULL", qb);
}

void harness_check_has(const char *file, int line, const char *text, const char *haystack,
                       const char *needle)
{
    if (haystack == NULL || needle == NULL)
        harness_fail(file, line, "%s: the %s is NULL", text,
                     haystack == NULL ? "haystack" : "needle");
    if (strstr(haystack, needle) != NULL)
        return;
    say_if_long("haystack", haystack);
    harness_fail(file, line, "%s: \"%.*s\" is not in \"%.*s\"", text, SHOWN_BYTES, needle,
                 SHOWN_BYTES, haystack);
}

/* Sixteen bytes around `at` as hexadecimal text. */
static void hex_around(const unsigned char *data, size_t bytes, size_t at, char text[static 64])
{
    size_t from = at < 8 ? 0 : at - 8;
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = from; i < bytes && i < from + 16; i++)
        used += (size_t)snprintf(text + used, 64 - used, "%s%02x", i == from ? "" : " ", data[i]);
}

void harness_check_mem(const char *file, int line, const char *text, const void *a, const void *b,
                       size_t bytes)
{
    const unsigned char *left = a;
    const unsigned char *right = b;
    size_t at = 0;
    while (at < bytes && left[at] == right[at])
        at++;
    if (at == bytes)
        return;
    char left_hex[64];
    char right_hex[64];
    hex_around(left, bytes, at, left_hex);
    hex_around(right, bytes, at, right_hex);
    harness_fail(file, line,
                 "%s: byte %zu differs, left is %02x, right is %02x; from byte %zu: %s against %s",
                 text, at, left[at], right[at], at < 8 ? (size_t)0 : at - 8, left_hex, right_hex);
}
