/* SPDX-License-Identifier: MIT */
/* histogram.h - counts of durations in buckets that grow with them, and what is below a share.
 *
 * 128 buckets for each power of two: a bucket is less than 0.8 % wide, whatever the duration. */
#ifndef SINEW_BENCH_HISTOGRAM_H
#define SINEW_BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_SUB_BITS = 7,
    HISTOGRAM_SUBS = 1 << HISTOGRAM_SUB_BITS,
    HISTOGRAM_BUCKETS = (64 - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS,
};

/* Zeroed is empty. */
struct histogram {
    uint64_t n;
    uint64_t sum;
    uint64_t max;
    uint64_t counts[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t value)
{
    if (value < HISTOGRAM_SUBS)
        return (unsigned)value;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
    return ((shift + 1) << HISTOGRAM_SUB_BITS) + (unsigned)(value >> shift & (HISTOGRAM_SUBS - 1));
}

/* The largest value of a bucket. */
static inline uint64_t histogram_top(unsigned bucket)
{
    if (bucket < HISTOGRAM_SUBS)
        return bucket;
    unsigned shift = (bucket >> HISTOGRAM_SUB_BITS) - 1;
    uint64_t sub = (bucket & (HISTOGRAM_SUBS - 1)) | HISTOGRAM_SUBS;
    return ((sub + 1) << shift) - 1;
}

static inline void histogram_add(struct histogram *h, uint64_t value)
{
    h->counts[histogram_bucket(value)]++;
    h->n++;
    h->sum += value;
    if (value > h->max)
        h->max = value;
}

static inline void histogram_merge(struct histogram *to, const struct histogram *from)
{
    to->n += from->n;
    to->sum += from->sum;
    if (from->max > to->max)
        to->max = from->max;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        to->counts[i] += from->counts[i];
}

/* The value that `share` (0 to 1) of all values do not exceed; 0 if there are none. */
static inline uint64_t histogram_quantile(const struct histogram *h, double share)
{
    uint64_t want = (uint64_t)(share * (double)h->n);
    uint64_t seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS && h->n > 0; i++) {
        seen += h->counts[i];
        if (seen > want || seen == h->n) {
            uint64_t top = histogram_top(i);
            return top < h->max ? top : h->max;
        }
    }
    return 0;
}

#endif
