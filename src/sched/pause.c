/* SPDX-License-Identifier: MIT */
/* pause.c - all workers but one stand still, for a moment.
 *
 * Who wants that sets a bit in each worker's `detour`, which fibers look at anyway when they
 * switch, and the loop before each turn. A worker that finds it in its loop says so and parks until
 * it is over. One that sleeps need not be woken: before it runs anything it comes to its loop. So
 * when each is asleep or has said so, no task runs but the caller's, and what others know is in
 * memory. A worker that is busy with one task for too long makes the pause fail: nobody is
 * interrupted.
 *
 * Pauses have odd numbers, and the time between two an even one. A worker says in which pause it
 * stands, so that nobody takes its word for the next one. The bits are taken back before the number
 * is: who finds it even finds its bit cleared, or set for a later pause.
 *
 * A single-threaded scheduler is nobody's thread between its turns, so nobody would say anything.
 * Who is not one of its tasks, and the only thread there is, takes the place of the one that drives
 * it. If there are others, one of them may do so, and is not waited for.
 *
 * A worker that wakes up is counted as awake, fences, and looks for the bit; who pauses sets the
 * bit, fences, and looks who is asleep. So one of them sees the other. */
#include "sched/sched.h"

#include "plat/clock.h"
#include "plat/thread.h"

#include <sinew/errno.h>

enum { PATIENCE_NS = 2000000000 };

void sni_pause_here(struct sni_worker *w)
{
    struct sni_sched *sched = w->sched;
    /* relaxed: released by the next */
    sni_atomic_store(&w->idle_sp, (uintptr_t)__builtin_frame_address(0), relaxed);
    uint32_t number;
    /* acquire: pairs with resume */
    while ((number = sni_atomic_load(&sched->pausing, acquire)) % 2 != 0) {
        sni_atomic_store(&w->paused, number, release); /* release: all it did, to who pauses */
        (void)sni_plat_park(&sched->pausing.raw_, number, INT64_MAX);
    }
}

static bool stands(const struct sni_sched *sched, const struct sni_worker *w, uint32_t number)
{
    /* acquire: pairs with the release in sni_pause_here */
    return sni_atomic_load(&w->paused, acquire) == number ||
           sni_idle_is_asleep(&sched->idle, w->index);
}

/* Whether the caller stands outside of a scheduler that has no thread of its own. */
static bool is_outside(const struct sni_sched *sched)
{
    return sched->config.single_threaded && sni_worker_current() != &sched->workers[0];
}

static void end_pause(struct sni_sched *sched)
{
    for (unsigned i = 0; i < sched->workers_n; i++) /* relaxed: released by the next */
        sni_atomic_fetch_and(&sched->workers[i].detour, ~(uint32_t)SNI_DETOUR_PAUSE, relaxed);
    sni_atomic_fetch_add(&sched->pausing, 1, release); /* release: pairs with sni_pause_here */
    sni_plat_unpark(&sched->pausing.raw_, INT32_MAX);
}

void sni_sched_resume(struct sni_sched *sched)
{
    if (is_outside(sched))
        sni_mutex_unlock(&sched->driver);
    end_pause(sched);
}

int sni_sched_pause(struct sni_sched *sched)
{
    const struct sni_worker *me = sni_worker_current();
    uint32_t before = sni_atomic_load(&sched->pausing, relaxed); /* relaxed: the next decides */
    const uint32_t number = before + 1;
    /* acquire: after the last resume. relaxed on failure: it is another's */
    if (before % 2 != 0 || !sni_atomic_cas(&sched->pausing, &before, number, acquire, relaxed))
        return -EBUSY;
    if (is_outside(sched)) {
        bool is_ours = sni_plat_threads_beside(1) == 0 && sni_mutex_trylock(&sched->driver);
        if (!is_ours)
            end_pause(sched);
        return is_ours ? 0 : -EBUSY;
    }
    for (unsigned i = 0; i < sched->workers_n; i++)
        if (&sched->workers[i] != me) /* release: who finds it finds the number, too */
            sni_atomic_fetch_or(&sched->workers[i].detour, SNI_DETOUR_PAUSE, release);
    sni_atomic_fence(seq_cst); /* before the looks; pairs with that of a worker that wakes up */
    int64_t until_ns = sni_plat_now_ns() + PATIENCE_NS;
    for (unsigned i = 0, round = 0; i < sched->workers_n;) {
        if (&sched->workers[i] == me || stands(sched, &sched->workers[i], number)) {
            i++;
            continue;
        }
        if (sni_plat_now_ns() >= until_ns) {
            end_pause(sched);
            return -EBUSY;
        }
        sni_plat_back_off(round++);
    }
    sni_atomic_fence(seq_cst); /* what sleepers wrote before they counted themselves as such */
    return 0;
}
