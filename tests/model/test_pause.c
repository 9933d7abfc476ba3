/* SPDX-License-Identifier: MIT */
/* test_pause.c - a worker that wakes up while two threads pause the runtime, one after the other or
 * in vain (R160), all interleavings: src/sched/pause.c. While a pause lasts, nothing runs. */
#include "model/model.h"

#include "harness.h"
#include "plat/clock.h"
#include "sched/sched.h"

#include <sinew/errno.h>

enum { TURNS = 2 };

static struct sni_sched sched;
static struct sni_worker worker;
static SNI_ATOMIC(uint32_t) runs;
static SNI_ATOMIC(uint32_t) paused;

/* What pause.c wants of the rest. The clock stands: nobody loses patience. */
struct sni_worker *sni_worker_current(void)
{
    return NULL;
}

int sni_plat_threads_beside(unsigned known)
{
    (void)known;
    model_fail("a runtime with threads of its own asked whether there are others");
}

static void reset(void)
{
    sched = (struct sni_sched){.workers = &worker, .workers_n = 1};
    worker = (struct sni_worker){.sched = &sched};
    sni_idle_init(&sched.idle, 1);
    (void)sni_idle_sleep(&sched.idle, 0, false);
    /* relaxed, both: in setup */
    sni_atomic_store(&runs, 0, relaxed);
    sni_atomic_store(&paused, 0, relaxed);
}

/* As sleep_until_woken and must_end in worker.c: awake, fence, look; then a task has its turn. */
static void wakes_up(void)
{
    sni_idle_woken(&sched.idle, 0);
    sni_atomic_fence(seq_cst); /* pairs with that of sni_sched_pause */
    for (int i = 0; i < TURNS; i++) {
        /* relaxed: the fence, or the turn before */
        while ((sni_atomic_load(&worker.detour, relaxed) & SNI_DETOUR_PAUSE) != 0)
            sni_pause_here(&worker);
        sni_atomic_store(&runs, 1, relaxed); /* relaxed: what is looked at in a pause */
        sni_atomic_store(&runs, 0, relaxed); /* relaxed: as above */
    }
    (void)sni_idle_begin_search(&sched.idle, 0);
    (void)sni_idle_end_search(&sched.idle, 0);
    (void)sni_idle_sleep(&sched.idle, 0, true);
}

static void pauses(void)
{
    int rc = sni_sched_pause(&sched);
    if (rc == -EBUSY)
        return;
    MODEL_CHECK(rc == 0);
    MODEL_CHECK(sni_atomic_exchange(&paused, 1, acquire) == 0); /* acquire: nobody else is in one */
    MODEL_CHECK(sni_atomic_load(&runs, relaxed) == 0);          /* relaxed, both: it stands */
    MODEL_CHECK(sni_atomic_load(&runs, relaxed) == 0);
    sni_atomic_store(&paused, 0, release); /* release: pairs with the exchange */
    sni_sched_resume(&sched);
}

static void check(void)
{
    /* relaxed, both: all have ended */
    MODEL_CHECK(sni_atomic_load(&worker.detour, relaxed) == 0);
    MODEL_CHECK(sni_atomic_load(&sched.pausing, relaxed) % 2 == 0);
}

static const struct model waking = {reset, {wakes_up, pauses, pauses}, check};

TEST(pause_stops_a_worker_that_wakes_up_and_the_next_one_does_too, .limit_s = 120)
{
    model_holds(&waking, &(struct model_options){.preemptions = 3, .random = 5000});
    model_holds(&waking, &(struct model_options){.preemptions = 1, .store_buffers = true});
}
