/* SPDX-License-Identifier: MIT */
/* sched.h - workers, and what they share.
 *
 * A *worker* is a thread's right to run tasks of one runtime. It owns a run queue, caches of
 * records and stacks, and a *loop*, which looks for work and polls coroutines on the thread's own
 * stack. (A panic inside a coroutine leaves its poll for the loop's beginning.)
 *
 * A fiber that waits picks the next task itself and switches straight to it; the loop is for
 * coroutines and for idling. What must happen after a fiber is off its stack (make it
 * resumable, queue it again, free the stack) is noted in `after` and done by whatever runs
 * next. */
#ifndef SINEW_SCHED_SCHED_H
#define SINEW_SCHED_SCHED_H

#include "base/rand.h"
#include "fiber/context.h"
#include "fiber/highwater.h"
#include "fiber/stack.h"
#include "io/driver.h"
#include "mem/arena.h"
#include "plat/event.h"
#include "plat/thread.h"
#include "probe/probe.h"
#include "sched/deque.h"
#include "sched/idle.h"
#include "sched/inject.h"
#include "sched/lottery.h"
#include "sched/runq.h"
#include "sched/spin.h"
#include "sched/victims.h"
#include "task/task.h"
#include "timer/alarm.h"

#include <setjmp.h>
#include <sinew/runtime.h>

struct sni_sched;
struct sni_worker;

enum {
    SNI_FAIR_TICK = 61, /* picks between looks at the queue of all; prime, to beat with nothing */

    /* see sni_worker_fetch_ahead */
    SNI_FETCH_MANY = 16, /* tasks in the ring: from so many on */
    SNI_FETCH_STACK = 2, /* so many turns ahead */
    SNI_FETCH_TASK = 5,  /* likewise: longer, since the stack waits for it */
};

/* Why a worker runs, and so when it returns. */
enum sni_drive {
    SNI_DRIVE_THREAD, /* its own thread: until the scheduler stops                       */
    SNI_DRIVE_UNTIL,  /* single-threaded: until a task, or all tasks, have ended          */
    SNI_DRIVE_TURN,   /* single-threaded: until nothing is runnable, or the time is up    */
};

/* Bits of `detour`. */
enum {
    SNI_DETOUR_RETURN = 1, /* the worker must leave its loop                               */
    SNI_DETOUR_TURN = 2,   /* it is driven by turns: the loop looks at the time            */
    SNI_DETOUR_LOOK = 4,   /* it is time to look at the clock and the driver               */
    SNI_DETOUR_PAUSE = 8,  /* it must stand still for a while, see pause.c                 */
};

enum sni_after {
    SNI_AFTER_NOTHING,
    SNI_AFTER_PUBLISH,   /* `what` is a task that waits: it may be resumed from now on */
    SNI_AFTER_QUEUE,     /* `what` is a task: it has yielded                          */
    SNI_AFTER_PUT_STACK, /* `what` is a stack that was left for ever                  */
};

/* Written by its own thread, but for what is marked. */
struct sni_worker {
    struct sni_task_exec exec; /* first: sni_exec_current() gives the worker            */
    struct sni_sched *sched;   /* immutable                                             */
    unsigned index;            /* immutable                                             */
    uint32_t tick;             /* picks so far                                          */
    uint32_t moves_seen;       /* as a searcher: of the others' queues, see hurry.c       */
    int64_t moves_seen_ns;     /* and when                                              */
    uint32_t in_vain;          /* as a searcher: waits for hurried ones, see hurry.c      */
    uint32_t look_at;          /* not before this tick the world is looked at, while busy */
    uint32_t fair_at;          /* the tick of the next look at the queue of all          */
    bool plain;                /* immutable: FIFO and not seeded                        */
    bool lifo;                 /* immutable: LIFO and not seeded                        */
    bool wakes;                /* immutable: others may take what it queues             */
    struct sni_hush hush;      /* it need not tell others what it queues; searchers write */
    bool looking;              /* at the world: what it wakes goes behind what runs already */
    bool searching;            /* accounted as searching, see idle.h                    */
    bool all_first;            /* the queue of all came before the inbox, the last time  */
    bool tastes;               /* as a searcher: takes one task, see hurry.c             */
    bool was_woken;            /* as a searcher: from a real sleep, see hurry.c           */
    struct sni_worker *tasted; /* whose, if it has been busy since; else NULL            */
    bool time_passed;          /* of a turn on virtual time: once in each               */
    bool turn_begins;          /* nothing was looked at in it                           */
    enum sni_after after;      /* to be done by the next context                        */
    void *after_what;
    struct sni_task *handoff;     /* from a fiber to the loop: run this next               */
    const struct sni_task *until; /* whose end makes the worker return, or NULL            */
    SNI_ATOMIC(uint32_t)
    detour; /* why fibers must switch to the loop, see worker.c; a stop
                                     sets RETURN from another thread                       */
    enum sni_drive drive;
    int64_t turn_until_ns;                  /* of a turn                                       */
    SNI_ATOMIC(struct sni_driver *) driver; /* made when it is first needed; others read   */
    SNI_ATOMIC(uint32_t) looks;             /* at the world so far; the watcher reads            */
    SNI_ATOMIC(uint32_t) paused;            /* in which pause it stands still; who pauses reads   */
    SNI_ATOMIC(uintptr_t) idle_sp;          /* where its loop sleeps or stands still; as above   */
    uint32_t looks_seen;                    /* the watcher's                                     */
    uint32_t quiet_rounds;                  /* as a watcher: without anybody busy                */
    uint32_t doubts;                        /* how often all_asleep was not sure,                */
    uint64_t doubted_at;                    /* when sni_sched_turns was this                     */
    struct sni_spin spin;                   /* when it looks for what the world may bring        */
    struct sni_spin hunt;                   /* when it looks for what other workers may queue     */
    struct sni_crowd crowd;
    SNI_ATOMIC(int64_t) virtual_ns; /* the time, in a scheduler on virtual time          */
    struct sni_context loop;
    jmp_buf *loop_beginning; /* while the worker runs: the loop can begin anew           */
    const char *dead_at;     /* where its task was spawned                               */
    struct sni_context dead; /* a fiber's that is left for ever, while it is left        */
    uint64_t fp_control;     /* the words that tasks begin with, see keeps_fp            */
    struct sni_record_cache records;
    struct sni_stack_cache stacks;
    struct sni_rand rand;
    uint64_t id_next;             /* ids at hand: from here                                */
    uint64_t id_end;              /* up to here                                            */
    SNI_ATOMIC(uint64_t) spawned; /* anybody reads                                         */
    SNI_ATOMIC(uint64_t) ended;   /* anybody reads, see sni_sched_alive                    */
    struct sni_runq runq;         /* thieves steal; unused in a LIFO scheduler, which has: */
    struct sni_deque deque;       /* thieves steal                                         */
    struct sni_lottery lottery;   /* of a seeded scheduler, instead of all queues           */
    struct sni_inject inbox;      /* tasks that only this worker may run; anybody pushes   */
    struct sni_parker parker;     /* anybody unparks                                       */
    struct sni_probe probe;
    struct sni_thread thread;
    uint16_t *victims; /* immutable: all others, the near ones first                  */
    unsigned near_n;   /* immutable                                                   */
    struct sni_clockwork clockwork; /* anybody clears alarms, and rings them, see idle_watch */
};

/* What a worker does that has asked whether all are asleep for good. */
enum sni_verdict {
    SNI_SLEEP_ON,
    SNI_LOOK_AGAIN, /* at once: the run was ended                                            */
    SNI_ASK_LATER,  /* somebody may wake a task; or is just about to wait, or to end         */
};

struct sni_sched_config {
    unsigned workers;
    bool single_threaded;
    bool no_steal;
    bool pin;
    bool lifo;   /* fork-join: newest first, oldest stolen */
    bool seeded; /* every choice is drawn from `seed` */
    bool virtual_time;
    bool measure_stacks;
    uint32_t queue_capacity;
    int64_t tick_ns; /* of the timers */
    sn_hooks hooks;
    /* Make a driver for a worker. Returns 0, or -errno. */
    int (*make_driver)(void *arg, struct sni_driver **out);
    void *make_driver_arg;
    size_t stack_bytes;
    const char *name;
    uint64_t seed;
    /* All workers are asleep and nothing is under way, but tasks are alive: called by the last
     * worker before it sleeps for good. NULL: nobody wants to know. */
    enum sni_verdict (*all_asleep)(struct sni_sched *sched, struct sni_worker *w);
};

enum sni_sched_life {
    SNI_SCHED_OPEN,
    SNI_SCHED_CLOSED,   /* to those outside who want to spawn */
    SNI_SCHED_STOPPING, /* nothing runs any more, soon        */
};

struct sni_sched {
    struct sni_home home;           /* first: a task's home is its scheduler               */
    struct sni_sched_config config; /* immutable                                           */
    struct sni_arena *arena;        /* immutable                                           */
    struct sni_stack_pool stacks;
    struct sni_highwater *marks;     /* any thread: how deep stacks were; NULL: not asked   */
    struct sni_inject inject;        /* any thread: normal and low tasks                    */
    struct sni_inject urgent;        /* any thread: high and critical tasks, of all workers */
    struct sni_idle idle;            /* any thread                                          */
    SNI_ATOMIC(uint32_t) end_word;   /* grows when the last task ended and somebody waits   */
    SNI_ATOMIC(uint32_t) end_wanted; /* somebody waits for the end of all tasks             */
    SNI_ATOMIC(uint64_t) ids;        /* blocks of task numbers                              */
    SNI_ATOMIC(uint64_t) spawned;    /* by threads that are no workers                      */
    struct sni_mutex driver;         /* single-threaded: held by the thread that drives     */
    SNI_ATOMIC(uint32_t) visitors;   /* threads outside that queue a task                   */
    SNI_ATOMIC(uint32_t) spawners;   /* those of them that spawn one                        */
    SNI_ATOMIC(uint32_t) watched;    /* a worker watches the busy ones, see world.c         */
    SNI_ATOMIC(int) event_fd;        /* for a foreign loop; -1: nobody asked for one        */
    struct sni_mutex gather_lock;    /* guards the next two                                 */
    struct sni_gather gather;        /* what the foreign loop waits for                     */
    bool gathers_driver;             /* the worker's driver is in it                        */
    SNI_ATOMIC(uint32_t) callers;    /* threads in sn_runtime_block_on: they use it         */
    SNI_ATOMIC(uint32_t) forever;    /* of end_wanted: those without a deadline             */
    SNI_ATOMIC(uint32_t) stuck;      /* nobody needs to wait for the end of all tasks       */
    SNI_ATOMIC(uint32_t) life;       /* enum sni_sched_life                                 */
    SNI_ATOMIC(uint64_t) told_at;    /* what sni_sched_turns was when all_asleep said so    */
    SNI_ATOMIC(uint32_t) pausing;    /* odd: workers are to stand still, see pause.c        */
    struct sni_mutex inspection;     /* held by who looks at tasks that wait (task.h)       */
    SNI_ATOMIC(uint32_t) can_hush;   /* there is a fence in all threads, see hurry.c        */
    bool has_counter;                /* immutable: deadlines are made by it, see quick.h     */
    bool sees_crowds;              /* immutable: workers ask who wants their processor, see spin.h;
                                        not under valgrind, where no two runs would be alike  */
    unsigned workers_n;            /* immutable                                           */
    unsigned started;              /* threads that run                                    */
    struct sni_worker *workers;    /* immutable; an array, in one block with what follows: */
    sni_runq_cell *cells;          /* the workers' queues                                 */
    struct sni_wheel_slots *slots; /* of their wheels                                   */
    uint16_t *victims;             /* the workers' lists                                  */
};

/* Make a scheduler and start its threads.
 *
 * Returns  0, -ENOMEM, -EAGAIN */
int sni_sched_init(struct sni_sched *sched, const struct sni_sched_config *config);

/* No more spawns from outside; those under way have succeeded. False: it was closed before. */
bool sni_sched_close(struct sni_sched *sched);

/* Make the workers leave their loops, whatever is still to do, and end their threads; and whoever
 * drives a single-threaded one come back. */
void sni_sched_stop(struct sni_sched *sched);

/* Stop, and free everything. */
void sni_sched_finish(struct sni_sched *sched);

/* Spawn from any thread; queues the task. With `has_handle`, *handle is its handle.
 *
 * Returns  0; -EPERM: it is closed; and as sni_task_new */
int sni_sched_spawn(struct sni_sched *sched, const struct sni_spawn *what, bool has_handle,
                    sn_task **handle);

/* Run tasks on this thread (single-threaded schedulers) until the task of `handle`, which the
 * caller owns, has ended; NULL: until no task is alive. Returns 0, -EBUSY */
int sni_sched_drive(struct sni_sched *sched, sn_task *handle);

/* Run what is runnable on this thread (single-threaded schedulers) until nothing is, or `until`
 * has passed. Returns 0, -EBUSY */
int sni_sched_turn(struct sni_sched *sched, sn_deadline until);

/* Wait until nobody is in sn_runtime_block_on: their tasks have ended, or were abandoned. */
void sni_sched_await_callers(struct sni_sched *sched);

/* The descriptor that is readable when a turn has something to do. Returns it, or -errno */
int sni_sched_event_fd(struct sni_sched *sched);

/* Wait until no task is alive or `until` has passed. Returns 0, -ETIMEDOUT, -EDEADLK: nobody can
 * wake those that are (all_asleep) */
int sni_sched_wait_all(struct sni_sched *sched, sn_deadline until);

/* A worker that goes to sleep: tell whoever waits for the end of all tasks. Behind a fence. */
void sni_sched_look_at_end(struct sni_sched *sched);

/* The run is over although tasks are alive, since nobody can wake them: whoever waits for the end
 * of all of them returns, until another one is spawned from outside. */
void sni_sched_set_stuck(struct sni_sched *sched);

/* A number that grows whenever a task has run, while all workers sleep. */
uint64_t sni_sched_turns(const struct sni_sched *sched);

/* How many tasks are alive: exact when it says 0, else a moment's number. */
uint64_t sni_sched_alive(const struct sni_sched *sched);

/* The worker of this thread, or NULL. */
struct sni_worker *sni_worker_current(void);

/* ---- between the files of this room ---------------------------------------------------- */

extern const struct sni_exec_ops sni_worker_exec_ops;

/* worker.c: the thread's part; returns when the scheduler stops or `until` has completed. */
void sni_worker_run(struct sni_worker *w, enum sni_drive drive, const struct sni_task *until);
void sni_worker_ready(struct sni_task *task);
void sni_worker_ready_last(struct sni_task *task);
void sni_worker_leave(struct sni_task *task);
bool sni_worker_take_unstarted(struct sni_task *task);

/* world.c: time and descriptors. */
void sni_world_init(struct sni_worker *w);
void sni_world_finish(struct sni_worker *w);
int64_t sni_world_now(struct sni_exec *exec);
int sni_world_driver(struct sni_exec *exec, struct sni_driver **out);
void sni_world_suspend_until(struct sni_exec *exec, struct sni_waiter *waiter, int64_t until_ns);
bool sni_world_look(struct sni_worker *w);
bool sni_world_glance(struct sni_worker *w); /* the last before it sleeps: saves a system call */
bool sni_world_is_due(struct sni_worker *w);
void sni_world_sleep(struct sni_worker *w);

/* A searcher rests: it is not among those who sleep, and goes on then, or earlier. */
void sni_world_nap(struct sni_worker *w, int64_t until_ns);

/* All workers are asleep, if `w` is, and nothing is under way that could wake one. */
bool sni_world_is_quiet(struct sni_worker *w);

/* On virtual time: let it be the next alarm's. False: it is real, or there is no alarm. */
bool sni_world_pass_time(struct sni_worker *w);
void sni_world_wake(struct sni_worker *w);
void sni_world_want_watch(struct sni_worker *w);
int sni_world_spin_rounds(struct sni_worker *w);

/* embed.c: a scheduler in a foreign loop. */
void sni_embed_tell(struct sni_sched *sched);
void sni_embed_finish(struct sni_sched *sched);

/* pause.c: let no task run but the caller's, if it is one, until resume. Returns 0; -EBUSY: a task
 * runs for too long, or somebody else pauses */
int sni_sched_pause(struct sni_sched *sched);
void sni_sched_resume(struct sni_sched *sched);
void sni_pause_here(struct sni_worker *w);

/* hurry.c: a searcher waits as long as others are too fast to be robbed; without spinning, if it is
 * `shy` (spin.h). True: they still are, but it has waited for long. */
bool sni_worker_let_hurry(struct sni_worker *w, bool shy);

/* find.c: where the next task comes from. */
struct sni_task *sni_worker_pick_slow(struct sni_worker *w);
struct sni_task *sni_worker_steal(struct sni_worker *w);
void sni_worker_push(struct sni_worker *w, struct sni_task *task);
void sni_worker_push_back(struct sni_worker *w, struct sni_task *task);
void sni_worker_push_yielded(struct sni_worker *w, struct sni_task *task);
void sni_sched_push(struct sni_sched *sched, struct sni_task *task);
bool sni_sched_has_shared_work(struct sni_sched *sched);
bool sni_sched_has_work(struct sni_sched *sched, struct sni_worker *w);
uint32_t sni_worker_backlog(struct sni_worker *w);

/* The worker behind an executor of this kind, or NULL. */
static inline struct sni_worker *sni_worker_of(struct sni_exec *exec)
{
    if (exec == NULL || exec->ops != &sni_worker_exec_ops)
        return NULL;
    return (struct sni_worker *)(void *)exec;
}

static inline struct sni_task *sni_task_of(struct sni_runlink *link)
{
    return link != NULL ? sni_container_of(link, struct sni_task, link) : NULL;
}

/* Nothing is urgent, and it is not the turn of the queue of all. */
static inline bool sni_worker_is_usual(const struct sni_worker *w)
{
    return (int32_t)(w->tick + 1 - w->fair_at) < 0 && sni_inject_len(&w->sched->urgent) == 0;
}

/* Where many take turns, their memory is no longer in the nearest cache when their turn comes, and
 * a switch would wait for three lines one after another: the task's two, and that of its stack,
 * whose address is in the second. So they are asked for some turns ahead, the stack's when the
 * task's should be there. Where few do, it would only be in the way. A thief may have taken what is
 * looked at, and run it, and another task may be there: then the wrong memory is asked for. */
static SNI_ALWAYS_INLINE void sni_worker_fetch_ahead(const struct sni_worker *w,
                                                     const struct sni_runq_rest *rest)
{
    const struct sni_runlink *soon = sni_runq_peek(&w->runq, rest, SNI_FETCH_STACK);
    const struct sni_runlink *later = sni_runq_peek(&w->runq, rest, SNI_FETCH_TASK);
    const struct sni_task *task = sni_container_of(later, struct sni_task, link);
    if (!SNI_THREAD_SANITIZED) /* which would call the guess a race */
        sni_prefetch(sni_guess(sni_container_of(soon, struct sni_task, link)->context.sp));
    sni_prefetch(task);
    sni_prefetch(&task->context);
}

/* The oldest in the ring. */
static SNI_ALWAYS_INLINE struct sni_runlink *sni_worker_pop(struct sni_worker *w)
{
    struct sni_runq_rest rest;
    struct sni_runlink *link = sni_runq_pop_rest(&w->runq, &rest);
    if (sni_unlikely(rest.n >= SNI_FETCH_MANY))
        sni_worker_fetch_ahead(w, &rest);
    return link;
}

/* The next task of a plain worker in the usual case; NULL: sni_worker_pick knows. Calls nothing, so
 * that who leaves a fiber by it needs no frame. */
static SNI_ALWAYS_INLINE struct sni_task *sni_worker_pick_plain(struct sni_worker *w)
{
    if (sni_unlikely(!w->plain || !sni_worker_is_usual(w)))
        return NULL;
    struct sni_runlink *link = sni_runq_slot_take(&w->runq);
    if (link != NULL)
        sni_probe_count(&w->probe, SNI_PROBE_lifo_hits);
    else
        link = sni_worker_pop(w);
    if (sni_unlikely(link == NULL))
        return NULL;
    w->tick++;
    return sni_container_of(link, struct sni_task, link);
}

/* Behind all others of a plain worker, if the task is plain and there is room. False: nothing was
 * done, and sni_worker_push_back knows. */
static SNI_ALWAYS_INLINE bool sni_worker_push_plain(struct sni_worker *w, struct sni_task *task)
{
    return sni_likely(w->plain && !task->special) && sni_runq_push(&w->runq, &task->link);
}

/* The next task for `w`, or NULL. */
static inline struct sni_task *sni_worker_pick(struct sni_worker *w)
{
    struct sni_task *task = sni_worker_pick_plain(w);
    if (sni_likely(task != NULL))
        return task;
    if (w->lifo && sni_worker_is_usual(w)) {
        struct sni_runlink *link = sni_deque_pop(&w->deque);
        if (sni_likely(link != NULL)) {
            w->tick++;
            return sni_container_of(link, struct sni_task, link);
        }
    }
    return sni_worker_pick_slow(w);
}

#endif
