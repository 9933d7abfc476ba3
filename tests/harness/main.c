/* SPDX-License-Identifier: MIT */
/* main.c - the command line of every test executable.
 *
 * Settings come from options and, so that CTest and CI can steer many executables at once, from the
 * environment. Whatever is wrong with either is said in one sentence on stderr, with status 2,
 * before any test runs. */
#include "harness_priv.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char help_text[] =
    "Usage: %s [options] [pattern...]\n"
    "Runs the tests that match a pattern: a full name, a glob or a part of the name; or else all.\n"
    "\n"
    "  --filter PATTERN  the same as a pattern\n"
    "  --list            print the names of the selected tests and stop\n"
    "  -j N              run N tests at a time (default: one per online processor)\n"
    "  -v                show the output of passing tests too\n"
    "  --tap             report as TAP version 13\n"
    "  --junit FILE      also write a JUnit XML report\n"
    "  --repeat N        run each test N times\n"
    "  --seed N          what test_seed returns, to replay a failure\n"
    "  --no-fork NAME    run one test in this process, without limits: for a debugger\n"
    "  --help            print this\n"
    "\n"
    "Environment:\n"
    "  SINEW_TEST_SEED=N         like --seed\n"
    "  SINEW_TEST_TIME_FACTOR=X  multiply all time limits\n"
    "  SINEW_TEST_LOG=FILE       append one line per test: outcome, suite/name, reason\n"
    "  SINEW_TEST_STRICT=1       a skipped test counts as failed\n"
    "\n"
    "Status: 0 nothing failed, 1 some test failed, 2 the call was wrong.\n";

enum { PARALLEL_MAX = 1024, ROUNDS_MAX = 1000000 };

enum option_code {
    OPT_FILTER = 256,
    OPT_LIST,
    OPT_TAP,
    OPT_JUNIT,
    OPT_REPEAT,
    OPT_SEED,
    OPT_NO_FORK,
    OPT_HELP
};

static const struct option long_options[] = {
    {"filter", required_argument, NULL, OPT_FILTER},
    {"list", no_argument, NULL, OPT_LIST},
    {"tap", no_argument, NULL, OPT_TAP},
    {"junit", required_argument, NULL, OPT_JUNIT},
    {"repeat", required_argument, NULL, OPT_REPEAT},
    {"seed", required_argument, NULL, OPT_SEED},
    {"no-fork", required_argument, NULL, OPT_NO_FORK},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static _Noreturn HARNESS_PRINTF_(2, 3) void usage_error(const struct settings *settings,
                                                        const char *fmt, ...)
{
    va_list args;
    fprintf(stderr, "%s: ", settings->suite);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    exit(EXIT_USAGE);
}

static uint64_t parse_number(const struct settings *settings, const char *what, const char *text,
                             uint64_t smallest, uint64_t largest)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0' || strchr(text, '-') != NULL ||
        value < smallest || value > largest)
        usage_error(settings, "%s must be a number from %" PRIu64 " to %" PRIu64 ", not '%s'", what,
                    smallest, largest, text);
    return value;
}

static double parse_factor(const struct settings *settings, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value > 0 && value <= 1000))
        usage_error(settings,
                    "SINEW_TEST_TIME_FACTOR must be a number above 0, up to 1000, "
                    "not '%s'",
                    text);
    return value;
}

static uint64_t random_seed(void)
{
    uint32_t seed; /* short enough to be typed again */
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = (uint32_t)now_ns();
    return seed;
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static void parse_environment(struct settings *settings)
{
    const char *seed = environment("SINEW_TEST_SEED");
    const char *factor = environment("SINEW_TEST_TIME_FACTOR");
    const char *strict = environment("SINEW_TEST_STRICT");
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    settings->rounds = 1;
    settings->parallel = processors < 1              ? 1
                         : processors > PARALLEL_MAX ? PARALLEL_MAX
                                                     : (int)processors;
    settings->seed = seed != NULL ? parse_number(settings, "SINEW_TEST_SEED", seed, 0, UINT64_MAX)
                                  : random_seed();
    settings->time_factor = SINEW_HARNESS_TIME_FACTOR;
    if (factor != NULL)
        settings->time_factor *= parse_factor(settings, factor);
    settings->log_path = environment("SINEW_TEST_LOG");
    settings->strict = strict != NULL && strcmp(strict, "0") != 0;
}

static void add_pattern(struct settings *settings, const char *pattern)
{
    settings->patterns[settings->pattern_count++] = pattern;
}

static void parse_option(struct settings *settings, int code, char **argv)
{
    switch (code) {
    case 'v':
        settings->verbose = true;
        break;
    case OPT_LIST:
        settings->list = true;
        break;
    case OPT_TAP:
        settings->tap = true;
        break;
    case OPT_FILTER:
        add_pattern(settings, optarg);
        break;
    case OPT_JUNIT:
        settings->junit_path = optarg;
        break;
    case OPT_NO_FORK:
        settings->no_fork = optarg;
        break;
    case 'j':
        settings->parallel = (int)parse_number(settings, "-j", optarg, 1, PARALLEL_MAX);
        break;
    case OPT_REPEAT:
        settings->rounds = (int)parse_number(settings, "--repeat", optarg, 1, ROUNDS_MAX);
        break;
    case OPT_SEED:
        settings->seed = parse_number(settings, "--seed", optarg, 0, UINT64_MAX);
        break;
    case OPT_HELP:
        printf(help_text, settings->suite);
        exit(EXIT_SUCCESS);
    case ':':
        usage_error(settings, "option '%s' needs a value", argv[optind - 1]);
    default:
        if (optopt > 0 && optopt < 256)
            usage_error(settings, "unknown option '-%c'; --help lists the options", optopt);
        usage_error(settings, "unknown option '%s'; --help lists the options", argv[optind - 1]);
    }
}

static void parse_command_line(struct settings *settings, int argc, char **argv)
{
    opterr = 0;
    for (;;) {
        int code = getopt_long(argc, argv, ":j:v", long_options, NULL);
        if (code == -1)
            break;
        parse_option(settings, code, argv);
    }
    for (int i = optind; i < argc; i++)
        add_pattern(settings, argv[i]);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void check_registry(const struct settings *settings)
{
    const char *twice = registry_duplicate();
    if (twice != NULL)
        usage_error(settings, "two tests are named '%s'", twice);
    if (registry_count() == 0)
        usage_error(settings, "this executable holds no test");
}

/* A failing check ends the process with STATUS_FAILED; its directory then stays to be looked at. */
static int run_in_this_process(const struct settings *settings)
{
    const struct test_case *test = registry_find(settings->no_fork);
    if (test == NULL)
        usage_error(settings, "no test is named '%s'; --list shows their names", settings->no_fork);
    card_current()->seed = settings->seed;
    child_run_body(test);
    if (card_current()->temp_dir[0] != '\0')
        temp_dir_remove(card_current()->temp_dir);
    printf("ok    %s\n", test->name);
    return EXIT_SUCCESS;
}

static int run(const struct settings *settings)
{
    size_t count;
    struct job *jobs = registry_select(settings, &count);
    if (jobs == NULL)
        return EXIT_USAGE;
    int status = EXIT_USAGE;
    if (settings->list) {
        for (size_t i = 0; i < count && jobs[i].round == 0; i++)
            printf("%s\n", jobs[i].test->name);
        status = EXIT_SUCCESS;
    } else {
        struct report *report = report_create(settings, count);
        if (report != NULL) {
            run_jobs(settings, jobs, count, report);
            status = report_destroy(report);
        }
    }
    free(jobs);
    return status;
}

int main(int argc, char **argv)
{
    memory_ignore();
    struct settings settings = {.suite = base_name(argv[0])};
    settings.patterns = calloc((size_t)argc, sizeof *settings.patterns);
    if (settings.patterns == NULL)
        usage_error(&settings, "no memory for the options");
    parse_environment(&settings);
    parse_command_line(&settings, argc, argv);
    check_registry(&settings);
    int status = settings.no_fork != NULL ? run_in_this_process(&settings) : run(&settings);
    free(settings.patterns);
    return status;
}
