/* SPDX-License-Identifier: MIT */
/* registry.c - the list of benchmarks, and which of them were asked for.
 *
 * Constructors run in an order that link-time optimisation may change, so the list is sorted by
 * file and line before use: two builds of one program measure in the same order.
 *
 * A filter with a glob character must match a whole name; any other filter matches a part of it.
 * Filters add up. Each must match something: a misspelt filter beside a good one would otherwise
 * silently measure less than was asked. */
#include "harness.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static struct bench_def *registered; /* pushed to before main(), read-only after */

void bench_register(struct bench_def *def)
{
    def->next = registered;
    registered = def;
}

static int compare_places(const void *a, const void *b)
{
    const struct bench_def *left = *(const struct bench_def *const *)a;
    const struct bench_def *right = *(const struct bench_def *const *)b;
    int by_file = strcmp(left->file, right->file);
    if (by_file != 0)
        return by_file;
    return (left->line > right->line) - (left->line < right->line);
}

/* Returns an array in source order, NULL without memory. */
static const struct bench_def **sorted_definitions(size_t *count)
{
    size_t n = 0;
    for (const struct bench_def *d = registered; d; d = d->next)
        n++;
    const struct bench_def **defs = calloc(n + 1, sizeof(*defs));
    if (!defs)
        return NULL;
    size_t i = 0;
    for (const struct bench_def *d = registered; d; d = d->next)
        defs[i++] = d;
    qsort(defs, n, sizeof(*defs), compare_places);
    *count = n;
    return defs;
}

/* Bodies are static functions, so two files may define the same name; results could not be told
 * apart by it. */
static bool names_are_unique(const struct bench_def **defs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            if (strcmp(defs[i]->name, defs[j]->name) == 0) {
                fprintf(stderr, "The benchmark name '%s' is used twice: %s:%d and %s:%d.\n",
                        defs[i]->name, defs[i]->file, defs[i]->line, defs[j]->file, defs[j]->line);
                return false;
            }
        }
    }
    return true;
}

static bool filter_matches(const char *filter, const char *name)
{
    if (strpbrk(filter, "*?["))
        return fnmatch(filter, name, 0) == 0;
    return strstr(name, filter) != NULL;
}

static bool name_selected(const struct options *o, const char *name)
{
    for (int i = 0; i < o->filter_count; i++) {
        if (filter_matches(o->filters[i], name))
            return true;
    }
    return o->filter_count == 0;
}

static bool filters_all_match(const struct options *o, const struct bench_def **defs, size_t count)
{
    for (int i = 0; i < o->filter_count; i++) {
        bool found = false;
        for (size_t j = 0; j < count && !found; j++)
            found = filter_matches(o->filters[i], defs[j]->name);
        if (!found) {
            fprintf(stderr, "No benchmark matches '%s'; --list names them all.\n", o->filters[i]);
            return false;
        }
    }
    return true;
}

static int fill_cases(const struct options *o, const struct bench_def **defs, size_t def_count,
                      struct bench_case *cases, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < def_count; i++) {
        if (!name_selected(o, defs[i]->name))
            continue;
        struct bench_case *c = &cases[(*count)++];
        c->def = defs[i];
        c->samples_ns = calloc(ROUNDS_MAX, sizeof(*c->samples_ns));
        if (!c->samples_ns)
            return -ENOMEM;
    }
    return 0;
}

int registry_select(const struct options *o, struct bench_case **cases, size_t *count)
{
    int status = EXIT_FAILED;
    size_t def_count = 0;
    *count = 0;
    *cases = NULL;
    const struct bench_def **defs = sorted_definitions(&def_count);
    if (!defs)
        goto out_of_memory;

    status = EXIT_USAGE;
    if (def_count == 0) {
        fputs("This program contains no benchmark.\n", stderr);
        goto release_defs;
    }
    if (!names_are_unique(defs, def_count) || !filters_all_match(o, defs, def_count))
        goto release_defs;

    status = EXIT_FAILED;
    *cases = calloc(def_count, sizeof(**cases));
    if (!*cases || fill_cases(o, defs, def_count, *cases, count) < 0)
        goto out_of_memory;
    status = EXIT_OK;
    goto release_defs;

out_of_memory:
    fputs("There is not enough memory for the list of benchmarks.\n", stderr);
release_defs:
    free(defs);
    return status;
}

void registry_release(struct bench_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(cases[i].samples_ns);
    free(cases);
}
