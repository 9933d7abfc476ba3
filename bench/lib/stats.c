/* SPDX-License-Identifier: MIT */
/* stats.c - median, minimum and MAD of a handful of samples.
 *
 * Why not mean and standard deviation: on a shared machine the noise is one-sided and has a long
 * tail; one preempted sample moves the mean by more than the changes we want to see. The median
 * ignores up to half the samples. The MAD is its matching spread, and is given raw, without the
 * factor 1.48 that would make it estimate a standard deviation of normal noise. */
#include "harness.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert(ROUNDS_MAX <= 4096, "stats_summarise keeps the samples on the stack");

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Sorts `values`. */
static double median_of(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare_doubles);
    if (count % 2 == 1)
        return values[count / 2];
    return (values[count / 2 - 1] + values[count / 2]) / 2;
}

struct summary stats_summarise(const double *samples, size_t count)
{
    double work[ROUNDS_MAX];
    assert(count >= 1 && count <= ROUNDS_MAX);
    memcpy(work, samples, count * sizeof(*work));
    struct summary s = {.median_ns = median_of(work, count)};
    s.min_ns = work[0];
    for (size_t i = 0; i < count; i++)
        work[i] = samples[i] > s.median_ns ? samples[i] - s.median_ns : s.median_ns - samples[i];
    s.mad_ns = median_of(work, count);
    return s;
}
