/* SPDX-License-Identifier: MIT */
/* options.c - the command line.
 *
 * One table drives parsing; the help text stands beside it. Values follow as `--name value` or
 * `--name=value`. Written by hand instead of getopt_long so that each mistake gets a whole sentence
 * that says what would have been right. */
#include "harness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct option {
    const char *name;
    const char *value; /* NULL: takes none; else what the sentence calls it */
    bool (*apply)(struct options *o, const char *value);
};

static bool parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
    char *end = NULL;
    if (text[0] < '0' || text[0] > '9') /* strtoull would take blanks and signs */
        return false;
    errno = 0;
    unsigned long long parsed = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || parsed < min || parsed > max)
        return false;
    *value = parsed;
    return true;
}

static bool set_mode(struct options *o, enum mode mode)
{
    bool clash = (o->mode == MODE_ONCE && mode == MODE_FIXED) ||
                 (o->mode == MODE_FIXED && mode == MODE_ONCE);
    if (o->mode != MODE_HELP)
        o->mode = mode;
    return !clash;
}

static bool apply_help(struct options *o, const char *value)
{
    (void)value;
    o->mode = MODE_HELP;
    return true;
}

static bool apply_list(struct options *o, const char *value)
{
    (void)value;
    return set_mode(o, MODE_LIST);
}

static bool apply_once(struct options *o, const char *value)
{
    (void)value;
    return set_mode(o, MODE_ONCE);
}

static bool apply_quick(struct options *o, const char *value)
{
    (void)value;
    o->quick = true;
    return true;
}

static bool apply_no_pin(struct options *o, const char *value)
{
    (void)value;
    o->no_pin = true;
    return true;
}

static bool apply_fixed(struct options *o, const char *value)
{
    return parse_uint(value, 1, UINT64_C(1) << 40, &o->fixed_iterations) && set_mode(o, MODE_FIXED);
}

static bool apply_cpu(struct options *o, const char *value)
{
    uint64_t cpu = 0;
    if (!parse_uint(value, 0, CPU_SETSIZE - 1, &cpu))
        return false;
    o->cpu = (int)cpu;
    return true;
}

static bool apply_rounds(struct options *o, const char *value)
{
    uint64_t rounds = 0;
    if (!parse_uint(value, 1, ROUNDS_MAX, &rounds))
        return false;
    o->rounds = (unsigned)rounds;
    return true;
}

static bool apply_sample_ms(struct options *o, const char *value)
{
    char *end = NULL;
    double ms = strtod(value, &end);
    if (end == value || *end != '\0' || !(ms >= 0.01 && ms <= 60000))
        return false;
    o->sample_ms = ms;
    return true;
}

static bool apply_json(struct options *o, const char *value)
{
    o->json_path = value;
    return value[0] != '\0';
}

static bool apply_run_id(struct options *o, const char *value)
{
    o->run_id = value;
    return value[0] != '\0' && strlen(value) < sizeof(((struct environment *)0)->run_id);
}

static const struct option table[] = {
    {"--help", NULL, apply_help},
    {"--list", NULL, apply_list},
    {"--quick", NULL, apply_quick},
    {"--once", NULL, apply_once},
    {"--fixed", "a number of iterations from 1 to 2^40, and does not go with --once", apply_fixed},
    {"--rounds", "a number from 1 to 1000", apply_rounds},
    {"--sample-ms", "a number from 0.01 to 60000", apply_sample_ms},
    {"--cpu", "a cpu number", apply_cpu},
    {"--no-pin", NULL, apply_no_pin},
    {"--json", "a file name", apply_json},
    {"--run-id", "a name of 1 to 95 characters", apply_run_id},
};

void options_help(const char *program)
{
    printf("usage: %s [options] [filter...]\n"
           "\n"
           "Measures the benchmarks whose name contains a filter (or matches it, if it has one of\n"
           "*?[ in it); all of them without a filter.\n"
           "\n"
           "  --list           print the names and stop\n"
           "  --rounds N       samples per benchmark, interleaved over benchmarks (default 11)\n"
           "  --sample-ms MS   time of one sample, which calibration aims at (default 20)\n"
           "  --quick          smoke test: 3 rounds of 2 ms, and fewer for slow benchmarks\n"
           "  --once           each body once, few iterations, no figures: for valgrind and tests\n"
           "  --fixed N        each body once, exactly N iterations, no calibration or warm-up\n"
           "  --cpu N          pin to cpu N (default: the last one allowed)\n"
           "  --no-pin         do not pin\n"
           "  --json FILE      append one JSON line per benchmark to FILE, see tools/benchcmp\n"
           "  --run-id ID      name of this run in the JSON (default: time and process id)\n"
           "  --help           this text\n"
           "\n"
           "Instructions instead of time:\n"
           "  valgrind --tool=callgrind --toggle-collect=bench_region %s --fixed 1000 NAME\n",
           program, program);
}

static const struct option *find_option(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strlen(table[i].name) == length && memcmp(table[i].name, word, length) == 0)
            return &table[i];
    }
    return NULL;
}

/* Takes the option at argv[*at], and moves *at on if its value is the next word. */
static int take_option(struct options *o, int argc, char **argv, int *at)
{
    const char *word = argv[*at];
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const struct option *option = find_option(word, length);
    if (!option) {
        fprintf(stderr, "There is no option '%.*s'; --help names them all.\n", (int)length, word);
        return EXIT_USAGE;
    }
    if (!option->value && equals) {
        fprintf(stderr, "The option %s takes no value.\n", option->name);
        return EXIT_USAGE;
    }
    const char *value = equals ? equals + 1 : NULL;
    if (option->value && !value && *at + 1 < argc)
        value = argv[++*at];
    if ((option->value && !value) || !option->apply(o, value)) {
        if (option->value)
            fprintf(stderr, "The option %s takes %s.\n", option->name, option->value);
        else
            fprintf(stderr, "The option %s contradicts an earlier one.\n", option->name);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

static int check_combination(const struct options *o)
{
    const char *wrong = NULL;
    if (o->mode == MODE_ONCE && o->json_path)
        wrong = "--once measures nothing, so it does not go with --json";
    else if (o->mode == MODE_FIXED && o->rounds)
        wrong = "--fixed takes one sample, so it does not go with --rounds";
    else if (o->no_pin && o->cpu >= 0)
        wrong = "--cpu and --no-pin contradict each other";
    if (!wrong)
        return EXIT_OK;
    fprintf(stderr, "The options cannot be combined: %s.\n", wrong);
    return EXIT_USAGE;
}

int options_parse(struct options *o, int argc, char **argv)
{
    *o = (struct options){.mode = MODE_MEASURE, .cpu = -1, .filters = argv + 1};
    bool only_filters = false;
    for (int at = 1; at < argc; at++) {
        if (only_filters || argv[at][0] != '-') {
            o->filters[o->filter_count++] = argv[at]; /* never ahead of `at` */
        } else if (strcmp(argv[at], "--") == 0) {
            only_filters = true;
        } else if (take_option(o, argc, argv, &at) != EXIT_OK) {
            return EXIT_USAGE;
        }
    }
    int status = check_combination(o);
    if (o->mode == MODE_FIXED)
        o->rounds = 1;
    if (o->rounds == 0)
        o->rounds = o->quick ? 3 : 11;
    if (o->sample_ms == 0)
        o->sample_ms = o->quick ? 2 : 20;
    return status;
}
