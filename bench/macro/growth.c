/* SPDX-License-Identifier: MIT */
/* growth - what one operation costs when there are many of something.
 *
 *     growth <axis> n=SIZE ops=OPERATIONS
 *
 * Of each axis there are `n`: tasks that wait, timers that are set, connections, waiters at one
 * channel, children of one scope. Then `ops` operations, each on one that was not touched for long:
 * the next is always STRIDE further, so that all are visited and no prefetcher guesses which. What
 * an algorithm makes of n, and what the caches do, is then in the figure. One worker, so that
 * nothing else is.
 *
 * One line of JSON, as the yardstick's other programs (peers/WORKLOADS.md). Under callgrind only
 * the operations are counted (count.h): if instructions do not grow and the time does, it is the
 * memory. */
#include "../peers/sinew/sinew.h"
#include "count.h"

#include <sys/resource.h>

enum { STRIDE = 61803 }; /* has no divisor in common with a power of ten */

static int64_t size;
static int64_t done; /* by the tasks; there is one worker */

static int64_t next_of(int64_t i)
{
    return i * STRIDE % size;
}

/* Between the two only operations. Report the sum of both. */
static int64_t begin(void)
{
    COUNT_TOGGLE();
    return yard_now();
}

static void end(int64_t t0, int64_t ops)
{
    int64_t t1 = yard_now();
    COUNT_TOGGLE();
    yard_report(size, (double)(t1 - t0) / (double)ops, ",\"ops\":%lld,\"countable\":%d",
                (long long)ops, COUNT_IS_POSSIBLE);
}

static void let_others_run(int64_t until_done)
{
    while (done < until_done)
        sn_yield();
}

/* ---- tasks ---------------------------------------------------------------------------------- */

static int wait_for_units(void *arg)
{
    sn_sem *sem = arg;
    done++;
    while (sn_sem_acquire(sem, 1, SN_FOREVER) == 0)
        done++;
    return 0;
}

static sn_sem *make_waiting_tasks(void)
{
    sn_sem *sems = yard_alloc(size, sizeof(*sems));
    for (int64_t i = 0; i < size; i++) {
        sems[i] = (sn_sem)SN_SEM_INIT(0);
        yard_check(sn_spawn_detached(wait_for_units, &sems[i]) == 0, "spawn");
    }
    let_others_run(size);
    return sems;
}

/* One of n is woken, runs, and waits again. */
static int wakes(void *arg)
{
    int64_t ops = yard_arg("ops", 100000);
    sn_sem *sems = make_waiting_tasks();
    (void)arg;
    int64_t t0 = begin();
    for (int64_t i = 0; i < ops; i++) {
        (void)sn_sem_release(&sems[next_of(i)], 1);
        let_others_run(size + i + 1);
    }
    end(t0, ops);
    return 0;
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* One comes and goes while n wait. */
static int spawns(void *arg)
{
    int64_t ops = yard_arg("ops", 100000);
    int rc = 0;
    (void)arg;
    (void)make_waiting_tasks();
    int64_t t0 = begin();
    for (int64_t i = 0; i < ops; i++)
        rc |= sn_join(sn_spawn(nothing, NULL), NULL);
    end(t0, ops);
    return rc;
}

/* ---- timers --------------------------------------------------------------------------------- */

static bool set(sn_sleep_state *sleep, int64_t after_ns, sn_cx *cx)
{
    return sn_poll_pending(sn_future_poll(sn_sleep_op(sleep, sn_after(after_ns)), cx));
}

/* One of n is cancelled and set again: 1 to 10,000 s from now, so that none comes to pass. */
static int timers(void *arg)
{
    int64_t ops = yard_arg("ops", 100000);
    uint32_t *seconds = yard_delays_ms(size);
    sn_sleep_state *sleeps = yard_alloc(size, sizeof(*sleeps));
    sn_waker waker = sn_noop_waker();
    sn_cx cx = {.waker = &waker};
    int64_t pending = 0;
    (void)arg;
    for (int64_t i = 0; i < size; i++)
        pending += set(&sleeps[i], SN_S(seconds[i]), &cx);
    int64_t t0 = begin();
    for (int64_t i = 0; i < ops; i++) {
        sn_sleep_state *one = &sleeps[next_of(i)];
        int64_t after = SN_S(seconds[next_of(i + 1)]);
        (void)sn_future_drop(&one->future_);
        pending += set(one, after, &cx);
    }
    end(t0, ops);
    yard_check(pending == size + ops, "timers");
    return 0;
}

/* ---- waiters at a channel ------------------------------------------------------------------- */

static int receive(void *arg)
{
    uint64_t v;
    done++;
    while (sn_chan_recv(arg, &v, SN_FOREVER) == 0)
        done++;
    return 0;
}

/* The first of n gets a value and queues up behind the others. */
static int sends(void *arg)
{
    int64_t ops = yard_arg("ops", 100000);
    sn_chan *ch = yard_chan(0);
    int rc = 0;
    (void)arg;
    for (int64_t i = 0; i < size; i++)
        rc |= sn_spawn_detached(receive, ch);
    let_others_run(size);
    int64_t t0 = begin();
    for (int64_t i = 0; i < ops; i++) {
        uint64_t v = (uint64_t)i;
        rc |= sn_chan_send(ch, &v, SN_FOREVER);
        let_others_run(size + i + 1);
    }
    end(t0, ops);
    return rc;
}

/* One of n, wherever it stands, is cancelled; another comes in its place. */
static int leaves(void *arg)
{
    int64_t ops = yard_arg("ops", 100000);
    sn_chan *ch = yard_chan(0);
    sn_task **tasks = yard_alloc(size, sizeof(sn_task *));
    int cancelled = 0;
    (void)arg;
    for (int64_t i = 0; i < size; i++)
        tasks[i] = sn_spawn(receive, ch);
    let_others_run(size);
    int64_t t0 = begin();
    for (int64_t i = 0; i < ops; i++) {
        sn_task **one = &tasks[next_of(i)];
        cancelled |= sn_cancel(*one, NULL);
        *one = sn_spawn(receive, ch);
        let_others_run(size + i + 1);
    }
    end(t0, ops);
    yard_check(cancelled == 0, "leaves");
    return 0;
}

/* ---- children of a scope -------------------------------------------------------------------- */

/* One child comes and goes while n are in the scope. */
static int children(void *arg)
{
    int64_t ops = yard_arg("ops", 100000);
    sn_sem never = SN_SEM_INIT(0);
    int rc = 0;
    (void)arg;
    SN_SCOPE(g, .result = &rc) {
        for (int64_t i = 0; i < size; i++)
            yard_check(sn_group_spawn(g, wait_for_units, &never) >= 0, "spawn");
        let_others_run(size);
        int64_t t0 = begin();
        for (int64_t i = 0; i < ops; i++) {
            yard_check(sn_group_spawn(g, nothing, NULL) >= 0, "spawn");
            sn_yield(); /* it runs and ends */
        }
        end(t0, ops);
        sn_group_cancel(g, "all is counted");
    }
    return rc;
}

/* ---- connections ---------------------------------------------------------------------------- */

static int echo(void *arg)
{
    char byte;
    done++;
    while (sn_read(arg, &byte, 1, SN_FOREVER) == 1)
        if (sn_write_all(arg, &byte, 1, NULL, SN_FOREVER) < 0)
            break;
    return 0;
}

/* A request and its answer on one of n connections; each takes two descriptors. */
static int conns(void *arg)
{
    int64_t ops = yard_arg("ops", 100000);
    sn_conn *(*pairs)[2] = yard_alloc(size, sizeof(*pairs));
    char byte = 'x';
    int rc = 0;
    (void)arg;
    for (int64_t i = 0; i < size; i++) {
        yard_check(sn_conn_pair(pairs[i]) == 0, "conn_pair: too many descriptors?");
        rc |= sn_spawn_detached(echo, pairs[i][1]);
    }
    let_others_run(size);
    int64_t t0 = begin();
    for (int64_t i = 0; i < ops; i++) {
        sn_conn *one = pairs[next_of(i)][0];
        rc |= sn_write_all(one, &byte, 1, NULL, SN_FOREVER);
        rc |= sn_read_exact(one, &byte, 1, NULL, SN_FOREVER);
    }
    end(t0, ops);
    return rc;
}

static void allow_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    static const struct yard_workload axes[] = {
        {"grow_wakes", wakes, false},   {"grow_spawns", spawns, false},
        {"grow_timers", timers, false}, {"grow_sends", sends, false},
        {"grow_leaves", leaves, false}, {"grow_children", children, false},
        {"grow_conns", conns, false},
    };
    yard_begin(argc, argv, "sinew", yard_sinew_version());
    size = yard_arg("n", 1000);
    allow_descriptors();
    return yard_sinew_main(axes, sizeof(axes) / sizeof(axes[0]));
}
