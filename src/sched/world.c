/* SPDX-License-Identifier: MIT */
/* world.c - time and descriptors: what a worker sees of the world outside (R85).
 *
 * A worker has a clockwork and, from the first operation on a descriptor on, a driver. It *looks*
 * at both when it has nothing to run, and now and then while it has; and it sleeps in
 * the driver, or on its parker if it has none, until the next alarm.
 *
 * A worker that is stuck in a long task does not look, and its alarms and completions would wait
 * with it; and so would the task in its slot, which nobody was woken for. So somebody *watches*:
 * while workers are busy, one of the sleeping workers wakes up every few milliseconds, and if a
 * busy worker has not looked since, does it in its place: what becomes runnable goes to the
 * watcher's queue. Then it searches, as everybody who wakes up does, also the slots. Watching
 * goes on for some time after all have become idle, so that the wakes in a busy time are few; then
 * it ends, and an idle runtime sleeps for good. Whoever wakes up to work and finds nobody watching
 * wakes one to watch. If all workers are stuck, nobody can help: there is no processor left to run
 * what would become runnable, either.
 *
 * Looking for another takes its locks for as long as the owner would: the clockwork's and the
 * driver's. They are why others may do it (alarm.h, driver.h).
 *
 * What the world wakes is queued in the order in which the kernel told, behind what is runnable
 * already. Drivers reap in small portions, alarms ring in small portions, and a busy worker looks
 * again only when everything that was queued has had its turn. So a connection does not wait for
 * others that come later, and what is not taken stays in the kernel's own queue, or in the wheel,
 * in order, instead of flooding ours. And what has just been woken is still at hand when it runs:
 * when a hundred thousand sleepers are due at once, to ring them all first and run them then takes
 * twice as long, for the memory that they lie in.
 *
 * Before it sleeps, a worker that has operations under way looks again and again for some tens of
 * microseconds, if that has paid lately (spin.h). One that does not makes no two system calls for
 * each wait either: its one look is a *glance* (driver.h), and the call that sleeps also hands over
 * what is to be waited for.
 *
 * Virtual time (single-threaded schedulers) stands still while a task can run. When none can, it
 * jumps to the next alarm instead of sleeping. Operations on descriptors are real all the same. */
#include "sched/sched.h"

#include "plat/clock.h"

#include <sinew/errno.h>

#include <limits.h>

enum {
    RINGS_ENOUGH = 128,       /* in one look; what fits into the ring of the worker      */
    WATCH_NS = 5000000,       /* between two looks at the busy                           */
    WATCH_STUCK_NS = 1000000, /* while one of them is stuck                             */
    WATCH_ROUNDS = 20,        /* without anybody busy, before watching ends               */
    SHORT_NS = 100000,        /* a sleep that should have been a spin                     */
    SHORT_WAKE_NS = 30000,    /* likewise, if another worker ended it                     */
    REAL_SLEEP_NS = 20000,    /* then the kernel had us, and took some time to bring us back */
    DOUBT_NS = 1000000,       /* until it is asked again whether all are asleep; then     */
    DOUBT_GROWTH = 4,         /* as much longer, and                                      */
    DOUBTS = 7,               /* that often: 5.5 s in all                                 */
};

/* ---- time ------------------------------------------------------------------------------- */

static struct sni_worker *worker_of(struct sni_exec *exec)
{
    return (struct sni_worker *)(void *)exec;
}

static int64_t now_of(const struct sni_worker *w)
{
    if (sni_likely(!w->sched->config.virtual_time))
        return sni_plat_now_ns();
    return sni_atomic_load(&w->virtual_ns, relaxed); /* relaxed: a number; its driver writes it */
}

int64_t sni_world_now(struct sni_exec *exec)
{
    return now_of(worker_of(exec));
}

/* A fiber's wait with a deadline: the alarm lies on its stack. */
struct deadline {
    struct sni_alarm alarm;
    struct sni_waiter *waiter;
};

static void ring(struct sni_alarm *alarm)
{
    sni_wait_interrupt(sni_container_of(alarm, struct deadline, alarm)->waiter, -ETIMEDOUT);
}

void sni_world_suspend_until(struct sni_exec *exec, struct sni_waiter *waiter, int64_t until_ns)
{
    struct deadline d = {.waiter = waiter};
    sni_alarm_init(&d.alarm, ring);
    sni_alarm_set(&d.alarm, exec->clockwork, until_ns);
    exec->ops->suspend(exec, waiter);
    (void)sni_alarm_clear(&d.alarm); /* perhaps from another worker */
}

/* ---- beginning and end ------------------------------------------------------------------ */

void sni_world_init(struct sni_worker *w)
{
    /* relaxed: no other thread yet. Virtual time begins at a second: 0 is SN_NOWAIT */
    sni_atomic_store(&w->virtual_ns, SN_S(1), relaxed);
    sni_clockwork_init(&w->clockwork, &w->sched->slots[w->index], now_of(w),
                       w->sched->config.tick_ns);
    if (w->sched->has_counter)
        sni_quick_begin(&w->clockwork.quick);
    sni_spin_init(&w->spin);
    sni_spin_init(&w->hunt);
    w->exec.exec.clockwork = &w->clockwork;
}

void sni_world_finish(struct sni_worker *w)
{
    struct sni_driver *driver = sni_atomic_load(&w->driver, relaxed); /* relaxed: all have left */
    if (driver != NULL)
        sni_driver_cancel_all(driver);
    sni_driver_finish(driver);
    sni_atomic_store(&w->driver, NULL, relaxed); /* relaxed: as above */
}

int sni_world_driver(struct sni_exec *exec, struct sni_driver **out)
{
    struct sni_worker *w = worker_of(exec);
    *out = sni_atomic_load(&w->driver, relaxed); /* relaxed: only this thread makes it */
    if (sni_likely(*out != NULL))
        return 0;
    if (w->sched->config.make_driver == NULL)
        return -ENOSYS;
    int rc = w->sched->config.make_driver(w->sched->config.make_driver_arg, out);
    if (rc < 0)
        return rc;
    (*out)->group = w->sched;
    if (w->sched->workers_n > 1)
        sni_driver_set_shared(*out);
    /* release: pairs with the acquire of those who look for us or wake us */
    sni_atomic_store(&w->driver, *out, release);
    return 0;
}

/* ---- looking ---------------------------------------------------------------------------- */

/* Ring for `w`, which may be another than this thread's, and reap. */
static unsigned look_for(struct sni_worker *w, unsigned (*reap)(struct sni_driver *driver),
                         unsigned enough)
{
    unsigned found = 0;
    int64_t next_ns = sni_clockwork_next(&w->clockwork);
    if (next_ns != INT64_MAX) {
        int64_t now_ns = now_of(w);
        if (now_ns >= next_ns)
            found += sni_clockwork_run(&w->clockwork, now_ns, enough);
    }
    /* acquire: pairs with the release in sni_world_driver */
    struct sni_driver *driver = sni_atomic_load(&w->driver, acquire);
    /* relaxed: set by this thread, if at all. What nobody waits for keeps the descriptor of a
     * runtime that is driven by turns readable until it is reaped */
    if (driver != NULL && (sni_driver_pending(driver) > 0 ||
                           (sni_atomic_load(&w->detour, relaxed) & SNI_DETOUR_TURN) != 0))
        found += reap(driver);
    return found;
}

static bool look(struct sni_worker *w, unsigned (*reap)(struct sni_driver *driver))
{
    /* relaxed, both: a sign of life, for the watcher; only this thread writes */
    sni_atomic_store(&w->looks, sni_atomic_load(&w->looks, relaxed) + 1, relaxed);
    w->looking = true;
    unsigned found = look_for(w, reap, RINGS_ENOUGH);
    w->looking = false;
    uint32_t backlog = sni_worker_backlog(w);
    w->look_at = w->tick + (backlog > SNI_FAIR_TICK ? backlog : SNI_FAIR_TICK);
    return found > 0;
}

bool sni_world_look(struct sni_worker *w)
{
    return look(w, sni_driver_reap);
}

bool sni_world_glance(struct sni_worker *w)
{
    return look(w, sni_driver_glance);
}

/* Has `w` anything to look at? */
static bool has_world(const struct sni_worker *w)
{
    if (sni_clockwork_next(&w->clockwork) != INT64_MAX)
        return true;
    /* acquire: pairs with the release in sni_world_driver */
    const struct sni_driver *driver = sni_atomic_load(&w->driver, acquire);
    return driver != NULL && sni_driver_pending(driver) > 0;
}

bool sni_world_is_due(struct sni_worker *w)
{
    return has_world(w);
}

/* ---- watching --------------------------------------------------------------------------- */

/* Look in the place of those who do not. Returns how many are busy, and in *stuck how many of
 * them have not looked since the last time. */
static unsigned watch(struct sni_worker *w, unsigned *stuck)
{
    struct sni_sched *sched = w->sched;
    unsigned busy = 0;
    for (unsigned i = 0; i < sched->workers_n; i++) {
        struct sni_worker *other = &sched->workers[i];
        if (other == w || sni_idle_is_asleep(&sched->idle, i))
            continue;
        busy++;
        uint32_t looks = sni_atomic_load(&other->looks, relaxed); /* relaxed: see sni_world_look */
        if (looks == other->looks_seen) {
            ++*stuck;
            w->looking = true;
            (void)look_for(other, sni_driver_reap, UINT_MAX);
            w->looking = false;
        }
        other->looks_seen = looks; /* only the watcher touches it */
    }
    return busy;
}

/* Become the watcher, if there is none and somebody is busy. */
static bool begin_watch(struct sni_worker *w)
{
    struct sni_sched *sched = w->sched;
    if (sched->workers_n == 1)
        return false;
    uint32_t nobody = 0;
    /* acquire: pairs with the release in end_watch, for looks_seen */
    if (!sni_atomic_cas(&sched->watched, &nobody, 1, acquire, relaxed))
        return false;
    sni_atomic_fence(seq_cst); /* between the mark and the looks; see sni_world_is_quiet */
    return true;
}

static void end_watch(struct sni_sched *sched)
{
    sni_atomic_store(&sched->watched, 0, release); /* release: pairs with begin_watch */
}

void sni_world_want_watch(struct sni_worker *w)
{
    struct sni_sched *sched = w->sched;
    /* relaxed: at worst a watcher comes a little later, or one too many wakes up */
    if (sched->workers_n == 1 || sni_atomic_load(&sched->watched, relaxed) != 0)
        return;
    int index = sni_idle_submit(&sched->idle);
    if (index >= 0)
        sni_world_wake(&sched->workers[index]);
}

/* ---- all asleep -------------------------------------------------------------------------- */

/* This worker is about to sleep for good, and counts as asleep. Are all, with nothing to wake any
 * of them: no task queued, no alarm set, no operation pending?
 *
 * Work is made by workers that run, by threads outside, and by the one who watches. Of workers that
 * are counted as asleep the last look is over, or finds what we find; each was counted by an RMW
 * before ours, so what it has queued or submitted is seen behind the fence in sni_idle_sleep. The
 * watcher is counted as asleep too, but looks for those who are not: either it has marked itself
 * before it saw that we were awake, and we find the mark; or it marks itself later, and then finds
 * us asleep like all others, and has nobody to look for (both fence in between). If there is a
 * mark, this question is for the watcher, which will fall asleep later than we. Threads outside are
 * not seen from here, also those that are just queueing something: all_asleep counts them. */
bool sni_world_is_quiet(struct sni_worker *w)
{
    struct sni_sched *sched = w->sched;
    if (sni_atomic_load(&sched->watched, relaxed) != 0) /* relaxed: the fence, see above */
        return false;
    for (unsigned i = 0; i < sched->workers_n; i++) {
        struct sni_worker *other = &sched->workers[i];
        if ((other != w && !sni_idle_is_asleep(&sched->idle, i)) || has_world(other) ||
            sni_sched_has_work(sched, other))
            return false;
    }
    return sni_sched_alive(sched) != 0;
}

/* All is quiet, but it is not sure that it will be: the thread that has spawned the last task has
 * yet to come to its join, one that has ended is still in the kernel's list. Nobody tells us when
 * that is over, so sleep and look again; not without end, for it may also be a thread that waits
 * for something else, and an idle runtime sleeps for good. */
static int64_t doubt(struct sni_worker *w)
{
    uint64_t turns = sni_sched_turns(w->sched);
    if (w->doubted_at != turns)
        w->doubts = 0;
    w->doubted_at = turns;
    if (w->doubts == DOUBTS)
        return INT64_MAX;
    int64_t ns = DOUBT_NS;
    for (uint32_t i = 0; i < w->doubts; i++)
        ns *= DOUBT_GROWTH;
    w->doubts++;
    return sni_plat_now_ns() + ns;
}

/* ---- sleeping --------------------------------------------------------------------------- */

/* Wait until then, or a wake, or an event. Returns whether it was a wake. */
static bool wait_somewhere(struct sni_worker *w, int64_t until_ns)
{
    struct sni_driver *driver = sni_atomic_load(&w->driver, relaxed); /* relaxed: made by us */
    if (driver == NULL)
        return sni_parker_park(&w->parker, until_ns);
    if (!sni_parker_begin(&w->parker))
        return true;
    sni_driver_wait(driver, until_ns);
    return sni_parker_end(&w->parker);
}

/* The same; and for how long, in *ns. */
static bool wait_until(struct sni_worker *w, int64_t until_ns, int64_t *ns)
{
    int64_t since_ns = sni_plat_now_ns();
    bool woken = wait_somewhere(w, until_ns);
    *ns = sni_plat_now_ns() - since_ns;
    sni_crowd_slept(&w->crowd, *ns);
    return woken;
}

static void sleep_until(struct sni_worker *w, int64_t until_ns)
{
    struct sni_sched *sched = w->sched;
    if (sched->config.all_asleep != NULL && until_ns == INT64_MAX && sni_world_is_quiet(w)) {
        enum sni_verdict verdict = sched->config.all_asleep(sched, w);
        if (verdict == SNI_LOOK_AGAIN || sni_sched_has_work(sched, w))
            return; /* it may have been woken while it was looked at, and is queued here */
        if (verdict == SNI_ASK_LATER)
            until_ns = doubt(w);
    }
    int64_t slept_ns;
    bool woken = wait_until(w, until_ns, &slept_ns);
    w->was_woken = woken && slept_ns >= REAL_SLEEP_NS;
    if (slept_ns < (woken ? SHORT_WAKE_NS : SHORT_NS))
        sni_spin_slept_short(woken ? &w->hunt : &w->spin);
}

void sni_world_nap(struct sni_worker *w, int64_t until_ns)
{
    int64_t ns;
    (void)wait_until(w, until_ns, &ns);
}

void sni_world_wake(struct sni_worker *w)
{
    if (!sni_parker_notify(&w->parker))
        return;
    /* acquire: the worker made it before it went to sleep, if it has one */
    struct sni_driver *driver = sni_atomic_load(&w->driver, acquire);
    if (driver != NULL)
        sni_driver_wake(driver);
    else
        sni_parker_wake(&w->parker);
}

static void sleep_and_watch(struct sni_worker *w, int64_t until_ns)
{
    if (!begin_watch(w)) {
        sleep_until(w, until_ns);
        return;
    }
    unsigned stuck = 0;
    unsigned busy = watch(w, &stuck);
    w->quiet_rounds = busy > 0 ? 0 : w->quiet_rounds + 1;
    if (w->quiet_rounds <= WATCH_ROUNDS) {
        int64_t next_ns = sni_plat_now_ns() + (stuck > 0 ? WATCH_STUCK_NS : WATCH_NS);
        if (!sni_sched_has_work(w->sched, w)) /* what it has just made runnable */
            sleep_until(w, next_ns < until_ns ? next_ns : until_ns);
        end_watch(w->sched);
        return;
    }
    w->quiet_rounds = 0;
    end_watch(w->sched);
    sleep_until(w, until_ns);
}

/* Virtual time goes on to `until_ns`, unless there is something to do now: the kernel has had what
 * tasks wrote to each other, but a ring tells of it only when it is asked. */
static void jump_to(struct sni_worker *w, int64_t until_ns)
{
    struct sni_driver *driver = sni_atomic_load(&w->driver, relaxed); /* relaxed: made by us */
    if (driver != NULL && sni_driver_pending(driver) > 0) {
        sni_driver_wait(driver, 0);
        if (sni_driver_reap(driver) > 0)
            return;
    }
    sni_atomic_store(&w->virtual_ns, until_ns, relaxed); /* relaxed: as in now_of */
}

bool sni_world_pass_time(struct sni_worker *w)
{
    int64_t until_ns = sni_clockwork_next(&w->clockwork);
    if (!w->sched->config.virtual_time || until_ns == INT64_MAX)
        return false;
    jump_to(w, until_ns);
    return true;
}

void sni_world_sleep(struct sni_worker *w)
{
    /* relaxed: the same at each sleep, since the loop is as deep */
    sni_atomic_store(&w->idle_sp, (uintptr_t)__builtin_frame_address(0), relaxed);
    if (!sni_world_pass_time(w))
        sleep_and_watch(w, sni_clockwork_next(&w->clockwork));
}

/* ---- spinning --------------------------------------------------------------------------- */

int sni_world_spin_rounds(struct sni_worker *w)
{
    /* relaxed: made by this thread */
    const struct sni_driver *driver = sni_atomic_load(&w->driver, relaxed);
    if (driver == NULL || sni_driver_pending(driver) == 0 || w->sched->config.virtual_time)
        return 1;
    return sni_spin_looks(&w->spin);
}
