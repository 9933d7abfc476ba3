/* SPDX-License-Identifier: MIT */
/* registry.c - the list of all tests of this executable, and which of them to run.
 *
 * Constructors made by TEST fill the list before main starts, in whatever order the linker has put
 * them (gcc's link-time optimisation reverses it), so the list is kept sorted by file and line. It
 * is one of the few mutable globals of the harness: a constructor has no argument through which a
 * registry could be passed. */
#include "harness_priv.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static struct test_case *first_test;

static bool stands_before(const struct test_case *a, const struct test_case *b)
{
    int order = strcmp(a->file, b->file);
    return order != 0 ? order < 0 : a->line < b->line;
}

void harness_register(struct test_case *test)
{
    struct test_case **place = &first_test;
    while (*place != NULL && !stands_before(test, *place))
        place = &(*place)->next;
    test->next = *place;
    *place = test;
}

const struct test_case *registry_find(const char *name)
{
    for (const struct test_case *t = first_test; t != NULL; t = t->next)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

size_t registry_count(void)
{
    size_t count = 0;
    for (const struct test_case *t = first_test; t != NULL; t = t->next)
        count++;
    return count;
}

const char *registry_duplicate(void)
{
    for (const struct test_case *t = first_test; t != NULL; t = t->next)
        if (registry_find(t->name) != t)
            return t->name;
    return NULL;
}

/* A pattern with a wildcard is a glob over the whole name, any other a part of the name; but the
 * full name of a test means that test alone, even where it is also a part of another's. */
static bool pattern_matches(const char *pattern, const char *name)
{
    if (strpbrk(pattern, "*?[") != NULL)
        return fnmatch(pattern, name, 0) == 0;
    if (registry_find(pattern) != NULL)
        return strcmp(pattern, name) == 0;
    return strstr(name, pattern) != NULL;
}

static bool is_selected(const struct settings *settings, const struct test_case *test)
{
    if (settings->pattern_count == 0)
        return true;
    for (size_t i = 0; i < settings->pattern_count; i++)
        if (pattern_matches(settings->patterns[i], test->name))
            return true;
    return false;
}

static bool matches_any_test(const char *pattern)
{
    for (const struct test_case *t = first_test; t != NULL; t = t->next)
        if (pattern_matches(pattern, t->name))
            return true;
    return false;
}

struct job *registry_select(const struct settings *settings, size_t *count)
{
    for (size_t i = 0; i < settings->pattern_count; i++) {
        if (!matches_any_test(settings->patterns[i])) {
            fprintf(stderr, "%s: no test matches '%s'; --list shows their names\n", settings->suite,
                    settings->patterns[i]);
            return NULL;
        }
    }
    struct job *jobs = calloc(registry_count() * (size_t)settings->rounds, sizeof *jobs);
    if (jobs == NULL) {
        fprintf(stderr, "%s: no memory for the list of tests\n", settings->suite);
        return NULL;
    }
    *count = 0;
    for (int round = 0; round < settings->rounds; round++)
        for (const struct test_case *t = first_test; t != NULL; t = t->next)
            if (is_selected(settings, t))
                jobs[(*count)++] = (struct job){.test = t, .round = round};
    return jobs;
}
