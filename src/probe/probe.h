/* SPDX-License-Identifier: MIT */
/* probe.h - the write side of the metrics: what a worker counts while it works.
 *
 * Each worker has one struct sni_probe of its own and is its only writer, so counting needs no
 * read-modify-write: a relaxed load and a relaxed store, which is one addition to a line that is
 * hot in the worker's cache. Readers (snapshots, tests, the debug endpoint) may look at any time
 * from any thread; they see each counter whole and never going back, but the counters of one
 * worker are not of one moment: polls may be seen ahead of the spawns they belong to.
 *
 * Put it beside the worker's own hot fields, away from what other threads write.
 *
 * Rejected: atomic additions (some 5 ns each on the hot path, and a shared line bounces);
 * a sequence lock for consistent sets (nobody needs them, writers would pay). */
#ifndef SINEW_PROBE_PROBE_H
#define SINEW_PROBE_PROBE_H

#include "base/atomic.h"

#include <stddef.h>
#include <stdint.h>

/* All counters, here and nowhere else: X(name, what people read). */
#define SNI_PROBE_COUNTERS(X)                                               \
    X(spawns, "tasks spawned")                                              \
    X(polls, "polls of coroutine tasks")                                    \
    X(switches, "switches to a fiber")                                      \
    X(steals_tried, "looks into another worker's queue")                    \
    X(steals_won, "looks that brought at least one task")                   \
    X(tasks_stolen, "tasks taken from other workers")                       \
    X(parks, "times the worker went to sleep")                              \
    X(unparks, "times the worker woke a sleeping one")                      \
    X(hushes, "times the worker stayed awake beside busy ones")             \
    X(naps, "rests between two looks at busy ones")                         \
    X(tastes, "single tasks taken from busy ones, to see what they are")    \
    X(lifo_hits, "tasks run from the slot for the one made ready last")     \
    X(overflows, "times the local queue was full and spilled")              \
    X(injects, "tasks taken from the queue that threads outside put into")  \
    X(wakes_remote, "wakes of a task that another worker or thread queued") \
    X(wakes_local, "wakes of a task queued on the waking worker itself")

enum sni_probe_counter {
#define SNI_PROBE_ENUM_(name, text) SNI_PROBE_##name,
    SNI_PROBE_COUNTERS(SNI_PROBE_ENUM_)
#undef SNI_PROBE_ENUM_
        SNI_PROBE_COUNTERS_N
};

/* Zeroed is ready. Written by its worker alone, read by anyone. */
struct sni_probe {
    SNI_ATOMIC(uint64_t) count[SNI_PROBE_COUNTERS_N];
};

/* What was read, for one worker or several; plain memory of whoever reads. */
struct sni_probe_sum {
    uint64_t count[SNI_PROBE_COUNTERS_N];
};

/* Count `n` events. Only the owner of `p`. */
static inline void sni_probe_add(struct sni_probe *p, enum sni_probe_counter which, uint64_t n)
{
    /* relaxed, both: a number pairs with nothing, and this thread is the only writer */
    uint64_t before = sni_atomic_load(&p->count[which], relaxed);
    sni_atomic_store(&p->count[which], before + n, relaxed);
}

/* Count one event: sni_probe_count(&worker->probe, SNI_PROBE_parks). Only the owner of `p`. */
static inline void sni_probe_count(struct sni_probe *p, enum sni_probe_counter which)
{
    sni_probe_add(p, which, 1);
}

/* One counter as it is now. Any thread. */
static inline uint64_t sni_probe_get(const struct sni_probe *p, enum sni_probe_counter which)
{
    /* relaxed: pairs with nothing, see the top */
    return sni_atomic_load(&p->count[which], relaxed);
}

/* Add all counters of `p` to `sum`, which the caller has zeroed. Any thread. */
void sni_probe_collect(struct sni_probe_sum *sum, const struct sni_probe *p);

/* The sum over `n` probes that lie `stride_bytes` apart, as they do inside an array of workers:
 * sni_probe_total(&sum, &workers[0].probe, n, sizeof(workers[0])). Any thread. */
void sni_probe_total(struct sni_probe_sum *sum, const struct sni_probe *first, size_t n,
                     size_t stride_bytes);

/* The name of a counter as in the code ("steals_won"), and the phrase for people; NULL for a
 * number that is none. */
const char *sni_probe_name(enum sni_probe_counter which);
const char *sni_probe_text(enum sni_probe_counter which);

#endif
