/* SPDX-License-Identifier: MIT */
/* pause.c - all workers but one stand still, for a moment.
 *
 * Who wants that sets a bit in each worker's `detour`, which fibers look at anyway when they
 * switch, and the loop before each turn. A worker that finds it in its loop says so and parks until
 * it is over. One that sleeps need not be woken: before it runs anything it comes to its loop. So
 * when each is asleep or has said so, no task runs but the caller's, and what others know is in
 * memory. A worker that is busy with one task for too long makes the pause fail: nobody is
 * interrupted. */
#include "sched/sched.h"

#include "plat/clock.h"

#include <sinew/errno.h>

enum { PATIENCE_NS = 2000000000 };

void sni_pause_here(struct sni_worker *w)
{
    struct sni_sched *sched = w->sched;
    /* relaxed: released by the next */
    sni_atomic_store(&w->idle_sp, (uintptr_t)__builtin_frame_address(0), relaxed);
    sni_atomic_store(&w->paused, 1, release); /* release: all it did, to who pauses */
    uint32_t word;
    while ((word = sni_atomic_load(&sched->pausing, acquire)) != 0) /* acquire: pairs with resume */
        (void)sni_plat_park(&sched->pausing.raw_, word, INT64_MAX);
    sni_atomic_store(&w->paused, 0, relaxed); /* relaxed: nobody asks now */
    sni_atomic_fetch_and(&w->detour, ~(uint32_t)SNI_DETOUR_PAUSE, relaxed); /* relaxed: our own */
}

static bool stands(const struct sni_sched *sched, const struct sni_worker *w)
{
    /* acquire: pairs with the release in sni_pause_here */
    return sni_atomic_load(&w->paused, acquire) != 0 || sni_idle_is_asleep(&sched->idle, w->index);
}

void sni_sched_resume(struct sni_sched *sched)
{
    sni_atomic_store(&sched->pausing, 0, release);  /* release: pairs with sni_pause_here */
    for (unsigned i = 0; i < sched->workers_n; i++) /* relaxed: late is as good as never */
        sni_atomic_fetch_and(&sched->workers[i].detour, ~(uint32_t)SNI_DETOUR_PAUSE, relaxed);
    sni_plat_unpark(&sched->pausing.raw_, INT32_MAX);
}

int sni_sched_pause(struct sni_sched *sched)
{
    const struct sni_worker *me = sni_worker_current();
    uint32_t nobody = 0;
    if (!sni_atomic_cas(&sched->pausing, &nobody, 1, seq_cst, relaxed)) /* relaxed: not ours */
        return -EBUSY;
    for (unsigned i = 0; i < sched->workers_n; i++)
        if (&sched->workers[i] != me)
            sni_atomic_fetch_or(&sched->workers[i].detour, SNI_DETOUR_PAUSE, seq_cst);
    int64_t until_ns = sni_plat_now_ns() + PATIENCE_NS;
    for (unsigned i = 0, round = 0; i < sched->workers_n;) {
        if (&sched->workers[i] == me || stands(sched, &sched->workers[i])) {
            i++;
            continue;
        }
        if (sni_plat_now_ns() >= until_ns) {
            sni_sched_resume(sched);
            return -EBUSY;
        }
        sni_plat_back_off(round++);
    }
    sni_atomic_fence(seq_cst); /* what sleepers wrote before they counted themselves as such */
    return 0;
}
