/* SPDX-License-Identifier: MIT */
/* idle.h - who sleeps, who searches, who wakes whom (R43); and the word a worker parks on.
 *
 * Nothing in here touches a queue or stops a thread, but sni_parker_park: the caller pushes,
 * looks and parks. The protocol and why no wake-up is lost are told in idle.c; tests/model
 * explores it, as C and as Promela. A worker without work does this:
 *
 *     if (!searching)
 *         searching = sni_idle_begin_search(idle, me);
 *     if (searching) {
 *         link = look into all queues, steal;
 *         if (link != NULL) {
 *             if (sni_idle_end_search(idle, me) && a queue still has work)
 *                 wake(sni_idle_submit(idle));                  the throttled chain of wakes
 *             run link; ...
 *         }
 *     }
 *     if (!sni_idle_sleep(idle, me, searching) || no queue has work)   the last look
 *         sni_parker_park(&me->parker, until_ns);               or in the driver, see below
 *     sni_idle_woken(idle, me);
 *     searching = true;
 *
 * and who makes work: push; i = sni_idle_submit(idle); if (i >= 0) sni_parker_unpark(parker i).
 * Any other reason to stop sleeping (deadline, I/O, a mailbox, shutdown, a stray token) takes the
 * same way through sni_idle_woken. Work only one worker may run needs sni_parker_unpark of that
 * worker's parker, whether it sleeps or not. */
#ifndef SINEW_SCHED_IDLE_H
#define SINEW_SCHED_IDLE_H

#include "sched/runq.h"

enum { SNI_WORKERS_MAX = 1024 };

/* state_     two counts, searching and sleeping; RMW by any thread
 * asleep_    bit per worker; set by the worker, cleared by whoever wakes it (perhaps itself)
 * workers_   written by init, then constant */
struct sni_idle {
    _Alignas(SNI_SCHED_LINE_BYTES) SNI_ATOMIC(uint32_t) state_;
    _Alignas(SNI_SCHED_LINE_BYTES) SNI_ATOMIC(uint64_t) asleep_[SNI_WORKERS_MAX / 64];
    _Alignas(SNI_SCHED_LINE_BYTES) uint32_t workers_;
};

/* All `workers` (1..SNI_WORKERS_MAX) are awake and not searching. */
void sni_idle_init(struct sni_idle *idle, unsigned workers);

/* Any thread, after it has pushed work that any worker may run: choose a sleeping worker to
 * unpark, if none is searching. The chosen one is accounted as searching from now on, so the
 * caller must unpark it. Holds a seq_cst fence. Returns its index, or -1: nobody need be woken. */
static inline int sni_idle_submit(struct sni_idle *idle);

/* The same in halves, for one whose push was the seq_cst store of an index that is looked at
 * (sni_runq_push_fenced, sni_deque_push_fenced) and needs no fence. Nobody searches, and somebody
 * sleeps; then, and only then: choose one, or -1. */
static inline bool sni_idle_lacks_searcher(const struct sni_idle *idle);
int sni_idle_choose(struct sni_idle *idle);

/* Worker: begin to search. False if half of the workers, and at least one, search already: then
 * sleep. */
bool sni_idle_begin_search(struct sni_idle *idle, unsigned me);

/* Searching worker that found work: stop searching. True if it was the last one: then it must look
 * at all queues, and if there is more work call sni_idle_submit, for submitters have relied on it.
 * Holds a seq_cst fence. */
bool sni_idle_end_search(struct sni_idle *idle, unsigned me);

/* Worker: go to sleep; `searching` tells whether it searched, which ends now. True if nobody
 * searches any more: then it must look at all queues once more before it parks, and if there is
 * work not park but go on with sni_idle_woken. Holds a seq_cst fence. */
bool sni_idle_sleep(struct sni_idle *idle, unsigned me, bool searching);

/* Worker, after sni_idle_sleep: be awake again, for whatever reason, and searching. A token may
 * be on its way from a waker; it makes a later park return for nothing, which is harmless. */
void sni_idle_woken(struct sni_idle *idle, unsigned me);

/* Any thread: whether that worker sleeps, a moment ago. */
bool sni_idle_is_asleep(const struct sni_idle *idle, unsigned worker);

/* Any thread: how many search or sleep, a moment ago; for statistics. */
unsigned sni_idle_searching(const struct sni_idle *idle);
unsigned sni_idle_sleeping(const struct sni_idle *idle);

/* ---- submitting: on the path of every spawn ---------------------------------------------- */

enum {
    SNI_IDLE_ONE_SLEEPING_ = 1,
    SNI_IDLE_ONE_SEARCHING_ = 1 << 16,
    SNI_IDLE_NOBODY_ = 1 << 12, /* sleeping is kept with a bias: it may be below 0 for a moment */
};

static inline bool sni_idle_lacks_searcher_(uint32_t state)
{
    return state > SNI_IDLE_NOBODY_ && state < SNI_IDLE_ONE_SEARCHING_;
}

static inline bool sni_idle_lacks_searcher(const struct sni_idle *idle)
{
    /* seq_cst: behind the push, or the fence that follows it, see idle.c */
    return sni_idle_lacks_searcher_(sni_atomic_load(&idle->state_, seq_cst));
}

static inline int sni_idle_submit(struct sni_idle *idle)
{
    sni_atomic_fence(
        seq_cst); /* between the push and the look; pairs with those of end and sleep */
    return sni_likely(!sni_idle_lacks_searcher(idle)) ? -1 : sni_idle_choose(idle);
}

/* ---- hush --------------------------------------------------------------------------------
 * A searcher that will stay one for a while may hush a worker that queues much: until it ends that,
 * the worker's pushes need neither a fence nor a look at who sleeps. A worker that nobody takes
 * anything from is hushed for ever. See idle.c. */

struct sni_hush {
    SNI_ATOMIC(uint32_t) by_; /* searchers: RMW; its owner reads */
};

/* `others`: there are workers who may take what the owner queues. */
void sni_hush_init(struct sni_hush *hush, bool others);

/* Searcher: begin and end, once each. Behind one or several ends it calls sni_hush_fence, and
 * looks at the queues as any searcher does; it searches until then. */
void sni_hush_begin(struct sni_hush *hush);
void sni_hush_end(struct sni_hush *hush);

/* sni_plat_fence_all; and if it has been forbidden since it was prepared, a wait that is as good,
 * though no rule says so. False: that was it, and nobody should rely on the fence any more. */
bool sni_hush_fence(void);

/* Owner: may the push be a plain one? And behind a plain one: was nobody to be told? If not, a
 * hush has ended meanwhile: sni_idle_submit. */
static inline bool sni_hush_is_on(const struct sni_hush *hush)
{
    /* relaxed: a choice between two ways that are right */
    return sni_atomic_load(&hush->by_, relaxed) != 0;
}

static inline bool sni_hush_was_on(const struct sni_hush *hush)
{
    sni_atomic_half_fence(); /* behind the push; the other half is sni_plat_fence_all */
    /* relaxed: as the fence says */
    return sni_atomic_load(&hush->by_, relaxed) != 0;
}

/* ---- parker ----------------------------------------------------------------------------
 * One token per worker. An unpark leaves the token, a park consumes it; so an unpark that comes
 * first makes the next park return at once, and two of them are one. */

struct sni_parker {
    SNI_ATOMIC(uint32_t) word; /* any thread, RMW only; values in idle.c */
};

/* Zeroed is the same. */
void sni_parker_init(struct sni_parker *p);

/* Owner: sleep until there is a token, or `until_ns` (absolute, INT64_MAX: for ever). What the
 * unparker wrote before is visible. True: a token was consumed. False: the time has passed. */
bool sni_parker_park(struct sni_parker *p, int64_t until_ns);

/* Any thread: leave a token; a system call only if the owner is really parked. */
void sni_parker_unpark(struct sni_parker *p);

/* The same in halves, for a worker that sleeps in a driver (ring, epoll) instead:
 *     if (sni_parker_begin(p)) { wait in the driver; (void)sni_parker_end(p); }
 * and who wakes it:  if (sni_parker_notify(p)) wake the driver.
 *
 * begin   owner: false if there was a token, now consumed: do not wait. Else others will notify.
 * end     owner: waiting is over. True if there was a token, now consumed.
 * notify  any thread: leave a token. True if the owner waits, and this call is the one that must
 *         wake it. */
bool sni_parker_begin(struct sni_parker *p);
bool sni_parker_end(struct sni_parker *p);
bool sni_parker_notify(struct sni_parker *p);

/* Any thread, whose notify gave true, if the owner waits in sni_parker_park: wake it. */
void sni_parker_wake(struct sni_parker *p);

#endif
