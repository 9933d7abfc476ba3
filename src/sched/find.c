/* SPDX-License-Identifier: MIT */
/* find.c - which task next, and where a runnable one is put (R40, R43, R47).
 *
 * Next, in this order: the slot (the task made runnable last, at most three in a row), the
 * worker's own ring, its inbox, the queue of all. Every 61st pick begins with the queue of all or,
 * each second time, with the inbox, so that a busy worker starves neither. A worker with nothing at
 * all becomes a searcher: it looks at the queue of all and then steals, first from a random victim,
 * and on its last pass also from the slots.
 *
 * A task made runnable on a worker goes to that worker's slot: it is probably warm there, and
 * waking another worker costs a thousand times more than running it here. Another worker is
 * woken only when a task goes to the ring, so that there is more than this worker will run
 * next; and only if nobody is searching already.
 *
 * Tasks that are not of normal priority (R44) go to queues that all workers share: high and
 * critical ones to `urgent`, which three of four picks look at first, low ones to the queue of
 * all, where they wait behind the normal ones. So urgent tasks get at most three of four picks,
 * and low ones at least one of 122 times 32. */
#include "sched/sched.h"

enum {
    STEAL_PASSES = 4, /* over all victims; the last one takes slots too   */
    OTHERS_TICK = 4,  /* every so many picks, urgent tasks come last      */
};

static SNI_NEVER_INLINE void wake_chosen(struct sni_sched *sched, struct sni_worker *by)
{
    int index = sni_idle_choose(&sched->idle);
    if (index < 0)
        return;
    if (by != NULL)
        sni_probe_count(&by->probe, SNI_PROBE_unparks);
    sni_world_wake(&sched->workers[index]);
}

/* After a push that was fenced: let a sleeper search, if nobody does. */
static SNI_ALWAYS_INLINE void wake_behind_push(struct sni_sched *sched, struct sni_worker *by)
{
    if (sni_unlikely(sni_idle_lacks_searcher(&sched->idle)))
        wake_chosen(sched, by);
}

/* After any other. */
static SNI_NEVER_INLINE void wake_one(struct sni_sched *sched, struct sni_worker *by)
{
    sni_atomic_fence(seq_cst); /* as in sni_idle_submit */
    wake_behind_push(sched, by);
}

/* ---- the worker's own queue, in either discipline --------------------------------------- */

static void local_push(struct sni_worker *w, struct sni_runlink *link)
{
    struct sni_inject *inject = &w->sched->inject;
    if (w->sched->config.lifo) {
        if (sni_likely(sni_deque_push(&w->deque, link)))
            return;
        (void)sni_deque_overflow(&w->deque, link, inject, SNI_PRIO_NORMAL);
    } else {
        if (sni_likely(sni_runq_push(&w->runq, link) ||
                       sni_runq_overflow(&w->runq, link, inject, SNI_PRIO_NORMAL) == 0))
            return;
    }
    sni_probe_count(&w->probe, SNI_PROBE_overflows);
}

static uint32_t local_len(const struct sni_worker *w)
{
    return w->sched->config.lifo ? sni_deque_len(&w->deque) : sni_runq_len(&w->runq);
}

/* ---- tasks of other than normal priority ------------------------------------------------- */

/* True if the task was queued by its priority; normal ones are left to the caller. */
static bool push_by_priority(struct sni_sched *sched, struct sni_task *task)
{
    switch (task->priority) {
    case SN_NORMAL:
        return false;
    case SN_LOW:
        sni_inject_push(&sched->inject, &task->link, SNI_PRIO_LOW);
        return true;
    default:
        sni_inject_push(&sched->urgent, &task->link,
                        task->priority == SN_CRITICAL ? SNI_PRIO_CRITICAL : SNI_PRIO_HIGH);
        return true;
    }
}

/* ---- queueing -------------------------------------------------------------------------- */

static void push_rarer(struct sni_worker *w, struct sni_task *task)
{
    if (sni_unlikely(w->sched->config.seeded) && sni_lottery_push(&w->lottery, &task->link))
        return;
    if (task->local) {
        sni_inject_push(&w->inbox, &task->link, SNI_PRIO_NORMAL);
        return;
    }
    if (!push_by_priority(w->sched, task))
        local_push(w, &task->link);
}

static SNI_NEVER_INLINE void push_back_rarer(struct sni_worker *w, struct sni_task *task)
{
    push_rarer(w, task);
    if (w->wakes)
        wake_one(w->sched, w);
}

static SNI_NEVER_INLINE void push_back_lifo(struct sni_worker *w, struct sni_task *task)
{
    if (sni_likely(w->lifo && !task->special)) {
        if (!w->wakes) {
            if (sni_likely(sni_deque_push(&w->deque, &task->link)))
                return;
        } else if (sni_likely(sni_deque_push_fenced(&w->deque, &task->link))) {
            wake_behind_push(w->sched, w);
            return;
        }
    }
    push_back_rarer(w, task);
}

/* The usual way to the ring calls nothing, so that it needs no frame. */
void sni_worker_push_back(struct sni_worker *w, struct sni_task *task)
{
    if (sni_likely(w->plain && !task->special)) {
        if (sni_hush_is_on(&w->hush)) {
            if (sni_likely(sni_runq_push(&w->runq, &task->link))) {
                if (sni_unlikely(!sni_hush_was_on(&w->hush)))
                    wake_one(w->sched, w);
                return;
            }
        } else if (sni_likely(sni_runq_push_fenced(&w->runq, &task->link))) {
            wake_behind_push(w->sched, w);
            return;
        }
    }
    push_back_lifo(w, task);
}

void sni_worker_push(struct sni_worker *w, struct sni_task *task)
{
    if (sni_unlikely(!w->plain || task->special || w->looking)) {
        sni_worker_push_back(w, task);
        return;
    }
    struct sni_runlink *displaced = sni_runq_slot_swap(&w->runq, &task->link);
    if (displaced != NULL)
        sni_worker_push_back(w, sni_task_of(displaced));
}

static SNI_NEVER_INLINE void push_behind_all(struct sni_worker *w, struct sni_task *task)
{
    sni_inject_push(&w->sched->inject, &task->link, SNI_PRIO_NORMAL);
    if (w->wakes)
        wake_one(w->sched, w);
}

/* A task that gives way: behind all others, in a LIFO scheduler too. */
void sni_worker_push_yielded(struct sni_worker *w, struct sni_task *task)
{
    if (sni_likely(!w->wakes && sni_worker_push_plain(w, task)))
        return;
    if (w->sched->config.lifo && !task->special)
        push_behind_all(w, task);
    else
        sni_worker_push_back(w, task);
}

/* The task that is queued may run, end, and with it the whole runtime, before this returns: the
 * runtime is freed only when no visitor is left. It cannot be freed before the first line: the
 * task is alive. Once it is being stopped nothing is queued: the task never runs again, and its
 * record may be another's while the queue still points to it. */
void sni_sched_push(struct sni_sched *sched, struct sni_task *task)
{
    /* seq_cst, both: the stop sees us, or we see it. release below: to sni_sched_stop */
    sni_atomic_fetch_add(&sched->visitors, 1, seq_cst);
    if (sni_unlikely(sni_atomic_load(&sched->life, seq_cst) == SNI_SCHED_STOPPING)) {
        sni_atomic_fetch_sub(&sched->visitors, 1, release);
        return;
    }
    if (task->local) {
        struct sni_worker *owner = &sched->workers[task->worker];
        sni_inject_push(&owner->inbox, &task->link, SNI_PRIO_NORMAL);
        sni_world_wake(owner);
    } else {
        if (!push_by_priority(sched, task))
            sni_inject_push(&sched->inject, &task->link, SNI_PRIO_NORMAL);
        wake_one(sched, NULL);
    }
    sni_embed_tell(sched);
    sni_atomic_fetch_sub(&sched->visitors, 1, release); /* release: see above */
}

/* ---- picking --------------------------------------------------------------------------- */

/* From the queue of all: one to run, and a fair share of the rest into the ring. */
static struct sni_task *take_injected(struct sni_worker *w)
{
    struct sni_inject *inject = &w->sched->inject;
    size_t waiting = sni_inject_len(inject);
    if (waiting == 0)
        return NULL;
    size_t share = waiting / w->sched->workers_n + 1;
    size_t limit = share < SNI_RUNQ_CAPACITY / 2 ? share : SNI_RUNQ_CAPACITY / 2;
    struct sni_runlink *chain = NULL;
    size_t got = sni_inject_pop_chain(inject, limit, &chain);
    if (got == 0)
        return NULL;
    sni_probe_add(&w->probe, SNI_PROBE_injects, got);
    struct sni_runlink *first = chain;
    for (struct sni_runlink *link = first->next; link != NULL;) {
        struct sni_runlink *next = link->next;
        local_push(w, link);
        link = next;
    }
    if (got > 1 && w->wakes)
        wake_one(w->sched, w); /* in between they were nowhere, and somebody fell asleep over it */
    sni_runq_slot_reset(&w->runq);
    return sni_task_of(first);
}

/* The newest of a LIFO scheduler; else the slot, then the oldest in the ring. */
static struct sni_runlink *local_pop(struct sni_worker *w)
{
    if (w->sched->config.lifo)
        return sni_deque_pop(&w->deque);
    struct sni_runlink *link = sni_runq_slot_take(&w->runq);
    if (link == NULL)
        return sni_runq_pop(&w->runq);
    sni_probe_count(&w->probe, SNI_PROBE_lifo_hits);
    return link;
}

/* A seeded scheduler: what others queued joins the draw. */
static struct sni_task *draw(struct sni_worker *w)
{
    struct sni_inject *queues[] = {&w->sched->urgent, &w->inbox, &w->sched->inject};
    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
        struct sni_runlink *link;
        while ((link = sni_inject_pop(queues[i])) != NULL)
            if (!sni_lottery_push(&w->lottery, link))
                return sni_task_of(link); /* no memory to draw: it runs now */
    }
    return sni_task_of(sni_lottery_draw(&w->lottery, &w->rand));
}

/* A taste has kept us busy ever since: such tasks are worth having. */
static SNI_NEVER_INLINE void take_more(struct sni_worker *w)
{
    struct sni_runlink *first = NULL;
    size_t got = sni_runq_steal(&w->tasted->runq, &w->runq, UINT32_MAX, &first);
    w->tasted = NULL;
    if (got == 0)
        return;
    local_push(w, first);
    sni_probe_count(&w->probe, SNI_PROBE_steals_won);
    sni_probe_add(&w->probe, SNI_PROBE_tasks_stolen, got);
    wake_one(w->sched, w); /* as in take_injected */
}

/* It is the turn of those who are easily forgotten: the world, the inbox, the queue of all. */
static struct sni_task *pick_fairly(struct sni_worker *w)
{
    w->fair_at = w->tick + SNI_FAIR_TICK;
    if (sni_unlikely(w->tasted != NULL))
        take_more(w);
    if (w->plain && sni_hush_is_on(&w->hush) && !sni_runq_is_held(&w->runq))
        sni_runq_hold(&w->runq);
    if ((int32_t)(w->tick - w->look_at) >= 0) {
        if (sni_world_is_due(w)) /* the loop looks, on a stack that is large enough */
            sni_atomic_fetch_or(&w->detour, SNI_DETOUR_LOOK, relaxed); /* relaxed: our own */
        else
            w->look_at = w->tick; /* not left behind until it seems to be ahead */
    }
    if (w->sched->config.seeded)
        return NULL;
    /* One: a share would push what is in the ring out again. Now the one first, now the other: two
     * local tasks that give way to each other always fill the inbox. */
    w->all_first = !w->all_first;
    struct sni_inject *all = &w->sched->inject;
    struct sni_runlink *link = sni_inject_pop(w->all_first ? all : &w->inbox);
    return sni_task_of(link != NULL ? link : sni_inject_pop(w->all_first ? &w->inbox : all));
}

struct sni_task *sni_worker_pick_slow(struct sni_worker *w)
{
    if (sni_unlikely(w->sched->config.seeded)) {
        if ((int32_t)(++w->tick - w->fair_at) >= 0)
            (void)pick_fairly(w);
        return draw(w);
    }
    struct sni_task *task;
    bool urgent = sni_inject_len(&w->sched->urgent) > 0;
    if (sni_unlikely(urgent) && (w->tick + 1) % OTHERS_TICK != 0) {
        task = sni_task_of(sni_inject_pop(&w->sched->urgent));
        if (task != NULL) {
            w->tick++;
            return task;
        }
    }
    if (sni_unlikely((int32_t)(++w->tick - w->fair_at) >= 0)) {
        task = pick_fairly(w);
        if (task != NULL)
            return task;
    }
    struct sni_runlink *link = local_pop(w);
    if (link == NULL)
        link = sni_inject_pop(&w->inbox);
    if (link != NULL)
        return sni_task_of(link);
    task = take_injected(w);
    return task != NULL || !urgent ? task : sni_task_of(sni_inject_pop(&w->sched->urgent));
}

/* ---- searching ------------------------------------------------------------------------- */

/* One link of a victim that is too fast to be robbed. */
static size_t taste(struct sni_worker *w, struct sni_worker *victim, struct sni_runlink **first)
{
    if (sni_runq_steal(&victim->runq, &w->runq, 1, first) == 0)
        return 0;
    sni_probe_count(&w->probe, SNI_PROBE_tastes);
    w->tasted = victim;
    return 1;
}

/* Links taken from the victim; the first is given, the others are in our own queue. */
static size_t steal_links(struct sni_worker *w, struct sni_worker *victim, bool last,
                          struct sni_runlink **first)
{
    if (w->tastes)
        return taste(w, victim, first);
    if (w->sched->config.lifo) {
        *first = sni_deque_steal(&victim->deque, NULL);
        return *first != NULL;
    }
    size_t got = sni_runq_steal(&victim->runq, &w->runq, UINT32_MAX, first);
    if (got == 0 && last) {
        *first = sni_runq_slot_steal(&victim->runq);
        got = *first != NULL;
    }
    return got;
}

static struct sni_task *steal_from(struct sni_worker *w, struct sni_worker *victim, bool last)
{
    struct sni_runlink *first = NULL;
    sni_probe_count(&w->probe, SNI_PROBE_steals_tried);
    size_t got = steal_links(w, victim, last, &first);
    if (got > 0) {
        sni_probe_count(&w->probe, SNI_PROBE_steals_won);
        sni_probe_add(&w->probe, SNI_PROBE_tasks_stolen, got);
    }
    return sni_task_of(first);
}

/* From `n` victims, beginning with a random one. */
static struct sni_task *steal_among(struct sni_worker *w, const uint16_t *victims, unsigned n,
                                    bool last)
{
    unsigned start = n > 0 ? (unsigned)sni_rand_below(&w->rand, n) : 0;
    for (unsigned i = 0; i < n; i++) {
        struct sni_worker *victim = &w->sched->workers[victims[(start + i) % n]];
        struct sni_task *task = steal_from(w, victim, last);
        if (task != NULL)
            return task;
    }
    return NULL;
}

static struct sni_task *steal(struct sni_worker *w, bool last)
{
    unsigned far = w->sched->workers_n - 1 - w->near_n;
    struct sni_task *task = steal_among(w, w->victims, w->near_n, last);
    return task != NULL ? task : steal_among(w, w->victims + w->near_n, far, last);
}

struct sni_task *sni_worker_steal(struct sni_worker *w)
{
    struct sni_task *task = NULL;
    bool may_steal = !w->sched->config.no_steal && w->sched->workers_n > 1;
    for (int pass = 1; task == NULL && may_steal && pass <= STEAL_PASSES; pass++)
        task = steal(w, pass == STEAL_PASSES);
    return task;
}

/* Behind the fence of sni_idle_sleep or sni_idle_end_search: is there anything that any worker
 * may take? Not the slots: what is in there, its worker will run next. */
bool sni_sched_has_shared_work(struct sni_sched *sched)
{
    if (sni_inject_len(&sched->inject) > 0 || sni_inject_len(&sched->urgent) > 0)
        return true;
    for (unsigned i = 0; i < sched->workers_n && !sched->config.no_steal; i++)
        if (local_len(&sched->workers[i]) > 0)
            return true;
    return false;
}

/* How many tasks have their turn before one that is queued now. */
uint32_t sni_worker_backlog(struct sni_worker *w)
{
    size_t shared = sni_inject_len(&w->sched->inject) / w->sched->workers_n;
    size_t own = local_len(w) + w->lottery.count;
    return (uint32_t)(shared + own < INT32_MAX ? shared + own : INT32_MAX);
}

/* Is there anything for `w`? */
bool sni_sched_has_work(struct sni_sched *sched, struct sni_worker *w)
{
    return sni_sched_has_shared_work(sched) || sni_inject_len(&w->inbox) > 0 || local_len(w) > 0 ||
           sni_runq_slot_full(&w->runq) || w->lottery.count > 0;
}

/* ---- running a task where it is waited for ----------------------------------------------- */

enum {
    INLINE_ROOM = 16 << 10, /* stack that must be left for a task that asked for no size */
};

static bool has_room(const struct sni_task *fiber, const struct sni_task *task)
{
    char here;
    size_t left = (size_t)(&here - fiber->stack->lo);
    size_t wanted = (size_t)task->stack_bytes * SNI_STACK_UNIT;
    return left >= (wanted > INLINE_ROOM ? wanted : INLINE_ROOM);
}

bool sni_worker_take_unstarted(struct sni_task *task)
{
    struct sni_worker *w = sni_worker_current();
    if (w == NULL || !w->sched->config.lifo || &w->sched->home != sni_task_home(task))
        return false;
    struct sni_task *fiber = w->exec.exec.fiber;
    if (fiber == NULL || task->kind != SNI_TASK_FIBER || task->local || task->keeps_fp ||
        !has_room(fiber, task))
        return false;
    struct sni_runlink *link = sni_deque_pop(&w->deque);
    if (link == &task->link && task->stack == NULL)
        return true;
    if (link != NULL) {
        local_push(w, link);
        if (w->wakes)
            wake_one(w->sched, w); /* as in take_injected */
    }
    return false;
}
