/* SPDX-License-Identifier: MIT */
/* harness.h - what a test file of Sinew includes.
 *
 * A test is a sentence and registers itself; the harness brings main():
 *
 *     TEST(a_closed_channel_drains_then_reports_epipe) {
 *         CHECK_EQ(sn_chan_recv(ch, &value, SN_NOWAIT), -EPIPE);
 *     }
 *     TEST(ten_thousand_timers_fire_in_order, .limit_s = 60) { ... }
 *     FAIL_TEST(joining_twice_is_reported, "joined twice") { ... }
 *
 * Each test runs in a forked process of its own, in a process group of its own, with a time limit,
 * with its output captured, and is looked over for leaked memory and descriptors when its body
 * returns. A failing check ends that process at once, so nothing after it runs, and other tests
 * are not touched. `<test executable> --help` lists what the runner can do.
 *
 * Names ending in an underscore, and harness_* functions, serve the macros only. */
#ifndef SINEW_TESTS_HARNESS_H
#define SINEW_TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HARNESS_PRINTF_(text_at, args_at) __attribute__((format(printf, text_at, args_at)))

/* --- Declaring tests -------------------------------------------------------------------------- */

/* What a test may ask for, as designated initialisers after its name. Builds with a sanitizer or
 * without optimisation multiply time limits by 5, the environment variable SINEW_TEST_TIME_FACTOR
 * by its value. */
struct test_options {
    bool declared_;    /* set by the macros, so that the list of initialisers is never empty */
    double limit_s;    /* time limit in seconds; 0 means the default of 20 */
    bool leaks_fds;    /* descriptors left open or closed by the body are not a failure */
    bool leaks_memory; /* memory left allocated by the body is not a failure */
};

/* One registered test; made by TEST and FAIL_TEST, constant but for `next`. */
struct test_case {
    const char *name;
    const char *file;
    int line;
    void (*body)(void);
    const char *last_words; /* FAIL_TEST: text its output must hold; TEST: NULL */
    struct test_options options;
    struct test_case *next; /* owned by registry.c */
};

void harness_register(struct test_case *test);

/* TEST(name) { body }   or   TEST(name, .limit_s = 5, .leaks_fds = true) { body }
 * The test passes when the body returns and leaves no memory and no descriptor behind. Names are
 * unique within an executable. */
#define TEST(...) HARNESS_TEST_(__VA_ARGS__, )

/* FAIL_TEST(name, "text") { body }   or   FAIL_TEST(name, "text", .limit_s = 5) { body }
 * The test passes when the body ends its process by a signal or a status other than 0 *and* the
 * text stands in what it wrote to stdout or stderr. A body that returns, a time-out and a failing
 * CHECK (a precondition that did not hold) are failures; SKIP skips. */
#define FAIL_TEST(...) HARNESS_FAIL_TEST_(__VA_ARGS__, )

#define HARNESS_TEST_(name_, ...)             HARNESS_CASE_(name_, NULL, __VA_ARGS__)
#define HARNESS_FAIL_TEST_(name_, text_, ...) HARNESS_CASE_(name_, text_, __VA_ARGS__)

/* Registration is by constructor: it survives --gc-sections and -flto without linker tricks. */
#define HARNESS_CASE_(name_, text_, ...)                                    \
    static void harness_body_##name_(void);                                 \
    static struct test_case harness_case_##name_ = {                        \
        .name = #name_,                                                     \
        .file = __FILE__,                                                   \
        .line = __LINE__,                                                   \
        .body = harness_body_##name_,                                       \
        .last_words = (text_),                                              \
        .options = {.declared_ = true, __VA_ARGS__},                        \
    };                                                                      \
    __attribute__((constructor)) static void harness_register_##name_(void) \
    {                                                                       \
        harness_register(&harness_case_##name_);                            \
    }                                                                       \
    static void harness_body_##name_(void)

/* --- Checks --------------------------------------------------------------------------------------
 * Each prints file:line, the expression and the values, and ends the test as failed. They may be
 * used from any thread and from processes forked by the test. Arguments are evaluated once. */

/* The condition holds. */
#define CHECK(...)           \
    ((__VA_ARGS__) ? (void)0 \
                   : harness_fail(__FILE__, __LINE__, "CHECK(%s) does not hold", #__VA_ARGS__))

/* Integers of any type, compared and printed as intmax_t (so UINT64_MAX equals -1). */
#define CHECK_EQ(a, b) HARNESS_INT_("CHECK_EQ(" #a ", " #b ")", HARNESS_EQ_, a, b)
#define CHECK_NE(a, b) HARNESS_INT_("CHECK_NE(" #a ", " #b ")", HARNESS_NE_, a, b)
#define CHECK_LT(a, b) HARNESS_INT_("CHECK_LT(" #a ", " #b ")", HARNESS_LT_, a, b)
#define CHECK_LE(a, b) HARNESS_INT_("CHECK_LE(" #a ", " #b ")", HARNESS_LE_, a, b)
#define CHECK_GT(a, b) HARNESS_INT_("CHECK_GT(" #a ", " #b ")", HARNESS_GT_, a, b)
#define CHECK_GE(a, b) HARNESS_INT_("CHECK_GE(" #a ", " #b ")", HARNESS_GE_, a, b)

/* The same address. */
#define CHECK_PTR_EQ(a, b) \
    harness_check_ptr(__FILE__, __LINE__, "CHECK_PTR_EQ(" #a ", " #b ")", (a), (b))

/* The same text; NULL equals only NULL. */
#define CHECK_STR_EQ(a, b) \
    harness_check_str(__FILE__, __LINE__, "CHECK_STR_EQ(" #a ", " #b ")", (a), (b))

/* `needle` stands somewhere in `haystack`; a failure shows the whole haystack. */
#define CHECK_STR_HAS(haystack, needle)                                                            \
    harness_check_has(__FILE__, __LINE__, "CHECK_STR_HAS(" #haystack ", " #needle ")", (haystack), \
                      (needle))

/* The same `bytes` bytes; a failure shows the first that differs and its neighbours. */
#define CHECK_MEM_EQ(a, b, bytes)                                                               \
    harness_check_mem(__FILE__, __LINE__, "CHECK_MEM_EQ(" #a ", " #b ", " #bytes ")", (a), (b), \
                      (bytes))

/* FAIL("fmt", ...): the test has failed, for the reason given. Does not return. */
#define FAIL(...) harness_fail(__FILE__, __LINE__, __VA_ARGS__)

/* SKIP("fmt", ...): the test cannot run here, for the reason given. Does not return. Only the
 * process of the test itself may skip. Under SINEW_TEST_STRICT=1 a skip counts as a failure. */
#define SKIP(...) harness_skip(__VA_ARGS__)

#define HARNESS_INT_(text_, op_, a_, b_) \
    harness_check_int(__FILE__, __LINE__, text_, op_, (intmax_t)(a_), (intmax_t)(b_))

enum harness_op { HARNESS_EQ_, HARNESS_NE_, HARNESS_LT_, HARNESS_LE_, HARNESS_GT_, HARNESS_GE_ };

_Noreturn void harness_fail(const char *file, int line, const char *fmt, ...) HARNESS_PRINTF_(3, 4);
_Noreturn void harness_skip(const char *fmt, ...) HARNESS_PRINTF_(1, 2);
void harness_check_int(const char *file, int line, const char *text, enum harness_op op, intmax_t a,
                       intmax_t b);
void harness_check_ptr(const char *file, int line, const char *text, const volatile void *a,
                       const volatile void *b);
void harness_check_str(const char *file, int line, const char *text, const char *a, const char *b);
void harness_check_has(const char *file, int line, const char *text, const char *haystack,
                       const char *needle);
void harness_check_mem(const char *file, int line, const char *text, const void *a, const void *b,
                       size_t bytes);

/* --- The world outside the test --------------------------------------------------------------- */

/* Skip the test unless `program` is on PATH (or, with a slash in it, is an executable file). The
 * reason names the command that brings it: "needs <program>; enable with: tools/setup <group>". */
void require_tool(const char *program, const char *group);

/* What a command left behind. */
struct command {
    int status;          /* exit status, or 128 + number of the signal that ended it */
    char *output;        /* stdout and stderr as they came, NUL-terminated */
    size_t output_bytes; /* without the final NUL */
};

/* Run `/bin/sh -c` with the formatted text and wait for the shell to end. stdin is the test's own,
 * /dev/null. Fails the test when the shell cannot be started. The caller owns the result and hands
 * it to command_finish. */
struct command run_command(const char *fmt, ...) HARNESS_PRINTF_(1, 2);

/* Free what run_command returned; fine on a zeroed or finished command. */
void command_finish(struct command *command);

/* The whole file as a NUL-terminated string, to be freed by the caller. Fails the test with a
 * sentence when the file cannot be read. */
char *read_file(const char *path);

/* Absolute path of the source tree and of the build tree: the environment variables
 * SINEW_SOURCE_DIR and SINEW_BUILD_DIR, else what CMake saw. */
const char *source_path(void);
const char *build_path(void);

/* Call `fn(path, arg)` for each file of the source tree that matches `pattern`, a glob below
 * source_path(), in order. Fails the test if there are fewer than `least`. */
void each_source(const char *pattern, size_t least, void (*fn)(const char *path, const void *arg),
                 const void *arg);

/* An empty directory of this test alone, made at the first call. The runner removes it with all its
 * contents after the test, however the test ends. */
const char *temp_dir(void);

/* The seed of this run: --seed, else SINEW_TEST_SEED, else random; repetition i of --repeat gets
 * seed + i. The report of a failing test that called this names the seed to replay. */
uint64_t test_seed(void);

/* --- Memory --------------------------------------------------------------------------------------
 * SINEW_HARNESS_WRAP is defined when malloc, calloc, realloc, aligned_alloc, posix_memalign and
 * free of all statically linked code go through the harness. Where it is not (address and thread
 * sanitizer), the functions below skip the test; leaks are then LeakSanitizer's to find. */

/* Let the k-th allocation from now on, counted from 1 over all threads, fail with ENOMEM; only that
 * one. 0 turns it off. It was reached when alloc_count() has grown by at least k since.
 * run_command and read_file allocate too, and fail the test when they cannot. */
void alloc_fail_at(uint64_t k);

/* Allocations tried since the test began, successful or not. */
uint64_t alloc_count(void);

#endif
