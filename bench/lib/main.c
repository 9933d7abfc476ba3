/* SPDX-License-Identifier: MIT */
/* main.c - the benchmark program: read the request, measure, report.
 *
 * The JSON file is opened before anything is measured, so that a mistyped path costs no time. */
#include "harness.h"

#include <errno.h>
#include <string.h>

static int list_names(const struct bench_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        puts(cases[i].def->name);
    return EXIT_OK;
}

static FILE *open_json(const char *path)
{
    FILE *json = fopen(path, "ae");
    if (!json)
        fprintf(stderr, "The file '%s' cannot be opened for appending: %s.\n", path,
                strerror(errno));
    else
        setvbuf(json, NULL, _IONBF, 0); /* one line, one write */
    return json;
}

static int write_json(FILE *json, const struct options *o, const struct environment *env,
                      const struct bench_case *cases, size_t count)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (cases[i].last.outcome == BENCH_OK)
            rc = json_append(json, env, &cases[i]);
    }
    if (fclose(json) != 0 && rc == 0)
        rc = -errno;
    if (rc < 0)
        fprintf(stderr, "Writing to '%s' failed: %s.\n", o->json_path, strerror(-rc));
    return rc < 0 ? EXIT_FAILED : EXIT_OK;
}

static int run(const struct options *o, const char *program, struct bench_case *cases, size_t count)
{
    struct environment env;
    FILE *json = NULL;
    int status = environment_init(&env, o, program);
    if (status != EXIT_OK)
        return status;
    if (o->json_path && !(json = open_json(o->json_path)))
        return EXIT_USAGE;

    measure_all(o, &env, cases, count);
    if (o->mode == MODE_ONCE)
        table_print_once(stdout, cases, count);
    else
        table_print(stdout, o, &env, cases, count);
    if (json)
        status = write_json(json, o, &env, cases, count);
    for (size_t i = 0; i < count; i++) {
        if (cases[i].last.outcome == BENCH_FAILED)
            status = EXIT_FAILED;
    }
    return status;
}

int main(int argc, char **argv)
{
    struct options o;
    struct bench_case *cases = NULL;
    size_t count = 0;
    const char *program = argc > 0 ? argv[0] : "bench";
    int status = options_parse(&o, argc, argv);
    if (status != EXIT_OK)
        return status;
    if (o.mode == MODE_HELP) {
        options_help(program);
        return EXIT_OK;
    }
    status = registry_select(&o, &cases, &count);
    if (status == EXIT_OK)
        status = o.mode == MODE_LIST ? list_names(cases, count) : run(&o, program, cases, count);
    registry_release(cases, count);
    if (fflush(stdout) != 0 && status == EXIT_OK) {
        fprintf(stderr, "The table could not be written: %s.\n", strerror(errno));
        status = EXIT_FAILED;
    }
    return status;
}
