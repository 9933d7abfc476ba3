/* SPDX-License-Identifier: MIT */
/* lottery.h - the queue of a seeded scheduler: which task runs next is drawn (R190).
 *
 * A single-threaded runtime with a seed makes every choice from it, so the same seed gives the
 * same order, and another seed another one: a test runs under many of them, and a failure is
 * repeated by its number. */
#ifndef SINEW_SCHED_LOTTERY_H
#define SINEW_SCHED_LOTTERY_H

#include "base/rand.h"
#include "base/runlink.h"

#include <stdbool.h>
#include <stddef.h>

/* Of one thread; zeroed is empty. */
struct sni_lottery {
    struct sni_runlink **links;
    size_t count;
    size_t capacity;
};

/* Put `link` in. False if there is no memory: nothing was done. */
bool sni_lottery_push(struct sni_lottery *lottery, struct sni_runlink *link);

/* One of those that are in, each as likely as the others, or NULL. */
struct sni_runlink *sni_lottery_draw(struct sni_lottery *lottery, struct sni_rand *rand);

void sni_lottery_finish(struct sni_lottery *lottery);

#endif
