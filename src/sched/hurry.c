/* SPDX-License-Identifier: MIT */
/* hurry.c - a searcher beside workers that run through their queues too fast to be robbed.
 *
 * Tasks of a hundred nanoseconds are not worth the lines of memory that would have to change cores:
 * both workers together would be slower than one. So a searcher that sees queues move that fast
 * leaves them alone for a while; what moves slowly is there to be stolen, and what does not move at
 * all is so at once, for somebody may have been woken on its behalf. It looks ever more rarely: a
 * look takes lines of memory away from the one it looks at, who wants them back. Soon it naps in
 * between, for it may have to wait as long as the program runs, and nobody should burn a processor
 * for that; it counts as searching, and looks again by itself, as one that spins does. If what they
 * run are new tasks all the time, and nobody else could have work for it, it goes on like this as
 * long as they do: none of these lasts, and who waits for the one that was taken would come after
 * it. Else its patience comes to an end, for there may be work for two: tasks that give way all the
 * time run through their queue as fast. It takes one task, a *taste*, and not half of them. If that
 * keeps it busy, it comes back for the half (find.c). If not, and the others are as hurried
 * afterwards, it has twice the patience next time.
 *
 * Before all this a searcher looks at its own alarms and descriptors, and one that has any looks at
 * them again each time that it looks at the others, does not nap, and has little patience. For two
 * workers that both wake sleepers as fast as they can are hurried, each in the other's eyes.
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
    STILL_NS = 500,           /* who has not moved in this time is not hurried             */
    LOOK_NS = 2500,           /* until the second look at one that is hurried; then        */
    LOOK_MAX_NS = 160000,     /* each time twice as long, up to this                       */
    HUSH_NS = 10000,          /* the look before which they are hushed                     */
    NAP_NS = 40000,           /* from here on it naps until the next look                  */
    MOVE_NS = 156,            /* a hurried queue moves once in this time, or oftener;      */
    MOVES_LEAST = 16,         /* fewer moves tell nothing                                  */
    MOVES_OF_TASK = 2,        /* of one that is spawned, runs, and ends                    */
    PATIENCE_NS = 1250000,    /* then a task of it is taken all the same                   */
    IN_VAIN_MAX = 5,          /* times that this is doubled                                */
    PATIENCE_DUE_NS = 125000, /* of one that has its own timers or descriptors to look after */
    SPIN_PAUSES = 20,         /* between two looks at the clock                            */
    WATCHED = 4,              /* queues that are looked at                                 */
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

static uint32_t spawns_of_watched(const struct sni_worker *w)
{
    uint32_t spawns = 0;
    for (unsigned i = 0; i < watched_by(w); i++)
        spawns += (uint32_t)sni_probe_get(&nth_watched(w, i)->probe, SNI_PROBE_spawns);
    return spawns;
}

static uint32_t moves_of_watched(const struct sni_worker *w)
{
    uint32_t moves = 0;
    for (unsigned i = 0; i < watched_by(w); i++)
        moves += moves_of(nth_watched(w, i));
    return moves;
}

/* Have the others run through their queues too fast, since the last look? */
static bool is_hurried(struct sni_worker *w, int64_t now_ns)
{
    int64_t ns = now_ns - w->moves_seen_ns;
    uint32_t moves = moves_of_watched(w);
    uint32_t moved = moves - w->moves_seen;
    w->moves_seen = moves;
    w->moves_seen_ns = now_ns;
    return moved >= MOVES_LEAST && moved >= ns / MOVE_NS && sni_inject_len(&w->inbox) == 0;
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
    if (sni_unlikely(!sni_hush_fence()))
        sni_atomic_store(&w->sched->can_hush, 0, relaxed); /* relaxed: as above */
}

static void let_pass(struct sni_worker *w, int64_t until_ns, bool naps)
{
    if (naps) {
        sni_probe_count(&w->probe, SNI_PROBE_naps);
        sni_world_nap(w, until_ns);
        return;
    }
    while (sni_plat_now_ns() < until_ns)
        sni_cpu_pauses(SPIN_PAUSES);
}

/* How long the others are let hurry. */
struct patience {
    int64_t ns;
    int64_t end_ns;
    int64_t nap_ns; /* it naps if the next look is as far away          */
    bool due;       /* there is something of our own to be looked after */
    /* of the watched, when the time began to count */
    uint32_t spawns;
    uint32_t moves[WATCHED];
};

static void begin(const struct sni_worker *w, struct patience *p, int64_t now_ns)
{
    p->end_ns = now_ns + p->ns;
    p->spawns = spawns_of_watched(w);
    for (unsigned i = 0; i < watched_by(w); i++)
        p->moves[i] = moves_of(nth_watched(w, i));
}

/* Between two moments: was most of what the others ran new tasks, which do not last? And is there
 * nobody else who could have work for us: nobody whom we do not watch, nobody who stood still and
 * was not asleep, nothing in the queues of all? */
static bool only_new_tasks(const struct sni_worker *w, const struct patience *from,
                           const struct patience *to)
{
    const struct sni_sched *sched = w->sched;
    uint32_t moved = 0;
    for (unsigned i = 0; i < watched_by(w); i++) {
        if (to->moves[i] == from->moves[i] && !sni_idle_is_asleep(&sched->idle, w->victims[i]))
            return false;
        moved += to->moves[i] - from->moves[i];
    }
    return watched_by(w) == sched->workers_n - 1 && sni_inject_len(&sched->inject) == 0 &&
           sni_inject_len(&sched->urgent) == 0 &&
           (to->spawns - from->spawns) * (2 * MOVES_OF_TASK) >= moved;
}

/* Is it at an end? If only new tasks were run it begins anew. */
static bool is_over(const struct sni_worker *w, struct patience *p, int64_t now_ns)
{
    if (now_ns < p->end_ns)
        return false;
    const struct patience was = *p;
    begin(w, p, now_ns);
    return p->due || !only_new_tasks(w, &was, p);
}

/* Wait as long as the others are hurried and the patience lasts, or until there is something of our
 * own. `ns`: until the first look. True: they still are. */
static bool outwait(struct sni_worker *w, int64_t now_ns, int64_t ns, struct patience *p)
{
    bool hushed = false;
    bool hurried = true;
    p->end_ns = now_ns + p->ns;
    /* relaxed: whoever sets a bit unparks us, and we look again before we sleep */
    while (hurried && !is_over(w, p, now_ns) && sni_atomic_load(&w->detour, relaxed) == 0) {
        if (ns == HUSH_NS) {
            begin(w, p, now_ns); /* not earlier: it takes a line of memory away from them */
            hushed = hush(w);
        }
        let_pass(w, now_ns + ns, ns >= p->nap_ns);
        now_ns = sni_plat_now_ns();
        hurried = is_hurried(w, now_ns) && !(p->due && sni_world_look(w));
        ns = ns < LOOK_MAX_NS ? 2 * ns : ns;
    }
    if (hushed)
        end_hush(w);
    return hurried;
}

/* Do the others' queues not move, or hardly? Mostly so for one who was woken for the sake of a task
 * that waits behind a long one, and should not wait longer than it must. That was some microseconds
 * ago, in which who is hurried moves oftener than `moved`, all that was seen since it fell asleep.
 * Who was not woken has to stay and look. */
static bool stand_still(struct sni_worker *w, int64_t now_ns, uint32_t moved)
{
    bool was_woken = w->was_woken;
    w->was_woken = false;
    if (was_woken && moved < MOVES_LEAST)
        return true;
    let_pass(w, now_ns + STILL_NS, false);
    return moves_of_watched(w) == w->moves_seen;
}

bool sni_worker_let_hurry(struct sni_worker *w, bool shy)
{
    int64_t now_ns = sni_plat_now_ns();
    /* They were before, perhaps when we slept and they had our processor: then there is no need to
     * find that out. */
    uint32_t seen = w->moves_seen;
    bool were = is_hurried(w, now_ns);
    bool due = sni_world_is_due(w);
    if (shy && (due || !were))
        return false; /* it would have to spin */
    if (!were && stand_still(w, now_ns, w->moves_seen - seen))
        return false;
    int64_t ns = were ? HUSH_NS : LOOK_NS;
    if (due)
        return outwait(w, now_ns, ns,
                       &(struct patience){PATIENCE_DUE_NS, .nap_ns = INT64_MAX, .due = true});
    bool in_vain =
        outwait(w, now_ns, ns,
                &(struct patience){(int64_t)PATIENCE_NS << w->in_vain, .nap_ns = shy ? 0 : NAP_NS});
    if (!in_vain)
        w->in_vain = 0;
    else if (w->in_vain < IN_VAIN_MAX)
        w->in_vain++;
    return in_vain;
}
