/* SPDX-License-Identifier: MIT */
/* hurry.c - a searcher beside workers that run through their queues too fast to be robbed.
 *
 * Tasks of a hundred nanoseconds are not worth the lines of memory that would have to change cores:
 * both workers together would be slower than one. So a searcher that sees queues move that fast
 * leaves them alone for a while; what does not move, or slowly, is there to be stolen. It looks
 * ever more rarely: a look takes lines of memory away from the one it looks at, who wants them
 * back. When its patience is at an end it steals all the same, for it may be wrong; and if that was
 * of no use, because the others are as hurried afterwards, it has twice the patience next time.
 *
 * One that has watched for some time hushes those it watches (idle.h): it stays awake beside them,
 * so they need not ask with each push whether somebody is to be woken, which is a tenth of what a
 * short task costs. It takes the promise back before it steals or sleeps. That is paid by the one
 * who has nothing to do, a microsecond after tens of them; so not earlier, for a burst that is over
 * soon would be paid by the sleep that follows it. */
#include "sched/sched.h"

#include "plat/clock.h"

#include <errno.h>

enum {
    PAUSES = 100,        /* before the second look at one that is hurried, */
    PAUSES_MAX = 3200,   /* and later                                      */
    PAUSES_HUSH = 400,   /* the look before which they are hushed          */
    MOVES = 16,          /* of a hurried queue in PAUSES                   */
    PATIENCE = 50000,    /* pauses; then it is robbed all the same         */
    IN_VAIN_MAX = 3,     /* times that it is doubled                       */
    PATIENCE_DUE = 5000, /* of one that has its own timers or descriptors to look after */
    WATCHED = 4,         /* queues that are looked at                      */
    NAP_NS = 1000000,    /* longer than any store takes                    */
};

static unsigned watched_by(const struct sni_worker *w)
{
    return w->near_n < WATCHED ? w->near_n : WATCHED;
}

static struct sni_worker *nth_watched(const struct sni_worker *w, unsigned nth)
{
    return &w->sched->workers[w->victims[nth]];
}

/* What the worker has queued and picked so far. */
static uint32_t moves_of(const struct sni_worker *w)
{
    return sni_runq_moves(&w->runq) + (uint32_t)sni_probe_get(&w->probe, SNI_PROBE_lifo_hits);
}

/* Do the others run through their queues too fast? `pauses`: since the last look. */
static bool is_hurried(struct sni_worker *w, int pauses)
{
    uint32_t moves = 0;
    for (unsigned i = 0; i < watched_by(w); i++)
        moves += moves_of(nth_watched(w, i));
    uint32_t moved = moves - w->moves_seen;
    w->moves_seen = moves;
    return moved >= (uint32_t)(MOVES * pauses / PAUSES) && sni_inject_len(&w->inbox) == 0;
}

static bool hush(struct sni_worker *w)
{
    /* relaxed: whoever learns late that it fails tries once more */
    if (sni_atomic_load(&w->sched->can_hush, relaxed) == 0)
        return false;
    sni_probe_count(&w->probe, SNI_PROBE_hushes);
    for (unsigned i = 0; i < watched_by(w); i++)
        sni_hush_begin(&nth_watched(w, i)->hush);
    return true;
}

static void end_hush(struct sni_worker *w)
{
    for (unsigned i = 0; i < watched_by(w); i++)
        sni_hush_end(&nth_watched(w, i)->hush);
    if (sni_likely(sni_plat_fence_all() == 0))
        return;
    /* Forbidden since it was prepared. A store becomes visible by itself in less time than this,
     * though no rule says so; and nobody is hushed any more. */
    sni_atomic_store(&w->sched->can_hush, 0, relaxed); /* relaxed: as above */
    uint32_t nobody_wakes = 0;
    (void)sni_plat_park(&nobody_wakes, 0, sni_plat_now_ns() + NAP_NS);
}

/* Wait as long as the others are hurried, `patience` at most. True: they still are. */
static bool outwait(struct sni_worker *w, int patience)
{
    bool hushed = false;
    bool hurried = true;
    (void)is_hurried(w, PAUSES);
    /* relaxed: whoever sets a bit unparks us, and we look again before we sleep */
    for (int pauses = PAUSES; hurried && patience > 0 && sni_atomic_load(&w->detour, relaxed) == 0;
         pauses = pauses < PAUSES_MAX ? 2 * pauses : pauses) {
        if (pauses == PAUSES_HUSH)
            hushed = hush(w);
        sni_cpu_pauses(pauses);
        hurried = is_hurried(w, pauses);
        patience -= pauses;
    }
    if (hushed)
        end_hush(w);
    return hurried;
}

void sni_worker_let_hurry(struct sni_worker *w)
{
    if (sni_world_is_due(w)) {
        (void)outwait(w, PATIENCE_DUE);
        return;
    }
    bool in_vain = outwait(w, PATIENCE << w->in_vain);
    if (!in_vain)
        w->in_vain = 0;
    else if (w->in_vain < IN_VAIN_MAX)
        w->in_vain++;
}
