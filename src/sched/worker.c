/* SPDX-License-Identifier: MIT */
/* worker.c - running tasks: switching between them, ending them, and idling.
 *
 * The rule of all switches: a fiber must not be resumable before its registers are saved, and
 * a stack must not be reused while somebody stands on it. So whoever leaves a context notes
 * what is to be done about it in `after`, and arrive() does it in the context that runs next.
 * A switch hands over the worker: a fiber that comes back may be on another thread, and learns
 * from the switch itself on which.
 *
 * A fiber that ends looks for the next task before it leaves. If that is a fiber that has not
 * begun and wants a stack of the same size, it begins right there, on the stack that has just
 * become free: no switch, no cache, and the memory is warm. */
#include "sched/sched.h"

#include "plat/clock.h"
#include "task/local.h"

#include <sinew/errno.h>

enum { SPIN_PAUSES = 20 }; /* between two rounds of a search */

struct sni_worker *sni_worker_current(void)
{
    return sni_worker_of(sni_exec_current());
}

/* ---- switching ------------------------------------------------------------------------- */

/* Never inlined into arrive, which would need a frame for it. */
SNI_NEVER_INLINE static void publish(struct sni_worker *w, struct sni_task *fiber)
{
    if (sni_unlikely(sni_task_parked(fiber)))
        sni_worker_push(w, fiber);
}

SNI_NEVER_INLINE static void put_stack(struct sni_worker *w, struct sni_stack *stack)
{
    sni_highwater_measure(w->sched->marks, w->dead_at, stack);
    sni_stack_put(&w->stacks, stack);
}

/* First thing in every context that a switch comes to: do what was noted in the one it left. */
static void arrive(void *pass)
{
    struct sni_worker *w = pass;
    enum sni_after after = w->after;
    void *what = w->after_what;
    w->after = SNI_AFTER_NOTHING;
    if (after == SNI_AFTER_QUEUE)
        sni_worker_push_yielded(w, what);
    else if (after == SNI_AFTER_PUBLISH)
        publish(w, what);
    else if (after == SNI_AFTER_PUT_STACK)
        put_stack(w, what);
}

static void do_after(struct sni_worker *w, enum sni_after after, void *what)
{
    sni_assert_debug(w->after == SNI_AFTER_NOTHING, "a switch before the last one was completed");
    w->after = after;
    w->after_what = what;
}

static void fiber_main(void *pass);

/* False: there is no stack to be had, and the task has ended with -ENOMEM. */
static bool give_stack(struct sni_worker *w, struct sni_task *task)
{
    int rc = sni_stack_get(&w->stacks, (size_t)task->stack_bytes * SNI_STACK_UNIT, &task->stack);
    if (rc == 0) {
        rc = sni_context_make(&task->context, task->stack->lo, task->stack->hi, fiber_main);
        if (rc == 0)
            return true;
        sni_stack_put(&w->stacks, task->stack);
        task->stack = NULL;
    }
    sni_task_end(&w->exec.exec, task, rc);
    return false;
}

static bool must_return(struct sni_worker *w)
{
    /* relaxed: a worker is unparked after it was set, and looks again before it sleeps */
    return (sni_atomic_load(&w->detour, relaxed) & SNI_DETOUR_RETURN) != 0;
}

/* Run `next` from here on. */
static inline struct sni_context *begin_turn_of(struct sni_worker *w, struct sni_task *next)
{
    sni_probe_count(&w->probe, SNI_PROBE_switches);
    w->exec.exec.fiber = next;
    w->exec.exec.budget = SNI_BUDGET;
    return &next->context;
}

static SNI_COLD struct sni_context *roundabout_way_to(struct sni_worker *w, struct sni_task *next)
{
    /* relaxed: as in must_return */
    if (sni_unlikely(sni_atomic_load(&w->detour, relaxed) != 0)) {
        w->handoff = next; /* the loop decides */
        next = NULL;
    }
    while (next != NULL && next->kind == SNI_TASK_FIBER) {
        if (next->stack != NULL || give_stack(w, next))
            return begin_turn_of(w, next);
        next = sni_worker_pick(w);
    }
    if (next != NULL)
        w->handoff = next;
    w->exec.exec.fiber = NULL;
    return &w->loop;
}

/* Can a switch go to `next` at once? It has its stack, and the loop does not want to be asked. */
static inline bool is_straight(struct sni_worker *w, const struct sni_task *next)
{
    /* relaxed: as in must_return */
    return next->kind == SNI_TASK_FIBER && next->stack != NULL &&
           sni_atomic_load(&w->detour, relaxed) == 0;
}

/* Where to switch in order to run `next`: to its fiber, or to the loop. */
static inline struct sni_context *way_to(struct sni_worker *w, struct sni_task *next)
{
    if (sni_likely(next != NULL && is_straight(w, next)))
        return begin_turn_of(w, next);
    return roundabout_way_to(w, next);
}

/* Leave the running fiber, by whatever way, until somebody comes back. */
static SNI_NEVER_INLINE void leave_somehow(struct sni_worker *w, struct sni_task *next,
                                           enum sni_after after, void *what)
{
    struct sni_task *me = w->exec.exec.fiber;
    struct sni_context *to = way_to(w, next);
    do_after(w, after, what);
    if (!me->keeps_fp) {
        arrive(sni_context_switch(&me->context, to, w));
        return;
    }
    uint64_t mine = sni_fp_control_get();
    sni_fp_control_set(w->fp_control);
    arrive(sni_context_switch(&me->context, to, w));
    sni_fp_control_set(mine);
}

/* Leave it for `next` in the usual way. Between the switch and whoever waits there is no frame, and
 * what it saves is one line of memory: where a thousand fibers take turns, that counts. */
static SNI_ALWAYS_INLINE void leave_for(struct sni_worker *w, struct sni_task *next,
                                        enum sni_after after, void *what)
{
    struct sni_task *me = w->exec.exec.fiber;
    if (sni_unlikely(me->keeps_fp || !is_straight(w, next))) {
        leave_somehow(w, next, after, what);
        return;
    }
    struct sni_context *to = begin_turn_of(w, next);
    do_after(w, after, what);
    sni_context_switch_last(&me->context, to, w, arrive);
}

static SNI_NEVER_INLINE void suspend_somehow(struct sni_worker *w)
{
    leave_somehow(w, sni_worker_pick(w), SNI_AFTER_PUBLISH, w->exec.exec.fiber);
}

static void suspend(struct sni_exec *exec, struct sni_waiter *waiter)
{
    (void)waiter; /* its state is the task's */
    struct sni_worker *w = (struct sni_worker *)(void *)exec;
    struct sni_task *next = sni_worker_pick_plain(w);
    if (sni_likely(next != NULL))
        leave_for(w, next, SNI_AFTER_PUBLISH, exec->fiber);
    else
        suspend_somehow(w);
}

/* The worker on whose queue `task` goes, or NULL: it goes to all of *home, or to another worker
 * there. The home is read once: a task that is given up has another from then on. */
static SNI_ALWAYS_INLINE struct sni_worker *worker_for(struct sni_task *task,
                                                       struct sni_home **home)
{
    struct sni_worker *w = sni_worker_current();
    *home = sni_task_home(task);
    if (sni_unlikely(w == NULL))
        return NULL;
    bool mine = &w->sched->home == *home && sni_likely(!task->local || task->worker == w->index);
    sni_probe_count(&w->probe, mine ? SNI_PROBE_wakes_local : SNI_PROBE_wakes_remote);
    return mine ? w : NULL;
}

static SNI_ALWAYS_INLINE void ready(struct sni_task *task)
{
    struct sni_home *home;
    struct sni_worker *w = worker_for(task, &home);
    if (sni_likely(w != NULL))
        sni_worker_push(w, task);
    else
        sni_sched_push((struct sni_sched *)(void *)home, task);
}

void sni_worker_ready(struct sni_task *task)
{
    ready(task);
}

static void resume(void *fiber)
{
    ready(fiber);
}

void sni_worker_ready_last(struct sni_task *task)
{
    struct sni_home *home;
    struct sni_worker *w = worker_for(task, &home);
    if (w != NULL)
        sni_worker_push_back(w, task);
    else
        sni_sched_push((struct sni_sched *)(void *)home, task);
}

static void resume_last(void *fiber)
{
    sni_worker_ready_last(fiber);
}

static SNI_NEVER_INLINE void give_way_somehow(struct sni_worker *w)
{
    struct sni_task *next = sni_worker_pick(w);
    /* relaxed: as in must_return */
    if (next == NULL && sni_atomic_load(&w->detour, relaxed) == 0)
        return; /* nobody else wants a turn, and the loop does not want to be asked */
    leave_somehow(w, next, SNI_AFTER_QUEUE, w->exec.exec.fiber);
}

static void give_way(struct sni_exec *exec)
{
    struct sni_worker *w = (struct sni_worker *)(void *)exec;
    struct sni_task *next = sni_worker_pick_plain(w);
    if (sni_likely(next != NULL))
        leave_for(w, next, SNI_AFTER_QUEUE, exec->fiber);
    else
        give_way_somehow(w);
}

const struct sni_exec_ops sni_worker_exec_ops = {
    .suspend = suspend,
    .resume = resume,
    .resume_last = resume_last,
    .lent_at = offsetof(struct sni_task, lent),
    .wait_at = offsetof(struct sni_task, wait),
    .give_way = give_way,
    .guard = sni_local_guard,
    .unguard = sni_local_unguard,
    .suspend_until = sni_world_suspend_until,
    .now = sni_world_now,
    .driver = sni_world_driver,
};

/* ---- the life of a fiber ---------------------------------------------------------------- */

/* What is left of a fiber whose task has ended: it runs still, and its record may be gone. */
struct remains {
    struct sni_stack *stack;
    struct sni_context context;
    const char *at; /* where it was spawned */
    uint32_t stack_bytes;
    bool keeps_fp;
};

/* End the task of this fiber. */
static struct remains end_task(struct sni_worker *w, struct sni_task *task, int result)
{
    struct remains r = {task->stack, task->context, task->at, task->stack_bytes, task->keeps_fp};
    task->stack = NULL;
    sni_task_end(&w->exec.exec, task, result);
    return r;
}

/* Leave a fiber whose task has ended, for ever. */
_Noreturn static void leave_fiber(struct sni_worker *w, const struct remains *r,
                                  struct sni_task *next)
{
    if (r->keeps_fp)
        sni_fp_control_set(w->fp_control);
    struct sni_context *to = way_to(w, next);
    do_after(w, SNI_AFTER_PUT_STACK, r->stack);
    w->dead_at = r->at;
    w->dead = r->context;
    sni_context_exit(&w->dead, to, w);
}

/* The task on this stack has ended. Returns if another one begins here. */
static void begin_another_or_leave(struct sni_worker *w, const struct remains *r)
{
    struct sni_task *next = sni_worker_pick(w);
    bool fits = next != NULL && next->kind == SNI_TASK_FIBER && next->stack == NULL &&
                next->stack_bytes == r->stack_bytes && !r->keeps_fp && w->sched->marks == NULL;
    /* relaxed: as in must_return */
    if (!fits || sni_atomic_load(&w->detour, relaxed) != 0)
        leave_fiber(w, r, next);
    next->stack = r->stack;
    next->context = r->context;
    w->exec.exec.fiber = next;
}

static void fiber_main(void *pass)
{
    struct sni_worker *w = pass;
    arrive(w);
    for (;;) {
        struct sni_task *task = w->exec.exec.fiber;
        sn_task_fn *fn = task->fn;
        void *arg = task->arg;
        task->acting = NULL;
        task->lent = NULL;
        int result = fn(arg);
        sni_task_finish_up(task);
        w = sni_worker_current(); /* perhaps another than before */
        struct remains r = end_task(w, task, result);
        begin_another_or_leave(w, &r);
    }
}

/* ---- the loop -------------------------------------------------------------------------- */

static void run_fiber(struct sni_worker *w, struct sni_task *task)
{
    if (task->stack == NULL && !give_stack(w, task))
        return;
    sni_context_switch_last(&w->loop, begin_turn_of(w, task), w, arrive);
}

static inline void poll(struct sni_worker *w, struct sni_task *task)
{
    sni_probe_count(&w->probe, SNI_PROBE_polls);
    w->exec.exec.budget = SNI_BUDGET;
    bool again = sni_task_poll(&w->exec, task);
    if (again && sni_unlikely(w->wakes || !sni_worker_push_plain(w, task)))
        sni_worker_push_back(w, task);
}

/* The loop need not be asked before the next task. */
static inline bool goes_on(const struct sni_worker *w)
{
    /* relaxed: as in must_return */
    return sni_likely(sni_atomic_load(&w->detour, relaxed) == 0 && w->drive == SNI_DRIVE_THREAD);
}

/* Poll one coroutine after another, as long as the loop would do nothing else. */
static void poll_in_a_row(struct sni_worker *w, struct sni_task *task)
{
    do {
        poll(w, task);
        task = goes_on(w) ? sni_worker_pick_plain(w) : NULL;
    } while (task != NULL && task->kind == SNI_TASK_CORO);
    w->handoff = task;
}

static void run(struct sni_worker *w, struct sni_task *task)
{
    if (task->kind == SNI_TASK_FIBER)
        run_fiber(w, task);
    else
        poll_in_a_row(w, task);
}

/* A searcher found something: it works now, and if it was the last searcher and there is more
 * to do, another one takes its place. */
static void stop_searching(struct sni_worker *w)
{
    struct sni_sched *sched = w->sched;
    w->searching = false;
    if (!sni_idle_end_search(&sched->idle, w->index) || !sni_sched_has_shared_work(sched))
        return;
    int index = sni_idle_submit(&sched->idle);
    if (index >= 0)
        sni_world_wake(&sched->workers[index]);
}

/* How often a searcher that does not look at the world comes back to the others' queues. */
static int hunt_rounds(struct sni_worker *w)
{
    return w->searching && w->sched->workers_n > 1 ? sni_spin_looks(&w->hunt) : 1;
}

/* Do others want the processor? */
static bool is_shy(struct sni_worker *w)
{
    if (!w->sched->sees_crowds)
        return false;
    int64_t now_ns = sni_plat_now_ns();
    if (sni_crowd_is_due(&w->crowd, now_ns))
        sni_crowd_ask(&w->crowd, now_ns, sni_plat_thread_cpu_ns());
    return sni_crowd_makes_shy(&w->crowd, now_ns);
}

/* What there is to do: what is our own or everybody's first, then, for a searcher, what others
 * have queued. In its first round it lets them hurry before it takes that. */
static struct sni_task *find(struct sni_worker *w, bool first, bool shy)
{
    struct sni_task *task = sni_worker_pick(w);
    if (task != NULL || !w->searching)
        return task;
    if (first && w->wakes && w->plain) {
        w->tastes = sni_worker_let_hurry(w, shy);
        task = sni_worker_pick(w); /* that took time */
    }
    return task != NULL ? task : sni_worker_steal(w);
}

static struct sni_task *search(struct sni_worker *w)
{
    if (!w->searching)
        w->searching = sni_idle_begin_search(&w->sched->idle, w->index);
    bool shy = is_shy(w);
    const int looks = shy ? 1 : sni_world_spin_rounds(w);
    const int hunts = shy ? 1 : hunt_rounds(w);
    const int rounds = looks > hunts ? looks : hunts;
    bool is_last = rounds == 1 && w->drive != SNI_DRIVE_TURN;
    w->tasted = NULL;
    w->tastes = false;
    for (int i = 0; i < rounds && !must_return(w); i++) {
        if (i > 0)
            sni_cpu_pauses(SPIN_PAUSES);
        bool seen = i < looks && (is_last ? sni_world_glance(w) : sni_world_look(w));
        struct sni_task *task = find(w, i == 0, shy);
        if (task == NULL)
            continue;
        if (seen ? looks > 1 : hunts > 1)
            sni_spin_found(seen ? &w->spin : &w->hunt, i);
        return task;
    }
    if (looks > 1)
        sni_spin_missed(&w->spin);
    if (hunts > 1)
        sni_spin_missed(&w->hunt);
    return NULL;
}

static void sleep_until_woken(struct sni_worker *w)
{
    struct sni_sched *sched = w->sched;
    bool look = sni_idle_sleep(&sched->idle, w->index, w->searching);
    w->searching = false;
    sni_sched_look_at_end(sched);
    bool work = (look && sni_sched_has_work(sched, w)) || sni_inject_len(&w->inbox) > 0;
    if (!work && !must_return(w)) {
        sni_probe_count(&w->probe, SNI_PROBE_parks);
        sni_world_sleep(w);
    }
    sni_idle_woken(&sched->idle, w->index);
    sni_atomic_fence(seq_cst); /* before the look at `detour`; pairs with that of sni_sched_pause */
    w->searching = true;
}

/* It was time to look at the world when the last task was picked. */
static void look_if_due(struct sni_worker *w)
{
    /* relaxed, both: set by this thread */
    if ((sni_atomic_load(&w->detour, relaxed) & SNI_DETOUR_LOOK) == 0)
        return;
    sni_atomic_fetch_and(&w->detour, ~(uint32_t)SNI_DETOUR_LOOK, relaxed);
    (void)sni_world_look(w);
}

static struct sni_task *next_task(struct sni_worker *w)
{
    struct sni_task *task = w->handoff;
    if (task != NULL)
        w->handoff = NULL;
    else
        task = sni_worker_pick_plain(w);
    if (sni_unlikely(task == NULL))
        task = sni_worker_pick(w);
    if (sni_unlikely(task == NULL))
        task = search(w);
    if (task != NULL && w->searching) {
        stop_searching(w);
        sni_world_want_watch(w);
    }
    return task;
}

/* A worker that is driven by somebody's thread goes back to it: nobody else can make work when
 * no task is alive; and a turn waits for nothing. But each turn has a look at what there is, also
 * one whose time is up before it begins: who gives turns gets on. */
static bool is_over(struct sni_worker *w)
{
    switch (w->drive) {
    case SNI_DRIVE_THREAD:
        return false;
    case SNI_DRIVE_UNTIL:
        return w->until == NULL && sni_sched_alive(w->sched) == 0;
    default:
        if (w->turn_begins) {
            w->turn_begins = false;
            return false;
        }
        return sni_plat_now_ns() >= w->turn_until_ns;
    }
}

/* Before each turn of the loop. */
static inline bool must_end(struct sni_worker *w)
{
    if (goes_on(w))
        return false;
    if (must_return(w) || is_over(w))
        return true;
    /* relaxed: as in must_return */
    if (sni_unlikely((sni_atomic_load(&w->detour, relaxed) & SNI_DETOUR_PAUSE) != 0))
        sni_pause_here(w);
    look_if_due(w);
    return false;
}

static bool passes_time(struct sni_worker *w)
{
    if (w->time_passed)
        return false;
    w->time_passed = true;
    return sni_world_pass_time(w);
}

static void loop(struct sni_worker *w)
{
    while (!must_end(w)) {
        struct sni_task *task = next_task(w);
        if (task != NULL)
            run(w, task);
        else if (w->drive == SNI_DRIVE_TURN && !passes_time(w))
            break;
        else if (w->drive != SNI_DRIVE_TURN && !must_return(w))
            sleep_until_woken(w);
    }
    if (w->handoff != NULL)
        sni_worker_push_back(w, w->handoff);
    w->handoff = NULL;
    if (w->searching)
        stop_searching(w); /* a wake that was meant for us goes to another */
}

/* Run the loop until it ends, from its beginning after each panic of a coroutine. */
static void run_loop(void *pass)
{
    struct sni_worker *w = pass;
    jmp_buf beginning;
    w->loop = (struct sni_context){0}; /* it may have been another thread's */
    w->loop_beginning = &beginning;
    (void)_setjmp(beginning);
    loop(w);
    w->loop_beginning = NULL;
}

void sni_worker_run(struct sni_worker *w, enum sni_drive drive, const struct sni_task *until)
{
    w->drive = drive;
    w->until = until;
    uint32_t detour = drive == SNI_DRIVE_TURN ? SNI_DETOUR_TURN : 0;
    if (until != NULL && sni_task_is_complete(until))
        detour |= SNI_DETOUR_RETURN;
    if (drive != SNI_DRIVE_THREAD) { /* a thread's may be stopped already */
        sni_atomic_store(&w->detour, detour, seq_cst);
        /* seq_cst, both: a stop has come before, or comes after the store; see sni_sched_stop */
        if (sni_atomic_load(&w->sched->life, seq_cst) == SNI_SCHED_STOPPING)
            sni_atomic_fetch_or(&w->detour, SNI_DETOUR_RETURN, relaxed); /* relaxed: our own */
    }
    w->fp_control = sni_fp_control_get();
    sni_exec_set(&w->exec.exec);
    sni_context_call(run_loop, w); /* nothing unwinds into whoever drives us */
    sni_exec_set(NULL);
}

/* A coroutine panicked: leave its poll, and begin the loop anew. */
_Noreturn static void leave_poll(struct sni_worker *w)
{
    w->exec.polling = NULL;
    _longjmp(*w->loop_beginning, 1);
}

void sni_worker_leave(struct sni_task *task)
{
    struct sni_worker *w = sni_worker_current();
    struct sni_task *fiber = w->exec.exec.fiber;
    if (task->kind == SNI_TASK_FIBER && fiber != task)
        _longjmp(fiber->acting->out, 1); /* back into the join that ran it */
    if (task->kind == SNI_TASK_CORO) {
        sni_task_end(&w->exec.exec, task, -ECONNABORTED);
        leave_poll(w);
    }
    struct remains r = end_task(w, task, -ECONNABORTED);
    leave_fiber(w, &r, sni_worker_pick(w));
}
