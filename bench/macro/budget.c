/* SPDX-License-Identifier: MIT */
/* budget - each hot path alone, for callgrind to count: budget PATH [rounds=R].
 *
 * A round prepares BATCH operations, does them between two toggles (count.h), and clears up; it is
 * done `rounds` times after some that are not counted, so that memory is there and queues have
 * their usual length. Nothing is timed. tools/budgets runs it and writes down what it counted.
 *
 * One worker, which never sleeps here: what is counted is what an operation executes when nobody
 * disturbs it. A path that ends in another task (a yield, a join that waits) is counted with the
 * switch to it. What a batch pays once (the loop, the toggles, a turn of the scheduler that is due)
 * is in it, by a BATCHth. */
#include "../peers/sinew/sinew.h"
#include "count.h"

enum { BATCH = 64, WARM = 20 };

static bool counting;

static void toggle(void)
{
    if (counting)
        COUNT_TOGGLE();
}

static void let_others_run(void)
{
    for (int i = 0; i < 3; i++) /* one ends, one is woken by that, one more for good measure */
        sn_yield();
}

/* ---- tasks ---------------------------------------------------------------------------------- */

static sn_task *tasks[BATCH];

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

typedef struct nothing_coro {
    sn_coro coro;
} nothing_coro;

SN_CORO(nothing_coro, self)
{
    SN_BEGIN(self);
    SN_END();
}

static void spawn_all(void)
{
    for (int i = 0; i < BATCH; i++)
        tasks[i] = sn_spawn(nothing, NULL);
}

static int join_all(void)
{
    return yard_join_all(tasks, BATCH);
}

static int count_spawn(void)
{
    toggle();
    spawn_all();
    toggle();
    return join_all();
}

static int count_spawn_coro(void)
{
    nothing_coro frame = {0};
    toggle();
    for (int i = 0; i < BATCH; i++)
        tasks[i] = sn_spawn_coro(nothing_coro, &frame);
    toggle();
    return join_all();
}

static int count_run(void)
{
    spawn_all();
    toggle();
    sn_yield(); /* all of them run, and end */
    toggle();
    return join_all();
}

static int count_join(void)
{
    spawn_all();
    let_others_run();
    toggle();
    int rc = join_all();
    toggle();
    return rc;
}

static int count_join_waits(void)
{
    int rc = 0;
    for (int i = 0; i < BATCH; i++) {
        tasks[0] = sn_spawn(nothing, NULL);
        toggle();
        rc |= sn_join(tasks[0], NULL);
        toggle();
    }
    return rc;
}

static bool stop;

static int yield_until_stopped(void *arg)
{
    (void)arg;
    while (!stop)
        sn_yield();
    return 0;
}

static int count_yield(void)
{
    stop = false;
    sn_task *other = sn_spawn(yield_until_stopped, NULL);
    sn_yield();
    toggle();
    for (int i = 0; i < BATCH / 2; i++) /* and as many by the other */
        sn_yield();
    toggle();
    stop = true;
    return sn_join(other, NULL);
}

/* ---- channels ------------------------------------------------------------------------------- */

static sn_chan *full_of_room;
static sn_chan *rendezvous;
static uint64_t values[BATCH];

static int send_all(sn_chan *ch)
{
    int rc = 0;
    for (int i = 0; i < BATCH; i++)
        rc |= sn_chan_send(ch, &values[i], SN_FOREVER);
    return rc;
}

static int recv_all(sn_chan *ch)
{
    int rc = 0;
    for (int i = 0; i < BATCH; i++)
        rc |= sn_chan_recv(ch, &values[i], SN_FOREVER);
    return rc;
}

static int count_send(void)
{
    toggle();
    int rc = send_all(full_of_room);
    toggle();
    return rc | recv_all(full_of_room);
}

static int count_recv(void)
{
    int rc = send_all(full_of_room);
    toggle();
    rc |= recv_all(full_of_room);
    toggle();
    return rc;
}

static int receive_one(void *arg)
{
    uint64_t v;
    (void)arg;
    return sn_chan_recv(rendezvous, &v, SN_FOREVER);
}

static void have_receivers(void)
{
    for (int i = 0; i < BATCH; i++)
        tasks[i] = sn_spawn(receive_one, NULL);
    let_others_run();
}

static int count_send_wakes(void)
{
    have_receivers();
    toggle();
    int rc = send_all(rendezvous);
    toggle();
    return rc | join_all();
}

/* ---- waiting and waking --------------------------------------------------------------------- */

static sn_sem sems[BATCH];

static int wait_at_sem(void *arg)
{
    int rc = sn_sem_acquire(arg, 1, SN_FOREVER);
    return rc | sn_sem_acquire(arg, 1, SN_FOREVER);
}

static void have_waiters(void)
{
    for (int i = 0; i < BATCH; i++) {
        sems[i] = (sn_sem)SN_SEM_INIT(0);
        tasks[i] = sn_spawn(wait_at_sem, &sems[i]);
    }
    let_others_run();
}

static void release_all(void)
{
    for (int i = 0; i < BATCH; i++)
        (void)sn_sem_release(&sems[i], 1);
}

static int count_wake(void)
{
    have_waiters();
    toggle();
    release_all();
    toggle();
    let_others_run();
    release_all();
    return join_all();
}

static int count_wait(void)
{
    have_waiters();
    release_all();
    toggle();
    sn_yield(); /* all of them go on, and wait again */
    toggle();
    release_all();
    return join_all();
}

/* ---- mutex ---------------------------------------------------------------------------------- */

static sn_mutex mutexes[BATCH];

static int lock_all(void)
{
    int rc = 0;
    for (int i = 0; i < BATCH; i++)
        rc |= sn_mutex_lock(&mutexes[i], SN_FOREVER);
    return rc;
}

static int unlock_all(void)
{
    int rc = 0;
    for (int i = 0; i < BATCH; i++)
        rc |= sn_mutex_unlock(&mutexes[i]);
    return rc;
}

static int count_lock(void)
{
    toggle();
    int rc = lock_all();
    toggle();
    return rc | unlock_all();
}

static int count_unlock(void)
{
    int rc = lock_all();
    toggle();
    rc |= unlock_all();
    toggle();
    return rc;
}

static int lock_and_unlock(void *arg)
{
    int rc = sn_mutex_lock(arg, SN_FOREVER);
    return rc | sn_mutex_unlock(arg);
}

static int count_unlock_wakes(void)
{
    int rc = lock_all();
    for (int i = 0; i < BATCH; i++)
        tasks[i] = sn_spawn(lock_and_unlock, &mutexes[i]);
    let_others_run();
    toggle();
    rc |= unlock_all();
    toggle();
    return rc | join_all();
}

/* ---- timers --------------------------------------------------------------------------------- */

static sn_sleep_state sleeps[BATCH];

static int set_all(void)
{
    sn_waker waker = sn_noop_waker();
    sn_cx cx = {.waker = &waker};
    int ready = 0;
    for (int i = 0; i < BATCH; i++) {
        sn_future *sleep = sn_sleep_op(&sleeps[i], sn_after(SN_S(1000 + i)));
        ready |= !sn_poll_pending(sn_future_poll(sleep, &cx));
    }
    return ready;
}

static void drop_all(void)
{
    for (int i = 0; i < BATCH; i++)
        (void)sn_future_drop(&sleeps[i].future_);
}

static int count_timer_insert(void)
{
    toggle();
    int rc = set_all();
    toggle();
    drop_all();
    return rc;
}

static int count_timer_cancel(void)
{
    int rc = set_all();
    toggle();
    drop_all();
    toggle();
    return rc;
}

/* ---- running them --------------------------------------------------------------------------- */

static const struct path {
    const char *name;
    int (*round)(void);
} paths[] = {
    {"spawn", count_spawn},
    {"spawn_coro", count_spawn_coro},
    {"run_and_end", count_run},
    {"join", count_join},
    {"join_waits", count_join_waits},
    {"yield", count_yield},
    {"send", count_send},
    {"recv", count_recv},
    {"send_wakes", count_send_wakes},
    {"wake", count_wake},
    {"wait", count_wait},
    {"lock", count_lock},
    {"unlock", count_unlock},
    {"unlock_wakes", count_unlock_wakes},
    {"timer_insert", count_timer_insert},
    {"timer_cancel", count_timer_cancel},
};

static int run(void *arg)
{
    const struct path *path = arg;
    int64_t rounds = yard_arg("rounds", 20);
    int rc = 0;
    full_of_room = yard_chan(BATCH);
    rendezvous = yard_chan(0);
    for (int i = 0; i < BATCH; i++)
        mutexes[i] = (sn_mutex)SN_MUTEX_INIT;
    for (int i = 0; i < WARM; i++)
        rc |= path->round();
    counting = true;
    for (int64_t i = 0; i < rounds; i++)
        rc |= path->round();
    yard_check(rc == 0, yard.workload);
    yard_report(rounds * BATCH, 0, ",\"countable\":%d", COUNT_IS_POSSIBLE);
    _exit(0); /* here, for the reason given at yard_sinew_run */
}

int main(int argc, char **argv)
{
    yard_begin(argc, argv, "sinew", yard_sinew_version());
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (strcmp(yard.workload, paths[i].name) != 0)
            continue;
        sn_runtime *rt = NULL;
        yard_check(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 1}) == 0, "create");
        return sn_runtime_block_on(rt, run, (void *)(uintptr_t)&paths[i]);
    }
    return yard_no_workload();
}
