/* SPDX-License-Identifier: MIT */
/* gate.h - a gate at which tasks and threads wait until it is opened: the smallest primitive
 * on the suspension protocol, for tests that need many tasks asleep. */
#ifndef SINEW_TESTS_GATE_H
#define SINEW_TESTS_GATE_H

#include "plat/thread.h"
#include "wait/wait.h"

struct gate {
    struct sni_mutex lock;
    struct sni_list waiters;
    bool open;
    size_t waiting;
};

static inline void gate_init(struct gate *g)
{
    *g = (struct gate){.waiting = 0};
    sni_list_init(&g->waiters);
}

/* Wait until the gate is open. */
static inline void gate_pass(struct gate *g)
{
    struct sni_waiter w;
    sni_wait_begin(&w);
    sni_mutex_lock(&g->lock);
    bool open = g->open;
    if (!open) {
        sni_list_push_back(&g->waiters, &w.link);
        g->waiting++;
    }
    sni_mutex_unlock(&g->lock);
    if (!open)
        (void)sni_wait_commit(&w, SN_FOREVER);
}

static inline size_t gate_waiting(struct gate *g)
{
    sni_mutex_lock(&g->lock);
    size_t waiting = g->waiting;
    sni_mutex_unlock(&g->lock);
    return waiting;
}

/* Let `n` of those that wait go on, or all with SIZE_MAX, which also leaves it open. */
static inline void gate_let(struct gate *g, size_t n)
{
    sni_mutex_lock(&g->lock);
    g->open = n == SIZE_MAX;
    for (; n > 0 && !sni_list_empty(&g->waiters); n--) {
        struct sni_list *link = sni_list_pop_front(&g->waiters);
        g->waiting--;
        (void)sni_wait_claim(sni_container_of(link, struct sni_waiter, link), 0);
    }
    sni_mutex_unlock(&g->lock);
}

#endif
